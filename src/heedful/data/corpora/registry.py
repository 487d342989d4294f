"""The known corpora: what each is, how it is made, what was published of it, and where to get it.

Numbers are of Jain & Wallace 2019: Table 1, appendix A, and the preprocessing of their published code
where the paper is silent (min_df, length limits, epochs, batch sizes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from heedful.data.corpora.recipe import Lengths, Recipe
from heedful.data.formats.rows import Ledger, Raw
from heedful.data.generated.facts import read_facts
from heedful.data.generated.planted import Rule
from heedful.data.generated.reader import read_planted, read_simulated_babi
from heedful.data.originals.class_csv import STARS, TOPICS
from heedful.data.originals.imdb_ratings import RATINGS
from heedful.data.prompts import LABELS
from heedful.data.translation.planted import GENERATED, read_generated
from heedful.records import TaskType, TokenizerName
from heedful.registry import Registry


@dataclass(frozen=True, slots=True)
class Table1Row:
    """A row of Table 1; the score is that of the BiLSTM with additive attention."""

    vocabulary: int
    mean_length: int
    train: tuple[int, ...]  # per class, where the table has classes
    test: tuple[int, ...]
    score: float
    metric: str


# (folder `<data folder>/<name>`, None if the corpus is built in; ledger for rows that are bad; split seed)
Reader = Callable[[Path | None, Ledger, int], Iterable[Raw]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A known corpus.

    It is found in the simple form, or as an original distribution that heedful knows, or else read by
    `reader`: from its folder, or, if it is `built_in`, from nothing.
    """

    title: str
    licence: str
    get: str
    recipe: Recipe
    min_df: int = 1
    published: Table1Row | None = None
    model: Mapping[str, int] = field(default_factory=dict)  # settings that differ from config.ModelConfig
    training: Mapping[str, int] = field(default_factory=dict)  # and from config.TrainingConfig
    reader: Reader | None = None
    built_in: bool = False
    simulates: bool = False  # an original that was not found: the corpus is then called <name>-simulated
    restricted: bool = False  # its texts may not be passed on, so runs do not keep them

    @property
    def task(self) -> TaskType:
        return self.recipe.task


# bAbI: embedding 50, hidden 30 per direction in the paper (32 in its code). Others: config.ModelConfig.
BABI_MODEL: Mapping[str, int] = {"embedding_dim": 50, "hidden_dim": 60}
BABI_TRAINING: Mapping[str, int] = {"epochs": 100, "batch_size": 50}
# planted: small enough for a demo on two cores.
PLANTED_MODEL: Mapping[str, int] = {"embedding_dim": 64, "hidden_dim": 64}
PLANTED_RULES: dict[str, tuple[Rule, str]] = {
    "planted": ("single", "one deciding word (the same as planted-single)"),
    "planted-single": ("single", "one deciding word"),
    "planted-negation": ("negation", "a word and what negates it"),
    "planted-majority": ("majority", "the majority of several words"),
    "planted-order": ("order", "the order of two words"),
}
SENTIMENT = ("negative", "positive")
NLI = ("neutral", "contradiction", "entailment")
AG_CLASSES: dict[str, tuple[str, tuple[str, ...], Table1Row | None]] = {
    "agnews": (
        "World or Business",
        ("World", "Business"),
        Table1Row(14752, 36, (30000, 30000), (1900, 1900), 0.96, "f1"),
    ),
    "agnews4": ("all four classes", ("World", "Sports", "Business", "Sci/Tech"), None),
}
ZHANG_CORPORA = {
    "yahoo": ("Yahoo Answers, ten topics", "yahoo_answers_csv", TOPICS),
    "amazon_full": ("Amazon reviews, one to five stars, all of them", "amazon_review_full_csv", STARS),
    "yelp": ("Yelp reviews, one to five stars", "yelp_review_full_csv", STARS),
}
MIMIC_TASKS = {
    "diabetes": (
        ", coded for diabetes or not",
        ("other", "diabetic"),
        Table1Row(22316, 1858, (6381, 1353), (1295, 319), 0.79, "f1"),
    ),
    "anemia": (
        " with anemia, chronic or acute",
        ("chronic", "acute"),
        Table1Row(19743, 2188, (1847, 3251), (460, 802), 0.92, "f1"),
    ),
}
BABI_TASKS = {  # what has to be found, words of a text, accuracy
    1: ("one supporting fact", 8, 1.0),
    2: ("two supporting facts", 67, 0.48),
    3: ("three supporting facts", 421, 0.62),
}

_KNOWN: dict[str, Entry] = {
    "sst": Entry(
        title="Stanford Sentiment Treebank, sentences, negative or positive",
        licence="none stated; published by Stanford for research",
        get="trainDevTestTrees_PTB.zip of the Stanford Sentiment Treebank, "
        "then `heedful data prepare sst --from trees`",
        recipe=Recipe(
            labels=SENTIMENT, tokenizer="words", lengths=Lengths(above=5, below_longest=True), text_field="norm_text"
        ),
        published=Table1Row(16175, 19, (3034, 3321), (863, 862), 0.81, "f1"),
    ),
    "imdb": Entry(
        title="Large Movie Review Dataset, negative or positive",
        licence="none stated; the publishers ask for a citation",
        get="aclImdb_v1.tar.gz (Maas et al. 2011), then `heedful data prepare imdb --from aclImdb`",
        recipe=Recipe(labels=SENTIMENT, lengths=Lengths(below=400), dev_fraction=0.2, test_sample=0.2, blank="<br />"),
        min_df=10,
        published=Table1Row(13916, 179, (12500, 12500), (2184, 2172), 0.88, "f1"),
    ),
    "imdb10": Entry(
        title="IMDB reviews, ratings from 1 to 10",
        licence="none stated; made for research",
        get="imdb.train.txt.ss and its companions (Diao et al. 2014, as passed on by Tang et al. 2015), "
        "then `heedful data prepare imdb10 --from FOLDER`",
        recipe=Recipe(labels=RATINGS, dev_fraction=0.1),
        min_df=5,
    ),
    "adr": Entry(
        title="Tweets that mention an adverse drug reaction, or not",
        licence="the publishers forbid passing the tweets on",
        restricted=True,
        get="annotations of Nikfarjam et al. 2015 with the tweets fetched by yourself, as a table with "
        "text and label, then `heedful data prepare adr --from FOLDER`",
        recipe=Recipe(labels=("none", "reaction")),
        min_df=2,
        published=Table1Row(8686, 20, (14446, 1939), (3636, 487), 0.61, "f1"),
    ),
    "20news": Entry(
        title="20 Newsgroups, baseball or hockey",
        licence="none stated; public Usenet posts, long distributed freely",
        get="20news-bydate.tar.gz, then `heedful data prepare 20news --from FOLDER`",
        recipe=Recipe(
            labels=("baseball", "hockey"), lengths=Lengths(below=501), dev_fraction=0.2, split_field="jw_split"
        ),
        min_df=2,
        published=Table1Row(8853, 115, (716, 710), (151, 183), 0.94, "f1"),
    ),
    **{
        name: Entry(
            title=f"AG News descriptions, {which}",
            licence="research and other non-commercial use",
            get=f"ag_news_csv.tar.gz (Zhang et al. 2015), then `heedful data prepare {name} --from ag_news_csv`",
            recipe=Recipe(labels=labels),
            min_df=5,
            published=published,
        )
        for name, (which, labels, published) in AG_CLASSES.items()
    },
    **{
        name: Entry(
            title=title,
            licence="none stated; made for research",
            get=f"{csv}.tar.gz (Zhang et al. 2015), then `heedful data prepare {name} --from {csv}`",
            recipe=Recipe(labels=labels, dev_fraction=0.1),
            min_df=5,
        )
        for name, (title, csv, labels) in ZHANG_CORPORA.items()
    },
    **{
        name: Entry(
            title=f"MIMIC-III discharge summaries{about}",
            licence="PhysioNet credentialed health data licence; never passed on",
            restricted=True,
            get=f"credentialed access at physionet.org (MIMIC-III), then `heedful data prepare {name} --from FOLDER`",
            recipe=Recipe(labels=labels),
            min_df=5,
            published=published,
        )
        for name, (about, labels, published) in MIMIC_TASKS.items()
    },
    "cnn": Entry(
        title="CNN articles with cloze questions about anonymous entities",
        licence="not stated for the articles; made for research by a published script",
        get="cnn.tgz of questions (Hermann et al. 2015), then `heedful data prepare cnn --from cnn`",
        recipe=Recipe(task="qa", labels_from="entities", tokenizer="whitespace", keep_entities=True),
        min_df=7,
        published=Table1Row(74790, 761, (380298,), (3198,), 0.64, "accuracy"),
        training={"epochs": 25, "batch_size": 90},
    ),
    **{
        f"babi{task}": Entry(
            title=f"bAbI task {task}, {facts}",
            licence="CC BY 3.0 (original); MIT (simulated)",
            get="built in (simulated); the original: tasks_1-20_v1-2.tar.gz of the bAbI project",
            recipe=Recipe(task="qa", labels_from="words", dev_fraction=0.15),
            published=Table1Row(40, length, (10000,), (1000,), accuracy, "accuracy"),
            model=BABI_MODEL,
            training=BABI_TRAINING,
            reader=partial(read_simulated_babi, task=task),
            built_in=True,
            simulates=True,
        )
        for task, (facts, length, accuracy) in BABI_TASKS.items()
    },
    "snli": Entry(
        title="Stanford Natural Language Inference",
        licence="CC BY-SA 4.0",
        get="snli_1.0.zip (Bowman et al. 2015), then `heedful data prepare snli --from snli_1.0`",
        recipe=Recipe(task="nli", labels=NLI),
        min_df=3,
        published=Table1Row(20982, 14, (182764, 183187, 183416), (3219, 3237, 3368), 0.78, "micro-f1"),
        training={"epochs": 25, "batch_size": 128},
    ),
    **{
        name: Entry(
            title=f"review-like sentences, label planted by {what}",
            licence="MIT (generated by heedful)",
            get="built in",
            recipe=Recipe(labels=SENTIMENT),
            model=PLANTED_MODEL,
            reader=partial(read_planted, rule=rule),
            built_in=True,
        )
        for name, (rule, what) in PLANTED_RULES.items()
    },
    **{
        name: Entry(
            title=f"prompts for language models, answered by {what} of a context",
            licence="MIT (generated by heedful)",
            get="built in",
            recipe=Recipe(task="generation", labels=LABELS, tokenizer="whitespace", dev_fraction=0.0),
            reader=partial(read_facts, copies=copies),
            built_in=True,
        )
        for name, copies, what in (
            ("planted-facts", 1, "one sentence"),
            ("planted-facts-twice", 2, "either of two sentences"),
        )
    },
    **{
        name: Entry(
            title=title,
            licence="MIT (generated by heedful)",
            get="built in",
            recipe=Recipe(task="generation", labels=LABELS, tokenizer="whitespace", dev_fraction=0.0),
            reader=partial(read_generated, name=name),
            built_in=True,
        )
        for name, title in GENERATED.items()
    },
}
CORPORA: Registry[Entry] = Registry("corpus", "heedful.corpora", _KNOWN)


@dataclass(frozen=True, slots=True)
class Other:
    """A corpus that works by its folder's name when it is found; labels in the order of their numbers."""

    title: str
    licence: str
    labels: tuple[str, ...] | None = None
    tokenizer: TokenizerName = "spacy"
    pooled: bool = False  # it comes without a training split: all are drawn from its rows


NUMBER = ("plural", "singular")
NOT_LOADED = "for translators; has no labels to predict"
NEWSGROUPS = (
    *("alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware"),
    *("comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles"),
    *("rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med", "sci.space"),
    *("soc.religion.christian", "talk.politics.guns", "talk.politics.mideast", "talk.politics.misc"),
    "talk.religion.misc",
)
OTHERS: dict[str, Other] = {
    "20news_all": Other("20 Newsgroups, all groups, split by date", "none stated", NEWSGROUPS),
    "ade_corpus": Other(
        "PubMed sentences that state a drug's adverse effect, or not", "none stated", ("none", "effect")
    ),
    "agreement_gulordava": Other(
        "the number of a verb from the words before it, nonsense", "CC BY-NC 4.0", NUMBER, "whitespace"
    ),
    "agreement_linzen": Other(
        "the number of a verb from the words before it, Wikipedia", "CC BY-NC 4.0", NUMBER, "whitespace", True
    ),
    "amazon5": Other("Amazon reviews, one to five stars", "none stated (research use)", STARS),
    "amazon_reviews": Other("Amazon reviews", "none stated (research use)", SENTIMENT),
    "blimp_evidence": Other(
        "minimal pairs with the word that decides, for language models", "CC BY 4.0 (pairs), Apache-2.0 (evidence)"
    ),
    "cad_nli": Other("counterfactually edited SNLI", "Apache-2.0", NLI),
    "eraser_movies": Other("movie reviews with human rationales", "none stated", SENTIMENT),
    "hatexplain": Other(  # its rationales are of the tokens between blanks
        "posts with human rationales (offensive)", "MIT", ("normal", "offensive", "hate speech"), "whitespace"
    ),
    "mr": Other("movie review sentences", "none stated", SENTIMENT),
    "pronoun": Other("sentences with male or female pronouns", "none stated", ("male", "female")),
    "sick": Other("SICK (SemEval-2014)", "CC BY-NC-SA 3.0", NLI),
    "sst_trees": Other(
        "Stanford Sentiment Treebank, five classes",
        "none stated",
        ("very negative", "negative", "neutral", "positive", "very positive"),
    ),
    "multi30k_ende": Other(f"Multi30k English-German ({NOT_LOADED})", "treat as non-commercial"),
    "align_deen": Other(f"German-English word alignment ({NOT_LOADED})", "CC BY-NC 2.5 CH"),
    "align_enfr": Other(f"English-French word alignment ({NOT_LOADED})", "none stated"),
    "align_roen": Other(f"Romanian-English word alignment ({NOT_LOADED})", "none stated"),
    "sst_wiki": Other("SST sentence followed by a Wikipedia sentence", "none stated", SENTIMENT),
}


def restricted(name: str) -> bool:
    """Whether the texts of a corpus may not be passed on."""
    return name in CORPORA and CORPORA[name].restricted
