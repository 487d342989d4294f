"""The orthogonal LSTM against its equations, one state at a time; its gradient; its relevance; and any padding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.explainers.lrp.relevance import lrp
from heedful.explainers.perturbation.one_word import change_each_word, has_structure
from heedful.models.attentive.orthogonal import OrthogonalLSTM
from zoo import batch, network


def slowly(encoder: OrthogonalLSTM, x: Tensor) -> Tensor:
    """Mohankumar et al. 2020, section 4: (length, dim) of one text -> (length, hidden), by autograd."""
    W, U, b, d = encoder.forwards.all_weights[0]
    h = c = x.new_zeros(U.shape[1])
    states: list[Tensor] = []
    for x_t in x:
        i, f, g, o = (W @ x_t + b + U @ h + d).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        if states:
            mean = torch.stack(states).mean(0)
            h = h - (h @ mean) / (mean @ mean) * mean
        states.append(h)
    return torch.stack(states)


@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_states_and_gradients_are_those_of_the_equations(lengths: list[int], seed: int) -> None:
    model, texts = network("orthogonal", seed=seed), batch(lengths, seed=seed)
    encoder, present = model.encoder, texts.passage.present
    assert isinstance(encoder, OrthogonalLSTM)
    x = model.embed(texts.passage).detach().requires_grad_()
    h = encoder(x, present) * present.unsqueeze(-1)
    slow = torch.zeros_like(h)
    for i, n in enumerate(present.sum(1).tolist()):
        slow = slow.index_put((torch.tensor(i), torch.arange(n)), slowly(encoder, x[i, :n]))
    torch.testing.assert_close(h, slow, atol=1e-10, rtol=1e-8)
    into = [x, *encoder.parameters()]
    ours, theirs = (torch.autograd.grad(states.sin().sum(), into) for states in (h, slow))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-8, rtol=1e-6)


def test_each_state_is_orthogonal_to_the_mean_of_the_earlier_ones() -> None:
    model, texts = network("orthogonal"), batch([9])
    h = model(texts).h[0].detach()  # (length, hidden)
    for t in range(1, len(h)):
        assert abs(float(h[t] @ h[:t].mean(0))) < 1e-12
    plain = network("lstm")(texts).h[0].detach()
    assert max(abs(float(plain[t] @ plain[:t].mean(0))) for t in range(1, len(plain))) > 1e-3


def test_where_the_earlier_states_are_zero_nothing_is_taken_away() -> None:
    encoder = OrthogonalLSTM(3, 4)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.zero_()
    x = torch.randn(2, 5, 3, requires_grad=True)
    h = encoder(x, torch.ones(2, 5, dtype=torch.bool))
    assert h.eq(0).all()
    assert torch.autograd.grad(h.sum(), x)[0].isfinite().all()


def test_the_state_that_is_read_on_is_the_orthogonal_one() -> None:
    """An LSTM whose states are made orthogonal afterwards is another model."""
    model, texts = network("orthogonal"), batch([6])
    encoder = model.encoder
    assert isinstance(encoder, OrthogonalLSTM)
    raw = encoder.forwards(model.embed(texts.passage))[0][0].detach()
    afterwards: list[Tensor] = [raw[0]]
    for h in raw[1:]:
        mean = torch.stack(afterwards).mean(0)
        afterwards.append(h - (h @ mean) / (mean @ mean) * mean)
    states = model(texts).h[0].detach()
    torch.testing.assert_close(states[:2], torch.stack(afterwards)[:2])
    assert not torch.allclose(states, torch.stack(afterwards), atol=1e-4)


def test_relevance_of_the_projection_by_its_rule() -> None:
    """Two steps by hand: P_t is a gate, so all of R_h goes to h^, by the epsilon rule through P_t."""
    from heedful.explainers.lrp.recurrent import orthogonal
    from heedful.explainers.lrp.rules import Rule

    epsilon = 0.01
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = OrthogonalLSTM(3, 4).double()
        x, R = torch.randn(1, 2, 3).double(), torch.randn(1, 2, 4).double()

    def stable(z: Tensor) -> Tensor:
        return z + epsilon * torch.where(z < 0, -1.0, 1.0)

    (W, U, b, d), seen = encoder.forwards.all_weights[0], []
    states: list[Tensor] = []
    h = c = torch.zeros(4).double()
    with torch.no_grad():
        for t in range(2):
            i, f, g, o = (W @ x[0, t] + b + U @ h + d).chunk(4)
            before, c_before = h, c
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            raw = o.sigmoid() * c.tanh()
            P = torch.eye(4).double()
            if states:
                m = states[0]
                P = P - torch.outer(m, m) / (m @ m)
            h = P @ raw
            states.append(h)
            seen.append((i.sigmoid() * g.tanh(), f.sigmoid() * c_before, c, g, raw, P, h, before))
        W_g, U_g = W[8:12], U[8:12]  # of the signal g
        words, past, recurrent = [0.0, 0.0], torch.zeros(4).double(), torch.zeros(4).double()
        for t in (1, 0):
            ig, fc, c, z_g, raw, P, h, before = seen[t]
            R_h = R[0, t] + recurrent
            R_raw = raw * (P.T @ (R_h / stable(h)))
            s = (R_raw + past) / stable(c)
            past, R_g = fc * s, ig * s
            s = R_g / stable(z_g)
            words[t] = float((x[0, t] * (W_g.T @ s)).sum())
            recurrent = before * (U_g.T @ s)
        _, back = orthogonal(Rule(epsilon), "it", encoder, x, torch.ones(1, 2, dtype=torch.bool))
        torch.testing.assert_close(back(R)[0], torch.tensor(words).double())


def test_omission_reads_each_shortened_text_and_lrp_has_rules() -> None:
    model, texts = network("orthogonal"), batch([5, 3])
    assert not has_structure(model)
    changed = change_each_word(model, texts, "delete").changed
    words = texts.passage
    for t in range(1, 6):
        keep = [p for p in range(7) if p != t]
        alone = texts.rows(torch.tensor([0]))
        ids, present, mask = (part[:, keep] for part in (words.ids[:1], words.present[:1], words.mask[:1]))
        shorter = type(alone)(type(words)(ids, present, mask))
        torch.testing.assert_close(changed[0, t], model(shorter).logits[0].detach())
    scores = lrp(model, texts, torch.tensor([0, 1]))
    assert scores.passage.abs().sum() > 0


@pytest.mark.parametrize("encoder", ["lstm", "orthogonal"])
def test_a_query_is_its_last_state(encoder: str) -> None:
    model, texts = network(encoder, task="nli"), batch([4, 2], "nli")
    assert texts.query is not None
    assert model.query_encoder is not None
    states = model.query_encoder(model.embed(texts.query), texts.query.present)
    query = model(texts).query
    assert query is not None
    for i, n in enumerate(texts.query.present.sum(1).tolist()):
        torch.testing.assert_close(query[i], states[i, n - 1])
