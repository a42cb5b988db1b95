"""Runs of different lengths in flat arrays: their views, slices, cuts and joins."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn, Self, get_args

import numpy as np
import pandas as pd

from trajscore.core.convert import (
    as_channels,
    as_ended,
    as_meta,
    as_row_index,
    as_table,
    stacked_parts,
    width,
)
from trajscore.core.ids import as_ids, check_same_runs
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    ByName,
    FloatArray,
    IntArray,
    Missing,
    as_float,
    as_horizon,
    as_lengths,
    check_choice,
    number_of,
    refuse_first,
    run_label,
    unknown_name,
)
from trajscore.core.within_runs import offsets_of, run_numbers

_FIELDS = {
    "cells": "All values, run after run; read-only.",
    "offsets": "Where each run starts in `cells`, and after the last one the number of cells.",
    "horizon": "Length over which step weights of each run are normalised; None: not given.",
    "ids": "Identifier of each run.",
    "channels": "Channel names, or None for a container of one unnamed number a step.",
    "ended": "Whether the last step of each run is known to be its last; read-only.",
}


class Ragged:
    """Immutable runs in flat arrays; `TrajectoryArray` is one, and says what the parameters are.

    Everything here follows from ``run(i) = cells[offsets[i] : offsets[i + 1]]``.
    """

    __slots__ = {"_meta": None, **_FIELDS}
    __hash__ = None  # type: ignore[assignment]

    _meta: pd.DataFrame | None
    cells: FloatArray
    channels: tuple[str, ...] | None
    ended: BoolArray
    horizon: IntArray | None
    ids: AnyArray
    offsets: IntArray

    def __init__(
        self,
        cells: ArrayLike,
        lengths: ArrayLike | None = None,
        *,
        channels: Sequence[str] | None = None,
        ids: ArrayLike | None = None,
        horizon: ArrayLike | None = None,
        meta: pd.DataFrame | Mapping[str, Any] | None = None,
        ended: ArrayLike = False,
        missing: Missing = "raise",
    ) -> None:
        check_choice(missing, "missing", get_args(Missing))
        if lengths is None:
            raise ValueError(
                f"{type(self).__name__} needs the cells of all runs and their lengths; of runs, "
                f"make it with .from_list, .from_padded or .from_frame"
            )
        values = as_float(cells)
        run_lengths = as_lengths(lengths, len(values), least=int(missing != "allow"))
        n_runs = len(run_lengths)
        self._set(
            cells=values,
            offsets=offsets_of(run_lengths),
            horizon=None if horizon is None else as_horizon(horizon, run_lengths),
            ids=as_ids(ids, n_runs),
            channels=as_channels(channels, values),
            meta=as_meta(meta, n_runs),
            ended=as_ended(ended, n_runs),
        )
        self._check_values(missing)
        if missing == "ffill":
            self._set(**self.ffill()._parts())

    def _set(self, meta: pd.DataFrame | None, **parts: Any) -> None:
        for name, part in (parts | {"_meta": meta}).items():
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
            object.__setattr__(self, name, part)

    @classmethod
    def _trusted(cls, **parts: Any) -> Self:
        """Build from parts that are known to be valid, without a second look at the cells."""
        new = object.__new__(cls)
        new._set(**parts)
        return new

    def _parts(self) -> ByName:
        return {"meta": self._meta, **{name: getattr(self, name) for name in _FIELDS}}

    def _replace(self, **changed: Any) -> Self:
        return self._trusted(**(self._parts() | changed))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        kind = type(self).__name__
        raise AttributeError(f"a {kind} is immutable; build a new one to change {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be deleted")

    __getstate__ = _parts

    def __setstate__(self, parts: ByName) -> None:
        self._set(**parts)

    def _check_values(self, missing: Missing) -> None:
        bad = np.isinf(self.cells)
        remedy = "leave it empty (NaN), or drop the run"
        if missing == "raise" and not bad.any():
            bad = np.isnan(self.cells)
            remedy = (
                "drop the run, or pass missing='ffill' to fill it with the run's last value, "
                "'allow' to keep it as not recorded"
            )
        refuse_first(
            as_table(bad).any(axis=1),
            lambda cell: (
                f"{self.place(cell)}: the value is "
                f"{str(self.cells[bad][0]).replace('nan', 'NaN')}, not a finite number; {remedy}"
            ),
        )

    def is_within_unit(self) -> bool:
        """Tell whether all values may be probabilities; a missing one is none."""
        return bool(((self.cells >= 0) & (self.cells <= 1)).all())

    def place(self, cell: int, with_row: bool = True) -> str:
        """Name the run and step of a flat cell for messages, like "run 'r7' (row 7), step 2"."""
        row = int(np.searchsorted(self.offsets, cell, side="right")) - 1
        step = cell - int(self.offsets[row]) + 1
        where = f" (row {row})" * with_row
        return f"run {run_label(self.ids[row])}{where}, step {step}"

    # ---------------------------------------------------------------- views

    @property
    def lengths(self) -> IntArray:
        """Number of steps of each run; read-only."""
        return _read_only(np.diff(self.offsets))

    @property
    def n_channels(self) -> int:
        """Number of values a step."""
        return width(self.cells)

    @property
    def meta(self) -> pd.DataFrame:
        """One row a run: stop reason, task, trial and the like (a copy)."""
        if self._meta is None:
            return pd.DataFrame(index=pd.RangeIndex(len(self)))
        return self._meta.copy()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the padded array this container stands for."""
        return (len(self), int(self.lengths.max(initial=0)), *self.cells.shape[1:])

    @property
    def ndim(self) -> int:
        """Number of axes of the padded array this container stands for."""
        return 1 + self.cells.ndim

    @property
    def mask(self) -> BoolArray:
        """Which cells of the padded array exist, of shape (n_runs, T_max); read-only."""
        return _read_only(np.arange(self.shape[1]) < self.lengths[:, None])

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[FloatArray]:
        return (self.cells[a:b] for a, b in pairwise(self.offsets))

    def __repr__(self) -> str:
        text = f"{type(self).__name__}: {number_of(len(self), 'run')} of "
        longest = self.shape[1]
        if (self.lengths < longest).any():
            text += f"{self.lengths.min()} to "
        text += number_of(longest, "step")
        if self.channels:
            text += f", channels {', '.join(self.channels)}"
        return f"<{text}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ragged):
            return False
        return (
            self.meta.equals(other.meta)
            and self.channels == other.channels
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.horizon, other.horizon)  # type: ignore[arg-type]  # or None
            and np.array_equal(self.ended, other.ended)
            # as lists: the oldest numpy does not compare an array of numbers with one of names
            and self.ids.tolist() == other.ids.tolist()
            and np.array_equal(self.cells, other.cells, equal_nan=True)
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} holds runs of different lengths and does not become an "
            f"array by itself. An estimator of scikit-learn needs one row for each run: use "
            f"PrefixForecaster(estimator=...) in its place. A transformer of it takes X.cells: "
            f"X.with_cells(...) puts the result back. Otherwise call .padded() for a NaN-padded "
            f"array, or resample runs with [rows]; leave scikit-learn's set_output at its default"
        )

    # ---------------------------------------------------------------- runs and channels

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and key[1:] == (Ellipsis,):  # as scikit-learn asks for rows
            key = key[0]
        are_names = isinstance(key, list) and key and all(isinstance(name, str) for name in key)
        if isinstance(key, str) or are_names:
            return self._pick(key)
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise IndexError(
                    f"run {key} does not exist; the container has {number_of(len(self), 'run')}"
                )
            row = int(key) % len(self)
            return self.cells[self.offsets[row] : self.offsets[row + 1]]
        everyone = np.arange(len(self))
        rows = everyone[as_row_index(key, len(self))]
        if np.array_equal(rows, everyone):
            return self
        lengths = self.lengths[rows]
        offsets = offsets_of(lengths)
        cells = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return self._replace(
            cells=self.cells[cells],
            offsets=offsets,
            horizon=None if self.horizon is None else self.horizon[rows],
            ids=self.ids[rows],
            ended=self.ended[rows],
            meta=None if self._meta is None else self._meta.iloc[rows].reset_index(drop=True),
        )

    def _pick(self, key: str | list[str]) -> Self:
        names = [key] if isinstance(key, str) else key
        channels = self.channels or ()
        for name in names:
            if name not in channels:
                raise KeyError(unknown_name("channel", name, channels))
        cells = as_table(self.cells)[:, [channels.index(name) for name in names]]
        new_channels = as_channels(names, cells)
        if isinstance(key, str):
            cells = cells[:, 0]
        return self._replace(cells=cells, channels=new_channels)

    def with_cells(self, cells: ArrayLike, channels: Sequence[str] | None = None) -> Self:
        """Return the same runs, with their ids, horizons and meta, and other values.

        Parameters
        ----------
        cells : array-like of shape (n_cells,) or (n_cells, n_channels)
            The new values, in the order of `cells`.
        channels : sequence of str, optional
            Names of the new columns. Default: those of the old ones, if there are as many.

        Returns
        -------
        TrajectoryArray
            The runs.

        Raises
        ------
        ValueError
            If there is another number of cells, one is infinite, or a channel's name occurs twice.

        Examples
        --------
        >>> from trajscore import TrajectoryArray
        >>> X = TrajectoryArray.from_list([[0.5, 0.6]])
        >>> X.with_cells(1 - X.cells).to_list()
        [array([0.5, 0.4])]
        """
        values = as_float(cells)
        if len(values) != len(self.cells):
            raise ValueError(f"expected {len(self.cells)} cells, got {len(values)}")
        if channels is None and width(values) == self.n_channels:
            channels = self.channels
        changed = self._replace(cells=values, channels=as_channels(channels, values))
        changed._check_values("allow")
        return changed

    def with_ended(self, ended: ArrayLike = True) -> Self:
        """Return the same runs, of which these have ended.

        That a run has ended is known only where it is said: a run that is under way, or was stopped
        by a budget, looks the same.

        Parameters
        ----------
        ended : bool or array-like of bool of shape (n_runs,), default=True
            Whether each run has ended.

        Returns
        -------
        TrajectoryArray
            The runs.

        Raises
        ------
        ValueError
            If there is not one truth value for each run.

        Examples
        --------
        >>> from trajscore import TrajectoryArray
        >>> X = TrajectoryArray.from_list([[0.5, 0.6], [0.4]])
        >>> X.ended, X.with_ended([True, False]).ended
        (array([False, False]), array([ True, False]))
        """
        return self._replace(ended=as_ended(ended, len(self)))

    def with_horizon(self, horizon: ArrayLike | None) -> Self:
        """Return the same runs with these horizons.

        Prefixes have none. Give it back where the horizon was fixed before the runs began, or where
        prefixes shall weigh what they do in the whole runs.

        Parameters
        ----------
        horizon : array-like of int of shape (n_runs,) or None
            Length over which step weights of each run are normalised, at least its own. None: not
            given.

        Returns
        -------
        TrajectoryArray
            The runs.

        Raises
        ------
        ValueError
            If there is not one whole number for each run, or one is less than the run's length.

        Examples
        --------
        >>> from trajscore import TrajectoryArray
        >>> X = TrajectoryArray.from_list([[0.5, 0.6], [0.4]])
        >>> X.prefix(1).with_horizon(X.lengths).horizon
        array([2, 1])
        """
        if horizon is not None:
            horizon = as_horizon(horizon, self.lengths)
        return self._replace(horizon=horizon)

    def ffill(self) -> Self:
        """Fill missing values with the last one recorded before, in the same run and channel.

        A confidence that was stated holds until the next one is stated. Values before a run's first
        stay missing.

        Returns
        -------
        TrajectoryArray
            The runs.

        Examples
        --------
        >>> from trajscore import TrajectoryArray
        >>> runs = [[0.9, np.nan, 0.8], [np.nan, 0.4]]
        >>> TrajectoryArray.from_list(runs, missing="allow").ffill().to_list()
        [array([0.9, 0.9, 0.8]), array([nan, 0.4])]
        """
        filled = pd.DataFrame(self.cells).groupby(run_numbers(self)).ffill()
        return self._replace(cells=filled.to_numpy().reshape(self.cells.shape))

    # ---------------------------------------------------------------- joins

    @classmethod
    def stack(cls, arrays: Sequence[Self], channels: Sequence[str] | None = None) -> Self:
        """Put the channels of several containers of the same runs side by side.

        Parameters
        ----------
        arrays : sequence of TrajectoryArray
            Containers of the same runs, in the same order; horizons must agree where given.
        channels : sequence of str, optional
            New names. Default: the containers' own, numbered where two are alike.

        Returns
        -------
        TrajectoryArray
            The runs with all channels; ids and meta are those of the first container. A run has
            ended, and has a horizon, if one of the containers says so.

        Raises
        ------
        ValueError
            If runs, lengths or horizons differ; the message names the row.

        Examples
        --------
        >>> from trajscore import TrajectoryArray
        >>> a = TrajectoryArray.from_list([[0.5, 0.6]])
        >>> TrajectoryArray.stack([a, a], channels=["judge", "verbal"]).shape
        (1, 2, 2)
        """
        arrays = list(arrays)
        if not arrays:
            raise ValueError(f"stack needs at least one {cls.__name__}")
        for k, array in enumerate(arrays[1:], start=1):
            check_same_runs(arrays[0], array, "container 0", f"container {k}")
        return arrays[0]._replace(**stacked_parts(arrays, channels))


def _read_only(array: AnyArray) -> AnyArray:
    array.flags.writeable = False  # writing to a copy would be lost without a word
    return array
