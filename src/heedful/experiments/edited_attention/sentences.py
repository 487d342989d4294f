"""Other weights for sentences, asked as other weights for their words: the general way.

A sentence's weight is the sum of its words' (models/attentive/hierarchical.py), so a question about sentences is
a question about words: each keeps its share of its sentence's weight. Where states of sentences are pooled,
`PooledStates` has the answer in one matrix product, and agrees.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from heedful.experiments.edited_attention.observe import Observed, Observer, real_words_first
from heedful.experiments.framework.experiment import Ints
from heedful.models.attentive.hierarchical import find_sentences
from heedful.records import Batch


@dataclass(frozen=True, slots=True, eq=False)
class EditedSentences(Observed):
    of_words: Observed = field(kw_only=True)
    number: Tensor = field(kw_only=True)  # (B, words) the sentence of each word
    part: Tensor = field(kw_only=True)  # (B, words) its share of the sentence's weight

    def decode(self, alphas: Tensor) -> Tensor:
        number = self.number.unsqueeze(1).expand(-1, alphas.shape[1], -1)  # (B, n, words)
        return self.of_words.decode(alphas.gather(2, number) * self.part.unsqueeze(1))

    @classmethod
    def observer(cls, observe_words: Observer) -> Observer:
        @torch.no_grad()
        def observe(examples: Ints, batch: Batch) -> EditedSentences:
            words = observe_words(examples, batch)
            sentences = find_sentences(batch.passage)
            front, real = real_words_first(batch.passage.mask)
            number = sentences.number.gather(1, front).cpu()  # (B, words)
            mask = sentences.mask.cpu()
            alpha = words.alpha.new_zeros(mask.shape).scatter_add(1, number, words.alpha)  # (B, sentences)
            total = alpha.gather(1, number)  # (B, words)
            # of a sentence without weight any shares say the same of its own weight: equal ones
            count = torch.zeros_like(alpha).scatter_add(1, number, real.cpu().to(alpha))
            equal = real.cpu() / count.gather(1, number).clamp(min=1)
            return cls(
                examples=words.examples,
                link=words.link,
                alpha=alpha,
                real=mask,
                predicted=words.predicted,
                has_query=words.has_query,
                level="sentence",
                of_words=words,
                number=number,
                part=torch.where(total > 0, words.alpha / torch.where(total > 0, total, 1.0), equal),
            )

        return observe
