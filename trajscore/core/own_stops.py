"""A forecast that stopped the very runs on which it is to be judged."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.stops import FORECAST_STOPS, normalize_reasons, recorded_stops
from trajscore.core.type_aliases import BoolArray
from trajscore.core.within_runs import last_cells

# With fewer, another forecast that is much like the one that stopped the runs may look like it.
_FEWEST_RUNS = 5
_FEWEST_STEPS = 50


def refuse_own_stops(
    traces: Mapping[str, TrajectoryArray], stop_reason: ArrayLike | None = None
) -> None:
    """Refuse a predictor whose own flag explains which runs a forecast stopped.

    Which forecast stopped a run no log says, so this is told by its pattern: each run that was
    stopped ends at the first step up to some threshold, and no run goes on after such a step.
    """
    about = next(iter(traces.values())).meta  # of the runs, as everywhere
    reasons = recorded_stops(about, stop_reason)[0]
    if reasons is None:
        return
    stopped = np.isin(normalize_reasons(reasons), FORECAST_STOPS)
    for name, X in traces.items():
        threshold = own_threshold(X, stopped)
        if threshold is not None:
            raise ValueError(
                f"{f'predictor {name!r}' if name else 'the forecast'} stopped {stopped.sum()} of "
                f"these {len(X)} runs itself: each of them ends at the first step at which it is "
                f"at most {threshold:g}, and no run goes on after it. A forecast cannot be "
                f"judged on runs that it stopped, as it decides which outcomes are seen. Let runs "
                f"go on to their end, and replay all predictors on the same complete logs. If "
                f"something else stopped these runs, correct their stop reasons"
            )


def own_threshold(X: TrajectoryArray, stopped: BoolArray) -> float | None:
    """Return up to what value a trace stopped all these runs and no other one; None: it did not."""
    values, ends = X.cells.ravel(), last_cells(X)
    goes_on = np.ones(len(values), dtype=bool)
    goes_on[ends] = False  # at its own end a run can no longer be stopped
    others = values[goes_on & ~np.isnan(values)]
    if stopped.sum() < _FEWEST_RUNS or len(others) < _FEWEST_STEPS:
        return None
    highest, lowest = float(values[ends[stopped]].max()), float(others.min())
    return highest if highest < lowest else None  # never if one is missing
