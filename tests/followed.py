"""Forecasts of runs that are followed live."""

import pickle

import numpy as np


def followed(forecaster, X):
    """The forecast of each cell, all runs together, step by step; each leaves as it ends."""
    state, rows, live = forecaster.begin(len(X)), np.arange(len(X)), np.empty(len(X.cells))
    for t in range(int(X.lengths.max())):
        ends, here = X.lengths[rows] == t + 1, X.offsets[rows] + t
        before = pickle.dumps(state)
        after, live[here] = forecaster.advance(state, X.cells[here], ends)
        assert pickle.dumps(state) == before  # so that a step can be taken back
        state, rows = after, rows[~ends]
    return live
