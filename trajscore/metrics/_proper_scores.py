"""Strictly proper scores of one probability against one binary outcome; higher is better.

A score is an object with two branches: ``success(p)`` is S(p, 1), ``failure(p)`` is S(p, 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import beta as beta_function
from scipy.special import betainc, comb

from trajscore.core.type_aliases import BoolArray, FloatArray, RunsLike
from trajscore.core.values import as_numbers, is_iterable, is_number, several

CLIP = 1e-6
"""Unless another clip is asked for, forecasts are held in [CLIP, 1 - CLIP] under a logarithm."""

# up to this parameter the alternating sum of the polynomial form is exact to 1e-15
_LARGEST_POLYNOMIAL = 8


@runtime_checkable
class ScoreFamily(Protocol):
    """What an object needs to serve as ``score=``; it need not inherit from this."""

    def success(self, p: FloatArray) -> FloatArray:
        """Return S(p, 1), the reward of each forecast when its run succeeds."""
        ...

    def failure(self, p: FloatArray) -> FloatArray:
        """Return S(p, 0), the reward of each forecast when its run fails."""
        ...


@dataclass(frozen=True)
class LogScore:
    """Logarithmic score, log p_y in nats, with p clipped to [clip, 1 - clip].

    The clip is the price of a sure forecast that is wrong: log(clip), 13.8 nats for 1e-6 and 4.6
    for 1e-2. Where forecasts are saturated, it decides which of two predictors is ahead.

    Parameters
    ----------
    clip : float, default=1e-6
        Distance from 0 and 1 within which forecasts are told apart no longer.

    Raises
    ------
    ValueError
        If `clip` does not lie strictly between 0 and 1/2.

    Examples
    --------
    >>> import numpy as np
    >>> LogScore().success(np.array([0.5, 0.0])).round(3)
    array([ -0.693, -13.816])
    >>> LogScore(clip=0.01).success(np.array([0.5, 0.0])).round(3)
    array([-0.693, -4.605])
    """

    clip: float = CLIP

    def __post_init__(self) -> None:
        if not is_number(self.clip) or not 0 < self.clip < 0.5:
            raise ValueError(f"clip must lie strictly between 0 and 1/2, got {self.clip!r}")

    @property
    def name(self) -> str:
        """The name in tables, which shows a clip other than the default."""
        return "log" if self.clip == CLIP else f"log(clip={self.clip:g})"

    def success(self, p: FloatArray) -> FloatArray:
        """Return log p for an array of forecasts."""
        return np.log(np.clip(as_numbers(p, "p"), self.clip, 1 - self.clip))

    def failure(self, p: FloatArray) -> FloatArray:
        """Return log(1 - p) for an array of forecasts."""
        return np.log(np.clip(1 - as_numbers(p, "p"), self.clip, 1 - self.clip))

    def observed(self, p: FloatArray, failed: FloatArray) -> FloatArray:
        """Return log p_y, `failed` being 1.0 or 0.0, with a single logarithm a cell."""
        x = np.subtract(failed, p)
        np.abs(x, out=x)  # p where the run succeeded, 1 - p where it failed
        np.clip(x, self.clip, 1 - self.clip, out=x)
        return np.log(x, out=x)

    def clipped(self, p: FloatArray) -> BoolArray:
        """Return whether the clip changes each of an array of forecasts."""
        return (p < self.clip) | (p > 1 - self.clip)


class BrierScore:
    """Brier score, -(p - y)^2.

    Examples
    --------
    >>> import numpy as np
    >>> BrierScore().failure(np.array([0.5]))
    array([-0.25])
    """

    name = "brier"

    def success(self, p: FloatArray) -> FloatArray:
        """Return -(1 - p)^2 for an array of forecasts."""
        return -((1 - as_numbers(p, "p")) ** 2)

    def failure(self, p: FloatArray) -> FloatArray:
        """Return -p^2 for an array of forecasts."""
        return -(as_numbers(p, "p") ** 2)


class BetaScore:
    """Beta family S_{a,b}: thresholds c weighted by c^(a-1) (1-c)^(b-1).

    S(p, 1) = -B(a, b+1) (1 - I_p(a, b+1)) and S(p, 0) = -B(a+1, b) I_p(a+1, b), where I is the
    regularised incomplete beta function. (1, 1) is half the Brier score; a = b -> 0 is the log
    score. a > b weights large thresholds and punishes most what is too optimistic about runs that
    fail, as is wanted where these do harm; b > a weights small thresholds and punishes most what
    is too pessimistic about runs that succeed, and would be stopped in vain.

    Parameters
    ----------
    a, b : float
        Positive parameters.

    Raises
    ------
    ValueError
        If a or b is not positive.

    Notes
    -----
    The prose of Appendix J.3 and J.4 of Raghu et al. says a and b the other way round. It
    contradicts the largest losses in their J.2, -B(a, b+1) for a success and -B(a+1, b) for a
    failure, which are shown below and hold here.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix J;
    Buja, Stuetzle and Shen (2005), Loss functions for binary class probability estimation.

    Examples
    --------
    What the wrong certainty costs, in a run that succeeds and in one that fails:

    >>> import numpy as np
    >>> for a, b in [(2, 4), (4, 2)]:
    ...     score = BetaScore(a, b)
    ...     print(score.success(np.array([0.0])).round(4), score.failure(np.array([1.0])).round(4))
    [-0.0333] [-0.0167]
    [-0.0167] [-0.0333]
    """

    def __init__(self, a: float, b: float) -> None:
        if not all(is_number(one) and 0 < one < inf for one in (a, b)):
            raise ValueError(
                f"the beta family needs a > 0 and b > 0, got ({a}, {b}); for the limit a = b = 0 "
                f"use score='log'"
            )
        self.a, self.b = a, b
        self.name = f"beta({a:g},{b:g})"

    def success(self, p: FloatArray) -> FloatArray:
        """Return -integral from p to 1 of c^(a-1) (1-c)^b dc for an array of forecasts."""
        return -_lower_integral(1 - as_numbers(p, "p"), self.b + 1, self.a)

    def failure(self, p: FloatArray) -> FloatArray:
        """Return -integral from 0 to p of c^a (1-c)^(b-1) dc for an array of forecasts."""
        return -_lower_integral(as_numbers(p, "p"), self.a + 1, self.b)


class CustomScore:
    """A score given as an object, whose answers are checked for their shape."""

    def __init__(self, family: ScoreFamily) -> None:
        self.family = family
        self.name = str(getattr(family, "name", type(family).__name__))

    def success(self, p: FloatArray) -> FloatArray:
        return self._checked("success", p)

    def failure(self, p: FloatArray) -> FloatArray:
        return self._checked("failure", p)

    def _checked(self, branch: str, p: FloatArray) -> FloatArray:
        scores = np.asarray(getattr(self.family, branch)(p), dtype=np.float64)
        if scores.ndim and scores.shape != p.shape:
            raise ValueError(
                f"score {self.name}: {branch}(p) returned shape {scores.shape} for forecasts of "
                f"shape {p.shape}; return one number for each forecast"
            )
        return scores if scores.ndim else np.full(p.shape, scores)


def _lower_integral(x: FloatArray, m: float, n: float) -> FloatArray:
    """Integral from 0 to x of c^(m-1) (1-c)^(n-1) dc."""
    if m == int(m) and n == int(n) and max(m, n) <= _LARGEST_POLYNOMIAL:
        return _integral_polynomial(x, int(m), int(n))
    return np.asarray(beta_function(m, n) * betainc(m, n, x))


def _integral_polynomial(x: FloatArray, m: int, n: int) -> FloatArray:
    # (1-c)^(n-1) expanded and integrated term by term, summed by Horner's rule
    out = np.zeros_like(x)
    for k in range(n - 1, -1, -1):
        out *= x
        out += (-1) ** k * comb(n - 1, k, exact=True) / (m + k)
    return out * x**m


def get_family(score: Any) -> Any:
    """Return the score family that a name, a tuple or an object stands for; a new one goes here.

    >>> get_family(("beta", 2, 4)).name, get_family(("log", 1e-3)).name
    ('beta(2,4)', 'log(clip=0.001)')
    """
    if isinstance(score, str) and score == "log":
        return LogScore()
    if isinstance(score, str) and score == "brier":
        return BrierScore()
    if is_tuple_family(score):
        return (LogScore if score[0] == "log" else BetaScore)(*map(float, score[1:]))
    if isinstance(score, (LogScore, BrierScore, BetaScore, CustomScore)):
        return score
    if isinstance(score, ScoreFamily) and not isinstance(score, (str, type)):
        return CustomScore(score)
    raise ValueError(
        f"unknown score {score!r}; use 'log', ('log', clip), 'brier', ('beta', a, b), or an object "
        f"with the methods success(p) and failure(p)"
    )


def is_tuple_family(score: Any) -> bool:
    """Whether this is one family with its numbers, such as ("beta", 2, 4), not several families."""
    if not isinstance(score, (tuple, list)) or not score or not isinstance(score[0], str):
        return False
    n_numbers = sum(isinstance(one, (int, float, np.number)) for one in score)
    return (score[0], len(score) - 1, n_numbers) in {("log", 1, 1), ("beta", 2, 2)}


def several_families(scores: Any) -> tuple[Any, ...]:
    """Return what stands for score families, of which one may be given alone, each once."""
    alone = isinstance(scores, str) or hasattr(scores, "success") or is_tuple_family(scores)
    chosen = (scores,) if alone or not is_iterable(scores) else scores
    return tuple(several(chosen, family_name, "scores"))


def family_name(score: Any) -> str:
    """Return the name under which a score family is reported."""
    family = get_family(score)
    return str(getattr(family, "name", type(family).__name__))


def count_clipped(X: RunsLike, score: Any) -> int:
    """Number of forecasts that the score's clip changes; 0 for a family without one."""
    clipped = getattr(get_family(score), "clipped", None)
    return 0 if clipped is None else int(np.count_nonzero(clipped(X.cells)))
