"""How much it matters whose definition of TRACER's signals is taken.

    python benchmarks/tracer_definitions.py LOG [LOG ...] [--embedder char] [--shuffles 20]

For each log: in how many turns repetition and gap of the user differ from the default's; AUROC of
TRACER with usual parameters, with both sides' turns, with the agent's alone at risk (as the paper
attributes) and with the agent's rows alone (as agent-tracer's code does); times of detection as
the paper and as agent-tracer count. Then the largest AUROC over a grid of parameters, on the runs
that it was looked for on: with the outcomes, and with shuffled ones.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from reproduction.agent_tracer import AgentTracerSignals, detection
from tracer import load
from trajscore import TracerScorer, TracerSignals, TrajectoryArray, io
from trajscore.tracer import early_warning
from trajscore.tracer._components import AGENT_GAP, REPETITION, USER_GAP
from trajscore.tracer._tuning import grid_scores

DEFINITIONS = {
    "trajscore": TracerSignals,
    "paper": partial(TracerSignals, definition="paper"),
    "agent-tracer": AgentTracerSignals,
}
WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0)
GRID = {
    "alpha": WEIGHTS, "beta": WEIGHTS, "gamma": WEIGHTS,
    "k": (0.05, 0.1, 0.2, 0.3, 0.5, 1.0), "w": (0.0, 0.1, 0.3),
}  # fmt: skip


def auroc(y: NDArray[Any], risk: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return AUROC of each row of risks, of shape (..., n_runs)."""
    failed = y == 0
    ranks = rankdata(risk, axis=-1)[..., failed].sum(axis=-1)
    n_failed = failed.sum()
    return (ranks - n_failed * (n_failed + 1) / 2) / (n_failed * (~failed).sum())


def of_definition(
    runs: list[io.Run], y: NDArray[Any], definition: str, usual: TrajectoryArray, embedder: str
) -> dict[str, float]:
    """Return one row of the table of a log."""
    make = DEFINITIONS[definition]
    S = make(embedder=embedder).fit_transform(runs)
    row = {
        f"{name} differs": float((~np.isclose(S[name].cells, usual[name].cells, equal_nan=True))
                                 .mean())
        for name in (REPETITION, USER_GAP)
    } | {"user gaps": float((~np.isnan(S[USER_GAP].cells)).mean())}  # fmt: skip
    scorer = TracerScorer().fit(S)
    row["AUROC"] = float(auroc(y, scorer.score_samples(S)))
    at_risk = TracerScorer(actors="agent").fit(S).score_samples(S)
    row["agent at risk"] = float(auroc(y, at_risk))
    alone = make(embedder=embedder, actors="agent").fit_transform(runs)
    row["agent rows"] = float(auroc(y, scorer.score_samples(alone)))
    ours, theirs = (judge(y, scorer.transform(S)) for judge in (early_warning, detection))
    return row | {
        "mean time, paper": np.nanmean(ours.failure_times),
        "by 20%, paper": ours.detected_within(0.2),
        "mean time, agent-tracer": float(theirs.failure_times.mean()),
        "by 20%, agent-tracer": theirs.detected_within(0.2),
    }


def best_on_its_own_runs(
    S: TrajectoryArray, y: NDArray[Any], n_shuffles: int
) -> tuple[float, NDArray[np.float64]]:
    """Return the largest AUROC over the grid, and the same with outcomes shuffled."""
    grid = {name: np.array(values) for name, values in GRID.items()}
    kept = S[[REPETITION, AGENT_GAP, USER_GAP]]
    risk = grid_scores(kept, **grid, aggregation="max", actors="both").reshape(-1, len(y))
    rng = np.random.default_rng(0)
    shuffled = [auroc(rng.permutation(y), risk).max() for _ in range(n_shuffles)]
    return float(auroc(y, risk).max()), np.array(shuffled)


def main() -> None:
    """Print both tables of each log."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--embedder", default="char")
    parser.add_argument("--shuffles", type=int, default=20)
    args = parser.parse_args()
    for path in args.logs:
        log = load(path)
        runs = [run for run in log.runs if run.outcome != -1]
        y = io.outcomes(runs)
        usual = TracerSignals(args.embedder).fit_transform(runs)
        print(f"\n== {path.name}: {len(y)} runs with an outcome, {len(usual.cells)} turns")
        rows = {name: of_definition(runs, y, name, usual, args.embedder) for name in DEFINITIONS}
        print(pd.DataFrame(rows).round(3).to_string())
        best, shuffled = best_on_its_own_runs(usual, y, args.shuffles)
        print(
            f"largest AUROC of {np.prod([len(one) for one in GRID.values()])} settings on the runs "
            f"themselves: {best:.3f}; with shuffled outcomes {shuffled.mean():.3f} "
            f"({shuffled.min():.3f} to {shuffled.max():.3f})"
        )


if __name__ == "__main__":
    main()
