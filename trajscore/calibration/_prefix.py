"""A forecaster that learns the chance of success from the scores so far."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trajscore.calibration._features import Features, PrefixFeatures, Seen
from trajscore.calibration.cross_fit import LearnedForecaster
from trajscore.calibration.forecaster import ANY_SCORES, fit_arguments
from trajscore.calibration.training import success_chances
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_values
from trajscore.core.parallel import one_blas_thread
from trajscore.core.values import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_count,
    check_choice,
    check_jobs,
)
from trajscore.core.weights import row_chunks
from trajscore.core.within_runs import end_mask, run_numbers

# Steps whose features are held at a time in forecasting.
_CHUNK_CELLS = 1 << 18
# With more features, L-BFGS is quicker than Newton's method, whose time grows with their square.
_FEW_FEATURES = 100

_FOR_MISSING = (
    "give PrefixForecaster a classifier that takes missing values: "
    "HistGradientBoostingClassifier(), or make_pipeline(SimpleImputer(keep_empty_features=True), "
    "StandardScaler(), LogisticRegression())"
)


class State(NamedTuple):
    """Runs that are under way: steps taken, last forecasts, and what has been seen."""

    t: int
    p: FloatArray
    seen: Seen


class PrefixForecaster(LearnedForecaster):
    """Forecast success after every step from the scores seen so far, P(Y = 1 | S_1..S_t).

    Any scikit-learn classifier with ``predict_proba`` can be used: one for each step, or one for
    all steps. Several channels are several verifiers, or the signals of a log, such as
    `trajscore.ActionSignals` makes of its runs. A step at which too few runs of one outcome
    are left keeps the forecast of the step before, as do all steps beyond the last fitted one, and
    before the first the forecast is the success rate. One classifier for all steps extrapolates.
    Outliers of a channel count as in `PlattCrossFitCalibrator`.

    Parameters
    ----------
    estimator : classifier, optional
        Default: ``make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))``, with
        ``C=0.3`` for ``features="running"``; and, but for ``features="prefix"``, for up to 100
        features with ``solver="newton-cholesky", tol=1e-8``, which finds the optimum; "prefix" has
        the digits of the paper. One that takes missing values (NaN), as its tags in
        scikit-learn say, gets them: ``HistGradientBoostingClassifier()``, or a pipeline with a
        ``SimpleImputer(keep_empty_features=True)``. Others refuse them.
    features : {"prefix", "last", "running"} or callable, default="prefix"
        What the classifier sees after step t: all scores so far; the `last` scores; or, for each
        channel, the first and the last two scores, mean, minimum, maximum, standard deviation and
        mean log-odds, the same times log t, and the step ("running"). A function gets an array of
        shape (n_runs, t, n_channels) and returns one row a run. Statistics are of the scores that
        were recorded so far, and missing while there are none.
    last : int, default=3
        Number of scores for ``features="last"``.
    pooled : bool, default=False
        Whether one classifier is fitted over all steps, with the step's number as a feature.
    end : {"step", "after"} or None, default=None
        When it is known that a run has ended: with its last step, after it, or not at all. Last
        steps then have a classifier of their own; with "step" the other one is fitted on all other
        steps, with "after" on all. Needs ``pooled=True``. In fitting, runs with an observed outcome
        have ended; of new ones ``X.ended`` says so, and of a plain array nothing does.
    min_class_count : int, default=5
        Runs of each outcome that must be left at a step for a classifier to be fitted there; soft
        outcomes count by their shares.
    censored : {"failure", "drop", "q_z"}, default="failure"
        What runs with outcome -1 are in training, as in `PlattCrossFitCalibrator`. A run of soft
        outcome q is fitted twice, as a success of weight q and as a failure of weight 1 - q.
    n_jobs : int, optional
        Classifiers of different steps are fitted in parallel; the result does not depend on it.

    Attributes
    ----------
    estimators_ : list of classifier or None
        The classifier of each step, None where the forecast of the step before is kept; if pooled,
        that of all steps and, with `end`, that of last steps, None where too few runs show both
        outcomes and the forecast is the success rate.
    base_rate_ : float
        Success rate of the training runs.
    n_censored_, n_dropped_ : int
        Training runs without an observed outcome, and those of them (or of weight zero) left out.
    n_steps_ : int
        Number of the last step that was seen in training.
    n_channels_in_ : int
        Scores a step.

    See Also
    --------
    trajscore.calibration.cross_fit_traces : Out-of-fold traces, where ``cross_val_predict`` gives
        none.
    trajscore.DensityRatioEProcess : Turns a forecaster into a sequential test.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, Algorithm 2.

    Examples
    --------
    >>> from trajscore import PrefixForecaster, tps_scorer
    >>> from trajscore.datasets import make_trajectories
    >>> X, y = make_trajectories(400, lengths=4, random_state=0, return_X_y=True)
    >>> forecaster = PrefixForecaster(features="last", last=1).fit(X, y)
    >>> forecaster.transform(X)
    <TrajectoryArray: 400 runs of 4 steps, channels probability>
    """

    _reads = ANY_SCORES

    def __init__(
        self,
        estimator: Any = None,
        features: Features = "prefix",
        last: int = 3,
        pooled: bool = False,
        end: str | None = None,
        min_class_count: int = 5,
        censored: str = "failure",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.features = features
        self.last = last
        self.pooled = pooled
        self.end = end
        self.min_class_count = min_class_count
        self.censored = censored
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        q_z: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifiers.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores, one or more a step. They may be missing for classifiers that take NaN; where a
            classifier is fitted, a feature that is missing in all runs is 0 in all.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1], for classifiers
            that take weights.
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run, for classifiers that take one.
        q_z : float or array-like of shape (n_runs,), optional
            Soft outcomes of the runs with outcome -1, for ``censored="q_z"``.
        groups : array-like of shape (n_runs,), optional
            Not read here: ``fit_transform`` keeps runs of one group in one fold.

        Returns
        -------
        PrefixForecaster
            The fitted forecaster.

        Raises
        ------
        ValueError
            If an outcome cannot be used, only failures or only successes are left, a
            classifier is to take missing values, weights or soft outcomes and cannot, or a
            parameter cannot be used.
        """
        training = self._without_outliers(self._training_runs(X, y, sample_weight, q_z))
        traces, labels, weight, _ = training
        rows = training.rows
        traces = traces.with_ended(traces.ended | labels.observed)[rows]
        success = labels.value[rows]
        if success.max() == 0 or success.min() == 1:
            kind = "successes" if success[0] else "failures"
            raise ValueError(
                f"the training runs (n_samples = {len(rows)}) are all {kind}, one class; both "
                f"outcomes are needed"
            )
        weights = None if sample_weight is None else weight[rows]
        self.base_rate_ = float(np.average(success, weights=weights))
        self.n_steps_ = int(traces.lengths.max())
        fit = self._fit_steps
        if self.pooled:
            fit = self._fit_pooled
        with one_blas_thread:
            self.estimators_ = fit(traces, success, weights)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._classifier(np.zeros((1, 1)))
        self._features().check()
        as_count(self.min_class_count, "min_class_count", least=0)
        check_choice(self.end, "end", ("step", "after", None))
        if self.end is not None and not self.pooled:
            raise ValueError("end needs pooled=True, one classifier over all steps")

    def _fit_pooled(
        self, X: TrajectoryArray, y: FloatArray, weight: FloatArray | None
    ) -> list[Any]:
        rows = self._features().at_all_steps(X)
        prototype = self._classifier(rows)
        run = run_numbers(X)
        if self.end is None:
            return [_fit_one(prototype, rows, run, y, weight)]
        is_end = end_mask(X, X.ended)
        going = ~is_end | (self.end == "after")
        models: list[Any] = []
        for used in (going, is_end):
            model = None
            if self._are_enough(y[run[used]]):
                model = _fit_one(prototype, rows[used], run[used], y, weight)
            models.append(model)
        return models

    def _are_enough(self, y: FloatArray) -> bool:
        """Whether both outcomes are frequent enough for a classifier."""
        return bool(min(y.sum(), len(y) - y.sum()) >= max(self.min_class_count, 1))

    def _fit_steps(self, X: TrajectoryArray, y: FloatArray, weight: FloatArray | None) -> list[Any]:
        run = run_numbers(X)
        jobs = {}
        for t, here, rows in self._features().by_step(X):
            if self._are_enough(y[run[here]]):
                prototype = self._classifier(rows)
                jobs[t] = delayed(_fit_one)(prototype, rows, run[here], y, weight)
        check_jobs(self.n_jobs)
        fitted = dict(zip(jobs, Parallel(n_jobs=self.n_jobs)(jobs.values()), strict=True))
        return [fitted.get(t) for t in range(1, self.n_steps_ + 1)]

    def _classifier(self, rows: FloatArray) -> Any:
        """Return what is cloned for each step."""
        if self.estimator is None:
            model = LogisticRegression(max_iter=200)
            if self.features == "running":
                model.C = 0.3
            n_varying = np.count_nonzero(np.ptp(rows, axis=0))  # if none does, the solver warns
            if self.features != "prefix" and 0 < n_varying <= _FEW_FEATURES:
                model.set_params(solver="newton-cholesky", tol=1e-8)
            return make_pipeline(StandardScaler(), model)
        if not hasattr(self.estimator, "predict_proba"):
            name = type(self.estimator).__name__
            raise ValueError(
                f"estimator must be a classifier with predict_proba, got {self.estimator!r}; for a "
                f"classifier without it use CalibratedClassifierCV({name}())"
            )
        return self.estimator

    def _features(self) -> PrefixFeatures:
        return PrefixFeatures(self.features, self.last, self.pooled)

    def _takes_missing(self) -> bool:
        # another classifier refuses missing values itself, if it does not take them
        return self.estimator is not None

    def _check_runs(self, X: Any, *, reset: bool) -> TrajectoryArray:
        traces = super()._check_runs(X, reset=reset)
        return check_values(traces, False, self._takes_missing(), remedy=_FOR_MISSING)

    def _begin(self, n: int) -> State:
        seen = self._features().begin(n, self.n_channels_in_)
        return State(0, np.full(n, self.base_rate_), seen)

    def _advance(
        self, state: State, scores: FloatArray, done: BoolArray | None
    ) -> tuple[State, FloatArray]:
        features = self._features()
        t = state.t + 1
        p = state.p
        seen = features.push(state.seen, scores)
        if self.pooled:
            p = self._of_pooled(features.rows(seen, t), done)
        elif t <= len(self.estimators_) and self.estimators_[t - 1] is not None:
            p = success_chances(self.estimators_[t - 1], features.rows(seen, t))
        return State(t, p, seen), p

    def _of_pooled(self, rows: FloatArray, is_end: BoolArray | None) -> FloatArray:
        """Forecasts by the classifier of last steps where a run ends, elsewhere by the other."""
        p = np.full(len(rows), self.base_rate_)
        if is_end is None or self.end is None:
            is_end = np.zeros(len(rows), dtype=bool)
        for model, used in zip(self.estimators_, (~is_end, is_end), strict=False):
            if model is not None and used.any():
                p[used] = success_chances(model, rows[used])
        return p

    def _forecasts(self, X: TrajectoryArray) -> FloatArray:
        if not self.pooled or not len(X):
            return super()._forecasts(X)
        # many steps at once, as some classifiers take a call's time; not all, for memory's sake
        parts = [X[rows] for rows in row_chunks(X.offsets, _CHUNK_CELLS)]
        features = self._features()
        return np.concatenate(
            [self._of_pooled(features.at_all_steps(X), end_mask(X, X.ended)) for X in parts]
        )


def _fit_one(
    prototype: Any, rows: FloatArray, run: IntArray, y: FloatArray, weight: FloatArray | None
) -> Any:
    """Fit a classifier to rows of runs; a soft outcome q counts twice, with weights q and 1 - q."""
    model = clone(prototype)
    missing = np.isnan(rows)
    if missing.any():  # some classifiers fail on a feature that no row has
        rows = np.where(missing.all(axis=0), 0.0, rows)
    if weight is not None:
        weight = weight[run]
    share = np.stack([1 - y, y], axis=1)[run]
    row, label = np.nonzero(share)
    if len(row) > len(run):
        soft = share[row, label]
        weight = soft if weight is None else soft * weight[row]
        rows = rows[row]
    if weight is None:
        return model.fit(rows, label)
    with config_context(enable_metadata_routing=False):  # which ends at the forecaster
        return model.fit(rows, label, **fit_arguments(model, {"sample_weight": weight}))
