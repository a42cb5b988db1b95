"""Cross-fitted Platt scaling of whole traces."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import ClassifierTags

from trajscore._transformer import TraceTransformer
from trajscore.metrics._censored import soft_outcomes
from trajscore.metrics._families import CLIP
from trajscore.outcomes import CENSORED, check_outcomes
from trajscore.trajectories import TrajectoryArray
from trajscore.validation import check_estimator_input, check_sample_weight, like_input
from trajscore.weights import Weights, get_schedule, step_weights

FloatArray = NDArray[np.float64]

_SMALLEST_SCALE = 1e-6
_LINKS = ("logit", "identity")
_CENSORED = ("failure", "drop", "q_z")


@dataclass(frozen=True)
class PlattMap:
    """One fitted map p = sigmoid(intercept + slope (link(F) - center) / scale).

    Attributes
    ----------
    name : str
        The training part that it was fitted on: "A", "B", ... or "all".
    link : {"logit", "identity"}
        What is done to a value first.
    center, scale : float
        Weighted mean and standard deviation of the linked values of the training part.
    intercept, slope : float
        Fitted coefficients.
    fallback : bool
        Whether the fitted slope had the wrong sign, so that the map is the constant base rate.
    n_runs : int
        Number of training runs with a positive weight.
    base_rate : float
        Weighted success rate of the training part.
    """

    name: str
    link: str
    center: float
    scale: float
    intercept: float
    slope: float
    fallback: bool
    n_runs: int
    base_rate: float

    def __call__(self, values: ArrayLike) -> FloatArray:
        """Map raw values to probabilities.

        Parameters
        ----------
        values : array-like
            Raw values.

        Returns
        -------
        ndarray
            Probabilities in [1e-6, 1 - 1e-6], of the same shape.
        """
        x = (apply_link(np.asarray(values, dtype=np.float64), self.link) - self.center) / self.scale
        return np.clip(expit(self.intercept + self.slope * x), CLIP, 1 - CLIP)


def apply_link(values: FloatArray, link: str) -> FloatArray:
    """Return log-odds of clipped probabilities, or the values themselves.

    Parameters
    ----------
    values : ndarray
        Raw values.
    link : {"logit", "identity"}
        Which of the two.

    Returns
    -------
    ndarray
        Linked values.
    """
    if link == "identity":
        return values
    return np.asarray(logit(np.clip(values, CLIP, 1 - CLIP)))


class PlattCrossFitCalibrator(TraceTransformer, BaseEstimator):
    """Turn a per-step signal into calibrated probabilities of eventual success.

    Platt scaling over all steps, weighted with the step weights of the score, so that the
    calibrator's target is the evaluator's. Training rows get *out-of-fold* probabilities.

    .. note::
        ``fit(X, y).transform(X)`` does not equal ``fit_transform(X, y)``: the second calibrates
        every training run with a map that has not seen its outcome (scheme of scikit-learn's
        ``TargetEncoder``), the first uses the map fitted on all runs.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the penalty on the slope, lambda = 1/C; the intercept is not penalised.
    cv : int or splitter, default=2
        Number of parts of the cross-fit. Parts are made within each outcome, over runs sorted
        by id, alternating; with `groups`, by scikit-learn's ``StratifiedGroupKFold``. A splitter
        must put every run into exactly one test part.
    weights : str or callable, default="linear_front"
        Step weights; should be those of the score that judges the result.
    link : {"logit", "identity"}, default="logit"
        "logit" takes log-odds of forecasts in [0, 1], clipped to [1e-6, 1 - 1e-6]; "identity"
        takes any real signal as it is.
    censored : {"failure", "drop", "q_z"}, default="failure"
        What runs with outcome -1 are in training: failures (the pseudo-label of the simple
        censored score), left out, or the soft outcome given as `q_z`.
    increasing : bool, "auto" or None, default=None
        Direction of the map; where the data point the other way, it falls back to the constant
        base rate. "auto" takes either direction. None is True for forecasts (``link="logit"``)
        and "auto" for other signals, which may be risks as well as confidences.

    Attributes
    ----------
    maps_ : dict of str to PlattMap
        "A", "B", ...: the map *fitted on* that part, applied to the others' runs ("A" is applied
        to part B when there are two); with more parts, the map of part A is fitted on all others.
    full_map_ : PlattMap
        Fitted on all runs; used by `transform`.
    calibrated_range_ : tuple of float
        Smallest and largest out-of-fold probability.
    n_censored_, n_dropped_ : int
        Training runs without an observed outcome, and those of them (or of weight zero) left out.
    n_channels_in_ : int
        Always 1.

    See Also
    --------
    TraceAggregator : Collapses the calibrated trace for scikit-learn's own scorers.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix D.

    Examples
    --------
    >>> from trajscore import PlattCrossFitCalibrator
    >>> X, y = [[0.99, 0.95], [0.99, 0.99], [0.95, 0.9], [0.9, 0.9]], [1, 1, 0, 0]
    >>> calibrator = PlattCrossFitCalibrator().fit(X, y)
    >>> calibrator.full_map_([0.9, 0.99]).round(2)
    array([0.27, 0.74])
    """

    # q_z is for the scorer, unless `set_fit_request` says otherwise
    __metadata_request__fit = {"q_z": False}  # noqa: RUF012

    def __init__(
        self,
        C: float = 1.0,
        cv: Any = 2,
        weights: Weights = "linear_front",
        link: str = "logit",
        censored: str = "failure",
        increasing: bool | str | None = None,
    ) -> None:
        self.C = C
        self.cv = cv
        self.weights = weights
        self.link = link
        self.censored = censored
        self.increasing = increasing

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        q_z: ArrayLike | None = None,
    ) -> Self:
        """Fit the cross-fitted maps and the one on all runs.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signal, one value a step.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run; 0 leaves it out, 2 counts it twice.
        groups : array-like of shape (n_runs,), optional
            Runs of one group (say, trials of one task) stay in one part.
        q_z : float or array-like of shape (n_runs,), optional
            Soft outcomes of the runs with outcome -1, for ``censored="q_z"``.

        Returns
        -------
        PlattCrossFitCalibrator
            The fitted calibrator.

        Notes
        -----
        ``fit(X, y).transform(X)`` does not equal ``fit_transform(X, y)``; see the class.
        """
        self._fit(X, y, sample_weight, groups, q_z)
        return self

    def fit_transform(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        q_z: ArrayLike | None = None,
    ) -> Any:
        """Fit, and return out-of-fold probabilities for the training runs.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signal, one value a step.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run; 0 leaves it out, 2 counts it twice.
        groups : array-like of shape (n_runs,), optional
            Runs of one group stay in one part.
        q_z : float or array-like of shape (n_runs,), optional
            Soft outcomes of the runs with outcome -1, for ``censored="q_z"``.

        Returns
        -------
        TrajectoryArray, or NaN-padded ndarray where X was a plain array
            Each run calibrated by a map that has not seen it.

        Notes
        -----
        ``fit(X, y).transform(X)`` does not equal ``fit_transform(X, y)``; see the class.
        """
        return self._fit(X, y, sample_weight, groups, q_z)

    def transform(self, X: Any) -> Any:
        """Calibrate new runs with the map fitted on all training runs.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signal, one value a step.

        Returns
        -------
        TrajectoryArray, or NaN-padded ndarray where X was a plain array
            Probabilities.

        Notes
        -----
        ``fit(X, y).transform(X)`` does not equal ``fit_transform(X, y)``; see the class.
        """
        traces = check_estimator_input(self, X, reset=False, probabilities=self.link == "logit")
        calibrated = traces.with_cells(self.full_map_(traces.cells), channels=traces.channels)
        return like_input(calibrated, X)

    def summary(self) -> pd.DataFrame:
        """Say what happened in the fit, one row a map.

        Returns
        -------
        DataFrame indexed by map name
            n_runs, base_rate, center, scale, intercept, slope, fallback, and the range of
            calibrated probabilities over the training values (low, high).

        References
        ----------
        Raghu et al. (2026), Table 1.

        Examples
        --------
        >>> X, y = [[0.99, 0.95], [0.99, 0.99], [0.95, 0.9], [0.9, 0.9]], [1, 1, 0, 0]
        >>> PlattCrossFitCalibrator().fit(X, y).summary()[["slope", "fallback"]].round(2)
             slope  fallback
        map
        A     0.50     False
        B     0.67     False
        all   0.92     False
        """
        rows = []
        for fitted in [*self.maps_.values(), self.full_map_]:
            low, high = sorted(fitted(np.array(self._value_range)))
            rows.append(
                {
                    "map": fitted.name,
                    "n_runs": fitted.n_runs,
                    "base_rate": fitted.base_rate,
                    "center": fitted.center,
                    "scale": fitted.scale,
                    "intercept": fitted.intercept,
                    "slope": fitted.slope,
                    "fallback": fitted.fallback,
                    "low": low,
                    "high": high,
                }
            )
        return pd.DataFrame(rows).set_index("map")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # outcomes are binary
        return tags

    # ---------------------------------------------------------------- the fit

    def _check_parameters(self) -> None:
        get_schedule(self.weights)
        if not self.C > 0:
            raise ValueError(f"C must be a positive number, got {self.C!r}")
        if self.link not in _LINKS:
            raise ValueError(f"link must be one of {_LINKS}, got {self.link!r}")
        if self.censored not in _CENSORED:
            raise ValueError(f"censored must be one of {_CENSORED}, got {self.censored!r}")
        if self.increasing not in (True, False, "auto", None):
            raise ValueError(
                f"increasing must be True, False, 'auto' or None, got {self.increasing!r}"
            )

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        q_z: ArrayLike | None,
    ) -> Any:
        self._check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        traces = check_estimator_input(self, X, reset=True, probabilities=self.link == "logit")
        codes = check_outcomes(y, len(traces))
        run_weight = check_sample_weight(sample_weight, len(traces))
        labels, run_weight = self._labels(codes, run_weight, q_z)

        # all sums run in the order of the ids, so that the order of rows cannot matter
        order = np.argsort(traces.ids, kind="stable")
        sample = _Sample(traces[order], labels[order], run_weight[order], self.weights, self.link)
        part = self._parts(sample, None if groups is None else np.asarray(groups)[order])
        n_parts = int(part.max()) + 1
        names = [_part_name(k) for k in range(n_parts)]

        self.n_censored_ = int((codes == CENSORED).sum())
        self.n_dropped_ = int((run_weight == 0).sum())
        self._value_range = (float(traces.cells.min()), float(traces.cells.max()))
        self.full_map_ = self._fit_map(sample, np.ones(len(sample.labels), dtype=bool), "all")
        self.maps_ = {}
        calibrated = np.empty(len(sample.X.cells))
        cell_part = np.repeat(part, sample.X.lengths)
        for k in range(n_parts):
            # with two parts, a map is named after the part that it is fitted on (Appendix D)
            name = names[1 - k] if n_parts == 2 else names[k]
            self.maps_[name] = self._fit_map(sample, part != k, name)
            held_out = cell_part == k
            calibrated[held_out] = self.maps_[name](sample.X.cells[held_out])
        self.maps_ = dict(sorted(self.maps_.items()))
        self.calibrated_range_ = (float(calibrated.min()), float(calibrated.max()))
        out = sample.X.with_cells(calibrated, channels=traces.channels)
        return like_input(out[np.argsort(order, kind="stable")], X)

    def _labels(
        self, codes: NDArray[Any], run_weight: FloatArray, q_z: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray]:
        """Give unobserved runs the outcome, or the weight, that they have in training."""
        if self.censored != "q_z" and q_z is not None:
            raise ValueError(f'q_z is read only with censored="q_z", not {self.censored!r}')
        if self.censored == "q_z":
            if q_z is None and (codes == CENSORED).any():
                raise ValueError('censored="q_z" needs q_z in fit, one for each run')
            return soft_outcomes(codes, 0.0 if q_z is None else q_z), run_weight
        labels = soft_outcomes(codes, 0.0)
        if self.censored == "drop":
            run_weight = np.where(codes == CENSORED, 0.0, run_weight)
        return labels, run_weight

    def _parts(self, sample: _Sample, groups: NDArray[Any] | None) -> NDArray[np.int64]:
        """Assign each run, in id order, to the part in which it is held out."""
        stratum = (sample.labels >= 0.5).astype(np.int64)
        if not isinstance(self.cv, (int, np.integer)):
            return _parts_of_splitter(check_cv(self.cv), sample.X, stratum, groups)
        if self.cv < 2:
            raise ValueError(f"cv must be at least 2, got {self.cv}")
        if groups is not None:
            n_groups = len(np.unique(groups))
            if n_groups < self.cv:
                raise ValueError(
                    f"there are {n_groups} groups of runs, too few for {self.cv} parts of which "
                    f"none shares a group with another; give finer groups, or fewer parts"
                )
            splitter = StratifiedGroupKFold(int(self.cv))
            return _parts_of_splitter(splitter, sample.X, stratum, groups)
        part = np.zeros(len(stratum), dtype=np.int64)
        for label in (0, 1):
            for counts in (True, False):
                # runs of weight zero must not shift the others; a run given twice stays whole
                rows = np.flatnonzero((stratum == label) & ((sample.run_weight > 0) == counts))
                _, position = np.unique(sample.X.ids[rows], return_inverse=True)
                part[rows] = position % self.cv
        if part.max() == 0:
            raise ValueError(
                f"n_samples = {len(stratum)} is too few to calibrate: cross-fitting needs at "
                f"least two successes and two failures"
            )
        return part

    def _fit_map(self, sample: _Sample, rows: NDArray[np.bool_], name: str) -> PlattMap:
        x, success, failure = sample.counts(rows)
        weight = success + failure
        total = weight.sum()
        if success.sum() <= 0 or failure.sum() <= 0:
            kind = "failures" if success.sum() <= 0 else "successes"
            where = "the training runs" if name == "all" else f"part {name}"
            raise ValueError(
                f"{where} has only {kind}; calibration needs successes and failures in every "
                f"part: give more runs, or a smaller cv"
            )
        base_rate = float(success.sum() / total)
        center = float(weight @ x / total)
        scale = max(float(np.sqrt(weight @ (x - center) ** 2 / total)), _SMALLEST_SCALE)
        intercept, slope = _fit_logistic((x - center) / scale, success, failure, self.C)
        increasing = self.increasing
        if increasing is None:
            increasing = True if self.link == "logit" else "auto"
        fallback = increasing != "auto" and (slope < 0 if increasing else slope > 0)
        if fallback:
            intercept, slope = float(logit(base_rate)), 0.0
        n_runs = int(((sample.run_weight > 0) & rows).sum())
        return PlattMap(
            name, self.link, center, scale, intercept, slope, bool(fallback), n_runs, base_rate
        )


class _Sample:
    """Training runs in id order, with their labels, weights and linked values."""

    def __init__(
        self,
        X: TrajectoryArray,
        labels: FloatArray,
        run_weight: FloatArray,
        weights: Weights,
        link: str,
    ) -> None:
        self.X, self.labels, self.run_weight = X, labels, run_weight
        lengths = X.lengths
        self._weight = step_weights(lengths, X.horizon, weights) * np.repeat(run_weight, lengths)
        self._label = np.repeat(labels, lengths)
        # signals take few distinct values (verbal confidence, judges): fit on those
        self._values, self._index = np.unique(apply_link(X.cells, link), return_inverse=True)

    def counts(self, rows: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Distinct values of some runs, with their weight of successes and of failures."""
        weight = self._weight * np.repeat(rows, self.X.lengths)
        n_values = len(self._values)
        success: Any = np.bincount(self._index, weight * self._label, n_values)
        failure: Any = np.bincount(self._index, weight * (1 - self._label), n_values)
        used = success + failure > 0
        return self._values[used], success[used], failure[used]


def _fit_logistic(
    x: FloatArray, success: FloatArray, failure: FloatArray, C: float
) -> tuple[float, float]:
    """Weighted logistic regression of one feature with an L2 penalty on the slope only."""
    model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=200)
    labels = np.repeat([1, 0], len(x))
    model.fit(
        np.concatenate([x, x])[:, None], labels, sample_weight=np.concatenate([success, failure])
    )
    return float(model.intercept_[0]), float(model.coef_[0, 0])


def _parts_of_splitter(
    splitter: Any, X: TrajectoryArray, stratum: NDArray[Any], groups: NDArray[Any] | None
) -> NDArray[np.int64]:
    part = np.full(len(stratum), -1, dtype=np.int64)
    for k, (_, test) in enumerate(splitter.split(X, stratum, groups)):
        if (part[test] >= 0).any():
            raise ValueError("cv must put each run into one test part only; use a KFold-like one")
        part[test] = k
    if (part < 0).any():
        raise ValueError("cv must put every run into a test part; use a KFold-like one")
    return part


def _part_name(k: int) -> str:
    letters = string.ascii_uppercase
    return letters[k] if k < len(letters) else f"part{k + 1}"
