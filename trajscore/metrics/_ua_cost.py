"""The cost of an uncertainty-augmented system at one rejection cost, or over a weight of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad_vec

from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_numbers
from trajscore.metrics._answers import answers, check_decisions, check_u_max
from trajscore.metrics._class_probabilities import check_classes
from trajscore.metrics._ties import ROUNDING
from trajscore.metrics._uncertainty import as_cost, decisions, warn_above

Weight = Callable[[FloatArray], ArrayLike] | Mapping[float, float]

# Panels in log(gamma): their width, how far below u_M they start at first, and the lowest of all
_WIDTH, _DEPTH, _LOWEST = 0.05, 35.0, float(np.log(1e-300))
# Relative error that is aimed at and that is accepted, and into how many parts panels are cut
_AIM, _LARGEST_ERROR, _MAX_PARTS = 1e-12, 1e-8, 500

# Floor of probabilities and of u from plain probabilities, as in ecuas_score
_FLOOR = 1e-7


class UACost(NamedTuple):
    """Cost of a system at a rejection cost, with what it is made of, as `ua_cost` describes."""

    cost: float | FloatArray
    selective_risk: float | FloatArray
    coverage: float | FloatArray


def ua_cost(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    gamma: ArrayLike,
    cost: ArrayLike | str | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    log_proba: bool = False,
) -> UACost:
    """Expected cost at a fixed cost of rejecting, C*_gamma; **lower is better**.

    The Bayes decision is accepted where its uncertainty is at most gamma; else gamma is paid.

    Parameters
    ----------
    y_true, y_proba : array-likes of shape (n_samples,) and (n_samples, n_classes)
        As in `ecuas_score`.
    gamma : float or array-like of shape (n_gammas,)
        Cost of rejecting, >= 0, in the units of `cost`.
    cost, labels, sample_weight, log_proba : array-likes and bool
        As in `ecuas_score`.

    Returns
    -------
    named tuple of floats or ndarrays of shape (n_gammas,)
        cost: selective_risk * coverage + gamma * (1 - coverage); lower is better.
        selective_risk: mean cost of accepted decisions; NaN where none is accepted.
        coverage: share of accepted decisions.

    Raises
    ------
    ValueError
        As `ecuas_score`, and if a gamma is negative or not finite.

    See Also
    --------
    ua_cost_from_confidence : From correctness and confidence alone.
    integrated_ua_cost : Over a weight of rejection costs.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 1 to 7.

    Examples
    --------
    >>> ua_cost([0, 1], [[0.9, 0.1], [0.6, 0.4]], gamma=0.25)
    UACost(cost=0.125, selective_risk=0.0, coverage=0.5)
    """
    P, y, weight = check_classes(y_true, y_proba, labels, sample_weight)
    log_u, paid = decisions(P, y, as_cost(cost, P.shape[1], 1e-300), log_proba)
    return _Curve(log_u, paid, weight).at(_gammas(gamma))


def ua_cost_from_confidence(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    gamma: ArrayLike,
    log_odds: bool = False,
    sample_weight: ArrayLike | None = None,
) -> UACost:
    """Expected cost of answers that are right or wrong, at a fixed cost of rejecting.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Probability that it is; the answer is accepted where 1 - confidence <= gamma.
    gamma : float or array-like of shape (n_gammas,)
        Cost of rejecting, in units of the cost of accepting a wrong answer.
    log_odds, sample_weight : bool and array-like of shape (n_samples,)
        As in `ecuas_from_confidence`.

    Returns
    -------
    named tuple of floats or ndarrays of shape (n_gammas,)
        cost, selective_risk and coverage, as those of `ua_cost`.

    Raises
    ------
    ValueError
        If a confidence or gamma is out of range, or an answer is neither right nor wrong.

    Examples
    --------
    >>> ua_cost_from_confidence([1, 0], [0.9, 0.6], gamma=[0.25, 0.5]).cost
    array([0.125, 0.5  ])
    """
    log_u, error, weight, _ = answers(
        correct, confidence, sample_weight, n_classes=np.inf, log_odds=log_odds
    )
    return _Curve(log_u, error, weight).at(_gammas(gamma))


def ua_cost_from_decisions(
    paid: ArrayLike,
    u: ArrayLike,
    *,
    gamma: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> UACost:
    """Expected cost of decisions with graded costs, at a fixed cost of rejecting.

    Parameters
    ----------
    paid, u : array-likes of shape (n_samples,)
        Cost of each decision, and its uncertainty, as in `ecuas_from_decisions`; a decision is
        accepted where u <= gamma.
    gamma : float or array-like of shape (n_gammas,)
        Cost of rejecting, >= 0, in the units of `paid`.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    named tuple of floats or ndarrays of shape (n_gammas,)
        cost, selective_risk and coverage, as those of `ua_cost`.

    Raises
    ------
    ValueError
        If a cost, an uncertainty or a gamma is negative or not finite.

    See Also
    --------
    ecuas_from_decisions : Over all costs of rejecting.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 7.

    Examples
    --------
    >>> ua_cost_from_decisions([1, 10], [1.0, 0.4], gamma=0.5)
    UACost(cost=5.25, selective_risk=10.0, coverage=0.5)
    """
    log_u, costs, weight = check_decisions(paid, u, sample_weight)
    return _Curve(log_u, costs, weight).at(_gammas(gamma))


def integrated_ua_cost_from_decisions(
    paid: ArrayLike,
    u: ArrayLike,
    *,
    u_max: float,
    weight: Weight,
    sample_weight: ArrayLike | None = None,
    breaks: Sequence[float] = (),
) -> float:
    """Expected cost of decisions with graded costs, over a weight of rejection costs.

    Parameters
    ----------
    paid, u, u_max : array-likes of shape (n_samples,) and float
        As in `ecuas_from_decisions`.
    weight : callable or dict of float to float
        As in `integrated_ua_cost`; a weight function is integrated up to `u_max`, with u floored
        at 1e-7 of it.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.
    breaks : sequence of float, default=()
        As in `integrated_ua_cost`.

    Returns
    -------
    float
        Mean cost; lower is better.

    Raises
    ------
    ValueError
        As `ecuas_from_decisions`, and as `integrated_ua_cost` for the weight.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 8.

    Examples
    --------
    >>> weight = {0.5: 0.5, 2.0: 0.5}  # half of the users pay 0.5 for a rejection, half 2
    >>> integrated_ua_cost_from_decisions([1, 10], [1.0, 0.4], weight=weight, u_max=5)
    5.375
    """
    _check_weight(weight)
    largest = check_u_max(u_max)
    log_u, costs, samples = check_decisions(paid, u, sample_weight)
    return _over_weight(weight, (log_u, costs, samples), largest, _FLOOR * largest, breaks)


def integrated_ua_cost(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    weight: Weight,
    cost: ArrayLike | str | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    log_proba: bool = False,
    breaks: Sequence[float] = (),
) -> float:
    """Expected cost over a weight of rejection costs, the integral of w(gamma) C*_gamma.

    It is a proper score for every weight >= 0; `ecuas_score` is its closed form for w_n. A weight
    function is integrated numerically, for w_n to ten digits; there u is floored, as under the
    logarithm of n = 0 in `ecuas_score`, at its default `eps` (from log-probabilities at 1e-300).
    Point masses are exact.

    Parameters
    ----------
    y_true, y_proba : array-likes of shape (n_samples,) and (n_samples, n_classes)
        As in `ecuas_score`.
    weight : callable or dict of float to float
        ``weight(gamma)`` for an array of rejection costs in (0, u_M], >= 0; or point masses
        ``{gamma: mass}``.
    cost, labels, sample_weight, log_proba : array-likes and bool
        As in `ecuas_score`.
    breaks : sequence of float, default=()
        Where the weight jumps, or peaks within less than a hundredth of gamma: such a peak may be
        missed if it is not given.

    Returns
    -------
    float
        Mean cost; lower is better.

    Raises
    ------
    ValueError
        As `ecuas_score`, and if the weight is neither function nor dict, is negative or not finite
        somewhere, or its integral does not converge.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 8 and Proposition 3.

    Examples
    --------
    >>> P = [[0.9, 0.1], [0.6, 0.4]]
    >>> round(integrated_ua_cost([0, 1], P, weight=lambda gamma: 8 * gamma**0), 6)  # n = 1
    0.74
    >>> round(integrated_ua_cost([0, 1], P, weight={0.25: 0.5, 0.45: 0.5}), 6)
    0.3125
    """
    _check_weight(weight)
    P, y, samples = check_classes(y_true, y_proba, labels, sample_weight)
    system = as_cost(cost, P.shape[1], _FLOOR)
    decided = (*decisions(P, y, system, log_proba), samples)
    floor = float(np.exp(_LOWEST)) if log_proba else system.floor
    return _over_weight(weight, decided, system.u_max, floor, breaks)


def _over_weight(
    weight: Weight,
    decided: tuple[FloatArray, FloatArray, FloatArray],
    u_max: float,
    floor: float,
    breaks: Sequence[float],
) -> float:
    """Mean cost over point masses or a function, of log-uncertainties, costs and weights."""
    log_u, paid, samples = decided
    log_max = float(np.log(u_max))
    warn_above(int((log_u > log_max + 1e-9).sum()), u_max, stacklevel=4)
    log_u = np.minimum(log_u, log_max)
    if isinstance(weight, Mapping):
        gammas = as_numbers([*weight.keys()], "gammas of the point masses")
        masses = as_numbers([*weight.values()], "weights of the point masses")
        _check_weights(masses, gammas)
        return float(masses @ _Curve(log_u, paid, samples).at(_gammas(gammas)).cost)
    return _integral(
        weight, _Curve(np.maximum(log_u, np.log(floor)), paid, samples), log_max, breaks
    )


class _Curve:
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

    def lines(self, log_gammas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a and b of C* = a + b gamma, as it is between two uncertainties."""
        accepted, spent = self._up_to(log_gammas)
        return spent / self._accepted[-1], 1 - accepted / self._accepted[-1]

    def _up_to(self, log_gammas: FloatArray) -> tuple[FloatArray, FloatArray]:
        # 1 - 0.7 is a little above 0.3: the tolerance accepts it at gamma = 0.3
        cut = np.searchsorted(self.log_u, log_gammas + ROUNDING, "right")
        return self._accepted[cut], self._spent[cut]


def _integral(
    weight: Callable[[FloatArray], ArrayLike],
    curve: _Curve,
    log_max: float,
    breaks: Sequence[float],
) -> float:
    """Integral of w(gamma) C*_gamma, from as low as it adds to the whole."""
    lowest = max(min(float(curve.log_u[0]), log_max - _DEPTH), _LOWEST)
    while True:
        whole, low = _Panels(weight, curve, _edges(lowest, log_max, breaks, curve.log_u)).integral()
        if low <= 1e-14 * whole or lowest <= _LOWEST:
            return whole
        lowest = max(lowest - _DEPTH, _LOWEST)


class _Panels:
    """The integrand over panels in log(gamma), where power laws are exponentials."""

    def __init__(
        self, weight: Callable[[FloatArray], ArrayLike], curve: _Curve, edges: FloatArray
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
        (whole, low), error, info = quad_vec(
            self._sums, 0, 1, epsrel=_AIM, limit=_MAX_PARTS, quadrature="gk15", full_output=True
        )
        # rounding in a steep weight may keep it from what is aimed at
        if not error <= _LARGEST_ERROR * whole:
            start, stop = info.intervals[np.argmax(info.errors)]
            raise ValueError(
                f"the integral of the weight does not converge near gamma = "
                f"{self._roughest(start, stop):g}; pass breaks=, the points where the weight jumps"
            )
        return float(whole), float(low)

    def _sums(self, s: float) -> FloatArray:
        values = self.at(s)
        return np.array([values.sum(), values[: self._n_low].sum()])

    def _roughest(self, start: float, stop: float) -> float:
        """Gamma of the panel whose integrand varies most between two places."""
        values = [self.at(s) for s in np.linspace(start, stop, 9)]
        panel = np.argmax(np.ptp(values, axis=0))
        return float(np.exp(self._start[panel] + start * self._width[panel]))


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


def _gammas(gamma: ArrayLike) -> FloatArray:
    gammas = as_numbers(gamma, "gamma")
    if not (gammas >= 0).all() or not np.isfinite(gammas).all():
        raise ValueError(f"gamma must be finite and >= 0, got {gamma!r}")
    return gammas


def _check_weight(weight: Weight) -> None:
    if not isinstance(weight, Mapping) and not callable(weight):
        raise ValueError(f"weight must be a function or a dict of point masses, got {weight!r}")


def _check_weights(w: FloatArray, gamma: FloatArray) -> None:
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        raise ValueError(
            f"the weight at gamma = {gamma[bad].flat[0]:g} is {w[bad].flat[0]:g}; weights are "
            f"finite and >= 0"
        )
