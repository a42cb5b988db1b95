"""The runs on which a predictor was most wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.run_sums import run_sums
from trajscore.core.score_families import get_family
from trajscore.core.within_runs import run_numbers
from trajscore.report._answer import succeeded
from trajscore.report._data import ReportData


def worst_runs(data: ReportData, key: tuple[str, str], most: int) -> pd.DataFrame:
    """Return the runs with the largest loss, by row; those without an outcome come last.

    Columns: id, outcome, loss, steps, first, last, flag (a step) and value there, reason, task.
    """
    trace, labels, y = data.traces[key], data.labels[key], data.outcomes[key]
    score = data.options.scores[0]
    sums = run_sums(labels, trace, score, data.options.weights)
    # of its own steps; those of a run may all be without weight
    of_runs = sums.total / np.where(sums.divisor > 0, sums.divisor, 1.0)
    family = get_family(score)
    best = labels * family.success(np.ones(1)) + (1 - labels) * family.failure(np.zeros(1))
    loss = best - of_runs
    rows = np.lexsort((-np.round(loss, 9), y == CENSORED))[:most]  # ties but for rounding
    off = np.abs(labels[run_numbers(trace)] - trace.cells)
    meta = trace.meta.reindex(columns=["stop_reason", "task"]).astype(object)
    meta = meta.where(meta.notna(), "").astype(str)
    of_row = []
    for row in rows:
        part = slice(trace.offsets[row], trace.offsets[row + 1])
        cells = trace.cells[part]
        flag = int(np.argmax(off[part]))
        if flag == 0 and np.ptp(cells) > 0:  # the first says little: flag where it moved most
            flag = int(np.argmax(np.abs(np.diff(cells)))) + 1
        of_row.append((flag + 1, cells[flag], cells[0], cells[-1]))
    flags, values, first, last = zip(*of_row, strict=True) if of_row else ([], [], [], [])
    return pd.DataFrame(
        {
            "id": [str(trace.ids[row]) for row in rows],
            "outcome": [_outcome(y[row], succeeded(data)) for row in rows],
            "label": labels[rows],
            "loss": loss[rows],
            "steps": trace.lengths[rows],
            "first": first,
            "last": last,
            "flag": flags,
            "value": values,
            "reason": meta["stop_reason"].to_numpy()[rows],
            "task": meta["task"].to_numpy()[rows],
        },
        index=rows,
    )


def _outcome(y: float, won: str) -> str:
    known: dict[float, str] = {SUCCESS: won, FAILURE: "failed", CENSORED: "not observed"}
    return known.get(y, f"graded {y:g}")
