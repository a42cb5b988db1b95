"""The classification table of the ECUAS paper (Table 3) for every score set in a folder.

    python benchmarks/ecuas_table.py FOLDER

FOLDER holds NAME/scores.npy (log-scores or logits) and NAME/targets.npy, as the public repository
luferrer/expected_cost does. "raw" takes the softmax of the scores; "cal" an affine calibration
inside five-fold cross-validation (seed 42), with the spread over ten other seeds below.
N-BS_qe is printed as the paper prints it, twice the normalised Brier score of the confidence.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from trajscore import metrics
from trajscore.calibration import AffineCalibrator

COLUMNS = (
    "N-ER", "ECE", "AUC", "N-CE_qe", "N-BS_qe", "N-CE_q", "N-BS_q", "AURC", "n=0", "n=1", "n=128",
)  # fmt: skip


def row(y: np.ndarray, P: np.ndarray) -> np.ndarray:
    """One line of the table."""
    K = P.shape[1]
    correct, confidence = (P.argmax(axis=1) == y).astype(float), P.max(axis=1)
    prior = np.bincount(y, minlength=K) / len(y)
    onehot = np.eye(K)[y]
    happened = np.clip(P[np.arange(len(y)), y], 1e-300, None)
    used = prior[prior > 0]
    return np.array(
        [
            (1 - correct.mean()) / (1 - prior.max()),
            metrics.confidence_ece(correct, confidence),
            roc_auc_score(correct, confidence),
            metrics.confidence_log_loss(correct, confidence, normalize=True),
            2 * metrics.confidence_brier(correct, confidence, normalize=True),
            -np.log(happened).mean() / -(used * np.log(used)).sum(),
            ((P - onehot) ** 2).sum(axis=1).mean() / (1 - (prior**2).sum()),
            metrics.aurc(correct, confidence),
            *(metrics.ecuas_score(y, P, n=n, normalize=True) for n in (0, 1, 128)),
        ]
    )


def calibrated(y: np.ndarray, log_p: np.ndarray, seed: int) -> np.ndarray:
    """Out-of-fold calibrated probabilities."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(AffineCalibrator(), log_p, y, cv=folds, method="predict_proba")


def main() -> None:
    """Print the table."""
    print(f"{'':32}" + "".join(f"{name:>9}" for name in COLUMNS))
    for folder in sorted(path.parent for path in Path(sys.argv[1]).glob("*/scores.npy")):
        log_p = log_softmax(np.load(folder / "scores.npy").astype(np.float64), axis=1)
        y = np.load(folder / "targets.npy").ravel().astype(np.int64)
        lines = {
            "raw": row(y, np.exp(log_p)),
            "cal": row(y, calibrated(y, log_p, 42)),
        }
        others = np.array([row(y, calibrated(y, log_p, seed)) for seed in range(10)])
        lines["cal spread"] = np.ptp(others, axis=0)
        for name, values in lines.items():
            print(f"{folder.name + ' ' + name:32}" + "".join(f"{x:9.4f}" for x in values))


if __name__ == "__main__":
    main()
