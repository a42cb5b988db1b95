import pickle
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from trajscore.calibration import AffineCalibrator
from trajscore.calibration._affine import (
    _margins,
    _warn_of_probabilities,
    _warn_unless_converged,
)


@pytest.fixture
def sample(rng):
    y = rng.integers(0, 4, 600)
    logits = rng.normal(size=(600, 4)) + 1.5 * np.eye(4)[y]
    return log_softmax(3 * logits + [1, 0, -1, 0.5], axis=1), y


@pytest.mark.parametrize("bias", [True, False])
def test_the_gradient_is_zero(sample, bias):
    log_p, y = sample
    fitted = AffineCalibrator(bias=bias).fit(log_p, y)
    residual = fitted.predict_proba(log_p) - np.eye(4)[y]
    assert abs((residual * log_p).sum()) / len(y) < 1e-6
    if bias:
        np.testing.assert_allclose(residual.mean(axis=0), 0, atol=1e-7)
    else:
        assert (fitted.bias_ == 0).all()


def test_recovers_a_distortion(rng):
    y = rng.integers(0, 3, 40_000)
    true = log_softmax(rng.normal(size=(40_000, 3)), axis=1)
    y = (np.cumsum(np.exp(true), axis=1) < rng.random((40_000, 1))).sum(axis=1)
    fitted = AffineCalibrator().fit(2.5 * true + [0.7, 0, -0.7], y)
    assert fitted.scale_ == pytest.approx(1 / 2.5, abs=0.02)
    np.testing.assert_allclose(fitted.bias_, [-0.28, 0, 0.28], atol=0.04)


def test_two_classes_is_an_unpenalised_logistic_regression(rng):
    y = rng.integers(0, 2, 500)
    x = rng.normal(size=500) + y
    log_p = log_softmax(np.stack([np.zeros(500), x], axis=1), axis=1)
    fitted = AffineCalibrator().fit(log_p, y)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:, None], y)
    expected = model.predict_proba(x[:, None])
    np.testing.assert_allclose(fitted.predict_proba(log_p), expected, atol=1e-5)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_scores_does_not_matter(sample, unit):
    log_p, y = sample
    plain, other = AffineCalibrator().fit(log_p, y), AffineCalibrator().fit(unit * log_p, y)
    np.testing.assert_allclose(unit * other.scale_, plain.scale_, rtol=1e-6)
    np.testing.assert_allclose(other.bias_, plain.bias_, atol=1e-6)


def test_temperature_keeps_decisions(sample):
    log_p, y = sample
    scaler = AffineCalibrator(bias=False).fit(log_p, y)
    assert scaler.scale_ > 0
    assert (scaler.predict(log_p) == log_p.argmax(axis=1)).all()
    np.testing.assert_allclose(np.exp(scaler.transform(log_p)), scaler.predict_proba(log_p))


def test_weights_and_cross_validation(sample):
    log_p, y = sample
    weight = np.ones(len(y))
    weight[:3], weight[3:6] = 2, 0
    rows = np.r_[0:3, 0:3, 6 : len(y)]
    weighted = AffineCalibrator().fit(log_p, y, sample_weight=weight)
    repeated = AffineCalibrator().fit(log_p[rows], y[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(log_p), repeated.predict_proba(log_p), atol=1e-6
    )
    out = cross_val_predict(AffineCalibrator(), log_p, y, cv=3, method="predict_proba")
    assert out.shape == log_p.shape


def test_a_class_without_runs_is_refused(sample):
    log_p, y = sample
    with pytest.raises(ValueError, match="y has 3 classes and X 4 columns"):
        AffineCalibrator().fit(log_p[y < 3], y[y < 3])


def test_a_class_without_weight_is_refused(sample):
    log_p, y = sample
    with pytest.raises(ValueError, match="all samples of class 2 have a weight of 0"):
        AffineCalibrator().fit(log_p, y, sample_weight=(y != 2) * 1.0)


def test_separable_classes_have_no_optimum(rng):
    y = np.repeat([0, 1], 20)
    gap = np.concatenate([-rng.uniform(1, 3, 20), rng.uniform(1, 3, 20)])
    separable = log_softmax(np.stack([np.zeros(40), gap], axis=1), axis=1)
    gap[[0, 20]] = 0  # one tie: all others are still pushed apart for ever
    tied = log_softmax(np.stack([np.zeros(40), gap], axis=1), axis=1)
    for calibrator in (AffineCalibrator(), AffineCalibrator(bias=False)):
        for log_p in (separable, -separable, tied):
            with pytest.warns(ConvergenceWarning, match="perfectly separable"):
                calibrator.fit(log_p, y)
        y_wrong = y.copy()
        y_wrong[3] = 1
        calibrator.fit(separable, y_wrong)  # has an optimum
        with pytest.warns(ConvergenceWarning, match="perfectly separable"):
            calibrator.fit(separable, y_wrong, sample_weight=(np.arange(40) != 3) * 1.0)


def test_says_that_it_stopped_before_its_optimum(rng):
    y = rng.integers(0, 3, 300)
    log_p = rng.normal(size=(300, 3))
    log_p[:5] *= 1e20
    with pytest.warns(ConvergenceWarning, match="has stopped before its optimum.*very large"):
        AffineCalibrator().fit(log_p, y)


def test_probabilities_instead_of_logarithms(sample):
    log_p, y = sample
    with pytest.warns(UserWarning, match="looks like probabilities.*pass their logarithms"):
        AffineCalibrator().fit(np.exp(log_p), y)


def test_bad_settings(sample):
    log_p, y = sample
    with pytest.raises(ValueError, match="bias must be True or False, got 'x'"):
        AffineCalibrator(bias="x").fit(log_p, y)
    with pytest.raises(ValueError, match="X has one column"):
        AffineCalibrator().fit(log_p[:, :1], y * 0)


class AnyFeatures(AffineCalibrator):
    """Makes as many columns as there are classes out of the features that checks pass."""

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        inner = AffineCalibrator(bias=self.bias).fit(self._project(X, y), y, sample_weight)
        for name in ("scale_", "bias_", "classes_", "n_iter_"):
            setattr(self, name, getattr(inner, name))
        return self

    def _project(self, X, y=None):
        K = len(self.classes_) if y is None else len(np.unique(y))
        centre = np.linspace(-1, 1, K)
        return -((X[:, :1] - 3 * centre) ** 2) / 10

    def _affine(self, X):
        check_is_fitted(self)
        return self.scale_ * self._project(validate_data(self, X, reset=False)) + self.bias_


NEEDS_A_SCORE_A_CLASS = {
    "check_classifiers_train": "the checks' features are no scores of classes",
}


# some checks fit a handful of samples, which can be told apart perfectly
@pytest.mark.filterwarnings("ignore:the classes are perfectly separable")
@parametrize_with_checks(
    [AnyFeatures()], expected_failed_checks=lambda estimator: NEEDS_A_SCORE_A_CLASS
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_clones_and_pickles():
    for calibrator in (AffineCalibrator(), AffineCalibrator(bias=False)):
        assert type(clone(calibrator)) is type(calibrator)
        assert clone(calibrator).get_params() == calibrator.get_params()
        assert pickle.loads(pickle.dumps(calibrator)).get_params() == calibrator.get_params()


@pytest.mark.parametrize("wrong", [-np.inf, np.nan])
def test_names_the_row_of_a_value_that_is_not_finite(sample, wrong):
    log_p, y = sample
    fitted = AffineCalibrator().fit(log_p, y)
    log_p[7, 2] = wrong
    for call in (lambda: AffineCalibrator().fit(log_p, y), lambda: fitted.transform(log_p)):
        with pytest.raises(ValueError, match="row 7: the log-probability of column 2 is"):
            call()


@pytest.mark.parametrize(
    ("rows", "warns"),
    [
        ([[0.25, 0.75], [0.5, 0.5], [0.0, 1.0]], True),
        ([[0.25, 0.75009], [0.5, 0.5], [0.6, 0.4]], True),
        ([[0.25, 0.7502], [0.5, 0.5], [0.6, 0.4]], False),  # does not add up to 1
        ([[-0.1, 1.1], [0.5, 0.5], [0.6, 0.4]], False),
        ([[0.0, 1.01], [0.5, 0.5], [0.6, 0.4]], False),
    ],
)
def test_rows_that_look_like_probabilities(rows, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AffineCalibrator(bias=False).fit(rows, [0, 1, 1])
    assert any("looks like probabilities" in str(one.message) for one in caught) == warns


def test_classes_by_name():
    log_p = np.log([[0.7, 0.3], [0.4, 0.6], [0.6, 0.4], [0.2, 0.8]])
    y = ["no", "yes", "yes", "no"]
    fitted = AffineCalibrator().fit(log_p, y)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.get_feature_names_out().tolist() == ["log_p_no", "log_p_yes"]
    assert fitted.bias_.sum() == pytest.approx(0)
    assert fitted.n_iter_ >= 1
    p = fitted.predict_proba(log_p)
    expected = np.where(p[:, 1] > 0.5, "yes", "no")
    assert fitted.predict(log_p).tolist() == expected.tolist()
    z = fitted.scale_ * log_p + fitted.bias_
    np.testing.assert_allclose(p, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True))
    with pytest.raises(ValueError, match="all samples of class 'no' have a weight of 0"):
        AffineCalibrator().fit(log_p, y, sample_weight=[0, 1, 1, 0])


@pytest.mark.parametrize(
    ("row", "looks"),
    [
        ([0.0, 1.0, 0.0], True), ([0.2, 0.3, 0.49991], True), ([0.2, 0.3, 0.4998], False),
        ([0.2, 0.3, 0.50009], True), ([0.2, 0.3, 0.5002], False),
        ([-0.5, 0.75, 0.75], False), ([-0.1, 0.0, 1.1], False), ([-0.1, -0.2, -0.3], False),
    ],
)  # fmt: skip
def test_what_looks_like_probabilities(row, looks):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warn_of_probabilities(np.array([row, [0.25, 0.25, 0.5]]))
    assert len(caught) == looks


@pytest.mark.parametrize(
    ("margins", "success", "gradient", "problem"),
    [
        ([0.5, 0.0], True, [0.0], "perfectly separable"),
        ([1.0, -1e-9], True, [0.0], "perfectly separable"),
        ([1.0, -2e-9], True, [1.0], None),
        ([0.0, 0.0], True, [0.0], None),  # all are tied
        ([1.0, -1.0], False, [0.0, 2e-6], "with a gradient of 2e-06 .odd.; check X"),
        ([1.0, -1.0], False, [0.0, -2e-6], "with a gradient of 2e-06 .odd.; check X"),
        ([1.0, -1.0], False, [1e-6], None),
    ],
)
def test_what_is_said_of_a_fit(margins, success, gradient, problem):
    optimum = SimpleNamespace(success=success, jac=np.array(gradient), message="odd")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warn_unless_converged(np.array(margins), optimum)
    assert len(caught) == (problem is not None)
    if problem:
        assert re.search(problem, str(caught[0].message))
        assert caught[0].category is ConvergenceWarning


def test_margins_by_hand():
    z = np.array([[0.0, 2.0, 1.0], [3.0, 1.0, -1.0]])
    np.testing.assert_allclose(_margins(z, np.array([1, 2])), [1.0, -4.0])
