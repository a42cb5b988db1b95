"""The runs of one call, checked once at the door; what is below trusts them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups, check_sample_weight, check_trajectories
from trajscore.core.ids import check_index, check_same_runs, id_order
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.type_aliases import AnyArray, FloatArray, IntArray
from trajscore.core.values import one_per_run

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
        index = np.asarray(rows)
        index = index if index.size else index.astype(np.int64)
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
