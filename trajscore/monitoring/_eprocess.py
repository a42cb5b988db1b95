"""The e-process of a forecaster: stop failing runs early, with a guarantee to the others."""

import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups, check_trajectories
from trajscore.core.estimator import TraceTransformer, like_input
from trajscore.core.folds import held_out_rows
from trajscore.core.outcomes import outcomes_vary
from trajscore.core.values import (
    FloatArray,
    IntArray,
    as_amount,
    as_fraction,
    check_choice,
    number_of,
)
from trajscore.core.within_runs import run_maxima
from trajscore.monitoring._density_ratio import (
    END_AWARE,
    FittedTest,
    added_to_log_m,
    final_forecaster,
)
from trajscore.monitoring._monitor import EProcessMonitor
from trajscore.monitoring._stopping_rule import (
    StoppingRule,
    fitted_forecaster,
)
from trajscore.monitoring.thresholds import (
    TIE,
    HeldOut,
    Promise,
    Threshold,
    as_threshold,
    data_digest,
)


class DensityRatioEProcess(TraceTransformer, StoppingRule):
    """Flag failing runs early while flagging at most a share alpha of those that would succeed.

    With the forecast F_t of success and the success rate pi, M_t = (1 - F_t) / F_t * pi / (1 - pi)
    is the density ratio of failing to succeeding runs up to step t. A run is flagged as soon as
    M_t exceeds a threshold, strictly. By default every failing run is learned from, a share of the
    succeeding ones sets the threshold, and the forecast knows whether the run has ended.

    Fitted without outcomes, it flags a run whose score falls below a threshold, as at most a share
    alpha of all runs do, so that of succeeding ones at most alpha over the success rate are
    flagged.

    Parameters
    ----------
    forecaster : forecaster, "passthrough" or None, default=None
        Gives F_t by its ``transform``. None is ``PrefixForecaster(features="running", pooled=True,
        end="step")``; "passthrough" takes X as calibrated traces.
    threshold : str, Conformal, Pac or PacMarginal, default="conformal"
        What is guaranteed, and how:

        - "conformal": a run that would succeed is flagged with probability at most alpha, as a mean
          over training sets;
        - "pac": the false-alarm rate exceeds alpha with probability at most delta = 0.1, over
          held-out sets (Algorithm 3);
        - "pac_marginal": that of "conformal", by "pac" with 0.9 alpha and delta = 0.1 alpha;
        - "ville": 1 / alpha, without held-out runs; holds for the true density ratio, for any
          number of steps;
        - "randomized_ville": as "ville", and at the end of a run the last M is compared with
          U / alpha, U uniform; needs a forecaster that knows the end;
        - "bonferroni": T / alpha, for the longest run T in fitting.

        Those that held-out runs set have parameters: ``Conformal(ties="randomized")`` makes the
        level exact where scores have few values, ``Conformal(end_worth=0.3)`` flags earlier, and
        ``Pac(delta=0.05)`` is surer.
    alpha : float or array-like of shape (n_alphas,), default=0.05
        One level or several; methods use the first by default.
    hold_out : {"successes", "runs"}, default="successes"
        Of what a share is held out for the threshold: of the successes alone, which set it, so that
        every failure is learned from; or of all runs, within each outcome (Algorithm 3). With
        groups, whole groups that have a success are held out in either case.
    calibration_fraction : float, default=0.5
        That share. Of successes, "conformal" takes a number n for which alpha (n + 1) is whole, as
        far as there are enough.
    log_offset : float, default=0.0
        Subtracted from log M while a run goes on, 0 or more: the process flags more runs in all,
        and fewer of them before their end.
    random_state : int, RandomState instance or None, default=0
        Draws the split, and the uniforms.
    flags : {"failure", "success"}, default="failure"
        Which runs are sought. "success" turns the test round: a run is flagged once it is shown
        that it succeeds, as are at most a share alpha of the failing ones, which take the part of
        successes everywhere. So a run can end early, or be spared further samples and checks.

    Attributes
    ----------
    thresholds_ : Series indexed by alpha
        Threshold on M, weighted with the threshold's `end_worth`; without outcomes on the score.
    forecaster_ : forecaster or None
        Fitted on the runs that were not held out.
    base_rate_ : float
        Success rate of the runs that were not held out.
    n_calibration_successes_ : int
        Held-out runs that set the threshold: successes, where these are flagged failures, without
        outcomes all runs; with groups, one a group.
    n_dropped_ : int
        Runs without an observed outcome; they are left out.
    test_ : FittedTest
        All that decides on new runs: the density ratio and the thresholds.
    alphas_, longest_
        Levels; steps of the longest run in fitting.

    See Also
    --------
    trajscore.PrefixForecaster : The default forecaster.
    trajscore.monitoring.Conformal : The default threshold, with its parameters.
    trajscore.monitoring.LearnThenTestStop : Controls false alarms and lost accuracy together.
    trajscore.monitoring.token_savings : What stopping early saves.

    Notes
    -----
    Given the runs that are learned from, the held-out successes and a new success are exchangeable,
    and the largest M of a run is one fixed function of it, so that its rank among theirs is uniform
    up to ties. Nothing conditions on failures, so that none need be held out. With groups (trials
    of one task), whole groups are held out, and one success of each, drawn at random, counts: what
    is guaranteed then is guaranteed of a success drawn from a new group. Without outcomes all runs
    set the threshold, and what is of the density ratio, or of a split, is not used.

    "ville", "bonferroni" and "randomized_ville" hold out no runs: their guarantee is that of the
    true density ratio, and a ratio learned from few runs may exceed it. Where the forecast knows
    the end, the true M is a martingale up to and including it.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, Algorithms 1 to 3.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.datasets import make_trajectories
    >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
    >>> process = DensityRatioEProcess(alpha=0.1).fit(X[:1000], y[:1000])
    >>> report = process.report(X[1000:], y[1000:])
    >>> report[["false_alarm_rate", "power"]].round(2).to_dict("list")
    {'false_alarm_rate': [0.08], 'power': [0.51]}
    """

    _output_channels = ("log_e_value",)
    flags = "failure"  # of files that an earlier release wrote

    def __init__(
        self,
        forecaster: Any = None,
        threshold: str | Threshold = "conformal",
        alpha: float | ArrayLike = 0.05,
        hold_out: str = "successes",
        calibration_fraction: float = 0.5,
        log_offset: float = 0.0,
        random_state: Any = 0,
        flags: str = "failure",
    ) -> None:
        self.forecaster = forecaster
        self.threshold = threshold
        self.alpha = alpha
        self.hold_out = hold_out
        self.calibration_fraction = calibration_fraction
        self.log_offset = log_offset
        self.random_state = random_state
        self.flags = flags

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        calibration: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the density ratio and the thresholds.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores, one or more a step; without y one, which is lower where failure is likelier.
        y : array-like of shape (n_runs,), optional
            Outcomes: 1 success, 0 failure, -1 not observed. Runs whose outcome was observed have
            ended. Default: none is known.
        calibration : array-like of int or bool, optional
            Rows to hold out for the threshold, or a mask; default: drawn at random.
        groups : array-like of shape (n_runs,), optional
            Runs of one group (trials of one task) are held out together.

        Returns
        -------
        DensityRatioEProcess
            The fitted process.

        Raises
        ------
        ValueError
            If a parameter cannot be used or parameters disagree, an outcome is a grade or is
            missing altogether, or no held-out run succeeded.
        """
        as_fraction(self.calibration_fraction, "calibration_fraction")
        check_choice(self.hold_out, "hold_out", ("successes", "runs"))
        check_choice(self.flags, "flags", ("failure", "success"))
        as_amount(self.log_offset, "log_offset")
        threshold = as_threshold(self.threshold)
        traces, labels, observed = self._check_training(X, y)
        has_outcomes = y is not None
        if not has_outcomes:
            check_trajectories(traces, single_channel=True)
            if not isinstance(threshold, HeldOut) or threshold.end_worth is not None:
                raise ValueError(
                    f"threshold={threshold.keyword!r} with end_worth={threshold.end_worth} needs "
                    f'outcomes; without y take "conformal" or "pac", without end_worth'
                )
        clusters = np.arange(len(traces))
        if groups is not None:
            clusters = check_groups(groups, len(traces))
        random = check_random_state(self.random_state)
        # with the data in it, so that other calibration sets have other uniforms at the same seed
        threshold.seed = int(random.randint(2**31)) + data_digest(traces, labels)
        threshold.longest = self.longest_
        threshold.of = ("failures", "successes")[self._spared] if has_outcomes else "runs"
        rows = self._held_out_rows(threshold, labels, observed, calibration, clusters, random)
        held_out = np.isin(observed, rows)
        runs = traces[observed].with_ended()
        outcomes = labels[observed]
        self.forecaster_ = None
        self.base_rate_ = np.nan
        end = None
        log_offset = 0.0
        train = runs[~held_out]
        y_train = outcomes[~held_out]
        if has_outcomes:
            end = self._learn(train, y_train, threshold)
            log_offset = float(self.log_offset)
        sought = train.lengths[y_train != self._spared]
        going, at_end = added_to_log_m(sought, end, log_offset, threshold.end_worth)
        spared_rows = np.flatnonzero(held_out & (outcomes == self._spared))
        if isinstance(threshold, HeldOut) and not len(spared_rows):
            raise ValueError(
                f"none of the {len(rows)} held-out runs {('failed', 'succeeded')[self._spared]}, "
                f"so no threshold can be set; hold out other runs"
            )
        spared_rows = random.permutation(spared_rows)
        _, first = np.unique(clusters[observed][spared_rows], return_index=True)
        spared_rows = np.sort(spared_rows[first])  # one of each group
        self.n_calibration_successes_ = len(spared_rows)
        self.test_ = FittedTest(
            forecaster=self.forecaster_,
            end=end,
            log_odds=float(np.log(self.base_rate_ / (1 - self.base_rate_))),
            going=going,
            at_end=at_end,
            threshold=threshold,
            alphas=tuple(self.alphas_.tolist()),
            n_channels=self.n_channels_in_,
            channels=self.channels_in_,
            longest=self.longest_,
            fitted_range=self._fitted_range,
            sign=2 * self._spared - 1,
        )
        maxima = np.empty(0)
        if isinstance(threshold, HeldOut):
            spared = runs[spared_rows]
            maxima = run_maxima(spared, self._statistic(spared))
            threshold.fit(maxima, spared.ids, self.alphas_)
        # forecasts of all runs take time: not asked for where maxima of the held-out runs differ,
        # which with end_worth they may by their lengths alone
        if threshold.end_worth is not None or len(maxima) < 2 or np.ptp(maxima) < TIE:
            _warn_if_alike(self.test_, runs)
        return self

    def _learn(self, train: TrajectoryArray, y: IntArray, threshold: Threshold) -> str | None:
        """Learn the density ratio, and return when its forecaster knows that a run has ended."""
        if not outcomes_vary(y):
            raise ValueError(
                f"all training runs of the density ratio (n_samples = {len(y)}) have the "
                f"same outcome; it needs successes and failures"
            )
        self.forecaster_ = fitted_forecaster(self.forecaster, END_AWARE, train, y)
        self.base_rate_ = float(y.mean())
        end: str | None = getattr(final_forecaster(self.forecaster_), "end", None)
        if threshold.needs_end and self.forecaster_ and end is None:
            raise ValueError(
                f'threshold="{threshold.keyword}" needs a forecaster that knows the end of a run, '
                f'such as PrefixForecaster(features="running", pooled=True, end="step")'
            )
        return end

    def transform(self, X: Any) -> Any:
        """Return the logarithm of M after every step.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores.

        Returns
        -------
        TrajectoryArray, or NaN-padded ndarray where X was a plain array
            log M_t, of forecasts clipped to [1e-6, 1 - 1e-6]: at most 13.8 from the log-odds of the
            base rate.

        Raises
        ------
        ValueError
            If the runs are in other channels than those of the fit, or a score is not finite.
        """
        traces = self._check(X)
        log_m = traces.with_cells(self.test_.log_m(traces), channels=self._output_channels)
        return like_input(log_m, X)

    def monitor(
        self,
        alpha: float | None = None,
        state: str | Path | None = None,
        durability: str = "normal",
    ) -> EProcessMonitor:
        """Return the live form, which takes one score after the other.

        Parameters
        ----------
        alpha : float, optional
            One of the fitted levels; default: the first.
        state : str or Path, optional
            A file in which every step is kept, and with which to go on: see `EProcessMonitor`.
        durability : {"normal", "full"}, default="normal"
            What no step is lost in: the end of this process, or a power cut as well.

        Returns
        -------
        EProcessMonitor
            With the open runs of `state`, or none.

        Raises
        ------
        ValueError
            If the level was not fitted, or the state is that of another process.
        """
        level = self._level(alpha)
        return EProcessMonitor(self.test_, level, state, durability)

    def p_values(self, X: Any) -> FloatArray:
        """Return how rarely a run that would succeed looks as bad as each of these so far.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores of runs, complete or not.

        Returns
        -------
        ndarray of shape (n_runs,)
            For held-out thresholds the share of held-out successes, itself included, that are at
            least as bad; else what Ville's inequality gives for the largest M. That of a success is
            at most alpha with probability at most alpha, as a mean over training sets, whenever one
            looks. It is the smallest level at which the run would be flagged by now, ties apart,
            but with "pac" and "pac_marginal", which flag fewer runs.

        Examples
        --------
        >>> from trajscore import DensityRatioEProcess
        >>> from trajscore.datasets import make_trajectories
        >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
        >>> process = DensityRatioEProcess(alpha=0.1).fit(X, y)
        >>> (process.p_values(X[:500]) <= 0.1).tolist() == (process.predict(X[:500]) == 0).tolist()
        True
        """
        traces = self._check(X)
        largest = run_maxima(traces, self._statistic(traces))
        return self.test_.threshold.p_values(largest)

    def promise(self, alpha: float | None = None) -> Promise:
        """Return what is promised to which runs at a fitted level, by default the first."""
        level = self._level(alpha)
        return Promise(level, self.test_.threshold.of, self.test_.threshold.holds)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        shown = super().__repr__(N_CHAR_MAX)
        if hasattr(self, "test_"):
            shown += f" that flags {self.promise()}"
        return shown

    def _warn_if_idle(self, X: TrajectoryArray) -> None:
        """Warn of levels at which none of the runs of the fit is flagged."""
        idle = [
            f"{alpha:g}"
            for alpha, limit in self.thresholds_.items()
            if np.isfinite(limit) and not self.stopping_steps(X, alpha).any()
        ]
        # without outcomes none of few runs is above a threshold that they set
        if idle and self.test_.has_outcomes:
            warnings.warn(
                f"none of the {len(X):,} runs of the fit is flagged at alpha = {', '.join(idle)}, "
                f"so the process may never flag a run; give scores in which successes and failures "
                f"differ more, or raise alpha",
                stacklevel=3,
            )

    @property
    def _spared(self) -> int:  # type: ignore[override]
        return int(self.flags == "failure")

    def _held_out_rows(
        self,
        threshold: Threshold,
        y: IntArray,
        observed: IntArray,
        calibration: ArrayLike | None,
        groups: IntArray,
        random: Any,
    ) -> IntArray:
        """Rows that the threshold is set on, and nothing is learned from; all without outcomes."""
        if threshold.of == "runs":
            return observed
        if not isinstance(threshold, HeldOut):
            if calibration is not None:
                raise ValueError(
                    f"threshold={threshold.keyword!r} holds out no runs; leave calibration out"
                )
            return np.empty(0, int)
        share = self.calibration_fraction
        seed = random.randint(2**31)
        outcomes = y[observed]
        groups = groups[observed]
        for outcome, name in ((1, "success"), (0, "failure")):
            count = (outcomes == outcome).sum()
            if calibration is None and count < 2:
                raise ValueError(
                    f"the runs have {number_of(count, name)} (n_samples = {len(observed)}); "
                    f"splitting them needs at least 2; or fit without outcomes"
                )
        is_grouped = len(np.unique(groups)) < len(observed)
        if calibration is not None or (self.hold_out == "runs" and not is_grouped):
            return held_out_rows(observed, len(y), calibration, share, seed, stratify=outcomes)
        # whole groups of which a run is spared; without groups every run is one
        spared = pd.unique(groups[outcomes == self._spared])
        n_held_out = threshold.n_held_out(int(share * len(spared)), len(spared), self.alphas_.min())
        return observed[np.isin(groups, random.permutation(spared)[:n_held_out])]

    # ------------------------------------------------------------------ using

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        return self.test_.statistic(X, self.test_.log_m(X))

    def _limits(self, X: TrajectoryArray, alpha: float) -> FloatArray:
        return self.test_.threshold.limits(X.ids, alpha)

    def _shown_threshold(self, alpha: float) -> float:
        log_threshold = self.test_.threshold.log_threshold(alpha)
        if not self.test_.has_outcomes:
            return -self.test_.sign * log_threshold
        return float(np.exp(log_threshold))


def _warn_if_alike(test: FittedTest, X: TrajectoryArray) -> None:
    if len(X) < 2 or np.ptp(test.log_m(X)) >= TIE:
        return
    least = getattr(final_forecaster(test.forecaster), "min_class_count", 1)
    warnings.warn(
        f"The forecasts of all {len(X)} runs are the same at every step, so the process cannot "
        f"distinguish runs. Give scores that vary, or more runs: a step needs {least} runs of "
        f"each outcome",
        stacklevel=3,
    )
