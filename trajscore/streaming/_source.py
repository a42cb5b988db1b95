"""From a source to batches of whole runs, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trajscore.streaming.batches import Columns, RunBatches
from trajscore.streaming.dask_batches import DaskBatches


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
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    per_run = tuple(meta) if isinstance(meta, (list, tuple)) else (meta,)
    columns = Columns(id, step, values, outcome, group, per_run, first_step, scattered)
    if isinstance(source, list) or hasattr(source, "to_delayed"):
        return DaskBatches(source, columns)
    return RunBatches(source, columns, progress)
