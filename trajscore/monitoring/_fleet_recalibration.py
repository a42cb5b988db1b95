"""A map of forecasts fitted since a change, and what it gains."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trajscore.calibration import PlattCrossFitCalibrator
from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import CENSORED
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import number_of
from trajscore.inference import influence_interval
from trajscore.metrics import tps_samples
from trajscore.monitoring._persistence import save_fitted

_LEAST = 20  # runs of each outcome
_FOLDS = 5


class Recalibration(NamedTuple):
    """A calibrator, and its gain in log score on runs that it was not fitted on."""

    calibrator: PlattCrossFitCalibrator  # fitted on all runs
    gain: float  # in nats a run
    low: float  # ends of its 95% interval
    high: float
    n_runs: int

    def save(self, path: str | Path) -> None:
        """Write the calibrator to a .skops file."""
        save_fitted(self.calibrator, Path(path))

    def __str__(self) -> str:
        span = f"{self.gain:+.3f} nats a run (95% interval {self.low:+.3f} to {self.high:+.3f})"
        if self.low > 0:
            return f"Recalibrating gains {span}; use the new map."
        if self.high < 0:
            return f"Recalibrating loses {-self.gain:.3f} nats a run; keep the old map."
        return f"Recalibrating may gain nothing: {span}; collect more outcomes."


def recalibration(
    X: TrajectoryArray, y: IntArray, groups: ArrayLike | None = None
) -> Recalibration:
    """Fit a map on runs with an outcome, and judge it by cross-fitting."""
    known = y != CENSORED
    X, y = X[known], y[known]
    groups = None if groups is None else np.asarray(groups)[known]
    for outcome, plural in ((1, "successes"), (0, "failures")):
        if (n := int((y == outcome).sum())) < _LEAST:
            raise ValueError(
                f"there are {n} {plural} in {number_of(len(y), 'run')} after the alarm; a new map "
                f"needs {_LEAST} of each outcome, so wait for more runs"
            )
    options: dict[str, Any] = {} if groups is None else {"groups": groups}
    calibrator = PlattCrossFitCalibrator(cv=_FOLDS)
    recalibrated = calibrator.fit_transform(X, y, **options)
    gains = tps_samples(y, recalibrated) - tps_samples(y, X)
    gain = gains.mean()
    low, high = influence_interval(gain, gains - gain, groups=groups)
    return Recalibration(calibrator, float(gain), float(low), float(high), len(y))
