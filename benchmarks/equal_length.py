"""Whether comparisons at one step and at equal length hold what they say.

    python benchmarks/equal_length.py [--repeats 2000]

How often the 95% interval of AUROC over pairs of one stratum holds the true value: runs of
one stratum, as at a step, and of many, as at equal length, with as few as 10 runs of an outcome.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from trajscore.calibration.fixed_step import auroc_estimate
from trajscore.core.equal_length import has_both, runs_with_a_partner
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


def main() -> None:
    """Print the coverage."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=2000)
    args = parser.parse_args()
    print("runs, strata, success rate: coverage of 95% intervals, mean width, used")
    for size in SIZES:
        for shift in (0.0, 0.8):
            holds, width, used = coverage(size, shift, args.repeats)
            truth = norm.cdf(shift / np.sqrt(2))
            print(f"{size}, true AUROC {truth:.2f}: {holds:.3f} {width:.2f} {used}")


if __name__ == "__main__":
    main()
