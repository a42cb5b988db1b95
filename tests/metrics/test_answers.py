"""ECUAS: what it costs to rely on answers with an uncertainty."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.metrics import Answers, ecuas_from_confidence, ecuas_score

NS = [0, 0.3, 1, 2.5, 7]
# no decision need be free for a class; decision 3 is to ask
MATRIX = np.array([[0, 1, 3, 0.8], [2, 0.5, 1, 0.8], [5, 2, 0, 0.8]])
COSTS = [None, MATRIX, "log"]
# with the largest uncertainty of K classes; asking costs .8, and more is never expected
SCALES = [(None, lambda K: 1 - 1 / K), (MATRIX, lambda K: 0.8), ("log", np.log)]


def by_hand(y, P, n, cost, u_max):
    """Eq. 9 in x = u / u_M, a row at a time."""
    total = []
    for k, q in zip(y, P, strict=True):
        if isinstance(cost, str):
            u, paid = -(q * np.log(q)).sum(), -np.log(q[k])
        else:
            C = 1 - np.eye(len(q)) if cost is None else cost
            u, paid = (q @ C).min(), C[k, (q @ C).argmin()]
        x = min(u / u_max, 1)
        factor = -np.log(x) if n == 0 else (n + 1) / n * (1 - x**n)
        total.append(x ** (n + 1) + factor * paid / u_max)
    return np.mean(total)


@pytest.mark.parametrize(("cost", "u_max"), SCALES, ids=["0-1", "matrix", "log"])
def test_is_equation_9(rng, cost, u_max):
    for K in (3,) if cost is MATRIX else (2, 3, 10):
        P, y = rng.dirichlet(np.ones(K), 60), rng.integers(0, K, 60)
        for n in NS:
            how = {"n": n, "cost": cost, "labels": range(K)}
            expected = by_hand(y, P, n, cost, u_max(K))
            assert ecuas_score(y, P, **how) == pytest.approx(expected, rel=1e-9)
            assert Answers.from_proba(y, P, cost=cost, labels=range(K)).ecuas(n) == (
                ecuas_score(y, P, **how)
            )
            found = ecuas_score(y, np.log(P), log_proba=True, **how)
            assert found == pytest.approx(expected, rel=1e-9)
            if cost is None:
                right, c = P.argmax(axis=1) == y, P.max(axis=1)
                found = ecuas_from_confidence(right, c, n=n, n_classes=K)
                assert found == pytest.approx(expected, rel=1e-9)
                as_matrix = how | {"cost": 1 - np.eye(K)}
                assert ecuas_score(y, P, **as_matrix) == pytest.approx(expected, rel=1e-9)


def test_limits(rng):
    P, y = rng.dirichlet(np.ones(3), 400), rng.integers(0, 3, 400)
    error = np.mean(P.argmax(axis=1) != y)
    # n -> infinity: the 0-1 cost, relative to u_M; and no overflow
    assert ecuas_score(y, P, n=10_000) == pytest.approx(error / (2 / 3), rel=1e-3)
    assert ecuas_score(y, P, n=1e-9) == pytest.approx(ecuas_score(y, P, n=0), rel=1e-6)
    # K -> infinity
    correct, c = rng.integers(0, 2, 100), rng.uniform(0.3, 1, 100)
    many = ecuas_from_confidence(correct, c, n=2, n_classes=10**9)
    assert many == pytest.approx(ecuas_from_confidence(correct, c, n=2), rel=1e-6)
    # two classes and n = 1: the normalised Brier score
    p, y = rng.random(200), rng.integers(0, 2, 200)
    brier = np.mean((p - y) ** 2) / 0.25
    assert ecuas_score(y, np.stack([1 - p, p], axis=1)) == pytest.approx(brier)


@pytest.mark.parametrize(
    ("cost", "u_max"),
    [
        ([[0, 3], [1, 0]], 0.75),
        ([[0, 1, 0.4], [1, 0, 0.4]], 0.4),
        (1 - np.eye(5), 0.8),
        ([[1e-6, 3e-6], [4e-6, 1e-6]], 2.2e-6),
        ([[0, 0], [0, 1], [1, 0]], 0.5),  # a class for which all is free
        ([[0, 1e9], [1, 0]], 1 / (1 + 1e-9)),
        # a class that costs next to nothing, and one in which both decisions are dear
        ([[0, 136.5], [7824, 493.455], [0, 2.35e-6], [1.37, 0.43]], 493.455),
        ([[0, 3e-4], [2571, 148942], [4269, 0], [0, 0], [0.08, 0.3]], 4269 / (1 + 1698 / 148942)),
    ],
)
def test_the_largest_uncertainty_of_a_matrix(cost, u_max):
    # an answer of class k, of which it is certain, pays c: ECUAS_1 = x^2 + 2 (1 - x) c / u_M
    for unit in (1, 1000, 1e-200):
        C = unit * np.asarray(cost, dtype=float)
        K = len(C)
        told = int(C.max(axis=1).argmax())
        rows = np.eye(K)[[told]]
        decision = C[told].argmin()
        k = int(C[:, decision].argmax())
        x, c = C[told].min() / (unit * u_max), C[k, decision] / (unit * u_max)
        found = ecuas_score([k], rows, cost=C, labels=range(K))
        assert found == pytest.approx(x**2 + 2 * (1 - x) * c, rel=1e-8), unit
        own = Answers.from_decisions([0], [0], u_max=C)
        assert own.scale.u_max == pytest.approx(unit * u_max, rel=1e-8), unit


def test_a_floor_caps_the_logarithm_of_n_0_alone():
    certain = [[1.0, 0.0]]
    how = {"labels": [0, 1]}
    assert ecuas_score([1], certain, n=0.01, **how) == pytest.approx(202, rel=1e-12)
    # a confidence that rounding has pushed above 1 is certain
    above = [[1 + 1e-7, 0.0]]
    assert ecuas_score([1], above, n=0.01, **how) == pytest.approx(202, rel=1e-12)
    assert ecuas_score([0], above, n=1, cost="log", **how) == pytest.approx(0, abs=1e-6)
    assert ecuas_from_confidence([1, 0], [1.0, 1.0], n=1) == 1
    for eps in (1e-7, 1e-3):
        for K in (2, 3, 5):

            def error(cost=None, K=K, eps=eps):
                return ecuas_score([1], np.eye(K)[[0]], n=0, eps=eps, cost=cost, labels=range(K))

            x = eps / (1 - 1 / K)
            assert error() == pytest.approx(x - np.log(x) / (1 - 1 / K), rel=1e-9)
            assert error(1 - np.eye(K)) == pytest.approx(error(), rel=1e-9)
            assert error(7e-9 * (1 - np.eye(K))) == pytest.approx(error(), rel=1e-9)
            # for the logarithmic cost it is a floor of probabilities too
            x = eps / np.log(K)
            expected = x + np.log(x) * np.log(eps) / np.log(K)
            assert error("log") == pytest.approx(expected, rel=1e-9)
        assert ecuas_from_confidence([0], [1.0], n=0, eps=eps) == pytest.approx(eps - np.log(eps))
    # one above the largest uncertainty leaves that one, and there may be none
    unsure = ecuas_score([0], [[0.5, 0.5]], n=0, **how)
    assert ecuas_score([0], [[0.9, 0.1]], n=0, eps=0.9, **how) == unsure
    assert ecuas_score([1], certain, n=0, eps=0, **how) == np.inf
    # among probabilities that are stated below the floor, the log cost counts the floor
    found = ecuas_score([1], [[0.95, 0.05]], n=1, cost="log", eps=0.1, **how)
    entropy, paid = -0.95 * np.log(0.95) - 0.05 * np.log(0.1), -np.log(0.1)
    x = entropy / np.log(2)
    assert found == pytest.approx(x**2 + 2 * (1 - x) * paid / np.log(2), rel=1e-9)


def test_log_probabilities_have_no_floor():
    how = {"n": 0, "log_proba": True, "labels": [0, 1]}
    log_p = np.array([[0.0, -50.0]])
    for cost in (None, 1 - np.eye(2), [[0, 1, 0.7], [1, 0, 0.7]]):
        assert ecuas_score([1], log_p, cost=cost, **how) == pytest.approx(98.6137, abs=1e-4)
    assert ecuas_score([0], [[0.0, -np.inf]], **how) == 0
    assert ecuas_score([1], [[0.0, -np.inf]], **how) == np.inf
    # the logarithmic cost of m when the entropy is (1 + m) exp(-m)
    for m in (20.0, 30.0, 35.9, 36.1, 50.0, 800.0):
        top = np.log(2)
        x = (1 + m) * np.exp(-m)
        expected = x / top + (m - np.log1p(m) + np.log(top)) * m / top
        rows = [[np.log1p(-np.exp(-m)), -m], [-m, np.log1p(-np.exp(-m))]]
        for label, row in ((1, rows[0]), (0, rows[1])):
            found = ecuas_score([label], [row], cost="log", **how)
            assert found == pytest.approx(expected, rel=1e-8), m
    # single precision is enough
    log_p = log_softmax([[50.0, 0.0, 1.0]], axis=1)
    how["labels"] = range(3)
    single = ecuas_score([1], log_p.astype(np.float32), **how)
    assert single == pytest.approx(ecuas_score([1], log_p, **how), rel=1e-6)


def test_labels_weights_and_normalisation(rng):
    P, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    names = np.array(["cat", "ant", "bee"])
    for labels in (names, np.array([7, 3, 5]), np.array([True, False, "x"], object)):
        assert ecuas_score(labels[y], P, labels=labels) == ecuas_score(y, P)
    assert ecuas_score(np.array(["a", "b", "c"])[y], P) == ecuas_score(y, P)
    assert ecuas_score(y[:, None], P) == ecuas_score(y, P)
    assert ecuas_score(y.astype(float), P) == ecuas_score(y, P)
    # of two columns numbers are the columns, and False and True are 0 and 1
    two = P[:, :2] / P[:, :2].sum(axis=1, keepdims=True)
    assert ecuas_score([True] * 60, two) == ecuas_score([1] * 60, two)
    weight = rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weight)
    prior = np.bincount(y) / 60
    for cost in COSTS:
        for normalize in (False, True):
            how = {"cost": cost, "normalize": normalize}
            weighted = ecuas_score(y, P, sample_weight=weight, **how)
            assert weighted == pytest.approx(ecuas_score(y[rows], P[rows], **how))
        naive = ecuas_score(y, np.tile(prior, (60, 1)), n=0, cost=cost)
        expected = ecuas_score(y, P, n=0, cost=cost) / naive
        assert ecuas_score(y, P, n=0, cost=cost, normalize=True) == pytest.approx(expected)


def test_rounding_does_not_choose_among_equal_decisions():
    # both decisions are expected to cost .3, the second one 5e-17 less
    cost = np.array([[0.0, 0.9, 1], [0.1, 0.0, 1], [0.8, 0.0, 1]])
    P = np.full((1, 3), 1 / 3)
    for k in range(3):
        expected = Answers.from_decisions([cost[k, 0]], [0.3], u_max=cost).ecuas()
        for proba, log in ((P, False), (np.log(P), True)):
            found = ecuas_score([k], proba, cost=cost, labels=range(3), log_proba=log)
            assert found == pytest.approx(expected, rel=1e-9)


def test_own_decisions(rng):
    c, right, weight = rng.random(50), rng.integers(0, 2, 50), rng.integers(1, 4, 50)
    for n in (0, 1, 128):
        how = {"sample_weight": weight}
        expected = ecuas_from_confidence(right, c, n=n, **how)
        for unit in (1, 700):
            own = Answers.from_decisions(unit * (1 - right), unit * (1 - c), u_max=unit, **how)
            assert own.ecuas(n=n) == pytest.approx(expected, rel=1e-9)
    # u has a floor, as a share of u_M, under the logarithm of n = 0 only
    floored = Answers.from_decisions([1.0], [0.0], u_max=5, eps=1e-3).ecuas(n=0)
    assert floored == Answers.from_decisions([1.0], [5e-3], u_max=5).ecuas(n=0)
    assert Answers.from_decisions([5.0], [0.0], u_max=5).ecuas(n=1) == 2


def test_uncertainty_above_the_largest_costs_what_that_costs_and_is_counted():
    with pytest.warns(UserWarning, match=r"^2 uncertainties .* 0\.75") as seen:
        found = ecuas_from_confidence([0, 1, 1], [0.1, 0.2, 0.9], n_classes=4)
    assert [one.filename for one in seen] == [__file__]
    assert found == pytest.approx((1 + 1 + (0.1 / 0.75) ** 2) / 3)
    own = Answers.from_decisions([1.0, 0.0], [3.0, 0.0], u_max=2)
    for function in (own.ecuas, lambda: own.integrated({0.5: 1})):
        with pytest.warns(UserWarning, match="^1 uncertainties .* 2") as seen:
            function()
        assert [one.filename for one in seen] == [__file__]


def test_many_rows_are_read_in_parts(rng):
    P, y = np.tile([0.9, 0.1], (140_000, 1)), np.arange(140_000) % 2
    one = ecuas_score([0], P[:1], labels=[0, 1]), ecuas_score([1], P[:1], labels=[0, 1])
    assert ecuas_score(y, P) == pytest.approx(np.mean(one))
    P[5], P[139_000] = [0.9, 0.2], [5, 5]
    assert not not_refused(ecuas_score, [(y, P, {}, "row 5: .* add up to 1.1")])
    P[70_000, 1] = np.nan
    assert not not_refused(ecuas_score, [(y[6:], P[6:], {}, "row 69994: .* nan")])


NAN, INF = np.nan, np.inf


def test_rows_that_are_no_distributions():
    plain = [
        ([0.7, 0.7], "add up to 1.4"), ([0.0, 0.0], "add up to 0;"),
        ([1.0001, 0.5], "add up to 1.5001"),  # no further above 1 than a sum may be
        ([1.00001, -0.00001], "from -1e-05 to"), (np.log([0.3, 0.7]), "log_proba=True"),
        ([-INF, 1.0], "from -inf"), ([NAN, 1.0], "from nan"), ([INF, -INF], "from -inf to inf"),
    ]  # fmt: skip
    good = [0.5, 0.5]
    rows = [([0, 1], [good, row], {}, f"row 1: .*{words}") for row, words in plain]
    logs = [
        ([0.25, 0.75], "log_proba=False"), ([-1.0, -2.0], "add up to 0.503"),
        ([NAN, 0.0], "from nan"), ([1e308, INF], "to inf"),
    ]  # fmt: skip
    how = {"log_proba": True}
    rows += [([0, 1], [np.log(good), row], how, f"row 1: .*{words}") for row, words in logs]
    missing = pd.DataFrame([good, [0.1, pd.NA]], dtype="Float64")
    rows += [([0, 1], missing, {}, "row 1: .* nan")]
    assert not not_refused(ecuas_score, rows)
    # sums that miss 1 by rounding pass
    exact = ecuas_score([0, 1], [good, good])
    for total in (1 - 9e-5, 1 + 9e-5):
        near = np.array([good, [0.5, total - 0.5]])
        for P, log in ((near, False), (np.log(near), True)):
            assert ecuas_score([0, 1], P, log_proba=log) == pytest.approx(exact, abs=1e-3)


def test_classes_without_a_column():
    two, three = [[0.5, 0.5]] * 4, [[0.2, 0.3, 0.5]] * 4
    rows = [
        ([0, 1, 1, 2], two, {}, r"row 3: class 2 .*\[0, 1\]"),
        ([0, 1, 1, -1], two, {}, "row 3: .* not observed"),
        ([0, 1, 1, -1], two, {"labels": [1, 0]}, r"row 3: class -1 .*\[1, 0\]"),
        ([-1, 0, 1, 7], three, {}, "row 0: .* labels="),
        (["a", "z", "b", "b"], two, {"labels": ["a", "b"]}, "row 1: class 'z'"),
        ([0, 5, 5, 5], three, {}, "2 classes .* 3 columns; pass labels="),
        (["a", "b", "c", "c"], two, {}, r"row 0: class 'a' .*\[0, 1\].* labels="),
        (np.array([0, "b", 1, 1], object), two, {}, "partly text, partly numbers"),
        ([0, None, 1, 1], two, {}, "row 1: the class is missing"),
        ([0, 1], two, {}, r"y_true has shape \(2,\).* 4 rows"),
        ([0, 1, 1, 1], two, {"labels": [0, 1, 2]}, "labels must be 2 different"),
        ([0, 1, 1, 1], two, {"labels": [1, 1]}, "labels must be 2 different"),
    ]
    assert not not_refused(ecuas_score, rows)


def test_bad_parameters():
    y, P = [0, 1], [[0.5, 0.5], [0.9, 0.1]]
    rows = [
        ([0], [0.5], {}, "ecuas_from_confidence"),
        ([0], [[1.0]], {}, r"got \(1, 1\)"),
        ([], np.empty((0, 2)), {}, "no samples"),
        (y, [["a", "b"], ["c", "d"]], {}, "class probabilities must be numbers"),
        (y, TrajectoryArray([0.5, 0.4, 0.2], [1, 2]), {}, "ecuas_from_confidence"),
        *((y, P, {"eps": eps}, "eps") for eps in (NAN, -1, 1, "0")),
        *((y, P, {"n": n}, "n must be") for n in (-1, INF, NAN, "1")),
        (y, P, {"normalize": 2}, "normalize"),
        (y, P, {"sample_weight": [1, -1]}, "row 1: sample_weight is -1"),
        (y, P, {"cost": "brier"}, "cost .* got 'brier'"),
        (y, P, {"cost": [1, 2]}, r"cost must be a matrix .*\(2,\)"),
        (y, P, {"cost": [[0, 1], [INF, -1]]}, r"cost\[1, 0\] is inf"),
        (y, P, {"cost": [[0, 1]]}, "row for each of the 2 classes"),
        (y, P, {"cost": [[0, 0], [0, 0]]}, "decision 0 costs nothing"),
        (y, P, {"cost": [[1, 1, 0], [1, 0, 0]]}, "decision 2 costs nothing"),
        ([0, 0], P, {"normalize": True, "labels": [0, 1]}, "normalize=False"),
    ]
    uneven = [[0, 0], [511.7, 5.734], [6.993e-6, 1.266e4], [0.1038, 0.05124]]
    rows += [([0], [[0.25] * 4], {"cost": uneven, "labels": range(4)}, "6.993e-06 to 12660")]
    # the class of which the free decision would be wrong never occurs
    free = {"labels": [0, 1, 2], "cost": [[0, 1], [0, 1], [1, 0]]}
    thirds = [[0.5, 0.25, 0.25]] * 2
    assert ecuas_score(y, thirds, **free) > 0
    rows += [(y, thirds, free | {"normalize": True}, "naive .* normalize=False")]
    # one class is one class, whatever its weights add up to
    weight = {"sample_weight": np.full(37, 0.1), "labels": [0, 1], "normalize": True}
    rows += [([0] * 37, np.tile([0.4, 0.6], (37, 1)), weight, "one class")]
    assert not not_refused(ecuas_score, rows)
