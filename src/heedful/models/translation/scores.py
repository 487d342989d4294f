"""How good translations are: BLEU and chrF by sacrebleu, exact texts, right words."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.errors import Mistake


def translation_scores(said: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Texts are tokenised already, so BLEU splits at white space only. `accuracy`: words that stand where they should.

    `accuracy` is Pruthi et al.'s (2020, section 5.2): of the words of the reference.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError:
        raise Mistake("BLEU needs the package sacrebleu: pip install 'heedful[translation]'.") from None
    pairs = [(a.split(), b.split()) for a, b in zip(said, references, strict=True)]
    words = sum(len(b) for _, b in pairs)
    right = sum(x == y for a, b in pairs for x, y in zip(a, b, strict=False))
    return {
        "bleu": float(BLEU(tokenize="none").corpus_score(list(said), [list(references)]).score),
        "chrf": float(CHRF().corpus_score(list(said), [list(references)]).score),
        "exact": sum(a == b for a, b in pairs) / max(1, len(pairs)),
        "accuracy": right / max(1, words),
    }
