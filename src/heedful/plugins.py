"""The names that authors of extensions need, in one place that stays: `from heedful.plugins import Explainer, Scores`.

A package adds a thing through an entry point (CONTRIBUTING.md); it needs nothing of heedful but this module and
`heedful` itself. Each name is loaded when it is first used, so importing this module loads no torch.

What is common to all:
    Mistake           an error whose sentence a user reads: what was given, what is allowed, what to type
    Config            the base of settings: typed fields with defaults, unknown ones are refused
    Words             a text in words: their forms, and where each stands in the text
    Example           one instance: passage, query, label, and the words that are known to decide
    Tokens            a padded batch of texts as ids, with masks
    Batch             what a network reads: passages, queries, labels

An explainer (heedful.explainers):
    Explainer         a method: its function `run(network, batch, target) -> Scores`, and what it says of itself
    Scores            a number for each token of a batch, 0 where there is no word
    EXPLAINERS        all methods by name, so that an extension can ask one: `EXPLAINERS.find("attention")`

An experiment (heedful.experiments):
    Experiment        a question: its function `run`, its columns, and what it wants to say beyond them
    Batches           what `run` is given: places of texts in the split, and their batch
    Chunk             what `run` yields: rows in columns
    common_columns    the columns that the rows of every experiment have
    Column            a number that rows have: its title, its range, how to read it
    Measure           a number of each text that lists and comparisons show
    Result            what judges, figures and examples are made of: rows, summary, settings
    Verdict           the answer: its grade, its sentences, its value with an interval, its thresholds
    Figure            a Vega-Lite specification with its title and how to read it
    Takes             what it takes to ask: forward passes, explainers, other runs
    Presentation      how pages show it, where its columns do not say enough
    ForAudit          what it tells `heedful audit` of each explainer
    MethodMeasure     a number that each text gives to each explainer

A part of our classifiers (heedful.encoders, heedful.attentions, heedful.objectives):
    Encoder           the base of encoders: word embeddings in, a state for each token out
    Attention         the base of attentions: scores of states, made weights
    Objective         what training makes small: a configuration, a version, and `loss`
    WithTerm          the base of objectives that add one term to cross-entropy

A family of models (heedful.models):
    ModelFamily       `claims` folders or ids, and gives the source of each
    ModelSource       where a model comes from: its name, labels, fingerprint, and `load`
    Model             a network with its text encoder and its labels
    TextEncoder       texts to batches, as a model reads them
    Vocabulary        known words by id
    WordEncoder       the text encoder of models that read whole words
    Network           the least that a network can do: `network(batch) -> Output`
    Differentiable    a network that takes embeddings in the place of ids
    Attends           a network whose attention can be read
    SelfAttends       a network in whose layers every token attends to tokens
    Output            logits, and how they are read
    Link              how logits are read: probabilities, the predicted label, the score that is explained
    SOFTMAX           the link of one label out of several
    Edit              a function (layer, weights) -> weights: another attention

A corpus (heedful.corpora, heedful.corpus_edits):
    Corpus            examples by split, with the names of their labels
    Entry             a corpus by name: where it comes from, its recipe, its reader
    Recipe            how rows become splits
    Raw               a row as a reader gives it: id, text, label, evidence
    Ledger            where a reader writes down what it left out, and why
    CorpusEdit        what can be done to the texts of a corpus before a model reads them
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.config import Config
    from heedful.data.corpora.recipe import Recipe
    from heedful.data.corpora.registry import Entry
    from heedful.data.edits.edit import CorpusEdit
    from heedful.data.formats.rows import Ledger, Raw
    from heedful.data.text.batching import TextEncoder
    from heedful.data.text.vocabulary import Vocabulary, WordEncoder
    from heedful.engine.sources.models import ModelFamily, ModelSource
    from heedful.errors import Mistake
    from heedful.experiments.framework.description import Column, Measure, MethodMeasure, Result
    from heedful.experiments.framework.experiment import Batches, Chunk, Experiment
    from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
    from heedful.experiments.framework.verdict import Verdict
    from heedful.experiments.ground_truth.evidence import common_columns
    from heedful.explainers.explainer import Explainer, Scores
    from heedful.figures.figure import Figure
    from heedful.models.attentive.attention import Attention
    from heedful.models.attentive.encoders import Encoder
    from heedful.models.link import SOFTMAX, Link
    from heedful.models.model import Model
    from heedful.models.network import Attends, Differentiable, Edit, Network, Output, SelfAttends
    from heedful.models.objectives.objective import Objective, WithTerm
    from heedful.records import Batch, Corpus, Example, Tokens, Words
    from heedful.registry import EXPLAINERS

PLACES = {  # where the names are defined; what is imported above is the same for type checkers
    "heedful.config": ("Config",),
    "heedful.data.corpora.recipe": ("Recipe",),
    "heedful.data.corpora.registry": ("Entry",),
    "heedful.data.edits.edit": ("CorpusEdit",),
    "heedful.data.formats.rows": ("Ledger", "Raw"),
    "heedful.data.text.batching": ("TextEncoder",),
    "heedful.data.text.vocabulary": ("Vocabulary", "WordEncoder"),
    "heedful.engine.sources.models": ("ModelFamily", "ModelSource"),
    "heedful.errors": ("Mistake",),
    "heedful.experiments.framework.description": ("Column", "Measure", "MethodMeasure", "Result"),
    "heedful.experiments.framework.experiment": ("Batches", "Chunk", "Experiment"),
    "heedful.experiments.framework.parts": ("ForAudit", "Presentation", "Takes"),
    "heedful.experiments.framework.verdict": ("Verdict",),
    "heedful.experiments.ground_truth.evidence": ("common_columns",),
    "heedful.explainers.explainer": ("Explainer", "Scores"),
    "heedful.figures.figure": ("Figure",),
    "heedful.models.attentive.attention": ("Attention",),
    "heedful.models.attentive.encoders": ("Encoder",),
    "heedful.models.link": ("SOFTMAX", "Link"),
    "heedful.models.model": ("Model",),
    "heedful.models.network": ("Attends", "Differentiable", "Edit", "Network", "Output", "SelfAttends"),
    "heedful.models.objectives.objective": ("Objective", "WithTerm"),
    "heedful.records": ("Batch", "Corpus", "Example", "Tokens", "Words"),
    "heedful.registry": ("EXPLAINERS",),
}

__all__ = [
    "EXPLAINERS",
    "SOFTMAX",
    "Attends",
    "Attention",
    "Batch",
    "Batches",
    "Chunk",
    "Column",
    "Config",
    "Corpus",
    "CorpusEdit",
    "Differentiable",
    "Edit",
    "Encoder",
    "Entry",
    "Example",
    "Experiment",
    "Explainer",
    "Figure",
    "ForAudit",
    "Ledger",
    "Link",
    "Measure",
    "MethodMeasure",
    "Mistake",
    "Model",
    "ModelFamily",
    "ModelSource",
    "Network",
    "Objective",
    "Output",
    "Presentation",
    "Raw",
    "Recipe",
    "Result",
    "Scores",
    "SelfAttends",
    "Takes",
    "TextEncoder",
    "Tokens",
    "Verdict",
    "Vocabulary",
    "WithTerm",
    "WordEncoder",
    "Words",
    "common_columns",
]


def __getattr__(name: str) -> Any:
    for module, names in PLACES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'heedful.plugins' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
