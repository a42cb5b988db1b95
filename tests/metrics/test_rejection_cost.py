import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refused import not_refused
from trajscore.metrics import Answers, ecuas_score

# asking costs .8 whatever the class, and more is never expected
MATRIX = np.array([[0, 1, 3, 0.8], [2, 0, 1, 0.8], [5, 2, 0, 0.8]])
COSTS = {"0-1": (None, 2 / 3), "matrix": (MATRIX, 0.8), "log": ("log", np.log(3))}
every_cost = pytest.mark.parametrize(("cost", "u_max"), COSTS.values(), ids=COSTS)


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
        taken = u <= gamma + 1e-12  # but for rounding
        total.append((paid if taken else gamma, taken))
    return np.mean(total, axis=0)


@every_cost
def test_cost_at_one_gamma(cost, u_max, rng):
    P, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    gammas = np.linspace(0.01, u_max, 9)
    answers = Answers.from_proba(y, P, cost=cost)
    at = answers.cost(gammas)
    expected = np.array([by_hand(y, P, g, cost) for g in gammas]).T
    np.testing.assert_allclose([at.cost, at.coverage], expected, rtol=1e-12)
    kept = at.coverage > 0
    risk = (at.selective_risk * at.coverage)[kept]
    np.testing.assert_allclose(risk + (gammas * (1 - at.coverage))[kept], at.cost[kept], rtol=1e-12)
    assert answers.cost(gammas[3]) == tuple(part[3] for part in at)
    logs = Answers.from_proba(y, np.log(P), cost=cost, log_proba=True).cost(gammas)
    np.testing.assert_allclose(logs, at, rtol=1e-9)


def test_ends_of_the_curve(rng):
    P, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    nothing = Answers.from_proba(y, P).cost(0)
    assert nothing.cost == nothing.coverage == 0
    assert np.isnan(nothing.selective_risk)
    everything = Answers.from_proba(y, P).cost(1)
    assert everything.coverage == 1
    assert everything.cost == pytest.approx(np.mean(P.argmax(axis=1) != y))
    # at the boundary the answer is accepted, although 1 - 0.7 > 0.3 in floating point
    assert Answers.from_proba([0], [[0.7, 0.3]]).cost(0.3).coverage == 1
    assert Answers.from_confidence([1], [1.0]).cost(0).coverage == 1
    # weights are counts
    found = Answers.from_decisions([1, 2, 3], [0.1, 0.5, 0.9], u_max=1, sample_weight=[1, 2, 5])
    assert found.cost(0.5) == pytest.approx(((1 + 4) / 8 + 0.5 * 5 / 8, 5 / 3, 3 / 8))


@every_cost
def test_numerical_integral_is_the_closed_form(cost, u_max, rng):
    P, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    sure = np.array([[1.0, 0.0, 0.0], [0.0, 1e-9, 1 - 1e-9], [0.3, 0.3, 0.4]])
    for n in (0, 0.5, 1, 2.5, 128, 10_000):

        def weight(gamma, n=n):
            return (n + 1) / u_max**2 * (gamma / u_max) ** (n - 1)

        value = Answers.from_proba(y, P, cost=cost).integrated(weight)
        assert value == pytest.approx(ecuas_score(y, P, n=n, cost=cost), abs=1e-10)
    # with the same floor
    certain = Answers.from_proba([1, 1, 2], sure, cost=cost, labels=range(3))
    value = certain.integrated(lambda g: 1 / u_max / g)
    assert value == pytest.approx(certain.ecuas(0), rel=1e-10)


def test_numerical_integral_sees_a_weight_that_lives_at_the_top(rng):
    answers, n = Answers.from_proba([0, 1, 2], rng.dirichlet(np.ones(3), 3)), 10**7
    value = answers.integrated(lambda g: (n + 1) * 1.5**2 * np.exp((n - 1) * np.log(1.5 * g)))
    assert value == pytest.approx(answers.ecuas(n), rel=1e-7)


def test_point_masses_and_jumps(rng):
    P, y = rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100)
    answers = Answers.from_proba(y, P)
    masses = {0.2: 0.3, 0.5: 2.0}
    expected = sum(m * answers.cost(g).cost for g, m in masses.items())
    assert answers.integrated(masses) == pytest.approx(expected, rel=1e-12)
    low, high = 0.21, 0.43

    def window(g):
        return ((g > low) & (g < high)) * 1.0

    u, paid = 1 - P.max(axis=1), P.argmax(axis=1) != y
    cut = np.clip(u, low, high)
    exact = np.mean((cut**2 - low**2) / 2 + paid * (high - cut))
    assert answers.integrated(window, breaks=(low, high)) == pytest.approx(exact, abs=1e-12)
    assert answers.integrated(window) == pytest.approx(exact, abs=1e-10)
    assert answers.integrated(np.zeros_like) == 0
    certain = Answers.from_proba([1], [[1.0, 0.0]], labels=[0, 1])
    for gamma in (0, 1e-8):
        assert certain.integrated({gamma: 1}) == certain.cost(gamma).cost == 1


def test_integrals_of_small_uncertainties_and_steep_weights():
    def answer(margin):
        return Answers.from_proba([1], [[0.0, -margin]], log_proba=True, labels=[0, 1])

    assert answer(50.0).integrated(lambda g: 2 / g) == pytest.approx(98.6137056388801, abs=1e-10)
    # it begins below the least uncertainty
    value = answer(50.0).integrated(lambda g: (g < 1e-20) / g, breaks=[1e-20])
    assert value == pytest.approx(50 - 20 * np.log(10), abs=1e-9)
    # the wrong answer costs 1 from gamma = 1e-300 on
    value = answer(1000.0).integrated(lambda g: 2 / g)
    assert value == pytest.approx(2 * (300 * np.log(10) - np.log(2)), rel=1e-10)
    # gamma w(gamma) is integrable, but slowly so: 2 sqrt(u) + 2 / sqrt(u) - 2 / sqrt(u_M)
    wrong = Answers.from_proba([1], [[0.9, 0.1]], labels=[0, 1])
    exact = 2 * 0.1**0.5 + 2 * 0.1**-0.5 - 2 * 0.5**-0.5
    for scale in (1, 1e-20):
        value = wrong.integrated(lambda g, scale=scale: scale * g**-1.5)
        assert value / scale == pytest.approx(exact, abs=1e-10)
    rough = [(lambda g: np.sin(1e6 * g) + 1, {}, "near gamma = .*breaks=")]
    assert not not_refused(wrong.integrated, rough)


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_every_gamma_is_proper(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3))
    reports = np.vstack([p, rng.dirichlet(np.ones(3), 8)])
    for cost, u_max in COSTS.values():
        gammas = rng.uniform(0, u_max, 3)
        honest, *losses = (
            Answers.from_proba([0, 1, 2], np.tile(q, (3, 1)), cost=cost, sample_weight=p)
            .cost(gammas)
            .cost
            for q in reports
        )
        assert (honest <= np.min(losses, axis=0) + 1e-9).all()


def test_own_decisions(rng):
    paid, u, weight, top = rng.random(30) * 4, 0.01 + rng.random(30), rng.integers(1, 4, 30), 1.3
    own = Answers.from_decisions(paid, u, u_max=top, sample_weight=weight)
    for n in (0, 1, 2.5):
        alpha = (n + 1) * top ** -(n + 1)
        found = own.integrated(lambda g, n=n, alpha=alpha: alpha * g ** (n - 1))
        assert found == pytest.approx(own.ecuas(n=n), rel=1e-9)
    certain = Answers.from_decisions([1.0], [0.0], u_max=50)
    found = certain.integrated(lambda g: 1 / (50 * g))
    assert found == pytest.approx(certain.ecuas(n=0), rel=1e-9)
