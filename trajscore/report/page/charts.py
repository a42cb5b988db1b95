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

    x: float
    y: float
    dx: float
    dy: float
    text: str
    style: str
    leader: tuple[float, float] | None  # angle and length of a line to a text that lies apart


def _leader(dx: float, dy: float, wide: float, high: float) -> tuple[float, float] | None:
    """Return the angle and length of a line from a point to a text of this half size, if any."""
    inside = min(wide / max(abs(dx), 1e-9), high / max(abs(dy), 1e-9))
    length = math.hypot(dx, dy) * (1 - min(inside, 1.0)) - _DOT
    if length < _DOT:
        return None
    return math.degrees(math.atan2(dy, dx)), length


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
    _taken: list[tuple[float, float, float, float]] = field(default_factory=list)

    def line(self, x: ArrayLike, y: ArrayLike, style: str) -> None:
        """Join points by straight lines."""
        across = self.x(x)
        up = 100 - self.y(y)
        self.paths.append((path(across, up), f"line {style}"))
        self._take_line(across, up)

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, style: str) -> None:
        """Fill the space between two lines."""
        across = self.x(x)
        around = path(
            np.concatenate([across, across[::-1]]),
            100 - np.concatenate([self.y(low), self.y(high)[::-1]]),
        )
        self.paths.append((f"{around}Z", f"band {style}"))

    def points(self, x: ArrayLike, y: ArrayLike, style: str) -> None:
        """Draw dots."""
        for a, b in zip(self.x(x), 100 - self.y(y), strict=True):
            self.dots.append((float(a), float(b), style))
            self._take(a, b, _DOT, _DOT)

    def spans(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, style: str) -> None:
        """Draw vertical intervals."""
        for a, b, c in zip(self.x(x), 100 - self.y(low), 100 - self.y(high), strict=True):
            self.whiskers.append((float(a), float(b), float(c), style))
            self._take_line(np.array([a, a]), np.array([b, c]))

    def note(self, x: ArrayLike, y: ArrayLike, text: str, style: str) -> None:
        """Put a text near one of some points, where it hides nothing; else where it hides least."""
        wide = _CHARACTER * len(text) / 2 + 3
        high = _ROW / 2 + 1
        across = np.atleast_1d(self.x(x))
        down = 100 - np.atleast_1d(self.y(y))
        angle = 2 * np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
        radius, point, angle = (
            part.ravel()
            for part in np.meshgrid(_RADII, np.arange(len(across)), angle, indexing="ij")
        )
        dx = np.cos(angle) * (radius + wide)
        dy = np.sin(angle) * (radius + high)
        left = across[point] * self.width / 100 + dx
        top = down[point] * self.height / 100 + dy
        out = (
            (left < wide)
            | (left + wide > self.width + 8)
            | (top < high)
            | (top + high > self.height)
        )
        a, b, c, d = np.array(self._taken).T[:, :, None]
        hides = (a < left + wide) & (c > left - wide) & (b < top + high) & (d > top - high)
        k = int(np.argmin(hides.sum(axis=0) + 1000 * out))
        place = float(across[point[k]]), float(down[point[k]])
        way = float(dx[k]), float(dy[k])
        self.labels.append(Label(*place, *way, text, style, _leader(*way, wide, high)))
        self._taken.append((left[k] - wide, top[k] - high, left[k] + wide, top[k] + high))

    def _take(self, across: float, down: float, wide: float, high: float) -> None:
        a = across * self.width / 100
        b = down * self.height / 100
        self._taken.append((a - wide, b - high, a + wide, b + high))

    def _take_line(self, across: FloatArray, down: FloatArray) -> None:
        """Note the places along a line."""
        for start, end in pairwise(np.column_stack([across, down])):
            way = end - start
            length = math.hypot(*way * (self.width, self.height) / 100)
            for share in np.linspace(0, 1, max(2, int(length / 8))):
                a, b = start + share * way
                self._take(a, b, 1.5, 1.5)


def path(x: ArrayLike, y: ArrayLike) -> str:
    """Return the path through points in percent; at most 240 of them."""
    across = np.asarray(x, dtype=float)
    down = np.asarray(y, dtype=float)
    if len(across) > 240:
        pick = np.linspace(0, len(across) - 1, 240).astype(int)
        across = across[pick]
        down = down[pick]
    points = [f"{a:.2f} {b:.2f}" for a, b in zip(across, down, strict=True)]
    return "M" + "L".join(points)
