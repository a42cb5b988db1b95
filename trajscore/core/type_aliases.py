"""Names of the types that signatures share."""

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
FloatPair = tuple[FloatArray, FloatArray]
"""Two arrays, such as the ends of intervals, or the weights of failures and of successes."""

ByName = dict[str, Any]
"""Anything by name: arguments, fields of JSON, what a template shows."""

Missing = Literal["raise", "allow", "ffill"]
"""Missing values are an error, were not recorded, or repeat the last one recorded in their run."""


class RunsLike(Protocol):
    """What is read of a container by the modules below it; `ragged.Ragged` is one."""

    def __len__(self) -> int: ...
    @property
    def lengths(self) -> IntArray: ...

    cells: FloatArray
    offsets: IntArray
    ids: AnyArray
