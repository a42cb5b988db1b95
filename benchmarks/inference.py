"""Speed of the inference tools at the size of HotpotQA, against the target of 3 seconds.

    python benchmarks/inference.py [--repeats 5] [--jobs 2]

16,110 runs x 12 predictors, 10,000 replicates: in tasks of 5 trials, and with each run its own
cluster. The table shows the median wall time.
"""

from __future__ import annotations

import argparse

import numpy as np

from timing import against_target, median_seconds
from trajscore.inference import SequentialComparison, compare_predictors, paired_bootstrap

N_RUNS, N_PREDICTORS = 16_110, 12


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    task = np.arange(N_RUNS) // 5
    samples = rng.normal(size=(N_RUNS, N_PREDICTORS)) + rng.normal(size=(task[-1] + 1, 1))[task]
    columns = {f"predictor {k}": column for k, column in enumerate(samples.T)}
    options = {"random_state": 0, "n_resamples": 10_000, "n_jobs": args.jobs}
    for name, groups in (("tasks of 5", task), ("clusters of 1", np.arange(N_RUNS))):
        for method in ("percentile", "bca"):
            seconds = median_seconds(
                lambda method=method, groups=groups: paired_bootstrap(
                    samples, reference=0, groups=groups, method=method, **options
                ),
                args.repeats,
            )
            against_target(f"paired_bootstrap, {method}, {name}", seconds, "s", 3)
        for reference, pairs in (("predictor 0", 11), (None, 66)):
            seconds = median_seconds(
                lambda reference=reference, groups=groups: compare_predictors(
                    columns, reference=reference, groups=groups, **options
                ),
                args.repeats,
            )
            against_target(
                f"compare_predictors, {pairs} simultaneous pairs, {name}", seconds, "s", 3
            )
    a, b = rng.random((2, N_RUNS))
    seconds = median_seconds(
        lambda: SequentialComparison(bound=1).update(a, b).history(), args.repeats
    )
    against_target(f"SequentialComparison.history, {N_RUNS:,} runs", seconds, "s", 3)


if __name__ == "__main__":
    main()
