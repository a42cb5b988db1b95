"""What was made of runs lately, kept by their content: a search asks for each fold many times."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import fields
from hashlib import sha256
from operator import attrgetter
from threading import Lock
from typing import Any

from trajscore.io import Run, Step, ToolCall


def _reader(kind: type, without: str) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(one.name for one in fields(kind) if one.name != without))


_of_run, _of_step = _reader(Run, "steps"), _reader(Step, "tool_calls")
_of_call = _reader(ToolCall, "")


def content_key(question: Any, runs: Sequence[Run]) -> bytes | None:
    """Return a key to what runs hold and what is asked of them; None where there is none."""
    held = [
        (
            _of_run(run),
            [_of_step(step) for step in run.steps],
            [[_of_call(call) for call in step.tool_calls] for step in run.steps],
        )
        for run in runs
    ]
    try:
        return sha256(pickle.dumps((question, held), protocol=5)).digest()
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None  # something that a reader did not put there


def is_plain(value: Any) -> bool:
    """Tell whether a parameter is known by its value alone, unlike a function or an estimator."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(is_plain(one) for one in value)
    return value is None or isinstance(value, (str, bool, int, float))


class Store:
    """Keeps things by key, up to a size in all; those not asked for the longest go first."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._kept: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Any) -> Any:
        """Return what is kept under a key, or None."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Any, value: Any, size: int) -> None:
        """Keep something that takes up `size`, unless that is too large."""
        if size > self._limit:
            return
        with self._lock:
            self._size += size - self._kept.pop(key, (None, 0))[1]
            self._kept[key] = (value, size)
            while self._size > self._limit:
                self._size -= self._kept.popitem(last=False)[1][1]
