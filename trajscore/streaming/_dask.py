"""Batches on a Dask cluster: the caller's client decides where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar

from trajscore.streaming._batches import Batch, Columns, RunBatches, merge, update

Reduced = TypeVar("Reduced")

# Results that are merged at a time.
_FAN_IN = 8


class DaskBatches:
    """A batch a partition; see `iter_batches`."""

    def __init__(self, source: Any, columns: Columns) -> None:
        if isinstance(source, list) and columns.scattered:
            from dask import dataframe

            source = dataframe.from_delayed(source)
        if not isinstance(source, list):
            source = source[columns.names]
            if columns.scattered:
                source = source.shuffle(on=columns.id)
            source = source.to_delayed()
        self.columns, self._parts = columns, source

    def __iter__(self) -> Iterator[Batch]:
        from dask.base import compute

        for part in self._parts:  # one at a time, as memory may not hold two
            (table,) = compute(part)
            if isinstance(table, (str, Path)):
                yield from RunBatches(table, self.columns)
            elif len(table):
                yield self.columns.batch(table)

    def reduce(self, accumulator: Reduced) -> Reduced:
        """Return a copy of the accumulator after all partitions, merged by tree."""
        from dask.delayed import delayed

        level = [delayed(_added)(accumulator, self.columns, part) for part in self._parts]
        while len(level) > 1:
            level = [
                delayed(_merged)(level[start : start + _FAN_IN])
                for start in range(0, len(level), _FAN_IN)
            ]
        found: Reduced = level[0].compute()
        return found


def _added(accumulator: Any, columns: Columns, table: Any) -> Any:
    if isinstance(table, (str, Path)):  # a file, which a task reads in batches as well
        return RunBatches(table, columns).reduce(accumulator)
    found = deepcopy(accumulator)  # tasks may be run again, and must leave what they are given
    if len(table):
        update(found, columns.batch(table))
    return found


def _merged(found: Sequence[Any]) -> Any:
    total = deepcopy(found[0])
    for other in found[1:]:
        merge(total, other)
    return total
