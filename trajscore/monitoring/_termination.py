"""How much likelier a failing run is to end here than a succeeding one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trajscore._running import last_cells, step_numbers
from trajscore.trajectories import TrajectoryArray

FloatArray = NDArray[np.float64]

# steps with a hazard of their own; later ones share a smooth one
_OWN_HAZARD = 16


class TerminationRatio:
    """Ratio P(T = t | S, T >= t, failure) / P(T = t | S, T >= t, success), one model a class.

    The value of M at the end of a run is no e-value when failing and succeeding runs differ in
    length: M compares runs that *reach* a step, not runs that end there. Multiplied by this ratio
    it is one.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore import TrajectoryArray
    >>> X = TrajectoryArray.from_list([[0.5], [0.5], [0.5, 0.5], [0.5, 0.5]] * 50)
    >>> y = np.array([1, 1, 0, 0] * 50)
    >>> ratio = TerminationRatio().fit(X, np.zeros(300), y).log_ratio(X, np.zeros(300))
    >>> bool(ratio[0] < -2 and ratio[2] > -0.1)  # at step 1 only succeeding runs end
    True
    """

    def fit(self, X: TrajectoryArray, log_m: FloatArray, y: NDArray[np.int64]) -> TerminationRatio:
        """Fit the chance that a run ends at a step that it has reached, for each outcome.

        Parameters
        ----------
        X : TrajectoryArray
            Runs.
        log_m : ndarray of shape (n_cells,)
            Logarithm of M.
        y : ndarray of int of shape (n_runs,)
            Outcomes, 0 and 1.

        Returns
        -------
        TerminationRatio
            The fitted ratio.
        """
        rows = _features(X, log_m)
        ends = np.zeros(len(rows), dtype=np.int64)
        ends[last_cells(X)] = 1
        outcome = np.repeat(y, X.lengths)
        self._models = [_fit(rows[outcome == one], ends[outcome == one]) for one in (0, 1)]
        return self

    def log_ratio(self, X: TrajectoryArray, log_m: FloatArray) -> FloatArray:
        """Return the logarithm of the ratio at the last step of each run.

        Parameters
        ----------
        X : TrajectoryArray
            Runs.
        log_m : ndarray of shape (n_cells,)
            Logarithm of M.

        Returns
        -------
        ndarray of shape (n_runs,)
            One number a run.
        """
        rows = _features(X, log_m)[last_cells(X)]
        failing, succeeding = (_log_chance(model, rows) for model in self._models)
        return failing - succeeding


def _features(X: TrajectoryArray, log_m: FloatArray) -> FloatArray:
    step = step_numbers(X)
    own = step[:, None] == np.arange(1, _OWN_HAZARD + 1)
    return np.column_stack([log_m, step, np.log(step), own])


def _fit(rows: FloatArray, ends: NDArray[np.int64]) -> object:
    if ends.all():  # every run has one step
        return None
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(rows, ends)


def _log_chance(model: object, rows: FloatArray) -> FloatArray:
    if model is None:
        return np.zeros(len(rows))
    return np.asarray(model.predict_log_proba(rows)[:, 1])  # type: ignore[attr-defined]
