"""Values as JSON has them: it knows no NaN, no infinity and none of NumPy's scalars.

Nor does it say which of two values of one key counts.
"""

import math
from typing import Any

import numpy as np

_MAX_DIGITS = 300  # a float of more digits is infinite


def plain(value: Any) -> Any:
    """Return dictionaries, lists and scalars as JSON has them: null for what is not finite."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def parse_integer(digits: str) -> int | float:
    """Return a whole number, ``parse_int`` of readers of JSON; infinity beyond a float."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, ``object_pairs_hook`` of its readers, if no key stands twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object; keep one of them")
    return fields
