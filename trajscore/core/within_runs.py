"""Steps, running and total statistics within runs, over flat cells, without a loop over runs."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from trajscore.core.values import AnyArray, BoolArray, FloatArray, IntArray, RunsLike


def offsets_of(lengths: Sequence[int] | IntArray) -> IntArray:
    """Where each run starts among the cells, and after the last one the number of cells."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    return offsets


def step_numbers(X: RunsLike) -> IntArray:
    """Step of each cell, counted from 1."""
    return np.arange(1, len(X.cells) + 1) - np.repeat(X.offsets[:-1], X.lengths)


def run_numbers(X: RunsLike) -> IntArray:
    """Row of the run of each cell."""
    return np.repeat(np.arange(len(X)), X.lengths)


def last_cells(X: RunsLike) -> IntArray:
    """Position of each run's last cell."""
    return X.offsets[1:] - 1


def end_mask(X: RunsLike, ended: BoolArray) -> BoolArray:
    """Whether each cell is the last one of a run that has ended."""
    is_end = np.zeros(len(X.cells), dtype=bool)
    is_end[last_cells(X)[ended]] = True
    return is_end


def running_sum(X: RunsLike, values: FloatArray) -> FloatArray:
    """Sum of each run's values (or rows of them) up to each step, wherever the run stands."""
    # run by run: a difference of overall sums would lose digits, and depend on row order
    sums = pd.DataFrame(values).groupby(run_numbers(X)).cumsum(skipna=False)
    return sums.to_numpy().reshape(values.shape)


def running_max(X: RunsLike, values: AnyArray) -> AnyArray:
    """Return the largest of each run's values (or rows of them) up to each step, exactly."""
    if len(X) == 1:  # pandas takes a fifth of a guard's look
        return np.maximum.accumulate(values, axis=0)
    largest = pd.DataFrame(values).groupby(run_numbers(X)).cummax()
    return largest.to_numpy().reshape(values.shape)


def whole_runs(X: RunsLike) -> BoolArray:
    """Whether each run has a step, and no missing value in any channel."""
    missing = np.isnan(X.cells).nonzero()[0]
    whole = X.lengths > 0
    whole[np.searchsorted(X.offsets, missing, side="right") - 1] = False
    return whole


def run_maxima(X: RunsLike, values: FloatArray) -> FloatArray:
    """Return the largest of each run's values; there may be no runs."""
    return np.maximum.reduceat(values, X.offsets[:-1])


def first_step_above(X: RunsLike, values: FloatArray, limit: FloatArray) -> IntArray:
    """First step, from 1, at which a value exceeds its run's limit; 0 where none does."""
    above = np.flatnonzero(values > np.repeat(limit, X.lengths))
    run, first = np.unique(run_numbers(X)[above], return_index=True)
    steps = np.zeros(len(X), dtype=np.int64)
    steps[run] = above[first] - X.offsets[run] + 1
    return steps


def cells_by_step(X: RunsLike) -> Iterator[tuple[IntArray, BoolArray]]:
    """For each step the cells of the runs that reach it, and whether they end there."""
    starts = X.offsets[:-1]
    lengths = X.lengths
    for t in range(1, int(lengths.max(initial=0)) + 1):
        ends = lengths == t
        yield starts + (t - 1), ends
        if np.count_nonzero(ends):
            starts = starts[~ends]
            lengths = lengths[~ends]
