"""What was made of runs lately, kept by their content: a search asks for each fold many times."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import fields
from hashlib import sha256
from io import BytesIO
from operator import attrgetter
from threading import Lock
from typing import Any

from trajscore.io import Run, Step, ToolCall

_Reader = Callable[[Any], tuple[Any, ...]]


def _readers(*without: str) -> tuple[_Reader, _Reader, _Reader]:
    """Return what reads the fields of a run, of a step and of a call, but for some."""
    named = [[one.name for one in fields(kind)] for kind in (Run, Step, ToolCall)]
    apart = (*without, "steps", "text", "observation", "tool_calls", "result")
    run, step, call = (attrgetter(*(one for one in names if one not in apart)) for names in named)
    return run, step, call


_READERS = {True: _readers(), False: _readers("extra")}


def content_key(question: Any, runs: Sequence[Run], *, extra: bool = True) -> bytes | None:
    """Return a key to what runs hold and what is asked of them; None where there is none.

    What has no field of its own counts with `extra`.
    """
    of_run, of_step, of_call = _READERS[extra]
    held = [
        (
            of_run(run),
            [(_brief(step.text), _brief(step.observation), *of_step(step)) for step in run.steps],
            [
                [(_brief(call.result), *of_call(call)) for call in step.tool_calls]
                for step in run.steps
            ],
        )
        for run in runs
    ]
    try:
        return sha256(_dumps((question, held))).digest()
    except (pickle.PicklingError, TypeError, ValueError, AttributeError, RecursionError):
        return None  # something that a reader did not put there


def _brief(text: Any) -> Any:
    """Stand for a text by hash and length: Python knows its hash from the last time."""
    return (hash(text), len(text)) if isinstance(text, str) else text


def _dumps(value: Any) -> bytes:
    """Pickle without looking for what occurs twice, which is twice as fast, and depends on ids."""
    file = BytesIO()
    pickler = pickle.Pickler(file, protocol=5)
    pickler.fast = True
    pickler.dump(value)
    return file.getvalue()


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
