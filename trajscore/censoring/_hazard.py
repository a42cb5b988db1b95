"""Discrete-time hazard of informative stopping, and scores repaired by it."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from trajscore.censoring._monte_carlo import Features, cell_features, predict_success
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import Sample, check_forecasts, check_groups
from trajscore.core.estimator import check_estimator_input
from trajscore.core.folds import assign_folds, out_of_fold
from trajscore.core.ids import check_same_runs
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.parallel import one_blas_thread
from trajscore.core.score_families import get_family
from trajscore.core.stops import refuse_own_stops
from trajscore.core.values import (
    ArrayLike,
    BoolArray,
    FloatArray,
    as_array,
    as_flag,
    as_numbers,
    as_within,
    number_of,
    refuse_first,
)
from trajscore.core.weights import Horizon, RunSums, StepWeights, Weights, as_step_weights, run_sums
from trajscore.core.within_runs import end_mask, last_cells, run_numbers, running_sum, step_numbers
from trajscore.inference.intervals import any_units, warn_few_clusters
from trajscore.inference.mean_intervals import interval_of


class StopHazard(BaseEstimator):
    """Learn the chance, step by step, that a run is stopped by what its history tells of.

    A run that came to its end, or to its budget, could have been stopped at every step but its
    last one; a stopped run at every step, and was at its last. What is learnt from these steps is
    kept for the runs of `fit`, out of fold. `ipcw_tps_score` and `doubly_robust_tps_score` take it,
    for the score of all steps that the runs would have come to had none been stopped. It does not
    estimate how stopped runs would have ended, P(success | history, stopped, still going):
    `ContinuationModel` does.

    Parameters
    ----------
    classifier : classifier, optional
        Learns the chance of a stop at a step. Default: logistic regression (C=0.1) on piecewise
        linear functions of the features, four pieces each over their range and flat beyond it: a
        chance extrapolated to the rarest histories would become the largest of the weights.
    features : callable, optional
        Maps the container to an array with one row a step that must not look ahead. Default: the
        step number, and for each channel its latest value, its mean so far and its first value.
    cv : int or splitter, default=5
        Folds of runs for cross-fitting, which are balanced in stopped runs.
    min_probability : float, default=0.01
        Chances of not being stopped below this are raised to it, with a warning.

    Attributes
    ----------
    hazard_ : ndarray of shape (n_cells,)
        Chance of being stopped at each step, run after run; 0 where a run was not at risk.
    survival_ : ndarray of shape (n_cells,)
        Chance of not having been stopped up to and including each step: products of 1 - hazard
        within each run, at least `min_probability`.
    fold_ : ndarray of int of shape (n_runs,)
        Fold in which each run was held out.
    stopped_ : ndarray of bool of shape (n_runs,)
        Runs that were stopped.
    history_ : TrajectoryArray
        The runs, without meta.
    features_ : ndarray of shape (n_cells, n_features)
        What is known of the runs at each step, as `features` gives it.

    See Also
    --------
    administrative_stop_test : Tells whether stops depend on the recorded history at all.
    ContinuationModel : Estimates how runs that a budget stopped would have ended.

    Examples
    --------
    Stops that do not depend on the history, one in ten at each step:

    >>> import numpy as np
    >>> from trajscore.datasets import make_trajectories
    >>> X = make_trajectories(2000, lengths=6, random_state=0).data
    >>> hit = np.random.default_rng(0).random((2000, 5)) < 0.1
    >>> stopped = hit.any(axis=1)
    >>> hazard = StopHazard(cv=2).fit(X.truncate(np.where(stopped, hit.argmax(1) + 1, 6)), stopped)
    >>> print(hazard.hazard_[hazard.hazard_ > 0].mean().round(2))
    0.1
    """

    def __init__(
        self,
        classifier: Any = None,
        features: Features = None,
        cv: Any = 5,
        min_probability: float = 0.01,
    ) -> None:
        self.classifier = classifier
        self.features = features
        self.cv = cv
        self.min_probability = min_probability

    def fit(self, X: Any, stopped: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Learn from which histories runs were stopped.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max[, n_channels])
            What may have led to the stops, step by step.
        stopped : array-like of bool of shape (n_runs,)
            Runs that were stopped informatively, such as ``audit.mechanism == "informative"``.
        groups : array-like of shape (n_runs,), optional
            Clusters that stay in one fold.

        Returns
        -------
        StopHazard
            The fitted estimator.

        Raises
        ------
        ValueError
            If all runs were stopped, or there are too few for the folds.

        Warns
        -----
        UserWarning
            If a run that was not stopped had a smaller chance than `min_probability`.
        """
        as_within(self.min_probability, "min_probability", 0, 1, "right")
        runs = check_estimator_input(self, X, reset=True, single_channel=False)
        self._history = runs._replace(meta=None)._parts()
        self.stopped_ = as_mask(stopped, len(runs))
        if self.stopped_.all():
            raise ValueError(
                f"all {len(runs)} runs were stopped, so no weights can be learnt; use tps_bounds"
            )
        self.features_ = cell_features(runs, self.features)
        if groups is not None:
            groups = check_groups(groups, len(runs))
        self.fold_ = assign_folds(self.cv, runs.ids, self.stopped_, groups=groups)
        self.hazard_ = self._hazard(runs)
        chance = np.exp(running_sum(runs, np.log1p(-np.minimum(self.hazard_, 1 - 1e-12))))
        floor = self.min_probability
        low = (chance[last_cells(runs)] < floor) & ~self.stopped_
        if low.any():
            warnings.warn(
                f"{number_of(low.sum(), 'run')} had a chance of less than {floor:g} of not "
                f"being stopped, raised to {floor:g}: the weights are bounded, and the score leans "
                f"on the rest; compare with tps_bounds",
                stacklevel=2,
            )
        self.survival_ = np.maximum(chance, floor)
        return self

    @property
    def history_(self) -> TrajectoryArray:
        """The runs, without meta: fitted estimators are saved as arrays, without its table."""
        check_is_fitted(self)
        return TrajectoryArray._trusted(**self._history)

    def interval(
        self, samples: ArrayLike, *, groups: ArrayLike | None = None, confidence_level: float = 0.95
    ) -> tuple[float, float]:
        """Interval of a score that was repaired with this hazard, or of a difference of two.

        Parameters
        ----------
        samples : array-like of shape (n_runs,)
            Contributions of the runs to `ipcw_tps_score` or `doubly_robust_tps_score`, as
            ``return_samples=True`` gives them, without run weights; or differences of those of two
            predictors.
        groups : array-like of shape (n_runs,), optional
            Clusters of runs, such as the trials of a task; `fit` should have had them, too.
        confidence_level : float, default=0.95
            Level.

        Returns
        -------
        low, high : float
            Ends of the interval.

        Raises
        ------
        ValueError
            If there is not one contribution for each run.

        Notes
        -----
        Both models are learnt from the runs that were not stopped, so squared errors are divided
        by the number of these, less two for each feature of the hazard. With 150 and 300 runs the
        intervals held the score at least .93 of the time, but .89 for `doubly_robust_tps_score`
        where half of the runs with a low forecast were stopped at each step
        (``benchmarks/censoring.py stops``). With many runs they are wider than they need be.

        Examples
        --------
        >>> from trajscore.censoring import StopHazard, ipcw_tps_score
        >>> from trajscore.datasets import make_trajectories
        >>> runs = make_trajectories(300, lengths=6, random_state=0)
        >>> stopped = np.arange(300) % 4 == 0
        >>> X = runs.data.truncate(np.where(stopped, 3, 6))
        >>> hazard = StopHazard().fit(X, stopped)
        >>> y = np.where(stopped, -1, runs.target)
        >>> value, samples = ipcw_tps_score(y, X, hazard, return_samples=True)
        >>> low, high = hazard.interval(samples)
        >>> low < value < high
        True
        """
        check_is_fitted(self)
        values = as_numbers(samples, "samples")
        if values.shape != self.stopped_.shape:
            raise ValueError(
                f"samples must be {len(self.stopped_)} contributions, one for each run that the "
                f"hazard was fitted on, got shape {values.shape}"
            )
        free = max((~self.stopped_).sum() - 2 * self.features_.shape[1], 1)
        mean = values.mean()
        influence = np.sqrt(len(values) / free) * (values - mean)
        if groups is not None:
            groups = check_groups(groups, len(values))
        warn_few_clusters(any_units(groups, len(values)))
        return interval_of(mean, influence, groups, confidence_level)[1:]

    @one_blas_thread
    def _hazard(self, runs: TrajectoryArray) -> FloatArray:
        at_risk, event = steps_at_risk(runs, self.stopped_)

        def fit(train: BoolArray) -> Any:
            cells = at_risk & train
            if not event[cells].any():
                return None  # nobody was stopped here: the chance is zero
            if event[cells].all():
                raise ValueError(
                    "every run was stopped as soon as it could be, so no weights can be learnt; "
                    "use tps_bounds"
                )
            model = self.classifier
            if model is None:  # a regression on piecewise linear functions, flat beyond the data
                model = make_pipeline(
                    SplineTransformer(n_knots=5, degree=1, extrapolation="constant"),
                    LogisticRegression(C=0.1, solver="newton-cholesky"),
                )
            return clone(model).fit(self.features_[cells], event[cells].astype(int))

        hazard = np.zeros(len(at_risk))
        for held_out, model in out_of_fold(self.fold_[run_numbers(runs)], fit):
            cells = held_out[at_risk[held_out]]
            if model is not None:
                hazard[cells] = predict_success(model, self.features_[cells])
        return hazard


def steps_at_risk(X: TrajectoryArray, stopped: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return the steps at which each run could have been stopped, and those at which it was."""
    return ~end_mask(X, ~stopped), end_mask(X, stopped)


def as_mask(which: ArrayLike, n_runs: int, name: str = "stopped") -> BoolArray:
    """Check an argument that says for each run whether it is meant."""
    mask = as_array(which, name)
    if mask.dtype != bool or mask.shape != (n_runs,):
        raise ValueError(
            f"{name} must be {n_runs} booleans, one for each run, got {mask.dtype} of shape "
            f"{mask.shape}; compare, as in audit.mechanism == 'informative'"
        )
    return mask


def refuse_observed(stopped: BoolArray, unobserved: BoolArray) -> None:
    """Refuse stopped runs whose outcome was observed."""
    refuse_first(
        stopped & ~unobserved,
        lambda row: f"row {row}: its outcome was observed, so it cannot have been stopped",
    )


def ipcw_tps_score(
    y_true: ArrayLike,
    traces: Any,
    hazard: StopHazard | None = None,
    *,
    q_z: ArrayLike = 0.0,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
    return_samples: bool = False,
) -> float | tuple[float, FloatArray]:
    """Trajectory Proper Score had no run been stopped informatively, by inverse weights.

    It is the score of all steps that the runs would have come to. Runs that were not stopped stand
    for those with a like history that were: each counts with the inverse of its chance of not being
    stopped at any of its steps.

    Parameters
    ----------
    y_true, traces : array-like and TrajectoryArray
        Outcomes and forecasts, as in `trajscore.metrics.censored_tps_score`.
    hazard : StopHazard, optional
        Fitted on what may have led to the stops of these runs, step by step: it says which runs
        were stopped informatively, and how likely that was. Default: ``StopHazard()`` is fitted on
        the traces, with all unobserved runs as stopped.
    q_z : float or array-like of shape (n_runs,), default=0.0
        P(success | history, stopped, still going) of unobserved runs that a budget stopped, as by
        `ContinuationModel`. Of these runs the steps up to the budget are scored, as by
        `censored_tps_score`. Of runs that were stopped informatively no q_z is read.
    score, weights, horizon : score family and step weights
        As in `trajscore.metrics.tps_score`.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run in the mean.
    return_samples : bool, default=False
        Whether to return the contributions of the runs as well, for paired bootstraps.

    Returns
    -------
    score : float
        The (weighted) mean of the contributions.
    samples : ndarray of shape (n_runs,), only with ``return_samples=True``
        Linearised contributions: `StopHazard.interval` makes an interval of them.

    Raises
    ------
    ValueError
        If all runs were stopped, an outcome was observed for one that was, the hazard is that of
        other runs, or the forecast stopped some of the runs itself.

    See Also
    --------
    doubly_robust_tps_score : Forgives an error in one of two models.
    administrative_stop_test : Tells whether stops depend on the recorded history.

    Notes
    -----
    The target is the score of all steps that runs would have come to, by themselves or up to their
    budget: sum v N / sum v D over all runs, where inverse weights multiply N, the weighted scores
    of a run's steps, and D, the weights of these steps, alike. `censored_tps_score` targets the
    steps that were taken. With ``horizon="own"`` D is 1, and this is the mean over runs.

    Consistent if (1) given the history at a step, a stop says nothing of what would have come,
    (2) the model of stops is right, and (3) runs of every history had a chance to go on. If stops
    depend on what the history does not hold, no weighting helps: see `tps_bounds`. If nothing was
    stopped, this is the plain score. Weights are normalised (Hajek's form).

    References
    ----------
    Robins, Rotnitzky and Zhao (1994), Estimation of Regression Coefficients When Some Regressors
    Are Not Always Observed.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> runs = make_trajectories(300, random_state=0)
    >>> from trajscore.metrics import tps_score
    >>> ipcw_tps_score(runs.target, runs.data) == tps_score(runs.target, runs.data)
    True
    """
    sample = check_forecasts(y_true, traces, allow_censored=True, sample_weight=sample_weight)
    hazard, sums = _hazard_and_sums(sample, hazard, q_z, score, as_step_weights(weights, horizon))
    if hazard is not None:
        inverse = _inverse_weights(hazard)
        sums = RunSums(sums.total * inverse, sums.divisor * inverse)
    return _score(sums, sample.weight, return_samples)


def doubly_robust_tps_score(
    y_true: ArrayLike,
    traces: Any,
    hazard: StopHazard | None = None,
    *,
    regressor: Any = None,
    q_z: ArrayLike = 0.0,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
    return_samples: bool = False,
) -> float | tuple[float, FloatArray]:
    """Trajectory Proper Score had no run been stopped informatively, doubly robust.

    It is the score of all steps that the runs would have come to. Inverse weights as in
    `ipcw_tps_score`, and at every step a model of the score that the run would have come to, given
    its history: the result is right if either model is.

    Parameters
    ----------
    y_true, traces, hazard : array-like, TrajectoryArray, StopHazard
        As in `ipcw_tps_score`.
    regressor : regressor, optional
        Learns the final score from what is known at a step: the features of `hazard`, and the mean
        score of the steps so far on success, on failure, and as expected if the latest forecast is
        right, and the expected score of the step itself. Default: ridge regression on these,
        standardised; with many runs, something richer pays.
    q_z, score, weights, horizon, sample_weight, return_samples : optional
        As in `ipcw_tps_score`.

    Returns
    -------
    score : float
        The (weighted) mean of the contributions.
    samples : ndarray of shape (n_runs,), only with ``return_samples=True``
        Contributions: `StopHazard.interval` makes an interval of them.

    Notes
    -----
    Conditions (1) and (3) of `ipcw_tps_score` remain; of the two models, one must be right. The
    model of the score is fitted backwards, step by step, to its own value at the next step, as
    in Bang and Robins (2005), so that it does not lean on the model of stops. The weight of the
    steps that a stopped run would have come to is estimated in the same way. With ``horizon="own"``
    the model is not told the step weights, which would tell a stop before it happens.

    Both models are fitted out of fold, so that their errors enter as a product. With fewer than
    about 500 runs the product is not small: this score then varies more than `ipcw_tps_score`, by
    a quarter with 150 runs in most simulations. Prefer that one there, and this one with more runs.

    References
    ----------
    Bang and Robins (2005), Doubly Robust Estimation in Missing Data and Causal Inference Models;
    Tsiatis (2006), Semiparametric Theory and Missing Data, chapter 9.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> runs = make_trajectories(300, random_state=0)
    >>> from trajscore.metrics import tps_score
    >>> doubly_robust_tps_score(runs.target, runs.data) == tps_score(runs.target, runs.data)
    True
    """
    sample = check_forecasts(y_true, traces, allow_censored=True, sample_weight=sample_weight)
    how = as_step_weights(weights, horizon)
    hazard, sums = _hazard_and_sums(sample, hazard, q_z, score, how)
    if hazard is not None:
        features = np.column_stack([hazard.features_, _score_features(sample.X, score, how)])
        total = _augmented(hazard, sums.total, features, regressor)
        divisor = sums.divisor
        if not how.is_own:  # which runs that were stopped would have come to, too
            divisor = _augmented(hazard, divisor, features, regressor)
        sums = RunSums(total, divisor)
    return _score(sums, sample.weight, return_samples)


def _hazard_and_sums(
    sample: Sample, hazard: StopHazard | None, q_z: ArrayLike, score: Any, weights: StepWeights
) -> tuple[StopHazard | None, RunSums]:
    """Return the fitted hazard, None if no run was stopped, and sums; stopped runs score 0."""
    refuse_own_stops(sample.traces)
    y = sample.y
    stopped = y == CENSORED
    if hazard is not None:
        check_is_fitted(hazard)
        check_same_runs(hazard.history_, sample.X, "the history of hazard", "traces")
        refuse_observed(hazard.stopped_, stopped)
        stopped = hazard.stopped_
    elif stopped.any():
        hazard = StopHazard().fit(sample.X, stopped)
    # q_z is not read for informative stops: these get no score of their own
    labels = as_labels(np.where(stopped, 0, y), censored="q_z", q_z=q_z)
    sums = run_sums(labels.value, sample.X, score, weights)
    sums = RunSums(np.where(stopped, 0.0, sums.total), sums.divisor)
    if not stopped.any():
        hazard = None
    return hazard, sums


def _score(
    sums: RunSums, weight: FloatArray, return_samples: Any
) -> float | tuple[float, FloatArray]:
    """Return the score, and if asked linearised contributions of runs, of which it is the mean."""
    value = sums.mean(weight)
    if not as_flag(return_samples, "return_samples"):
        return value
    return value, sums.samples(weight)


def _inverse_weights(hazard: StopHazard) -> FloatArray:
    """Return one over each run's chance of not being stopped; 0 where it was."""
    return np.where(hazard.stopped_, 0.0, 1 / hazard.survival_[last_cells(hazard.history_)])


def _augmented(
    hazard: StopHazard, final: FloatArray, features: FloatArray, regressor: Any
) -> FloatArray:
    """Return each run's share in the mean of a number that is known of runs not stopped.

    It is expected, given the history at each step, out of fold.
    """
    X = hazard.history_
    went_through = ~hazard.stopped_
    at_risk, event = steps_at_risk(X, hazard.stopped_)
    step = step_numbers(X)
    ends = last_cells(X)[went_through]
    if regressor is None:
        regressor = make_pipeline(StandardScaler(), Ridge())

    def backwards(train: BoolArray) -> FloatArray:
        value = np.zeros(len(step))
        value[ends] = final[went_through]
        fallback = value[ends][train[ends]].mean()
        for t in np.unique(step[at_risk])[::-1]:
            here = np.flatnonzero(at_risk & (step == t))
            went_on = here[train[here] & ~event[here]]
            if not len(went_on):
                value[here] = fallback
                continue
            target = value[went_on + 1]
            model = clone(regressor).fit(features[went_on], target)
            # no expectation lies outside the values that it is an average of
            value[here] = np.clip(model.predict(features[here]), target.min(), target.max())
        return value

    expected = np.zeros(len(step))
    for cells, value in out_of_fold(hazard.fold_[run_numbers(X)], backwards):
        expected[cells] = value[cells]
    surprise = (event - hazard.hazard_) / hazard.survival_ * expected  # 0 where not at risk
    return _inverse_weights(hazard) * final + np.add.reduceat(surprise, X.offsets[:-1])


def _score_features(X: TrajectoryArray, score: Any, weights: StepWeights) -> FloatArray:
    """Return scores so far, for either outcome and in expectation.

    They are sums, but means where the step weights depend on the run's end, not known at a step.
    """
    family = get_family(score)
    each = np.column_stack([family.success(X.cells), family.failure(X.cells)])
    if weights.is_own:
        so_far = running_sum(X, each) / step_numbers(X)[:, None]
    else:
        each *= weights.of(X).cells()[:, None]
        so_far = running_sum(X, each)
    chance = np.column_stack([X.cells, 1 - X.cells])
    # a linear model needs to be given these products
    return np.column_stack([so_far, (chance * so_far).sum(axis=1), (chance * each).sum(axis=1)])
