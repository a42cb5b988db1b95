"""Shares of success learnt from features, with a classifier that returns the weighted mean."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trajscore.censoring._shares import (
    ConstantOutcomeError,
    _with_squares,
    cross_fit_shares,
    fit_shares,
    predict_success,
)


class Mean(ClassifierMixin, BaseEstimator):
    """Says for every row the weighted share of the label 1."""

    def fit(self, X, y, sample_weight):
        self.classes_ = np.unique(y)[::-1]
        self.X_, self.share_ = X, np.average(y, weights=sample_weight)
        return self

    def predict_proba(self, X):
        return np.tile([self.share_, 1 - self.share_], (len(X), 1))


TABLE = np.arange(8.0).reshape(4, 2)
SHARE, WEIGHT = np.array([1.0, 0.0, 0.25, 0.5]), np.array([1.0, 2.0, 4.0, 0.0])


def test_shares_are_weighted_successes_and_failures():
    model = fit_shares(Mean(), TABLE, SHARE, WEIGHT)
    assert model.share_ == pytest.approx((1 + 1) / 7)
    # rows: successes, then failures, each only where it has a weight
    np.testing.assert_array_equal(model.X_, TABLE[[0, 2, 1, 2]])
    np.testing.assert_allclose(predict_success(model, TABLE), [2 / 7] * 4)
    assert predict_success(model, TABLE[:0]).shape == (0,)


def test_a_classifier_is_copied_and_a_pipeline_gets_the_weights_at_its_end():
    mine = Mean()
    assert fit_shares(mine, TABLE, SHARE, WEIGHT) is not mine
    assert not hasattr(mine, "share_")
    piped = fit_shares(make_pipeline(StandardScaler(), Mean()), TABLE, SHARE, WEIGHT)
    assert piped[-1].share_ == pytest.approx(2 / 7)


def test_the_default_is_a_logistic_regression_on_squares():
    table = np.random.default_rng(0).normal(size=(60, 2))
    share = (np.abs(table[:, 0]) > 0.7).astype(float)
    weight = np.linspace(0.5, 2, 60)
    x = (table - table.mean(axis=0)) / table.std(axis=0)
    expected = LogisticRegression(solver="newton-cholesky")
    found = predict_success(fit_shares(None, table, share, np.ones(60)), table)
    squares = np.column_stack([x, x**2])
    expected.fit(squares, share)
    np.testing.assert_allclose(found, expected.predict_proba(squares)[:, 1], atol=1e-6)
    weighted = predict_success(fit_shares(None, table, share, weight), table)
    assert abs(weighted - found).max() > 1e-3
    np.testing.assert_array_equal(_with_squares(np.array([[2.0, -3.0]])), [[2, -3, 4, 9]])


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_one_outcome_alone_teaches_nothing(share):
    with pytest.raises(ConstantOutcomeError, match="constant outcome") as caught:
        fit_shares(Mean(), TABLE, np.full(4, share), WEIGHT)
    assert caught.value.share == share
    with pytest.raises(ValueError, match="none of the runs to learn q_Z from has a weight above 0"):
        fit_shares(Mean(), TABLE, SHARE, np.zeros(4))


def test_estimates_are_out_of_fold():
    fold = np.array([0, 1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cross_fit_shares(Mean(), TABLE, SHARE, np.ones(4), fold)
    np.testing.assert_allclose(found, [0.25, 0.625, 0.25, 0.625])


def test_a_constant_outcome_elsewhere_is_the_estimate():
    fold = np.array([0, 0, 1, 1])
    share = np.array([0.0, 1.0, 1.0, 1.0])
    with pytest.warns(UserWarning, match=r"outside fold 0 \(from 0\) of cv .* share, 1, is the"):
        found = cross_fit_shares(Mean(), TABLE, share, np.ones(4), fold)
    np.testing.assert_allclose(found, [1, 1, 0.5, 0.5])
