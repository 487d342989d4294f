"""Taggers, question answering, gaps: what heedful says beside what the library says of each text, one at a time."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from captum.attr import InputXGradient, IntegratedGradients
from torch import Tensor

import heedful
from commands import heedful as command
from heedful.errors import Mistake
from heedful.explainers import find
from heedful.explainers.explainer import Scores
from heedful.models.places.model import PlacesModel, Told
from heedful.models.places.spans import NO_ANSWER, Span, places_of
from heedful.models.places.tagging import Tagger, split_tag
from heedful.records import AtPlaces, Example
from transformer_zoo import module, tokenizer, tokenizer_of

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
TEXT, QUESTION, GAPPED = "a good film , it is bad of all", "what is a film?", "a good {} , it is bad"
ENCODERS = ["Bert", "Roberta", "DistilBert", "Electra", "DebertaV2"]
TAGGERS = [*ENCODERS, "GPT2"]


@cache
def made(family: str, task: str) -> Any:
    """A module of that task with weights that were stirred, and its tokenizer."""
    config = module(family).config
    config.num_labels = 2 if task == "QuestionAnswering" else len(TAGS)
    if task == "TokenClassification":
        config.id2label = dict(enumerate(TAGS))
        config.label2id = {tag: i for i, tag in enumerate(TAGS)}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        built = getattr(transformers, f"{family}For{task}")(config)
        with torch.no_grad():
            for parameter in built.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return built.eval()


@cache
def model(family: str, task: str = "TokenClassification") -> PlacesModel:
    found = heedful.wrap(made(family, task), tokenizer_of(family))
    assert isinstance(found, PlacesModel)
    return found


def asked(example: Example) -> AtPlaces:
    assert isinstance(example.asked, AtPlaces)
    return example.asked


def odds(of: PlacesModel, *examples: Example) -> Tensor:
    """(n,) log-odds of `this`, all in one batch."""
    return of.network(of.encode(examples).batch(range(len(examples)))).logits[:, 0].double()


@torch.no_grad()
def own(family: str, task: str, *texts: str) -> Any:
    """What anybody would write: tokenizer and module, one text at a time."""
    given = tokenizer_of(family)(*texts, return_tensors="pt")
    takes = {"input_ids", "attention_mask"} | ({"token_type_ids"} & set(given) if family != "DistilBert" else set())
    return made(family, task)(**{name: given[name] for name in takes})


def first_piece(family: str, text: str, word: str) -> int:
    """The place of a word's first piece in what the tokenizer makes of a text."""
    at, found = text.index(word), tokenizer_of(family)(text, return_offsets_mapping=True)
    spans = [(a, b) for a, b in found["offset_mapping"]]
    return next(i for i, (a, b) in enumerate(spans) if (b > a and a <= at < b) or (a + 1 == at < b))


@pytest.mark.parametrize("family", TAGGERS)
def test_a_tag_is_what_the_library_says_of_the_word(family: str) -> None:
    of = model(family)
    logits = own(family, "TokenClassification", TEXT).logits[0].double()
    at = first_piece(family, TEXT, "bad")
    (one,) = of.questions([TEXT], told=Told(word="bad", target="B-LOC", instead="O"))
    if len(asked(one).places) == 1:  # not part of a longer entity
        assert odds(of, one).item() == pytest.approx(float(logits[at, 3] - logits[at, 0]), abs=1e-5)
    single = dataclasses.replace(one, asked=AtPlaces(asked(one).places[:1], (3,)))
    place = asked(one).places[0][1]
    p = logits[place].softmax(-1)[3]
    assert odds(of, single).item() == pytest.approx(float((p / (1 - p)).log()), abs=1e-5)


@pytest.mark.parametrize("family", TAGGERS)
def test_a_name_of_two_words_is_one_question(family: str) -> None:
    """P = p_1 p_2; a contrast of two names is the difference of the logits at both words."""
    of = model(family)
    logits = own(family, "TokenClassification", TEXT).logits[0].double()
    places = [first_piece(family, TEXT, word) for word in ("good", "film")]
    (start,) = of.questions([TEXT], told=Told(word="bad"))
    both = tuple(("passage", place) for place in places)
    this = dataclasses.replace(start, asked=AtPlaces(both, (1, 2)))  # type: ignore[arg-type]
    that = dataclasses.replace(start, asked=AtPlaces(both, (1, 2), (3, 4)))  # type: ignore[arg-type]
    p = logits.softmax(-1)
    whole = p[places[0], 1] * p[places[1], 2]
    contrast = logits[places[0], 1] - logits[places[0], 3] + logits[places[1], 2] - logits[places[1], 4]
    found = odds(of, this, that)  # in one batch, with and without a contrast
    assert found[0].item() == pytest.approx(float((whole / (1 - whole)).log()), abs=1e-5)
    assert found[1].item() == pytest.approx(float(contrast), abs=1e-5)


@pytest.mark.parametrize("family", TAGGERS)
def test_a_place_moves_when_words_before_it_are_deleted(family: str) -> None:
    """omission is the log-odds of the label in the text without the word, at the place that the asked word has then."""
    of, label = model(family), 1
    one, place = single(of, "bad", label)
    ids = tokenizer_of(family)(TEXT, return_tensors="pt")["input_ids"]

    @torch.no_grad()
    def score(kept: list[int]) -> float:
        given = {"input_ids": ids[:, kept], "attention_mask": torch.ones(1, len(kept), dtype=torch.long)}
        z = made(family, "TokenClassification")(**given).logits[0, kept.index(place)].double()
        return float(z[label] - torch.cat([z[:label], z[label + 1 :]]).logsumexp(0))

    scores, words = run(of, one, "omission"), of.text.encode([one.passage], "passage").word_index
    assert words is not None
    for word in range(len(one.passage)):
        pieces = [i for i in range(len(words)) if words[i] == word]
        if place not in pieces:
            kept = [i for i in range(len(words)) if i not in pieces]
            expected = score([*range(len(words))]) - score(kept)
            assert float(scores[pieces].sum()) == pytest.approx(expected, abs=2e-4)


def single(of: PlacesModel, word: str, label: int, other: int | None = None) -> tuple[Example, int]:
    """A question about one word, and its place."""
    (start,) = of.questions([TEXT], told=Told(word=word))
    names = [start.passage.surface(i) for i in range(len(start.passage))]
    places = of.text.encode([start.passage], "passage").word_index
    assert places is not None
    place = int(np.flatnonzero(places == names.index(word))[0])
    made_of = AtPlaces((("passage", place),), (label,), None if other is None else (other,))
    return dataclasses.replace(start, asked=made_of), place


def run(of: PlacesModel, example: Example, method: str, **options: Any) -> Tensor:
    """The scores of the tokens of one text: (length,)."""
    batch = of.encode([example]).batch([0])
    found: Scores = find(method).run(of.network, batch, torch.ones(1, dtype=torch.long), **options)
    return found.passage[0].double()


def test_the_asked_word_itself_is_hidden_not_deleted() -> None:
    of, label = model("Bert"), 1
    one, place = single(of, "bad", label)
    ids = tokenizer_of("Bert")(TEXT, return_tensors="pt")["input_ids"].clone()
    whole = odds(of, one).item()
    ids[0, place] = tokenizer_of("Bert").mask_token_id
    with torch.no_grad():
        z = made("Bert", "TokenClassification")(input_ids=ids).logits[0, place].double()
    hidden = float(z[label] - torch.cat([z[:label], z[label + 1 :]]).logsumexp(0))
    assert float(run(of, one, "omission")[place]) == pytest.approx(whole - hidden, abs=1e-4)


@pytest.mark.parametrize("family", ENCODERS)
def test_gradients_are_captums(family: str) -> None:
    of, built = model(family), made(family, "TokenClassification")
    one, place = single(of, "bad", 3, 0)
    ids = tokenizer_of(family)(TEXT, return_tensors="pt")["input_ids"]
    x = built.get_input_embeddings()(ids).detach()

    def contrast(inputs: Tensor) -> Tensor:
        logits: Tensor = built(inputs_embeds=inputs).logits[:, place]
        return logits[:, 3] - logits[:, 0]

    word = of.encode([one]).batch([0]).passage.mask[0]
    product = InputXGradient(contrast).attribute(x).sum(-1)[0].double()
    torch.testing.assert_close(run(of, one, "gradient_x_input")[word], product[word], atol=1e-5, rtol=1e-4)
    base = torch.where(word.view(1, -1, 1), 0.0, x)
    path = IntegratedGradients(contrast).attribute(x, base, n_steps=20, method="gausslegendre").sum(-1)[0].double()
    ours = run(of, one, "integrated_gradients", n_steps=20)
    torch.testing.assert_close(ours[word], path[word], atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("task", ["TokenClassification", "QuestionAnswering", "MaskedLM"])
def test_axioms_hold_and_a_batch_changes_nothing(family: str, task: str) -> None:
    of = model(family, task)
    text = TEXT if task != "MaskedLM" else GAPPED.format(tokenizer_of(family).mask_token)
    texts, methods = [text, text.replace(" , it is bad", "")], ["attention", "lrp", "integrated_gradients", "rollout"]
    queries = [QUESTION, "bad"] if task == "QuestionAnswering" else [None, None]

    def explained(some: list[int]) -> Any:
        given = None if queries[0] is None else [str(queries[i]) for i in some]
        return heedful.explain(of, list(of.examples([texts[i] for i in some], given)), methods)

    together = explained([0, 1])
    alone = [explained([i]) for i in (0, 1)]
    found = together.to_pandas()["score"].to_numpy()
    np.testing.assert_allclose(
        found, np.concatenate([one.to_pandas()["score"] for one in alone]), atol=1e-4 * np.abs(found).max()
    )
    checks = [one.check for example in together for one in example.attributions if one.check is not None]
    assert len(checks) == 4
    assert all(check.ok for check in checks)


@pytest.mark.parametrize("family", ENCODERS)
def test_an_answer_is_what_the_library_marks(family: str) -> None:
    """P = P(begin) P(end), each over the words of the passage and the place of no answer."""
    of = model(family, "QuestionAnswering")
    output = own(family, "QuestionAnswering", QUESTION, TEXT)
    found = tokenizer_of(family)(QUESTION, TEXT, return_offsets_mapping=True)
    passage = [i for i, part in enumerate(found.sequence_ids(0)) if part == 1]
    begin, end = output.start_logits[0].double(), output.end_logits[0].double()
    spans = found["offset_mapping"]

    def piece(word: str, last: bool = False) -> int:
        at = TEXT.index(word) + (len(word) - 1 if last else 0)
        return next(i for i in passage if spans[i][0] <= at < spans[i][1])

    (one,) = of.questions([TEXT], [QUESTION], Told(say="good film", instead="bad"))
    first, second = (piece("good"), piece("film", True)), (piece("bad"), piece("bad", True))
    contrast = begin[first[0]] + end[first[1]] - begin[second[0]] - end[second[1]]
    assert odds(of, one).item() == pytest.approx(float(contrast), abs=1e-4)
    assert asked(one).names == ("bad", "good film")
    (one,) = of.questions([TEXT], [QUESTION], Told(say="good film"))
    among = torch.tensor([0, *passage])
    p = begin[among].softmax(0)[1 + passage.index(first[0])] * end[among].softmax(0)[1 + passage.index(first[1])]
    assert odds(of, one).item() == pytest.approx(float((p / (1 - p)).log()), abs=1e-4)
    (one,) = of.questions([TEXT], [QUESTION], Told(say=NO_ANSWER, instead="bad"))
    contrast = begin[0] + end[0] - begin[second[0]] - end[second[1]]
    assert odds(of, one).item() == pytest.approx(float(contrast), abs=1e-4)


@pytest.mark.parametrize("family", ENCODERS)
def test_attention_of_an_answer_is_in_the_order_of_the_parts(family: str) -> None:
    """Seen from where the answer begins and ends, over the passage and then the question."""
    of = model(family, "QuestionAnswering")
    (one,) = of.questions([TEXT], [QUESTION], Told(say="good film"))
    batch = of.encode([one]).batch([0])
    n, q = int(batch.passage.present.sum()), int(batch.query.present.sum()) if batch.query is not None else 0
    given = tokenizer_of(family)(QUESTION, TEXT, return_tensors="pt")
    takes = {name: value for name, value in given.items() if family != "DistilBert" or name != "token_type_ids"}
    built = made(family, "QuestionAnswering")
    before = built.config._attn_implementation
    built.set_attn_implementation("eager")
    with torch.no_grad():
        weights = built(**takes, output_attentions=True).attentions[-1][0].mean(0)  # (to, from), question first
    built.set_attn_implementation(before)
    places = [place for _, place in asked(one).places]
    row = torch.stack([weights[q + place] for place in sorted(set(places))]).mean(0)
    scores = find("attention").run(of.network, batch, torch.ones(1, dtype=torch.long))
    torch.testing.assert_close(
        scores.passage[0], row[q : q + n] * batch.passage.mask[0], atol=1e-5, rtol=1e-4, check_dtype=False
    )
    assert scores.query is not None
    assert batch.query is not None
    torch.testing.assert_close(scores.query[0], row[:q] * batch.query.mask[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", ["Bert", "Roberta"])
def test_a_word_in_a_gap(family: str) -> None:
    of, gap = model(family, "MaskedLM"), tokenizer_of(family).mask_token
    text = GAPPED.format(gap)
    (one,) = of.questions([text], told=Told(say="good", instead="all"))
    logits = own(family, "MaskedLM", text).logits[0].double()
    ids = tokenizer_of(family)(text)["input_ids"]
    at = ids.index(tokenizer_of(family).mask_token_id)
    this, that = asked(one).this[0], (asked(one).that or (0,))[0]
    names = tokenizer_of(family).convert_ids_to_tokens([this, that])
    assert [name.lstrip("Ġ") for name in names] == ["good", "all"]
    assert odds(of, one).item() == pytest.approx(float(logits[at, this] - logits[at, that]), abs=1e-4)
    assert gap not in {one.passage.surface(i) for i in range(len(one.passage))}


def test_entities_are_grouped_as_labels_say() -> None:
    of = model("Bert")
    assert isinstance(of, Tagger)
    rows = torch.eye(5)[[1, 2, 0, 3, 3, 4, 2]] * 9  # B-PER I-PER O B-LOC | B-LOC I-LOC | I-PER
    found = of.entities(rows, [*range(7)])
    assert [(one.kind, one.words) for one in found] == [("PER", (0, 1)), ("LOC", (3,)), ("LOC", (4, 5)), ("PER", (6,))]
    assert split_tag("I-PER") == (False, "PER")
    assert split_tag("NOUN") == (False, "NOUN")
    assert split_tag("X-NOUN") == (False, "X-NOUN")


def test_an_answer_that_stands_twice_is_the_one_that_the_model_prefers() -> None:
    (start,) = model("Bert", "QuestionAnswering").questions(["the film, the film"], [QUESTION], Told(say="film"))
    assert places_of(start, "film") == [Span(1, 1), Span(4, 4)]
    assert places_of(start, "fil") == []


def test_a_folder_is_found_out_and_audited(tmp_path: Path) -> None:
    for task, texts, more in (
        ("TokenClassification", [TEXT, "the waste of time"], []),
        ("QuestionAnswering", [TEXT], ["--query", QUESTION]),
        ("MaskedLM", [GAPPED.format("[MASK]")], []),
    ):
        folder = tmp_path / task
        made("Bert", task).save_pretrained(folder)
        tokenizer("wordpiece").save_pretrained(folder)
        done = command("explain", folder, *texts, *more, "-m", "lrp", "-m", "attention", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "conservation gap" in done.stdout
    found = heedful.audit(model("Bert"), [TEXT, "the waste of time", "a good film", "what is good"], budget="10s")
    assert found.recommendation is not None


WRONG = [
    ("TokenClassification", TEXT, None, {"word": "nothing"}, "is not a word of the text"),
    ("TokenClassification", "bad bad", None, {"word": "bad"}, "by its number, word=1 or 2"),
    ("TokenClassification", TEXT, None, {"word": "bad", "target": "DATE"}, "B-PER"),
    ("TokenClassification", TEXT, None, {"word": "bad", "target": "PER", "instead": "PER"}, "give two that differ"),
    ("TokenClassification", TEXT, None, {"say": "PER"}, "leave out say"),
    ("MaskedLM", TEXT, None, {}, "write [MASK] where a word is to be found"),
    ("MaskedLM", "a <mask> film", None, {}, "does not know '<mask>'"),
    ("MaskedLM", GAPPED.format("[MASK]"), None, {"say": "unbelievable"}, "a gap holds one piece"),
    ("MaskedLM", GAPPED.format("[MASK]"), None, {"say": "film", "instead": "film"}, "not the same word"),
    ("MaskedLM", GAPPED.format("[MASK]"), None, {"target": "film"}, "leave out target"),
    ("QuestionAnswering", TEXT, None, {}, "reads pairs"),
    ("QuestionAnswering", TEXT, QUESTION, {"say": "good f"}, "does not stand in the passage as whole words"),
    ("QuestionAnswering", TEXT, QUESTION, {"word": "bad"}, "leave out word"),
]


@pytest.mark.parametrize(("task", "text", "query", "told", "said"), WRONG)
def test_what_makes_no_sense_is_said_in_one_sentence(
    task: str, text: str, query: str | None, told: dict[str, Any], said: str
) -> None:
    with pytest.raises(Mistake) as mistake:
        heedful.explain(model("Bert", task), [text], ["lrp"], queries=query and [query], **told)
    assert said in str(mistake.value)
    assert "\n" not in str(mistake.value)
