"""What happened to the agent: a watch over all its runs, with one promise for all time."""

import warnings
from collections import OrderedDict
from itertools import product
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from trajscore.calibration import cross_fit_traces
from trajscore.calibration.forecaster import Forecaster
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_labels
from trajscore.core.errors import ArgumentError
from trajscore.core.estimator import check_estimator_input, parts_of
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.policy import MIN_REFERENCE_RUNS
from trajscore.core.values import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    as_count,
    as_fraction,
    check_choice,
    number_of,
)
from trajscore.core.weights import AGGREGATORS
from trajscore.core.within_runs import whole_runs
from trajscore.monitoring._fleet_runs import (
    GRID,
    FleetChange,
    FleetStatus,
    Run,
    Runs,
    are_new,
    bets_on_outcomes,
    bets_on_ranks,
    count_outcomes,
    draw_third,
    forecasts_of_runs,
    grid_cells,
    name_cause,
)
from trajscore.monitoring.thresholds import TIE

_START = np.array([0.25, 0.5, 0.25])  # shares of capital
_MOVE = 2e-3  # of the capital, which goes back to these shares with each run
_ALPHA_OF_INPUTS = 0.1  # share for length and forecasts, which show a change soon, without spreads
_BINS = 5  # of forecasts, within which outcomes are compared
_LEAST_IN_BIN = 20  # runs
_PRIOR = 5.0  # runs with the rate of all, in each bin
REMEMBERED = 4096  # runs before an alarm, from which its cause is named; and waiting for outcomes
_PATIENCE = 4  # after so many times n_after runs, the cause is named without further outcomes


class FleetMonitor(BaseEstimator):
    """Say when an agent's runs are no longer as they were, since when, and what changed.

    Six quantities are watched: the length of a run, its forecast, how far its rank is from the
    middle (spread), its outcome, and its outcome at its forecast, in level and in slope. Each is an
    e-process of conformal p-values of a run among the reference and all runs since. If nothing
    changes, the chance of any alarm, ever, is at most alpha.

    Parameters
    ----------
    forecaster : forecaster or None, default=None
        Makes forecasts of success of the scores; fitted on a third of the reference, whose runs
        are in no p-value. None: X holds forecasts in [0, 1] already, of one predictor or, a channel
        each, of several.
    alpha : float, default=0.05
        Chance of any false alarm: half of it for the first, a quarter for the second, and so on.
    phi : {"weighted", "mean", "last", "min"}, default="weighted"
        How the forecasts of a run become one: see `trajscore.TraceAggregator`.
    n_after : int, default=500
        Runs after an alarm from which its cause is named, and which are the reference then on. No
        alarm is given meanwhile.
    random_state : int, RandomState instance or None, default=0
        Breaks ties.

    Attributes
    ----------
    changes_ : list of FleetChange
        All changes that were noticed.
    e_values_ : DataFrame
        Of each quantity, and predictor ("" for those of all): e_value since the last alarm,
        log_e_value, log_threshold, and `since`, the run from which on it grew.
    n_runs_ : int
        Runs since the fit.
    n_left_out_ : int
        Runs that were not taken: later trials of a task, with `groups`.
    n_repeated_ : int
        Runs that were not taken: of an id and values that an earlier update had.
    n_late_outcomes_ : int
        Outcomes that were not taken: of runs before an alarm, which came after it.
    n_without_forecast_ : int
        Runs, also of the reference, without a step or a value: their length and outcome count.

    See Also
    --------
    trajscore.DensityRatioEProcess : Watches one run at a time.

    Notes
    -----
    The promise is that of exchangeable runs: those of the reference and later ones, in the order in
    which they are given, as long as nothing changes. Give runs in the order of their start. Several
    trials of one task in a row break it; with `groups`, only the first of each task is taken. An
    outcome that comes late is taken when it comes, and keeps the promise if the delay says nothing
    about it: where failures are reported later, wait until all outcomes of a day have come.

    Bets on outcomes are split by the success rates of bins of forecasts; a third of the reference
    is taken for these, and p-values are ranks among the others. A process bets on lower values, on
    higher ones, and on none, and some capital goes back to its first share with each run ("simple
    jumper"). An alarm is given where any process exceeds 1 over its share of alpha (Ville,
    Bonferroni): a tenth is for length and forecasts, as much for a spread as for a forecast.

    An alarm ends all processes, as what they compare runs with is no longer how runs are. Others
    begin at 1 once the runs after it are the reference; until then no bet is made, and `e_values_`
    are 1. Their thresholds are twice as high, so that the chances of all alarms add up to alpha.

    References
    ----------
    Vovk, Gammerman and Shafer (2022), Algorithmic Learning in a Random World, 2nd edition, chapter
    8: conformal test martingales, and the simple jumper.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import FleetMonitor
    >>> runs = make_trajectories(4000, random_state=0)
    >>> fleet = FleetMonitor().fit(runs.q[:1000], runs.target[:1000])
    >>> fleet.update(runs.q[1000:2000], runs.target[1000:2000]).alarm
    False
    >>> bolder = runs.q.with_cells(runs.q.cells ** 0.3)  # another judge
    >>> fleet.update(bolder[2000:], runs.target[2000:]).cause
    'forecasts'
    """

    def __init__(
        self,
        forecaster: Any = None,
        *,
        alpha: float = 0.05,
        phi: str = "weighted",
        n_after: int = 500,
        random_state: Any = 0,
    ) -> None:
        self.forecaster = forecaster
        self.alpha = alpha
        self.phi = phi
        self.n_after = n_after
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Take runs as the reference.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Forecasts, or scores that `forecaster` reads, of at least 50 runs; of a container some
            may be missing, and runs may have no step.
        y : array-like of shape (n_runs,), optional
            Outcomes: 1 success, 0 failure, -1 not observed. If none is, lengths and forecasts
            alone are watched.
        groups : array-like of shape (n_runs,), optional
            Tasks, where some have several trials: the first of each is taken.

        Returns
        -------
        FleetMonitor
            Before its first run.

        Raises
        ------
        ValueError
            If a parameter cannot be used, a forecast is not in [0, 1], or there are fewer than 50
            runs, tasks or outcomes, or only successes or failures.
        """
        as_fraction(self.alpha, "alpha")
        check_choice(self.phi, "phi", AGGREGATORS)
        as_count(self.n_after, "n_after", MIN_REFERENCE_RUNS)
        traces, outcomes, tasks, is_whole = self._checked(X, y, groups, reset=True)
        self._watches_outcomes = bool((outcomes != CENSORED).any())
        if self.forecaster is not None and not self._watches_outcomes:
            raise ValueError("y is missing: a forecaster learns from outcomes")
        n_tasks = len(np.unique(tasks))
        if n_tasks < MIN_REFERENCE_RUNS:
            raise ArgumentError(
                f"the reference has {n_tasks} runs of different tasks and needs "
                f"{MIN_REFERENCE_RUNS}; give more of them, or if runs of one task are independent, "
                f"name the run ids as {{argument}}, so that each is its own group",
                "groups",
            )
        for outcome, name in ((1, "success"), (0, "failure")):
            if self._watches_outcomes and not (outcomes == outcome).any():
                raise ValueError(
                    f"the reference has no {name}; give runs of both outcomes, or no outcomes"
                )
        self._random = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        self._tasks: set[Any] | None = None if groups is None else set()
        self.n_runs_ = self.n_left_out_ = self.n_late_outcomes_ = 0
        self.n_repeated_ = self.n_without_forecast_ = 0
        self._earlier: OrderedDict[Any, None] = OrderedDict()  # hashes of runs, the oldest first
        self._waiting: OrderedDict[Any, Run] = OrderedDict()
        self.changes_: list[FleetChange] = []
        parts = draw_third(tasks, self._random)
        train_rows, ranked_rows = (rows[is_whole[rows]] for rows in parts)
        if not (len(train_rows) and len(ranked_rows)):
            raise ValueError("too few runs have a forecast at every step; give more of them")
        self.forecaster_ = None
        self._names = traces.channels or ("",)
        if self.forecaster is not None:
            self._names = (", ".join(self._names),)  # of which one forecast is made
            train = traces[train_rows]
            y_train = outcomes[train_rows]
            is_known = y_train != CENSORED
            self.forecaster_ = clone(self.forecaster).fit(train[is_known], y_train[is_known])
        self._processes = [("length", ""), *product(("forecast", "spread"), self._names)]
        n_inputs = len(self._processes)
        shares = np.full(n_inputs, 1 / n_inputs)
        if self._watches_outcomes:
            self._processes += [("success", ""), *product(("level", "slope"), self._names)]
            share = _ALPHA_OF_INPUTS / (1 + len(self._names))
            shares = np.repeat([share, 1 / n_inputs - share], n_inputs)  # as many are of outcomes
        self._log_thresholds = np.log(2 / (self.alpha * shares))  # twice that after each alarm
        forecasts = self._forecasts(traces, is_whole)
        if self.forecaster is not None:  # of the first part by fits to other runs
            F = cross_fit_traces(self.forecaster, train, y_train, groups=tasks[train_rows])
            forecasts[train_rows] = forecasts_of_runs(F, self.phi)
        training, ranked = (
            self._runs(traces[rows], forecasts[rows], outcomes[rows], tasks[rows]) for rows in parts
        )
        reference = ranked
        if self.forecaster is None:  # else forecasts of the first part are of other fits
            reference = ranked + training
        self._begin(0, training, ranked, reference)
        return self

    def update(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> FleetStatus:
        """Take one run or more, in the order of their start.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            As in `fit`.
        y : array-like of shape (n_runs,), optional
            Outcomes; -1, or no y, for those that are not known yet: see `add_outcomes`.
        groups : array-like of shape (n_runs,), optional
            Tasks; needed where `fit` had them.

        Returns
        -------
        FleetStatus
            What is known now.

        Raises
        ------
        ValueError
            If a forecast is not in [0, 1], an outcome is neither 0, 1 nor -1, or groups are missing
            or were not given to `fit`.
        """
        check_is_fitted(self, "changes_")
        if (groups is None) != (self._tasks is None):
            raise ValueError(
                "groups: give the task of each run to fit and to update, or to neither of them"
            )
        traces, outcomes, tasks, is_whole = self._checked(X, y, groups, reset=False)
        forecasts = self._forecasts(traces, is_whole)
        n_alarms = len(self.changes_)
        n_repeated = self.n_repeated_
        is_new = are_new(traces, self._earlier)
        for run in self._runs(traces, forecasts, outcomes, tasks, is_new):
            self._take(run)
        if n_repeated := self.n_repeated_ - n_repeated:
            warnings.warn(
                f"{number_of(n_repeated, 'run')} with the id and the values of a run of an earlier "
                f"update, not counted again; to count a run, give it an id of its own; for a late "
                f"outcome, use add_outcomes",
                stacklevel=2,
            )
        self.n_runs_ += len(traces)
        return self._status(n_alarms)

    def add_outcomes(self, ids: ArrayLike, y: ArrayLike) -> FleetStatus:
        """Take outcomes of runs that were given without one.

        Parameters
        ----------
        ids : array-like of shape (n_runs,)
            Ids of the runs, in the order in which their outcomes became known.
        y : array-like of shape (n_runs,)
            1 success, 0 failure.

        Returns
        -------
        FleetStatus
            What is known now.

        Raises
        ------
        KeyError
            If a run is not waiting for its outcome.
        """
        check_is_fitted(self, "changes_")
        outcomes = check_outcomes(y, allow_soft=False)
        labels = np.asarray(ids).tolist()
        if len(set(labels)) != len(outcomes) or (outcomes == CENSORED).any():
            raise ValueError(
                f"y must have an outcome, 0 or 1, for each of {number_of(len(labels), 'run')}; "
                f"name each once, and leave out runs whose outcome is not known yet"
            )
        if missing := [label for label in labels if label not in self._waiting]:
            raise KeyError(
                f"run {missing[0]!r} is not waiting for an outcome: it has one, or was not sent yet"
            )
        n_alarms = len(self.changes_)
        for label, outcome in zip(labels, outcomes.tolist(), strict=True):
            run = self._waiting.pop(label)
            run.outcome = outcome
            if self.changes_ and run.number <= self.changes_[-1].alarm:
                self.n_late_outcomes_ += 1
            elif self._after is None:
                self._bet_on_outcome(run)
                self._look(self.n_runs_)  # so that outcomes of all runs until now are late
            else:
                self._settle()
        return self._status(n_alarms)

    @property
    def e_values_(self) -> pd.DataFrame:
        """Evidence that something changed, by quantity and predictor."""
        check_is_fitted(self, "changes_")
        columns = {
            "e_value": np.exp(np.minimum(self._log_e, 700.0)),
            "log_e_value": self._log_e,
            "log_threshold": self._log_thresholds,
            "since": self._lowest_at + 1,
        }
        index = pd.MultiIndex.from_tuples(self._processes, names=["quantity", "predictor"])
        return pd.DataFrame(columns, index=index)

    def _checked(
        self, X: Any, y: Any, groups: Any, *, reset: bool
    ) -> tuple[TrajectoryArray, IntArray, AnyArray, BoolArray]:
        """Return runs, their outcomes and tasks, and whether each can have a forecast.

        Without outcomes all are unobserved; without groups each run is a task of its own.
        """
        traces = check_estimator_input(
            self,
            X,
            reset=reset,
            probabilities=self.forecaster is None,
            single_channel=False,
            allow_missing=True,
            allow_empty=True,
        )
        outcomes = np.full(len(traces), CENSORED)
        if y is not None:
            outcomes = check_outcomes(y, traces, allow_soft=False)
        tasks = np.arange(len(traces))
        if groups is not None:
            tasks = check_labels(groups, len(traces))
        is_whole = whole_runs(traces)
        parts = parts_of(self.forecaster)
        if any(isinstance(part, Forecaster) and part._takes_missing() for part in parts):
            is_whole = traces.lengths > 0
        return traces, outcomes, tasks, is_whole

    def _forecasts(self, X: TrajectoryArray, is_whole: BoolArray) -> FloatArray:
        """Return one forecast for each run and predictor, NaN of runs that are not whole."""
        forecasts = np.full((len(X), len(self._names)), np.nan)
        if is_whole.any():
            F = X[is_whole]
            if self.forecaster_ is not None:
                F = self.forecaster_.transform(F)
            forecasts[is_whole] = forecasts_of_runs(F, self.phi)
        return forecasts

    def _runs(
        self,
        X: TrajectoryArray,
        forecasts: FloatArray,
        y: IntArray,
        tasks: AnyArray,
        is_new: BoolArray | None = None,
    ) -> Runs:
        """Return the runs that are watched: those that are new, and of each task, the first."""
        ids = X.ids.tolist()
        cells = grid_cells(X.lengths, forecasts)
        runs = []
        for row, task in enumerate(tasks.tolist()):
            if self._tasks is not None:
                if task in self._tasks:
                    self.n_left_out_ += 1
                    continue
                self._tasks.add(task)
            if is_new is not None and not is_new[row]:
                self.n_repeated_ += 1
                continue
            number = self.n_runs_ + row + 1
            length = float(X.lengths[row])
            run = Run(number, ids[row], length, forecasts[row], cells[row], int(y[row]))
            self.n_without_forecast_ += not run.has_forecast
            runs.append(run)
        return runs

    def _begin(self, n_runs: int, training: Runs, ranked: Runs, reference: Runs) -> None:
        """Watch from here on, after `n_runs`, without evidence.

        Bets are learned from the `training` runs, and p-values are ranks among the `ranked` ones.
        To name a cause, runs after a change are compared with the `reference`.
        """
        self._reference = reference
        self._after: Runs | None = None  # since an alarm
        self._recent: Runs = []
        n = len(self._processes)
        self._shares = np.tile(_START, (n, 1))
        self._log_e = np.zeros(n)
        self._lowest = np.zeros(n)
        self._lowest_at = np.full(n, n_runs)
        n_names = len(self._names)
        # rows are the length, then predictors; columns are places of the grid
        self._counts = np.zeros((1 + n_names, GRID))
        forecasts = [run.forecast for run in training if run.has_forecast]
        if not forecasts:  # all that come later are in the first bin
            forecasts = [np.full(n_names, np.nan)]
        n_bins = min(_BINS, max(len(training) // _LEAST_IN_BIN, 2))
        self._edges = np.quantile(np.stack(forecasts), np.arange(1, n_bins) / n_bins, axis=0).T
        # failures and successes: a row of all runs, in its first bin, then the level of each
        # predictor, then its slope
        self._outcomes = np.zeros((2, 1 + 2 * n_names, n_bins))
        self._count_outcomes(training)
        n_observed = self._outcomes.sum(axis=0)
        rate = (self._outcomes[1, 0, 0] + 0.5) / (n_observed[0, 0] + 1)
        self._splits = (self._outcomes[1] + _PRIOR * rate) / (n_observed + _PRIOR)
        self._bets = bets_on_outcomes(self._splits)
        self._outcomes[:] = 0
        self._count_outcomes(ranked)
        for run in ranked:
            self._counts[np.arange(len(run.cells)), run.cells] += 1

    def _take(self, run: Run) -> None:
        if run.outcome == CENSORED and self._watches_outcomes:
            self._waiting[run.id] = run
            while len(self._waiting) > REMEMBERED:
                self._waiting.popitem(last=False)
        if self._after is not None:
            self._after.append(run)
            self._settle()
            return
        self._recent.append(run)
        del self._recent[:-REMEMBERED]
        self._bet_on_inputs(run)
        if run.outcome != CENSORED and self._watches_outcomes:
            self._bet_on_outcome(run)
        self._look(run.number)

    def _bet_on_inputs(self, run: Run) -> None:
        """Bet on ranks of the length and the forecasts among all so far, and on their spread."""
        rows = np.arange(len(run.cells))
        self._counts[rows, run.cells] += 1
        below = np.cumsum(self._counts, axis=1)
        ties = self._counts[rows, run.cells]
        u = (below[rows, run.cells] - self._random.random(len(rows)) * ties) / below[rows, -1]
        u = np.append(u, np.abs(2 * u[1:] - 1))  # how far each forecast's rank is from the middle
        self._bet(slice(0, len(u)), bets_on_ranks(u), run.number)

    def _bet_on_outcome(self, run: Run) -> None:
        """Bet on the rank of the outcome among all, and among those of like forecasts."""
        self._count_outcomes([run])
        rows, bins = self._places(run)
        failures, successes = self._outcomes[:, rows, bins]
        rate = successes / (failures + successes)  # successes are below it, failures above
        drawn = self._random.random(len(rows))
        u = rate * drawn if run.outcome else rate + (1 - rate) * drawn
        is_below = (u < self._splits[rows, bins]).astype(int)
        bets = self._bets[is_below, rows, bins]
        n_inputs = 1 + 2 * len(self._names)
        self._bet(slice(n_inputs, n_inputs + len(rows)), bets, run.number)

    def _bet(self, rows: slice, bets: FloatArray, number: int) -> None:
        """Multiply capital by bets; note where it is lowest."""
        shares = ((1 - _MOVE) * self._shares[rows] + _MOVE * _START) * bets
        growth = shares.sum(axis=1)
        self._shares[rows] = shares / growth[:, None]
        log_e = self._log_e[rows]  # a view
        log_e += np.log(growth)
        self._lowest[rows] = np.minimum(self._lowest[rows], log_e)
        # a bet of nothing changes the last digit, which says nothing of where a change began
        self._lowest_at[rows][log_e <= self._lowest[rows] + TIE] = number

    def _places(self, run: Run) -> tuple[IntArray, IntArray]:
        """Rows and bins of `_outcomes`: of all runs and, with a forecast, of each predictor."""
        bins = np.zeros(1, int)
        if run.has_forecast:
            of_predictors = (run.forecast[:, None] >= self._edges).sum(axis=1)
            bins = np.concatenate([bins, of_predictors, of_predictors])
        return np.arange(len(bins)), bins

    def _count_outcomes(self, runs: Runs) -> None:
        for run in runs:
            if run.outcome != CENSORED:
                self._outcomes[run.outcome, *self._places(run)] += 1

    def _look(self, number: int) -> None:
        """Give an alarm where a process is above its threshold."""
        above = self._log_e - self._log_thresholds
        k = np.argmax(above)
        if above[k] >= 0:
            since = int(self._lowest_at[k]) + 1
            log_e = float(self._log_e[k])
            self.changes_.append(FleetChange(number, since, *self._processes[k], log_e))
            self._after = []
            self._log_thresholds += np.log(2)  # half of what is left of alpha
            self._log_e[:] = 0.0  # nothing is watched until the cause is named

    def _settle(self) -> None:
        """Name the cause once enough runs have followed, which are the reference then on."""
        after = self._after or []
        counts = count_outcomes(after)
        n_needed = self.n_after
        if self._watches_outcomes and counts[1] < self.n_after:
            n_needed *= _PATIENCE
        if len(after) < n_needed:
            return
        change = self.changes_[-1]
        since = [run for run in self._recent if run.number >= change.since] + after
        # the first one where the quantity is of all
        predictor = int(np.argmax([name == change.predictor for name in self._names]))
        cause = name_cause(self._reference, since, predictor)
        self.changes_[-1] = change._replace(
            cause=cause, before=count_outcomes(self._reference), after=counts
        )
        parts = draw_third(np.arange(len(after)), self._random)
        training, ranked = ([after[row] for row in rows] for rows in parts)
        self._begin(after[-1].number, training, ranked, after)

    def _status(self, n_alarms: int) -> FleetStatus:
        """Return what is known now; there were `n_alarms` before the update."""
        cause = self.changes_[-1].cause if self.changes_ else ""
        return FleetStatus(len(self.changes_) > n_alarms, cause)
