"""Continuation-success probabilities learnt from runs that went on, or that were resumed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from trajscore.censoring._conditional_mean import conditional_mean_test
from trajscore.censoring._monte_carlo import (
    Branches,
    Features,
    MonteCarloContinuation,
    cell_features,
    cross_fit_shares,
    fit_shares,
    forecasts_of,
    predict_success,
    refuse_predictor,
)
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups, check_sample_weight
from trajscore.core.estimator import check_estimator_input, require_y
from trajscore.core.folds import assign_folds
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.values import ArrayLike, FloatArray, IntArray, as_horizon, check_choice
from trajscore.core.weights import Horizon, Weights
from trajscore.core.within_runs import last_cells, run_numbers, step_numbers


class ContinuationModel(BaseEstimator):
    """Estimate q_Z, the chance of success of a run that was stopped while it was still going.

    q_Z = P(success | history, stopped, still going) comes from a classifier of what is known of a
    run at its last step. It learns from prefixes of observed runs that went on for at least one
    more step, by default at the steps at which the unobserved ones were stopped. A run that ended
    by itself at such a step is not learnt from there, as it was not still going. Where `fit` is
    given ``branches=``, it learns from the stopped runs that were resumed, and then speaks for all
    of them.

    Parameters
    ----------
    classifier : classifier, optional
        Takes sample weights and has ``predict_proba``. Default: logistic regression on
        standardised features and their squares.
    features : callable, optional
        Maps the container to an array with one row a step that must not look ahead. Default: the
        step number, and for each channel its latest value, its mean so far and its first value.
    steps : {"stops", "all"}, default="stops"
        Prefixes of observed runs to learn from: those of the lengths at which runs were stopped,
        or all. With "all" a common budget is extrapolated: nobody went on beyond it.
    min_branches : int, default=1
        Resumed runs with fewer valid continuations are not learnt from.
    cv : int, splitter or None, default=5
        Folds of runs for the held-out estimates that `check` reads; None makes none. Where the
        other folds have a constant outcome, that is the estimate, with a warning.
    allow_predictor : bool, default=False
        Whether the history may contain the very forecast that will be judged. If not, `fit` wants
        to know which one that is, and warns where it is not told.

    Attributes
    ----------
    classifier_ : classifier
        Fitted on all training prefixes.
    training_rows_, training_steps_ : ndarray of int of shape (n_prefixes,)
        Run and step of each training prefix.
    training_groups_ : ndarray of int of shape (n_prefixes,)
        Cluster of each training prefix, for the standard errors of `check`: the code of its group,
        or its run.
    training_features_ : ndarray of shape (n_prefixes, n_features)
        What is known of the run at the step, as `features` gives it.
    outcome_, held_out_ : ndarray of shape (n_prefixes,)
        Outcome of each training prefix's run, or share of its continuations that succeeded, and
        the estimate by a model that has not seen it.
    monte_carlo_ : MonteCarloContinuation or None
        The shares of successful continuations, where ``branches=`` were given.
    ids_ : ndarray of shape (n_runs,)
        Identifiers of the runs.
    n_extrapolated_ : int
        Unobserved runs beyond whose last step no observed run went on; 0 with ``branches=``.

    See Also
    --------
    MonteCarloContinuation : For when every stopped run was resumed.

    Notes
    -----
    A score with q_Z is that of the steps that were taken, by `trajscore.metrics.censored_tps_score`
    with these estimates; no run needs a horizon.

    Observed runs stand for the stopped ones only if stopping does not select: with one fixed
    budget for all, no run went on beyond it and there is nothing to learn from; with budgets
    that differ, runs with short budgets say who *finished early*. Use `check`, and resume some
    runs if you can: a random sample of the stopped ones, or chosen by what the features tell.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification,
    Appendix H and Remarks C.4 and C.5.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore.datasets import make_trajectories
    >>> runs = make_trajectories(1000, lengths=8, random_state=0)
    >>> stopped = np.arange(1000) % 2 == 0
    >>> X = runs.data.truncate(np.where(stopped, 3, 8))
    >>> y = np.where(stopped, -1, runs.target)
    >>> F = X.with_cells(runs.q.truncate(X.lengths).cells > 0.5)  # the forecast to be judged
    >>> q = ContinuationModel().fit(X, y, predictor=F).predict(X)
    >>> truth = runs.q.steps(3)[:, 2]
    >>> bool(abs(q - truth)[stopped].mean() < 0.05)
    True

    Resuming a fifth of the stopped runs, five times each:

    >>> rng = np.random.default_rng(0)
    >>> branches = [rng.random(5) < one if k % 10 == 0 else None for k, one in enumerate(truth)]
    >>> q = ContinuationModel().fit(X, branches=branches, predictor=F).predict(X)
    >>> bool(abs(q - truth)[stopped].mean() < 0.05)
    True
    """

    def __init__(
        self,
        classifier: Any = None,
        features: Features = None,
        steps: str = "stops",
        min_branches: int = 1,
        cv: Any = 5,
        allow_predictor: bool = False,
    ) -> None:
        self.classifier = classifier
        self.features = features
        self.steps = steps
        self.min_branches = min_branches
        self.cv = cv
        self.allow_predictor = allow_predictor

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        predictor: Any = None,
        branches: Branches | None = None,
    ) -> Self:
        """Learn from the observed runs, or from those that were resumed.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max[, n_channels])
            What is known of the runs, step by step.
        y : array-like of shape (n_runs,), optional
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1]. Not read where
            there are branches.
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run.
        groups : array-like of shape (n_runs,), optional
            Clusters (trials of one task) that are held out together, and whose runs `check` takes
            to be dependent.
        predictor : TrajectoryArray, dict of str to traces, or array-like, optional
            The forecast that will be judged, or several, as channels or items of a dict; X is
            refused if it contains one of them, recalibrated or not.
        branches : sequence of n_runs array-likes, or array of shape (n_runs, n_branches), optional
            Outcomes of continuations, as for `MonteCarloContinuation`; None for runs that were
            not resumed.

        Returns
        -------
        ContinuationModel
            The fitted model.

        Raises
        ------
        ValueError
            If no observed run went on beyond the steps in question, the runs to learn from have a
            constant outcome, or there are too few of them for the folds; or if X contains a
            `predictor`.

        Warns
        -----
        UserWarning
            If neither `predictor` nor ``allow_predictor=True`` is given; or if the outcomes of all
            folds but one are constant.
        """
        check_choice(self.steps, "steps", ("stops", "all"))
        runs = check_estimator_input(self, X, reset=True, single_channel=False)
        refuse_predictor(runs, predictor, self.allow_predictor)
        self.ids_ = runs.ids
        run_weight = check_sample_weight(sample_weight, len(runs))
        n_outcomes: FloatArray | IntArray  # behind each share of successes
        self.monte_carlo_: MonteCarloContinuation | None = None
        if branches is None:
            cells, share, n_outcomes = self._observed(runs, y)
        else:
            audit = MonteCarloContinuation(self.min_branches).fit(runs, branches)
            self.monte_carlo_ = audit
            self.n_extrapolated_ = 0
            resumed = audit.audited_
            cells = last_cells(runs)[resumed]
            share = audit.q_z_[resumed]
            n_outcomes = audit.n_valid_[resumed]
        rows = run_numbers(runs)[cells]
        clusters = check_groups(runs.ids if groups is None else groups, len(runs))
        self.training_rows_ = rows
        self.training_steps_ = step_numbers(runs)[cells]
        self.training_groups_ = clusters[rows]
        self.training_features_ = table = cell_features(runs, self.features)[cells]
        self.outcome_ = share
        weight = run_weight[rows] * n_outcomes
        self.classifier_ = fit_shares(self.classifier, table, share, weight)
        self.held_out_ = np.full(len(rows), np.nan)
        if self.cv is not None:
            success, counts = np.zeros((2, len(runs)), dtype=bool)
            success[rows] = share >= 0.5
            counts[rows[weight > 0]] = True
            groups = None if groups is None else clusters
            fold = assign_folds(self.cv, runs.ids, success, is_counted=counts, groups=groups)
            self.held_out_ = cross_fit_shares(self.classifier, table, share, weight, fold[rows])
        return self

    def predict(self, X: Any) -> FloatArray:
        """Estimate the chance of success of each run, were it stopped after its last step.

        That the run was still going is taken for granted, also of runs that ended by themselves:
        of these the outcome is known, and scores do not read q_Z.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max[, n_channels])
            Runs.

        Returns
        -------
        ndarray of shape (n_runs,)
            q_Z, for ``q_z=`` of censored scores.
        """
        runs = check_estimator_input(self, X, reset=False, single_channel=False)
        return predict_success(
            self.classifier_, cell_features(runs, self.features)[last_cells(runs)]
        )

    def check(
        self,
        traces: Any = None,
        *,
        score: Any = "log",
        weights: Weights = "early",
        horizon: Horizon = None,
    ) -> pd.DataFrame:
        """Test the conditional-mean criterion on held-out training prefixes.

        Parameters
        ----------
        traces : TrajectoryArray or array-like of shape (n_runs, T_max), optional
            Forecasts under test, of the runs given to `fit`, found by their identifiers: adds the
            bias of the score.
        score, weights, horizon : score family and step weights
            As in `trajscore.metrics.tps_score`.

        Returns
        -------
        DataFrame
            As of `conditional_mean_test`.
        """
        check_is_fitted(self)
        if self.cv is None:
            raise ValueError("cv=None made no held-out estimates; fit with cv=2 or more")
        forecasts = None
        if traces is not None:
            runs = forecasts_of(self.ids_, traces)[self.training_rows_]
            # with horizon="own" a prefix keeps the weights of the whole run
            whole_length = as_horizon(runs.horizon, runs.lengths)
            forecasts = runs.truncate(self.training_steps_).with_horizon(whole_length)
        return conditional_mean_test(
            self.outcome_,
            self.held_out_,
            self.training_features_,
            traces=forecasts,
            score=score,
            weights=weights,
            horizon=horizon,
            groups=self.training_groups_,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _observed(self, runs: TrajectoryArray, y: Any) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the cells after which an observed run went on, its outcome and their number, one.

        Sets `n_extrapolated_`.
        """
        require_y(self, y)
        outcomes = check_outcomes(y, len(runs))
        stops = runs.lengths[outcomes == CENSORED]
        step = step_numbers(runs)
        usable = np.repeat(outcomes != CENSORED, runs.lengths)
        usable[last_cells(runs)] = False
        self.n_extrapolated_ = int((~np.isin(stops, step[usable])).sum())
        if self.steps == "stops" and len(stops):
            usable &= np.isin(step, stops)
        if not usable.any():
            raise ValueError(
                "no observed run went on beyond a step at which others were stopped, so there is "
                "nothing to learn q_Z from; resume some runs (branches=), or extrapolate from "
                "shorter prefixes with steps='all'"
            )
        cells = np.flatnonzero(usable)
        return cells, outcomes[run_numbers(runs)[cells]].astype(float), np.ones(len(cells))
