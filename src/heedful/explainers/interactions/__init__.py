"""What do words do together? A number for every two words, beside one for each. Declared here without torch.

All cost a square of the words or more, so they are asked where they are named. The scores of single words are those of
a method that there is already: rows of integrated Hessians sum to integrated gradients, removal interactions stand
beside leave-one-out, Shapley interactions beside Shapley values.
"""

from __future__ import annotations

from heedful.explainers.explainer import Axiom, Explainer, Passes, Size

HERE = "heedful.explainers.interactions"
DELETED = "word deleted"


def every_pair(size: Size) -> Passes:
    """The text as it is, without each word, and without every two."""
    n = sum(size.words)
    return Passes(1 + n + n * (n - 1) // 2)


def in_two_contexts(size: Size) -> Passes:
    """Among all words, and among none; islands of three words or more are asked for besides."""
    return Passes(2 * every_pair(size).forward, times=2)


INTEGRATED_HESSIANS = Explainer(
    "integrated_hessians",
    "interaction",
    True,
    "n_steps forward, n_steps (n + 1) backward",
    f"{HERE}.integrated_hessians:integrated_hessians",
    removal="embedding of the baseline",
    axes="pairs",
    axiom=Axiom(
        "completeness gap",
        0.05,
        "integrated Hessians missed {missed} of the change: raise n_steps, and softplus_beta if the model has ReLUs",
    ),
    needs=frozenset({"differentiable"}),
    passes=f"{HERE}.integrated_hessians:passes_of",
    title="integrated Hessians",
    citation="Janizek et al. 2020",
    takes_long=True,
    help={
        "n_steps": "points of the Gauss rule",
        "softplus_beta": "ReLU has no second derivative: softplus with this beta takes its place",
        "baselines": "where the path starts: every word this token, a number, or a tensor",
    },
    until_it_holds={"n_steps": 24, "tolerance": 0.02, "max_steps": 192},
)
REMOVAL_INTERACTIONS = Explainer(
    "removal_interactions",
    "interaction",
    True,
    "n (n + 1) / 2 + 1 forward",
    f"{HERE}.removal:removal_interactions",
    removal=DELETED,
    axes="pairs",
    passes=every_pair,
    title="removal interactions",
    citation="Tsang et al. 2020",
    takes_long=True,
)
SHAPLEY_INTERACTIONS = Explainer(
    "shapley_interactions",
    "interaction",
    True,
    "2^n or n_samples forward",
    f"{HERE}.shapley:shapley_interactions",
    removal=DELETED,
    axes="pairs",
    axiom=Axiom(
        "sampling error", 0.1, "Shapley interactions are uncertain by {missed} of the largest: raise n_samples"
    ),
    passes=f"{HERE}.shapley:passes_of",
    title="Shapley interactions",
    citation="Grabisch & Roubens 1999",
    takes_long=True,
)
ARCHIPELAGO = Explainer(
    "archipelago",
    "interaction",
    True,
    "n (n + 1) + 2 forward",
    f"{HERE}.archipelago:archipelago",
    removal=DELETED,
    axes="pairs",
    passes=in_two_contexts,
    title="Archipelago",
    citation="Tsang et al. 2020",
    takes_long=True,
    help={"n_pairs": "of the strongest pairs so many are joined to islands, whose words share one score"},
)
BILRP = Explainer(
    "bilrp",
    "interaction",
    True,
    "2 (m + 1) forward, 3 (m + 1) backward for a second text of m tokens",
    f"{HERE}.bilrp:bilrp",
    axes="pairs",
    axiom=Axiom(
        "conservation gap",
        0.5,
        "{missed} of the similarity comes from special tokens, positions and biases, not from pairs of words",
    ),
    needs=frozenset({"differentiable", "compares"}),
    passes=lambda size: Passes(2 * (size.words[-1] + 3), 3 * (size.words[-1] + 3)),
    title="BiLRP",
    citation="Eberle et al. 2022",
)
