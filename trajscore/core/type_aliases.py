"""The types of `values`, by the name of the module in which they were."""

from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    ByName,
    FloatArray,
    FloatPair,
    IntArray,
    Missing,
    RunsLike,
)

__all__ = [
    "AnyArray",
    "ArrayLike",
    "BoolArray",
    "ByName",
    "FloatArray",
    "FloatPair",
    "IntArray",
    "Missing",
    "RunsLike",
]
