"""Metrics of rows, and what they are above references on the same runs.

The references are the base rate, the length of runs, and the predictor as it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.inference._choice import ENOUGH
from trajscore.metrics import _ranking
from trajscore.metrics._aggregate import collapse
from trajscore.metrics._decomposition import recalibrated_scores
from trajscore.metrics._diagnostics import diagnostic_statistics
from trajscore.metrics._ecuas import price
from trajscore.metrics._proper_scores import LogScore, get_family
from trajscore.metrics._statistics import MeanOfRuns, OfTies, Statistic, all_at_once
from trajscore.metrics._step_calibration import step_calibration_statistics
from trajscore.metrics._tps import run_scores
from trajscore.metrics._weighted_steps import WeightedSteps, weighted_steps
from trajscore.report._data import (
    BASE_RATE,
    CALIBRATED,
    CONSTANT,
    ECUAS_METRICS,
    LENGTH,
    RAW,
    REFERENCES,
    STEP_ERRORS,
    Options,
)
from trajscore.report._rows import Row, base_rate
from trajscore.report._runs import Coverage

Metrics = Mapping[str, Statistic]
Statistics = Callable[[FloatArray], FloatArray]
Known = TypeVar("Known")

# Floor of the uncertainty under the logarithm of ECUAS_0, as in `ecuas_score`
_LEAST_UNCERTAINTY = 1e-7


def row_metrics(row: Row, options: Options, steps: WeightedSteps | None = None) -> Metrics:
    """All metrics of a row; rank metrics alone where it is no probability.

    `steps` are those of the same runs with any forecasts, if they are known already.
    """
    labels, rows = row.runs.labels, row.runs.rows
    confidence = collapse(row.traces, options.phi, options.weights)
    metrics = diagnostic_statistics(
        confidence, labels, is_probability=row.is_probability, rows=rows
    )
    if not row.is_probability:
        return metrics
    for name, n in ECUAS_METRICS.items():
        unseen = n == 0 and hides_losses(
            np.maximum(confidence, 0.5), labels, np.arange(len(labels) + 1), _LEAST_UNCERTAINTY
        )
        metrics[name] = MeanOfRuns(cost_of_reliance(confidence, labels, n), rows, unseen)
    for name, score in zip(options.score_names, options.scores, strict=True):
        scores = run_scores(labels, row.traces, score, options.weights)
        family = get_family(score)
        unseen = isinstance(family, LogScore) and hides_losses(
            row.traces.cells, labels, row.traces.offsets, family.clip
        )
        metrics[name] = MeanOfRuns(scores, rows, unseen)
    leading = metrics[options.score_names[0]].samples  # type: ignore[union-attr]
    if steps is None:
        steps = weighted_steps(labels, row.traces, options.weights)
    else:
        steps = steps.of(row.traces)
    errors = [
        *step_calibration_statistics(steps, rows=rows),
        *step_calibration_statistics(steps, by_third=True, rows=rows),
    ]
    metrics |= zip(STEP_ERRORS, errors, strict=True)
    # the recalibration stays what it is: to first order the best one gains nothing by moving
    gained = recalibrated_scores(steps, options.scores[0]) - leading
    metrics[options.miscalibration] = MeanOfRuns(gained, rows)
    return metrics


def cost_of_reliance(confidence: FloatArray, success: FloatArray, n: float) -> FloatArray:
    """ECUAS_n of each run, for the answer "success", one of many possible ones."""
    with np.errstate(divide="ignore"):  # an uncertainty of 0
        log_u = np.log(1 - confidence)
    return price(log_u, 1 - success, n, 1.0, _LEAST_UNCERTAINTY)[0]


def hides_losses(p: FloatArray, success: FloatArray, offsets: IntArray, clip: float) -> bool:
    """Whether forecasts are clipped, and too few of them wrong to tell how often that happens.

    Forecasts are of runs that begin at `offsets`, of which `success` has the outcomes.
    """
    sure = np.flatnonzero(LogScore(clip).clipped(p))
    run = np.searchsorted(offsets, sure, side="right") - 1
    wrong = np.where(p[sure] > 0.5, success[run] < 1, success[run] > 0)
    return len(sure) > 0 and len(np.unique(run[wrong])) < ENOUGH


class References(Generic[Known]):
    """What is `known` of the metrics of what predictors are held against, on the same runs.

    That is the base rate, and the length of runs, which has an AUROC only.
    """

    def __init__(
        self, rows: list[Row], options: Options, known: Callable[[Metrics, int], Known]
    ) -> None:
        place = {row.key: row for row in rows}
        constant, elapsed = place[BASE_RATE, CONSTANT], place[LENGTH, RAW]
        self._options, self._known = options, known
        self._steps: dict[int, WeightedSteps] = {}
        self._base_rates: dict[int, Known] = {}
        self._lengths: dict[int, Known] = {}
        for runs, row in {id(row.runs): (row.runs, row) for row in rows}.values():
            same = constant if runs is constant.runs else base_rate(row.traces, runs)
            length = _length_metrics(_on(runs, elapsed), options)
            steps = weighted_steps(runs.labels, same.traces, options.weights)
            self._steps[id(runs)] = steps
            self._base_rates[id(runs)] = known(row_metrics(same, options, steps), len(runs))
            self._lengths[id(runs)] = known(length, len(runs))

    def of(self, rows: list[Row]) -> Iterator[list[Known]]:
        """For each row of a predictor what is known of it and its references, as in `LEVELS`.

        The last one is the predictor as given, for calibrated rows.
        """
        nothing, raw = self._known({}, 1), None
        for row in rows:
            # the same object, so that the base rate is above itself by exactly nothing
            own = constant = self._base_rates[id(row.runs)]
            if row.predictor != BASE_RATE:
                metrics = row_metrics(row, self._options, self._steps[id(row.runs)])
                own = self._known(metrics, len(row.runs))
            is_reference = row.predictor in REFERENCES
            length = nothing if is_reference else self._lengths[id(row.runs)]
            before = raw if row.form == CALIBRATED and not is_reference and raw else nothing
            yield [own, constant, length, before]
            raw = own if row.form == RAW else None


def _on(runs: Coverage, reference: Row) -> Row:
    """Take the length of runs, which covers all that count, on some of them."""
    if runs.rows is None:
        return reference
    return replace(reference, traces=reference.traces[runs.rows], runs=runs)


def _length_metrics(elapsed: Row, options: Options) -> Metrics:
    """AUROC of run length in the direction in which it ranks the runs better."""
    labels, rows = elapsed.runs.labels, elapsed.runs.rows
    confidence = collapse(elapsed.traces, options.phi, options.weights)
    ties = _ranking.TieGroups(confidence, labels)
    if _ranking.auroc(*ties.sums(np.ones(len(labels)))) < 0.5:  # longer is better
        ties = _ranking.TieGroups(-confidence, labels)
    return {"AUROC": OfTies(ties, _ranking.auroc, rows)}


def as_one_function(levels: Sequence[Sequence[Metrics]], names: list[str]) -> Statistics:
    """Compute the metrics of each row and reference once, and put them wherever they belong.

    The function maps counts of shape (n_replicates, n_runs) to (n_replicates, n_levels, n_rows,
    n_metrics); NaN where there is no such metric.
    """
    distinct = {
        id(metrics): {name: metrics[name] for name in names if name in metrics}
        for rows in levels
        for metrics in rows
    }
    # row by row: what a row is worth must not depend, in its last digit, on the other rows
    values_of = {key: all_at_once(metrics) for key, metrics in distinct.items()}
    places = {key: [names.index(name) for name in one] for key, one in distinct.items()}

    def table(counts: FloatArray) -> FloatArray:
        filled = {key: np.full((len(counts), len(names)), np.nan) for key in distinct}
        for key, values in filled.items():
            values[:, places[key]] = values_of[key](counts)
        return np.stack([np.stack([filled[id(one)] for one in rows], 1) for rows in levels], 1)

    return table
