"""Numbers of a report where few of the runs are labelled: scores, ranks, and the judge itself.

All are of pseudo-outcomes, see `trajscore.inference.label_intervals`. What is not linear in the
outcomes, even to first order, is left out: errors by bins, pictures of them, thresholds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from trajscore.calibration._cross_fit import folds_of
from trajscore.core import ranking
from trajscore.core.collapse import collapse
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import as_step_weights
from trajscore.inference._labels import (
    MISSED,
    PASSED,
    RATE,
    FewLabels,
    OutcomeRatio,
    rate_of,
    score_of_outcomes,
    shares_by_outcome,
)
from trajscore.metrics.run_metrics import CostMetric
from trajscore.report._data import (
    ALIVE,
    ALIVE_END,
    AS_GIVEN,
    BASE_RATE,
    CONSTANT,
    INFLUENCE,
    LEVELS,
    MARGIN,
    RECALIBRATED,
    REFERENCES,
    RUN_METRICS,
    VALUE,
    Options,
)
from trajscore.report._margins import confidence_of, places_in_folds
from trajscore.report._rows import Row
from trajscore.report._runs import Judged

_PLACES = ("low", "middling", "high")


class Linear(NamedTuple):
    """A metric as a value and, to first order, what each outcome adds to it."""

    ratio: OutcomeRatio
    start: float = 0.0
    is_rank: bool = False

    def __sub__(self, other: Linear) -> Linear:
        """Return what it is above another one."""
        return Linear(self.ratio - other.ratio, self.start - other.start)

    @property
    def moved(self) -> OutcomeRatio:
        """The metric as a ratio, with the value that it starts from."""
        own, start = self.ratio, self.start
        return replace(
            own,
            success=own.success + start * own.success_weight,
            failure=own.failure + start * own.failure_weight,
        )

    def interval(self, few: FewLabels, level: float) -> tuple[float, float, float]:
        """Return value and interval; NaN where there is none."""
        row = few.estimate(self.ratio, level)
        value, low, high = (self.start + row[name] for name in ("value", "low", "high"))
        if not self.is_rank or math.isnan(low):
            return value, low, high
        n = len(few.outcome)
        value = min(max(value, 1 / n), 1 - 1 / n)
        half = (high - low) / 2 / (value * (1 - value))
        return value, float(expit(logit(value) - half)), float(expit(logit(value) + half))


def cost_metric(cost: Any, confidence: FloatArray) -> Linear:
    """Return the mean of what one number a run costs it."""
    ones = np.ones(len(confidence))
    return Linear(OutcomeRatio(cost(confidence, ones), cost(confidence, 0 * ones), ones, ones))


def auroc_metric(few: FewLabels, confidence: FloatArray) -> Linear:
    """Return the AUROC, linear in the outcomes around the pseudo-outcomes."""
    ones, group = np.ones(len(confidence)), group_ties(confidence)[1]
    pseudo = few.forecast + few.inverse * (few.outcome - few.forecast)
    failures, successes = (np.bincount(group, own).astype(float) for own in (1 - pseudo, pseudo))
    pairs, of_itself = failures.sum() * successes.sum(), float(pseudo @ (1 - pseudo))
    area = (float(ranking.auroc(failures, successes)) * pairs - of_itself / 2) / (pairs - of_itself)
    lost, won = (
        len(ones) * slope[group] for slope in ranking.GRADIENTS[ranking.auroc](failures, successes)
    )
    return Linear(OutcomeRatio(won, lost, ones, ones), area, is_rank=True)


def metrics_of(row: Row, options: Options) -> dict[str, Linear]:
    """Return the metrics of a row that are linear in the outcomes, to first order at least."""
    few, metrics = row.runs.few, dict[str, Linear]()
    assert few is not None
    confidence = confidence_of(row, options)
    if row.is_probability:
        for name, score in zip(options.score_names, options.scores, strict=True):
            metrics[name] = Linear(score_of_outcomes(row.traces, score, options.weights))
        for name, metric in RUN_METRICS.items():
            if isinstance(metric, CostMetric):
                metrics[name] = cost_metric(metric.cost, confidence)
    if row.predictor in (ALIVE, ALIVE_END):
        confidence = places_in_folds(confidence, folds_of(row.traces))
        if not auroc_metric(few, confidence).start >= 0.5:  # as good as chance, not worse
            confidence = np.zeros(len(confidence))
    return metrics | {"AUROC": auroc_metric(few, confidence)}


def few_label_table(
    rows: list[Row], options: Options, level: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return every row and metric with its differences and intervals, and how these were made."""
    few = rows[0].runs.few
    assert few is not None
    metrics = {row.key: metrics_of(row, options) for row in rows}
    constant = metrics[BASE_RATE, CONSTANT]
    held_against = (*options.score_names, "AUROC")
    of_steps = [
        {name: metrics[key, AS_GIVEN][name] for name in held_against} for key in (ALIVE, ALIVE_END)
    ]
    table, index = [], []
    for row in rows:
        is_reference = row.predictor in REFERENCES
        alive = [{}, {}] if is_reference else of_steps
        is_map = row.form == RECALIBRATED
        before = metrics[row.predictor, AS_GIVEN] if is_map else {}
        for name, own in metrics[row.key].items():
            values = dict(zip(VALUE, own.interval(few, level), strict=True))
            for columns, others in zip(LEVELS[1:], (constant, *alive, before), strict=True):
                ends = (math.nan,) * 3
                if row.predictor == BASE_RATE and columns == MARGIN:
                    ends = (0.0,) * 3
                elif name in others:
                    ends = (own - others[name]).interval(few, level)
                values |= dict(zip(columns, ends, strict=True))
            table.append(values)
            index.append((*row.key, name))
    names = ["predictor", "form", "metric"]
    frame = pd.DataFrame(table, index=pd.MultiIndex.from_tuples(index, names=names))
    methods = frame[[columns[0] for columns in LEVELS]].notna()
    return frame, methods.replace({True: INFLUENCE, False: ""})


def label_table(judged: Judged, level: float) -> pd.DataFrame | None:
    """Return the success rate, and how often the judge is wrong: by outcome, and by a trace."""
    runs, (name, trace) = judged.runs, next(iter(judged.traces.items()))
    if (few := runs.few) is None or runs.labelling is None:
        return None
    rows, verdict = {RATE: few.estimate(rate_of(len(runs)), level)}, runs.labelling.judge
    if verdict is not None:
        rows[MISSED] = few.estimate(shares_by_outcome(1 - verdict)[0], level)
        rows[PASSED] = few.estimate(shares_by_outcome(verdict)[1], level)
        mean = collapse(trace, "mean", as_step_weights("uniform"))
        third = np.searchsorted(np.quantile(mean, [1 / 3, 2 / 3]), mean)
        for place, word in enumerate(_PLACES):
            among = (third == place).astype(np.float64)
            if among.any():
                wrong = OutcomeRatio((1 - verdict) * among, verdict * among, among, among, True)
                rows[f"judge wrong where {name} is {word}"] = few.estimate(wrong, level)
    table = pd.DataFrame(rows).T.rename_axis("share")
    return table.astype({column: float for column in table.columns if column != "note"})
