"""From traces and outcomes to a verdict."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from trajscore import __version__
from trajscore.calibration.calibrators import CalibratorMaker, calibrator_maker
from trajscore.core.checks import check_predictors, group_labels
from trajscore.core.errors import ArgumentError
from trajscore.core.ids import check_index
from trajscore.core.parallel import Work
from trajscore.core.score_families import get_family, several_families
from trajscore.core.stops import read_stops, refuse_own_stops
from trajscore.core.values import as_fraction, check_choice
from trajscore.core.weights import AGGREGATORS, Weights, as_step_weights
from trajscore.evaluation.acting import monitoring_options, monitoring_table
from trajscore.evaluation.batches import batch_selection, evaluate_batches
from trajscore.evaluation.combined import combine, purchase, signal_table
from trajscore.evaluation.doubts import doubts
from trajscore.evaluation.evaluation import Facts, Source
from trajscore.evaluation.first_errors import find_first_errors
from trajscore.evaluation.groups import recommend_in_groups
from trajscore.evaluation.intervals import interval_table
from trajscore.evaluation.options import (
    REFERENCES,
    TOGETHER,
    EvaluationOptions,
    MonitoringOptions,
    Note,
    Options,
)
from trajscore.evaluation.recommendation import Recommendation, recommend_all
from trajscore.evaluation.rows import make_rows
from trajscore.evaluation.runs import (
    MISSING,
    Counts,
    EvaluatedRuns,
    censored_as,
    fill_forward,
    knows_end,
    leave_out_missing,
    refuse_without_outcomes,
    select_runs,
    under_other_choices,
)
from trajscore.inference.intervals import ONE_CLUSTER
from trajscore.inference.mean_intervals import METHODS, check_resamples
from trajscore.report._report import Report
from trajscore.streaming.batches import DaskBatches, RunBatches

if TYPE_CHECKING:
    from trajscore.monitoring import StoppingRule

_USUAL = EvaluationOptions()


def evaluate(
    X: Any,
    y: ArrayLike | None = None,
    *,
    weights: Weights = "early",
    calibrator: Any = "auto",
    censored: str | ArrayLike = "failure",
    stop_reason: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    by: Any = None,
    monitoring: bool | StoppingRule | MonitoringOptions = False,
    options: EvaluationOptions = _USUAL,
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
    weights : str or callable, default="early"
        Step weights of scores, calibration and aggregation, as in `trajscore.metrics.tps_score`:
        "early" is 1/sqrt(t). "linear_front", over `EvaluationOptions(horizon="own")`, is the
        convention of Raghu et al., which is not proper where the length of a run depends on how it
        ends.
    calibrator : str, forecaster or None, default="auto"
        What makes the recalibrated rows, out of fold. A text is the `keyword` of a calibrator of
        `trajscore.calibration`, such as "auto" (`EnsembleCrossFitCalibrator`) or "platt"
        (`PlattCrossFitCalibrator`, as in the tables of Raghu et al.), with the weights above; any
        other forecaster, pipeline or search goes through `trajscore.calibration.cross_fit_traces`.
        What cannot be fitted anew for each fold is refused.
    censored : {"failure", "drop"}, float or array-like of shape (n_runs,), default="failure"
        What runs with outcome -1 stand for in calibration, base rate and every metric: they are
        failures (the simple censored score), are left out, or have these continuation
        probabilities, q_z: each counts q_z as a success and 1 - q_z as a failure (the exact score).
        Of batches these, stop reasons and `by` are names of columns in their `meta`.
    stop_reason : array-like of shape (n_runs,), optional
        Why each run ended. Unobserved runs that no budget stopped are left out and counted.
        Default: the columns "stop_reason" and "stop_kind" of the container's meta, if there are.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs (trials of one task), kept together in calibration and bootstrap.
    by : str, array-like of shape (n_runs,) or dict of them, optional
        Also say what to do with each predictor within groups of runs, say those of one model or
        kind of task: a column of the container's meta, or labels; a dict has several of these.
        Each group is held against its own base rate, and the error rate is shared out over all
        groups. Empty labels are a group of their own.
    monitoring : bool, StoppingRule or MonitoringOptions, default=False
        Whether to report what stopping failing runs early would do, on runs that the rule was not
        fitted on; True is a `DensityRatioEProcess` at the levels 0.05, 0.1 and 0.2.
        `trajscore.report.MonitoringOptions` also has the share of runs that it is fitted on, and
        the number of random splits.
    options : EvaluationOptions, optional
        All else: score families, horizon, intervals, missing values, threads.

    Returns
    -------
    Report
        Tables, what was left out, disclosures; prints in a terminal, writes HTML.

    Raises
    ------
    ValueError
        If an option is unknown; if predictors are not of the same runs in the same order, or
        there is not one outcome, stop reason, group and q_z for each run; if fewer than two
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
    if not isinstance(options, EvaluationOptions):
        raise ValueError(f"options must be EvaluationOptions(...), got {options!r}")
    check_choice(options.phi, "phi", AGGREGATORS)
    check_choice(options.intervals, "intervals", METHODS)
    check_choice(options.missing, "missing", MISSING)
    as_fraction(options.confidence_level, "confidence_level")
    check_resamples(options.n_resamples)
    options = _with_one_seed(options)
    try:
        step_weights = as_step_weights(weights, options.horizon)
    except ArgumentError as error:
        owned = f"EvaluationOptions.{error.part}"
        raise ArgumentError(error.text, owned, error.value) from None
    computed = Options(
        tuple(map(get_family, several_families(options.families, "families"))),
        step_weights,
        options,
        Work(options.n_jobs, options.progress),
    )
    maker = calibrator_maker(calibrator, computed.weights)
    stopping = monitoring_options(monitoring)
    is_end_known = knows_end(options.end, calibrator)
    if isinstance(X, (RunBatches, DaskBatches)):
        if y is not None or groups is not None or options.first_error is not None:
            raise ValueError(
                "batches hold outcomes and groups themselves, and have no labels of steps; leave "
                "out y, groups and first_error"
            )
        of_sample = partial(
            evaluate, weights=weights, calibrator=calibrator, by=by, monitoring=monitoring,
            options=replace(options, missing="same_runs"),
        )  # fmt: skip
        selection = batch_selection(X, calibrator, censored, stop_reason, by)
        return evaluate_batches(X, computed, selection, calibrator, of_sample)
    kind, q_z = censored_as(censored)
    notes: list[Note] = []
    sample = check_predictors(X, y, groups=groups, q_z=q_z, reserved=(*REFERENCES, TOGETHER))
    check_index(stop_reason, sample.X.ids, "stop_reason")
    groupings = group_labels(by, sample.X)
    refuse_own_stops(sample.traces, stop_reason)
    stops = read_stops(sample.y, sample.X.meta, stop_reason)
    sample = fill_forward(sample, options.missing, notes)
    counted = select_runs(sample, stops, kind)
    locate = "; trajscore locate says which step failed without outcomes"
    refuse_without_outcomes(counted, remedy=locate * (options.first_error is not None))
    scored = leave_out_missing(counted, notes)
    if scored.units.n_units < 2:
        raise ValueError(ONE_CLUSTER)
    counts = Counts.of(counted, scored, computed.weights)
    others = under_other_choices(sample, kind, scored)
    rows = make_rows(scored, maker, computed, notes)
    rows, combined = combine(rows, computed, notes)
    recommended, pairs = recommend_all(rows, computed)
    signals = None
    bought = None
    if combined is not None:
        if options.prices:
            bought = purchase(combined, options.prices)
        signals = signal_table(combined, rows, recommended[0].matters, computed)
    first_errors = find_first_errors(sample.X, scored, computed.settings, notes)
    in_groups = recommend_in_groups(rows, groupings, recommended, computed)
    otherwise = {
        choice: (n, None if other is None else _recommended(other, maker, computed))
        for choice, (n, other) in others.items()
    }
    monitored = None
    if stopping is not None:
        monitored = monitoring_table(rows, stopping, computed.work, notes)
    intervals, methods = interval_table(rows, computed)
    notes = [*doubts(counted, rows, intervals, computed.weights), *notes]
    calibrators = {name: repr(row.calibrator) for name, row in rows.recalibrated.items()}
    return Report(
        rows=rows,
        intervals=intervals,
        interval_methods=methods,
        exclusions=scored.exclusions,
        monitoring=monitored,
        recommended=recommended,
        pairs=pairs,
        signals=signals,
        purchase=bought,
        first_errors=first_errors,
        groups=in_groups,
        otherwise=otherwise,
        options=computed,
        facts=Facts(
            **asdict(counts),
            censored=kind,
            rate=float(rows.base.traces.cells[0]),
            knows_end=is_end_known,
            calibrators=None if maker is None else calibrators,
            monitoring=stopping,
        ),
        ends=counted.ends,
        remarks=notes,
        source=Source(
            outcome=str(getattr(y, "name", None) or ""), created=_now(), version=__version__
        ),
    )


def _recommended(
    runs: EvaluatedRuns, maker: CalibratorMaker | None, options: Options
) -> list[Recommendation]:
    """Return what is recommended under another choice of runs."""
    rows, _ = combine(make_rows(runs, maker, options, []), options, [], compares=False)
    return recommend_all(rows, options)[0]


def _with_one_seed(options: EvaluationOptions) -> EvaluationOptions:
    """Draw from a random state once, so that nothing depends on the order of threads."""
    random = check_random_state(options.random_state)
    if isinstance(options.random_state, Integral):
        return options
    return replace(options, random_state=int(random.randint(np.iinfo(np.int32).max)))


def _now() -> str:
    """Return the time, to the second; that of SOURCE_DATE_EPOCH where a build is to be repeated."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(int(epoch), UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
