"""Names of the numbers of a set of runs, and how each is made."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import comb, expit, logit

from trajscore.calibration.calibrators import calibrator_maker
from trajscore.core.errors import CannotMeasureError
from trajscore.core.outcomes import outcomes_vary
from trajscore.core.score_families import USUAL_SCORES, get_family
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.ties import only_value
from trajscore.core.values import known_names, unknown_name
from trajscore.core.weights import as_step_weights
from trajscore.evaluation.options import FORMS, FRACTIONS, Note, Options
from trajscore.evaluation.rows import Row, Rows, make_rows, row_metrics
from trajscore.evaluation.runs import leave_out_missing, refuse_without_outcomes
from trajscore.gates._run_set import Forecasts, Measure, Measures, RunSet
from trajscore.report.verdicts import note_text, without_variation

OPTIONS = Options(tuple(map(get_family, USUAL_SCORES)), as_step_weights())
SUCCESS = "success"
MARGIN = " margin"
_PASS = re.compile(r"pass\^([1-9][0-9]?)")


class Key(NamedTuple):
    """Name of a number; `predictor` and `form` are empty where it is of the runs alone."""

    metric: str
    predictor: str = ""
    form: str = ""

    def __str__(self) -> str:
        if not self.predictor:
            return self.metric
        return f"{self.metric} of {self.predictor}, {FORMS[self.form]}"


def key_of(runs: RunSet, metric: str, predictor: str | None, form: str) -> Key:
    """Return the name of the number that a gate is about."""
    if is_rate(metric) or metric in runs.amounts:
        if predictor is not None:
            raise CannotMeasureError(f"{metric} is of no predictor; leave out predictor")
        return Key(metric)
    if metric.removesuffix(MARGIN) not in options_of(metric).metrics:
        raise unknown_metric(metric, runs)
    if predictor is None and len(runs.predictors) != 1:
        names = ", ".join(runs.predictors) or "none"
        raise CannotMeasureError(f"{metric} is of a predictor; say of which one: there are {names}")
    return Key(metric, predictor or runs.predictors[0], form)


def measures_of(sets: Sequence[RunSet], key: Key, most: float | None = None) -> list[Measure]:
    """Return a number of sets of runs; `most` is what a run can take of an amount.

    A predictor that varies in none of the sets is refused: no number of runs says more of it.
    """
    name = key.predictor
    traces = [runs.traces[name].cells for runs in sets if name in runs.predictors]
    values = [only_value(cells[~np.isnan(cells)]) for cells in traces]
    if values and not np.isnan(values).any():
        raise CannotMeasureError(f"predictor {name!r} {without_variation(values[0])}")
    return [_measure_of(runs, key, most) for runs in sets]


def _measure_of(runs: RunSet, key: Key, most: float | None = None) -> Measure:
    """Return a number of a set of runs; all of a predictor are made once."""
    is_amount = key.metric in runs.amounts and not is_rate(key.metric)
    if most is not None and not is_amount:
        raise CannotMeasureError(
            "most is for what a run takes, such as cost or length; leave most out"
        )
    if key.metric == SUCCESS:
        return Measure(MeanOfRuns(runs.labels), np.arange(runs.n_runs), is_rate=True)
    if power := _PASS.fullmatch(key.metric):
        return _all_pass(runs, int(power[1]))
    if is_amount:
        numbers = runs.amounts[key.metric]
        rows = np.flatnonzero(~np.isnan(numbers))
        if not len(rows):
            raise CannotMeasureError("no run has a number")
        largest = numbers[rows].max()
        if most is not None and largest > most:
            raise CannotMeasureError(
                f"a run took {largest:g}, and most is {most:g}; set most to a larger number"
            )
        return Measure(MeanOfRuns(numbers[rows]), rows, is_amount=True, most=most)
    wanted = key.predictor, options_of(key.metric)
    if wanted not in runs.forecasts:
        runs.forecasts[wanted] = _forecasts_of(runs, *wanted)
    _, notes, metrics = runs.forecasts[wanted]
    if (key.form, key.metric) in metrics:
        return metrics[key.form, key.metric]
    names = [name for form, name in metrics if form == key.form]
    if not names:  # forecasts as given have some metric always
        raise CannotMeasureError(" ".join(map(note_text, notes)))
    raise CannotMeasureError(f"there is no {key}: there are {', '.join(names)}")


def options_of(metric: str) -> Options:
    """Return what computes a metric of forecasts: a family that its name has, or the usual ones."""
    name = metric.removesuffix(MARGIN)
    kind, _, family = name.partition(" ")
    if kind in ("TPS", "MCB") and name not in OPTIONS.metrics:
        with suppress(ValueError):  # no family, so that no metric has the name
            return replace(OPTIONS, scores=(get_family(family),))
    return OPTIONS


def unknown_metric(metric: str, runs: RunSet) -> CannotMeasureError:
    """Say that there is no such metric."""
    names = [SUCCESS, *runs.amounts]
    if most_trials(runs) > 1:
        names.insert(1, "pass^2")
    if runs.predictors:
        names += [name + end for name in OPTIONS.metrics for end in ("", MARGIN)]
    text = unknown_name("metric", metric, names)
    if metric in ("cost", "tokens"):
        text = f"no metric named {metric!r}; add a column {metric!r}; {known_names(metric, names)}"
    return CannotMeasureError(text)


def is_lower_better(metric: str, runs: RunSet) -> bool:
    """Whether less of a metric is better: errors, costs, steps and what else a run takes."""
    of_forecasts = options_of(metric).lower_is_better
    return metric in runs.amounts or metric.removesuffix(MARGIN) in of_forecasts


def is_rate(metric: str) -> bool:
    """Whether a metric is the share of runs, or sets of runs, that succeed."""
    return metric == SUCCESS or bool(_PASS.fullmatch(metric))


def is_fraction(metric: str) -> bool:
    """Whether a metric lies in [0, 1]."""
    return is_rate(metric) or metric in FRACTIONS


def within_range(
    metric: str, low: float, high: float, least: float = 0.0, most: float = 1.0
) -> tuple[float, float]:
    """Cut an interval at the least and the most that a metric in [0, 1], or its change, can be."""
    if not is_fraction(metric):
        return low, high
    return max(low, least), min(high, most)


def most_trials(runs: RunSet) -> int:
    """Number of runs that at least half of the tasks have; 1 where no tasks are known."""
    if runs.tasks is None:
        return 1
    counts = np.unique(runs.tasks, return_counts=True)[1]
    return int(np.quantile(counts, 0.5, method="lower"))


def at_equal_success(base: RunSet, new: RunSet, key: Key) -> Iterator[list[Measure]]:
    """Yield a number of forecasts of two sets as if the new one succeeded as often as the base.

    If nothing but success changed, a judge states the same of a run as before, or what also knows
    the new success rate: one of the two shows no change then.
    """
    wanted = key.predictor, options_of(key.metric)
    rates = [runs.forecasts[wanted].rows.runs.labels.mean() for runs in (base, new)]
    log_odds = np.subtract(*logit(rates))
    for shift in (0.0, log_odds):
        metrics = _metrics_of(new, new.forecasts[wanted].rows, wanted[1], log_odds, shift)
        yield [_measure_of(base, key), metrics[key.form, key.metric]]


def _forecasts_of(runs: RunSet, predictor: str, options: Options) -> Forecasts:
    """Return forecasts of a predictor with their metrics."""
    if predictor not in runs.predictors:
        raise CannotMeasureError(unknown_name("predictor", predictor, runs.predictors))
    judged = runs.judged(predictor)
    refuse_without_outcomes(judged, needs_both=False)
    if not outcomes_vary(judged.labels):
        raise CannotMeasureError(
            f"all {len(judged)} runs have the same outcome, so nothing can be said of the "
            f"forecasts of {predictor!r}"
        )
    alone = leave_out_missing(judged, [], may_fill=False)
    notes: list[Note] = []
    rows = make_rows(alone, calibrator_maker("auto", options.weights), options, notes)
    return Forecasts(rows, notes, _metrics_of(runs, rows, options))


def _metrics_of(
    runs: RunSet, rows: Rows, options: Options, log_odds: float = 0.0, shift: float = 0.0
) -> Measures:
    """All metrics of forecasts, and above the base rate.

    Runs weigh as if the log-odds of success were so much higher; forecasts are shifted.
    """
    metrics = {}
    weight = np.exp(log_odds * rows.runs.labels)
    constant = row_metrics(_shifted(rows.base, log_odds), options)
    # among all runs that count, of which some have no forecast that is judged
    places = pd.Index(runs.evaluated.source_rows).get_indexer(rows.runs.source_rows)
    for row in rows.predictors:
        for name, statistic in row_metrics(_shifted(row, shift), options).items():
            metrics[row.form, name] = Measure(statistic, places, weight)
            reference = constant[name]
            if isinstance(statistic, MeanOfRuns) and isinstance(reference, MeanOfRuns):
                metrics[row.form, name + MARGIN] = Measure(statistic - reference, places, weight)
    return metrics


def _shifted(row: Row, log_odds: float) -> Row:
    """Return forecasts with higher log-odds; as they are, if they are not probabilities."""
    if not log_odds or not row.is_probability:
        return row
    cells = expit(logit(row.traces.cells.clip(0, 1)) + log_odds)
    return replace(row, traces=row.traces.with_cells(cells))


def _all_pass(runs: RunSet, k: int) -> Measure:
    """Share of sets of k runs of a task that all succeed, for tasks with k runs."""
    if runs.tasks is None:
        raise CannotMeasureError(
            f"pass^{k} needs the task of each run; name the column of tasks (--group), or give "
            f"RunSet its tasks"
        )
    labels = runs.labels
    if not np.isin(labels, (0, 1)).all():
        raise CannotMeasureError(
            f"pass^{k} is of successes and failures, and some outcomes are graded"
        )
    _, code, n = np.unique(runs.tasks, return_inverse=True, return_counts=True)
    successes = np.bincount(code, labels)
    rows = np.flatnonzero(n[code] >= k)
    if not len(rows):
        raise CannotMeasureError(f"pass^{k}: no task has {k} runs; the most is {n.max()}")
    chance = comb(successes, k) / comb(n, k, repetition=False).clip(1)
    return Measure(MeanOfRuns(chance[code[rows]]), rows, is_rate=True, of_tasks=True)
