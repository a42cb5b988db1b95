"""Batches of whole runs from a source, read on this machine or on a Dask cluster."""

import pickle
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError, MissingStepError, optional
from trajscore.core.frame import select_columns
from trajscore.core.outcomes import bare_name
from trajscore.core.values import AnyArray, IntArray
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

    def take(self, rows: IntArray) -> "Batch":
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
    def of_runs(self) -> list[str]:
        """Those that are the same in all rows of a run."""
        return [name for name in (*self.meta, self.group) if name is not None]

    @property
    def names(self) -> list[str]:
        """All columns, each once; of an outcome "not failed" it is "failed" that is read."""
        columns = [self.id, self.step, *self.values, bare_name(self.outcome), *self.of_runs]
        return list(dict.fromkeys(columns))

    def batch(self, table: Any) -> Batch:
        """Return the runs of a table that holds all rows of each, in any order."""
        try:
            X, y = TrajectoryArray.from_frame(
                table,
                id=self.id,
                step=self.step,
                value=list(self.values),
                outcome=self.outcome,
                meta=self.of_runs,
                first_step=self.first_step,
                missing="allow",
                stop_reason=(),  # whoever evaluates the batches counts them all
            )
        except MissingStepError as error:
            if self.scattered:
                raise
            text = f"{error}; if its other rows stand elsewhere in the source, pass {{argument}}"
            raise ArgumentError(text, "scattered", True) from error
        groups = None
        if self.group is not None:
            groups = X.meta[self.group].to_numpy()
        return Batch(y, X, groups)


class RunBatches:
    """Batches that are read on this machine; see `iter_batches`."""

    def __init__(
        self, source: Any, columns: Columns, progress: Callable[[Iterator[Any]], Any] | None = None
    ) -> None:
        if isinstance(source, (str, Path)):
            source = parquet_dataset(source)
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

    @property
    def _is_dataset(self) -> bool:
        return isinstance(self.source, _arrow("pyarrow.dataset").Dataset)

    def _read(self) -> Iterator[Any]:
        """Read tables of some rows, in the order of the source."""
        names = self.columns.names
        if self._is_dataset:
            batches = self.source.to_batches(columns=names, batch_size=BATCH_ROWS, **NO_READAHEAD)
        else:
            batches = _arrow().RecordBatchReader.from_stream(self.source)
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
        if self._is_dataset:
            n_buckets = min(n_buckets, 1 + self.source.count_rows() // _BUCKET_ROWS)
        with tempfile.TemporaryDirectory(prefix="trajscore-") as folder:
            paths = [Path(folder) / f"{k}.arrow" for k in range(n_buckets)]
            writers: dict[int, Any] = {}
            for table in self._read():
                bucket = hashed(table[self.columns.id].to_pandas()) % n_buckets
                for k in np.unique(bucket).tolist():
                    if k not in writers:
                        writers[k] = pa.ipc.new_stream(str(paths[k]), table.schema)
                    writers[k].write_table(table.take(np.flatnonzero(bucket == k)))
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


_FAN_IN = 8  # results that are merged at a time


class DaskBatches:
    """A batch a partition; see `iter_batches`."""

    def __init__(self, source: Any, columns: Columns) -> None:
        self.columns = columns
        self._parts = source
        if not isinstance(source, list):
            # read the columns only; joined partitions would hide runs that two of them share
            self._parts = source[columns.names].simplify().to_delayed(optimize_graph=False)

    @cached_property
    def _whole_parts(self) -> list[Any]:
        """Partitions with all rows of each of their runs."""
        if not self.columns.scattered:
            return self._parts
        from dask import dataframe
        from dask.delayed import delayed

        rows = [delayed(_read)(self.columns, part) for part in self._parts]
        # an empty partition may have other types
        source = dataframe.from_delayed(rows, verify_meta=False)
        return source.shuffle(on=self.columns.id).to_delayed()

    def __iter__(self) -> Iterator[Batch]:
        from dask.base import compute

        for part in self._whole_parts:  # one at a time, as memory may not hold two
            yield from _batches_of(self.columns, *compute(part))

    def reduce(self, accumulator: Reduced) -> Reduced:
        """Return a copy of the accumulator after all partitions, merged by tree."""
        import cloudpickle  # comes with dask
        from dask.delayed import delayed

        packed = zlib.compress(cloudpickle.dumps(accumulator), 1)  # megabytes of zeros, mostly
        empty = delayed(_unpacked)(packed)
        level = [delayed(_add_up)(empty, self.columns, part) for part in self._whole_parts]
        while len(level) > 1:
            starts = range(0, len(level), _FAN_IN)
            level = [delayed(_merge_all)(level[start : start + _FAN_IN]) for start in starts]
        total: Reduced = level[0].compute()
        return total


def _unpacked(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def _batches_of(columns: Columns, table: Any) -> Iterator[Batch]:
    """Yield the batches of a partition, or of a file, which a task reads in several."""
    if isinstance(table, (str, Path)):
        yield from RunBatches(table, columns)
    elif len(table):
        yield columns.batch(table)


def _add_up(accumulator: Any, columns: Columns, table: Any) -> Any:
    return add_up(_batches_of(columns, table), accumulator)


def _merge_all(accumulators: Sequence[Any]) -> Any:
    total = deepcopy(accumulators[0])
    for other in accumulators[1:]:
        merge(total, other)
    return total


def _read(columns: Columns, table: Any) -> pd.DataFrame:
    """Return a partition's rows, which may lie in a file."""
    if isinstance(table, (str, Path)):
        return pd.read_parquet(table, columns=columns.names)
    return select_columns(table, columns.names)


def iter_batches(
    source: Any,
    *,
    id: str,  # noqa: A002 - as in TrajectoryArray.from_frame
    step: str,
    value: str | Sequence[str],
    outcome: str,
    group: str | None = None,
    meta: str | Sequence[str] = (),
    first_step: int = 1,
    scattered: bool = False,
    progress: Callable[[Iterator[Any]], Any] | None = None,
) -> Any:
    """Return batches of whole runs from a table with one row a step that may exceed memory.

    Parameters
    ----------
    source : path, Arrow data, Dask DataFrame or list of delayed tables
        A Parquet file or a folder of them; a pyarrow dataset; an object with an Arrow stream, such
        as a pyarrow table, a record batch reader, or a result of DuckDB or polars; a Dask
        DataFrame; or a list of Dask's delayed tables or paths.
    id, step : str
        Columns of run identifiers and step numbers, as in `trajscore.TrajectoryArray.from_frame`.
    value : str or list of str
        Columns of values, a predictor each.
    outcome : str
        Column of outcomes, the same in all rows of a run.
    group : str, optional
        Column of clusters of runs, the same in all rows of a run.
    meta : str or list of str, optional
        Columns that are the same in all rows of a run, kept in `meta` of the runs: the stop reason,
        or what a report is to be made by.
    first_step : int, default=1
        The number of each run's first step.
    scattered : bool, default=False
        Whether the rows of a run may stand apart, also in several files. Temporary files, or on
        Dask its shuffle, then bring them together. Default: such a run is an error.
    progress : callable, optional
        Wraps the iterator over batches, as ``tqdm`` does; not read with Dask.

    Returns
    -------
    iterable of (y, X, groups)
        Outcomes, a TrajectoryArray with a channel for each predictor, and the clusters or None. You
        can iterate more than once if the source allows it. ``reduce(accumulator)`` returns a copy
        of the accumulator after all batches; on Dask the active scheduler computes it. Instead of
        one accumulator you can pass a dict of them by predictor, or by (predictor, any name).

    Raises
    ------
    ImportError
        If pyarrow is not installed (extra ``data``).
    ValueError
        If the rows of a run stand apart, or as in `trajscore.TrajectoryArray.from_frame`.

    See Also
    --------
    TPSAccumulator : Computes scores from the batches.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from trajscore.streaming import iter_batches
    >>> table = pa.table(
    ...     {"run": ["a", "a", "b"], "t": [1, 2, 1], "p": [0.9, 0.8, 0.3], "ok": [1, 1, 0]}
    ... )
    >>> for y, X, groups in iter_batches(table, id="run", step="t", value="p", outcome="ok"):
    ...     print(y, X, groups)
    [1 0] <TrajectoryArray: 2 runs of 1 to 2 steps, channels p> None
    """
    values, per_run = (
        tuple(names) if isinstance(names, (list, tuple)) else (names,) for names in (value, meta)
    )
    columns = Columns(id, step, values, outcome, group, per_run, first_step, scattered)
    if isinstance(source, list) or hasattr(source, "to_delayed"):
        return DaskBatches(source, columns)
    return RunBatches(source, columns, progress)
