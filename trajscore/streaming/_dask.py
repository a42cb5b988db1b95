"""Batches on a Dask cluster: the caller's client decides where."""

from __future__ import annotations

import ctypes
import os
import pickle
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from trajscore.core.frame import select_columns
from trajscore.core.type_aliases import IntArray
from trajscore.streaming._batches import (
    Batch,
    Columns,
    RunBatches,
    hashed,
    lacks_steps,
    merge,
    update,
)

Reduced = TypeVar("Reduced")

# Results that are merged at a time.
_FAN_IN = 8
# glibc's options of mallopt: bytes to keep when they are freed, and to ask the system for alone
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


class DaskBatches:
    """A batch a partition; see `iter_batches`."""

    def __init__(self, source: Any, columns: Columns) -> None:
        self.columns = columns
        self._source = source if isinstance(source, list) else source[columns.names]

    @cached_property
    def _parts(self) -> list[Any]:
        """The partitions as they are."""
        if isinstance(self._source, list):
            return self._source
        # read the columns only, but do not let dask join partitions, within which runs were torn
        parts: list[Any] = self._source.simplify().to_delayed(optimize_graph=False)
        return parts

    @cached_property
    def _whole_parts(self) -> list[Any]:
        """Partitions with all rows of each of their runs."""
        if not self.columns.scattered:
            return self._parts
        from dask import dataframe
        from dask.delayed import delayed

        source = self._source
        if isinstance(source, list):
            source = dataframe.from_delayed([delayed(_read)(self.columns, one) for one in source])
        parts: list[Any] = source.shuffle(on=self.columns.id).to_delayed()
        return parts

    def __iter__(self) -> Iterator[Batch]:
        from dask.base import compute

        for part in self._whole_parts:  # one at a time, as memory may not hold two
            (table,) = compute(part)
            if isinstance(table, (str, Path)):
                yield from RunBatches(table, self.columns)
            elif len(table):
                yield self.columns.batch(table)

    def reduce(self, accumulator: Reduced) -> Reduced:
        """Return a copy of the accumulator after all partitions, merged by tree."""
        found = self._reduced_in_place(accumulator) if self.columns.scattered else None
        if found is None:
            found = _tree(_added, _merged, accumulator, self.columns, self._whole_parts)
        return found

    def _reduced_in_place(self, accumulator: Reduced) -> Reduced | None:
        """Move the first and the last run of each partition only; None where others are torn."""
        given = (_inner_added, _joined, accumulator, self.columns)
        middle = len(self._parts) // 2
        if _tree(*given, self._parts[middle : middle + 1]) is None:  # one shows it, mostly
            return None
        found: _InPlace | None = _tree(*given, self._parts)
        found = None if found is None else _with_runs(found, self.columns, found.torn)
        return None if found is None else found.total


def _tree(leaf: Any, node: Any, accumulator: Any, columns: Columns, parts: Sequence[Any]) -> Any:
    """Compute leaves from partitions, and nodes from several of what is below."""
    import cloudpickle  # comes with dask
    from dask.delayed import delayed

    packed = zlib.compress(cloudpickle.dumps(accumulator), 1)  # megabytes of zeros, mostly
    empty = delayed(_unpacked)(packed)
    level = [delayed(leaf)(empty, columns, part) for part in parts]
    while len(level) > 1:
        level = [
            delayed(node)(level[start : start + _FAN_IN]) for start in range(0, len(level), _FAN_IN)
        ]
    return level[0].compute()


def _unpacked(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def _added(accumulator: Any, columns: Columns, table: Any) -> Any:
    found = deepcopy(accumulator)  # tasks may be run again, and must leave what they are given
    with _kept_memory():
        if isinstance(table, (str, Path)):  # a file, which a task reads in batches as well
            return RunBatches(table, columns).reduce(found)
        if len(table):
            update(found, columns.batch(table))
    return found


def _merged(found: Sequence[Any]) -> Any:
    total = deepcopy(found[0])
    for other in found[1:]:
        merge(total, other)
    return total


@dataclass
class _InPlace:
    """What runs of some partitions add up to, and the rows of the runs at their ends."""

    total: Any
    keys: IntArray  # hashes of the runs that were added up
    torn: pd.DataFrame


def _inner_added(accumulator: Any, columns: Columns, table: Any) -> _InPlace | None:
    """Add up a partition's runs but the first and the last; None if these are most of it."""
    with _kept_memory():
        rows = _read(columns, table)
        ids = rows[columns.id]
        inner = np.flatnonzero((ids != ids[:1].squeeze()) & (ids != ids[-1:].squeeze()))
        start, stop = (inner[0], inner[-1] + 1) if len(inner) else (0, 0)
        if 2 * (stop - start) < len(rows):
            return None
        torn = pd.concat([rows.iloc[:start], rows.iloc[stop:]])
        part = _InPlace(accumulator, np.empty(0, dtype=np.int64), torn)
        return _with_runs(part, columns, rows.iloc[start:stop])


def _joined(parts: Sequence[_InPlace | None]) -> _InPlace | None:
    """Join partitions; None if they have a run in common."""
    found = [part for part in parts if part is not None]
    keys = _distinct(np.concatenate([part.keys for part in found])) if found else None
    if keys is None or len(found) < len(parts):
        return None
    total = _merged([part.total for part in found])
    return _InPlace(total, keys, pd.concat([part.torn for part in found]))


def _with_runs(part: _InPlace, columns: Columns, rows: pd.DataFrame) -> _InPlace | None:
    """Add runs; None if one of them lacks steps, or was added up before."""
    if not len(rows):
        return part
    try:
        batch = columns.batch(rows)
    except ValueError as error:
        if lacks_steps(error):
            return None
        raise
    keys = _distinct(np.append(part.keys, hashed(batch.X.ids)))
    total = deepcopy(part.total)
    update(total, batch)
    return None if keys is None else _InPlace(total, keys, part.torn)


def _distinct(keys: IntArray) -> IntArray | None:
    """Sort hashes; None if one is there twice."""
    keys = np.sort(keys)
    return None if (keys[1:] == keys[:-1]).any() else keys


def _read(columns: Columns, table: Any) -> pd.DataFrame:
    """Return a partition's rows, which may lie in a file."""
    if isinstance(table, (str, Path)):
        return pd.read_parquet(table, columns=columns.names)
    return select_columns(table, columns.names)


@contextmanager
def _kept_memory() -> Iterator[None]:
    """Keep freed memory for what comes next, where Dask has told glibc to hand it back at once."""
    mallopt = getattr(ctypes.pythonapi, "mallopt", None)
    asked = os.environ.get("MALLOC_TRIM_THRESHOLD_")
    if mallopt is None or asked is None:
        yield
        return
    mallopt(_TRIM_THRESHOLD, 1 << 26)  # as glibc does by itself, unless a threshold was set
    mallopt(_MMAP_THRESHOLD, 1 << 25)
    try:
        yield
    finally:
        mallopt(_TRIM_THRESHOLD, int(asked))
        mallopt(_MMAP_THRESHOLD, 1 << 17)
