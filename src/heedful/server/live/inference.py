"""Models that answer while someone waits. Nothing here is loaded before the first question to a model."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpora.locate import nothing_fetched
from heedful.errors import Mistake, one_of
from heedful.explainers.explainer import OF_FEW_MODELS
from heedful.explainers.methods import loadable, usual
from heedful.records import Example, Words
from heedful.registry import EXPLAINERS
from heedful.report.cards import STEPS, takes_steps
from heedful.server.guard import MOST_WORDS, checked_text
from heedful.server.question import Lane, TooLong, check, not_counted
from heedful.server.stored.library import RunEntry, Stamp, refuse_link_out, stamp_of
from heedful.server.stored.recent import Recent

if TYPE_CHECKING:
    from heedful.experiments.edited_attention.observe import Observed
    from heedful.explainers.explainer import Explainer
    from heedful.explanation.explanation import Explanation
    from heedful.explanation.record import Explained

T = TypeVar("T")
Floats = NDArray[np.float64]
KEPT_MODELS = 3
KEPT_ANSWERS = 128  # what a model saw of recent texts, and said of them: a drag then costs one product, not a pass
THREADS = 1  # of torch: one text has too little work to share, and waiting threads take each other's time
PARTS = 16  # of the texts whose words are left out: what is done of them is kept when time runs out
ENOUGH = STEPS | {"max_steps": 200}  # while someone waits


class LoadedModel:
    """A loaded model."""

    def __init__(self, entry: RunEntry) -> None:
        from heedful.engine.sources.subject import Subject
        from heedful.experiments.edited_attention.observe import observer
        from heedful.store.run import Run

        _ready_for_questions()
        with nothing_fetched():  # a run folder can name any model of the hub
            self.model = Subject.resolve(Run(entry.path)).load()
        editable = "edits_attention" in self.model.network.can
        self._observe = observer(self.model.network) if editable else None  # None: its attention is its own
        self._answers = Recent(KEPT_ANSWERS)

    def remember(self, key: Hashable, answer: Callable[[], T]) -> T:
        """What was answered before, or the answer, kept for the next who asks."""
        return self._answers.get(key, answer)

    def example(self, text: object, query: object = None) -> Example:
        """A text as it was typed."""
        passage = self._words(text, "text")
        if not self.model.network.has_query:
            return Example(id="text 1", passage=passage)
        return Example(id="text 1", passage=passage, query=self._words(query, "query"))

    def edited(self, example: Example, position: object, word: object) -> Example:
        """With another word at a position, or without it (None)."""
        words = example.passage
        if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < len(words):
            raise Mistake(f"there is no word at position {str(position)[:40]}: this text has {len(words)}.")
        start, end = words.offsets[position]
        new = "" if word is None else checked_text(word, "word")
        before, after = words.text[:start], words.text[end:]
        if not new:
            before, after = before.rstrip(" "), after if before.rstrip(" ") else after.lstrip(" ")
        return replace(example, passage=self._words(before + new + after, "text"), candidates=example.candidates)

    def _words(self, text: object, name: str) -> Words:
        words = self.model.text.split(checked_text("" if text is None else text, name))
        if not len(words):
            asked = {"qa": "a question", "nli": "a hypothesis"}.get(self.model.task, "a query")
            raise Mistake("there is no word in this text." if name == "text" else f"this model also needs {asked}.")
        return words

    def methods(self, names: Sequence[str], example: Example) -> tuple[str, ...]:
        """Explainers by name, each once; none means the usual ones that model and text allow."""
        if names:
            return methods_named(names)
        able = self.model.network.can - (set() if self.reads_whole(example) else {"attends"})
        return tuple(name for name in usual() if EXPLAINERS[name].needs <= able)

    def reads_whole(self, example: Example) -> bool:
        """Whether the model reads the text at once: of one that is read in windows there is no one attention."""
        from heedful.models.sequence import sequences

        _bounded(example)
        network: Any = self.model.network
        batch = self.model.encode([example]).batch([0])
        return sequences(batch, getattr(network, "limit", None), getattr(network, "frame", None)).row is None

    def seen(self, example: Example) -> Observed:
        """What the model did with a text, kept for asking it again under other weights."""
        _bounded(example)
        observe = self._observe
        if observe is None:
            raise Mistake(f"{self.model.name} cannot be asked under other attention weights.")
        nothing = np.zeros(1, dtype=np.int64)
        return self.remember(("seen", example), lambda: observe(nothing, self.model.encode([example]).batch([0])))

    def arithmetic(self, example: Example) -> dict[str, Any] | None:
        """What a page needs to decode this text itself (report/attention.js); None where that would be much: then each
        question comes here."""
        from heedful.experiments.edited_attention.pooled import PooledStates

        seen = self.seen(example)
        if not isinstance(seen, PooledStates) or seen.level != "word" or seen.decoder.W2 is not None:
            return None
        return seen.arithmetic(digits=12)

    def predict(self, example: Example) -> Floats:
        """Probabilities of the labels."""
        from heedful.models.training import predict

        _bounded(example)
        return self.remember(
            ("predicted", example), lambda: predict(self.model.network, self.model.encode([example]))[0]
        )

    def known(self, example: Example) -> list[bool]:
        """Which words the model knows."""
        return self.model.text.knows(example.passage)

    def explain(
        self, example: Example, methods: Sequence[str], target: str | None = None
    ) -> tuple[Explained, list[str]]:
        """(by all methods that came to an end in time, those that did not)."""
        _bounded(example)
        done: list[Explained] = []
        for i, method in enumerate(methods):
            try:
                done.append(self._explain(example, method, target))
            except TooLong:
                if not done:
                    raise
                return _together(done), list(methods[i:])
        return _together(done), []

    def _explain(self, example: Example, method: str, target: str | None) -> Explained:
        from heedful.explainers.run import explain

        def answer() -> Explained:
            check()
            steps = ENOUGH if takes_steps(EXPLAINERS[method]) else {}
            return explain(self.model, [example], [(method, steps)], target).by_word()[0]

        return self.remember(("explained", example, method, target), answer)

    def leave_words_out(self, examples: Mapping[int, Example]) -> tuple[Explanation, list[int]]:
        """Attention and leave-one-out of texts whose words are to be counted, and their places: of as many as fit into
        the time, spread over all; who asks again goes on from there."""
        from heedful.explanation.explanation import Explanation
        from heedful.report.sample import leave_words_out

        done: dict[int, Explained] = {}
        places = list(examples)
        for first in range(min(PARTS, len(places))):
            some = places[first::PARTS]
            key = ("sample", tuple(examples[place].id for place in some))
            try:
                texts = [examples[place] for place in some]
                answered = self.remember(key, lambda texts=texts: leave_words_out(self.model, texts))  # type: ignore[misc]
            except TooLong:
                if not done:
                    raise
                break
            done |= dict(zip(some, answered, strict=False))  # nothing of a model that does not attend
        return Explanation(done[place] for place in sorted(done)), sorted(done)

    def word_of(self, example: Example) -> NDArray[np.int64]:
        """The word that each of the positions of `seen` belongs to: (positions,)."""
        tokens = self.model.encode([example]).batch([0]).passage
        if tokens.word_index is None:
            return np.arange(len(example.passage))
        found: NDArray[np.int64] = tokens.word_index[0][tokens.mask[0]].cpu().numpy()
        return found

    def attention(self, example: Example) -> list[float]:
        """The weight of each word, of all its pieces together; empty where it cannot be changed."""
        if self._observe is None or not self.reads_whole(example):
            return []
        weights = np.zeros(len(example.passage))
        np.add.at(weights, self.word_of(example), self.seen(example).alpha[0].numpy())
        return [float(weight) for weight in weights]

    def decode(self, example: Example, weights: object) -> dict[str, Any]:
        """The prediction under other attention weights, which are normalised to sum 1."""
        from heedful.measure.distance import jsd, tvd

        seen, word = self.seen(example), self.word_of(example)
        alpha, own = _distribution(weights, len(example.passage)), np.array(self.attention(example))
        moved = seen.decode(seen.alpha.new_tensor([[_share(alpha, own, seen, word)]]))[0, 0]
        return {
            "weights": alpha.tolist(),
            "probabilities": moved.tolist(),
            "predicted": self.model.labels[int(moved.argmax())],
            "change": float(tvd(moved.numpy(), seen.y[0].numpy())),
            "distance": float(jsd(alpha, own)),
        }

    def adversary(self, example: Example, epsilon: object = None) -> dict[str, Any]:
        """The attention that differs most while the prediction moves by at most epsilon."""
        from heedful.experiments.adversarial.adversarial import AdversarialConfig, search
        from heedful.experiments.adversarial.verdict import epsilon_of
        from heedful.experiments.framework.experiment import generators

        config = AdversarialConfig.parse({"epsilon": epsilon}, "the adversary")
        seen = self.seen(example)
        found, _ = search(seen, config, generators(np.random.default_rng(0)))
        assert found is not None
        weights = np.zeros(len(example.passage))
        np.add.at(weights, self.word_of(example), found.alpha[0])
        return self.decode(example, weights.tolist()) | {
            "epsilon": epsilon_of(config.epsilon, seen.has_query),
            "exact": bool(found.exact[0]),
            "bound": float(found.bound[0]),
            "distance": float(found.jsd[0]),
        }


class Models:
    """The last few models that were asked, and the queues in front of them.

    What takes one pass (`quick`) does not wait behind explanations.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, Stamp], LoadedModel] = OrderedDict()
        self._loading: defaultdict[tuple[str, Stamp], Lock] = defaultdict(Lock)  # of many who ask, one loads it
        self.long, self.quick = Lane(), Lane()

    def close(self) -> None:
        """The server ends: questions under way end, too."""
        self.long.close()
        self.quick.close()

    def get(self, entry: RunEntry) -> LoadedModel:
        from heedful.engine.running.processors import use_threads

        refuse_link_out(entry.path, "model.safetensors", "vocabulary.json", "config.json")
        path = entry.path / ("config.json" if entry.trial else "model.safetensors")
        if not entry.playable:
            raise Mistake(f"{entry.name} has no weights (model.safetensors): its results can be read, but not asked.")
        key = (str(path), stamp_of(path))
        with self._lock:
            loading = self._loading[key]
        with not_counted(), loading:
            found = self._kept.get(key) or LoadedModel(entry)
        with self._lock:
            self._kept[key] = found
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT_MODELS:
                self._loading.pop(self._kept.popitem(last=False)[0], None)
        use_threads(THREADS)
        return found

    def expect(self, entry: RunEntry) -> None:
        """Someone is about to ask this model: load it meanwhile."""
        Thread(target=self._load, args=[entry], daemon=True).start()

    def _load(self, entry: RunEntry) -> None:
        with suppress(Mistake):  # who asks will be told
            self.get(entry)


@cache
def _ready_for_questions() -> None:
    """Once in a process: import what the first question to a model would wait for, and let questions be ended."""
    from heedful.engine.running.processors import before_each_module

    for module in (
        "experiments.adversarial.adversarial",
        "experiments.adversarial.search",
        "explainers.run",
        "measure.distance",
    ):
        import_module(f"heedful.{module}")
    before_each_module(check)


def offered(entry: RunEntry) -> tuple[str, ...]:
    """Explainers that a page offers, from what a run tells of itself: the model may not be loaded yet."""
    layers = entry.attention.startswith("self-attention")
    told = {"selects"} if entry.run.selects else set()
    return tuple(
        one.name for one in _answering() if (layers or not one.in_layers) and one.needs & OF_FEW_MODELS <= told
    )


def _answering() -> list[Explainer]:
    """Those that can answer while someone waits: the usual ones first, controls last. What learns from training texts
    is for the command line."""
    able = [one for one in loadable() if one.fit is None]
    return sorted(able, key=lambda one: (one.is_control, not one.usual))


def methods_named(names: Sequence[str], entry: RunEntry | None = None) -> tuple[str, ...]:
    """Explainers by name, each once; none means the usual ones, of those that the page of a run offers."""
    known = [one.name for one in _answering()] if names else []
    for name in names:
        if name not in known:
            raise one_of("explainer", name[:100], known)
    among = usual() if entry is None else offered(entry)
    return tuple(dict.fromkeys(names)) or tuple(name for name in usual() if name in among)


def _bounded(example: Example) -> None:
    words = len(example.passage) + (len(example.query) if example.query else 0)
    if words > MOST_WORDS:
        raise Mistake(f"this text has {words:,} words; at most {MOST_WORDS:,} are read while you wait.")


def _distribution(weights: object, n: int) -> Floats:
    try:
        alpha = np.array(weights, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise Mistake("weights are to be a list of numbers.") from None
    if alpha.shape != (n,):
        raise Mistake(f"weights are to be one number for each of the {n} words.")
    if not np.isfinite(alpha).all() or (alpha < 0).any() or not np.isfinite(alpha.sum()) or alpha.sum() <= 0:
        raise Mistake("weights are to be finite, not negative, and not all zero.")
    normalised: Floats = alpha / alpha.sum()
    return normalised


def _share(alpha: Floats, own: Floats, seen: Observed, word: NDArray[np.int64]) -> list[float]:
    """What each word gets, shared among its pieces as the model shares its own; evenly where it gives it nothing."""
    pieces = np.bincount(word, minlength=len(alpha))[word]
    share = np.divide(seen.alpha[0].numpy(), own[word], out=1 / pieces, where=own[word] > 0)
    return [float(weight) for weight in alpha[word] * share]


def _together(done: Sequence[Explained]) -> Explained:
    """One text, explained by several methods one after the other."""
    return replace(done[0], attributions=tuple(a for each in done for a in each.attributions))
