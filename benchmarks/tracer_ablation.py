"""Where TRACER's figures come from: whose turns count, and how a step's components are combined.

    python benchmarks/tracer_ablation.py LOG [LOG ...] [--embedder char]

Tables III and IV of the TRACER paper, on any log that trajscore.io reads, with usual parameters.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracer import MEASURES, load, measures
from trajscore import TracerScorer, TracerSignals, TrajectoryArray
from trajscore.core.statistics import all_at_once
from trajscore.core.within_runs import running_sum


def actor_ablation(S: TrajectoryArray, y: NDArray[Any]) -> pd.DataFrame:
    """Return the AUROC with the turns of both sides, of the agent alone, and of the user alone."""
    is_agent, calls = (S[name].cells.ravel() for name in ("is_agent", "tool_calls"))
    table = {}
    for actors, counted in (
        ("both", np.ones(len(calls))), ("agent", is_agent), ("user", 1 - is_agent),
    ):  # fmt: skip
        risks = {
            "TRACER": TracerScorer(actors=actors).fit_transform(S),
            "run length": S.with_cells(running_sum(S, counted)),
            "tool calls": S.with_cells(running_sum(S, counted * calls)),
        }
        table[actors] = {name: judged(risk, y)["auroc"] for name, risk in risks.items()}
    return pd.DataFrame(table)


def aggregation_ablation(S: TrajectoryArray, y: NDArray[Any]) -> pd.DataFrame:
    """Judge the four aggregations; NaN for "multiplicative" where a run has no surprisal."""
    recorded = ~np.isnan(S["surprisal"].cells.ravel())
    everywhere = np.logical_or.reduceat(recorded, S.offsets[:-1]).all()
    rows = {}
    for aggregation in ("max", "additive", "multiplicative", "separate"):
        rows[aggregation] = dict.fromkeys(MEASURES, np.nan)
        if aggregation != "multiplicative" or everywhere:
            rows[aggregation] = values(TracerScorer(aggregation=aggregation), S, y)
    return pd.DataFrame.from_dict(rows, orient="index")


def values(scorer: Any, S: TrajectoryArray, y: NDArray[Any]) -> dict[str, float]:
    """Judge the risk of a scorer."""
    return judged(scorer.fit_transform(S), y)


def judged(risk: TrajectoryArray, y: NDArray[Any]) -> dict[str, float]:
    """Judge a risk."""
    statistic = all_at_once(measures(y, risk))
    return dict(zip(MEASURES, statistic(np.ones(len(y))).tolist(), strict=True))


def main() -> None:
    """Print both tables of each log."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--embedder", default="char")
    args = parser.parse_args()
    for path in args.logs:
        log = load(path)
        S = TracerSignals(args.embedder).fit_transform(log.runs)
        print(f"\n== {path.name}, {args.embedder}: AUROC by whose turns count, and by aggregation")
        print(actor_ablation(S, log.y).round(3).to_string())
        print(aggregation_ablation(S, log.y).round(3).to_string())


if __name__ == "__main__":
    main()
