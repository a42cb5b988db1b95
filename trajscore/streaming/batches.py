"""Batches of whole runs, read from files and from Arrow data on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError, MissingStepError, optional
from trajscore.core.meanings import bare_name
from trajscore.core.type_aliases import AnyArray, IntArray
from trajscore.io.files import NO_READAHEAD, parquet_dataset

Reduced = TypeVar("Reduced")

BATCH_ROWS = 1 << 18  # rows that are read at a time
_BUCKET_ROWS = 1 << 21  # rows of a temporary file, where rows of a run lie apart
_MAX_BUCKETS = 256


class Batch(NamedTuple):
    """Whole runs: outcomes, traces with one channel a predictor, and clusters or None."""

    y: AnyArray
    X: TrajectoryArray
    groups: AnyArray | None

    def take(self, rows: IntArray) -> Batch:
        """Return some of the runs."""
        groups = self.groups
        if groups is not None:
            groups = groups[rows]
        return Batch(self.y[rows], self.X[rows], groups)

    def hashes(self) -> IntArray:
        """Return a hash of each run's cluster, or of its id where there are no clusters."""
        if self.groups is None:
            return hashed(self.X.ids)
        return hashed(self.groups)


@dataclass(frozen=True)
class Columns:
    """The columns that are read."""

    id: str
    step: str
    values: tuple[str, ...]
    outcome: str
    group: str | None
    meta: tuple[str, ...]
    first_step: int
    scattered: bool  # whether rows of a run lie apart in the source

    @property
    def names(self) -> list[str]:
        """All columns, each once; of an outcome "not failed" it is "failed" that is read."""
        outcome = bare_name(self.outcome)
        columns = [self.id, self.step, *self.values, outcome, self.group, *self.meta]
        return list(dict.fromkeys(name for name in columns if name is not None))

    def batch(self, table: Any) -> Batch:
        """Return the runs of a table that holds all rows of each, in any order."""
        try:
            X, y = TrajectoryArray.from_frame(
                table,
                id=self.id,
                step=self.step,
                value=list(self.values),
                outcome=self.outcome,
                meta=[name for name in (*self.meta, self.group) if name is not None],
                first_step=self.first_step,
                missing="allow",
                stop_reason=(),  # whoever evaluates the batches counts them all
            )
        except MissingStepError as error:
            if self.scattered:
                raise
            text = f"{error}; if its other rows stand elsewhere in the source, pass {{argument}}"
            raise ArgumentError(text, "scattered", True) from error
        batch = Batch(y, X, None)
        if self.group is not None:
            batch = batch._replace(groups=X.meta[self.group].to_numpy())
        return batch


class RunBatches:
    """Batches that are read on this machine; see `iter_batches`."""

    def __init__(
        self, source: Any, columns: Columns, progress: Callable[[Iterator[Any]], Any] | None = None
    ) -> None:
        self.source = source
        self.columns = columns
        self._progress = progress or iter

    def __iter__(self) -> Iterator[Batch]:
        tables = self._adjacent()
        if self.columns.scattered:
            tables = self._gathered()
        with closing(tables):  # at once after an error, too, as there may be temporary files
            yield from map(self.columns.batch, self._progress(tables))

    def reduce(self, accumulator: Reduced) -> Reduced:
        """Return a copy of the accumulator after all batches."""
        return add_up(self, accumulator)

    def _read(self) -> Iterator[Any]:
        """Read tables of some rows, in the order of the source."""
        source = self.source
        names = self.columns.names
        if isinstance(source, (str, Path)):
            source = parquet_dataset(source)
        if isinstance(source, _arrow("pyarrow.dataset").Dataset):
            batches = source.to_batches(columns=names, batch_size=BATCH_ROWS, **NO_READAHEAD)
        else:
            batches = _arrow().RecordBatchReader.from_stream(source)
        for batch in batches:
            table = _arrow().Table.from_batches([batch]).select(names)
            for start in range(0, len(table), BATCH_ROWS):
                yield table.slice(start, BATCH_ROWS)

    def _adjacent(self) -> Generator[Any, None, None]:
        """Yield tables of whole runs; the rows of a run stand together in the source."""
        pa = _arrow()
        pc = _arrow("pyarrow.compute")
        buffer: list[Any] = []
        for table in self._read():
            buffer.append(table)
            if sum(map(len, buffer)) < BATCH_ROWS:
                continue
            joined = pa.concat_tables(buffer)
            ids = joined[self.columns.id]
            others = np.flatnonzero(pc.not_equal(ids, ids[-1]).to_numpy())
            n_whole = int((others + 1).max(initial=0))  # rows before the last run
            if n_whole:
                yield joined.slice(0, n_whole)
            buffer = [joined.slice(n_whole)]
        if buffer:
            yield pa.concat_tables(buffer)

    def _gathered(self) -> Generator[Any, None, None]:
        """Sort the rows into temporary files by run, and yield each file as a table."""
        pa = _arrow()
        n_buckets = _MAX_BUCKETS
        if isinstance(self.source, (str, Path)):
            n_rows = parquet_dataset(self.source).count_rows()
            n_buckets = min(n_buckets, 1 + n_rows // _BUCKET_ROWS)
        with tempfile.TemporaryDirectory(prefix="trajscore-") as folder:
            paths = [Path(folder) / f"{k}.arrow" for k in range(n_buckets)]
            writers: dict[int, Any] = {}
            for table in self._read():
                bucket = hashed(table[self.columns.id].to_pandas()) % n_buckets
                order = np.argsort(bucket, kind="stable")
                ends = np.cumsum(np.bincount(bucket, minlength=n_buckets))[:-1]
                for k, rows in enumerate(np.split(order, ends)):
                    if len(rows) and k not in writers:
                        writers[k] = pa.ipc.new_stream(str(paths[k]), table.schema)
                    if len(rows):
                        writers[k].write_table(table.take(rows))
            for k, writer in writers.items():
                writer.close()
                with pa.OSFile(str(paths[k])) as file, pa.ipc.open_stream(file) as reader:
                    yield reader.read_all()
                paths[k].unlink()


def add_up(batches: Iterable[Batch], accumulator: Reduced) -> Reduced:
    """Return a copy of an accumulator after all batches, or a dict of them.

    Its keys are predictors or begin with one.
    """
    total: Any = deepcopy(accumulator)
    for batch in batches:
        if not isinstance(total, Mapping):
            total.update(*batch)
            continue
        for key, part in total.items():
            name = key[0] if isinstance(key, tuple) else key
            part.update(batch.y, batch.X[name], batch.groups)
    return total


def merge(accumulator: Any, other: Any) -> None:
    """Merge accumulators, or dicts of them."""
    if not isinstance(accumulator, Mapping):
        accumulator.merge(other)
        return
    for key, part in accumulator.items():
        part.merge(other[key])


def hashed(keys: Any) -> IntArray:
    """Return a hash of each key that is the same in every process and partition.

    >>> hashed(np.array(["a", "b"])) % 1000
    array([752, 487])
    """
    values = np.asarray(keys)
    if values.dtype.kind in "US":
        values = values.astype(object)
    return (pd.util.hash_array(values, categorize=False) >> np.uint64(1)).astype(np.int64)


def _arrow(module: str = "pyarrow") -> Any:
    return optional(module, "reading batches needs pyarrow", "data")
