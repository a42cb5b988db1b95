"""What a fleet monitor bets on: ranks of values on a grid, and outcomes in bins of forecasts."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from trajscore.core.type_aliases import FloatArray, IntArray

# A bet on a p-value u is 1 + tilt (u - 1/2), one on an outcome shifts the log odds of its success
# rate. Each is made down, not at all, and up.
_SIGNS = np.array([-1.0, 0.0, 1.0])
_TILT, _SHIFT = 1.5, 0.45
GRID = 512  # cells of the values whose ranks are counted
_LONGEST_LOGIT = 8.0


def bets_on_ranks(u: FloatArray) -> FloatArray:
    """Bets on ranks of values among all so far, a row each."""
    return np.asarray(1 + _TILT * _SIGNS * (u[:, None] - 0.5))


def bets_on_outcomes(splits: FloatArray) -> FloatArray:
    """Bets on success, levels and slopes by bin: on p-values above splits, and below.

    `splits` are success rates: p-values of failures lie above, of successes below.
    """
    again = np.concatenate([splits, splits[1:]])[:, :, None]
    n_bins = splits.shape[1]
    stretch = np.ones_like(again)
    # a slope shifts low bins down and high ones up, as far in the mean square as a level
    stretch[len(splits) :, :, 0] = np.sqrt(3) * ((2 * np.arange(n_bins) + 1) / n_bins - 1)
    shifted = expit(logit(again) + _SHIFT * stretch * _SIGNS)
    return np.stack([(1 - shifted) / (1 - again), shifted / again])


def cells_of(lengths: IntArray, forecasts: FloatArray) -> list[IntArray]:
    """Cells of each run's length and forecasts, on grids that do not depend on any run.

    A run without a forecast has only that of its length.
    """
    octave = 32  # each length up to here has its own
    beyond = octave * (np.log2(np.maximum(lengths, 1) / octave) + 1)
    of_length = np.where(lengths <= octave, lengths, beyond)
    with np.errstate(divide="ignore"):
        logits = np.clip(logit(forecasts), -_LONGEST_LOGIT, _LONGEST_LOGIT)
    places = (logits / _LONGEST_LOGIT + 1) / 2 * (GRID - 1)
    cells = np.minimum(np.column_stack([of_length, np.nan_to_num(places)]), GRID - 1)
    n_cells = np.where(np.isnan(forecasts).any(axis=1), 1, cells.shape[1]).tolist()
    return [row[:n] for row, n in zip(cells.astype(np.int64), n_cells, strict=True)]
