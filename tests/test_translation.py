"""Translators of our own: the equations by loops, search against every text that can be said, and one way to say it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import heedful
from heedful.api.translation import configure_translation, read_splits, train_translator
from heedful.data.translation.planted import GENERATED, generated_pairs
from heedful.errors import Mistake
from heedful.experiments.edited_attention.observe import observer
from heedful.explainers import EXPLAINERS
from heedful.models.translation.attention import (
    AdditiveSteps,
    ConcatSteps,
    DotSteps,
    GeneralSteps,
    LocalSteps,
    StepAttention,
)
from heedful.models.translation.config import TranslatorConfig
from heedful.models.translation.model import TranslationModel, as_model, build_translator
from heedful.models.translation.network import Translator
from heedful.models.translation.scores import translation_scores
from heedful.models.translation.search import translate
from heedful.models.translation.text import TranslationText, learn_text
from heedful.models.translation.training import TrainingPairs, perplexity
from heedful.records import Batch
from heedful.registry import STEP_ATTENTIONS

SOURCES = ("der kleine hund schläft", "die katze", "ein hund sieht die kleine katze dort")
TARGETS = ("the little dog sleeps", "the cat", "a dog sees the little cat there")
HIDDEN = 8


@pytest.fixture(scope="module")
def text() -> TranslationText:
    return learn_text([*SOURCES, *TARGETS], None, 1)


def made(text: TranslationText, seed: int = 0, **settings: object) -> TranslationModel:
    sizes = {"embedding_dim": 6, "hidden_dim": HIDDEN, "dropout": 0.0}
    network = build_translator(TranslatorConfig(**(sizes | settings)), text, seed).double().eval()  # type: ignore[arg-type]
    return as_model("small", network, text)


def questions(model: TranslationModel) -> Batch:
    """Every token of every target, each after those before it."""
    examples = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        prompt = model.prompt(source)
        examples += model.steps(prompt, model.tokens_of(prompt, target))
    return model.encode(examples).batch(range(len(examples)))


# Attention: each equation by loops.


def weights_of(e: Tensor) -> Tensor:
    return (e - e.max()).exp() / (e - e.max()).exp().sum()


@torch.no_grad()
def score(attention: StepAttention, s: Tensor, h: Tensor) -> Tensor:
    """e of one state of the decoder and one of the source, number by number."""
    if isinstance(attention, AdditiveSteps):
        units = len(attention.v.weight[0])
        inner = [
            math.tanh(
                sum(float(attention.W1.weight[u, k] * h[k]) for k in range(HIDDEN))
                + float(attention.W1.bias[u])
                + sum(float(attention.W2.weight[u, k] * s[k]) for k in range(HIDDEN))
            )
            for u in range(units)
        ]
        return torch.tensor(sum(float(attention.v.weight[0, u]) * inner[u] for u in range(units)), dtype=h.dtype)
    if isinstance(attention, ConcatSteps):
        both = [*s.tolist(), *h.tolist()]
        inner = [
            math.tanh(sum(float(attention.W.weight[u, k]) * both[k] for k in range(2 * HIDDEN))) for u in range(HIDDEN)
        ]
        return torch.tensor(sum(float(attention.v.weight[0, u]) * inner[u] for u in range(HIDDEN)), dtype=h.dtype)
    if isinstance(attention, GeneralSteps):
        seen = sum(float(h[i] * attention.W.weight[i, k] * s[k]) for i in range(HIDDEN) for k in range(HIDDEN))
        return torch.tensor(seen, dtype=h.dtype)
    return torch.tensor(sum(float(h[k] * s[k]) for k in range(HIDDEN)), dtype=h.dtype)


@pytest.mark.parametrize("kind", [AdditiveSteps, DotSteps, GeneralSteps, ConcatSteps, LocalSteps])
def test_attention_is_its_equation(kind: type[StepAttention]) -> None:
    """Bahdanau et al. 2015, appendix A.1.2; Luong et al. 2015, equations 8 to 10."""
    torch.manual_seed(1)
    attention = kind(HIDDEN).double()
    s, h = torch.randn(2, 3, HIDDEN).double(), torch.randn(2, 4, HIDDEN).double()
    mask = torch.tensor([[True, True, True, True], [True, True, True, False]])
    found = attention(s, h, mask)
    for row, n in ((0, 4), (1, 3)):
        for m in range(3):
            alpha = weights_of(torch.stack([score(attention, s[row, m], h[row, t]) for t in range(n)]))
            if isinstance(attention, LocalSteps):
                inner = (attention.Wp.weight @ s[row, m]).tanh()
                p = n * (attention.vp.weight[0] @ inner).sigmoid().item()
                alpha = alpha * torch.tensor([math.exp(-((t - p) ** 2) / (2 * 2.5**2)) for t in range(n)])
                alpha = alpha / alpha.sum()
            torch.testing.assert_close(found[row, m, :n], alpha)
            assert float(found[row, m, n:].detach().sum()) == 0


@pytest.mark.parametrize("name", list(STEP_ATTENTIONS.places))
def test_weights_are_weights(name: str) -> None:
    """Sum 1 over words, 0 elsewhere; of a source without words all 0, and no step is asked for twice."""
    torch.manual_seed(0)
    attention = STEP_ATTENTIONS[name](HIDDEN).double()
    s, h = torch.randn(3, 2, HIDDEN).double(), torch.randn(3, 5, HIDDEN).double()
    mask = torch.tensor([[True] * 5, [False, True, True, False, False], [False] * 5])
    alpha = attention(s, h, mask)
    assert bool((alpha >= 0).all())
    torch.testing.assert_close(alpha.sum(-1), torch.tensor([[1.0] * 2, [1.0] * 2, [0.0] * 2]).double())
    assert float(alpha.masked_fill(mask.unsqueeze(1), 0.0).abs().max()) == 0
    torch.testing.assert_close(attention(s[:, 1:], h, mask, 1), alpha[:, 1:])


# The network: its steps, all at once and one by one.


@pytest.mark.parametrize("attention", ["additive", "local_p", "random", "general_entmax"])
@pytest.mark.parametrize("decoder", ["lstm", "gru"])
@pytest.mark.parametrize("feeding", [False, True])
def test_teacher_forcing_is_one_step_after_the_other(
    text: TranslationText, attention: str, decoder: str, feeding: bool
) -> None:
    network = made(text, attention=attention, decoder=decoder, input_feeding=feeding).network
    torch.manual_seed(0)
    sources = text.encode([text.split(one) for one in SOURCES], "passage").tokens(np.arange(3))
    source, said = network.read(sources), torch.randn(3, 4, 6).double()
    o, alpha = network.steps(source, said)
    state, fed = source.state, torch.zeros(3, 1, HIDDEN).double()
    for m in range(4):
        s, state = network.advance(state, said[:, m : m + 1], fed if feeding else None)
        weights = network.attend(s, source.h, source.mask, m)
        fed = network.step(s, source.h, weights)
        torch.testing.assert_close(weights[:, 0], alpha[:, m])
        torch.testing.assert_close(fed[:, 0], o[:, m])
        context = (weights[:, 0].unsqueeze(-1) * source.h).sum(1)  # sum_t alpha_t h_t
        torch.testing.assert_close(fed[:, 0], (torch.cat([context, s[:, 0]], 1) @ network.mix.weight.T).tanh())


@pytest.mark.parametrize("encoder", ["bilstm", "bigru", "cnn", "transformer"])
@pytest.mark.parametrize("feeding", [False, True])
def test_questions_together_and_apart(text: TranslationText, encoder: str, feeding: bool) -> None:
    """Rows that begin alike share a pass; a row says the same alone, and with given embeddings."""
    model = made(text, encoder=encoder, input_feeding=feeding)
    network, batch = model.network, questions(model)
    together, weights = network(batch).logits, network.attentions(batch)
    assert batch.query is not None
    given = network(batch, x=network.embed(batch.passage), x_query=network.embed(batch.query)).logits
    torch.testing.assert_close(given, together)
    torch.testing.assert_close(network(batch, edit=lambda layer, alpha: alpha).logits, together)
    logits = network.next(batch)
    assert batch.asked is not None
    p = logits.softmax(-1).gather(1, batch.asked.this).squeeze(1)
    torch.testing.assert_close(together.squeeze(1), (p / (1 - p)).log())
    for row in range(len(batch)):
        one = batch.rows(torch.tensor([row]))
        torch.testing.assert_close(network(one).logits[0], together[row])
        n = one.passage.ids.shape[1]
        torch.testing.assert_close(network.attentions(one)[0, 0, 0, 0], weights[row, 0, 0, 0, :n])


def test_weights_are_an_argument(text: TranslationText) -> None:
    """Under other weights the answer is that of o = tanh(W [c; s]) with their c."""
    model = made(text)
    network, batch = model.network, questions(model)
    seen = observer(network)(np.arange(len(batch)), batch)
    uniform = seen.real.double() / seen.real.sum(1, keepdim=True)
    found = seen.decode(uniform.unsqueeze(1))[:, 0, 1]
    source = network.read(batch.passage)
    assert batch.query is not None
    s, _ = network.advance(source.state, network.embed(batch.query))
    last = batch.query.present.sum(1) - 1
    s = s[torch.arange(len(s)), last]
    mean = (source.h * source.mask.unsqueeze(-1)).sum(1) / source.mask.sum(1, keepdim=True)
    logits = network.out((torch.cat([mean, s], 1) @ network.mix.weight.T).tanh())
    assert batch.asked is not None
    torch.testing.assert_close(found, logits.softmax(-1).gather(1, batch.asked.this).squeeze(1))


# What is said.


def every_text(network: Translator, model: TranslationModel, source: str, most: int) -> dict[tuple[int, ...], float]:
    """log p of every text of at most `most` tokens, each read by itself."""
    prompt, found = model.prompt(source), {}
    others = [i for i in range(network.n_words) if i != network.end]
    for n in range(most + 1):
        for said in itertools.product(others, repeat=n):
            ids = torch.tensor([[model.text.begins[0], *said]])
            passage = model.text.encode([prompt], "passage").tokens(np.arange(1))
            o, _ = network.steps(network.read(passage), network.embedding(ids))
            log_p = network.logits(o)[0].log_softmax(-1)
            found[said] = float(sum(log_p[i, t] for i, t in enumerate([*said, network.end])))
    return found


@pytest.mark.parametrize("feeding", [False, True])
@pytest.mark.parametrize("length", [0.0, 1.0])
def test_a_wide_beam_finds_the_best_text(feeding: bool, length: float) -> None:
    """Against every text that can be said, with a vocabulary of 6."""
    small = learn_text(["a b"], None, 1)
    for seed in range(3):
        model = made(small, seed, input_feeding=feeding)
        network = model.network
        every = every_text(network, model, "a b", 3)
        best = max(every, key=lambda said: every[said] / (len(said) + 1) ** length)
        passage = small.encode([small.split("a b")], "passage").tokens(np.arange(1))
        (found,) = translate(network, passage, small.begins[0], beam=300, most=3, length=length)
        assert found.ids == best
        assert found.score == pytest.approx(every[best], abs=1e-9)
        (greedy,) = translate(network, passage, small.begins[0], beam=1, most=3)
        if greedy.ended:
            assert greedy.score == pytest.approx(every[greedy.ids], abs=1e-9)
            assert every[greedy.ids] <= max(every.values()) + 1e-12


def test_a_text_that_does_not_end_is_cut(text: TranslationText) -> None:
    model = made(text)
    with torch.no_grad():
        model.network.out.bias[model.network.end] = -100.0
    (said,) = model.search(["die katze"], beam=1, most=5)
    assert len(said.ids) == 5
    assert not said.ended


def test_perplexity_is_that_of_the_answers(text: TranslationText) -> None:
    """exp of minus the mean log p, the end of each text included."""
    model = made(text)
    pairs = TrainingPairs.encode(SOURCES, TARGETS, text)
    log_p, tokens = 0.0, 0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        prompt = model.prompt(source)
        said = (*model.tokens_of(prompt, target), model.network.end)
        for i, token in enumerate(said):
            log_p += float(model.next_logits(prompt, said[:i]).log_softmax(-1)[token])
            tokens += 1
    assert perplexity(model.network, pairs) == pytest.approx(math.exp(-log_p / tokens), rel=1e-5)


def test_scores_of_translations() -> None:
    """Of the reference's words those that stand in their place; BLEU 100 only for the same text."""
    same = translation_scores(["a b c d"], ["a b c d"])
    assert same == pytest.approx({"bleu": 100.0, "chrf": 100.0, "exact": 1.0, "accuracy": 1.0})
    other = translation_scores(["a x c", "e"], ["a b c d", "e"])
    assert other["accuracy"] == pytest.approx(3 / 5)
    assert other["exact"] == 0.5


# Explainers at a step.


@pytest.mark.parametrize("decoder", ["lstm", "gru"])
@pytest.mark.parametrize("encoder", ["bilstm", "bigru", "transformer"])
def test_relevance_adds_up_to_the_logit(text: TranslationText, encoder: str, decoder: str) -> None:
    """Through encoder, attention, decoder and the sum over the vocabulary."""
    model = made(text, encoder=encoder, decoder=decoder)
    batch = questions(model)
    target = torch.ones(len(batch), dtype=torch.long)
    found = EXPLAINERS["lrp"].run(model.network, batch, target)
    z = model.network(batch).score(target)
    assert found.query is not None
    assert found.special is not None
    assert found.rest is not None
    total = found.passage.sum(1) + found.query.sum(1) + found.special + sum(found.rest.values())
    torch.testing.assert_close(total, z, rtol=1e-9, atol=1e-9)


def test_explainers_take_a_translator(text: TranslationText) -> None:
    model = made(text)
    every = ["attention", "gradient", "gradient_x_input", "integrated_gradients", "lrp", "occlusion", "omission"]
    found = heedful.explain(model, list(SOURCES), every, say=list(TARGETS), n_steps=8)
    assert len(found) == sum(len(target.split()) for target in TARGETS)
    assert {one.method for one in found[0].attributions} == set(every)


# Languages whose alignment is known.


@pytest.mark.parametrize("name", list(GENERATED))
def test_generated_pairs_are_what_their_rules_say(name: str) -> None:
    pairs = [*itertools.islice(generated_pairs(name, 0), 400)]
    assert pairs == [*itertools.islice(generated_pairs(name, 0), 400)]
    if name.startswith("planted"):
        assert len({pair.source for pair in pairs}) == 400
    words: dict[str, set[tuple[str, ...]]] = {}
    for pair in pairs:
        source, said = pair.source.split(), pair.target.split()
        assert pair.sure is not None
        for i, j in pair.sure:
            assert 0 <= i < len(source)
            assert 0 <= j < len(said)
        if not name.startswith("planted"):
            assert [source[i] for i, _ in sorted(pair.sure, key=lambda link: link[1])] == said
            continue
        linked = {i for i, _ in pair.sure}
        assert {source[i] for i in range(len(source)) if i not in linked} == {"ba", "lu"} & set(source)
        assert {said[j] for j in range(len(said)) if j not in {j for _, j in pair.sure}} <= {"ok"}
        for i in linked:
            of = tuple(said[j] for a, j in sorted(pair.sure) if a == i)
            words.setdefault(source[i], set()).add(of)
    # a lexicon: a word of the source is always the same in the target, but for particles, which belong to verbs
    assert sum(len(of) > 1 for of in words.values()) <= 3


def test_a_clause_by_hand() -> None:
    """lu gige gufa roduno ba luve lipe: article noun ... in the order adverb, subject, object, verb."""
    pair = next(p for p in generated_pairs("planted-translation", 0) if p.source == "lu gige gufa roduno ba luve lipe")
    assert pair.target == "puvetum pagakax kamak ok gaser ok pakufen"
    assert pair.sure == ((1, 2), (2, 1), (3, 6), (5, 4), (6, 0))


# A folder of one's own.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sequences said again are learnt in seconds."""
    where = tmp_path_factory.mktemp("translators")
    rng = np.random.default_rng(0)
    rows = [" ".join(f"w{i}" for i in rng.integers(6, size=rng.integers(1, 4))) for _ in range(600)]
    table = where / "copies.csv"
    table.write_text("source,target\n" + "".join(f"{row},{row.upper()}\n" for row in rows), encoding="utf-8")
    settings = {"embedding_dim": 24, "hidden_dim": 24, "epochs": 12, "learning_rate": 0.02, "dropout": 0.0}
    return train_translator(configure_translation(str(table), settings=settings), runs=where / "runs")


def test_it_learns_and_is_found_again(folder: Path) -> None:
    model = heedful.load(folder)
    assert isinstance(model, TranslationModel)
    assert model.translate(["w1 w2", "w3"]) == ["W1 W2", "W3"]
    assert model.translate(["w1 w2", "w3"], beam=4) == ["W1 W2", "W3"]
    found = heedful.explain(folder, ["w4 w5"], ["omission"], say="W4 W5")
    best = [int(np.argmax(one.attribution("omission").scores["passage"])) for one in found]
    assert best == [0, 1]


def test_a_folder_that_was_changed_is_refused(folder: Path, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "changed"
    shutil.copytree(folder, other)
    (other / "tokenizer.json").write_text("{}")
    with pytest.raises(Mistake, match="checksum"):
        heedful.load(other)
    with pytest.raises(Mistake, match="takes no option 'labels'"):
        heedful.load(folder, labels=["a", "b"])


def test_rows_that_no_translator_could_read(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("source,target,links\na b,c,0-0\na,,0-0\n", encoding="utf-8")
    with pytest.raises(Mistake, match="line 3: the target is empty"):
        read_splits(configure_translation(str(table)))
    table.write_text("source,target,links\na b,c,0-1\n", encoding="utf-8")
    with pytest.raises(Mistake, match="the link 0-1 is outside a pair of 2 and 1 words"):
        read_splits(configure_translation(str(table)))
    table.write_text("text,label\na b,c\n", encoding="utf-8")
    with pytest.raises(Mistake, match="translation needs the columns 'source' and 'target'"):
        read_splits(configure_translation(str(table)))
    with pytest.raises(Mistake, match="attention of a decoder"):
        configure_translation("planted-translation", settings={"attention": "soft"})
    with pytest.raises(Mistake, match="setting of a translator"):
        configure_translation("planted-translation", settings={"depth": 2})
    with pytest.raises(Mistake, match="planted-translation"):
        read_splits(configure_translation("no-such-corpus"))


def test_words_of_data_are_decisions(folder: Path) -> None:
    """Each word that is said is a question, with the links as evidence; unknown words everywhere are read, too."""
    from heedful.engine.sources.subject import Subject

    texts = Subject.resolve(folder, "planted-translation").read(5)
    examples = [*texts.examples.values()]
    assert all(example.asked is not None and example.evidence is not None for example in examples)
    batch = heedful.load(folder).encode(examples).batch(range(5))
    assert {"evidence", "possible", "diagonal"} <= set(batch.targets)
    assert bool((batch.targets["diagonal"].sum(1) == 1).all())
    output = heedful.load(folder).network(replace(batch, labels=None))
    assert bool(torch.isfinite(output.logits).all())


def test_a_word_that_is_not_known_is_a_word(folder: Path) -> None:
    """It keeps its place, with scores of its own; so do texts of one word and of 200."""
    model = heedful.load(folder)
    assert isinstance(model, TranslationModel)
    for source in ("strange", "w1 strange", " ".join(["w1"] * 200)):
        found = heedful.explain(model, [source], ["attention", "occlusion"], say="W1")[0]
        assert len(found.attribution("attention").scores["passage"]) == len(source.split())
    with pytest.raises(Mistake, match="the continuation is empty"):
        heedful.explain(model, ["w1"], ["attention"], say=" ")
    with pytest.raises(Mistake, match="text 1 has no words"):
        model.translate(["  "])
