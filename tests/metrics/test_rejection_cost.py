import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, sici

from trajscore import metrics
from trajscore.metrics._rejection_cost import _WIDTH, _edges

ASYMMETRIC = np.array([[0, 1, 3, 0.8], [2, 0, 1, 0.8], [5, 2, 0, 0.8]])
COSTS = {"0-1": None, "matrix": ASYMMETRIC, "log": "log"}


def u_max(cost):
    if cost is None:
        return 2 / 3
    return np.log(3) if isinstance(cost, str) else metrics.largest_uncertainty(cost)


def by_hand(y, P, gamma, cost):
    """Eq. 14, a row at a time."""
    C = 1 - np.eye(3) if cost is None else cost
    total = []
    for k, q in zip(y, P, strict=True):
        if isinstance(C, str):
            u, paid = -(q * np.log(q)).sum(), -np.log(q[k])
        else:
            decision = (q @ C).argmin()
            u, paid = q @ C[:, decision], C[k, decision]
        total.append(paid if u <= gamma else gamma)
    return np.mean(total)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_cost_at_one_gamma(cost, rng):
    P, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    gammas = np.linspace(0.01, u_max(cost), 9)
    at = metrics.Answers.from_proba(y, P, cost=cost).cost(gammas)
    np.testing.assert_allclose(at.cost, [by_hand(y, P, g, cost) for g in gammas], rtol=1e-12)
    covered = at.coverage > 0
    risk = at.selective_risk[covered] * at.coverage[covered]
    np.testing.assert_allclose(
        at.cost[covered], risk + gammas[covered] * (1 - at.coverage[covered]), rtol=1e-12
    )
    single = metrics.Answers.from_proba(y, P, cost=cost).cost(gammas[3])
    assert single == tuple(part[3] for part in at)
    assert isinstance(single.cost, float)


def test_ends_of_the_curve(rng):
    P, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    nothing = metrics.Answers.from_proba(y, P).cost(0)
    assert nothing.cost == nothing.coverage == 0
    assert np.isnan(nothing.selective_risk)
    everything = metrics.Answers.from_proba(y, P).cost(1)
    assert everything.coverage == 1
    assert everything.cost == pytest.approx(np.mean(P.argmax(axis=1) != y))
    # at the boundary the answer is accepted, although 1 - 0.7 > 0.3 in floating point
    assert metrics.Answers.from_proba([0], [[0.7, 0.3]]).cost(0.3).coverage == 1
    assert metrics.Answers.from_confidence([1], [1.0]).cost(0).coverage == 1


@pytest.mark.parametrize("n", [0, 0.5, 1, 2.5, 20, 128, 1000, 10_000])
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_numerical_integral_is_the_closed_form(n, cost, rng):
    P, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    top = u_max(cost)

    def weight(gamma):
        return (n + 1) / top**2 * (gamma / top) ** (n - 1)

    value = metrics.Answers.from_proba(y, P, cost=cost).integrated(weight)
    closed = metrics.ecuas_score(y, P, n=n, cost=cost)
    assert value == pytest.approx(closed, abs=1e-10)


def test_numerical_integral_sees_a_weight_that_lives_at_the_top(rng):
    P, y, n = rng.dirichlet(np.ones(3), 20), rng.integers(0, 3, 20), 10**7
    value = metrics.Answers.from_proba(y, P).integrated(
        lambda g: (n + 1) * 1.5**2 * np.exp((n - 1) * np.log(1.5 * g))
    )
    assert value == pytest.approx(metrics.ecuas_score(y, P, n=n), rel=1e-7)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_numerical_integral_has_the_floor_of_the_closed_form(cost):
    P = np.array([[1.0, 0.0, 0.0], [0.0, 1e-9, 1 - 1e-9], [0.3, 0.3, 0.4]])
    top = u_max(cost)
    answers = metrics.Answers.from_proba([1, 1, 2], P, cost=cost, labels=range(3))
    value = answers.integrated(lambda g: 1 / top / g)
    closed = metrics.ecuas_score([1, 1, 2], P, n=0, cost=cost, labels=range(3))
    assert value == pytest.approx(closed, rel=1e-10)


def test_point_masses_and_jumps(rng):
    P, y = rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100)
    masses = {0.2: 0.3, 0.5: 2.0}
    expected = sum(m * metrics.Answers.from_proba(y, P).cost(g).cost for g, m in masses.items())
    assert metrics.Answers.from_proba(y, P).integrated(masses) == pytest.approx(expected, rel=1e-12)
    low, high = 0.21, 0.43
    window = metrics.Answers.from_proba(y, P).integrated(
        lambda g: ((g > low) & (g < high)) * 1.0, breaks=(low, high)
    )
    u = 1 - P.max(axis=1)
    paid = P.argmax(axis=1) != y
    cut = np.clip(u, low, high)
    exact = np.mean((cut**2 - low**2) / 2 + paid * (high - cut))
    assert window == pytest.approx(exact, abs=1e-12)
    found = metrics.Answers.from_proba(y, P).integrated(lambda g: ((g > low) & (g < high)) * 1.0)
    assert found == pytest.approx(exact, abs=1e-10)


def test_integral_of_small_uncertainties_and_steep_weights():
    log_p = [[0.0, -50.0]]
    value = metrics.Answers.from_proba([1], log_p, log_proba=True, labels=[0, 1]).integrated(
        lambda g: 2 / g
    )
    assert value == pytest.approx(98.6137056388801, abs=1e-10)
    # gamma w(gamma) is integrable, but slowly so: 2 sqrt(u) + 2 / sqrt(u) - 2 / sqrt(u_M)
    value = metrics.Answers.from_proba([1], [[0.9, 0.1]], labels=[0, 1]).integrated(
        lambda g: g**-1.5
    )
    assert value == pytest.approx(2 * 0.1**0.5 + 2 * 0.1**-0.5 - 2 * 0.5**-0.5, abs=1e-10)
    tiny = metrics.Answers.from_proba([1], [[0.9, 0.1]], labels=[0, 1]).integrated(
        lambda g: 1e-20 * g**-1.5
    )
    assert tiny * 1e20 == pytest.approx(value, rel=1e-12)


def test_an_integral_begins_below_the_least_uncertainty():
    almost_certain = metrics.Answers.from_proba([1], [[0.0, -50.0]], log_proba=True, labels=[0, 1])
    value = almost_certain.integrated(lambda g: (g < 1e-20) / g, breaks=[1e-20])
    assert value == pytest.approx(50 - 20 * np.log(10), abs=1e-9)


def test_an_integral_ends_at_the_least_uncertainty():
    certain = metrics.Answers.from_proba([1], [[0.0, -1000.0]], log_proba=True, labels=[0, 1])
    value = certain.integrated(lambda g: 2 / g)  # the wrong answer costs 1 from gamma = 1e-300 on
    assert value == pytest.approx(2 * (300 * np.log(10) - np.log(2)), rel=1e-10)


def test_integral_of_weights_that_oscillate():
    def integral(weight):
        return metrics.Answers.from_proba([1], [[0.9, 0.1]], labels=[0, 1]).integrated(weight)

    # without end towards 0, where the cost is gamma: by parts, with the integrals of sin and cos
    def low(g):
        return (g**2 * np.sin(1 / g) + g * np.cos(1 / g) + sici(1 / g)[0]) / 2

    def high(g):
        return g * np.sin(1 / g) - sici(1 / g)[1]

    exact = low(0.1) - np.pi / 4 + high(0.5) - high(0.1)
    assert integral(lambda g: np.sin(1 / g) + 1) == pytest.approx(exact + 0.405, abs=1e-10)
    with pytest.raises(ValueError, match="does not converge near gamma = .*; pass breaks="):
        integral(lambda g: np.sin(1e6 * g) + 1)


def test_point_masses_are_exact_at_zero():
    certain, narrow = [[1.0, 0.0]], [[0.0, -800.0]]
    for gamma in (0, 1e-8):
        exact = metrics.Answers.from_proba([1], certain, labels=[0, 1]).cost(gamma).cost
        mass = metrics.Answers.from_proba([1], certain, labels=[0, 1]).integrated({gamma: 1})
        assert mass == exact == 1
    assert (
        metrics.Answers.from_proba([1], narrow, log_proba=True, labels=[0, 1]).cost(0).coverage == 0
    )


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_every_gamma_is_proper(cost, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3))
    reports = np.vstack([p, rng.dirichlet(np.ones(3), 15)])
    for gamma in rng.uniform(0, u_max(cost), 3):
        losses = [
            metrics.Answers.from_proba([0, 1, 2], np.tile(q, (3, 1)), cost=cost, sample_weight=p)
            .cost(gamma)
            .cost
            for q in reports
        ]
        assert losses[0] <= min(losses) + 1e-9


def test_log_cost():
    uniform = np.full((4, 4), 0.25)
    for n in (0, 1, 5):
        assert metrics.ecuas_score(range(4), uniform, n=n, cost="log") == pytest.approx(1)
    p = np.array([[0.7, 0.2, 0.1]])
    entropy, paid = -(p * np.log(p)).sum(), -np.log(0.2)
    x = entropy / np.log(3)
    expected = x**3 + 1.5 * (1 - x**2) * paid / np.log(3)
    assert metrics.ecuas_score([1], p, n=2, cost="log", labels=range(3)) == pytest.approx(expected)
    log_p = log_softmax([[50.0, 0.0, 0.0]], axis=1)
    value = metrics.ecuas_score([1], log_p, n=1, cost="log", log_proba=True, labels=range(3))
    assert value == pytest.approx(2 * 50 / np.log(3), rel=1e-6)


def test_log_probabilities_agree_with_probabilities(rng):
    log_p, y = log_softmax(rng.normal(size=(50, 3)), axis=1), rng.integers(0, 3, 50)
    for cost in COSTS.values():
        for function in (
            lambda P, **kwargs: metrics.Answers.from_proba(y, P, **kwargs).cost(0.3).cost,
            lambda P, **kwargs: metrics.ecuas_score(y, P, n=0, **kwargs),
        ):
            assert function(log_p, cost=cost, log_proba=True) == pytest.approx(
                function(np.exp(log_p), cost=cost), rel=1e-9
            )


def test_bad_input():
    P = [[0.5, 0.5], [0.9, 0.1]]
    for gamma in (-0.1, [0.3, np.inf], [-0.1, 0.3]):
        with pytest.raises(ValueError, match="gamma must be finite and >= 0"):
            metrics.Answers.from_proba([0, 1], P).cost(gamma)
    with pytest.raises(ValueError, match="the weight at gamma = 0.3 is -1"):
        metrics.Answers.from_proba([0, 1], P).integrated({0.3: -1})
    with pytest.raises(ValueError, match="weight must be a function or a dict"):
        metrics.Answers.from_proba([0, 1], P).integrated(3)
    with pytest.raises(ValueError, match="the weight at gamma = "):
        metrics.Answers.from_proba([0, 1], P).integrated(lambda g: -g)
    with pytest.raises(ValueError, match="cost must be a matrix, 'log' or None"):
        metrics.Answers.from_proba([0, 1], P, cost="zero-one").cost(0.1)
    with pytest.raises(ValueError, match="row 1: confidence is nan"):
        metrics.Answers.from_confidence([0, 1], [0.5, np.nan]).cost(0.1)


@pytest.mark.parametrize("n", [0, 1, 2.5])
def test_own_decisions_over_a_weight_are_the_closed_form(rng, n):
    paid, u = rng.random(30) * 4, 0.01 + rng.random(30)
    weight = rng.integers(1, 4, 30)
    u_max = 1.3
    alpha = (n + 1) * u_max ** -(n + 1)
    found = metrics.Answers.from_decisions(paid, u, u_max=u_max, sample_weight=weight).integrated(
        lambda g: alpha * g ** (n - 1)
    )
    exact = metrics.Answers.from_decisions(paid, u, u_max=u_max, sample_weight=weight).ecuas(n=n)
    assert found == pytest.approx(exact, rel=1e-9)


def test_a_certain_decision_has_a_floor_of_a_share_of_the_largest_uncertainty():
    found = metrics.Answers.from_decisions([1.0], [0.0], u_max=50).integrated(
        lambda g: 1 / (50 * g)
    )
    exact = metrics.Answers.from_decisions([1.0], [0.0], u_max=50).ecuas(n=0)
    assert found == pytest.approx(exact, rel=1e-9)


def test_own_decisions_at_one_gamma(rng):
    P, y = rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40)
    expected = P @ ASYMMETRIC
    paid, u = ASYMMETRIC[y, expected.argmin(axis=1)], expected.min(axis=1)
    gammas = np.linspace(0, 1, 7)
    found = metrics.Answers.from_decisions(paid, u, u_max=u_max(ASYMMETRIC)).cost(gammas)
    for one, other in zip(
        found, metrics.Answers.from_proba(y, P, cost=ASYMMETRIC).cost(gammas), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    masses = {0.2: 0.5, 0.7: 2.0}
    by_hand = sum(
        m * metrics.Answers.from_decisions(paid, u, u_max=u_max(ASYMMETRIC)).cost(g).cost
        for g, m in masses.items()
    )
    whole = metrics.Answers.from_decisions(paid, u, u_max=1).integrated(masses)
    assert whole == pytest.approx(by_hand, rel=1e-12)
    with pytest.raises(ValueError, match="weight must be a function or a dict"):
        metrics.Answers.from_decisions(paid, u, u_max=1).integrated(3)
    with pytest.warns(UserWarning, match="lie above the largest possible one") as seen:
        metrics.Answers.from_decisions([1], [2], u_max=1).integrated({0.5: 1})
    assert seen[0].filename == __file__


def test_a_weight_of_zero_costs_nothing():
    answers = metrics.Answers.from_confidence([1, 0], [0.7, 0.6])
    assert answers.integrated(np.zeros_like) == 0


def test_panels_are_as_narrow_as_asked_with_edges_at_breaks_and_jumps():
    top = 2.5 * _WIDTH
    edges = _edges(0.0, top, [np.exp(0.3 * _WIDTH), np.exp(9 * top), 0.0], np.array([1.1 * _WIDTH]))
    assert (edges[0], edges[-1]) == (0, top)
    assert (np.diff(edges) > 0).all()
    assert np.diff(edges).max() <= _WIDTH
    assert np.isclose(edges, 0.3 * _WIDTH).any()
    assert np.isclose(edges, 1.1 * _WIDTH).any()
    even = _edges(0.0, top, [], np.array([0.0]))
    assert np.diff(even[even <= 1.5 * _WIDTH]).max() <= _WIDTH * 2.5 / 3 + 1e-9
