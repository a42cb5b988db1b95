"""The classification table of the ECUAS paper (Table 3) for every score set in a folder.

    python benchmarks/ecuas_table.py FOLDER

FOLDER holds NAME/scores.npy (log-scores or logits) and NAME/targets.npy, as the public repository
luferrer/expected_cost does. "raw" takes the softmax of the scores; "cal" an affine calibration
inside five-fold cross-validation (seed 42), with the spread over ten other seeds below.
N-BS_qe is printed as the paper prints it, twice the normalised Brier score of the confidence.
The ECE of CIFAR-10 with ResNet-20, "cal", comes out as .0071 (.00706, the fit run to convergence)
where the paper prints .0070; an optimiser stopped at a gradient of 1e-5 gives .00698.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.special import log_softmax
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from trajscore.calibration import AffineCalibrator
from trajscore.metrics import Answers

# as printed, and as `Answers.metrics` calls them
COLUMNS = {
    "N-ER": "N-ER", "ECE": "ECE", "AUC": "AUC", "N-CE_qe": "N-CE of confidence",
    "N-BS_qe": "N-BS of confidence", "N-CE_q": "N-CE", "N-BS_q": "N-BS", "AURC": "AURC",
    "n=0": "N-ECUAS_0", "n=1": "N-ECUAS_1", "n=128": "N-ECUAS_128",
}  # fmt: skip


def row(y: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """One row of the table."""
    table = Answers.from_proba(y, log_p, log_proba=True).metrics(rule="trapezoid")
    table["N-BS of confidence"] *= 2
    return table[list(COLUMNS.values())].to_numpy()


def calibrated(y: np.ndarray, log_p: np.ndarray, seed: int) -> np.ndarray:
    """Out-of-fold calibrated log-probabilities."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    P = cross_val_predict(AffineCalibrator(), log_p, y, cv=folds, method="predict_proba")
    return np.log(P)


def main() -> None:
    """Print the table."""
    print(f"{'':32}" + "".join(f"{name:>9}" for name in COLUMNS))
    for folder in sorted(path.parent for path in Path(sys.argv[1]).glob("*/scores.npy")):
        log_p = log_softmax(np.load(folder / "scores.npy").astype(np.float64), axis=1)
        y = np.load(folder / "targets.npy").ravel().astype(np.int64)
        rows = {
            "raw": row(y, log_p),
            "cal": row(y, calibrated(y, log_p, 42)),
        }
        others = np.array([row(y, calibrated(y, log_p, seed)) for seed in range(10)])
        rows["cal spread"] = np.ptp(others, axis=0)
        for name, values in rows.items():
            print(f"{folder.name + ' ' + name:32}" + "".join(f"{x:9.4f}" for x in values))


if __name__ == "__main__":
    main()
