"""How far is each forecast of real runs from the true chance of success, and which score shows it?

    python benchmarks/truth.py [--out docs/stored/truth.json] [--draws 1000]

In the bundled runs of the family "parcel" the true chance of success after each step is known
(`load_real_runs(task="parcel").q`). Out of fold, by task: each signal recalibrated, with step
weights and with those of the paper, all signals together, counting steps and the base rate. Of each
the distance to the truth (`regret`, log score and squared error), with intervals that hold at once;
whether differences of Trajectory Proper Scores are differences of distance; and in which order
AUROC, T-ECE and the paper's own-length weights put the forecasts.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from shared import options, show
from together import filled
from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import (
    AliveRate,
    CombinedForecaster,
    EnsembleCrossFitCalibrator,
    cross_fit_traces,
)
from trajscore.core.weights import step_weights
from trajscore.datasets import load_real_runs
from trajscore.inference import bootstrap, compare_predictors
from trajscore.metrics import regret, tps_samples, tps_score, trajectory_diagnostics

OWN = {"weights": "linear_front", "horizon": "own"}  # the paper's weights
TRUTH = "truth"
BASE = "base rate"
LEANING = ", own weights"  # recalibrated by the paper's weights
SCORES = ("log", "brier")
METRICS = ("distance", "TPS", "own weights", "AUROC", "T-ECE")
SETS = {"both": None, "gemma3_270m": "gemma3_270m", "smollm2_135m": "smollm2_135m"}


def forecasts(X: TrajectoryArray, y: np.ndarray, tasks: np.ndarray) -> dict[str, TrajectoryArray]:
    """Return the traces of each forecaster, out of fold by task."""
    fit = partial(cross_fit_traces, y=y, groups=tasks)
    rate = np.average(np.repeat(y, X.lengths), weights=step_weights(X.lengths))
    traces = {name: fit(EnsembleCrossFitCalibrator(), filled(X[name])) for name in X.channels}
    traces |= {
        name + LEANING: fit(PlattCrossFitCalibrator(**OWN), filled(X[name])) for name in X.channels
    }
    return traces | {
        "all together": fit(CombinedForecaster(), X),
        "alive rate": fit(AliveRate(), X),
        "alive rate, end known": fit(AliveRate(end="step"), X),
        BASE: X[X.channels[0]].with_cells(np.full(len(X.cells), rate)),
    }


def against(reference: str, samples: dict, tasks: np.ndarray) -> dict[str, list[float]]:
    """Return the mean of each sample less that of the reference, with intervals that all hold."""
    rows = compare_predictors(samples, reference=reference, groups=tasks, random_state=0)
    return {row.predictor: [row.difference, row.low, row.high] for row in rows.itertuples()}


def agreement(q: TrajectoryArray, y: np.ndarray, traces: dict, tasks: np.ndarray, score: str):
    """Return, for all pairs, whether the score's difference is that of the distances."""
    weight = step_weights(q.lengths).sum() / len(q)  # of a run
    sums = {
        name: tps_samples(y, F, score=score, normalize=False) / weight + regret(q, F, score=score)
        for name, F in {TRUTH: q, **traces}.items()
    }
    pairs = compare_predictors(sums, groups=tasks, random_state=0)
    z = pairs["difference"] / pairs["std_error"]
    return {
        "n_pairs": len(z),
        "n_held": int(((pairs["low"] <= 0) & (pairs["high"] >= 0)).sum()),
        "n_beyond_two": int((z.abs() > 2).sum()),
        "largest_z": z.abs().max(),
        "largest_difference": pairs["difference"].abs().max(),
        "smallest_p_holm": pairs["p_holm"].min(),
        "z": z.tolist(),
    }


def values(q: TrajectoryArray, y: np.ndarray, traces: dict, counts: np.ndarray) -> np.ndarray:
    """Return what each metric says of each forecast, higher is better, if runs count so often."""
    tables = []
    for often in counts:
        drawn = np.repeat(np.arange(len(y)), often.astype(int))
        rows = []
        for F in traces.values():
            table = trajectory_diagnostics(y, F, sample_weight=often)
            rows.append(
                [
                    -regret(q[drawn], F[drawn]).mean(),
                    tps_score(y, F, sample_weight=often),
                    tps_score(y, F, sample_weight=often, **OWN),
                    table["AUROC"],
                    -table["T-ECE"],
                ]
            )
        tables.append(np.transpose(rows))
    return np.array(tables)


def orders(q, y, traces: dict, tasks: np.ndarray, n_draws: int) -> dict[str, dict]:
    """Hold the order of each metric against that by distance; pairs turned round beyond doubt."""
    (real,) = values(q, y, traces, np.ones((1, len(y))))
    drawn = bootstrap(
        partial(values, q, y, traces), len(y), n_resamples=n_draws, groups=tasks, random_state=0
    )
    first, second = np.array([*combinations(range(len(traces)), 2)]).T
    difference = real[:, first] - real[:, second]
    z = difference / (drawn[:, :, first] - drawn[:, :, second]).std(axis=0)
    rows = {}
    for k, metric in enumerate(METRICS[1:], 1):
        taus = [kendalltau(draw[0], draw[k]).statistic for draw in drawn]
        turned = difference[0] * difference[k] < 0
        rows[metric] = {
            "tau": [kendalltau(real[0], real[k]).statistic, *np.quantile(taus, [0.025, 0.975])],
            "n_turned": int(turned.sum()),
            "n_beyond_doubt": int((turned & (np.abs(z[[0, k]]) > 2).all(axis=0)).sum()),
            "values": dict(zip(traces, np.abs(real[k]) if k > 2 else real[k], strict=True)),
        }
    return rows


def of_set(model: str | None, n_draws: int) -> dict:
    """Return all figures of the runs of one model, or both."""
    real = load_real_runs(model=model, task="parcel")
    X, y, q = real.data, real.target, real.q
    tasks = X.meta["question"].to_numpy()
    traces = forecasts(X, y, tasks)
    divisor = np.add.reduceat(step_weights(X.lengths), X.offsets[:-1])
    distance = {}
    for score in SCORES:
        losses = {name: regret(q, F, score=score) for name, F in {TRUTH: q, **traces}.items()}
        share = divisor / divisor.mean() - 1
        samples = {name: loss - loss.mean() * share for name, loss in losses.items()}
        distance[score] = against(TRUTH, samples, tasks)
    scores = {name: tps_samples(y, F) for name, F in {TRUTH: q, **traces}.items()}
    before = np.setdiff1d(np.arange(len(q.cells)), q.offsets[1:] - 1)
    return {
        "n_runs": len(y),
        "n_tasks": len(np.unique(tasks)),
        "n_steps": len(q.cells),
        "success": float(y.mean()),
        "n_before_the_last": len(before),
        "certain_before_the_last": float((q.cells[before] == 1).mean()),
        "margin": against(BASE, scores, tasks),
        "distance": distance,
        "agreement": {score: agreement(q, y, traces, tasks, score) for score in SCORES},
        "orders": orders(q, y, traces, tasks, n_draws),
    }


def main() -> None:
    """Write and print the figures."""
    args = options(__doc__, draws=500, out=Path)
    figures = {name: of_set(model, args.draws) for name, model in SETS.items()}
    for name, own in figures.items():
        table = pd.DataFrame(own["distance"]["log"], index=["distance", "low", "high"]).T
        table = table.assign(**{key: row["values"] for key, row in own["orders"].items()})
        show(name, table.sort_values("distance"), 4)
        print(own["margin"][TRUTH], own["agreement"]["log"]["largest_z"])
        show("Orders", pd.DataFrame(own["orders"]).drop("values").T)
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
