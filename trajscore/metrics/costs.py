"""What decisions cost, how uncertain they are, and what rejecting the uncertain ones costs.

A cost is one small class: `decide` takes the Bayes decision for each row of probabilities, and
returns the logarithm of its uncertainty u (its expected cost) and what it costs given the class;
`decide_log` does so from log-probabilities. `u_max` is the largest uncertainty, and `floor` the
smallest that is taken for plain probabilities under the logarithm of ECUAS_0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad_vec
from scipy.optimize import linprog
from scipy.special import logsumexp, xlogy
from sklearn.utils import gen_batches

from trajscore.core.ties import ROUNDING
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    FloatArray,
    FloatPair,
    IntArray,
    as_numbers,
    as_within,
    refuse_first,
    undefined_is_nan,
)
from trajscore.metrics._answer_checks import check_distributions, row_slices

# Costs computed at a time: what is between their parts stays in a core's cache.
_IN_CACHE = 1 << 13
# Floor of the uncertainty under the logarithm of ECUAS_0, as in `ecuas_score`.
LEAST_UNCERTAINTY = 1e-7


class Scale(NamedTuple):
    """Largest uncertainty, and floor of it, of decisions whose costs are known alone."""

    u_max: float
    floor: float


class ZeroOneCost(Scale):
    """Choosing a class costs 1 where it is wrong: u = 1 - max p."""

    def decide(self, P: AnyArray, y: IntArray, log: bool) -> FloatPair:
        """Return log u and cost of each row's Bayes decision; `log`: of log-probabilities."""
        chosen = P.argmax(axis=1)
        wrong = (chosen != y).astype(float)
        if log:
            return log_of_others(P, chosen), wrong
        return np.log(np.maximum(1 - P.max(axis=1).astype(float), 0)), wrong


class LogCost(Scale):
    """Stating the distribution itself costs -log p_y: u is its entropy."""

    def decide(self, P: AnyArray, y: IntArray, log: bool) -> FloatPair:
        """Return log u and cost of each row's Bayes decision; `log`: of log-probabilities."""
        rows = np.arange(len(P))
        if log:
            return _log_entropy(P.astype(float)), -P[rows, y].astype(float)
        floored = np.maximum(P, self.floor, dtype=float)
        entropy = np.maximum(-xlogy(P, floored).sum(axis=1), 0)
        return np.log(entropy), -np.log(floored[rows, y])


@dataclass
class MatrixCost:
    """Each decision costs what its column of a matrix says: u = min over decisions of P @ C."""

    cost: FloatArray
    eps: float

    @cached_property
    def u_max(self) -> float:
        """Return the largest uncertainty."""
        return largest_uncertainty(self.cost)

    @property
    def floor(self) -> float:
        """Return the smallest uncertainty that is taken under a logarithm."""
        # the same share of u_max as for the 0-1 cost: whatever the unit of costs, and far below
        # u_max also where one cost is much larger than the others
        return self.eps * self.u_max / (1 - 1 / len(self.cost))

    def decide(self, P: AnyArray, y: IntArray, log: bool) -> FloatPair:
        """Return log u and cost of each row's Bayes decision; `log`: of log-probabilities."""
        if log:  # a column at a time, so that small expected costs are not rounded to 0
            columns = [logsumexp(P + column, axis=1) for column in np.log(self.cost).T]
            log_expected = np.stack(columns, axis=1)
        else:
            log_expected = np.log(P @ self.cost)
        least = log_expected.min(axis=1)
        # the first of equally cheap decisions: rounding must not choose among them
        chosen = (log_expected <= least[:, None] + ROUNDING).argmax(axis=1)
        return least, self.cost[y, chosen]


Cost = ZeroOneCost | LogCost | MatrixCost


def as_cost(cost: ArrayLike | str | None, n_classes: int, eps: float) -> Cost:
    """Check a cost of decisions, as in `Answers.from_proba`, and the floor of probabilities."""
    as_within(eps, "eps", 0, 1, "left")
    if cost is None:
        return ZeroOneCost(1 - 1 / n_classes, eps)
    if isinstance(cost, str):
        if cost != "log":
            raise ValueError(f"cost must be a matrix, 'log' or None, got {cost!r}")
        return LogCost(float(np.log(n_classes)), eps)
    C = _cost_matrix(cost)
    if C.shape[0] != n_classes:
        raise ValueError(
            f"cost must have one row for each of the {n_classes} classes, got shape {C.shape}"
        )
    refuse_first(
        C.max(axis=0) == 0,
        lambda column: (
            f"decision {column} costs nothing for any class, so nothing is uncertain; leave it "
            f"out, or give it a cost"
        ),
    )
    return MatrixCost(C, eps)


def _cost_matrix(cost: ArrayLike) -> FloatArray:
    C = as_numbers(cost, "cost")
    if C.ndim != 2 or not C.size:
        raise ValueError(
            f"cost must be a matrix with a row for each class and a column for each decision, got "
            f"shape {C.shape}"
        )
    wrong = ~(np.isfinite(C) & (C >= 0))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(f"cost[{row}, {column}] is {C[row, column]:g}; costs are finite and >= 0")
    return C


def largest_uncertainty(cost: ArrayLike) -> float:
    """Return the largest Bayes cost u_M over all class distributions, by a linear program."""
    C = _cost_matrix(cost)
    if not C.max(axis=0).all():
        return 0.0
    # For x = q / u_M: minimise sum(x) = 1 / u_M with x @ C >= 1, as in a matrix game. The sizes of
    # each class's and each decision's costs are divided out: the solver's tolerances are absolute.
    classes = np.where(C.max(axis=1) > 0, C.max(axis=1), C.max())
    scaled = C / classes[:, None]
    each = scaled.max(axis=0)
    solution = linprog(
        c=classes.max() / classes, A_ub=-(scaled / each).T, b_ub=-1 / each, bounds=(0, None)
    )
    if solution.success:
        x = solution.x / classes
        # the solver may miss 0 by its tolerance, and what is below 0 is not a mixture
        mixture = np.maximum(-solution.ineqlin.marginals / each, 0.0)
        with undefined_is_nan():  # a solution of zeros is not one: the bound is NaN
            u_max = float((x @ C).min() / x.sum())
            # by duality, what the best mixture of decisions costs at most is an upper bound
            bound = float((C @ mixture).max() / mixture.sum())
        if bound - u_max <= 1e-9 * bound:
            return u_max
    raise ValueError(
        f"the costs range from {C[C > 0].min():g} to {C.max():g}, too far apart to compute the "
        f"largest uncertainty of this matrix to nine digits; bring them closer together"
    )


def decisions(P: AnyArray, y: IntArray, cost: Cost, log_proba: bool) -> FloatPair:
    """Log-uncertainty and cost of every sample's Bayes decision; checks rows as it reads them."""
    log_u = np.empty(len(P))
    paid = np.empty(len(P))
    for rows in row_slices(P):
        check_distributions(P, rows, log=log_proba)
        with np.errstate(divide="ignore"):  # an uncertainty of 0
            part = P[rows] if log_proba else np.maximum(P[rows], 0)
            log_u[rows], paid[rows] = cost.decide(part, y[rows], log_proba)
    return log_u, paid


def _log_entropy(log_p: FloatArray) -> FloatArray:
    """Logarithm of -sum p log p, also where all but one p are too small for a float."""
    rows = np.arange(len(log_p))
    top = log_p.argmax(axis=1)
    others = log_of_others(log_p, top)
    with undefined_is_nan():
        terms = np.where(log_p > -np.inf, log_p + np.log(-log_p), -np.inf)
        # of the largest p = 1 - r: -log p = -log(1 - r), which is r where r is small
        surprise = np.where(others < -36, others, np.log(-np.log1p(-np.exp(others))))
    terms[rows, top] = log_p[rows, top] + surprise
    return logsumexp(terms, axis=1)


def log_of_others(log_p: AnyArray, chosen: IntArray) -> FloatArray:
    """Return log(1 - p) of the chosen class from the others' log-probabilities, which do not round.

    1 - p is lost to rounding when p is near 1; the others' sum is not.
    """
    others = log_p.astype(float)
    others[np.arange(len(others)), chosen] = -np.inf
    with np.errstate(divide="ignore"):
        return logsumexp(others, axis=1)


def mean_cost(costs: FloatArray, weight: FloatArray) -> float:
    """Weighted mean, in which a weight of 0 leaves out even an infinite cost."""
    return float(weight @ np.where(weight > 0, costs, 0.0) / weight.sum())


def cost_of_reliance(confidence: FloatArray, success: FloatArray, n: float) -> FloatArray:
    """ECUAS_n of each run, for the answer "success", one of many possible ones."""
    with np.errstate(divide="ignore"):  # an uncertainty of 0
        log_u = np.log(1 - confidence)
    return ecuas_costs(log_u, 1 - success, n, 1.0, LEAST_UNCERTAINTY)


def ecuas_costs(
    log_u: FloatArray, paid: FloatArray, n: float, u_max: float, floor: float
) -> FloatArray:
    """Compute C*_n of Eq. 9: in x = u / u_M it is x^(n+1) + (n+1)/n (1 - x^n) c / u_M.

    Uncertainties above u_M cost the same as u_M (Appendix A.3). `floor` is the smallest u under
    the logarithm of n = 0, or 0 for none.
    """
    costs = np.empty(len(log_u))
    for rows in gen_batches(len(log_u), _IN_CACHE):
        log_x = np.minimum(log_u[rows] - np.log(u_max), 0.0)
        c = paid[rows] / u_max
        if n > 0:
            weight_above = -np.expm1(n * log_x)  # 1 - x^n, exact also for small n
            costs[rows] = np.exp((n + 1) * log_x) + (n + 1) / n * weight_above * c
            continue
        with undefined_is_nan():  # a floor of 0, and a certain and right answer: 0 times infinity
            log_x = np.maximum(log_x, min(np.log(floor / u_max), 0.0))
            costs[rows] = np.exp(log_x) + np.where(c > 0, -log_x * c, 0.0)
    return costs


Weight = Callable[[FloatArray], ArrayLike] | Mapping[float, float]

# Panels in log(gamma): their width, how far below u_M they start at first, and the lowest of all
_WIDTH = 0.05
_DEPTH = 35.0
LOWEST = float(np.log(1e-300))
# Relative error that is aimed at and that is accepted, and into how many parts panels are cut
_AIM = 1e-12
_LARGEST_ERROR = 1e-8
_MAX_PARTS = 500


class UACost(NamedTuple):
    """Cost at a rejection cost, with risk and coverage, as `Answers.cost` describes."""

    cost: float | FloatArray
    selective_risk: float | FloatArray
    coverage: float | FloatArray


class RejectionCurve:
    """Decisions in the order of their uncertainties: C*_gamma by a search for each gamma."""

    def __init__(self, log_u: FloatArray, paid: FloatArray, weight: FloatArray) -> None:
        order = np.argsort(log_u, kind="stable")
        accepted = np.append(0.0, np.cumsum(weight[order]))
        self.log_u = log_u[order]
        self._coverage = accepted / accepted[-1]
        self._spent = np.append(0.0, np.cumsum((weight * paid)[order])) / accepted[-1]

    def at(self, gammas: FloatArray) -> UACost:
        """Return cost, selective risk and coverage at each gamma."""
        with undefined_is_nan():
            coverage, spent = self.up_to(np.log(gammas))
            parts = spent + gammas * (1 - coverage), spent / coverage, coverage
        return UACost(*(map(float, parts) if gammas.ndim == 0 else parts))

    def over_point_masses(self, masses: Mapping[float, float]) -> float:
        """Return the cost summed over gammas with a mass each."""
        gammas = as_numbers([*masses.keys()], "gammas of the point masses")
        weights = as_numbers([*masses.values()], "weights of the point masses")
        _check_weights(weights, gammas)
        return float(weights @ self.at(check_gammas(gammas)).cost)

    def up_to(self, log_gammas: FloatArray) -> FloatPair:
        """Return the share accepted at each gamma, and what these cost, as a mean over all."""
        # 1 - 0.7 is a little above 0.3: the tolerance accepts it at gamma = 0.3
        cut = np.searchsorted(self.log_u, log_gammas + ROUNDING, "right")
        return self._coverage[cut], self._spent[cut]


def integral(
    weight: Callable[[FloatArray], ArrayLike],
    curve: RejectionCurve,
    u_max: float,
    breaks: Sequence[float],
) -> float:
    """Return the integral of w(gamma) C*_gamma, from as low as it adds to the whole."""
    high = float(np.log(u_max))
    low = max(min(float(curve.log_u[0]), high - _DEPTH), LOWEST)
    whole = 0.0
    while True:
        part = _over_panels(weight, curve, _edges(low, high, breaks, curve.log_u), whole)
        whole += part
        if part <= _AIM * whole or low <= LOWEST:
            return whole
        high = low
        low = max(low - _DEPTH, LOWEST)


def _over_panels(
    weight: Callable[[FloatArray], ArrayLike],
    curve: RejectionCurve,
    edges: FloatArray,
    above: float,
) -> float:
    """Return the integral over panels in log(gamma), where power laws are exponentials.

    It is as exact as it has to be beside that of what lies `above` them.
    """
    start = edges[:-1]
    width = np.diff(edges)
    # between two uncertainties C* is a line
    coverage, spent = curve.up_to(start + width / 2)

    def integrand(s: float) -> FloatArray:  # at the same place 0 <= s <= 1 of every panel
        gamma = np.exp(start + s * width)
        w = np.broadcast_to(np.asarray(weight(gamma), dtype=float), gamma.shape)
        _check_weights(w, gamma)
        return w * (spent + (1 - coverage) * gamma) * gamma * width

    how = {"epsrel": _AIM, "limit": _MAX_PARTS, "quadrature": "gk15", "full_output": True}
    least = max(_AIM * above, 1e-200)
    part, error, info = quad_vec(lambda s: integrand(s).sum(), 0, 1, epsabs=least, **how)
    # rounding in a steep weight may keep it from what is aimed at
    if not error <= _LARGEST_ERROR * (above + part):
        first, last = info.intervals[np.argmax(info.errors)]
        values = [integrand(s) for s in np.linspace(first, last, 9)]
        roughest = np.argmax(np.ptp(values, axis=0))
        gamma = np.exp(start[roughest] + first * width[roughest])
        raise ValueError(
            f"the integral of the weight does not converge near gamma = {gamma:g}; pass "
            f"breaks=, the points where the weight jumps"
        )
    return float(part)


def _edges(
    log_min: float, log_max: float, breaks: Sequence[float], log_u: FloatArray
) -> FloatArray:
    """Edges of panels of at most the given width, finer towards the top, at breaks and jumps."""
    even = np.linspace(log_min, log_max, int(np.ceil((log_max - log_min) / _WIDTH)) + 1)
    # weights of large n live within 1/n of the top: panels as narrow as that must be there
    top = log_max - _WIDTH * 0.5 ** np.arange(1, 30)
    places = as_numbers(breaks, "breaks").ravel()
    inner = np.log(places[places > 0])
    edges = np.unique(np.concatenate([even, top, inner, log_u]))
    return edges[(edges >= log_min) & (edges <= log_max)]


def check_gammas(gamma: ArrayLike) -> FloatArray:
    """Refuse costs of rejecting that are negative or not finite."""
    gammas = as_numbers(gamma, "gamma")
    if not ((gammas >= 0) & np.isfinite(gammas)).all():
        raise ValueError(f"gamma must be finite and >= 0, got {gamma!r}")
    return gammas


def _check_weights(w: FloatArray, gamma: FloatArray) -> None:
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        raise ValueError(
            f"the weight at gamma = {gamma[bad].flat[0]:g} is {w[bad].flat[0]:g}; weights are "
            f"finite and >= 0"
        )
