"""What an evaluation is made of: its lines, its runs, its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore.metrics._families import family_name
from trajscore.outcomes import CENSORED
from trajscore.trajectories import TrajectoryArray
from trajscore.weights import Weights

FloatArray = NDArray[np.float64]

BASE_RATE = "base rate"
LENGTH = "length"
RAW, CALIBRATED, CONSTANT = "raw", "calibrated", "constant"
RANK_METRICS = ("AUROC", "AUPRC", "AURC")
ECUAS_METRICS = {"ECUAS_0": 0, "ECUAS_1": 1, "ECUAS_128": 128}
SCALAR_METRICS = (*RANK_METRICS, "T-ECE", "T-Brier", *ECUAS_METRICS)


@dataclass(frozen=True)
class Line:
    """One line of the report: a predictor in one form, on the runs that it covers.

    Attributes
    ----------
    predictor, form : str
        Its name, and "raw", "calibrated" or "constant".
    rows : ndarray of int
        Rows of the runs that it covers.
    traces : TrajectoryArray
        Their traces.
    is_probability : bool
        Whether all values lie in [0, 1].
    """

    predictor: str
    form: str
    rows: NDArray[np.int64]
    traces: TrajectoryArray
    is_probability: bool


@dataclass(frozen=True)
class Sample:
    """The runs that count, in id order.

    Attributes
    ----------
    y, labels : ndarray of shape (n_runs,)
        Outcomes with -1 for unobserved ones, and soft outcomes.
    groups : ndarray of shape (n_runs,) or None
        Clusters.
    """

    y: NDArray[Any]
    labels: FloatArray
    groups: NDArray[Any] | None

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Whether each run's outcome was observed."""
        return self.y != CENSORED


@dataclass(frozen=True)
class Options:
    """What is computed.

    Attributes
    ----------
    scores : sequence of score families
        Trajectory Proper Scores.
    weights : str or callable
        Step weights.
    phi : str
        Aggregator.
    """

    scores: Sequence[Any]
    weights: Weights
    phi: str

    @property
    def score_names(self) -> list[str]:
        """Columns of the scores."""
        return [f"TPS {family_name(score)}" for score in self.scores]

    @property
    def metrics(self) -> list[str]:
        """Columns of all metrics."""
        return [*SCALAR_METRICS, *self.score_names]
