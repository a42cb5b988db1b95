"""What decisions cost at one cost of rejecting, or over a weight of such costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad_vec

from trajscore.core.ties import ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_numbers

Weight = Callable[[FloatArray], ArrayLike] | Mapping[float, float]

# Panels in log(gamma): their width, how far below u_M they start at first, and the lowest of all
_WIDTH, _DEPTH = 0.05, 35.0
LOWEST = float(np.log(1e-300))
# Relative error that is aimed at and that is accepted, and into how many parts panels are cut
_AIM, _LARGEST_ERROR, _MAX_PARTS = 1e-12, 1e-8, 500


class UACost(NamedTuple):
    """Cost at a rejection cost, with risk and coverage, as `Answers.cost` describes."""

    cost: float | FloatArray
    selective_risk: float | FloatArray
    coverage: float | FloatArray


class RejectionCurve:
    """Decisions in the order of their uncertainties: C*_gamma by a search for each gamma."""

    def __init__(self, log_u: FloatArray, paid: FloatArray, weight: FloatArray) -> None:
        order = np.argsort(log_u, kind="stable")
        self.log_u = log_u[order]
        self._accepted = np.append(0.0, np.cumsum(weight[order]))
        self._spent = np.append(0.0, np.cumsum((weight * paid)[order]))

    def at(self, gammas: FloatArray) -> UACost:
        """Return cost, selective risk and coverage at each gamma."""
        with np.errstate(divide="ignore", invalid="ignore"):
            accepted, spent = self._up_to(np.log(gammas))
            risk = np.where(accepted > 0, spent / accepted, np.nan)
        coverage = accepted / self._accepted[-1]
        cost = spent / self._accepted[-1] + gammas * (1 - coverage)
        if gammas.ndim == 0:
            return UACost(float(cost), float(risk), float(coverage))
        return UACost(cost, risk, coverage)

    def over_point_masses(self, masses: Mapping[float, float]) -> float:
        """Return the cost summed over gammas with a mass each."""
        gammas = as_numbers([*masses.keys()], "gammas of the point masses")
        weights = as_numbers([*masses.values()], "weights of the point masses")
        _check_weights(weights, gammas)
        return float(weights @ self.at(check_gammas(gammas)).cost)

    def lines(self, log_gammas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a and b of C* = a + b gamma, as it is between two uncertainties."""
        accepted, spent = self._up_to(log_gammas)
        return spent / self._accepted[-1], 1 - accepted / self._accepted[-1]

    def _up_to(self, log_gammas: FloatArray) -> tuple[FloatArray, FloatArray]:
        # 1 - 0.7 is a little above 0.3: the tolerance accepts it at gamma = 0.3
        cut = np.searchsorted(self.log_u, log_gammas + ROUNDING, "right")
        return self._accepted[cut], self._spent[cut]


def integral(
    weight: Callable[[FloatArray], ArrayLike],
    curve: RejectionCurve,
    u_max: float,
    breaks: Sequence[float],
) -> float:
    """Return the integral of w(gamma) C*_gamma, from as low as it adds to the whole."""
    log_max = float(np.log(u_max))
    lowest = max(min(float(curve.log_u[0]), log_max - _DEPTH), LOWEST)
    while True:
        whole, low = _Panels(weight, curve, _edges(lowest, log_max, breaks, curve.log_u)).integral()
        if low <= 1e-14 * whole or lowest <= LOWEST:
            return whole
        lowest = max(lowest - _DEPTH, LOWEST)


class _Panels:
    """The integrand over panels in log(gamma), where power laws are exponentials."""

    def __init__(
        self, weight: Callable[[FloatArray], ArrayLike], curve: RejectionCurve, edges: FloatArray
    ) -> None:
        self._weight = weight
        self._start, self._width = edges[:-1], np.diff(edges)
        self._a, self._b = curve.lines(self._start + self._width / 2)
        self._n_low = int(np.searchsorted(edges[:-1], edges[0] + 1))

    def at(self, s: float) -> FloatArray:
        """Return w(gamma) C*_gamma d gamma / ds at the same place 0 <= s <= 1 of every panel."""
        gamma = np.exp(self._start + s * self._width)
        w = np.broadcast_to(np.asarray(self._weight(gamma), dtype=np.float64), gamma.shape)
        _check_weights(w, gamma)
        return w * (self._a + self._b * gamma) * gamma * self._width

    def integral(self) -> tuple[float, float]:
        """Return the integral over all panels, and over those of the lowest e-fold."""

        def sums(s: float) -> FloatArray:
            values = self.at(s)
            return np.array([values.sum(), values[: self._n_low].sum()])

        (whole, low), error, info = quad_vec(
            sums, 0, 1, epsrel=_AIM, limit=_MAX_PARTS, quadrature="gk15", full_output=True
        )
        # rounding in a steep weight may keep it from what is aimed at
        if not error <= _LARGEST_ERROR * whole:
            start, stop = info.intervals[np.argmax(info.errors)]
            values = [self.at(s) for s in np.linspace(start, stop, 9)]
            roughest = np.argmax(np.ptp(values, axis=0))
            gamma = np.exp(self._start[roughest] + start * self._width[roughest])
            raise ValueError(
                f"the integral of the weight does not converge near gamma = {gamma:g}; pass "
                f"breaks=, the points where the weight jumps"
            )
        return float(whole), float(low)


def _edges(
    log_min: float, log_max: float, breaks: Sequence[float], log_u: FloatArray
) -> FloatArray:
    """Edges of panels of at most the given width, finer towards the top, at breaks and jumps."""
    even = np.linspace(log_min, log_max, int(np.ceil((log_max - log_min) / _WIDTH)) + 1)
    # weights of large n live within 1/n of the top: panels as narrow as that must be there
    top = log_max - _WIDTH * 0.5 ** np.arange(1, 30)
    places = as_numbers(breaks, "breaks").ravel()
    inner = np.log(places[places > 0]).tolist()
    edges = np.unique(np.concatenate([even, top, inner, log_u]))
    return edges[(edges >= log_min) & (edges <= log_max)]


def check_gammas(gamma: ArrayLike) -> FloatArray:
    """Refuse costs of rejecting that are negative or not finite."""
    gammas = as_numbers(gamma, "gamma")
    if not (gammas >= 0).all() or not np.isfinite(gammas).all():
        raise ValueError(f"gamma must be finite and >= 0, got {gamma!r}")
    return gammas


def _check_weights(w: FloatArray, gamma: FloatArray) -> None:
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        raise ValueError(
            f"the weight at gamma = {gamma[bad].flat[0]:g} is {w[bad].flat[0]:g}; weights are "
            f"finite and >= 0"
        )
