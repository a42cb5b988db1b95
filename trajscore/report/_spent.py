"""What runs cost, by the columns of a table or the fields of a log."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import parse_numbers
from trajscore.io import Run
from trajscore.io.fields import usual_names

SPENT = ("cost", "tokens")


def spent_in_table(
    frame: pd.DataFrame, ids: pd.Series, X: TrajectoryArray
) -> dict[str, NDArray[Any]]:
    """What each run cost: of a column that says the same at each step that, else the sum."""
    spent = {}
    for part in SPENT:
        for name in usual_names(part, frame.columns)[:1]:
            runs = parse_numbers(frame[name]).groupby(ids)
            whole = runs.nunique(dropna=False).max() == 1
            of_run = runs.first() if whole else runs.sum(min_count=1)
            spent[part] = of_run.reindex(X.ids).to_numpy(dtype=np.float64)
    return spent


def spent_in_log(runs: list[Run]) -> dict[str, NDArray[Any]]:
    """What each run cost by what its log says of it, or of all of its steps."""
    table = pd.DataFrame([{**run.extra, **run.meta} for run in runs])
    spent = {}
    named = {name: part for part in SPENT for name in usual_names(part, table.columns)[:1]}
    for name in table.columns:
        if name in named or str(name).endswith(("_cost", "_tokens")):
            spent[named.get(name, str(name))] = parse_numbers(table[name]).to_numpy(np.float64)
    if "cost" not in spent:
        costs = [[step.cost for step in run.steps if step.actor == "agent"] for run in runs]
        sums = [np.nan if None in values or not values else sum(values) for values in costs]  # type: ignore[arg-type]
        spent["cost"] = np.array(sums, dtype=np.float64)
    return {name: values for name, values in spent.items() if not np.isnan(values).all()}
