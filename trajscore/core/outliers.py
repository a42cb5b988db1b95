"""Values far outside all others: errors of a record, which must not decide for the others."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from trajscore.core.ties import ROUNDING
from trajscore.core.type_aliases import BoolArray, FloatArray
from trajscore.core.values import outside_unit

# An outlier lies so many times as far from the median as any ordinary value. One of 100 lognormal
# values (sigma 1) does in 1 of 1,000 samples; one of 200 normal ones would double their deviation.
_FACTOR = 10.0
_VALUES_PER_OUTLIER = 20  # where more lie outside, they are a mode of the signal


class OrdinaryRange(NamedTuple):
    """Smallest and largest ordinary value of a signal, and the limits beyond which outliers lie."""

    low: Any = -np.inf  # numbers, or arrays of shape (n_channels,)
    high: Any = np.inf
    least: Any = -np.inf
    most: Any = np.inf

    @classmethod
    def of(cls, values: FloatArray) -> Self:
        """Return the range of a signal, or of each of several channels; NaN is left out.

        Probabilities have no outliers, nor have fewer than 20 values, or what does not vary.

        >>> OrdinaryRange.of(np.append(np.arange(40.0), 1e9))
        OrdinaryRange(low=0.0, high=39.0, least=-180.0, most=220.0)
        """
        if values.ndim > 1:
            return cls(*np.array([cls.of(channel) for channel in values.T]).T)
        values = values[~np.isnan(values)]
        if not len(values):
            return cls(np.nan, np.nan)
        ends = values.min(), values.max()
        n_outliers = len(values) // _VALUES_PER_OUTLIER  # at most
        if not n_outliers or not outside_unit(np.array(ends)).any():
            return cls(*ends)
        ascending = np.sort(values)
        middle = float(ascending[len(ascending) // 2])
        with np.errstate(over="ignore"):
            distance = np.abs(ascending - middle)
        farthest = np.sort(distance)[-n_outliers - 1 :]  # the first is of an ordinary value
        varies = farthest > ROUNDING * max(abs(middle), 1.0)
        is_last = varies[:-1] & (farthest[1:] / _FACTOR > farthest[:-1])
        last = int(np.argmax(np.append(is_last, True)))
        if not varies[last]:
            return cls(*ends)
        reach = float(farthest[last])
        low, high = ascending[distance <= reach][[0, -1]].tolist()
        return cls(low, high, middle - _FACTOR * reach, middle + _FACTOR * reach)

    @property
    def may_be_percent(self) -> bool:
        """Whether the ordinary values may be shares of a scale that ends at up to 100."""
        return bool(self.low >= 0 and outside_unit(self.high) and self.high <= 100)

    def is_outlier(self, values: FloatArray) -> BoolArray:
        """Tell which values lie far outside all others."""
        return np.asarray((values < self.least) | (values > self.most))

    def nearest(self, values: FloatArray) -> FloatArray:
        """Return values, outliers as the nearest ordinary one."""
        outlier = self.is_outlier(values)
        if not outlier.any():
            return values
        return np.where(outlier, np.clip(values, self.low, self.high), values)
