"""What decides a run's result, typed. Unknown keys are refused; the content hash is part of the run's name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from heedful.errors import Mistake, short
from heedful.records import Split, TaskType, TokenizerName
from heedful.registry import ATTENTIONS, CORPUS_EDITS, ENCODERS, OBJECTIVES, RATIONALES

EncoderName = Annotated[str, AfterValidator(ENCODERS.check)]
AttentionName = Annotated[str, AfterValidator(ATTENTIONS.check)]
RationaleName = Annotated[str, AfterValidator(RATIONALES.check)]
ObjectiveName = Annotated[str, AfterValidator(OBJECTIVES.check)]
EditName = Annotated[str, AfterValidator(CORPUS_EDITS.check)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]  # what generators and the columns of tables hold
Size = Annotated[int, Field(ge=1, le=65_536)]  # of a vector; more is a slip of the hand, and fills any memory
CROSS_ENTROPY = "cross_entropy"  # what a model is trained to do where nothing else is said
AS_PUBLISHED = "as_published"  # the section of settings that only imitate what the code of Jain & Wallace 2019 does


def read_settings(texts: Sequence[str], where: str, example: str) -> dict[str, Any]:
    """KEY=VALUE each and each key once, the value as JSON (0.05, true, null, [..]) or, if it is not, as plain text.

    `where` they were given ("--set"), and an `example` of one, for what is wrong with them.
    """
    settings: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Mistake(f"{where} {text[:200]}: expected KEY=VALUE, for example {example}.")
        if key in settings:
            raise Mistake(f"{where} {key} is given twice, the second time as {short(text)}: give it once.")
        try:
            settings[key] = json.loads(value)
        except RecursionError:
            raise Mistake(f"{where} {key}: the value has too many brackets.") from None
        except ValueError:
            settings[key] = value
    return settings


class Config(BaseModel):
    """The base of everything that is configured: frozen, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def parse(cls, values: dict[str, Any], where: str) -> Self:
        """From plain values (TOML, JSON, command line), with one sentence about the first mistake."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(str(part) for part in first["loc"])
            if first["type"] == "extra_forbidden":
                known = ", ".join(neighbours(cls, first["loc"]))
                raise Mistake(f"{where}: there is no setting {short(key)}. Known: {known}.") from None
            given = short(first["input"])
            raise Mistake(f"{where}: {key + ': ' if key else ''}{first['msg']} (given: {given}).") from None


def neighbours(config: type[Config], place: tuple[int | str, ...]) -> list[str]:
    """The settings that stand beside an unknown one: those of the part of the configuration that it is in."""
    here: Any = config
    for part in place[:-1]:
        annotation = here.model_fields[part].annotation if part in getattr(here, "model_fields", {}) else here
        inside = [annotation, *get_args(annotation)]
        here = next((one for one in inside if isinstance(one, type) and issubclass(one, Config)), annotation)
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, Config) else []


class EditConfig(Config):
    """What is done to the texts of a corpus before a model reads them: an edit by name, and its own settings."""

    name: EditName
    options: dict[str, Any] = Field(default_factory=dict)


class DataAsPublished(Config):
    """A text of fewer words than `min_words` is left out, and so are texts that are too long, but only after the
    vocabulary was made of all."""

    min_words: int | None = Field(default=None, ge=1, lt=2**63, exclude_if=lambda value: value is None)
    vocabulary: Literal["kept", "all"] = Field(default="kept", exclude_if=lambda value: value == "kept")


class DataOptions(Config):
    """How a corpus is to be read. `None` means: as the corpus says, or as the file's own column names tell."""

    text_column: str | None = None
    label_column: str | None = None
    query_column: str | None = None  # the question or hypothesis, where the task has one
    evidence_column: str | None = None  # what decides the label: see own.py for the forms it may have
    split_column: str | None = None  # its values are train, dev (or val, valid, validation) and test
    dev_file: Path | None = None  # dev and test in files of their own, with the same columns
    test_file: Path | None = None
    only: Split | None = None  # take all rows as this split, draw nothing
    labels: tuple[str, ...] | None = None  # their names and order; otherwise found in the data, sorted
    task: TaskType | None = None
    tokenizer: TokenizerName | None = None
    min_df: int | None = Field(default=None, ge=1, lt=2**63)  # texts that a word must occur in to be known
    delimiter: str | None = None  # of CSV files; otherwise seen from the header
    header: bool = True  # False: columns are called 1, 2, 3 ...
    dev_fraction: float = Field(default=0.15, ge=0, lt=1)  # of one's own training rows, without a dev split
    test_fraction: float = Field(default=0.2, ge=0, lt=1)  # of one's own rows, without a test split
    skip_bad: bool = False  # leave broken rows out and list them, instead of stopping at the first
    # So many rows of a split, drawn by label with `subset_seed`, before dev and test are drawn from training rows.
    train_rows: int | None = Field(default=None, ge=1, lt=2**63, exclude_if=lambda value: value is None)
    dev_rows: int | None = Field(default=None, ge=1, lt=2**63, exclude_if=lambda value: value is None)
    test_rows: int | None = Field(default=None, ge=1, lt=2**63, exclude_if=lambda value: value is None)
    subset_seed: Seed = Field(default=0, exclude_if=lambda value: value == 0)
    # Words that are evidence wherever they stand, in place of what the corpus marks.
    evidence_words: tuple[str, ...] | None = Field(default=None, exclude_if=lambda value: value is None)
    edit: EditConfig | None = Field(default=None, exclude_if=lambda value: value is None)
    as_published: DataAsPublished = Field(
        default=DataAsPublished(), exclude_if=lambda value: value == DataAsPublished()
    )
    # Which of a model's labels those of the data are, where their names do not say it.
    label_map: dict[str, str] | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def subset(self) -> dict[Split, int]:
        """Of which splits only so many rows are used."""
        wanted: dict[Split, int | None] = {"train": self.train_rows, "dev": self.dev_rows, "test": self.test_rows}
        return {split: n for split, n in wanted.items() if n is not None}


class ModelAsPublished(Config):
    """How a CNN makes one vector of a query's states (in their code the largest of each feature over the words), and
    whether passage and query have embeddings of their own."""

    query_pooling: Literal["mean", "max_of_words"] = Field(default="mean", exclude_if=lambda value: value == "mean")
    separate_embeddings: bool = Field(default=False, exclude_if=lambda value: not value)


class ModelConfig(Config):
    """Sizes as in appendix A of Jain & Wallace 2019: 128 per direction, 64 filters a kernel, 256 average."""

    encoder: EncoderName = "bilstm"
    attention: AttentionName = "additive"
    embedding_dim: Size = 300
    hidden_dim: Size = Field(default=256, ge=4, multiple_of=4)
    # Of the average encoder. A setting that came later is written only where it differs: runs keep their names.
    activation: Literal["relu", "tanh"] = Field(default="relu", exclude_if=lambda value: value == "relu")
    widths: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field(  # of the CNN's convolutions
        default=(1, 3, 5, 7), min_length=1, exclude_if=lambda value: value == (1, 3, 5, 7)
    )
    attention_dim: Size | None = Field(  # units of additive attention; None: hidden_dim / 2
        default=None, exclude_if=lambda value: value is None
    )
    hierarchical: bool = Field(default=False, exclude_if=lambda value: not value)  # words, sentences, text
    # Share of the numbers that is left out while training (Serrano & Smith 2019): of the embeddings, of the vectors of
    # the sentences before they are encoded, of the vector that the output is read from.
    dropout_words: float = Field(default=0.0, ge=0, lt=1, exclude_if=lambda value: value == 0)
    dropout_sentences: float = Field(default=0.0, ge=0, lt=1, exclude_if=lambda value: value == 0)
    dropout_output: float = Field(default=0.0, ge=0, lt=1, exclude_if=lambda value: value == 0)
    # Each state is joined by the embedding of its word (Tutek & Snajder 2020): embedding_dim numbers more.
    concatenate: bool = Field(default=False, exclude_if=lambda value: not value)
    # The model whose attention this one has, in place of its own (models/attentive/imposed.py). Its `attention` is then
    # uniform.
    imposed: ModelConfig | None = Field(default=None, exclude_if=lambda value: value is None)
    # How it selects the words that it reads (models/rationale); None: it reads all of them. `rate` is the share of the
    # words that it selects, `coherence` the price of a change between selected and not, from word to word.
    rationale: RationaleName | None = Field(default=None, exclude_if=lambda value: value is None)
    rate: float = Field(default=0.2, gt=0, lt=1, exclude_if=lambda value: value == 0.2)
    coherence: float = Field(default=0.0, ge=0, le=1000, exclude_if=lambda value: value == 0)
    as_published: ModelAsPublished = Field(
        default=ModelAsPublished(), exclude_if=lambda value: value == ModelAsPublished()
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.imposed is not None and (self.attention != "uniform" or self.hierarchical):
            raise ValueError("a model with imposed attention has none of its own: attention must be 'uniform'")
        if self.concatenate and self.hierarchical:
            raise ValueError(
                "concatenate joins states with the embeddings of words: a hierarchical model pools sentences"
            )
        if self.rationale is None:
            if (self.rate, self.coherence) != (0.2, 0.0):
                raise ValueError("rate and coherence are those of a selection: give rationale, too, such as 'hardkuma'")
        elif self.hierarchical or self.imposed is not None:
            raise ValueError("a model that selects its words is neither hierarchical nor has imposed attention")
        return self

    @property
    def attention_name(self) -> str:
        """What kind of attention it has, for names and pages."""
        if self.rationale is not None:
            return self.rationale
        return self.attention if self.imposed is None else "imposed"

    def with_vectors(self, dim: int) -> ModelConfig:
        """With the size of the word vectors that it was given, which its imposed model was given, too."""
        imposed = None if self.imposed is None else self.imposed.with_vectors(dim)
        return self.model_copy(update={"embedding_dim": dim, "imposed": imposed})


class TrainingAsPublished(Config):
    """In their code of questions and inferences the gradient is that of the batch's mean loss, weight decay is on
    attention, too, and the first epoch is never kept (`keep_from`)."""

    reduction: Literal["sum", "mean"] = Field(default="sum", exclude_if=lambda value: value == "sum")
    attention_decay: bool = Field(default=False, exclude_if=lambda value: not value)
    # Which texts meet in a batch. pools: those of like length, of a hundred batches' texts at random. sorted: as there
    # all are sorted by the length of the passage, give or take a tenth, and cut.
    batches: Literal["pools", "sorted"] = Field(default="pools", exclude_if=lambda value: value == "pools")
    keep_from: int = Field(default=1, ge=1, exclude_if=lambda value: value == 1)  # the first epoch to be kept


class TrainingConfig(Config):
    """The settings of Jain & Wallace's code (see docs/training.md for the source of each)."""

    epochs: int = Field(default=8, ge=1, le=1_000_000)
    batch_size: int = Field(default=32, ge=1, le=1_000_000)
    learning_rate: float = Field(default=1e-3, gt=0, le=1e6)
    weight_decay: float = Field(default=1e-5, ge=0, le=1e6)  # on everything but the attention, which has none
    patience: int | None = Field(default=None, ge=1, le=1_000_000)  # epochs without a better dev score
    class_weights: bool = True  # positives weighted by N / N+ - 1 (two labels), N / (labels N_c) (more)
    # Which epoch is kept: the best on dev by this score (None: the objective's own, or roc_auc for two labels, else
    # accuracy), the one with the least training loss, for an objective that is not about labels, or the least dev loss.
    metric: Literal["roc_auc", "accuracy", "loss", "dev_loss"] | None = None
    missing_vectors: Literal["normal", "zeros"] = "normal"
    # At most this share of the words has a vector, whatever the file has: what would one that knows fewer change?
    cover: float | None = Field(default=None, gt=0, le=1, exclude_if=lambda value: value is None)
    train_embeddings: bool = True
    # What is made small, by name, and that objective's own settings: written only where they are not the defaults.
    objective: ObjectiveName = Field(default=CROSS_ENTROPY, exclude_if=lambda value: value == CROSS_ENTROPY)
    objective_options: dict[str, Any] = Field(default_factory=dict, exclude_if=lambda value: not value)
    # adam: with amsgrad. adamw: no decay on biases and norms.
    optimiser: Literal["adam", "adamw"] = Field(default="adam", exclude_if=lambda value: value == "adam")
    warm_up: float | None = Field(  # share of the steps in which the rate rises; then it falls to 0. None: neither
        default=None, ge=0, le=1, exclude_if=lambda value: value is None
    )
    clip: float | None = Field(  # the largest norm of a step's mean gradient
        default=None, gt=0, exclude_if=lambda value: value is None
    )
    mask_words: float = Field(  # of this share of the texts words are hidden at random, in every epoch others
        default=0.0, ge=0, le=1, exclude_if=lambda value: value == 0
    )
    halve_rate: bool = Field(  # the learning rate is halved after every epoch that was not the best
        default=False, exclude_if=lambda value: not value
    )
    as_published: TrainingAsPublished = Field(
        default=TrainingAsPublished(), exclude_if=lambda value: value == TrainingAsPublished()
    )


# What is usual when a pretrained transformer is fine-tuned (Devlin et al. 2019, appendix A.3).
FINE_TUNING = TrainingConfig(
    epochs=3, learning_rate=2e-5, weight_decay=0.01, class_weights=False, optimiser="adamw", warm_up=0.1, clip=1.0
)

# Of a model that selects its words: the constraint on how many takes its time.
RATIONALE: dict[str, Any] = {"objective": "rationale", "epochs": 20}


class SourceConfig(Config):
    """A model that was not trained for this folder: where it is found again, and what it was."""

    place: str  # a folder beside this one, a path, or an id: what `find_source` reads
    name: str
    fingerprint: str  # of what decides its answers: weights, configuration, tokenizer


class RunConfig(Config):
    """One training run. `dataset` is a corpus by name, one's own file, or hf:ID."""

    dataset: str
    data: DataOptions = DataOptions()
    model: ModelConfig = ModelConfig()  # of one of our own; means nothing where training begins with a checkpoint
    training: TrainingConfig = TrainingConfig()
    vectors: str | None = None
    seed: Seed = 0
    # The checkpoint that training begins with, which stays as it is; None: fresh weights of `model`.
    start: SourceConfig | None = Field(default=None, exclude_if=lambda value: value is None)


class EvaluationConfig(Config):
    """A model tried on data that it was not trained on. What is known of the model's making stands beside it."""

    source: SourceConfig
    dataset: str
    data: DataOptions = DataOptions()
    seed: Seed = 0  # of chance in the experiments: that of the model's training, if known
    model: ModelConfig | None = Field(default=None, exclude_if=lambda value: value is None)
    vectors: str | None = None


def stored_settings(values: dict[str, Any]) -> dict[str, Any]:
    """A run's settings as they are called today. The 419 runs of docs/results cannot be made again: in their files, and
    in runs of that time, what is in the sections `as_published` now stands beside them, without a section."""
    renamed = dict(values)
    sections: dict[str, type[Config]] = {
        "data": DataAsPublished,
        "model": ModelAsPublished,
        "training": TrainingAsPublished,
    }
    for part, section in sections.items():
        flat = {name: value for name, value in (values.get(part) or {}).items() if name in section.model_fields}
        if flat:
            rest = {name: value for name, value in values[part].items() if name not in flat}
            renamed[part] = rest | {AS_PUBLISHED: flat}
    return renamed
