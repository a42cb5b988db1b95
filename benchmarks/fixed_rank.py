"""Ranks held fixed: what rank metrics cannot see of a change of scale.

    python benchmarks/fixed_rank.py [TABLE.csv.gz]

One number a run, from the raw trace, is ranked in every row; only the forecasts that the Trajectory
Proper Score reads are transformed: as they are, pressed into [.4, .6], their square root, their
square, and calibrated out of fold (Appendix E of Raghu et al., 2026). AUROC, AUPRC and AURC are
the same in all rows by construction, so what the score tells more is no effect of calibration.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from censoring_shift import load
from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.metrics import tps_score, trajectory_diagnostics

# weights over the length of each run, as in the paper
PUBLISHED = {"weights": "linear_front", "horizon": "own"}


def table(X: TrajectoryArray, y: np.ndarray) -> pd.DataFrame:
    """Return fixed rank metrics and scores by transform.

    Parameters
    ----------
    X : TrajectoryArray
        Forecasts in [0, 1].
    y : ndarray
        Outcomes.

    Returns
    -------
    DataFrame
        One row a transform, and the base rate.
    """
    ranked = trajectory_diagnostics(y, X)[["AUROC", "AUPRC", "AURC"]]
    cells = {
        "as they are": X.cells,
        "0.4 + 0.2 x": 0.4 + 0.2 * X.cells,
        "square root": np.sqrt(X.cells),
        "square": X.cells**2,
        "Platt, out of fold": PlattCrossFitCalibrator(**PUBLISHED).fit_transform(X, y).cells,
    }
    scores = {name: tps_score(y, X.with_cells(one), **PUBLISHED) for name, one in cells.items()}
    rows = pd.DataFrame([ranked] * len(scores), index=scores.keys())
    rows["TPS log"] = scores
    constant = X.with_cells(np.full(len(X.cells), y.mean()))
    rows.loc["base rate"] = [0.5, 1 - y.mean(), 1 - y.mean(), tps_score(y, constant, **PUBLISHED)]
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", nargs="?")
    print(table(*load(parser.parse_args().table)).round(4).to_string())


if __name__ == "__main__":
    main()
