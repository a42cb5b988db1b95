"""Axes and paths of the page's small charts; templates/charts.html.j2 draws them as SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import FloatArray


@dataclass(frozen=True)
class Axis:
    """A linear scale from numbers to pixels, with round ticks."""

    low: float
    high: float
    start: float
    end: float
    label: str = ""
    n_ticks: int = 4

    def __call__(self, values: ArrayLike) -> FloatArray:
        """Return the places of values; what lies beyond an end is put there."""
        share = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.asarray(self.start + np.clip(share, 0, 1) * (self.end - self.start))

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels of round numbers within the range."""
        for n_ticks in (self.n_ticks, 2 * self.n_ticks):  # at least three
            step = _round_step((self.high - self.low) / n_ticks)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first > 1:
                break
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        numbers = [k * step for k in range(first, last + 1)]
        return [(float(self(number)), f"{number:,.{digits}f}") for number in numbers]


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= least * (1 - 1e-9))


def axis_of(
    values: ArrayLike, start: float, end: float, *, zero: bool = False, **options: Any
) -> Axis:
    """Return an axis that holds finite values, with some room; with zero, that too."""
    numbers = np.asarray(values, dtype=np.float64).ravel()
    numbers = numbers[np.isfinite(numbers)]
    if zero or not len(numbers):
        numbers = np.append(numbers, 0.0)
    low, high = float(numbers.min()), float(numbers.max())
    room = 0.04 * (high - low) or 0.05 * max(abs(high), 1.0)
    return Axis(low - room, high + room, start, end, **options)


@dataclass
class Panel:
    """A small chart: layers of paths, each with a class of the style sheet, over two axes."""

    x: Axis
    y: Axis
    about: str  # what it shows, for those who do not see it
    title: str = ""
    width: int = 250
    height: int = 190
    layers: list[tuple[str, str]] = field(default_factory=list)
    names: list[tuple[float, str]] = field(default_factory=list)  # in place of ticks along x

    def line(self, x: ArrayLike, y: ArrayLike, style: str) -> None:
        """Join points by straight lines; nothing is drawn where a value is missing."""
        self.layers.append((_joined(self.x(x), self.y(y)), f"line {style}"))

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, style: str) -> None:
        """Fill the space between two lines."""
        across, lower, upper = self.x(x), self.y(low), self.y(high)
        real = np.isfinite(lower) & np.isfinite(upper)
        if real.sum() > 1:
            around = np.concatenate([across[real], across[real][::-1]])
            path = _joined(around, np.concatenate([lower[real], upper[real][::-1]]))
            self.layers.append((f"{path}Z", f"band {style}"))

    def bars(self, left: ArrayLike, right: ArrayLike, height: ArrayLike, style: str) -> None:
        """Draw bars from the bottom."""
        sides = zip(self.x(left), self.x(right), self.y(height), strict=True)
        bottom = self.y.start
        path = "".join(
            f"M{a:.1f} {bottom:.1f}V{top:.1f}H{b:.1f}V{bottom:.1f}Z" for a, b, top in sides
        )
        self.layers.append((path, f"bars {style}"))

    def points(self, x: ArrayLike, y: ArrayLike, style: str, radius: float = 2.6) -> None:
        """Draw dots."""
        r, two = radius, 2 * radius
        places = zip(self.x(x), self.y(y), strict=True)
        path = "".join(
            f"M{a - r:.1f} {b:.1f}a{r} {r} 0 1 0 {two} 0a{r} {r} 0 1 0 -{two} 0"
            for a, b in places
            if math.isfinite(b)
        )
        self.layers.append((path, f"dots {style}"))

    def spans(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, style: str) -> None:
        """Draw vertical intervals."""
        ends = zip(self.x(x), self.y(low), self.y(high), strict=True)
        path = "".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in ends if math.isfinite(b + c))
        self.layers.append((path, f"line {style}"))


def _joined(x: FloatArray, y: FloatArray) -> str:
    real = np.isfinite(x) & np.isfinite(y)
    points = [f"{a:.1f} {b:.1f}" for a, b in zip(x[real], y[real], strict=True)]
    return "M" + "L".join(points) if points else ""


def sparkline(values: FloatArray) -> str:
    """Return the path of a trace between 0 and 1, 120 x 26 pixels; one step is a dash."""
    if len(values) > 240:  # no finer than half pixels
        values = values[np.linspace(0, len(values) - 1, 240).astype(int)]
    if len(values) == 1:
        values = np.repeat(values, 2)
    return _joined(np.linspace(2, 118, len(values)), 23 - np.clip(values, 0, 1) * 20)
