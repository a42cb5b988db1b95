"""The public checks must be able to fail."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
    TracerScorer,
    TrajectoryArray,
    check_outcomes,
)
from trajscore.testing import check_trajectory_estimator
from trajscore.tracer import SAUP, ChannelRisk


class Good(TransformerMixin, BaseEstimator):
    def fit(self, X, y):
        self.rate_ = float(np.mean(check_outcomes(y) == 1))
        return self

    def transform(self, X):
        return X.with_cells((X.cells + self.rate_) / 2)


class UsesRowOrder(Good):
    def fit(self, X, y):
        self.rate_ = float(X.cells[0])
        check_outcomes(y)
        return self


class Remembers(Good):
    def fit(self, X, y):
        self.rate_ = (getattr(self, "rate_", 0.0) + super().fit(X, y).rate_) / 2 + X.cells[0] / 9
        return self


class TakesAnyOutcome(Good):
    def fit(self, X, y):
        self.rate_ = float(np.mean(y) / 3)
        return self


class TakesNoMissingOutcome(Good):
    def fit(self, X, y):
        if (np.asarray(y) < 0).any():
            raise ValueError("an outcome is missing")
        return super().fit(X, y)


class ChangesItself(Good):
    def __init__(self, C=1):
        self.C = C

    def fit(self, X, y):
        self.C = 2
        return super().fit(X, y)


class ChangesOutcomes(Good):
    def fit(self, X, y):
        y[0] = 1 - y[0]
        return super().fit(X, y)


class ChangesRuns(Good):
    def fit(self, X, y):
        object.__setattr__(X, "ended", ~X.ended)
        return super().fit(X, y)


def another(method, body):
    """Make a class of which one method is not Good's, and which pickle finds."""
    name = f"Another{len(globals())}"
    globals()[name] = type(name, (Good,), {method: body, "__module__": __name__})
    return globals()[name]


def renamed(X):
    return TrajectoryArray(X.cells, X.lengths, horizon=X.horizon, ids=np.arange(len(X)) + 99)


def gives(transform):
    return another("transform", lambda _, X: transform(X))


def pickles(rate):
    return another("__getstate__", lambda self: {"rate_": rate(self.rate_)})


AboveOne = gives(lambda X: X.with_cells(X.cells + 1))
FAULTS = {
    "check_runs_kept": [
        gives(lambda X: TrajectoryArray(X.cells, X.lengths, ids=X.ids)),  # without horizons
        gives(renamed), gives(lambda X: X.padded()),
    ],
    "check_probabilities": [
        AboveOne, gives(lambda X: X.with_cells(X.cells - 1)),
        gives(lambda X: X.with_cells(np.stack([X.cells, X.cells], axis=1))),
    ],
    "check_no_look_ahead": [],  # many, in tests/calibration/test_look_ahead.py
    "check_row_order": [UsesRowOrder],
    "check_rows_alone": [gives(lambda X: X.with_cells(X.cells / max(X.cells.max(), len(X))))],
    "check_input_untouched": [ChangesItself, ChangesOutcomes, ChangesRuns],
    "check_persistence": [pickles(lambda _: 0.0), pickles(lambda rate: rate + 4e-9)],
    "check_refit": [Remembers],
    "check_missing_outcomes": [TakesAnyOutcome, TakesNoMissingOutcome],
    "check_pipeline_scoring": [AboveOne],
}  # fmt: skip
Sure = gives(lambda X: X.with_cells((X.cells > 0.5).astype(float)))
OffByHalfABillionth = pickles(lambda rate: rate + 1e-9)


def test_each_fault_is_found():
    for estimators in FAULTS.values():
        for estimator in estimators:
            with pytest.raises(AssertionError, match="^check_"):  # the first that fails
                check_trajectory_estimator(estimator())


def test_good_ones_pass():
    for estimator in (Good(), Sure(), OffByHalfABillionth(), TraceAggregator(),
                      PlattCrossFitCalibrator(cv=3),
                      PrefixForecaster(features="running", pooled=True)):  # fmt: skip
        assert set(check_trajectory_estimator(estimator)) == set(FAULTS)


def test_scorers_of_risk_and_monitors_pass_without_probabilities():
    left_out = {"check_probabilities", "check_missing_outcomes", "check_pipeline_scoring"}
    for estimator, channels in [
        (TracerScorer(), ["surprisal", "repetition"]),
        (TracerScorer(aggregation="separate"), ["surprisal", "repetition", "agent_gap"]),
        (SAUP(), ["surprisal", "repetition"]),
        (ChannelRisk(None, kind="count"), ["surprisal"]),
        (DensityRatioEProcess(PlattCrossFitCalibrator(), threshold="ville"), None),
    ]:
        passed = check_trajectory_estimator(estimator, channels=channels, probabilities=False)
        assert set(passed) == set(FAULTS) - left_out


def test_an_exception_is_named():
    with pytest.raises(AssertionError, match="check_.*Platt.* raised ValueError: C must be"):
        check_trajectory_estimator(PlattCrossFitCalibrator(C=-1))


class Notes(Good):
    """Notes what it is given, and passes on the last channel."""

    fitted: ClassVar[list] = []

    def fit(self, X, y):
        self.fitted.append((X, np.array(y)))
        return super().fit(X, y)

    def transform(self, X):
        return super().transform(X if X.channels is None else X[X.channels[-1]])


@pytest.fixture
def notes():
    Notes.fitted.clear()
    return Notes()


def test_channels_beside_the_first_are_noisier_copies_of_it(notes):
    check_trajectory_estimator(notes, channels=["a", "b", "c"])
    for cells in (notes.fitted[0][0].cells, max((X.cells for X, _ in notes.fitted), key=len)):
        correlation = np.corrcoef(cells.T)[0]
        assert 0.99 > correlation[1] > correlation[2] > 0.5
        assert 0 <= cells.min() <= cells.max() <= 1
