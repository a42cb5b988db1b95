"""Whether comparisons at one step and at equal length hold what they say.

    python benchmarks/equal_length.py [--repeats 2000]

First, how often the 95% interval of AUROC over pairs of one stratum holds the true value: runs of
one stratum, as at a step, and of many, as at equal length, with as few as 10 runs of an outcome.
Then what forecasts that know nothing get: their AUROC at a late step, over all pairs and over
pairs of one fold, when they are learned in five folds by task, and tasks differ.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.model_selection import StratifiedGroupKFold

from trajscore import PrefixForecaster, TrajectoryArray
from trajscore.calibration import cross_fit_traces
from trajscore.calibration._cross_fit import folds_of
from trajscore.calibration.fixed_step import auroc_estimate
from trajscore.core.equal_length import at_step, has_both, runs_with_a_partner
from trajscore.inference.mean_intervals import interval_of

Floats = NDArray[np.float64]
# runs, strata, success rate
SIZES = ((22, 1, 0.5), (44, 1, 0.5), (200, 1, 0.3), (44, 12, 0.5), (200, 30, 0.4), (1000, 30, 0.3))


def coverage(size: tuple[int, int, float], shift: float, repeats: int) -> tuple[float, float, int]:
    """Return the share of intervals that hold the truth, their width, and how many there were."""
    n_runs, n_strata, rate = size
    rng, truth, found = np.random.default_rng(0), norm.cdf(shift / np.sqrt(2)), []
    for _ in range(repeats):
        stratum = rng.integers(0, n_strata, n_runs)
        y = (rng.random(n_runs) < rate).astype(float)
        runs = runs_with_a_partner(y, stratum)
        if has_both(y[runs]):
            confidence = rng.normal(size=len(runs)) + shift * y[runs]
            estimate = auroc_estimate(confidence, y[runs], stratum[runs])
            _, low, high = interval_of(*estimate, None, 0.95, on_logit=True)
            found.append((low <= truth <= high, high - low))
    holds, width = np.mean(found, axis=0)
    return holds, width, len(found)


def knows_nothing(seed: int, t: int = 15) -> tuple[float, float]:
    """Return AUROC at step t over all pairs and within folds, of a forecast learned from noise."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(40), 5)
    y = (rng.random(200) < rng.beta(1, 1.5, 40)[task]).astype(int)
    lengths = rng.integers(4, 24, 200)
    X = TrajectoryArray(rng.normal(size=lengths.sum()), lengths)
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
    forecaster = PrefixForecaster(features="last", last=1, pooled=True)
    traces = cross_fit_traces(forecaster, X, y, groups=task, cv=folds)
    runs, p = at_step(traces, t)
    of_runs, one = y[runs].astype(float), np.zeros(len(runs), dtype=np.int64)
    over_all, _ = auroc_estimate(p, of_runs, one)
    within, _ = auroc_estimate(p, of_runs, folds_of(traces)[runs])
    return over_all, within


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=2000)
    args = parser.parse_args()
    print("runs, strata, success rate: coverage of 95% intervals, mean width, used")
    for size in SIZES:
        for shift in (0.0, 0.8):
            holds, width, used = coverage(size, shift, args.repeats)
            truth = norm.cdf(shift / np.sqrt(2))
            print(f"{size}, true AUROC {truth:.2f}: {holds:.3f} {width:.2f} {used}")
    found = np.array(
        [knows_nothing(seed) for seed in range(1000, 1000 + max(1, args.repeats // 5))]
    )
    error = found.std(axis=0) / np.sqrt(len(found))
    for name, mean, one in zip(
        ("all pairs", "within folds"), found.mean(axis=0), error, strict=True
    ):
        print(f"a forecast that knows nothing, at step 15, {name}: AUROC {mean:.3f} +- {one:.3f}")


if __name__ == "__main__":
    main()
