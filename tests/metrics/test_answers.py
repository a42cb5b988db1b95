import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_softmax
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from trajscore import (
    PlattCrossFitCalibrator,
    TraceAggregator,
    TrajectoryArray,
    make_ecuas_scorer,
    metrics,
)
from trajscore.datasets import make_trajectories
from trajscore.metrics import (
    ecuas_from_confidence,
    ecuas_score,
    largest_uncertainty,
)

NS = [0, 0.3, 1, 2.5, 7]
ASYMMETRIC = np.array([[0, 1, 3, 0.8], [2, 0, 1, 0.8], [5, 2, 0, 0.8]])


def integral(error, u, n, u_max):
    """Eq. 8 for the weight w_n, by quadrature."""
    alpha = (n + 1) * u_max ** -(n + 1)
    below = quad(lambda g: g * alpha * g ** (n - 1), 0, u, epsabs=1e-13)[0]
    above = quad(lambda g: alpha * g ** (n - 1), u, u_max, epsabs=1e-13)[0]
    return below + error * above


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("K", [2, 3, 10])
@given(seed=st.integers(0, 10**6))
def test_closed_form_is_the_integral(n, K, seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), 3)
    y = rng.integers(0, K, 3)
    expected = np.mean(
        [integral(p.argmax() != k, 1 - p.max(), n, 1 - 1 / K) for p, k in zip(P, y, strict=True)]
    )
    assert ecuas_score(y, P, n=n, labels=range(K)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("cost", [None, ASYMMETRIC], ids=["0-1", "asymmetric"])
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_truth_is_optimal_over_a_simplex_grid(n, cost, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3))
    steps = 12
    grid = (
        np.array([[a, b, steps - a - b] for a in range(steps + 1) for b in range(steps + 1 - a)])
        / steps
    )
    reports = np.vstack([p, grid])

    def expected(q):
        return ecuas_score([0, 1, 2], np.tile(q, (3, 1)), n=n, cost=cost, sample_weight=p)

    losses = [expected(q) for q in reports[rng.permutation(len(reports))[:12]]]
    assert min(losses) >= expected(p) - 1e-9


def test_largest_uncertainty_is_found_exactly():
    for K in (2, 5, 10):
        assert largest_uncertainty(1 - np.eye(K)) == pytest.approx(1 - 1 / K, abs=1e-12)
    q = np.random.default_rng(0).dirichlet(np.ones(3), 200_000)
    seen = (q @ ASYMMETRIC).min(axis=1).max()
    assert seen <= largest_uncertainty(ASYMMETRIC) + 1e-12
    assert largest_uncertainty(ASYMMETRIC) == pytest.approx(seen, abs=0.01)


def test_zero_one_cost_as_a_matrix_is_the_default():
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(4), 50), rng.integers(0, 4, 50)
    for n in NS:
        given_cost = ecuas_score(y, P, n=n, cost=1 - np.eye(4))
        assert given_cost == pytest.approx(ecuas_score(y, P, n=n), rel=1e-9)


def test_limits():
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(3), 400), rng.integers(0, 3, 400)
    error = np.mean(P.argmax(axis=1) != y)
    # n -> infinity: the 0-1 cost, relative to u_M; and no overflow
    assert ecuas_score(y, P, n=10_000) == pytest.approx(error / (2 / 3), rel=1e-3)
    assert ecuas_score(y, P, n=1e-9) == pytest.approx(ecuas_score(y, P, n=0), rel=1e-6)
    # K -> infinity
    correct, c = rng.integers(0, 2, 100), rng.uniform(0.3, 1, 100)
    for n in NS:
        many = ecuas_from_confidence(correct, c, n=n, n_classes=10**9)
        assert many == pytest.approx(ecuas_from_confidence(correct, c, n=n), rel=1e-6)


def test_two_classes_and_n_one_is_the_normalised_brier_score():
    rng = np.random.default_rng(0)
    p, y = rng.random(200), rng.integers(0, 2, 200)
    P = np.stack([1 - p, p], axis=1)
    assert ecuas_score(y, P, n=1) == pytest.approx(np.mean((p - y) ** 2) / 0.25)


def test_certain_errors_from_log_probabilities_are_not_capped():
    log_p = log_softmax([[50.0, 0.0]], axis=1)
    assert ecuas_score([1], log_p, n=0, log_proba=True) == pytest.approx(98.6137, abs=1e-4)
    assert ecuas_score([1], np.exp(log_p), n=0) == pytest.approx(30.8499, abs=1e-4)
    assert ecuas_score([0], np.array([[0.0, -np.inf]]), n=0, log_proba=True) == 0


@pytest.mark.parametrize("cost", [1 - np.eye(2), [[0, 1, 0.7], [1, 0, 0.7]]])
def test_no_cap_from_log_probabilities_for_a_cost_matrix(cost):
    log_p = np.array([[0.0, -50.0]] * 2)
    value = ecuas_score([1, 1], log_p, n=0, cost=cost, log_proba=True, labels=[0, 1])
    assert value == pytest.approx(98.6137, abs=1e-4)


@pytest.mark.parametrize("margin", [30.0, 800.0])
def test_no_cap_from_log_probabilities_for_the_logarithmic_cost(margin):
    log_p = [[0.0, -margin]]  # the entropy is (1 + margin) exp(-margin)
    u_max = np.log(2)
    expected = (margin - np.log1p(margin) + np.log(u_max)) * margin / u_max
    value = ecuas_score([1], log_p, n=0, cost="log", log_proba=True, labels=[0, 1])
    assert value == pytest.approx(expected, rel=1e-9)


def test_only_the_logarithm_of_n_0_is_floored():
    certain = [[1.0, 0.0]]
    assert ecuas_score([1], certain, n=0.01, labels=[0, 1]) == pytest.approx(202, rel=1e-12)
    assert ecuas_from_confidence([0], [1.0], n=0.01, n_classes=2) == pytest.approx(202, rel=1e-12)
    # a confidence that rounding has pushed above 1 is certain, and so is one of the log cost
    above = [[1 + 1e-7, 0.0]]
    assert ecuas_score([1], above, n=0.01, labels=[0, 1]) == pytest.approx(202, rel=1e-12)
    assert ecuas_score([0], above, n=1, labels=[0, 1], cost="log") == pytest.approx(0, abs=1e-6)
    assert ecuas_score([1], certain, n=0, labels=[0, 1]) == pytest.approx(30.8499, abs=1e-4)


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1e-7, 1e9, 1e15, 1e200])
def test_the_unit_of_costs_does_not_matter(unit):
    P, y = [[1.0, 0.0, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]], [1, 1, 2]
    for n in (0, 1, 128):
        expected = ecuas_score(y, P, n=n, cost=ASYMMETRIC, labels=range(3))
        value = ecuas_score(y, P, n=n, cost=unit * ASYMMETRIC, labels=range(3))
        assert value == pytest.approx(expected, rel=1e-9)
    # the floor is no share of the largest cost, which may be far above every uncertainty
    uneven, sure = [[0, 1e9], [1, 0]], [[0.0, 1.0], [1e-11, 1 - 1e-11]]
    assert ecuas_score([1, 0], sure, n=0, cost=uneven) > 1e9
    assert largest_uncertainty([[0, 1e9], [1, 0]]) == pytest.approx(1 / (1 + 1e-9), rel=1e-12)


def test_largest_uncertainty_says_what_is_wrong():
    assert largest_uncertainty([[0, 1], [0, 2]]) == 0
    with pytest.raises(ValueError, match="cost must be a matrix"):
        largest_uncertainty([0, 1])
    with pytest.raises(ValueError, match=r"cost\[0, 1\] is -1"):
        largest_uncertainty([[0, -1], [1, 0]])
    uneven = [[0, 0], [511.7, 5.734], [6.993e-6, 1.266e4], [0.1038, 0.05124]]
    with pytest.raises(
        ValueError, match="the costs range from 6.993e-06 to 12660, too far apart .* nine digits"
    ):
        largest_uncertainty(uneven)


def test_one_class_is_refused_whatever_the_weights(rng):
    weight = rng.random(37)
    P, y = np.tile([0.4, 0.6], (37, 1)), [0] * 37
    for weights in (weight, np.full(37, 0.1)):
        with pytest.raises(ValueError, match="all samples are of one class"):
            ecuas_score(y, P, labels=[0, 1], normalize=True, sample_weight=weights)
        table = metrics.Answers.from_proba(y, P, labels=[0, 1], sample_weight=weights).metrics()
        assert table[["N-ER", "N-BS", "N-CE", "N-ECUAS_0", "N-ECUAS_128"]].isna().all()


def test_uncertainty_above_the_largest_costs_what_that_costs_and_is_counted():
    with pytest.warns(UserWarning, match=r"2 uncertainties lie above .* 0\.75") as caught:
        wrong = ecuas_from_confidence([0, 0, 1], [0.1, 0.1, 0.9], n_classes=4)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points to the caller
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ecuas_from_confidence([0], [0.1], n_classes=4) == 1
        assert ecuas_from_confidence([1], [0.1], n_classes=4) == 1
    assert wrong > 0.6


def test_labels_weights_and_normalisation():
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    names = np.array(["cat", "ant", "bee"])
    assert ecuas_score(names[y], P, labels=names) == ecuas_score(y, P)
    assert ecuas_score(y[:, None], P) == ecuas_score(y, P)
    weight = np.ones(60)
    weight[0], weight[1] = 2, 0
    rows = np.r_[0, 0, 2:60]
    for normalize in (False, True):
        assert ecuas_score(y, P, sample_weight=weight, normalize=normalize) == pytest.approx(
            ecuas_score(y[rows], P[rows], normalize=normalize)
        )
    prior = np.bincount(y) / 60
    assert ecuas_score(y, np.tile(prior, (60, 1)), normalize=True) == pytest.approx(1)


@pytest.mark.parametrize(
    ("y", "P", "kwargs", "message"),
    [
        ([0, 1], [[0.5, 0.5], [0.7, 0.7]], {}, "row 1: the probabilities add up to 1.4"),
        ([0, 1], [[0.5, 0.5], [3.0, -1.0]], {}, "row 1: these look like logits"),
        ([0, 1], [[0.5, 0.5], [1.1, -0.1]], {}, "row 1: probability -0.1 is negative"),
        ([0, 1], [[0.5, 0.5], [1.6, -0.6]], {}, "row 1: these look like logits"),
        ([0, 1], [[0.5, 0.5], [1.5, 0.3]], {}, "row 1: these look like logits"),
        ([0, 1], [[-0.9, 0.95, 0.95], [0.1, 0.1, 0.8]], {}, "row 0: these look like logits"),
        ([[0, 1]], [[0.5, 0.5], [0.9, 0.1]], {}, r"y_true has shape \(1, 2\)"),
        ([0, 1], [[0.5, 0.5], [np.inf, 0.1]], {}, "row 1: a value is infinite"),
        ([0, 1], [[30.0, 70.0], [50.0, 50.0]], {}, "row 0: these look like percentages"),
        ([0, 1], [[0.5, 99.5], [50.0, 50.0]], {}, "row 0: these look like percentages"),
        ([0, 5], [[0.2, 0.3, 0.5]] * 2, {}, "2 classes occur and there are 3 columns"),
        ([0, None], [[0.5, 0.5], [0.9, 0.1]], {}, "row 1: the class is missing"),
        (["b", "b"], [[0.5, 0.5], [0.9, 0.1]], {}, "pass labels=, the class of each column"),
        ([-1, -1], [[0.5, 0.5], [0.9, 0.1]], {}, "pass labels=, the class of each column"),
        ([5, 5], [[0.5, 0.5], [0.9, 0.1]], {}, "pass labels=, the class of each column"),
        ([0, "b"], [[0.5, 0.5], [0.9, 0.1]], {"labels": ["a", "b"]}, "row 0: class"),
        (np.array([0, "b"], object), [[0.5, 0.5], [0.9, 0.1]], {}, "partly text, partly numbers"),
        (
            np.array(["b", "z"], object),
            [[0.5, 0.5]] * 2,
            {"labels": ["a", "b"]},
            "row 1: class 'z'",
        ),
        (["a", "b", "c"], [[0.5, 0.5]] * 3, {}, "3 classes occur, but there are 2 columns"),
        ([0, 1, 2], [[0.5, 0.5]] * 3, {}, "row 2: class 2 has no column"),
        ([0, 1, -1], [[0.5, 0.5]] * 3, {}, "row 2: .* not observed, so leave such runs out"),
        ([0, 1, -1], [[0.5, 0.5]] * 3, {"labels": [0, 1]}, "row 2: .* not observed"),
        ([-1, 0, 1, 7], [[0.2, 0.3, 0.5]] * 4, {}, "row 0: .* pass labels="),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"eps": np.nan}, r"eps must be a number in \[0, 1\)"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"eps": -1}, r"eps must be a number in \[0, 1\)"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"eps": np.timedelta64(0)}, "eps must be a number in"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"cost": [[0, 1], [0, 2]]}, "decision 0 costs nothing"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"sample_weight": 0}, "all sample weights are zero"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"sample_weight": -1}, "sample_weight -1 is negative"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"sample_weight": np.nan}, "sample_weight contains NaN"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"sample_weight": "a"}, "sample_weight must be numbers"),
        ([0, 1], np.log([[0.5, 0.5], [0.9, 0.1]]), {}, "row 1: these look like log-probabilities"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"log_proba": True}, "pass log_proba=False"),
        ([0, 1], [[0.5, 0.2], [2.0, -1.0]], {"log_proba": True}, "take their log_softmax"),
        ([0, 1], [[-1.0, -1.0], [-1.0, -2.0]], {"log_proba": True}, "exponentials add up to 0.50"),
        ([0, 1], [[2.0, -1.0], [3.0, -2.0]], {}, "row 1: these look like logits"),
        ([0, 1], pd.DataFrame([[0.5, 0.5], [0.1, pd.NA]], dtype="Float64"), {}, "row 1: .* NaN"),
        ([0, 1], [["a", "b"], ["c", "d"]], {}, "class probabilities must be numbers"),
        ([0, 1], [[0.5, 0.5], [np.nan, 1.0]], {}, "row 1: a value is NaN"),
        ([0, 5], [[0.5, 0.5], [0.9, 0.1]], {"labels": [0, 1]}, "row 1: class 5 has no column"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"n": -1}, "n must be a finite number >= 0"),
        ([0, 1], [[0.5, 0.5], [0.9, 0.1]], {"cost": [[0, -1], [1, 0]]}, r"cost\[0, 1\] is -1"),
        ([0, 0], [[0.5, 0.5], [0.9, 0.1]], {"normalize": True, "labels": [0, 1]}, "one class"),
        ([0], [0.5], {}, "ecuas_from_confidence"),
    ],
)
def test_bad_probabilities(y, P, kwargs, message):
    with pytest.raises(ValueError, match=message):
        ecuas_score(y, P, **kwargs)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.5, -0.5], "probability -0.5 is negative"),
        ([1.5625, -0.5625], "look like logits"),
        ([1.0001, 0.5], "add up to 1.5001, not 1 "),  # no further above 1 than a sum may be
        ([1.0002, 0.5], "look like logits"),
        ([1.0, 1.0], "add up to 2, not 1 "),
        ([0.5, 0.4998], "add up to 0.9998, not 1 "),
        ([0.0, 0.0], "add up to 0, not 1 "),
        ([50.0, 50.009], "look like percentages"),
        ([50.0, 49.991], "look like percentages"),
        ([50.0, 50.011], "look like logits"),
        ([-1.0, 101.0], "look like logits"),
        ([0.0, -np.inf], "look like log-probabilities"),
        ([0.0, -1.0], "look like logits"),
        ([-np.inf, 1.0], "a value is infinite"),
    ],
)
def test_what_bad_probabilities_look_like(row, message):
    with pytest.raises(ValueError, match=f"row 1: .*{message}"):
        ecuas_score([0, 1], [[0.5, 0.5], row])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.25, 0.75], "pass log_proba=False"),
        ([0.0, 1.0], "pass log_proba=False"),
        ([1.5, -0.5], "look like logits"),
        ([0.001, -7.0], "look like logits"),
        ([0.0, 0.0], "exponentials add up to 2, not 1 "),
        ([np.nan, 0.0], "a value is NaN"),
    ],
)
def test_what_bad_log_probabilities_look_like(row, message):
    with pytest.raises(ValueError, match=f"row 1: .*{message}"):
        ecuas_score([0, 1], [np.log([0.5, 0.5]), row], log_proba=True)


def test_sums_that_miss_1_by_rounding_pass():
    exact = ecuas_score([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    for total in (1 - 9e-5, 1 + 9e-5):
        rows = np.array([[0.5, 0.5], [0.5, total - 0.5]])
        assert ecuas_score([0, 1], rows) == pytest.approx(exact, abs=1e-3)
        assert ecuas_score([0, 1], np.log(rows), log_proba=True) == pytest.approx(exact, abs=1e-3)


def test_the_worst_row_is_named():
    rows = [[0.5, 0.4], [0.5, 0.1], [1.7, -0.7], [np.inf, 0.0], [np.nan, 0.5]]
    y = [0, 1, 0, 1, 0]
    for n, message in ((2, "row 1: .* 0.6"), (3, "row 2"), (4, "row 3"), (5, "row 4: .* NaN")):
        with pytest.raises(ValueError, match=message):
            ecuas_score(y[:n], rows[:n])


@pytest.mark.parametrize(
    ("correct", "confidence", "message"),
    [
        ([1, 0], [0.5, np.nan], "row 1: confidence is nan"),
        ([1, 0], [0.5, 1.5], r"row 1: confidence is 1\.5"),
        ([1, 2], [0.5, 0.5], "row 1: correct is 2"),
        (
            [1],
            [0.5, 0.5],
            "correct has shape .* and confidence .*; give two lists of the same length",
        ),
        ([1, 0], pd.Series([0.5, pd.NA], dtype="Float64"), "row 1: confidence is nan"),
    ],
)
def test_bad_confidences(correct, confidence, message):
    for make in (ecuas_from_confidence, metrics.Answers.from_confidence):
        with pytest.raises(ValueError, match=message):
            make(correct, confidence)


@pytest.mark.parametrize("n_classes", ["a", None, 0, 1, np.nan])
def test_bad_number_of_classes(n_classes):
    with pytest.raises(ValueError, match="n_classes must be a number of at least 2"):
        ecuas_from_confidence([1, 0], [0.5, 0.5], n_classes=n_classes)


def test_the_worst_row_of_all_is_named():
    P = np.tile([0.9, 0.1], (200_000, 1))
    y = np.arange(len(P)) % 2
    P[5], P[150_000] = [0.9, 0.2], [5, 5]
    with pytest.raises(ValueError, match="row 150000: these look like logits"):
        ecuas_score(y, P)
    P[170_000, 1] = np.nan
    with pytest.raises(ValueError, match="row 170000: a value is NaN"):
        ecuas_score(y, P)


def test_scorer_in_searches():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        GaussianNB(), {"var_smoothing": [1e3, 1e-9]}, scoring=make_ecuas_scorer(n=0)
    ).fit(X, y)
    assert search.best_params_ == {"var_smoothing": 1e-9}
    assert search.best_score_ < 0
    X, y = make_trajectories(200, sharpness=2, random_state=0, return_X_y=True)
    pipeline = make_pipeline(PlattCrossFitCalibrator(), TraceAggregator())
    scores = cross_val_score(pipeline, X, y, scoring=make_ecuas_scorer(normalize=True), cv=3)
    assert ((scores < 0) & (scores > -1)).all()


def test_folds_that_lack_a_class():
    X, y = load_iris(return_X_y=True)
    train, test = np.r_[0:40, 50:90, 100:140], np.r_[40:50, 90:100]
    model = GaussianNB()
    proba = model.fit(X[train], y[train]).predict_proba(X[test])
    expected = -ecuas_score(y[test], proba, labels=range(3))
    assert ecuas_score(y[test], proba) == -expected  # the classes are numbers of columns
    for labels in ([0, 1, 2], [1, 2, 3], [0, 2, 5], [-1, 0, 1], ["a", "b", "c"]):
        renamed = np.array(labels)[y]
        scorer = make_ecuas_scorer(labels=labels)
        found = cross_val_score(model, X, renamed, cv=[(train, test)], scoring=scorer)
        assert found == pytest.approx(expected)
        fitted = model.fit(X[train], renamed[train])
        with pytest.raises(ValueError, match="pass labels="):
            make_ecuas_scorer()(fitted, X[test], renamed[test])


@pytest.mark.parametrize("labels", [[-1, 0], [0, 1], [False, True], ["a", "b"]])
@pytest.mark.parametrize("there", [0, 1])
def test_folds_of_one_class(labels, there):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100, :1], y[:100]
    names = np.array(labels)[y]
    model, here = GaussianNB().fit(X, names), y == there
    expected = -ecuas_score(y[here], model.predict_proba(X[here]), labels=[0, 1])
    scorer = make_ecuas_scorer(labels=labels)
    assert scorer(model, X[here], names[here]) == pytest.approx(expected)
    with pytest.raises(ValueError, match="only 1 of 2 classes occur in this fold"):
        make_ecuas_scorer()(model, X[here], names[here])


@pytest.mark.parametrize("eps", [1e-7, 1e-3])
def test_the_floor_of_u_is_the_same_share_for_every_cost(eps):
    def certain_error(K, **how):
        return ecuas_score([1], np.eye(K)[[0]], n=0, eps=eps, labels=range(K), **how)

    for K in (2, 3, 5):
        x = eps / (1 - 1 / K)
        assert certain_error(K) == pytest.approx(x - np.log(x) / (1 - 1 / K), rel=1e-9)
        as_matrix = certain_error(K, cost=1 - np.eye(K))
        assert as_matrix == pytest.approx(certain_error(K), rel=1e-9)
        # for the logarithmic cost it is a floor of probabilities too
        x = eps / np.log(K)
        stated = certain_error(K, cost="log")
        assert stated == pytest.approx(x + np.log(x) * np.log(eps) / np.log(K), rel=1e-9)
    x, top = eps / (2 / 3), largest_uncertainty(ASYMMETRIC)
    expected = x - np.log(x) * ASYMMETRIC[1, 0] / top
    assert certain_error(3, cost=ASYMMETRIC) == pytest.approx(expected, rel=1e-9)


NO_ZERO = np.array([[1.0, 2.0, 1.5], [4.0, 0.5, 1.5], [3.0, 3.0, 2.5]])


@pytest.mark.parametrize("n", [0, 0.5, 1, 7])
def test_a_class_need_not_have_a_decision_that_costs_nothing(rng, n):
    P, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    expected = P @ NO_ZERO
    decided, u = expected.argmin(axis=1), expected.min(axis=1)
    u_max = metrics.largest_uncertainty(NO_ZERO)
    paid, alpha = NO_ZERO[y, decided], (n + 1) * u_max ** -(n + 1)
    # Eq. 9, as it is printed
    if n == 0:
        by_hand = alpha * u + alpha * (np.log(u_max) - np.log(u)) * paid
    else:
        by_hand = alpha / (n + 1) * u ** (n + 1) + alpha / n * (u_max**n - u**n) * paid
    assert ecuas_score(y, P, n=n, cost=NO_ZERO) == pytest.approx(by_hand.mean(), rel=1e-9)
    # from one's own decisions
    found = metrics.Answers.from_decisions(paid, u, u_max=u_max).ecuas(n=n)
    assert found == pytest.approx(by_hand.mean(), rel=1e-9)
    assert ecuas_score(y, np.log(P), n=n, cost=NO_ZERO, log_proba=True) == pytest.approx(found)


def test_the_truth_costs_least_whatever_the_matrix(rng):
    q = np.array([0.5, 0.2, 0.3])
    for n in (0, 1, 3):
        honest = sum(
            q[k] * ecuas_score([k], [q], n=n, cost=NO_ZERO, labels=range(3)) for k in range(3)
        )
        for other in rng.dirichlet(np.ones(3), 8):
            told = [ecuas_score([k], [other], n=n, cost=NO_ZERO, labels=range(3)) for k in range(3)]
            assert q @ told >= honest - 1e-12


def test_rounding_does_not_choose_among_equal_decisions():
    # both decisions are expected to cost .3, the second one 5e-17 less
    cost = np.array([[0.0, 0.9, 1], [0.1, 0.0, 1], [0.8, 0.0, 1]])
    P = [[1 / 3, 1 / 3, 1 / 3]]
    for proba, log in ((P, False), (np.log(P), True)):
        paid = [
            ecuas_score([k], proba, cost=cost, labels=range(3), log_proba=log) for k in range(3)
        ]
        u_max = metrics.largest_uncertainty(cost)
        expected = [
            metrics.Answers.from_decisions([cost[k, 0]], [0.3], u_max=u_max).ecuas()
            for k in range(3)
        ]
        np.testing.assert_allclose(paid, expected, rtol=1e-9)


def test_decisions_and_confidences_are_the_same_thing(rng):
    c, right = rng.random(50), rng.integers(0, 2, 50)
    weight = rng.integers(1, 4, 50)
    for n in (0, 1, 128):
        found = metrics.Answers.from_decisions(
            1 - right, 1 - c, u_max=1, sample_weight=weight
        ).ecuas(n=n)
        expected = ecuas_from_confidence(right, c, n=n, sample_weight=weight)
        assert found == pytest.approx(expected, rel=1e-12)


def test_decisions_in_another_unit_cost_the_same(rng):
    paid, u = rng.random(40) * 3, rng.random(40)
    for n in (0, 1):
        found = metrics.Answers.from_decisions(paid * 700, u * 700, u_max=700).ecuas(n=n)
        assert found == pytest.approx(
            metrics.Answers.from_decisions(paid, u, u_max=1).ecuas(n=n), rel=1e-9
        )
    # u has a floor, as a share of u_M, under the logarithm of n = 0 only
    floored = metrics.Answers.from_decisions([1.0], [0.0], u_max=5, eps=1e-3).ecuas(n=0)
    assert floored == metrics.Answers.from_decisions([1.0], [5e-3], u_max=5).ecuas(n=0)
    assert metrics.Answers.from_decisions([5.0], [0.0], u_max=5).ecuas(n=1) == 2


def test_uncertainties_above_the_largest_are_warned_of():
    with pytest.warns(UserWarning, match="1 uncertainties lie above the largest possible one, 2"):
        assert metrics.Answers.from_decisions([1.0, 0.0], [3.0, 0.0], u_max=2).ecuas() == 0.5


@pytest.mark.parametrize(
    ("paid", "u", "u_max", "message"),
    [
        ([1, -1], [0, 0], 1, "row 1: paid is -1; it must be finite and >= 0"),
        ([1, np.nan], [0, 0], 1, "row 1: paid is nan"),
        ([1, 1], [np.inf, 0], 1, "row 0: u is inf; it must be finite and >= 0"),
        ([1, 1], [0], 1, r"paid has shape \(2,\) and u \(1,\); give two lists"),
        ([], [], 1, "paid has shape .*; give two lists of the same length"),
        ([1], [0], 0, "u_max must be a finite number above 0, got 0"),
        ([1], [0], np.inf, "u_max must be a finite number above 0"),
        ([1], [0], [[0, 1], [1, 0]], "u_max must be a finite number above 0"),
    ],
)
def test_bad_decisions(paid, u, u_max, message):
    with pytest.raises(ValueError, match=message):
        metrics.Answers.from_decisions(paid, u, u_max=u_max)


def test_the_decision_that_costs_nothing_is_named():
    cost = [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0]]
    with pytest.raises(ValueError, match="decision 2 costs nothing for any class"):
        ecuas_score([0, 1], [[0.9, 0.1], [0.4, 0.6]], cost=cost)


def test_no_floor_at_all():
    P = [[0.9, 0.1], [0.4, 0.6]]
    assert ecuas_score([0, 1], P, n=1, eps=0) == ecuas_score([0, 1], P, n=1)


def test_a_floor_above_the_largest_uncertainty_leaves_that_one():
    least_sure = ecuas_score([0], [[0.5, 0.5]], n=0, labels=[0, 1])
    assert ecuas_score([0], [[0.9, 0.1]], n=0, labels=[0, 1], eps=0.9) == least_sure


def test_settings_of_answers_are_those_of_the_functions(rng):
    P, y = rng.dirichlet(np.ones(3), 30), rng.integers(0, 3, 30)
    for how in ({}, {"cost": ASYMMETRIC}, {"cost": "log"}):
        expected = ecuas_score(y, P, n=0, normalize=True, **how)
        assert metrics.Answers.from_proba(y, P, **how).ecuas(0, normalize=True) == expected
    with pytest.raises(ValueError, match="normalize=True needs class probabilities"):
        metrics.Answers.from_confidence([1, 0], [0.9, 0.4]).ecuas(normalize=True)
    assert ecuas_from_confidence([0], [1.0], n=0, eps=1e-3) == pytest.approx(1e-3 - np.log(1e-3))
    X, model = rng.normal(size=(30, 2)), GaussianNB()
    scorer = make_ecuas_scorer(0, cost=ASYMMETRIC, labels=range(3))
    found = scorer(model.fit(X, y), X, y)
    assert found == -ecuas_score(y, model.predict_proba(X), n=0, cost=ASYMMETRIC)


def test_where_the_naive_system_costs_nothing():
    # the class of which the free decision would be wrong never occurs
    options = {"labels": [0, 1, 2], "cost": [[0, 1], [0, 1], [1, 0]]}
    answers = metrics.Answers.from_proba([0, 1], [[0.5, 0.25, 0.25]] * 2, **options)
    with pytest.raises(ValueError, match="the naive system costs 0 with this cost matrix; use"):
        answers.ecuas(normalize=True)
    assert answers.ecuas() > 0


def test_runs_of_several_steps_are_refused():
    with pytest.raises(ValueError, match=r"one probability a run is needed: ecuas_from_confidence"):
        ecuas_score([1, 0], TrajectoryArray([0.5, 0.4, 0.2], [1, 2]))
