"""The container that everything else reads: many runs, each with its own number of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Missing = Literal["raise", "allow"]


class TrajectoryArray:
    """Runs of different lengths, one or more numbers a step.

    It looks like a NaN-padded array of shape (n, T_max), or (n, T_max, n_channels) with named
    channels, and stores only the cells that exist: flat, run after run, with offsets. It is
    immutable and slices like an array, so scikit-learn's splitters, searches and pipelines take
    it as ``X``.

    The whole class is equivalent to this reference, run by run::

        run(i) = cells[offsets[i] : offsets[i + 1]]

    Parameters
    ----------
    cells : array-like of shape (n_cells,) or (n_cells, n_channels)
        The values, run after run, each run in step order.
    lengths : array-like of int of shape (n_runs,)
        Number of steps of each run, at least 1.
    channels : sequence of str, optional
        Names of the columns of a two-dimensional `cells`; needed when it has several.
    ids : array-like of shape (n_runs,), optional
        Stable identifiers, all integers or all strings. Default: 0, 1, 2, ...
    horizon : array-like of int of shape (n_runs,), optional
        The length T_i over which step weights are normalised, at least the length.
        Default: the length.
    meta : DataFrame with n_runs rows, or mapping of column name to values, optional
        One row a run: stop reason, task, trial, tokens.
    missing : {"raise", "allow"}, default="raise"
        Whether NaN cells are an error or stand for values that were not recorded.

    Raises
    ------
    ValueError
        If a run is empty, a value is infinite or (unless allowed) missing, or shapes disagree.

    See Also
    --------
    check_trajectories : Turns every accepted input into a `TrajectoryArray`.

    Examples
    --------
    >>> from trajscore import TrajectoryArray
    >>> X = TrajectoryArray.from_list([[0.9, 0.8, 0.95], [0.6, 0.3]])
    >>> X.shape
    (2, 3)
    >>> X[1]
    array([0.6, 0.3])
    >>> X[[1, 0]].lengths
    array([2, 3])
    """

    # _bounds is a cache: it is left out of pickles, so that equal containers hash alike
    __slots__ = ("_bounds", "_cells", "_channels", "_horizon", "_ids", "_meta", "_n_steps", "_offsets")
    __hash__ = None  # type: ignore[assignment]

    _bounds: tuple[float, float] | None
    _cells: FloatArray
    _channels: tuple[str, ...] | None
    _horizon: IntArray
    _ids: NDArray[Any]
    _meta: pd.DataFrame | None
    _n_steps: int
    _offsets: IntArray

    def __init__(
        self,
        cells: ArrayLike,
        lengths: ArrayLike,
        *,
        channels: Sequence[str] | None = None,
        ids: ArrayLike | None = None,
        horizon: ArrayLike | None = None,
        meta: pd.DataFrame | Mapping[str, Any] | None = None,
        missing: Missing = "raise",
    ) -> None:
        cell_values = _as_float(cells)
        run_lengths = _as_lengths(lengths, len(cell_values))
        n_runs = len(run_lengths)
        offsets = np.zeros(n_runs + 1, dtype=np.int64)
        np.cumsum(run_lengths, out=offsets[1:])
        self._set(
            cells=cell_values,
            offsets=offsets,
            horizon=_as_horizon(horizon, run_lengths),
            ids=_as_ids(ids, n_runs),
            channels=_as_channels(channels, cell_values),
            meta=_as_meta(meta, n_runs),
            n_steps=int(run_lengths.max(initial=0)),
        )
        self._check_values(missing)

    def _set(
        self,
        cells: FloatArray,
        offsets: IntArray,
        horizon: IntArray,
        ids: NDArray[Any],
        channels: tuple[str, ...] | None,
        meta: pd.DataFrame | None,
        n_steps: int,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        for array in (cells, offsets, horizon, ids):
            if array.flags.writeable:
                array.flags.writeable = False
        object.__setattr__(self, "_cells", cells)
        object.__setattr__(self, "_offsets", offsets)
        object.__setattr__(self, "_horizon", horizon)
        object.__setattr__(self, "_ids", ids)
        object.__setattr__(self, "_channels", channels)
        object.__setattr__(self, "_meta", meta)
        object.__setattr__(self, "_n_steps", n_steps)
        object.__setattr__(self, "_bounds", bounds)

    @classmethod
    def _trusted(cls, **parts: Any) -> Self:
        """Build from parts that are known to be valid, without a second look at the cells."""
        new = object.__new__(cls)
        new._set(**parts)
        return new

    def _parts(self) -> dict[str, Any]:
        return {
            "cells": self._cells,
            "offsets": self._offsets,
            "horizon": self._horizon,
            "ids": self._ids,
            "channels": self._channels,
            "meta": self._meta,
            "n_steps": self._n_steps,
        }

    def _replace(self, **changed: Any) -> Self:
        return self._trusted(**{**self._parts(), **changed})

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a TrajectoryArray is immutable; build a new one to change {name!r}")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _rebuild, (type(self), self._parts())

    def _check_values(self, missing: Missing) -> None:
        if missing not in ("raise", "allow"):
            raise ValueError(f"missing must be 'raise' or 'allow', got {missing!r}")
        if np.isfinite(self._value_bounds()).all():
            return
        finite = np.isfinite(self._cells)
        bad = ~finite if missing == "raise" else np.isinf(self._cells)
        if bad.any():
            place = self._place(int(np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))[0]))
            value = self._cells[bad][0]
            raise ValueError(
                f"{place}: the value is {'NaN' if value != value else value}; every step needs a finite number, so drop the "
                f"run or fill the value in"
                + (", or pass missing='allow' to keep it as not recorded" if value != value else "")
            )

    def _value_bounds(self) -> tuple[float, float]:
        """Smallest and largest value, found once; NaN if a value is missing."""
        if self._bounds is None:
            low, high = (
                (float(self._cells.min()), float(self._cells.max())) if self._cells.size else (0, 0)
            )
            object.__setattr__(self, "_bounds", (low, high))
        return self._bounds  # type: ignore[return-value]

    def _place(self, cell: int) -> str:
        """Name the run and step of a flat cell, for error messages."""
        row = int(np.searchsorted(self._offsets, cell, side="right")) - 1
        return f"run {run_label(self._ids[row])} (row {row}), step {cell - int(self._offsets[row]) + 1}"

    # ---------------------------------------------------------------- makers

    @classmethod
    def from_flat(cls, cells: ArrayLike, lengths: ArrayLike, **kwargs: Any) -> Self:
        """Build from flat cells and the length of each run.

        Parameters
        ----------
        cells : array-like of shape (n_cells,) or (n_cells, n_channels)
            The values, run after run.
        lengths : array-like of int of shape (n_runs,)
            Number of steps of each run.
        **kwargs
            The other parameters of `TrajectoryArray`.

        Returns
        -------
        TrajectoryArray
            The runs.

        Examples
        --------
        >>> TrajectoryArray.from_flat([0.1, 0.2, 0.3], [1, 2]).to_list()
        [array([0.1]), array([0.2, 0.3])]
        """
        return cls(cells, lengths, **kwargs)

    @classmethod
    def from_list(cls, runs: Sequence[ArrayLike], **kwargs: Any) -> Self:
        """Build from one sequence of numbers a run.

        Parameters
        ----------
        runs : sequence of array-like of shape (T_i,) or (T_i, n_channels)
            The runs.
        **kwargs
            The other parameters of `TrajectoryArray`.

        Returns
        -------
        TrajectoryArray
            The runs.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).lengths
        array([1, 2])
        """
        arrays = [_as_run(run, row) for row, run in enumerate(runs)]
        if len({array.shape[1:] for array in arrays}) > 1:
            raise ValueError("all runs need the same number of channels")
        cells = np.concatenate(arrays) if arrays else np.empty(0)
        return cls(cells, [len(array) for array in arrays], **kwargs)

    @classmethod
    def from_padded(
        cls, values: ArrayLike, lengths: ArrayLike | None = None, **kwargs: Any
    ) -> Self:
        """Build from a rectangular array whose trailing NaN is padding.

        Parameters
        ----------
        values : array-like of shape (n_runs, T_max) or (n_runs, T_max, n_channels)
            One row a run.
        lengths : array-like of int of shape (n_runs,), optional
            Number of steps of each run. Default: up to the last value that is not NaN; a NaN
            before that is an error, not padding.
        **kwargs
            The other parameters of `TrajectoryArray`.

        Returns
        -------
        TrajectoryArray
            The runs.

        Examples
        --------
        >>> import numpy as np
        >>> TrajectoryArray.from_padded([[0.5, np.nan], [0.4, 0.6]]).lengths
        array([1, 2])
        """
        padded = _as_float(values, ndims=(2, 3))
        n_runs, n_steps = padded.shape[:2]
        if lengths is None:
            present = ~np.isnan(padded)
            if present.ndim == 3:
                present = present.any(axis=2)
            run_lengths = n_steps - np.argmax(present[:, ::-1], axis=1) if n_steps else 0
            run_lengths = np.where(present.any(axis=1), run_lengths, 0)
        else:
            run_lengths = np.asarray(lengths)
            if run_lengths.shape != (n_runs,) or (run_lengths > n_steps).any():
                raise ValueError(
                    f"lengths must hold {n_runs} numbers of at most {n_steps}, one for each row"
                )
        mask = np.arange(n_steps) < run_lengths[:, None]
        new = cls(padded[mask], run_lengths, **kwargs)
        return new._replace(n_steps=n_steps)

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        id: str,  # noqa: A002 - the name users of long tables expect
        step: str,
        value: str | Sequence[str],
        outcome: str | None = None,
        horizon: str | None = None,
        meta: str | Sequence[str] = (),
        first_step: int = 1,
        missing: Missing = "raise",
    ) -> Any:
        """Build from a long table with one row a step, in any row order.

        Parameters
        ----------
        df : DataFrame
            A pandas DataFrame, or any dataframe that the narwhals library reads.
        id : str
            Column of run identifiers, all integers or all strings.
        step : str
            Column of step numbers: whole, without gap or repeat, from `first_step` on.
        value : str or list of str
            Column of values; a list gives named channels.
        outcome : str, optional
            Column of outcomes, the same in all rows of a run; empty where not observed.
        horizon : str, optional
            Column of horizons T_i, the same in all rows of a run.
        meta : str or list of str, optional
            Columns that are the same in all rows of a run, kept in `meta`.
        first_step : int, default=1
            The number of each run's first step.
        missing : {"raise", "allow"}, default="raise"
            Whether an empty value is an error or stands for one that was not recorded.

        Returns
        -------
        X : TrajectoryArray
            The runs, in the order in which the table first names them.
        y : ndarray of shape (n_runs,)
            Only with `outcome`: 1 success, 0 failure, -1 not observed.

        Raises
        ------
        ValueError
            If a column is unknown, a step is repeated or missing, a run has two outcomes, or a
            value is not a number; the message names the run and the step.

        Examples
        --------
        >>> import pandas as pd
        >>> df = pd.DataFrame(
        ...     {"run": ["a", "a", "b"], "t": [2, 1, 1], "p": [0.9, 0.7, 0.2], "ok": [1, 1, 0]}
        ... )
        >>> X, y = TrajectoryArray.from_frame(df, id="run", step="t", value="p", outcome="ok")
        >>> X.to_list(), y
        ([array([0.7, 0.9]), array([0.2])], array([1, 0]))
        """
        from trajscore._frames import read_frame

        return read_frame(
            cls,
            df,
            id=id,
            step=step,
            value=value,
            outcome=outcome,
            horizon=horizon,
            meta=meta,
            first_step=first_step,
            missing=missing,
        )

    @classmethod
    def concat(cls, arrays: Sequence[TrajectoryArray]) -> Self:
        """Put the runs of several containers after one another.

        Parameters
        ----------
        arrays : sequence of TrajectoryArray
            Containers with the same channels.

        Returns
        -------
        TrajectoryArray
            All runs.

        Examples
        --------
        >>> a = TrajectoryArray.from_list([[0.5]])
        >>> TrajectoryArray.concat([a, a]).shape
        (2, 1)
        """
        arrays = list(arrays)
        if not arrays:
            raise ValueError("concat needs at least one TrajectoryArray")
        channels = {array._channels for array in arrays}
        if len(channels) > 1:
            raise ValueError(f"concat needs the same channels everywhere, got {sorted(map(str, channels))}")
        lengths = np.concatenate([array.lengths for array in arrays])
        frames = [array._meta for array in arrays]
        has_meta = all(frame is not None for frame in frames)
        return cls._trusted(
            cells=np.concatenate([array._cells for array in arrays]),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            horizon=np.concatenate([array._horizon for array in arrays]),
            ids=_as_ids(np.concatenate([array._ids.astype(object) for array in arrays])),
            channels=arrays[0]._channels,
            meta=pd.concat(frames, ignore_index=True) if has_meta else None,
            n_steps=max(array._n_steps for array in arrays),
        )

    @classmethod
    def stack(cls, arrays: Sequence[TrajectoryArray], channels: Sequence[str] | None = None) -> Self:
        """Put the channels of several containers of the same runs side by side.

        Parameters
        ----------
        arrays : sequence of TrajectoryArray
            Containers of the same runs.
        channels : sequence of str, optional
            New names. Default: the containers' own, numbered where two are alike.

        Returns
        -------
        TrajectoryArray
            The runs with all channels.

        Examples
        --------
        >>> a = TrajectoryArray.from_list([[0.5, 0.6]])
        >>> TrajectoryArray.stack([a, a], channels=["judge", "verbal"]).shape
        (1, 2, 2)
        """
        arrays = list(arrays)
        if not arrays:
            raise ValueError("stack needs at least one TrajectoryArray")
        first = arrays[0]
        for array in arrays[1:]:
            if not np.array_equal(array._offsets, first._offsets):
                raise ValueError("stack needs containers of the same runs: their lengths differ")
        cells = np.concatenate([array._cells.reshape(len(array._cells), -1) for array in arrays], axis=1)
        names = [name for array in arrays for name in (array._channels or ("value",))]
        return first._replace(
            cells=cells, channels=_as_channels(channels or _distinct(names), cells)
        )

    # ---------------------------------------------------------------- views

    @property
    def cells(self) -> FloatArray:
        """All values, run after run; read-only."""
        return self._cells

    @property
    def offsets(self) -> IntArray:
        """Where each run starts in `cells`, and after the last one the number of cells."""
        return self._offsets

    @property
    def lengths(self) -> IntArray:
        """Number of steps of each run."""
        return np.diff(self._offsets)

    @property
    def horizon(self) -> IntArray:
        """The length T_i over which the step weights of each run are normalised."""
        return self._horizon

    @property
    def ids(self) -> NDArray[Any]:
        """Identifier of each run."""
        return self._ids

    @property
    def channels(self) -> tuple[str, ...] | None:
        """Channel names, or None for a container of one unnamed number a step."""
        return self._channels

    @property
    def n_channels(self) -> int:
        """Number of values a step."""
        return 1 if self._cells.ndim == 1 else self._cells.shape[1]

    @property
    def meta(self) -> pd.DataFrame:
        """One row a run: stop reason, task, trial and the like (a copy)."""
        if self._meta is None:
            return pd.DataFrame(index=pd.RangeIndex(len(self)))
        return self._meta.copy()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the padded array this container stands for."""
        return (len(self), self._n_steps, *self._cells.shape[1:])

    @property
    def ndim(self) -> int:
        """Number of axes of the padded array this container stands for."""
        return 1 + self._cells.ndim

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which cells of the padded array exist, of shape (n_runs, T_max)."""
        return np.arange(self._n_steps) < self.lengths[:, None]

    def __len__(self) -> int:
        return len(self._horizon)

    def __iter__(self) -> Iterator[FloatArray]:
        return (self._cells[a:b] for a, b in zip(self._offsets[:-1], self._offsets[1:], strict=True))

    def __repr__(self) -> str:
        lengths = self.lengths
        steps = f"{lengths.min()} to {lengths.max()}" if len(self) else "no"
        names = f", channels {', '.join(self._channels)}" if self._channels else ""
        return f"<TrajectoryArray: {len(self)} runs of {steps} steps{names}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrajectoryArray):
            return False
        same_meta = (
            other._meta is None if self._meta is None else self._meta.equals(other._meta)
        )
        return (
            same_meta
            and self._channels == other._channels
            and np.array_equal(self._offsets, other._offsets)
            and np.array_equal(self._horizon, other._horizon)
            and np.array_equal(self._ids, other._ids)
            and np.array_equal(self._cells, other._cells, equal_nan=True)
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            "a TrajectoryArray holds runs of different lengths and is not turned into an array "
            "unasked; call .padded() for a NaN-padded array, or .cells for the flat values"
        )

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # cross_val_predict joins folds with np.concatenate, FeatureUnion channels with np.hstack
        if func is np.concatenate:
            return type(self).concat(args[0])
        if func is np.hstack:
            return type(self).stack(args[0])
        return NotImplemented

    # ---------------------------------------------------------------- selection

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            key = self._row_key(key)
        if isinstance(key, str):
            return self._pick(key)
        if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            return self._pick(key)
        if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)):
            row = range(len(self))[int(key)]
            return self._cells[self._offsets[row] : self._offsets[row + 1]]
        if isinstance(key, slice):
            start, stop, stride = key.indices(len(self))
            if stride == 1:
                return self._slice_rows(start, max(start, stop))
        return self._take(np.arange(len(self))[_as_row_index(key, len(self))])

    def _row_key(self, key: tuple[Any, ...]) -> Any:
        # scikit-learn asks for X[rows, ...]
        if len(key) == 2 and key[1] is Ellipsis:
            return key[0]
        raise IndexError(
            "index a TrajectoryArray by runs, X[rows], or by channel, X['name']; for steps use "
            ".prefix(t), .steps(t) or .padded()"
        )

    def _slice_rows(self, start: int, stop: int) -> Self:
        low, high = self._offsets[start], self._offsets[stop]
        return self._replace(
            cells=self._cells[low:high],
            offsets=self._offsets[start : stop + 1] - low,
            horizon=self._horizon[start:stop],
            ids=self._ids[start:stop],
            meta=None if self._meta is None else self._meta.iloc[start:stop].reset_index(drop=True),
        )

    def _take(self, rows: IntArray) -> Self:
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        cells = np.repeat(self._offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return self._replace(
            cells=self._cells[cells],
            offsets=offsets,
            horizon=self._horizon[rows],
            ids=self._ids[rows],
            meta=None if self._meta is None else self._meta.iloc[rows].reset_index(drop=True),
        )

    def _pick(self, names: str | list[str]) -> Self:
        have = self._channels or ()
        for name in [names] if isinstance(names, str) else names:
            if name not in have:
                raise KeyError(unknown_name("channel", name, have))
        if isinstance(names, str):
            cells = self._cells.reshape(len(self._cells), -1)[:, have.index(names)]
            return self._replace(cells=np.ascontiguousarray(cells), channels=(names,))
        columns = [have.index(name) for name in names]
        cells = self._cells.reshape(len(self._cells), -1)[:, columns]
        return self._replace(cells=cells, channels=tuple(names))

    def with_cells(self, cells: ArrayLike, channels: Sequence[str] | None = None) -> Self:
        """Return the same runs with other values.

        Parameters
        ----------
        cells : array-like of shape (n_cells,) or (n_cells, n_channels)
            The new values, in the order of `cells`.
        channels : sequence of str, optional
            Names of the new columns.

        Returns
        -------
        TrajectoryArray
            The runs, with the same ids, horizons and meta.

        Examples
        --------
        >>> X = TrajectoryArray.from_list([[0.5, 0.6]])
        >>> X.with_cells(1 - X.cells).to_list()
        [array([0.5, 0.4])]
        """
        values = _as_float(cells)
        if len(values) != len(self._cells):
            raise ValueError(f"expected {len(self._cells)} cells, got {len(values)}")
        return self._replace(cells=values, channels=_as_channels(channels, values))

    def truncate(self, lengths: ArrayLike) -> Self:
        """Cut every run to a given number of steps; horizons stay.

        Parameters
        ----------
        lengths : array-like of int of shape (n_runs,)
            New lengths, from 1 to the present length.

        Returns
        -------
        TrajectoryArray
            The prefixes, weighted as parts of the whole runs.

        Examples
        --------
        >>> X = TrajectoryArray.from_list([[0.5, 0.6, 0.7]])
        >>> X.truncate([2]).horizon
        array([3])
        """
        new = np.asarray(lengths)
        old = self.lengths
        if new.shape != old.shape or not np.issubdtype(new.dtype, np.integer):
            raise ValueError(f"truncate needs {len(old)} whole numbers, one for each run")
        bad = (new < 1) | (new > old)
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(
                f"run {run_label(self._ids[row])} (row {row}) has {old[row]} steps and cannot be cut to "
                f"{new[row]}; give a number from 1 to {old[row]}"
            )
        kept = np.arange(len(self._cells)) - np.repeat(self._offsets[:-1], old)
        return self._replace(
            cells=self._cells[kept < np.repeat(new, old)],
            offsets=np.concatenate([[0], np.cumsum(new)]).astype(np.int64),
        )

    def prefix(self, t: int) -> Self:
        """Return the first `t` steps of every run, all of a shorter one; horizons stay.

        Parameters
        ----------
        t : int
            Number of steps, at least 1.

        Returns
        -------
        TrajectoryArray
            The prefixes.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).prefix(1).to_list()
        [array([0.5]), array([0.4])]
        """
        return self.truncate(np.minimum(self.lengths, t))

    def steps(self, t: int) -> FloatArray:
        """Return the first `t` values of the runs that are at least `t` steps long.

        Parameters
        ----------
        t : int
            Number of steps, at least 1.

        Returns
        -------
        ndarray of shape (n_alive, t) or (n_alive, t, n_channels)
            One row a run, in the order of ``np.flatnonzero(X.lengths >= t)``.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).steps(2)
        array([[0.4, 0.6]])
        """
        if t < 1:
            raise ValueError(f"steps are counted from 1, got t = {t}")
        starts = self._offsets[:-1][self.lengths >= t]
        return self._cells[starts[:, None] + np.arange(t)]

    # ---------------------------------------------------------------- other forms

    def padded(self, fill: float = np.nan) -> FloatArray:
        """Return a rectangular array, filled up behind the last step of each run.

        Parameters
        ----------
        fill : float, default=nan
            The value behind the end.

        Returns
        -------
        ndarray of shape (n_runs, T_max) or (n_runs, T_max, n_channels)
            The padded array.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).padded(fill=0)
        array([[0.5, 0. ], [0.4, 0.6]])
        """
        out = np.full(self.shape, fill, dtype=np.float64)
        out[self.mask] = self._cells
        return out

    def to_list(self) -> list[FloatArray]:
        """Return one array a run.

        Returns
        -------
        list of ndarray of shape (T_i,) or (T_i, n_channels)
            The runs.
        """
        return list(self)

    def to_frame(
        self,
        *,
        id: str = "run",  # noqa: A002 - as in from_frame
        step: str = "step",
        value: str = "value",
    ) -> pd.DataFrame:
        """Return a long table with one row a step.

        Parameters
        ----------
        id, step : str
            Names of the columns for run identifiers and step numbers (from 1).
        value : str
            Name of the value column of a container without named channels.

        Returns
        -------
        DataFrame
            Columns: id, step, then the values.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).to_frame()
           run  step  value
        0    0     1    0.5
        1    1     1    0.4
        2    1     2    0.6
        """
        lengths = self.lengths
        table = self._cells.reshape(len(self._cells), -1)
        columns = self._channels or (value,)
        frame = pd.DataFrame({name: table[:, j] for j, name in enumerate(columns)})
        frame.insert(0, step, np.arange(len(table)) - np.repeat(self._offsets[:-1], lengths) + 1)
        frame.insert(0, id, np.repeat(self._ids, lengths))
        return frame

    def save(self, path: str | Path) -> None:
        """Write to a file, ``.npz`` or ``.parquet``, without pickle.

        Parameters
        ----------
        path : str or Path
            Where to; the ending chooses the format. Parquet needs pyarrow (extra ``data``).
        """
        from trajscore._storage import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        TrajectoryArray
            The runs.
        """
        from trajscore._storage import load

        return load(cls, Path(path))


def _rebuild(cls: type[TrajectoryArray], parts: dict[str, Any]) -> TrajectoryArray:
    return cls._trusted(**parts)


def run_label(one: Any) -> str:
    """Write a run identifier as a user would: 'r7' or 7.

    Parameters
    ----------
    one : str or int
        The identifier, maybe a NumPy scalar.

    Returns
    -------
    str
        Its text.
    """
    return repr(getattr(one, "item", lambda: one)())


def unknown_name(kind: str, name: str, have: Sequence[Any]) -> str:
    """Say that a name is unknown, with the nearest one that is known.

    Parameters
    ----------
    kind : str
        What is named: channel, column.
    name : str
        The unknown name.
    have : sequence
        The known names.

    Returns
    -------
    str
        One sentence.
    """
    from difflib import get_close_matches

    known = [str(other) for other in have]
    near = get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "there are: " + (", ".join(known[:20]) or "none")
    return f"no {kind} named {name!r}; {hint}"


def _as_float(values: ArrayLike, ndims: tuple[int, ...] = (1, 2)) -> FloatArray:
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise ValueError("Complex data not supported")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"values must be real numbers: {error}") from error
    if array.ndim not in ndims:
        raise ValueError(
            f"Expected {' or '.join(f'{n}D' for n in ndims)} array, got {array.ndim}D array instead"
        )
    # what the caller can still write to is copied, so that nothing changes under our hands
    if array.flags.writeable and (array is values or array.base is not None):
        array = array.copy()
    return np.ascontiguousarray(array)


def _as_run(run: ArrayLike, row: int) -> FloatArray:
    try:
        array = np.asarray(run, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"row {row}: the values must be numbers: {error}") from error
    if array.ndim not in (1, 2):
        raise ValueError(f"row {row}: a run is a sequence of numbers, got {array.ndim} dimensions")
    return array


def _as_lengths(lengths: ArrayLike, n_cells: int) -> IntArray:
    array = np.asarray(lengths)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError("lengths must be whole numbers, one for each run")
    if (array < 1).any():
        row = int(np.argmax(array < 1))
        raise ValueError(f"row {row} has no steps; leave runs without a step out")
    if array.sum() != n_cells:
        raise ValueError(f"the lengths add up to {array.sum()}, but there are {n_cells} cells")
    return array.astype(np.int64)


def _as_horizon(horizon: ArrayLike | None, lengths: IntArray) -> IntArray:
    if horizon is None:
        return lengths.copy()
    array = np.asarray(horizon)
    if array.shape != lengths.shape or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"horizon must be {len(lengths)} whole numbers, one for each run")
    if (array < lengths).any():
        row = int(np.argmax(array < lengths))
        raise ValueError(
            f"row {row}: horizon {array[row]} is shorter than the run's {lengths[row]} steps; "
            f"give at least {lengths[row]}"
        )
    return array.astype(np.int64)


def _as_ids(ids: ArrayLike | None, n_runs: int | None = None) -> NDArray[Any]:
    if ids is None:
        return np.arange(n_runs, dtype=np.int64)
    array = np.asarray(ids, dtype=object)
    if n_runs is not None and array.shape != (n_runs,):
        raise ValueError(f"ids must hold {n_runs} identifiers, one for each run")
    if all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in array):
        return array.astype(np.int64)
    if all(isinstance(one, str) for one in array):
        return array.astype(np.str_)
    kinds = sorted({type(one).__name__ for one in array})
    raise ValueError(
        f"run identifiers must be all whole numbers or all text, got {', '.join(kinds)}; "
        f"convert them first, for example with .astype(str)"
    )


def _as_channels(channels: Sequence[str] | None, cells: FloatArray) -> tuple[str, ...] | None:
    if channels is None:
        if cells.ndim == 1:
            return None
        return tuple(f"channel{j}" for j in range(cells.shape[1]))
    names = tuple(str(name) for name in ([channels] if isinstance(channels, str) else channels))
    width = 1 if cells.ndim == 1 else cells.shape[1]
    if len(names) != width or len(set(names)) != width:
        raise ValueError(f"expected {width} different channel names, got {list(names)}")
    return names


def _as_meta(meta: pd.DataFrame | Mapping[str, Any] | None, n_runs: int) -> pd.DataFrame | None:
    if meta is None:
        return None
    frame = pd.DataFrame(dict(meta)) if isinstance(meta, Mapping) else meta.copy()
    if len(frame) != n_runs:
        raise ValueError(f"meta has {len(frame)} rows, but there are {n_runs} runs")
    return frame.reset_index(drop=True)


def _as_row_index(key: Any, n_runs: int) -> Any:
    if isinstance(key, slice):
        return key
    index = np.asarray(key)
    if index.size == 0 and index.dtype != np.bool_:
        return index.astype(np.int64)
    if index.dtype == np.bool_ and index.shape != (n_runs,):
        raise IndexError(f"a boolean index needs {n_runs} entries, got {index.shape}")
    if index.ndim != 1 or index.dtype.kind not in "biu":
        raise IndexError("index runs by whole numbers, a boolean mask or a slice")
    return index


def _distinct(names: Sequence[str]) -> list[str]:
    """Number names that occur more than once: value, value -> value0, value1."""
    if len(set(names)) == len(names):
        return list(names)
    return [
        f"{name}{names[:j].count(name)}" if names.count(name) > 1 else name
        for j, name in enumerate(names)
    ]
