"""Metrics of rows, and what they are above references on the same runs.

The references are the base rate, the length of runs, and the predictor as it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.within_runs import run_numbers
from trajscore.inference._choice import ENOUGH
from trajscore.metrics import _ranking
from trajscore.metrics._aggregate import collapse
from trajscore.metrics._decomposition import run_miscalibration
from trajscore.metrics._diagnostics import diagnostic_statistics
from trajscore.metrics._ecuas import price
from trajscore.metrics._proper_scores import LogScore, get_family
from trajscore.metrics._statistics import MeanOfRuns, OfTies, Statistic, all_at_once
from trajscore.metrics._step_calibration import step_calibration_statistic
from trajscore.metrics._tps import run_scores
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

# Floor of the uncertainty under the logarithm of ECUAS_0, as in `ecuas_score`
_LEAST_UNCERTAINTY = 1e-7


def row_metrics(row: Row, options: Options) -> Metrics:
    """All metrics of a row; rank metrics alone where it is no probability."""
    labels, rows = row.runs.labels, row.runs.rows
    confidence = collapse(row.traces, options.phi, options.weights)
    metrics = diagnostic_statistics(
        confidence, labels, is_probability=row.is_probability, rows=rows
    )
    if not row.is_probability:
        return metrics
    for name, n in ECUAS_METRICS.items():
        unseen = n == 0 and hides_losses(
            np.maximum(confidence, 0.5), labels, np.arange(len(labels)), _LEAST_UNCERTAINTY
        )
        metrics[name] = MeanOfRuns(_cost_of_reliance(confidence, labels, n), rows, unseen)
    for name, score in zip(options.score_names, options.scores, strict=True):
        scores = run_scores(labels, row.traces, score, options.weights)
        run, family = run_numbers(row.traces), get_family(score)
        unseen = isinstance(family, LogScore) and hides_losses(
            row.traces.cells, labels[run], run, family.clip
        )
        metrics[name] = MeanOfRuns(scores, rows, unseen)
    for name, part in STEP_ERRORS.items():
        metrics[name] = step_calibration_statistic(
            labels, row.traces, np.ones(len(labels)), weights=options.weights, part=part, rows=rows
        )
    # the recalibration stays what it is: to first order the best one gains nothing by moving
    gained = run_miscalibration(labels, row.traces, options.scores[0], options.weights)
    metrics[options.miscalibration] = MeanOfRuns(gained, rows)
    return metrics


def _cost_of_reliance(confidence: FloatArray, success: FloatArray, n: float) -> FloatArray:
    """ECUAS_n of each run, for the answer "success", one of many possible ones."""
    with np.errstate(divide="ignore"):  # an uncertainty of 0
        log_u = np.log(1 - confidence)
    return price(log_u, 1 - success, n, 1.0, _LEAST_UNCERTAINTY)[0]


def hides_losses(p: FloatArray, label: FloatArray, run: IntArray, clip: float) -> bool:
    """Whether forecasts are clipped, and too few of them wrong to tell how often that happens."""
    sure = LogScore(clip).clipped(p)
    wrong = sure & np.where(p > 0.5, label < 1, label > 0)
    return bool(sure.any()) and len(np.unique(run[wrong])) < ENOUGH


def metric_levels(rows: list[Row], options: Options) -> list[list[Metrics]]:
    """Return the metrics of all rows, and of their references, in the order of `LEVELS`.

    The references are the base rate, the length of runs, which has an AUROC only, and for
    calibrated rows the predictor as given: on the row's own runs, so that differences are paired.
    """
    of_rows = [row_metrics(row, options) for row in rows]
    place = {row.key: k for k, row in enumerate(rows)}
    constant, elapsed = (rows[place[key]] for key in ((BASE_RATE, CONSTANT), (LENGTH, RAW)))
    # the same objects, so that the base rate is above itself by exactly nothing
    base_rates = {id(constant.runs): of_rows[place[constant.key]]}
    lengths: dict[int, Metrics] = {}
    nothing: Metrics = {}
    for row in rows:
        if id(row.runs) not in base_rates:
            base_rates[id(row.runs)] = row_metrics(base_rate(row.traces, row.runs), options)
        if id(row.runs) not in lengths:
            lengths[id(row.runs)] = _length_metrics(_on(row.runs, elapsed), options)
    return [
        of_rows,
        [base_rates[id(row.runs)] for row in rows],
        [nothing if row.predictor in REFERENCES else lengths[id(row.runs)] for row in rows],
        [
            nothing
            if row.form != CALIBRATED or row.predictor in REFERENCES
            else of_rows[place[row.predictor, RAW]]
            for row in rows
        ],
    ]


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


def as_one_function(levels: list[list[Metrics]], names: list[str]) -> Statistics:
    """Compute the metrics of each row and reference once, and put them wherever they belong.

    The function maps counts of shape (n_replicates, n_runs) to (n_replicates, n_levels, n_rows,
    n_metrics); NaN where there is no such metric.
    """
    distinct = {id(metrics): metrics for rows in levels for metrics in rows}
    # row by row: what a row is worth must not depend, in its last digit, on the other rows
    values_of = {key: all_at_once(metrics) for key, metrics in distinct.items()}
    places = {key: [names.index(name) for name in one] for key, one in distinct.items()}

    def table(counts: FloatArray) -> FloatArray:
        filled = {key: np.full((len(counts), len(names)), np.nan) for key in distinct}
        for key, values in filled.items():
            values[:, places[key]] = values_of[key](counts)
        return np.stack([np.stack([filled[id(one)] for one in rows], 1) for rows in levels], 1)

    return table
