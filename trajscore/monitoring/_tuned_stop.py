"""A threshold for stopping that is chosen by what it gains, and used only where that is shown."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from trajscore.calibration.forecaster import fit_arguments
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups, check_sample_weight
from trajscore.core.folds import assign_folds, out_of_fold
from trajscore.core.outcomes import check_outcomes
from trajscore.core.sample import ended_where_known
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import as_amount, as_count, as_fraction, as_random_state
from trajscore.core.within_runs import first_step_above, run_maxima, run_numbers, running_sum
from trajscore.inference.mean_intervals import intervals_of_means
from trajscore.inference.units import any_units
from trajscore.monitoring._baselines import OneLimit
from trajscore.monitoring._eprocess import DensityRatioEProcess, check_split
from trajscore.monitoring._monitor import EProcessMonitor
from trajscore.monitoring._savings import Account, follow_threshold
from trajscore.monitoring._stopping_rule import StoppingRule, check_cost, spent_until
from trajscore.monitoring._thresholds import TIE, Chosen

# A policy that stops more of the runs that would succeed is worth a second thought.
_MANY_SUCCESSES = 0.2


class TunedStop(OneLimit):
    """Stop runs where that gains money, and none where no gain is shown.

    A bound on false alarms says nothing of gain: a rule that keeps it may lose more by the good
    runs that it stops than it saves. Here the threshold of a rule is the one with the largest gain
    over cross-validated runs, and it is used only if its gain on runs that were held out is above 0
    beyond doubt. Else no run is flagged, which is an answer, too.

    Parameters
    ----------
    rule : StoppingRule or None, default=None
        Whose statistic gets a threshold; its own one is not used. None is a
        `DensityRatioEProcess` whose ``end_worth`` follows from the prices.
    lost_success : float, default=3.0
        What it costs to stop a run that would have succeeded. All prices are in one currency.
    caught_failure : float, default=1.0
        What it earns to stop a run that would have failed, beside the steps that are saved; 0 where
        a failure costs no more than its steps.
    step_cost : float, optional
        What a step costs. Default: so much that a run costs 1 in the mean, the other prices are in
        mean runs then.
    certify : float, default=0.05
        Chance that a threshold is used though it gains nothing.
    cv : int, default=5
        Folds in which the threshold is chosen.
    random_state : int, RandomState instance or None, default=0
        Draws the half of the runs that is held out.

    Attributes
    ----------
    certified_ : bool
        Whether a gain was shown. If not, no run is flagged.
    gain_, gain_low_ : float
        Gain a run of the threshold that was chosen, on the runs that were held out, and the bound
        above which it is with probability 1 - certify.
    best_threshold_, thresholds_ : float, Series indexed by alpha
        Threshold on the rule's statistic with the largest gain out of fold, infinite where none
        gains; and the same if a gain was shown, else infinite.
    rule_ : StoppingRule
        Fitted on the runs that were not held out.
    step_cost_ : float
        What a step, or a unit of `cost`, costs.
    test_ : FittedTest
        Where the rule is a `DensityRatioEProcess`: all that decides on new runs.
    alphas_ : ndarray of shape (1,)
        `certify`, which bounds no rate of false alarms.
    n_dropped_ : int
        Runs without an observed outcome; they are left out.

    See Also
    --------
    trajscore.DensityRatioEProcess : Bounds false alarms instead.
    trajscore.monitoring.token_savings : All thresholds, of a fitted rule.

    Notes
    -----
    A run that is flagged after a step gains what its other steps would have cost, plus
    `caught_failure` or minus `lost_success`. Half of the runs, or of the groups, are held out. On
    the others the rule is fitted in folds, the threshold with the largest mean gain out of fold is
    chosen, and the rule is fitted again. The bound is that of the mean gain a held-out run, which
    knows that successes may be stopped of which none was seen.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import TunedStop
    >>> X, y = make_trajectories(2000, lengths=(4, 9), random_state=0, return_X_y=True)
    >>> stop = TunedStop(lost_success=3, caught_failure=1).fit(X[:1000], y[:1000])
    >>> print(stop.certified_, f"{stop.score(X[1000:], y[1000:]):.2f}")  # gain of a new run
    True 0.24
    """

    _needs_outcomes = True

    def __init__(
        self,
        rule: Any = None,
        lost_success: float = 3.0,
        caught_failure: float = 1.0,
        step_cost: float | None = None,
        certify: float = 0.05,
        cv: int = 5,
        random_state: Any = 0,
    ) -> None:
        self.rule = rule
        self.lost_success = lost_success
        self.caught_failure = caught_failure
        self.step_cost = step_cost
        self.certify = certify
        self.cv = cv
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None, *, cost: Any = None
    ) -> Self:
        """Choose a threshold, and find out whether it gains.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed.
        groups : array-like of shape (n_runs,), optional
            Runs of one group (trials of one task) are held out together.
        cost : TrajectoryArray or array-like of shape (n_runs, T_max), optional
            Cost of each step, for example in tokens, for the same runs in the same order; it is
            multiplied by `step_cost`.

        Returns
        -------
        TunedStop
            The fitted rule.

        Raises
        ------
        ValueError
            If a parameter or a cost cannot be used, an outcome is a grade, or there are too few
            runs.

        Warns
        -----
        UserWarning
            If no gain is shown, so that no run is flagged, or if the threshold that gains stops a
            large share of the successes.
        """
        self._check_parameters()
        traces, labels, known = self._check_training(X, y)
        codes = None if groups is None else check_groups(groups, len(traces))
        runs = _Runs(traces.with_ended(), labels, _costs(traces, cost), codes).take(known)
        check_split(runs.y, 8 if self.rule is None else 4)
        mean_cost = float(runs.cost.cells.sum()) / len(known)
        self.step_cost_ = 1 / mean_cost if self.step_cost is None else float(self.step_cost)
        prototype = self._prototype(mean_cost)
        kind = StratifiedKFold if codes is None else StratifiedGroupKFold
        seed = as_random_state(self.random_state).randint(2**31)
        halves = kind(2, shuffle=True, random_state=seed)
        held_out = assign_folds(halves, runs.X.ids, runs.y, groups=runs.groups) == 1
        own = runs.take(~held_out)
        self.best_threshold_ = self._choose(prototype, own)
        self.rule_ = own.fit(prototype)
        self._certify(self.best_threshold_, runs.take(held_out))
        return self

    def monitor(
        self,
        alpha: float | None = None,
        state: str | Path | None = None,
        durability: str = "normal",
    ) -> EProcessMonitor:
        """Return the live form, as `DensityRatioEProcess.monitor` does.

        Parameters
        ----------
        alpha : float, optional
            There is one level, `certify`.
        state : str or Path, optional
            A file in which every step is kept, and with which to go on.
        durability : {"normal", "full"}, default="normal"
            What no step is lost in.

        Returns
        -------
        EProcessMonitor
            It decides as this rule does.

        Raises
        ------
        ValueError
            If the rule is not a `DensityRatioEProcess`.
        """
        level = self._level(alpha)
        if not hasattr(self, "test_"):
            raise ValueError(
                f"{type(self.rule_).__name__} has no live form; take rule=DensityRatioEProcess()"
            )
        return EProcessMonitor(self.test_, level, state, durability)

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        cost: Any = None,
    ) -> float:
        """Return the gain a run, at the prices of the fit.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores of runs that were not used in fitting.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure; runs with -1 are ignored.
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run.
        cost : TrajectoryArray or array-like of shape (n_runs, T_max), optional
            Cost of each step, where the fit had one.

        Returns
        -------
        float
            Mean gain; 0 where no run is flagged.
        """
        traces = self._check(X)
        labels = check_outcomes(y, traces, allow_soft=False)
        known = labels >= 0
        weight = check_sample_weight(sample_weight, len(traces))[known]
        if not weight.any():
            raise ValueError("no run with an outcome has a weight, so the gain is undefined")
        ended = ended_where_known(traces, labels)
        runs = _Runs(ended, labels, _costs(traces, cost), None).take(known)
        gains, _ = _gains(self._account(runs), float(self._thresholds[0]))
        return float(np.average(gains, weights=weight))

    # ------------------------------------------------------------------ fitting

    def _check_parameters(self) -> None:
        for name in ("lost_success", "caught_failure"):
            as_amount(getattr(self, name), name)
        if self.step_cost is not None:
            as_amount(self.step_cost, "step_cost")
        if as_fraction(self.certify, "certify") >= 0.5:
            raise ValueError(f"certify must be below 0.5, got {self.certify!r}")
        as_count(self.cv, "cv", 2)
        if self.rule is not None and not isinstance(self.rule, StoppingRule):
            raise ValueError(f"rule must be a stopping rule, got {self.rule!r}")

    def _levels(self) -> FloatArray:
        return np.array([float(self.certify)])

    def _prototype(self, mean_cost: float) -> StoppingRule:
        """Return the rule to be fitted."""
        if self.rule is not None:
            return clone(self.rule)
        price = self.step_cost_ * mean_cost
        # its own threshold is not used, so that next to no successes are held out for it
        return DensityRatioEProcess(
            alpha=0.5,
            calibration_fraction=0.01,
            end_worth=self.caught_failure / price if price > 0 else None,
            random_state=0,
        )

    def _account(self, runs: _Runs, statistic: FloatArray | None = None) -> Account:
        """Runs with what a flag loses beside the cost, and the money spent up to each step."""
        values = self.rule_._statistic(runs.X) if statistic is None else statistic
        loses = np.where(runs.y == 1, float(self.lost_success), -float(self.caught_failure))
        spent = self.step_cost_ * running_sum(runs.cost, runs.cost.cells.ravel())
        return Account(runs.X, loses, values, spent)

    def _choose(self, prototype: StoppingRule, runs: _Runs) -> float:
        """Return the threshold with the largest gain out of fold; infinite if none gains."""
        statistic, run = np.empty(len(runs.X.cells)), run_numbers(runs.X)
        fold = assign_folds(self.cv, runs.X.ids, runs.y, groups=runs.groups)
        for rows, rule in out_of_fold(fold, lambda train: runs.take(train).fit(prototype)):
            statistic[np.isin(run, rows)] = rule._statistic(runs.X[rows])
        threshold, saved, lost = follow_threshold(self._account(runs, statistic))
        best = int(np.argmax(saved - lost))  # of ties, that which flags the fewest
        return float(threshold[best]) if best else np.inf

    def _certify(self, limit: float, runs: _Runs) -> None:
        """Use a threshold only where its gain is above 0 beyond doubt."""
        account, good = self._account(runs), runs.y == 1
        gains, flagged = _gains(account, limit)
        price = float(self.lost_success) + float(self.caught_failure)
        # what a flagged run would add to the mean, had it ended the other way
        change = np.where(flagged, np.where(good, price, -price), 0.0) / len(good)
        mean, low, _ = intervals_of_means(
            gains[:, None], [change], any_units(runs.groups, len(good)), 1 - 2 * self.certify
        )
        self.gain_, self.gain_low_ = float(mean[0]), float(low[0])
        self.certified_ = bool(flagged.any() and low[0] > 0)
        self._set_thresholds(limit if self.certified_ else np.inf)
        if isinstance(self.rule_, DensityRatioEProcess):  # which has a live form
            chosen = Chosen(float(self.alphas_[0]), float(self._thresholds[0]))
            chosen.fit(run_maxima(runs.X, account.statistic)[good], np.empty(0))
            test = self.rule_.test_
            self.test_ = replace(test, alphas=(chosen.alpha,), thresholds=(chosen,))
        self._warn(limit, float(flagged[good].mean()))

    def _warn(self, limit: float, stopped: float) -> None:
        if limit == np.inf:
            message = "at these prices no threshold gains, so no run will be flagged"
        elif not self.certified_:
            message = (
                f"no threshold is shown to gain at these prices, so no run will be flagged: the "
                f"best one gains {self.gain_:.3g} a run, and {self.gain_low_:.3g} at least with "
                f"confidence {1 - self.certify:g}. Give more runs"
            )
        elif stopped > _MANY_SUCCESSES:
            message = (
                f"what gains most at these prices stops {stopped:.0%} of the runs that would "
                f"succeed; raise lost_success if a success is worth more"
            )
        else:
            return
        warnings.warn(message, UserWarning, stacklevel=4)

    # ------------------------------------------------------------------ using

    def _check(self, X: Any) -> TrajectoryArray:
        traces = super()._check(X)
        return self.rule_._check(traces)

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        return self.rule_._statistic(X)

    def _limit(self, threshold: float) -> float:
        return threshold + TIE


class _Runs(NamedTuple):
    """Runs with outcomes, what their steps cost before its price, and their groups."""

    X: TrajectoryArray
    y: IntArray
    cost: TrajectoryArray
    groups: IntArray | None

    def take(self, rows: Any) -> _Runs:
        groups = None if self.groups is None else self.groups[rows]
        return _Runs(self.X[rows], self.y[rows], self.cost[rows], groups)

    def fit(self, prototype: StoppingRule) -> Any:
        """Fit a copy of a rule."""
        own = {} if self.groups is None else fit_arguments(prototype, {"groups": self.groups})
        return clone(prototype).fit(self.X, self.y, **own)


def _costs(X: TrajectoryArray, cost: Any) -> TrajectoryArray:
    """Return what each step costs, before its price."""
    costs = check_cost(cost, X)
    if not costs.cells.any():
        raise ValueError(
            "all costs are zero; leave cost out, and set step_cost=0 if steps are free"
        )
    return costs


def _gains(account: Account, limit: float) -> tuple[FloatArray, BoolArray]:
    """Return what stopping each run gains, and which are stopped."""
    X, loses, statistic, spent = account
    stop = first_step_above(X, statistic, np.full(len(X), limit + TIE))
    until, whole = spent_until(X, spent, stop)
    return np.where(stop > 0, whole - until - loses, 0.0), stop > 0
