"""Strictly proper scores of one probability against one binary outcome; higher is better.

A new family is a subclass of `ScoreFamily`, named in `FAMILIES`: everything that takes ``score=``,
tables and the command line have it then. What else it touches says docs/built.rst.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import beta, betainc

from trajscore.core.values import FloatArray, as_within, either, is_iterable, is_number, several

CLIP = 1e-6
"""Default clip: forecasts are held in [CLIP, 1 - CLIP] under a logarithm."""

USUAL_SCORES: tuple[Any, ...] = ("log", "brier", ("beta", 4, 2))
"""The scores that are shown where none is named."""

# up to this parameter the alternating sum of the polynomial form is exact to 1e-15
_LARGEST_POLYNOMIAL = 8


@dataclass(frozen=True)
class ScoreFamily:
    """Base of the score families; parameters are numbers, fields of the dataclass.

    A constant added to a score changes no comparison, so scores are 0 at best by convention.
    """

    keyword = ""  # score="log", --family log
    unit = ""
    digits = 3  # that tables show
    clip: ClassVar[float | None] = None  # forecasts are held this far from 0 and 1, if they are

    @property
    def emphasis(self) -> str:
        """What the score weighs, for the notes of a report; "" for none."""
        return ""

    @property
    def name(self) -> str:
        """The name in tables."""
        numbers = ",".join(f"{getattr(self, field.name):g}" for field in fields(self))
        return f"{self.keyword}({numbers})".removesuffix("()")

    def success(self, p: FloatArray) -> FloatArray:
        """Return S(p, 1), the reward of each forecast when its run succeeds."""
        raise NotImplementedError

    def failure(self, p: FloatArray) -> FloatArray:
        """Return S(p, 0), the reward of each forecast when its run fails."""
        raise NotImplementedError

    def perfect(self, y: FloatArray) -> FloatArray:
        """Return the score of who knows the outcome of each run, or of shares y that succeed."""
        return y * self.success(np.ones(1)) + (1 - y) * self.failure(np.zeros(1))

    def observed(self, p: FloatArray, failed: FloatArray) -> FloatArray:
        """Return S(p, y) of as many outcomes as forecasts: 1.0 where the run failed, else 0.0."""
        return np.where(failed == 0, self.success(p), self.failure(p))


@dataclass(frozen=True)
class LogScore(ScoreFamily):
    """Logarithmic score, log p_y in nats, with p clipped to [clip, 1 - clip]."""

    keyword = "log"
    unit = "nats"
    clip: float = CLIP  # type: ignore[misc]

    def __post_init__(self) -> None:
        as_within(self.clip, "clip", 0, 0.5)

    @property
    def name(self) -> str:
        """The name in tables, which shows a clip other than the default."""
        return "log" if self.clip == CLIP else f"log(clip={self.clip:g})"

    def success(self, p: FloatArray) -> FloatArray:
        return np.log(np.clip(p, self.clip, 1 - self.clip))

    def failure(self, p: FloatArray) -> FloatArray:
        return self.success(1 - p)

    def observed(self, p: FloatArray, failed: FloatArray) -> FloatArray:
        # one logarithm instead of two, in the memory of one array
        x = np.subtract(failed, p)
        np.abs(x, out=x)  # p where the run succeeded, 1 - p where it failed
        np.clip(x, self.clip, 1 - self.clip, out=x)
        return np.log(x, out=x)


@dataclass(frozen=True)
class BrierScore(ScoreFamily):
    """Brier score, -(p - y)^2."""

    keyword = "brier"

    def success(self, p: FloatArray) -> FloatArray:
        return -((1 - p) ** 2)

    def failure(self, p: FloatArray) -> FloatArray:
        return -(p**2)


@dataclass(frozen=True)
class BetaScore(ScoreFamily):
    """Beta family S_{a,b}: thresholds c weighted by c^(a-1) (1-c)^(b-1).

    S(p, 1) = -B(a, b+1) (1 - I_p(a, b+1)) and S(p, 0) = -B(a+1, b) I_p(a+1, b), where I is the
    regularised incomplete beta function: Appendix J.2 of Raghu et al. (2026), whose J.3 and J.4 say
    a and b the other way round.
    """

    keyword = "beta"
    digits = 5  # its scores are small
    a: float
    b: float

    def __post_init__(self) -> None:
        if not all(is_number(value) and 0 < value < inf for value in (self.a, self.b)):
            raise ValueError(
                f"the beta family needs a > 0 and b > 0, got ({self.a}, {self.b}); for the limit "
                f"a = b = 0 use 'log'"
            )

    @property
    def emphasis(self) -> str:
        if self.a == self.b:
            return "weighs thresholds around one half, misses of either kind alike"
        if self.a > self.b:
            return "weighs high thresholds: it punishes overconfidence in runs that fail"
        return "weighs low thresholds: it punishes pessimism about runs that succeed"

    def success(self, p: FloatArray) -> FloatArray:
        # from p to 1 in c, which is from 0 to 1 - p in 1 - c
        return -_lower_integral(1 - p, self.b + 1, self.a)

    def failure(self, p: FloatArray) -> FloatArray:
        return -_lower_integral(p, self.a + 1, self.b)


@dataclass(frozen=True)
class CustomScore(ScoreFamily):
    """A score that a user gives as an object; the shapes that it returns are checked."""

    wrapped: Any

    def _identity(self) -> tuple[Any, ...]:
        """What a copy of the object shares with it, such as batches make."""
        p = np.linspace(0.1, 0.9, 9)
        return self.name, *self.success(p), *self.failure(p)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomScore) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    @property
    def name(self) -> str:
        """Its own name, or that of its class."""
        return str(getattr(self.wrapped, "name", type(self.wrapped).__name__))

    def success(self, p: FloatArray) -> FloatArray:
        return self._checked("success", p)

    def failure(self, p: FloatArray) -> FloatArray:
        return self._checked("failure", p)

    def _checked(self, branch: str, p: FloatArray) -> FloatArray:
        scores = np.asarray(getattr(self.wrapped, branch)(p), dtype=float)
        if not scores.ndim:
            return np.full(p.shape, scores)
        if scores.shape != p.shape:
            raise ValueError(
                f"score {self.name}: {branch}(p) returned shape {scores.shape} for forecasts of "
                f"shape {p.shape}; return one number for each forecast"
            )
        return scores


FAMILIES: tuple[type[ScoreFamily], ...] = (LogScore, BrierScore, BetaScore)


def _lower_integral(x: FloatArray, m: float, n: float) -> FloatArray:
    """Integral from 0 to x of c^(m-1) (1-c)^(n-1) dc."""
    if m != int(m) or n != int(n) or max(m, n) > _LARGEST_POLYNOMIAL:
        return beta(m, n) * betainc(m, n, x)
    powers = Polynomial([0, 1]) ** (int(m) - 1) * Polynomial([1, -1]) ** (int(n) - 1)
    return powers.integ()(x)


def get_family(score: Any) -> ScoreFamily:
    """Return the score family that a name ("beta(4, 2)"), a tuple or an object stands for."""
    if isinstance(score, ScoreFamily):
        return score
    if not isinstance(score, type) and hasattr(score, "success") and hasattr(score, "failure"):
        return CustomScore(score)
    keyword, *numbers = _words(score) or [""]
    with suppress(KeyError, TypeError):  # of another keyword, or number of parameters
        return {family.keyword: family for family in FAMILIES}[keyword](*map(float, numbers))
    # a search calls its scoring= with the estimator
    uncalled = "; in a search, call it: scoring=make_tps_scorer()" if hasattr(score, "fit") else ""
    raise ValueError(
        f"unknown score {score!r}; use {usage()}, a tuple such as ('beta', 4, 2), or an object "
        f"with the methods success(p) and failure(p){uncalled}"
    )


def usage() -> str:
    """Name the families, with their parameters."""
    forms = []
    for family in FAMILIES:
        names = ",".join(field.name for field in fields(family))
        forms += [family.keyword] * all(field.default is not MISSING for field in fields(family))
        forms += [f"{family.keyword}({names})"] * bool(names)
    return either(forms)


def _words(score: Any) -> Sequence[Any]:
    """Split "beta(4, 2)", "log(clip=0.01)" or a tuple into the keyword and its numbers."""
    if isinstance(score, (tuple, list)):
        return score if all(map(is_number, score[1:])) else []
    parts = re.fullmatch(r"\s*([a-z_]+)\s*(?:\((.*)\))?\s*", str(score).lower())
    if parts is None:
        return []
    numbers = [part.rpartition("=")[2].strip() for part in (parts[2] or "").split(",") if part]
    are_numbers = all(re.fullmatch(r"[-+.\de]+", number) for number in numbers)
    return [parts[1], *numbers] if are_numbers else []


def several_families(scores: Any, argument: str = "scores") -> tuple[Any, ...]:
    """Return what stands for score families, of which one may be given alone, each once."""
    # ("beta", 2, 4) is one family with its numbers
    alone = isinstance(scores, str) or hasattr(scores, "success") or len(_words(scores)) > 1
    chosen: Sequence[Any] = (scores,) if alone or not is_iterable(scores) else scores
    return tuple(several(chosen, family_name, argument))


def family_name(score: Any) -> str:
    """Return the name under which a score family is reported."""
    return get_family(score).name


def digits_of(metric: str) -> int:
    """How many digits a metric is written with; the name of a score holds that of its family."""
    words = re.findall(r"[a-z_]+", metric)
    return next((family.digits for family in FAMILIES if family.keyword in words), 3)
