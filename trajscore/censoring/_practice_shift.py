"""What cutting runs off, and throwing away those without an outcome, does to a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration import cross_fit_traces
from trajscore.calibration.calibrators import calibrator_maker
from trajscore.calibration.cross_fit import CrossFitCalibrator
from trajscore.censoring._hazard import as_mask
from trajscore.censoring.audit import termination_audit
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import Sample, check_forecasts, check_sample, check_traces
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, as_labels
from trajscore.core.score_families import USUAL_SCORES, several_families
from trajscore.core.stops import recorded_stops, refuse_own_stops
from trajscore.core.values import (
    ArrayLike,
    FloatArray,
    as_count,
    as_horizon,
    as_lengths,
    is_iterable,
    undefined_is_nan,
)
from trajscore.core.weights import (
    Horizon,
    StepWeights,
    Weights,
    as_step_weights,
    run_sums,
    schedules_of,
    weighted_mean,
)
from trajscore.inference import bootstrap
from trajscore.inference.intervals import percentile_interval
from trajscore.metrics.tps import BASE_RATE, panel_sums, ranks

_STEPS = "number of steps"


@dataclass(frozen=True, eq=False)
class PracticeShift:
    """Complete-only against censored-extended scores.

    Attributes
    ----------
    table : DataFrame indexed by predictor, score, weights
        complete, extended and shift = extended - complete; margins of both over the base rate
        and their change; ranks of the predictors under both; rank_flip, whether the rank
        changes, and sign_flip, whether the margin changes sign. Intervals of shift and margins
        end in _low and _high.
    n_complete, n_censored, n_excluded : int
        Runs of the complete-only score, those that the extension adds, and those left out
        because something other than a budget stopped them.
    censored_weight : Series indexed by weights
        Share of the weight that censored runs hold. It times what these score above the complete
        runs is the shift.
    mean_forecast : Series indexed by predictor
        Mean forecast over runs, steps weighted by the first schedule.
    selection : DataFrame indexed by "number of steps" and predictor
        How the runs that the extension adds differ from the complete ones: means over complete and
        over censored runs of the number of steps and of the forecast (of each run, weighted by
        the first schedule), and their difference with its interval (low, high).
    """

    table: pd.DataFrame
    n_complete: int
    n_censored: int
    n_excluded: int
    censored_weight: pd.Series
    mean_forecast: pd.Series
    selection: pd.DataFrame

    @property
    def censoring_rate(self) -> float:
        """Share of censored runs among those scored; with ``horizon="own"`` also of the weight."""
        return self.n_censored / (self.n_complete + self.n_censored)

    def shifts(self) -> pd.DataFrame:
        """Return the shifts, predictor and weights by score: Table 11 of the paper."""
        return self.table["shift"].unstack("score")[list(self.table.index.unique("score"))]

    def signs(self) -> pd.DataFrame:
        """Return the sign of the shifts, predictor by weights: Table 13 of the paper.

        "+" or "-", and "+/-" where score families disagree.
        """
        sign = np.sign(self.table["shift"].drop(BASE_RATE, level="predictor"))
        by_family = sign.groupby(level=["predictor", "weights"], sort=False)
        text = pd.Series("+/-", index=by_family.min().index)
        text[by_family.min() > 0] = "+"
        text[by_family.max() < 0] = "-"
        wide = text.unstack("weights")[list(self.table.index.unique("weights"))]
        wide.insert(0, "mean forecast", self.mean_forecast.reindex(wide.index))
        return wide

    def margins(self) -> pd.DataFrame:
        """Return margins over the base rate before and after, and what became of them.

        Table 14 of the paper, for every predictor, score and weights; shrinkage is
        1 - extended / complete.
        """
        table = self.table.drop(BASE_RATE, level="predictor")
        out = table[["margin_complete", "margin_extended", "sign_flip"]].copy()
        ratio = out["margin_extended"] / out["margin_complete"].replace(0, np.nan)
        out.insert(2, "shrinkage", (1 - ratio).where(~out["sign_flip"]))
        return out


def practice_shift(
    X: Any,
    y: ArrayLike,
    *,
    scored: ArrayLike | None = None,
    scores: Sequence[Any] = USUAL_SCORES,
    weights: Sequence[Weights] | None = None,
    horizon: Horizon = None,
    calibrator: Any = "platt",
    q_z: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    **bootstrap_options: Any,
) -> PracticeShift:
    """Compare scores of observed runs alone with scores that include the runs cut off.

    Parameters
    ----------
    X : TrajectoryArray, dict of str to traces, or array-like of shape (n_runs, T_max)
        One trace a run for each predictor: the channels of a container, or the items of a dict.
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 (or missing) not observed.
    scored : ndarray of bool of shape (n_runs,), optional
        Runs that enter, such as ``termination_audit(X, y).scored("administrative")``, the
        sensitivity run that takes informative stops for budgets. Default: those that
        `termination_audit` scores, and all where the meta of the runs has no stop reasons.
    scores : sequence of score families, default=("log", "brier", ("beta", 4, 2))
        Score families, one column of `shifts` each.
    weights : sequence of str or callable, optional
        Step weights. Default: all schedules; without a horizon, those that need none.
    horizon : int, "own" or None, default=None
        Horizon of all schedules, as in `trajscore.metrics.tps_score`; "own" is that of the paper.
    calibrator : str, forecaster or None, default="platt"
        Makes out-of-fold forecasts of all scored runs. A name, one of those of
        `trajscore.evaluate`, stands for a calibrator on the pseudo-label (or on `q_z`) that is
        fitted anew for each schedule, with its weights: otherwise the mismatch of calibration and
        score would count as an effect of the schedule. A signal outside [0, 1] is higher where
        success is more likely: turn a risk round first. A forecaster is taken as it is, once for
        all schedules, as by `trajscore.calibration.cross_fit_traces`. None takes the traces as
        forecasts.
    q_z : float or array-like of shape (n_runs,), optional
        Continuation-success probability of unobserved runs. Default: 0, the simple score.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs (trials of one task), drawn together.
    confidence_level : float, default=0.95
        Level of the intervals.
    **bootstrap_options
        n_resamples, random_state (here 0 by default) and n_jobs of
        `trajscore.inference.bootstrap`; all figures of one replicate come from the same draw.

    Returns
    -------
    PracticeShift
        One table with all figures, and views of it.

    Raises
    ------
    ValueError
        If all runs were observed, or none was; if predictors are not of the same runs in the same
        order, or there is not one `q_z` and one group for each run; or if a predictor stopped some
        of the runs itself.

    Notes
    -----
    The base rate is the mean pseudo-label over the forecasts of all scored runs (with
    ``horizon="own"`` over the runs), the same constant in both scores.
    A shift is an effect of the evaluation: nothing about the agent has changed.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 6.3
    Figure 2 and Tables 11 to 14; Appendix D for the calibration of each schedule.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> runs = make_trajectories(300, budget=8, random_state=0)
    >>> shift = practice_shift({"signal": runs.data}, runs.target, n_resamples=200)
    >>> shift.signs().loc["signal", "early"]
    '+'
    >>> shift.selection.loc["number of steps", ["complete", "censored"]].round(1).tolist()
    [5.5, 8.0]
    """
    sample = check_sample(
        X, y, groups=groups, several=True, reserved=[BASE_RATE, _STEPS], single_channel=True
    )
    refuse_own_stops(sample.traces)
    enters = np.ones(len(sample), dtype=bool)
    if scored is not None:
        enters = as_mask(scored, len(sample), "scored")
    elif recorded_stops(sample.X.meta)[0] is not None:
        enters = termination_audit(sample.X, sample.y).scored()
    scores = several_families(scores)
    schedules = schedules_of(weights, horizon)
    # q_z is not read for runs that do not enter
    used = np.where(enters, sample.y, 0)
    censored = "failure" if q_z is None else "q_z"
    labels = as_labels(used, censored=censored, q_z=q_z).value
    rows = sample.id_order()
    rows = rows[enters[rows]]
    sample = sample.take(rows)
    labels = labels[rows]
    observed = sample.y != CENSORED
    if not observed.any():
        raise ValueError(
            f"none of the {len(observed)} runs that can be scored has an observed outcome; there "
            f"is no complete-only score to compare with"
        )
    if observed.all():
        raise ValueError(
            f"all {len(observed)} runs that can be scored were observed; there is no practice to "
            f"compare: use tps_score or evaluate"
        )
    forecasts = {  # of each predictor one for each schedule
        name: _calibrated(name, trace, sample, labels, calibrator, schedules, censored)
        for name, trace in sample.traces.items()
    }
    index, sums = panel_sums(labels, forecasts, scores, schedules)
    w = schedules[0].of(sample.X).cells()
    covariates = pd.DataFrame({_STEPS: sample.X.lengths.astype(float)})
    for name, traces in forecasts.items():
        covariates[name] = weighted_mean(traces[0], w)
    totals = np.column_stack([*(of_runs.total for of_runs in sums), covariates])
    ones = np.ones(covariates.shape)
    divisors = np.column_stack([*(of_runs.divisor for of_runs in sums), ones])
    kinds = (observed, ~observed, observed | ~observed)

    @undefined_is_nan()  # a draw without runs of one kind is NaN
    def means(counts: FloatArray) -> FloatArray:
        """Return means over complete, over censored and over all runs, for each replicate."""
        of_kinds = [
            counts[:, rows] @ totals[rows] / (counts[:, rows] @ divisors[rows]) for rows in kinds
        ]
        return np.stack(of_kinds, axis=1)

    options = {"random_state": 0} | bootstrap_options
    replicates = bootstrap(means, len(sample), groups=sample.groups, **options)
    both = np.concatenate([means(np.ones((1, len(sample)))), replicates])
    complete, censored = both[:, :2, len(index) :].swapaxes(0, 1)
    gap = censored - complete
    columns = {"complete": complete[0], "censored": censored[0], "difference": gap[0]}
    selection = pd.DataFrame(columns, covariates.columns)
    selection["low"], selection["high"] = percentile_interval(gap[1:], confidence_level)
    cut = (~observed).astype(float)
    shares = {how.schedule_name: how.of(sample.X).rate(cut) for how in schedules}
    return PracticeShift(
        table=_table(index, both[:, ::2, : len(index)], confidence_level),
        n_complete=int(observed.sum()),
        n_censored=int((~observed).sum()),
        n_excluded=int((~enters).sum()),
        censored_weight=pd.Series(shares, name="censored weight").rename_axis("weights"),
        mean_forecast=covariates.mean().drop(_STEPS),
        selection=selection.drop(index=BASE_RATE),
    )


def _calibrated(
    name: str,
    trace: TrajectoryArray,
    sample: Sample,
    labels: FloatArray,
    calibrator: Any,
    schedules: Sequence[StepWeights],
    censored: str,
) -> list[TrajectoryArray]:
    """Return out-of-fold forecasts of a predictor for each schedule."""
    by_name = isinstance(calibrator, str)

    def forecasts(how: StepWeights) -> Any:
        make = calibrator_maker(calibrator, how)
        if make is None:
            return trace
        fresh = make(trace.is_within_unit())
        if by_name:  # of "failure" and "q_z" only the latter reads `labels`
            fresh.set_params(censored=censored)
        cv = fresh.cv if isinstance(fresh, CrossFitCalibrator) else 5
        return cross_fit_traces(fresh, trace, sample.y, groups=sample.groups, q_z=labels, cv=cv)

    traces = [forecasts(how) for how in (schedules if by_name else schedules[:1])]
    try:
        checked = list(map(check_traces, traces))
    except ValueError as error:
        raise ValueError(f"predictor {name!r}: {error}") from error
    return checked if len(checked) > 1 else checked * len(schedules)


_FIGURES = ("complete", "extended", "shift", "margin_complete", "margin_extended", "margin_shift")


def _table(index: pd.MultiIndex, means: FloatArray, confidence_level: float) -> pd.DataFrame:
    """Describe means over complete and over all runs, of which the first row is the sample's."""
    by_predictor = means.reshape(len(means), 2, len(index.levels[0]), -1)
    margins = (by_predictor - by_predictor[:, :, -1:]).reshape(means.shape)  # the base rate is last
    shifts = [np.diff(of_kind, axis=1) for of_kind in (means, margins)]
    figures = np.concatenate([means, shifts[0], margins, shifts[1]], axis=1)
    low, high = percentile_interval(figures[1:], confidence_level)
    table = pd.DataFrame(index=index)
    for k, name in enumerate(_FIGURES):
        table[name] = figures[0, k]
        if name not in ("complete", "extended"):  # intervals are of what compares
            table[f"{name}_low"] = low[k]
            table[f"{name}_high"] = high[k]
    # ranks from that of the base rate, the last, have the sign of margins, with ties for rounding
    complete, extended = map(ranks, by_predictor[0])
    table["rank_complete"] = complete.ravel()
    table["rank_extended"] = extended.ravel()
    table["rank_flip"] = (complete != extended).ravel()
    signs = (complete[-1] - complete) * (extended[-1] - extended)
    table["sign_flip"] = (signs < 0).ravel()
    return table


def censoring_shift(
    y_true: ArrayLike,
    traces: Any,
    lengths: ArrayLike,
    *,
    q_z: ArrayLike = 0.0,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Say by outcome what cutting complete runs off does to their Trajectory Proper Score.

    A run that is cut loses the outcome and the rest of its steps. The first swaps its own outcome
    for `q_z` on the prefix, which moves the score either way; the second leaves out the forecasts
    of the rest. Where these are worse than those of the prefix, leaving them out raises the score.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes, all observed: 1 success, 0 failure.
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1] up to the end of each run.
    lengths : int or array-like of int of shape (n_runs,)
        Steps that are kept, for all runs (a budget) or for each; shorter runs stay as they are.
    q_z : float or array-like of shape (n_runs,), default=0.0
        Continuation-success probability that stands for the outcome of a cut run; 0 is the simple
        censored score.
    score, weights, horizon, sample_weight : score family, step weights and array-like
        As in `trajscore.metrics.tps_score`.

    Returns
    -------
    DataFrame indexed by outcome: "failure", "success", "all"
        n_runs and n_cut, numbers of runs; complete and censored, mean scores before and after;
        shift = censored - complete = prefix_swap + tail_omission. Scores are of all runs of the
        outcome, cut or not; NaN where there are none. The tail omission is the share of the weight
        that is left out, times what the forecasts there score below those that are kept. With
        ``horizon="own"`` a cut run keeps the weights of its whole length, and an omitted tail never
        lowers the score, as in the paper.

    Raises
    ------
    ValueError
        If an outcome was not observed or is a grade, a length is not a whole number of at least 1,
        or `q_z` of a run that is cut lies outside [0, 1].

    See Also
    --------
    practice_shift : For runs that were really cut off.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix I.1
    and Table 10.

    Examples
    --------
    >>> traces = [[0.8, 0.9, 0.9], [0.6, 0.4, 0.2], [0.7, 0.8]]
    >>> own = {"weights": "linear_front", "horizon": "own"}
    >>> censoring_shift([1, 0, 1], traces, 2, score="brier", **own).round(3).T
    outcome        failure  success    all
    n_runs           1.000    2.000  3.000
    n_cut            1.000    1.000  2.000
    complete        -0.240   -0.049 -0.113
    censored        -0.233   -0.332 -0.299
    shift            0.007   -0.283 -0.186
    prefix_swap      0.000   -0.283 -0.189
    tail_omission    0.007    0.001  0.003
    """
    sample = check_forecasts(y_true, traces, sample_weight=sample_weight, allow_soft=False)
    whole = sample.X
    y = sample.y
    n_steps: Any = as_lengths(lengths) if is_iterable(lengths) else as_count(lengths, "lengths")
    if np.ndim(n_steps) and len(n_steps) != len(whole):
        raise ValueError(f"lengths must be one number or {len(whole)}, got {len(n_steps)}")
    # with horizon="own" a prefix keeps the weights of the whole run
    short = whole.truncate(np.minimum(n_steps, whole.lengths)).with_horizon(
        as_horizon(whole.horizon, whole.lengths)
    )
    cut = short.lengths < whole.lengths
    labels = as_labels(np.where(cut, CENSORED, y), censored="q_z", q_z=q_z).value
    how = as_step_weights(weights, horizon)
    outcomes = np.array([y == FAILURE, y == SUCCESS, y != CENSORED])
    weight = sample.weight * outcomes
    scored = ((y, whole), (y, short), (labels, short))
    of_runs = [run_sums(outcome, X, score, how) for outcome, X in scored]
    with undefined_is_nan():  # NaN where there is no run of an outcome
        complete, prefix, censored = (
            (weight * sums.total).sum(axis=1) / (weight * sums.divisor).sum(axis=1)
            for sums in of_runs
        )
    columns = {
        "n_runs": outcomes.sum(axis=1),
        "n_cut": (outcomes & cut).sum(axis=1),
        "complete": complete,
        "censored": censored,
        "shift": censored - complete,
        "prefix_swap": censored - prefix,
        "tail_omission": prefix - complete,
    }
    return pd.DataFrame(columns, pd.Index(["failure", "success", "all"], name="outcome"))
