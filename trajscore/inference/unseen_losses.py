"""How far a mean may lie beyond what runs show, because of outcomes that did not happen yet.

Given its forecasts, a run's score takes one of two known values, one for each outcome. Where all
runs with the most to lose ended well, neither their variance nor a bootstrap knows of the loss, but
the number of runs bounds how often it happens.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.inference.rate_intervals import clopper_pearson_excess
from trajscore.inference.units import Units

# Runs of one size of loss that suffered it; with more their variance is known well enough.
_FEW = 3


def unseen_reach(
    change: FloatArray, units: Units, alpha: float, half_width: float = 0.0
) -> tuple[float, float]:
    """Return how far below and above its estimate a mean may lie, at level 1 - alpha.

    `change` is what each run would add to the mean, had it ended the other way. Zero where it is
    known without sorting that both lie within `half_width`.
    """
    largest = np.abs(change).max(initial=0.0)
    if units.codes is not None:
        largest = np.bincount(units.codes, np.abs(change)).max()
    # no loss is larger, and of 0 to _FEW losses Poisson's bound exceeds those of _FEW the most
    if (float(gammaincinv(_FEW + 1, 1 - alpha)) - _FEW) * largest < half_width:
        return 0.0, 0.0
    return _reach(-change, units.codes, alpha), _reach(change, units.codes, alpha)


def with_unseen(
    low: FloatArray,
    high: FloatArray,
    mean: FloatArray,
    changes: Iterable[FloatArray],
    units: Units,
    confidence_level: float,
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of means that hold losses not seen yet, by the `change` of each."""
    widths = np.minimum(mean - low, high - mean)
    reaches = [
        unseen_reach(change, units, 1 - confidence_level, width)
        for change, width in zip(changes, widths, strict=True)
    ]
    below, above = np.array(reaches).T
    return np.minimum(low, mean - below), np.maximum(high, mean + above)


def _reach(loss: FloatArray, codes: IntArray | None, alpha: float) -> float:
    """Bound the losses that were not seen; a run that has suffered its own has `loss` below 0.

    Of runs in the order of their losses, as long as none has suffered its own, and of blocks of
    equal losses with up to three that have: the Clopper-Pearson excess of their share.
    """
    order = np.argsort(-np.abs(loss), kind="stable")
    loss, unit = loss[order], None if codes is None else codes[order]
    size, bad = np.abs(loss), loss < 0
    if not len(size) or size[0] == 0:
        return 0.0
    starts = np.flatnonzero(np.append(True, size[1:] < size[:-1] * (1 - SUM_ROUNDING)))
    ends = np.append(starts[1:], len(size)) - 1
    block = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(size))))
    first_bad = int(block[np.argmax(bad)]) if bad.any() else len(starts)
    n_before = ends + 1 if unit is None else np.cumsum(_is_first(unit))[ends]
    of_all = clopper_pearson_excess(0, n_before[:first_bad], 1 - alpha)
    prefix = of_all * np.cumsum(size)[ends[:first_bad]]
    n, n_bad = (_n_units(unit, block, some, len(starts)) for some in (slice(None), bad))
    few = n_bad <= _FEW
    excess = clopper_pearson_excess(n_bad[few], (n - n_bad)[few], 1 - alpha)
    alone = excess * np.bincount(block, size)[few]
    return float(max(prefix.max(initial=0.0), alone.max(initial=0.0)))


def _n_units(unit: IntArray | None, block: IntArray, some: Any, n_blocks: int) -> FloatArray:
    """Count the units in each block, of some of its runs; without units, the runs."""
    blocks = block[some]
    if unit is not None:
        blocks = blocks[_is_first(blocks * (unit.max() + 1) + unit[some]) > 0]
    return np.bincount(blocks, minlength=n_blocks).astype(np.float64)


def _is_first(values: IntArray) -> FloatArray:
    """Whether each value is the first of its kind."""
    first = np.zeros(len(values))
    first[np.unique(values, return_index=True)[1]] = 1.0
    return first
