"""Sources among 32 sentences: time and fidelity beside ContextCite, and facts that stand twice.

    make smollm2 && make bench          (or: HEEDFUL_SMOLLM2=FOLDER python benchmarks/run.py sources)

The rival is the algorithm of context-cite 0.0.4 at its defaults (64 ablations, one text in a pass, logits of every
token, scikit-learn's LASSO), written down here: the package itself fetches files when it is imported. Both see the same
contexts, of which the model knows the answer (data/generated/facts.py); those that it gets wrong are left out and
counted. Seconds are of the processor. Fidelity is the linear datamodelling score on 64 ablations that neither was
fitted to, drawn as the rival draws them; `each alone` ranks without any surrogate, `random` by chance.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.data.generated.facts import PlantedFact, planted_fact
from heedful.data.text.units import passages
from heedful.explainers.sources.ablations import ablate
from heedful.explainers.sources.context import AskedUnits, Context, log_probability
from heedful.explainers.sources.support import support
from heedful.measure.rank import spearman
from heedful.models.language.loading import load_language_model
from heedful.models.language.model import LanguageModel

SENTENCES, ABLATIONS, HELD_OUT = 32, 64, 64
CONTEXTS = int(os.environ.get("HEEDFUL_CONTEXTS", "10"))  # of each kind: a fact that stands once, and twice
FASTER, FOUND = 0.5, 0.9
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def main() -> None:
    folder = Path(os.environ.get("HEEDFUL_SMOLLM2", Path(sys.prefix) / "smollm2"))
    if not folder.is_dir():
        print("SmolLM2 is not here: make smollm2 writes it (or set HEEDFUL_SMOLLM2).")
        return
    torch.set_num_threads(1)
    model = load_language_model(folder)
    rows, found, wrong = [], [], 0
    for copies in (1, 2):
        seed = done = 0
        while done < CONTEXTS:
            seed += 1
            fact = planted_fact(np.random.default_rng([11, copies, seed]), copies, SENTENCES)
            prompt = model.prompt(fact.prompt)
            ids = model.tokens_of(prompt, fact.say)
            if int(model.next_logits(prompt).argmax()) != ids[0]:
                wrong += 1
                continue
            done += 1
            spans = tuple(passages(prompt.text, fact.sentences))
            context = Context(prompt, spans, np.zeros(len(spans), np.int64))
            if copies == 2:
                asked = AskedUnits(model, context, model.phrase(prompt, ids))
                said = support(asked, log_probability, SENTENCES, 256, ABLATIONS, np.random.default_rng(seed), len(ids))
                named = {*said.single, *(i for pair in said.together for i in pair)}
                found.append(named >= set(fact.planted))
                print(f"double {done}: planted {fact.planted}, named {sorted(named)}", flush=True)
            else:
                rows.append(one_context(model, context, fact, ids, seed))
                print(f"context {done}: " + ", ".join(f"{k} {v:.2f}" for k, v in rows[-1].items()), flush=True)
    mean = {name: float(np.nanmean([row[name] for row in rows])) for name in rows[0]}
    print(f"\n{CONTEXTS} contexts of each kind; {wrong} whose answer the model gets wrong were left out")
    print(f"context-cite, 64 ablations   {mean['rival s']:6.1f} s   LDS {mean['rival']:.2f}")
    print(f"ours, 64 ablations           {mean['ours s']:6.1f} s   LDS {mean['ours']:.2f}")
    print(f"ours, 32 ablations           {mean['half s']:6.1f} s   LDS {mean['half']:.2f}")
    print(f"random scores                     0 s   LDS {mean['random']:.2f}")
    ratio, share = mean["half s"] / mean["rival s"], float(np.mean(found))
    print(
        f"time of half the ablations: {ratio:.2f} of the rival's (bar {FASTER}); "
        f"of all {mean['ours s'] / mean['rival s']:.2f}"
    )
    print(f"facts that stand twice, both found: {share:.0%} (bar {FOUND:.0%})")
    if ratio > FASTER or share < FOUND:
        sys.exit("a bar was missed")


def one_context(
    model: LanguageModel, context: Context, fact: PlantedFact, ids: tuple[int, ...], seed: int
) -> dict[str, float]:
    asked = AskedUnits(model, context, model.phrase(context.prompt, ids))
    rng = np.random.default_rng(seed)
    held = np.random.default_rng([seed, 1]).random((HELD_OUT, SENTENCES)) < 0.5
    truth = asked(held)
    start = time.process_time()
    theirs = context_cite(model, fact, ids)
    rival = time.process_time() - start
    start = time.process_time()
    ours = ablate(asked, SENTENCES, ABLATIONS, rng, tokens=len(ids)).weights
    all_of_it = time.process_time() - start
    start = time.process_time()
    half = ablate(asked, SENTENCES, ABLATIONS // 2, rng, tokens=len(ids)).weights
    halved = time.process_time() - start
    scored = {"rival": theirs, "ours": ours, "half": half, "random": rng.random(SENTENCES)}
    lds = {name: float(spearman((held @ w)[None], truth[None])[0]) for name, w in scored.items()}
    return lds | {"rival s": rival, "ours s": all_of_it, "half s": halved}


@torch.no_grad()
def context_cite(model: LanguageModel, fact: PlantedFact, ids: tuple[int, ...]) -> Floats:
    """context_citer.py and solver.py of context-cite 0.0.4, with this prompt."""
    from sklearn.linear_model import Lasso
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    module = model.network.module
    masks, answers = np.zeros((ABLATIONS, SENTENCES), np.bool_), np.zeros(ABLATIONS)
    whole = " ".join(fact.sentences)
    for n in range(ABLATIONS):
        masks[n] = np.random.RandomState(n).choice([False, True], size=SENTENCES)
        kept = " ".join(one for one, there in zip(fact.sentences, masks[n], strict=True) if there)
        prompt = model.prompt(fact.prompt.replace(whole, kept))
        read = [*model.text.encode([prompt], "passage").flat.tolist(), *ids]
        logits = module(input_ids=torch.tensor([read])).logits[0, -len(ids) - 1 : -1]
        own = logits.gather(1, torch.tensor(ids).unsqueeze(1))[:, 0]
        others = logits.scatter(1, torch.tensor(ids).unsqueeze(1), -torch.inf).logsumexp(1)
        total = torch.nn.functional.logsigmoid(own - others).double().sum()
        answers[n] = float(total - torch.log1p(-total.exp()))
    scaler, lasso = StandardScaler(), Lasso(alpha=0.01, random_state=0)
    make_pipeline(scaler, lasso).fit(masks.astype(np.float32), answers / len(ids))
    weights: Floats = lasso.coef_ / scaler.scale_ * len(ids)
    return weights


if __name__ == "__main__":
    main()
