"""Trajectory Proper Scores repaired for stops that depend on the history of the run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from trajscore.censoring._hazard import StopHazard, refuse_observed, steps_at_risk
from trajscore.core.array import TrajectoryArray
from trajscore.core.folds import out_of_fold
from trajscore.core.ids import check_same_runs
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.run_sums import RunSums, run_sums
from trajscore.core.sample import Sample, check_forecasts
from trajscore.core.score_families import get_family
from trajscore.core.stops import refuse_own_stops
from trajscore.core.type_aliases import BoolArray, FloatArray
from trajscore.core.values import as_flag
from trajscore.core.weights import Horizon, StepWeights, Weights, as_step_weights
from trajscore.core.within_runs import last_cells, run_numbers, running_sum, step_numbers


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
    refuse_own_stops({"": sample.X})
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
    """Return each run's share in the mean of a number that is known of runs not stopped."""
    expected = _expected_final(hazard, final, features, regressor)
    event = steps_at_risk(hazard.history_, hazard.stopped_)[1]
    surprise = (event - hazard.hazard_) / hazard.survival_ * expected  # 0 where not at risk
    weighted = _inverse_weights(hazard) * final
    return weighted + np.add.reduceat(surprise, hazard.history_.offsets[:-1])


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


def _expected_final(
    hazard: StopHazard, final: FloatArray, features: FloatArray, regressor: Any
) -> FloatArray:
    """Expect the final number given the history at each step, out of fold."""
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

    out = np.zeros(len(step))
    for cells, value in out_of_fold(hazard.fold_[run_numbers(X)], backwards):
        out[cells] = value[cells]
    return out
