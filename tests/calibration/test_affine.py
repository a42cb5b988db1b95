"""Affine calibration of log-probabilities."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from trajscore.calibration import AffineCalibrator


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 600)
    logits = rng.normal(size=(600, 4)) + 1.5 * np.eye(4)[y]
    return log_softmax(3 * logits + [1, 0, -1, 0.5], axis=1), y


def two_classes(gap):
    return log_softmax(np.stack([np.zeros(len(gap)), gap], axis=1), axis=1)


@pytest.mark.parametrize("bias", [True, False])
def test_the_gradient_is_zero(sample, bias):
    log_p, y = sample
    fitted = AffineCalibrator(bias=bias).fit(log_p, y)
    p = fitted.predict_proba(log_p)
    residual = p - np.eye(4)[y]
    assert abs((residual * log_p).sum()) / len(y) < 1e-6
    if bias:
        np.testing.assert_allclose(residual.mean(axis=0), 0, atol=1e-7)
        assert fitted.bias_.sum() == pytest.approx(0)
    else:  # decisions stay
        assert (fitted.bias_ == 0).all()
        assert (fitted.predict(log_p) == log_p.argmax(axis=1)).all()
    z = np.exp(fitted.scale_ * log_p + fitted.bias_)
    np.testing.assert_allclose(p, z / z.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(np.exp(fitted.transform(log_p)), p)
    assert fitted.n_iter_ >= 1


def test_recovers_a_distortion(rng):
    true = log_softmax(rng.normal(size=(40_000, 3)), axis=1)
    y = (np.cumsum(np.exp(true), axis=1) < rng.random((40_000, 1))).sum(axis=1)
    fitted = AffineCalibrator().fit(2.5 * true + [0.7, 0, -0.7], y)
    assert fitted.scale_ == pytest.approx(1 / 2.5, abs=0.02)
    np.testing.assert_allclose(fitted.bias_, [-0.28, 0, 0.28], atol=0.04)


def test_two_classes_is_an_unpenalised_logistic_regression(rng):
    y = rng.integers(0, 2, 500)
    x = rng.normal(size=500) + y
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:, None], y)
    found = AffineCalibrator().fit(two_classes(x), y).predict_proba(two_classes(x))
    np.testing.assert_allclose(found, model.predict_proba(x[:, None]), atol=1e-5)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_neither_the_unit_nor_a_constant_of_the_row_matters(sample, unit, rng):
    log_p, y = sample
    plain, other = AffineCalibrator().fit(log_p, y), AffineCalibrator().fit(unit * log_p, y)
    np.testing.assert_allclose(unit * other.scale_, plain.scale_, rtol=1e-6)
    np.testing.assert_allclose(other.bias_, plain.bias_, atol=1e-6)
    moved = AffineCalibrator().fit(log_p + rng.normal(size=(600, 1)), y)
    assert moved.scale_ == pytest.approx(plain.scale_, rel=1e-5)


def test_separable_classes_have_no_optimum(rng):
    y = np.repeat([0, 1], 20)
    gap = np.concatenate([-rng.uniform(1, 3, 20), rng.uniform(1, 3, 20)])
    tied = gap.copy()
    tied[[0, 20]] = 0  # one tie: all others are still pushed apart for ever
    for calibrator in (AffineCalibrator(), AffineCalibrator(bias=False)):
        for log_p in (two_classes(gap), -two_classes(gap), two_classes(tied)):
            with pytest.warns(ConvergenceWarning, match="separable"):
                calibrator.fit(log_p, y)
        wrong = y.copy()
        wrong[3] = 1
        calibrator.fit(two_classes(gap), wrong)  # has an optimum
        with pytest.warns(ConvergenceWarning, match="separable"):
            calibrator.fit(two_classes(gap), wrong, sample_weight=(np.arange(40) != 3) * 1.0)
    AffineCalibrator().fit(np.zeros((4, 2)), [0, 1, 0, 1])  # all are tied


def test_rows_that_look_like_probabilities():
    for row, looks in (
        ([0.25, 0.75009], True),
        ([0.25, 0.7502], False),  # does not add up to 1
        ([-0.1, 1.1], False),
        ([0.0, 1.01], False),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            AffineCalibrator(bias=False).fit([row, [0.5, 0.5], [0.6, 0.4]], [0, 1, 1])
        assert any("logarithms" in str(one.message) for one in caught) == looks, row


def test_bad_input(sample):
    log_p, y = sample
    fitted = AffineCalibrator().fit(log_p, y)
    for call, words in (
        (lambda: AffineCalibrator(bias="x").fit(log_p, y), "bias .*'x'"),
        (lambda: AffineCalibrator().fit(log_p[:, :1], y * 0), "1 columns; .*two"),
        (lambda: AffineCalibrator().fit(log_p[y < 3], y[y < 3]), "3 classes .*4 columns"),
        (lambda: AffineCalibrator().fit(log_p, y, (y != 2) * 1.0), "3 classes .*some weight"),
        (lambda: AffineCalibrator().fit(log_p, [[1], [1, 2]]), "y must be an array"),
        (lambda: AffineCalibrator().fit([["a", "b"]], [1]), "log-probabilities"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="[Ss]parse"):
        AffineCalibrator().fit(csr_array(log_p), y)
    for wrong in (-np.inf, np.nan):
        broken = log_p.copy()
        broken[7, 2] = wrong
        for call in (lambda X: AffineCalibrator().fit(X, y), fitted.transform):
            with pytest.raises(ValueError, match="row 7: .*column 2 "):
                call(broken)
