"""The door: all that is given of some runs is checked here, once; what is below trusts it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray, as_container
from trajscore.core.convert import as_row_index
from trajscore.core.errors import ArgumentError
from trajscore.core.ids import check_index, check_same_runs, id_order
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.ties import OrdinaryRange
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    are_probabilities,
    as_array,
    check_amounts,
    one_per_run,
    outside_unit,
    refuse_first,
    run_label,
    to_unit,
    unknown_name,
)


def check_trajectories(
    X: Any,
    *,
    probabilities: bool | None = False,
    single_channel: bool = False,
    allow_missing: bool = False,
    allow_empty: bool = False,
) -> TrajectoryArray:
    """Return any accepted form of trajectories as a TrajectoryArray.

    Parameters
    ----------
    X : TrajectoryArray, array-like of shape (n_runs, T_max[, n_channels]) or list of runs
        In a plain array or DataFrame, one row is a run and trailing NaN is padding; masked
        values are missing. A Series or an array of lists is taken as a list of runs.
    probabilities : bool or None, default=False
        Whether all values must lie in [0, 1]; those outside by rounding become 0 or 1. None: they
        are taken for probabilities if all of them do.
    single_channel : bool, default=False
        Whether there must be one value a step.
    allow_missing : bool, default=False
        Whether values may be missing (NaN) in a TrajectoryArray made with ``missing="allow"``.
    allow_empty : bool, default=False
        Whether it may have runs without a step.

    Returns
    -------
    TrajectoryArray
        The runs; cells of a single channel are one-dimensional.

    Raises
    ------
    ValueError
        If a value is missing, infinite or outside [0, 1] where it must not be, or a run is
        empty; the message names the run, the step and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> check_trajectories([[0.9, 0.8], [0.4, np.nan]])
    <TrajectoryArray: 2 runs of 1 to 2 steps>
    """
    traces = as_container(X)
    refuse_first(
        (traces.lengths == 0) & (not allow_empty),
        lambda row: (
            f"run {run_label(traces.ids[row])} (row {row}) has no step; leave such runs out: give "
            f"the rows X.lengths > 0, of X and of all that is given of runs"
        ),
    )
    if single_channel and traces.n_channels > 1:
        raise ValueError(
            f"expected one value a step, got {traces.n_channels} channels "
            f"({', '.join(traces.channels or ())}); pick one with X['name']"
        )
    if traces.n_channels == 1 and traces.cells.ndim == 2:  # one channel has one form
        traces = traces.with_cells(traces.cells[:, 0])
    return check_values(traces, probabilities, allow_missing)


def check_traces(traces: Any, n_runs: int | None = None) -> TrajectoryArray:
    """Return forecasts, one probability a step, of `n_runs` runs unless it is None."""
    X = check_trajectories(traces, probabilities=True, single_channel=True)
    if n_runs not in (None, len(X)):
        raise ValueError(f"there are {len(X)} traces for {n_runs} runs")
    return X


def check_values(
    traces: TrajectoryArray,
    probabilities: bool | None,
    allow_missing: bool = False,
    remedy: str = "",
) -> TrajectoryArray:
    """Return traces; probabilities that rounding alone puts outside [0, 1] as 0 or 1.

    Refuse values that are missing, or no probabilities where they must be. `probabilities` is None
    where the values tell whether they are. `remedy` is what else helps where a value is missing.
    """
    if not allow_missing and np.isnan(traces.cells).any():
        _refuse_missing(traces, remedy)
    if probabilities is False or traces.is_within_unit():
        return traces
    cells = traces.cells
    outside = outside_unit(cells)
    if probabilities and outside.any():
        percent = "divide percentages by 100, or " * OrdinaryRange.of(cells.ravel()).may_be_percent
        raise ValueError(
            f"{_first(traces, outside)}: forecast {cells[outside][0]:g} lies outside [0, 1]; "
            f"{percent}turn the signal into probabilities first, for example with "
            f'PlattCrossFitCalibrator(link="identity")'
        )
    if probabilities or are_probabilities(cells):
        return traces.with_cells(to_unit(cells))
    return traces


def _refuse_missing(traces: TrajectoryArray, remedy: str) -> NoReturn:
    missing = np.isnan(traces.cells.reshape(-1, traces.n_channels))
    empty = missing.all(axis=0)
    if traces.channels and empty.any():
        recorded = [traces.channels[k] for k in np.flatnonzero(~empty)]
        advice = f"leave it out: X[{recorded!r}]"
        if not recorded:
            advice = "give signals that were recorded"
        problem = f"channel {traces.channels[int(np.argmax(empty))]!r} has no value at any step"
    else:
        advice = (
            "fill it in, for example with X.ffill(), or drop the run where there is none before"
        )
        problem = f"{_first(traces, missing)}: the value is missing"
        if missing[traces.offsets[:-1]].any(axis=1).all():
            forecaster = "forecast with calibration.CombinedForecaster(), which reads gaps, too"
            problem += "; no run has one at its first step"
            raise ValueError(f"{problem}; {remedy or forecaster}")
    if remedy:
        advice += f"; or {remedy}"
    raise ValueError(f"{problem}; {advice}")


def _first(traces: TrajectoryArray, bad: AnyArray) -> str:
    flat = bad.reshape(len(bad), -1)
    cell = int(np.argmax(flat.any(axis=1)))
    place = traces.place(cell)
    if traces.n_channels > 1 and traces.channels:
        place += f", channel {traces.channels[int(np.argmax(flat[cell]))]!r}"
    return place


def check_groups(groups: Any, n_runs: int, name: str = "groups") -> IntArray:
    """Return the group of each run as a code from 0, in the order of the sorted labels.

    >>> check_groups(["task 7", "task 2", "task 7"], 3)
    array([1, 0, 1])
    """
    labels = check_labels(groups, n_runs, name)
    return pd.factorize(labels, sort=True)[0]


def check_labels(groups: Any, n_runs: int, name: str = "groups") -> AnyArray:
    """Return the label of the group of each run; none is missing, and all are of one kind."""
    labels = as_array(groups, name)
    if labels.dtype.kind in "US":  # a list of text and None must not become all text
        labels = np.asarray(groups, dtype=object)
    if labels.shape != (n_runs,):
        raise ValueError(
            f"{name} must be {n_runs} labels, one for each run, got shape {labels.shape}; of a "
            f"table with a row for each step, keep the column by from_frame(..., meta=[NAME]), and "
            f"give X.meta[NAME]"
        )
    missing = pd.isna(labels)
    refuse_first(
        missing,
        lambda row: (
            f"row {row}: {name} is missing ({missing.sum()} of {n_runs} "
            f"runs have none); give such runs a label of their own, or leave them out"
        ),
    )
    if pd.api.types.infer_dtype(labels).startswith("mixed"):
        raise ValueError(f"{name} mixes labels of several kinds; convert them with .astype(str)")
    return labels


def group_labels(by: Any, X: TrajectoryArray) -> dict[str, AnyArray]:
    """Return each run's label for each grouping in `by`: a column of meta, or labels."""
    if isinstance(by, str):
        by = {by: by}
    elif by is not None and not isinstance(by, Mapping):
        by = {"group": by}
    labels_by_kind = {}
    for name, source in (by or {}).items():
        labels = source
        if isinstance(source, str):
            if source not in X.meta:
                problem = unknown_name("column", source, list(X.meta))
                raise ArgumentError(
                    f"{{argument}}: {problem}. Keep the column in the meta of X, as by "
                    f"TrajectoryArray.from_frame(..., meta=[{source!r}]), or give the labels "
                    f"themselves, one for each run",
                    "by",
                )
            labels = X.meta[source]
        array = np.asarray(labels, dtype=object)
        cells = pd.Series(array.ravel())  # which writes days without their hours
        texts = cells.astype(str).where(cells.notna(), "(none)").to_numpy(dtype=object)
        labels_by_kind[str(name)] = check_labels(
            texts.reshape(array.shape), len(X), f"by: {name!r}"
        )
        check_index(source, X.ids, "by")
    return labels_by_kind


def check_sample_weight(sample_weight: Any, n_runs: int) -> FloatArray:
    """Return one finite weight a run, none negative, not all zero; None stands for ones."""
    if sample_weight is None:
        return np.ones(n_runs)
    weights = one_per_run(sample_weight, "sample_weight", n_runs)
    check_amounts(weights, "sample_weight")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"the sample weights add up to {total:g}; it must be finite, above zero")
    return weights


_UNGIVEN = object()  # None is no outcomes, and refused


@dataclass(frozen=True)
class Sample:
    """Runs with all that is known of them, row for row; None for what was not given."""

    traces: dict[str, TrajectoryArray]  # a container for each predictor, of the same runs
    y: Any  # checked outcomes, or None
    weight: FloatArray  # how often each run counts
    groups: IntArray | None = None  # code of the cluster of each run
    q_z: FloatArray | None = None  # chance that each run, if unobserved, would have succeeded

    @property
    def X(self) -> TrajectoryArray:  # noqa: N802 - as everywhere
        """The first container, of several or alone."""
        return next(iter(self.traces.values()))

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: ArrayLike) -> Self:
        """Return some of the runs, in the order given; `rows` are positions, or a mask."""
        index = as_row_index(rows, len(self))
        of_runs = {
            name: values[index]
            for name in ("y", "weight", "groups", "q_z")
            if (values := getattr(self, name)) is not None
        }
        traces = {name: trace[index] for name, trace in self.traces.items()}
        return replace(self, traces=traces, **of_runs)

    def id_order(self) -> IntArray:
        """Return the rows in the order of the ids, on which the order of rows has no influence."""
        return id_order(self.X.ids)

    def in_id_order(self) -> Self:
        """Return the same runs in the order of their ids."""
        return self.take(self.id_order())


def check_sample(
    X: Any,
    y: Any = _UNGIVEN,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    q_z: ArrayLike | None = None,
    allow_censored: bool = True,
    allow_soft: bool = True,
    several: bool = False,
    reserved: Iterable[str] = (),
    **traces: Any,
) -> Sample:
    """Check everything that is given of some runs, once; a message names predictor and row.

    `X` is any form of trajectories; with `several` each channel, or item of a dict, is a predictor,
    none of which has a `reserved` name; flags are those of `check_outcomes` and (``**traces``) of
    `check_trajectories`. Runs with an observed outcome have ended.
    """
    if isinstance(X, Mapping) and not several:
        names = ", ".join(map(repr, X)) or "none"
        raise ValueError(
            f"expected the traces of one predictor, got a dict of predictors ({names}); give the "
            f"traces of one of them"
        )
    containers = _predictors(X, several, **traces)
    if not containers:
        raise ValueError("there is no predictor; give at least one trace for each run")
    for name in reserved:
        if name in containers:
            raise ValueError(f"{name!r} is the name of another row; rename the predictor")
    (first_name, first), *others = containers.items()
    for name, trace in others:
        check_same_runs(first, trace, f"predictor {first_name!r}", f"predictor {name!r}")
    n_runs = len(first)
    of_runs = {"groups": groups, "sample_weight": sample_weight, "q_z": q_z}
    for name, values in of_runs.items():
        check_index(values, first.ids, name)
    outcomes = None
    if y is not _UNGIVEN:
        outcomes = check_outcomes(y, first, allow_censored=allow_censored, allow_soft=allow_soft)
        containers = {
            name: ended_where_known(container, outcomes) for name, container in containers.items()
        }
    return Sample(
        traces=containers,
        y=outcomes,
        weight=check_sample_weight(sample_weight, n_runs),
        groups=None if groups is None else check_groups(groups, n_runs),
        q_z=None if q_z is None else one_per_run(q_z, "q_z", n_runs),
    )


def _predictors(
    X: Any, several: bool, probabilities: bool | None = None, **traces: Any
) -> dict[str, TrajectoryArray]:
    """Check predictors by name: items of a dict, the channels of a container, or it alone."""
    checked: dict[str, TrajectoryArray] = {}
    alone = "forecast" * several
    predictors = X
    if not isinstance(X, Mapping):
        predictors = {alone: X}
        if several and isinstance(X, TrajectoryArray) and X.channels:
            predictors = {channel: X[channel] for channel in X.channels}
    for key, trace in predictors.items():
        name = str(key)
        try:
            checked[name] = check_trajectories(trace, probabilities=probabilities, **traces)
        except ValueError as error:
            if name == alone:
                raise
            raise ValueError(f"predictor {name!r}: {error}") from error
    return checked


def ended_where_known(X: Any, y: AnyArray) -> Any:
    """Say of runs with an observed outcome that they have ended; only a container can hold it."""
    if isinstance(X, TrajectoryArray):
        return X.with_ended(X.ended | (y != CENSORED))
    return X


def check_forecasts(
    y: ArrayLike, traces: Any, *, allow_censored: bool = False, **of_runs: Any
) -> Sample:
    """Check outcomes and forecasts of success, one a step: the door of the scores."""
    return check_sample(
        traces,
        y,
        allow_censored=allow_censored,
        probabilities=True,
        single_channel=True,
        **of_runs,
    )


def check_predictors(
    X: Any, y: ArrayLike | None, *, reserved: Iterable[str], **of_runs: Any
) -> Sample:
    """Check outcomes and each predictor, forecasts or signals: the door of evaluations and gates.

    Values may be missing, and runs without a step; none has a `reserved` name.
    """
    return check_sample(
        X,
        y,
        several=True,
        reserved=reserved,
        single_channel=True,
        allow_missing=True,
        allow_empty=True,
        **of_runs,
    )
