"""What out-of-fold traces are for: judging forecasters, and calibrating them.

    python benchmarks/out_of_fold.py [SEEDS]

Scores and outcomes are drawn independently (300 runs of 8 steps). Boosted trees over all steps
learn the training runs by heart; their out-of-fold traces must rank runs no better than chance,
alone and as what a grid search finds.

Then runs with a signal: a calibrator that is fitted to the trees' traces of their own training runs
learns from what the trees have learned by heart; one behind the trees in a pipeline does not, as
the pipeline passes on out-of-fold traces.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from trajscore import (
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TrajectoryArray,
    evaluate,
    tps_scorer,
)
from trajscore.calibration import cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.metrics import aggregate, tps_score

TREES = PrefixForecaster(HistGradientBoostingClassifier(), features="summary", pooled=True)
FORECASTERS = {
    "trees": TREES,
    "search": GridSearchCV(TREES, {"features": ["last", "summary"]}, scoring=tps_scorer, cv=2),
}


def noise(seed: int) -> tuple[TrajectoryArray, np.ndarray]:
    """Runs whose scores say nothing of the outcome."""
    rng = np.random.default_rng(seed)
    return TrajectoryArray(rng.random(300 * 8), [8] * 300), rng.integers(0, 2, 300)


def judged(forecaster: Any, seed: int) -> dict[str, float]:
    """AUROC, in and out of fold, and the margin of the score over the base rate."""
    X, y = noise(seed)
    inside, outside = forecaster.fit(X, y).transform(X), cross_fit_traces(forecaster, X, y)
    report = evaluate({"noise": X}, y, calibrator=forecaster)
    row = report.table.loc[("noise", "recalibrated")]
    return {
        "AUROC in sample": roc_auc_score(y, aggregate(inside, "weighted")),
        "AUROC out of fold": roc_auc_score(y, aggregate(outside, "weighted")),
        "AUROC of evaluate": row["AUROC"],
        "margin over base rate": row["TPS log margin"],
        "said to be better": float(row["TPS log margin_low"] > 0),
    }


def calibrated(seed: int) -> dict[str, float]:
    """Log score of 300 new runs, by how a calibrator of the trees was fitted to 300 others."""
    runs, outcomes = make_trajectories(
        600, lengths=(3, 8), sharpness=1.5, noise=0.3, random_state=seed, return_X_y=True
    )
    X, new, y = runs[:300], runs[300:], outcomes[:300]
    chain = make_pipeline(clone(TREES), PlattCrossFitCalibrator()).fit(X, y)
    trees = chain[0]
    by_heart = PlattCrossFitCalibrator().fit(trees.transform(X), y)
    traces = {
        "none": trees.transform(new),
        "fitted in sample": by_heart.transform(trees.transform(new)),
        "in a pipeline": chain.transform(new),
        "base rate": new.with_cells(np.full(len(new.cells), y.mean())),
    }
    return {name: tps_score(outcomes[300:], trace) for name, trace in traces.items()}


def main() -> None:
    """Print mean, standard error and largest of each number over the seeds."""
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    for name, forecaster in FORECASTERS.items():
        table = pd.DataFrame([judged(forecaster, seed) for seed in seeds])
        print(f"== {name}, {len(table)} seeds")
        print(table.agg(["mean", "sem", "max"]).round(3).to_string(), "\n")
    table = pd.DataFrame([calibrated(seed) for seed in seeds])
    print(f"== calibrators of trees, {len(table)} seeds")
    print(table.agg(["mean", "sem"]).round(3).to_string())


if __name__ == "__main__":
    main()
