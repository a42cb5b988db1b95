"""How far are forecasts of real runs from the true chance of success, and which score shows it?

    python benchmarks/truth.py [--out docs/stored/truth.json] [--draws 300]

Of the family "parcel" the true chance is known (`load_real_runs`). Forecasts are out of fold.
Are differences of Trajectory Proper Scores those of distances (`regret`)? And which other metrics?
"""

import json
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from shared import options, show
from trajscore import TrajectoryArray, calibration
from trajscore.core.weights import step_weights
from trajscore.datasets import load_real_runs
from trajscore.inference import bootstrap, compare_predictors
from trajscore.metrics import regret, tps_samples, trajectory_diagnostics

OWN = {"weights": "linear_front", "horizon": "own"}  # the paper's weights
LEANING = ", own weights"  # recalibrated by them
TRUTH = "truth"
BASE = "base rate"
SCORES = ("log", "brier")
METRICS = ("distance", "TPS", "own weights", "AUROC", "T-ECE")
SETS = {"both": None, "gemma3_270m": "gemma3_270m", "smollm2_135m": "smollm2_135m"}


def filled(X: TrajectoryArray) -> TrajectoryArray:
    """Return a signal whose missing values hold the last one, or the median before the first."""
    return X.with_cells(np.nan_to_num(X.ffill().cells, nan=np.nanmedian(X.cells)))


def forecasts(X: TrajectoryArray, y: np.ndarray, tasks: np.ndarray) -> dict[str, TrajectoryArray]:
    """Return the traces of each forecaster, out of fold by task."""
    fit = partial(calibration.cross_fit_traces, y=y, groups=tasks)
    rate = np.average(np.repeat(y, X.lengths), weights=step_weights(X.lengths))
    Map = calibration.EnsembleCrossFitCalibrator
    traces = {name: fit(Map(), filled(X[name])) for name in X.channels}
    traces |= {name + LEANING: fit(Map(**OWN), filled(X[name])) for name in X.channels}
    return traces | {
        "all together": fit(calibration.CombinedForecaster(), X),
        "alive rate": fit(calibration.AliveRate(), X),
        "alive rate, end known": fit(calibration.AliveRate(end="step"), X),
        BASE: X[X.channels[0]].with_cells(np.full(len(X.cells), rate)),
    }


def against(reference: str, samples: dict, tasks: np.ndarray) -> dict[str, list[float]]:
    """Return the mean of each sample less that of the reference, with intervals that all hold."""
    rows = compare_predictors(samples, reference=reference, groups=tasks, random_state=0)
    return {row.predictor: [row.difference, row.low, row.high] for row in rows.itertuples()}


def agreement(sums: dict, tasks: np.ndarray) -> dict:
    """Of scores plus distances, whose means are one number: how far do all pairs differ?"""
    pairs = compare_predictors(sums, groups=tasks, random_state=0)
    z = (pairs["difference"] / pairs["std_error"]).abs()
    return {
        "n_pairs": len(z),
        "n_intervals_hold": int(((pairs["low"] <= 0) & (pairs["high"] >= 0)).sum()),
        "n_beyond_two": int((z > 2).sum()),
        "largest_z": z.max(),
        "smallest_p_holm": pairs["p_holm"].min(),
        "largest_difference": pairs["difference"].abs().max(),
    }


def values(losses, early, own, divisor, traces, y, counts: np.ndarray) -> np.ndarray:
    """Return what each metric says of each forecast, higher is better, if runs count so often."""
    of_runs = [
        [trajectory_diagnostics(y, F, sample_weight=often)[["AUROC", "T-ECE"]] for F in traces]
        for often in counts
    ]
    ranked, binned = np.transpose(np.array(of_runs), (2, 0, 1))
    early, losses = (counts @ sums / (counts @ divisor[:, None]) for sums in (early, losses))
    own = counts @ own / counts.sum(axis=1, keepdims=True)
    return np.stack([-losses, early, own, ranked, -binned], axis=1)


def orders(statistic, n_runs: int, names: list[str], **options) -> dict:
    """Hold the order of each metric against that by distance; pairs clearly turned round."""
    (real,) = statistic(np.ones((1, n_runs)))
    drawn = bootstrap(statistic, n_runs, random_state=0, **options)
    first, second = np.array([*combinations(range(len(names)), 2)]).T
    difference = real[:, first] - real[:, second]
    is_clear = np.abs(difference) > 2 * (drawn[:, :, first] - drawn[:, :, second]).std(axis=0)
    rows = {}
    for k, metric in enumerate(METRICS):
        taus = [kendalltau(draw[0], draw[k]).statistic for draw in drawn]
        turned = difference[0] * difference[k] < 0
        rows[metric] = {
            "tau": [kendalltau(real[0], real[k]).statistic, *np.quantile(taus, [0.025, 0.975])],
            "n_turned": int(turned.sum()),
            "n_clear": int((turned & is_clear[0] & is_clear[k]).sum()),
            "values": dict(zip(names, real[k], strict=True)),
        }
    return rows


def of_set(model: str | None, n_draws: int) -> dict:
    """Return all figures of the runs of one model, or both."""
    real = load_real_runs(model=model, task="parcel")
    X, y, q = real.data, real.target, real.q
    tasks = X.meta["question"].to_numpy()
    traces = forecasts(X, y, tasks)
    divisor = np.add.reduceat(step_weights(X.lengths), X.offsets[:-1])
    unit, every = divisor.mean(), {TRUTH: q, **traces}
    distance, agreed = {}, {}
    for score in SCORES:
        lost = {name: regret(q, F, score=score) for name, F in every.items()}
        of_ratios = {name: own - own.mean() * (divisor / unit - 1) for name, own in lost.items()}
        distance[score] = against(TRUTH, of_ratios, tasks)
        scored = {n: tps_samples(y, F, score=score, normalize=False) for n, F in every.items()}
        sums = {name: scored[name] / unit + lost[name] for name in every}
        agreed[score] = agreement(sums, tasks)
    forecast = traces.values()
    losses = np.transpose([regret(q, F) * unit for F in forecast])
    early = np.transpose([tps_samples(y, F, normalize=False) for F in forecast])
    own = np.transpose([tps_samples(y, F, **OWN) for F in forecast])
    statistic = partial(values, losses, early, own, divisor, forecast, y)
    return {
        "n_runs": len(y),
        "n_tasks": len(np.unique(tasks)),
        "success": float(y.mean()),
        "margin": against(BASE, {name: tps_samples(y, F) for name, F in every.items()}, tasks),
        "distance": distance,
        "agreement": agreed,
        "orders": orders(statistic, len(y), list(traces), n_resamples=n_draws, groups=tasks),
    }


def main() -> None:
    args = options(__doc__, draws=300, out=Path)
    figures = {name: of_set(model, args.draws) for name, model in SETS.items()}
    for name, own in figures.items():
        table = pd.DataFrame({key: row["values"] for key, row in own["orders"].items()})
        show(name, table.sort_values(METRICS[0], ascending=False), 4)
        show("Agreement", pd.DataFrame(own["agreement"]).T)
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
