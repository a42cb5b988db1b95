"""Whole runs in batches, from what hands out Arrow data."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_labels
from trajscore.core.optional import optional
from trajscore.core.sample import check_sample
from trajscore.core.type_aliases import IntArray
from trajscore.core.weights import StepWeights
from trajscore.io._files import parquet_files
from trajscore.streaming._labelled import LabelledRuns

Reduced = TypeVar("Reduced")

# Rows that are read at a time, and rows of a bucket where runs have to be put together first.
_BATCH_ROWS = 1 << 18
_BUCKET_ROWS = 1 << 21
_MOST_BUCKETS = 256
# Memory stays small, and what adds up is slower than files.
NOTHING_AHEAD: Any = {"batch_readahead": 0, "fragment_readahead": 0, "use_threads": False}


class Batch(NamedTuple):
    """Whole runs: their outcomes, their traces (one channel a predictor) and their clusters."""

    y: NDArray[Any]
    X: TrajectoryArray
    groups: NDArray[Any] | None

    def take(self, rows: IntArray) -> Batch:
        """Return some of the runs."""
        groups = None if self.groups is None else self.groups[rows]
        return Batch(self.y[rows], self.X[rows], groups)

    def hashes(self) -> IntArray:
        """Return a number for each run by its cluster, or by its id."""
        return hashed(self.X.ids if self.groups is None else self.groups)


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
        """All of them, each once."""
        every = [self.id, self.step, *self.values, self.outcome, self.group, *self.meta]
        return list(dict.fromkeys(name for name in every if name is not None))

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
            )
        except ValueError as error:
            if self.scattered or not lacks_steps(error):
                raise
            raise ValueError(
                f"{error}; or, if its other rows lie elsewhere, pass scattered=True to put the "
                f"rows of each run together"
            ) from error
        groups = None if self.group is None else X.meta[self.group].to_numpy()
        return Batch(y, X, groups)


class RunBatches:
    """Batches that are read on this machine; see `iter_batches`."""

    def __init__(
        self,
        source: Any,
        columns: Columns,
        progress: Callable[[Iterator[Any]], Any] | None = None,
    ) -> None:
        self.source, self.columns = source, columns
        self._progress = progress

    def __iter__(self) -> Iterator[Batch]:
        tables = self._gathered() if self.columns.scattered else self._adjacent()
        for table in self._progress(tables) if self._progress else tables:
            yield self.columns.batch(table)

    def reduce(self, accumulator: Reduced) -> Reduced:
        """Return a copy of the accumulator after all batches."""
        found: Any = deepcopy(accumulator)
        for batch in self:
            update(found, batch)
        return found

    def _read(self) -> Iterator[Any]:
        """Read tables of some rows, in the order of the source."""
        pa, dataset = _arrow()
        source, names = self.source, self.columns.names
        if isinstance(source, (str, Path)):
            source = parquet_dataset(source)
        if isinstance(source, dataset.Dataset):
            batches = source.to_batches(columns=names, batch_size=_BATCH_ROWS, **NOTHING_AHEAD)
        elif isinstance(source, pa.Table):
            batches = source.to_batches()
        elif isinstance(source, pa.RecordBatchReader):
            batches = source
        else:
            batches = pa.RecordBatchReader.from_stream(source)
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                yield pa.Table.from_batches([batch]).select(names).slice(start, _BATCH_ROWS)

    def _adjacent(self) -> Iterator[Any]:
        """Cut what is read after whole runs, whose rows lie together."""
        pa, _ = _arrow()
        waiting: list[Any] = []
        for table in self._read():
            waiting.append(table)
            if sum(len(one) for one in waiting) < _BATCH_ROWS:
                continue
            joined = pa.concat_tables(waiting)
            n_whole = _rows_before_last(joined[self.columns.id])
            if n_whole:
                yield joined.slice(0, n_whole)
            waiting = [joined.slice(n_whole)]
        if waiting:
            yield pa.concat_tables(waiting)

    def _gathered(self) -> Iterator[Any]:
        """Put the rows of each run into one of several temporary files, and read these."""
        pa, _ = _arrow()
        n_buckets = _MOST_BUCKETS
        if isinstance(self.source, (str, Path)):
            n_rows = parquet_dataset(self.source).count_rows()
            n_buckets = min(n_buckets, 1 + n_rows // _BUCKET_ROWS)
        with tempfile.TemporaryDirectory(prefix="trajscore-") as folder:
            paths = [Path(folder) / f"{k}.arrow" for k in range(n_buckets)]
            writers: dict[int, Any] = {}
            for table in self._read():
                bucket = hashed(table[self.columns.id].to_pandas()) % n_buckets
                order = np.argsort(bucket, kind="stable")
                ends = np.cumsum(np.bincount(bucket, minlength=n_buckets))
                ordered = table.take(order)
                for k, end in enumerate(ends.tolist()):
                    start = int(ends[k - 1]) if k else 0
                    if end > start:
                        if k not in writers:
                            writers[k] = pa.ipc.new_stream(str(paths[k]), table.schema)
                        writers[k].write_table(ordered.slice(start, end - start))
            for k, writer in writers.items():
                writer.close()
                with pa.OSFile(str(paths[k])) as file, pa.ipc.open_stream(file) as reader:
                    yield reader.read_all()
                paths[k].unlink()


def lacks_steps(error: ValueError) -> bool:
    """Tell whether an error of `from_frame` may be due to rows of a run that lie elsewhere."""
    return re.search("starts at step|has no step", str(error)) is not None


def update(accumulator: Any, batch: Batch) -> None:
    """Update an accumulator, or those of a dict, each with its predictor."""
    if not isinstance(accumulator, Mapping):
        accumulator.update(*batch)
        return
    for key, one in accumulator.items():
        name = key[0] if isinstance(key, tuple) else key
        one.update(batch.y, batch.X[name], batch.groups)


def merge(accumulator: Any, other: Any) -> None:
    """Merge accumulators, or dicts of them."""
    if not isinstance(accumulator, Mapping):
        accumulator.merge(other)
        return
    for key, one in accumulator.items():
        one.merge(other[key])


def check_batch(
    y: Any, X: Any, weights: StepWeights, groups: Any = None, *, probabilities: bool = True
) -> LabelledRuns:
    """Check the runs that an accumulator is to add; each needs an outcome."""
    runs = check_sample(
        X, y, allow_censored=False, probabilities=probabilities, single_channel=True
    )
    names = None if groups is None else check_labels(groups, len(runs))
    return LabelledRuns(np.asarray(runs.y, dtype=np.float64), runs.X, weights, names)


def check_mergeable(one: Any, other: Any, *settings: str) -> None:
    """Refuse to merge anything but an accumulator of the same kind and settings."""
    kind = type(one).__name__
    if type(other) is not type(one):
        raise ValueError(f"only another {kind} can be merged, got {type(other).__name__}")
    differ = [name for name in settings if getattr(one, name) != getattr(other, name)]
    if differ:
        raise ValueError(
            f"only accumulators of the same settings can be merged; these differ in "
            f"{' and '.join(differ)}"
        )


def hashed(keys: Any) -> IntArray:
    """Return a number for each key, the same everywhere: what goes by it knows no partitions.

    >>> hashed(np.array(["a", "b"])) % 1000
    array([752, 487])
    """
    values = np.asarray(keys)
    if values.dtype.kind in "US":
        values = values.astype(object)
    return (pd.util.hash_array(values, categorize=False) >> np.uint64(1)).astype(np.int64)


def _rows_before_last(ids: Any) -> int:
    """Count the rows before those of the last run."""
    import pyarrow.compute as pc

    other = pc.not_equal(ids, ids[-1]).to_numpy()
    places = np.flatnonzero(other)
    return int(places[-1]) + 1 if len(places) else 0


def parquet_dataset(path: str | Path) -> Any:
    """Open a Parquet file, or a folder in which other files may lie as well."""
    _, dataset = _arrow()
    files = sorted(map(str, parquet_files(Path(path))))  # none of a file
    return dataset.dataset(files or str(path), format="parquet")


def _arrow() -> list[Any]:
    names = ("pyarrow", "pyarrow.dataset")
    return [optional(name, "batches are read with pyarrow", "data") for name in names]
