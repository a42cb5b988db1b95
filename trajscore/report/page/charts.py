"""Pictures of the page, in percent of their frame so that text never scales."""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trajscore.core.values import ArrayLike, FloatArray

# Labels are placed on a frame as narrow as on a phone, where they are closest together.
_WIDTH = 300.0
_CHARACTER = 6.9
_ROW = 18.0
_DOT = 7.0
_RADII = (15.0, 24.0, 36.0, 50.0, 70.0)
_ANGLES = 16
_BEYOND = (8.0, 0.0)  # how far a text may stand out, to the right and below


@dataclass(frozen=True)
class Axis:
    """A linear scale from numbers to percent of a frame, with round ticks."""

    low: float = 0.0
    high: float = 1.0
    n_ticks: int = 4
    style: str = ".0%"  # of the ticks

    def __call__(self, values: ArrayLike) -> FloatArray:
        """Return the places of values; what lies beyond an end is put there."""
        share = (np.asarray(values, dtype=float) - self.low) / (self.high - self.low)
        return np.asarray(100 * np.clip(share, 0, 1))

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels of round numbers within the range."""
        step = round_step((self.high - self.low) / self.n_ticks)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        numbers = [k * step + 0.0 for k in range(first, last + 1)]
        digits = next(n for n in range(12) if abs(round(step, n) - step) < 1e-9 * step)
        style = self.style or f"+.{digits}f"
        return [
            (float(self(number)), "0" if number == 0 and "+" in style else f"{number:{style}}")
            for number in numbers
        ]


def round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5, 5 times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(k * power for k in (1, 2, 2.5, 5, 10) if k * power >= least * (1 - 1e-9))


def axis_of(values: ArrayLike, n_ticks: int = 4) -> Axis:
    """Return an axis of signed numbers that holds finite values and zero, with some room."""
    numbers = np.asarray(values, dtype=float).ravel()
    numbers = np.append(numbers[np.isfinite(numbers)], 0.0)
    low = float(numbers.min())
    high = float(numbers.max())
    room = 0.06 * (high - low) or 0.05
    return Axis(low - room, high + room, n_ticks, "")


class Label(NamedTuple):
    """A text near a point: percent of the frame, and pixels from there to its middle."""

    point: list[float]
    way: list[float]
    text: str
    style: str
    leader: tuple[float, float] | None  # angle and length of a line to a text that lies apart


def _leader(way: FloatArray, half: FloatArray) -> tuple[float, float] | None:
    """Return the angle and length of a line from a point to a text of this half size, if any."""
    inside = float((half / np.maximum(np.abs(way), 1e-9)).min())
    length = math.hypot(*way) * (1 - min(inside, 1.0)) - _DOT
    if length < _DOT:
        return None
    across, down = way
    return math.degrees(math.atan2(down, across)), length


@dataclass
class Plot:
    """Lines, bands, dots and whiskers over two axes, and labels where there is room."""

    x: Axis
    y: Axis
    about: str  # what it shows, for those who do not see it
    height: int = 180
    width: float = _WIDTH  # of the narrowest frame, in pixels
    paths: list[tuple[str, str]] = field(default_factory=list)
    dots: list[tuple[float, float, str]] = field(default_factory=list)
    whiskers: list[tuple[float, float, float, str]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    # the middle and half the size of what stands somewhere, in pixels
    _taken: list[FloatArray] = field(default_factory=list)

    def line(self, x: ArrayLike, y: ArrayLike, style: str) -> None:
        """Join points by straight lines."""
        points = self._places(x, y)
        self.paths.append((path(*points.T), f"line {style}"))
        self._take_line(points)

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, style: str) -> None:
        """Fill the space between two lines."""
        around = np.concatenate([self._places(x, low), self._places(x, high)[::-1]])
        self.paths.append((f"{path(*around.T)}Z", f"band {style}"))

    def points(self, x: ArrayLike, y: ArrayLike, style: str) -> None:
        """Draw dots."""
        for place in self._places(x, y):
            self.dots.append((*place.tolist(), style))
            self._take(place, _DOT)

    def spans(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, style: str) -> None:
        """Draw vertical intervals."""
        for lowest, highest in zip(self._places(x, low), self._places(x, high), strict=True):
            self.whiskers.append((*lowest.tolist(), float(highest[1]), style))
            self._take_line(np.array([lowest, highest]))

    def note(self, x: ArrayLike, y: ArrayLike, text: str, style: str) -> None:
        """Put a text near one of some points, where it hides nothing; else where it hides least."""
        half = np.array([_CHARACTER * len(text) / 2 + 3, _ROW / 2 + 1])
        points = self._places(x, y)
        angle = 2 * np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
        around = np.column_stack([np.cos(angle), np.sin(angle)])
        # by radius and angle; middles of the text by radius, point and angle
        ways = around * (np.array(_RADII)[:, None, None] + half)
        middles = (points * self._frame / 100)[:, None] + ways[:, None]
        is_out = (middles < half) | (middles + half > self._frame + _BEYOND)
        others, sizes = np.array(self._taken).swapaxes(0, 1)
        hides = (np.abs(middles[..., None, :] - others) < half + sizes).all(axis=-1)
        cost = hides.sum(axis=-1) + 1000 * is_out.any(axis=-1)
        radius, point, k = np.unravel_index(np.argmin(cost), cost.shape)
        way = ways[radius, k]
        leader = _leader(way, half)
        self.labels.append(Label(points[point].tolist(), way.tolist(), text, style, leader))
        self._taken.append(np.array([middles[radius, point, k], half]))

    @property
    def _frame(self) -> FloatArray:
        """Width and height in pixels."""
        return np.array([self.width, self.height])

    def _places(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Return how far across and down points are, in percent of the frame."""
        return np.column_stack([np.ravel(self.x(x)), 100 - np.ravel(self.y(y))])

    def _take(self, place: FloatArray, half: float) -> None:
        self._taken.append(np.array([place * self._frame / 100, [half, half]]))

    def _take_line(self, points: FloatArray) -> None:
        """Note the places along a line."""
        for start, end in pairwise(points):
            length = math.hypot(*(end - start) * self._frame / 100)
            for place in np.linspace(start, end, max(2, int(length / 8))):
                self._take(place, 1.5)


def path(x: ArrayLike, y: ArrayLike) -> str:
    """Return the path through points in percent; at most 240 of them."""
    points = np.column_stack([x, y])
    if len(points) > 240:
        points = points[np.linspace(0, len(points) - 1, 240).astype(int)]
    return "M" + "L".join(f"{a:.2f} {b:.2f}" for a, b in points)
