"""Times of steps: as whole numbers that can be compared, all with a zone or all without."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trajscore.core.meanings import words_of
from trajscore.core.values import LARGEST_HORIZON, parse_numbers

TIME_WORDS = {"time", "timestamp", "ts", "at"}
"""Words in the names of columns and fields that hold times."""


def moment(value: Any) -> int | None:
    """Return a time as a whole number that can be compared with others of the same log.

    >>> moment("2026-01-01T00:00:00Z") < moment("2026-01-01T00:00:00.5Z"), moment("17"), moment("")
    (True, 17, None)
    """
    try:
        if isinstance(value, float) or str(value).isdigit():
            return int(value)
        time = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError):  # NaN, infinite, too long, or no time
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1e6)


def zone_problem(times: ArrayLike, noun: str, places: Sequence[Any] | pd.Index) -> str:
    """Say which times have a zone and which have none, whose order nobody knows; else "".

    >>> zone_problem(["2026-01-01T01:00+02:00", "2026-01-01T00:00"], "line", [0, 1])
    'line 0 at 2026-01-01T01:00+02:00 has a zone, line 1 at 2026-01-01T00:00 has none; write the \
zone behind every time, such as Z for UTC'
    """
    texts = pd.Series(np.asarray(times, dtype=str))
    has_zone = texts.str.contains("[Zz+]|^.{10,}-")  # a "-" within the date is none
    if has_zone.all() or not has_zone.any():
        return ""
    first, bare = (
        f"{noun} {places[k]} at {texts[k]}" for k in (has_zone.argmax(), has_zone.argmin())
    )
    return (
        f"{first} has a zone, {bare} has none; write the zone behind every time, such as Z for UTC"
    )


def as_times(column: pd.Series) -> NDArray[np.int64] | None:
    """Return a column of times as whole numbers in their order; None of anything else.

    Numbers are times if no run has as many steps, or if the column is called so; there 0, 1, 2 ...
    are step numbers all the same.
    """
    name = str(column.name)
    kind = column.dtype.kind
    if kind in "mc":
        return None
    if kind != "M":
        numbers = parse_numbers(column)
        if kind not in "OUT" or numbers.notna().any():
            values = numbers.to_numpy(dtype=float, na_value=np.nan)
            has_time_name = bool(words_of(name) & TIME_WORDS)
            is_count = values.min() in (0, 1) and bool((values == np.round(values)).all())
            is_time = values.min() > LARGEST_HORIZON or (has_time_name and not is_count)
            if not is_time or not np.isfinite(values).all():
                return None
            return pd.factorize(numbers, sort=True)[0]  # whatever the unit and the zero
    times = pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
    if times.notna().all():
        return times.to_numpy(dtype="datetime64[ns]").view(np.int64)
    if kind == "M":
        row = int(np.argmax(times.isna()))
        raise ValueError(f"row {row}: column {name!r} has no time; every step needs one")
    return None
