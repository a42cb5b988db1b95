"""The container that everything else reads: many runs, each with its own number of steps."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.core import convert, storage
from trajscore.core.convert import as_table, joined_parts
from trajscore.core.errors import ArgumentError
from trajscore.core.frame import runs_of_table
from trajscore.core.ragged import Ragged
from trajscore.core.stops import Rule, notes_on_stops
from trajscore.core.values import (
    ArrayLike,
    FloatArray,
    Missing,
    as_count,
    number_of,
    refuse_first,
    run_label,
)
from trajscore.core.within_runs import offsets_of, step_numbers


class TrajectoryArray(Ragged):
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
        Number of steps of each run: at least 1 or, with ``missing="allow"``, 0 where a run ended
        before its first step.
    channels : sequence of str, optional
        Names of the columns of a two-dimensional `cells`. Default: channel0, channel1, ...
    ids : array-like of shape (n_runs,), optional
        Stable identifiers, all integers or all strings. Default: 0, 1, 2, ...
    horizon : array-like of int of shape (n_runs,), optional
        The length T_i over which step weights are normalised, at least the length. Default: none
        is given, and the length is taken where one is needed.
    meta : DataFrame with n_runs rows, or mapping of column name to values, optional
        One row a run: stop reason, task, trial, tokens.
    ended : bool or array-like of bool of shape (n_runs,), default=False
        Whether each run's last step is its end: see `with_ended`.
    missing : {"raise", "allow", "ffill"}, default="raise"
        Whether NaN cells and runs without a step are an error, stand for what was not recorded, or
        NaN repeats the last value before in its run and channel (see `ffill`).

    Raises
    ------
    ValueError
        If a run is empty, a value is infinite or (unless allowed) missing, a channel's name
        occurs twice, or shapes disagree.

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

    __slots__ = ()

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # cross_val_predict joins folds with np.concatenate, FeatureUnion channels with np.hstack
        axis = kwargs.get("axis", args[1] if len(args) > 1 else 0)
        if func is np.concatenate and axis == 0:
            return self.concat(args[0])
        if func is np.hstack or (func is np.concatenate and axis in (1, -1)):
            return self.stack(args[0])
        return NotImplemented

    # ---------------------------------------------------------------- made from other forms

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

        Raises
        ------
        ValueError
            As for `TrajectoryArray`, or if the runs' numbers of channels differ; the message names
            the row.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).lengths
        array([1, 2])
        """
        return cls(**convert.parts_of_list(runs), **kwargs)

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

        Raises
        ------
        ValueError
            As for `TrajectoryArray`, or if `lengths` do not fit the array; the message names the
            row and the step.

        Examples
        --------
        >>> import numpy as np
        >>> TrajectoryArray.from_padded([[0.5, np.nan], [0.4, 0.6]]).lengths
        array([1, 2])
        """
        return cls(**convert.parts_of_padded(values, lengths), **kwargs)

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        id: str | Sequence[str],  # noqa: A002 - the name users of long tables expect
        step: str | None,
        value: str | Sequence[str],
        outcome: str | None = None,
        outcome_map: Mapping[Any, float] | str | None = None,
        horizon: str | None = None,
        meta: str | Sequence[str] = (),
        first_step: int = 1,
        missing: Missing = "raise",
        stop_reason: str | Sequence[str] | None = None,
        rule: Rule | None = None,
        **others: Any,
    ) -> Any:
        """Build from a long table with one row a step, in any row order.

        Parameters
        ----------
        df : DataFrame
            A pandas DataFrame, or what hands out Arrow data, such as a pyarrow or polars table or a
            result of DuckDB.
        id : str or list of str
            Column of run identifiers, all integers or all strings; several, such as task and
            trial, make one of all their values.
        step : str or None
            Column of step numbers: whole, without gap or repeat, from `first_step` on; or of dates
            and times, no two of a run the same. None: the order of the rows.
        value : str or list of str
            Column of values, whose name the channel keeps; a list gives several channels.
        outcome : str, optional
            Column of outcomes, the same in all rows of a run that have one; empty where not
            observed. Of a column in which 1 is a failure, give ``"not failed"``.
        outcome_map : mapping of value to outcome or str, optional
            What the words of outcomes mean: ``{"pass": 1, "fail": 0, "timeout": -1}``, or in text
            ``"pass=1,fail=0,timeout=-1"``.
        horizon : str, optional
            Column of horizons T_i, the same in all rows of a run. Default: none is given.
        meta : str or list of str, optional
            Columns that are the same in all rows of a run, kept in `meta`.
        first_step : int, default=1
            The number of each run's first step.
        missing : {"raise", "allow", "ffill"}, default="raise"
            Whether an empty value is an error, stands for one that was not recorded, or repeats
            the last value before in its run and channel: a confidence that was stated holds until
            the next one is. With "allow", a run of a single row that has neither step nor value
            has no step: it ended before its first one.
        stop_reason : str or sequence of str, optional
            Column of why runs ended, or several; it goes into `meta` as "stop_reason". Default:
            those with a usual name (stop_reason, termination, exception_type, error ...); () for
            none. With `outcome`, runs that the harness lost are left out, and those that a budget
            ended without a success are not observed; a warning counts these, and unknown reasons.
        rule : mapping of reason to kind, str or callable, optional
            What reasons mean, as in `trajscore.io.read_runs`.
        **others
            None is taken: the error says where columns of groups go.

        Returns
        -------
        X : TrajectoryArray
            The runs, in the order in which the table first names them. Those with an outcome have
            ended.
        y : ndarray of shape (n_runs,)
            Only with `outcome`: 1 success, 0 failure, -1 not observed.

        Raises
        ------
        ValueError
            If a column is unknown, a step is repeated or missing, a run has two outcomes, an
            outcome is a word that `outcome_map` does not have, or a value is not a number; the
            message names the run and the step.

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
        if others:
            raise TypeError(
                f"from_frame takes no {', '.join(others)}; name a column of groups in meta, and "
                f"give X.meta[NAME] as groups"
            )
        X, y, stops = runs_of_table(
            cls, df, id=id, step=step, value=value, outcome=outcome, outcome_map=outcome_map,
            horizon=horizon, meta=meta, first_step=first_step, missing=missing,
            stop_reason=stop_reason, rule=rule,
        )  # fmt: skip
        if stops is not None and (notes := list(notes_on_stops(stops.stop_counts, len(stops.y)))):
            warnings.warn(str(ArgumentError("; ".join(notes))), stacklevel=2)
        return X if y is None else (X, y)

    @classmethod
    def concat(cls, arrays: Sequence["TrajectoryArray"]) -> Self:
        """Put the runs of several containers after one another.

        Parameters
        ----------
        arrays : sequence of TrajectoryArray
            Containers with the same channels, or what `check_trajectories` makes one of. Columns
            of `meta` that some do not have are filled with missing values, as pandas.concat does,
            and horizons with lengths.

        Returns
        -------
        TrajectoryArray
            All runs.

        Raises
        ------
        ValueError
            If there is none, or their channels or the kinds of their ids differ.

        Examples
        --------
        >>> a = TrajectoryArray.from_list([[0.5]])
        >>> TrajectoryArray.concat([a, a]).shape
        (2, 1)
        """
        if isinstance(arrays, Ragged) or not arrays:
            raise ValueError("concat needs a list of at least one container; write concat([a, b])")
        return cls._trusted(**joined_parts([as_container(array) for array in arrays]))

    @classmethod
    def load(cls, path: str | Path, max_size: int | None = None) -> Self:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.
        max_size : int, optional
            How many bytes the file may unpack to; default: 256 MB, or 100 times its size if that
            is more.

        Returns
        -------
        TrajectoryArray
            The runs.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If `save` of this version did not write the file, or it unpacks to more than `max_size`.

        See Also
        --------
        TrajectoryArray.save : Has an example.
        """
        return storage.load(Path(path), cls, max_size)

    # ---------------------------------------------------------------- steps

    def truncate(self, lengths: ArrayLike) -> Self:
        """Cut every run to a given number of steps, and forget what came after.

        A prefix does not know how long the run was, nor that it has ended: `horizon` and `ended`
        are dropped, also of runs that keep all their steps. Ids and `meta` stay.

        Parameters
        ----------
        lengths : array-like of int of shape (n_runs,)
            New lengths, from 1 to the present length.

        Returns
        -------
        TrajectoryArray
            The prefixes.

        Raises
        ------
        ValueError
            If a length is not a whole number from 1 to the present length of the run.

        See Also
        --------
        TrajectoryArray.with_horizon, TrajectoryArray.with_ended : Give back what is known.

        Examples
        --------
        >>> X = TrajectoryArray.from_list([[0.5, 0.6, 0.7], [0.4]], ended=True)
        >>> X.truncate([2, 1]).to_list()
        [array([0.5, 0.6]), array([0.4])]
        >>> X.truncate([2, 1]).ended
        array([False, False])
        """
        new = np.asarray(lengths)
        old = self.lengths
        if new.shape != old.shape or new.dtype.kind not in "iu":
            raise ValueError(f"truncate needs {len(old)} whole numbers, one for each run")
        refuse_first(
            (new < np.minimum(old, 1)) | (new > old),
            lambda row: (
                f"run {run_label(self.ids[row])} (row {row}) has {number_of(old[row], 'step')} and "
                f"cannot be cut to {new[row]}; give a number from 1 to {old[row]}"
            ),
        )
        remains = step_numbers(self) <= np.repeat(new, old)
        return self._replace(
            cells=self.cells[remains],
            offsets=offsets_of(new),
            horizon=None,
            ended=np.zeros(len(new), dtype=bool),
        )

    def prefix(self, t: int) -> Self:
        """Return the first `t` steps of every run, all of a shorter one, as `truncate` does.

        Parameters
        ----------
        t : int
            Number of steps, at least 1.

        Returns
        -------
        TrajectoryArray
            The prefixes.

        Raises
        ------
        ValueError
            If `t` is not a whole number of at least 1.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).prefix(1).to_list()
        [array([0.5]), array([0.4])]
        """
        return self.truncate(np.minimum(self.lengths, as_count(t, "t, the number of steps,")))

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

        Raises
        ------
        ValueError
            If `t` is not a whole number of at least 1.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).steps(2)
        array([[0.4, 0.6]])
        """
        t = as_count(t, "t, the number of steps,")
        starts = self.offsets[:-1][self.lengths >= t]
        return self.cells[starts[:, None] + np.arange(t)]

    # ---------------------------------------------------------------- turned into other forms

    def padded(self, fill: float = np.nan, n_steps: int | None = None) -> FloatArray:
        """Return a rectangular array, filled up behind the last step of each run.

        Parameters
        ----------
        fill : float, default=nan
            The value behind the end.
        n_steps : int, optional
            Number of columns, at least that of the steps of the longest run, which is the default.

        Returns
        -------
        ndarray of shape (n_runs, n_steps) or (n_runs, n_steps, n_channels)
            The padded array.

        Examples
        --------
        >>> TrajectoryArray.from_list([[0.5], [0.4, 0.6]]).padded(fill=0)
        array([[0.5, 0. ], [0.4, 0.6]])
        """
        n_runs, longest, *channels = self.shape
        out = np.full((n_runs, n_steps or longest, *channels), fill, dtype=float)
        out[:, :longest][self.mask] = self.cells
        return out

    def to_list(self) -> list[FloatArray]:
        """Return one array a run, of shape (T_i,) or (T_i, n_channels)."""
        return list(self)

    def to_frame(
        self,
        *,
        id: str = "run",  # noqa: A002 - as in from_frame
        step: str = "step",
        value: str = "value",
    ) -> pd.DataFrame:
        """Return a long table with one row a step; of a run without one, a row without values.

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
        frame = pd.DataFrame(as_table(self.cells), columns=self.channels or (value,))
        frame.insert(0, step, step_numbers(self))
        rows = np.insert(np.arange(len(frame)), self.offsets[:-1][self.lengths == 0], -1)
        frame = frame.reindex(rows).reset_index(drop=True)
        frame.insert(0, id, np.repeat(self.ids, np.maximum(self.lengths, 1)))
        return frame

    def save(self, path: str | Path) -> None:
        """Write to a file, ``.npz``, without pickle.

        What `load` reads equals what was saved, `meta` with its dtypes included: numbers, booleans
        and text. The file is replaced once the new one is whole: a save that fails or is killed
        leaves the old one.

        Parameters
        ----------
        path : str or Path
            Where to; it ends in ``.npz``.

        Raises
        ------
        ValueError
            If the ending is another one, or a column of `meta` would not come back as it is; the
            message names the column.

        See Also
        --------
        TrajectoryArray.to_frame : A table, for ``.to_parquet(path)`` or ``.to_csv(path)``.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> X = TrajectoryArray.from_list([[0.5], [0.4, 0.6]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "runs.npz"
        ...     X.save(path)
        ...     TrajectoryArray.load(path) == X
        True
        """
        storage.save(self, Path(path))


def as_container(X: Any) -> TrajectoryArray:
    """Return any accepted form of trajectories as a container, without a look at its values."""
    if isinstance(X, TrajectoryArray):
        return X
    return TrajectoryArray(**convert.parts_of_any(X))
