"""Time of the CORP decomposition and the Murphy curve over a million steps.

python benchmarks/decomposition.py [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from timing import median_seconds
from trajscore import TrajectoryArray
from trajscore.metrics import murphy_curve, tps_decomposition

LONGEST = 244


def runs_of(n_cells: int) -> tuple[TrajectoryArray, np.ndarray]:
    """Runs of 1 to 244 steps whose forecasts are informative and distinct."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, LONGEST + 1, n_cells)
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), n_cells))]
    lengths = np.append(lengths, n_cells - lengths.sum())
    q = rng.random(len(lengths))
    noisy = np.repeat(q, lengths) + rng.normal(0, 0.2, n_cells)
    return TrajectoryArray(1 / (1 + np.exp(2 - 4 * noisy)), lengths), rng.random(len(q)) < q


def main() -> None:
    """Print one line a task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    n_cells = 100_000 if parser.parse_args().quick else 1_000_000
    X, y = runs_of(n_cells)
    print(f"{len(X.cells):,} steps of {len(X):,} runs, at most {X.shape[1]}")
    tasks: dict[str, Callable[[], object]] = {
        "tps_decomposition, log": lambda: tps_decomposition(y, X),
        "tps_decomposition, brier": lambda: tps_decomposition(y, X, score="brier"),
        "tps_decomposition, beta(2,4)": lambda: tps_decomposition(y, X, score=("beta", 2, 4)),
        "tps_decomposition, log, by step": lambda: tps_decomposition(y, X, by="step"),
        "murphy_curve, 199 thresholds": lambda: murphy_curve(y, X),
    }
    for name, task in tasks.items():
        seconds = median_seconds(task)
        verdict = "ok" if seconds <= 2 else "MISSED"
        print(f"{name:<34} {seconds:6.3f} s  target 2 s  {verdict}", flush=True)


if __name__ == "__main__":
    main()
