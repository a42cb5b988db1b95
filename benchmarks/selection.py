"""Several trials of a task, one to be taken: by which score?

    python benchmarks/selection.py LOG [LOG ...]

For each log with several trials a task (runs with an outcome only): the success rate of any trial,
and what taking the one with the highest score gains, with a 95% interval over tasks. The scores:

length        the shortest run
actions       the last forecast of `ActionSignals`, fitted on other tasks
TRACER        the lowest risk
agreement     in how many other trials the same calls were made that change something, in any order
agreement     the same, and among those the highest forecast of actions
and actions

`best` is what a perfect score gains. AUROC is over all runs of the log.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from trajscore import ActionSignals, PrefixForecaster, TracerScorer, TracerSignals, io
from trajscore.calibration import cross_fit_traces
from trajscore.inference import influence_interval
from trajscore.metrics import aggregate, selection_gain
from trajscore.tracer._tools import is_write

Floats = NDArray[np.float64]


def writes(run: io.Run) -> frozenset[tuple[str, int]]:
    """Return the calls of a run that change something, with how often each was made."""
    calls = [call for step in run.steps for call in step.tool_calls if is_write(call.name)]
    texts = [json.dumps([call.name, call.arguments], sort_keys=True, default=str) for call in calls]
    return frozenset(Counter(texts).items())


def agreement(runs: list[io.Run], tasks: NDArray[Any]) -> Floats:
    """Return how many other trials of its task each run agrees with."""
    keys = pd.Series([writes(run) for run in runs])
    return keys.groupby([tasks, keys]).transform("size").to_numpy(float) - 1


def scores_of(runs: list[io.Run], y: NDArray[Any], tasks: NDArray[Any]) -> dict[str, Floats]:
    """Return a number a run for each way to choose."""
    forecaster = make_pipeline(
        ActionSignals(), PrefixForecaster(features="last", last=1, pooled=True, end="step")
    )
    actions = aggregate(cross_fit_traces(forecaster, runs, y, groups=tasks), "last")
    risk = make_pipeline(TracerSignals(), TracerScorer()).fit(runs).score_samples(runs)
    agreeing = agreement(runs, tasks)
    return {
        "length": -np.array([len(run.steps) for run in runs], dtype=float),
        "actions": actions,
        "TRACER": -np.asarray(risk),
        "agreement": agreeing,
        "agreement and actions": agreeing + actions,
    }


def main() -> None:
    """Print a table for each log."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG")
    for log in parser.parse_args().logs:
        runs = [run for run in io.read_runs(log) if run.outcome in (0, 1)]
        y = np.array([run.outcome for run in runs])
        tasks = np.array([run.task for run in runs]).astype(str)
        rows = []
        for name, score in scores_of(runs, y, tasks).items():
            table = selection_gain(y, score, tasks)
            gain = table["gain"]
            low, high = influence_interval(gain.mean(), gain - gain.mean())
            auroc = roc_auc_score(y, score)
            rows.append([name, table["chosen"].mean(), gain.mean(), float(low), float(high), auroc])
        means = table.mean()
        print(
            f"{log.name}: {len(runs)} runs of {len(table)} tasks; any trial {means['any']:.3f}, "
            f"the best {means['best']:.3f}"
        )
        columns = ["score", "chosen", "gain", "low", "high", "AUROC"]
        print(pd.DataFrame(rows, columns=columns).set_index("score").round(3).to_string())


if __name__ == "__main__":
    main()
