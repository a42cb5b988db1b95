"""The runs on which a predictor was most wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trajscore.core.outcomes import CENSORED
from trajscore.core.run_sums import run_sums
from trajscore.core.score_families import get_family
from trajscore.evaluation.evaluation import Evaluation


@dataclass(frozen=True)
class WrongRun:
    """A run with what its forecasts lost, and the step to look at first."""

    row: int
    id: str
    y: float  # -1 where not observed
    label: float
    loss: float
    steps: int
    first: float  # forecasts of the first and the last step
    last: float
    flag: int  # number of the step to look at, and its forecast
    value: float
    reason: str  # why the run ended; "" where that is not known
    task: str


def worst_runs(data: Evaluation, key: tuple[str, str], most: int) -> list[WrongRun]:
    """Return the runs with the largest loss; those without an outcome come last."""
    trace = data.traces[key]
    labels = data.runs.labels
    y = data.runs.y
    score = data.options.scores[0]
    sums = run_sums(labels, trace, score, data.options.weights)
    # of its own steps; those of a run may all be without weight
    of_runs = sums.total / np.where(sums.divisor > 0, sums.divisor, 1.0)
    family = get_family(score)
    best = labels * family.success(np.ones(1)) + (1 - labels) * family.failure(np.zeros(1))
    loss = best - of_runs
    rows = np.lexsort((-np.round(loss, 9), y == CENSORED))[:most]  # ties but for rounding
    meta = trace.meta.reindex(columns=["stop_reason", "task"]).astype(object)
    meta = meta.where(meta.notna(), "").astype(str)
    worst = []
    for row in rows.tolist():
        cells = trace.cells[trace.offsets[row] : trace.offsets[row + 1]]
        flag = int(np.argmax(np.abs(labels[row] - cells)))
        if flag == 0 and np.ptp(cells) > 0:  # the first says little: flag where it moved most
            flag = int(np.argmax(np.abs(np.diff(cells)))) + 1
        reason, task = meta.iloc[row]
        worst.append(
            WrongRun(
                row=row,
                id=str(trace.ids[row]),
                y=float(y[row]),
                label=float(labels[row]),
                loss=float(loss[row]),
                steps=len(cells),
                first=float(cells[0]),
                last=float(cells[-1]),
                flag=flag + 1,
                value=float(cells[flag]),
                reason=reason,
                task=task,
            )
        )
    return worst
