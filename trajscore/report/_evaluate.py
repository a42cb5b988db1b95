"""From traces and outcomes to a verdict."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.calibration.calibrators import CALIBRATORS, calibrator_maker
from trajscore.core.collapse import AGGREGATORS
from trajscore.core.errors import ArgumentError
from trajscore.core.own_stops import refuse_own_stops
from trajscore.core.parallel import Progress, Work
from trajscore.core.run_sums import beyond_end
from trajscore.core.score_families import USUAL_SCORES, several_families
from trajscore.core.values import as_fraction, check_choice
from trajscore.core.version import __version__
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.inference.mean_intervals import METHODS
from trajscore.monitoring import StoppingRule
from trajscore.report._cards import cards_and_pairs
from trajscore.report._data import (
    BASE_RATE,
    CONSTANT,
    RECALIBRATED,
    Facts,
    IntervalOptions,
    MonitoringOptions,
    Note,
    Options,
    Source,
)
from trajscore.report._equal_length import by_step_table, equal_length_table
from trajscore.report._groups import group_table, small_groups
from trajscore.report._in_batches import batch_rules, evaluate_batches
from trajscore.report._intervals import interval_table
from trajscore.report._leakage import leaky_predictors, risks
from trajscore.report._missing import fill_forward, leave_out_missing
from trajscore.report._monitoring import monitoring_options, monitoring_table
from trajscore.report._report import Report
from trajscore.report._rows import heavy_run, make_rows
from trajscore.report._runs import (
    censored_as,
    check_predictors,
    choose_runs,
    few_clusters,
    group_labels,
    knows_end,
    out_of_range_values,
)
from trajscore.report._tables import (
    count_table,
    excluded_table,
    gain_table,
    row_table,
    sensitivity_table,
)
from trajscore.streaming.batches import RunBatches
from trajscore.streaming.dask_batches import DaskBatches


def evaluate(
    X: Any,
    y: ArrayLike | None = None,
    *,
    scores: Any = USUAL_SCORES,
    weights: Weights = "early",
    horizon: Horizon = None,
    phi: str = "weighted",
    calibrator: Any = "auto",
    censored: str = "failure",
    q_z: ArrayLike | None = None,
    stop_reason: ArrayLike | None = None,
    missing: str = "same_runs",
    groups: ArrayLike | None = None,
    by: Any = None,
    end: bool | Mapping[str, bool] | None = None,
    monitoring: bool | StoppingRule | MonitoringOptions = False,
    intervals: str | IntervalOptions = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Judge every predictor: what it is worth as given, and what recalibration would buy.

    Parameters
    ----------
    X : TrajectoryArray, dict of str to traces, array-like of shape (n_runs, T_max) or batches
        One trace a run for each predictor: the channels of a container, or the items of a dict. Or
        batches of `trajscore.streaming.iter_batches`, for more runs than memory holds: values of
        forecasts then are of all runs, and what else there is of 20,000 drawn by hash.
        Values in [0, 1] are forecasts of success; other signals (higher where success is more
        likely) get rank diagnostics, and proper scores once recalibrated.
    y : array-like of shape (n_runs,), optional
        Outcomes: 1 success, 0 failure, -1 (or missing) not observed. Batches hold their own.
    scores : score family or sequence of them, default=("log", "brier", ("beta", 4, 2))
        Trajectory Proper Scores to report, or one of them; intervals and verdicts lead with the
        first. Beta(4, 2) punishes overconfidence in runs that fail, which is what somebody who lets
        an agent go on has to fear; the tables of Raghu et al. have Beta(2, 4), which punishes
        pessimism about runs that succeed.
    weights, horizon : str or callable, and int, "own" or None
        Step weights of scores, calibration and aggregation, as in `trajscore.metrics.tps_score`.
        Default: "early", 1/sqrt(t). ``weights="linear_front", horizon="own"`` is the convention of
        Raghu et al., which is not proper where the length of a run depends on how it ends.
    phi : {"last", "mean", "min", "weighted"}, default="weighted"
        How traces are collapsed for the scalar diagnostics.
    calibrator : {"auto", "platt", "beta", "isotonic"}, forecaster or None, default="auto"
        What makes the recalibrated rows, out of fold: "auto" is a
        `trajscore.calibration.EnsembleCrossFitCalibrator`, "platt" a `PlattCrossFitCalibrator`, as
        in the tables of Raghu et al., and so on, with the weights above; any other forecaster,
        pipeline or search goes through `trajscore.calibration.cross_fit_traces`. What cannot be
        fitted anew for each fold is refused.
    censored : {"failure", "drop", "q_z"}, default="failure"
        What runs with outcome -1 stand for in calibration, base rate and every metric: they are
        failures (the simple censored score), are left out, or count `q_z` as a success and
        1 - `q_z` as a failure (the exact score).
    q_z : float or array-like of shape (n_runs,), optional
        Continuation-success probability of runs that were not observed; where it is given, they
        count with it. Of batches this, stop reasons and `by` are names of columns in their `meta`.
    stop_reason : array-like of shape (n_runs,), optional
        Why each run ended. Unobserved runs that no budget stopped are left out and counted.
        Default: the columns "stop_reason" and "stop_kind" of the container's meta, if there are.
    missing : {"same_runs", "own_runs", "ffill"}, default="same_runs"
        What to do where a value of a predictor is missing: leave the run out for all predictors, so
        that they are judged on the same runs; leave it out for that predictor alone; or let a value
        hold until the next one is stated, and leave out the runs whose first value is missing.
        What is left out is counted, with whose value was missing.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs (trials of one task), kept together in calibration and bootstrap.
    by : str, array-like of shape (n_runs,) or dict of them, optional
        Also say what to do with each predictor within groups of runs, say those of one model or
        kind of task: a column of the container's meta, or labels; a dict has several of these.
        Each group is held against its own base rate, and the error rate is shared out over all
        groups. Empty labels are a group of their own.
    end : bool or dict of str to bool, optional
        Whether predictors know, with the last step of a run, that it is the last: what counting
        steps is worth, which they are held against, is then counted with that knowledge. A dict
        says so by predictor. Default: what the calibrator says by its `end`, if it has one; else
        both are stated where they differ.
    monitoring : bool, StoppingRule or MonitoringOptions, default=False
        Whether to report what stopping failing runs early would do, on runs that the rule was not
        fitted on; True is a `DensityRatioEProcess` at the levels 0.05, 0.1 and 0.2.
        `trajscore.report.MonitoringOptions` also has the share of runs that it is fitted on, and
        the number of random splits.
    intervals : {"auto", "bootstrap", "influence"} or IntervalOptions, default="auto"
        How intervals are made: from the influence of each run on a metric, which holds for many
        runs; by bootstrap; or by influence where at least 30 runs or clusters (or a quarter of all,
        if that is less) carry the variance, and else by bootstrap. Those of scores and costs are
        wide enough for losses that no run has shown yet. Calibration errors have bounds of
        their own. `trajscore.report.IntervalOptions`
        also has their level, the number of replicates and the seed.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    progress : callable, optional
        Wraps what takes long, as ``tqdm`` does: the lists of predictors, of groups and of blocks
        of replicates.

    Returns
    -------
    Report
        Tables, what was left out, disclosures; prints in a terminal, writes HTML.

    Raises
    ------
    ValueError
        If an option is unknown; if predictors are not of the same runs in the same order, or
        there is not one outcome, stop reason, group and `q_z` for each run; if fewer than two
        runs are left, or only one outcome among the observed ones; if no predictor has enough
        runs without missing values; or if a predictor stopped some of the runs itself, which their
        stop reasons and its values tell.

    Notes
    -----
    All numbers of a table are of the same runs and labels. Scalar diagnostics are failure-oriented.
    The references are the best constant, which is the success rate over forecasts with their
    weights, and what counting steps is worth: the alive rate, P(Y = 1 | still running at t), by
    `trajscore.calibration.AliveRate`. A predictor that does not beat both has shown nothing. Runs
    are put in the order of their ids first, so the order of rows does not matter.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 5.2
    and Appendix F.

    Examples
    --------
    >>> from trajscore import evaluate
    >>> from trajscore.datasets import load_chess
    >>> X, y = load_chess(return_X_y=True)
    >>> report = evaluate(X, y)
    >>> report.table["TPS log margin"].round(2)["engine"]
    form
    as_given       -2.28
    recalibrated    0.09
    Name: TPS log margin, dtype: float64
    """
    check_choice(phi, "phi", AGGREGATORS)
    options = Options(several_families(scores), as_step_weights(weights, horizon), phi)
    if isinstance(X, (RunBatches, DaskBatches)):
        return _of_batches(
            X, options, y, groups, missing, q_z, stop_reason, calibrator=calibrator,
            censored=censored, by=by, end=end, monitoring=monitoring, intervals=intervals,
            n_jobs=n_jobs, progress=progress,
        )  # fmt: skip
    draws = (
        intervals if isinstance(intervals, IntervalOptions) else IntervalOptions(method=intervals)
    )
    if not isinstance(draws.method, str):
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"intervals must be {names} or IntervalOptions, got {intervals!r}")
    check_choice(draws.method, "intervals", METHODS)
    as_fraction(draws.confidence_level, "confidence_level")
    work = Work(n_jobs, progress)
    maker = calibrator_maker(calibrator, options.weights)
    censored = censored_as(censored, q_z)
    stopping = monitoring_options(monitoring)
    notes: list[Note] = []
    sample = fill_forward(check_predictors(X, y, groups, q_z), missing, notes)
    knowing = knows_end(end, list(sample.traces), calibrator)
    notes += [*out_of_range_values(sample.traces), *leaky_predictors(sample.traces, sample.y)]
    judged = leave_out_missing(choose_runs(sample, stop_reason, censored, notes), missing, notes)
    refuse_own_stops(sample.traces, stop_reason)
    groupings = group_labels(by, sample, judged)
    clusters = np.asarray(groups, dtype=object)
    rows = make_rows(judged, maker, options.weights, work, notes)
    cards, pairs = cards_and_pairs(rows, options, draws, work)
    observed_cards = None
    observed = judged.runs.observed
    if not observed.all():  # all fitted anew, as if there were no others
        alone = judged.take(np.flatnonzero(observed))
        rows_alone = make_rows(alone, maker, options.weights, work, [])
        observed_cards, _ = cards_and_pairs(rows_alone, options, draws, work)
    table, methods = interval_table(rows, judged.runs, options, draws, work)
    notes += [*risks(table), *few_clusters(judged.runs)]
    notes += [*heavy_run(rows, options.weights), *small_groups(groupings)]
    calibrators = {row.predictor: row.calibrator for row in rows if row.form == RECALIBRATED}
    return Report(
        table=row_table(count_table(rows), options, table),
        intervals=table,
        interval_methods=methods,
        excluded=excluded_table(judged.excluded),
        calibration_gain=gain_table(options, table),
        monitoring=(None if stopping is None else monitoring_table(rows, stopping, work, notes)),
        cards=cards,
        pairs=pairs,
        by=group_table(rows, groupings, cards, options, draws, work) if groupings else None,
        sensitivity=sensitivity_table(rows, cards, observed_cards, options),
        observed_cards=observed_cards,
        by_step=by_step_table(rows, options, draws, work),
        equal_length=equal_length_table(rows, options, draws, work),
        options=options,
        facts=Facts(
            n_runs=len(judged.runs),
            n_observed=int(observed.sum()),
            success_rate=float(judged.runs.y[observed].mean()),
            censored=censored,
            rate=float({row.key: row for row in rows}[BASE_RATE, CONSTANT].traces.cells[0]),
            n_beyond=int((beyond_end(next(iter(judged.traces.values()))) & observed).sum()),
            n_unscored=options.weights.n_unscored(sample.X.lengths[judged.runs.source_rows]),
            knows_end={name: knowing[name] for name in judged.traces},
            is_clustered=groups is not None,
            intervals=draws,
            calibrators=None if maker is None else calibrators,
            monitoring=stopping,
        ),
        remarks=notes,
        source=Source(
            outcome=str(getattr(y, "name", None) or ""), created=_now(), version=__version__
        ),
        traces={row.key: row.traces for row in rows},
        outcomes={row.key: row.runs.y for row in rows},
        labels={row.key: row.runs.labels for row in rows},
        groups={row.key: clusters[row.runs.source_rows] for row in rows}
        if groups is not None
        else {},
    )


def _of_batches(
    X: Any,
    options: Options,
    y: Any,
    groups: Any,
    missing: str,
    q_z: Any,
    stop_reason: Any,
    **as_given: Any,
) -> Report:
    """Refuse what is not for batches, and go through them; of a sample a usual report is made."""
    if y is not None or groups is not None:
        raise ValueError("batches hold outcomes and groups themselves; leave out y and groups")
    if missing == "own_runs":
        raise ArgumentError(
            "batches are judged on the same runs; leave out {argument}", "missing", missing
        )
    calibrator, censored, by = (as_given[name] for name in ("calibrator", "censored", "by"))
    if calibrator is not None and not isinstance(calibrator, str):
        raise ValueError(
            f"batches are calibrated by {', '.join(map(repr, CALIBRATORS))} or None, got "
            f"calibrator={calibrator!r}"
        )
    of_sample = partial(
        evaluate,
        scores=options.scores,
        weights=options.weights.schedule,
        horizon=options.weights.horizon,
        phi=options.phi,
        **as_given,
    )
    knows_end(as_given["end"], list(X.columns.values), calibrator)
    rules = batch_rules(X.columns.meta, censored, missing, q_z, stop_reason, by)
    maker = calibrator_maker(calibrator, options.weights)
    return evaluate_batches(X, options, rules, maker, of_sample)


def _now() -> str:
    """Return the time, to the second; that of SOURCE_DATE_EPOCH where a build is to be repeated."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(int(epoch), UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
