"""From a table with one row a step to runs with outcomes, after what is said of how they ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trajscore.core.frame import column_names, parts_of_frame
from trajscore.core.meanings import bare_name, check_map, check_polarity, map_outcomes, turn
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.stops import EXCLUDED, UNKNOWN, Rule, Stops, settle_stops


def runs_of_table(
    make: Any,  # TrajectoryArray, or a subclass of it
    df: Any,
    *,
    outcome: str | None,
    outcome_map: Mapping[Any, float] | str | None,
    missing: Any,
    rule: Rule | None,
    keep_lost: bool = False,
    **columns: Any,
) -> tuple[Any, Any, Stops | None]:
    """Return the runs of a table, their outcomes, and how they ended if it says.

    Runs that the harness lost may be kept, with the outcome that was recorded.
    """
    meanings, column = check_map(outcome_map), outcome
    if isinstance(outcome, str):
        column = bare_name(outcome, column_names(df))
        check_polarity(outcome, meanings)
    parts, outcomes = parts_of_frame(df, outcome=column, rule=rule, **columns)
    has_reason = "stop_reason" in (parts["meta"] or {})
    if has_reason and columns["stop_reason"] is None and not any(parts["meta"]["stop_reason"]):
        del parts["meta"]["stop_reason"]
    X = make(**parts, missing=missing)
    if outcomes is None:
        return X, None, None
    y = check_outcomes(map_outcomes(outcomes, meanings, column != outcome), X)
    y = y if column == outcome else turn(y)
    if columns["stop_reason"] == () or "stop_reason" not in X.meta:
        return X.with_ended(y != CENSORED), y, None
    stops = settle_stops(y, X.meta["stop_reason"].to_numpy(dtype=object), rule=rule)
    kinds = np.where(stops.unknown, UNKNOWN, stops.mechanism)
    kept = np.flatnonzero((kinds != EXCLUDED) | keep_lost)
    X = X._replace(meta=X.meta.assign(stop_kind=kinds))
    X, y = (X, stops.y) if len(kept) == len(y) else (X[kept], stops.y[kept])
    return X.with_ended(y != CENSORED), y, stops
