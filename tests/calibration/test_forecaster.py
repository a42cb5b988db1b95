"""Forecasters step by step: one's own, chains of them, and those of other people."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trajscore import (
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
    TrajectoryArray,
    tps_scorer,
)
from trajscore.calibration import (
    AliveRate,
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
    cross_fit_traces,
)
from trajscore.calibration.forecaster import (
    Chain,
    Replay,
    fit_arguments,
    live_form,
    takes_missing,
)
from trajscore.datasets import make_trajectories

SUMMARY = PrefixForecaster(features="summary", pooled=True)


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(150, lengths=(1, 6), random_state=0, return_X_y=True)


class LargestSoFar(TransformerMixin, BaseEstimator):
    """Another person's forecaster; it insists on the form that it was fitted on."""

    def fit(self, X, y=None):
        self.form_ = (X.channels, X.cells.ndim)
        return self

    def transform(self, X):
        assert (X.channels, X.cells.ndim) == self.form_
        first = X.cells if X.cells.ndim == 1 else X.cells[:, 0]
        largest = [np.maximum.accumulate(run) for run in X.with_cells(first)]
        return X.with_cells(np.concatenate(largest))


def followed(live, X):
    """Forecasts of all runs at once, step by step; runs that end leave."""
    out = [[] for _ in range(len(X))]
    state, rows = live.begin(len(X)), np.arange(len(X))
    for t in range(1, int(X.lengths.max()) + 1):
        scores = np.stack([np.atleast_1d(X[int(row)][t - 1]) for row in rows])
        ends = X.lengths[rows] == t
        state, p = live.advance(state, scores, ends)
        for row, one in zip(rows, p, strict=True):
            out[row].append(one)
        rows = rows[~ends]
    return np.concatenate(out)


FORECASTERS = {
    "own": (SUMMARY, Chain),
    "map": (PlattCrossFitCalibrator(), Chain),
    "beta": (BetaCrossFitCalibrator(), Chain),
    "isotonic": (IsotonicCrossFitCalibrator(), Chain),
    "ensemble": (EnsembleCrossFitCalibrator(), Chain),
    "alive rate": (AliveRate(end="step"), Chain),
    "chain": (make_pipeline(SUMMARY, "passthrough", PlattCrossFitCalibrator()), Chain),
    "search in a pipeline": (
        make_pipeline(
            GridSearchCV(SUMMARY, {"last": [1]}, scoring=tps_scorer, cv=2), TraceAggregator()
        ),
        Chain,
    ),
    "foreign": (LargestSoFar(), Replay),
    "chain with a foreign one": (make_pipeline(LargestSoFar(), PlattCrossFitCalibrator()), Replay),
}


@pytest.mark.parametrize(("forecaster", "kind"), FORECASTERS.values(), ids=FORECASTERS)
def test_every_forecaster_can_be_followed(runs, forecaster, kind):
    X, y = runs
    fitted = forecaster.fit(X, y)
    live = live_form(fitted, 1)
    assert isinstance(live, kind)
    np.testing.assert_array_equal(followed(live, X), fitted.transform(X).cells)
    frozen = live_form(FrozenEstimator(fitted), 1)
    assert isinstance(frozen, kind)
    np.testing.assert_array_equal(followed(frozen, X[:9]), fitted.transform(X[:9]).cells)


@pytest.mark.parametrize("channels", [None, ("judge",), ("judge", "verbal")])
def test_a_replay_has_the_form_of_the_training_runs(runs, channels):
    X, y = runs
    if channels is not None:
        both = np.stack([X.cells, X.cells**2], axis=1)
        X = X.with_cells(both if len(channels) == 2 else X.cells, channels=channels)
    fitted = LargestSoFar().fit(X, y)
    live = live_form(fitted, X.n_channels, X.channels)
    np.testing.assert_array_equal(followed(live, X), fitted.transform(X).cells)


@pytest.mark.parametrize(
    "forecaster",
    [PlattCrossFitCalibrator(), SUMMARY, TraceAggregator(), IsotonicCrossFitCalibrator()],
    ids=["map", "prefix", "aggregator", "isotonic"],
)
def test_a_single_channel_keeps_its_name(runs, forecaster):
    X, y = runs
    both = TrajectoryArray.stack([X, X], channels=["judge", "verbal"])
    for one in (both["judge"], both[["judge"]]):
        fitted = forecaster.fit(one, y)
        names = [fitted.transform(one).channels, cross_fit_traces(forecaster, one, y).channels]
        assert [*names, tuple(fitted.get_feature_names_out())] == [("judge",)] * 3
    assert tuple(forecaster.fit(X, y).get_feature_names_out()) == ("probability",)


def test_without_a_forecaster_scores_are_forecasts(runs):
    for none in (None, "passthrough"):
        np.testing.assert_array_equal(followed(live_form(none, 1), runs[0]), runs[0].cells)


def test_zero_and_one_are_forecasts():
    aggregator = TraceAggregator().fit([[0.5]], [1])
    _, p = aggregator.advance(aggregator.begin(2), [0.0, 1.0])
    assert p.tolist() == [0, 1]
    for wrong in (-0.01, 1.01):
        with pytest.raises(ValueError, match=f"forecast {wrong:g} lies outside"):
            aggregator.advance(aggregator.begin(2), [0.5, wrong])


def test_two_classes_by_a_softmax_have_twice_the_logit(runs):
    try:
        model = LogisticRegression(multi_class="multinomial")
    except TypeError:
        pytest.skip("this scikit-learn has no such parameter")
    X, y = runs
    forecaster = PrefixForecaster(model, features="last", last=1, min_class_count=1)
    with pytest.warns(FutureWarning, match="multi_class"):
        forecaster.fit(X.prefix(1), y)
    fitted = forecaster.estimators_[0]
    z = X.prefix(1).cells * fitted.coef_[0, 0] + fitted.intercept_[0]
    p = forecaster.transform(X.prefix(1)).cells
    np.testing.assert_allclose(logit(p), 2 * z, rtol=1e-9)
    assert np.abs(p - expit(z)).max() > 1e-3


TREES, LOGISTIC = HistGradientBoostingClassifier(), LogisticRegression()


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (TREES, True),
        (LOGISTIC, False),
        (object(), False),
        (make_pipeline(SimpleImputer(), LOGISTIC), True),
        (make_pipeline(StandardScaler(), LOGISTIC), False),
        (make_pipeline(StandardScaler(), TREES), True),
        (make_pipeline(StandardScaler(), SimpleImputer(), LOGISTIC), True),
        (make_pipeline(LOGISTIC), False),
        (make_pipeline("passthrough", None, TREES), True),
        (make_pipeline("passthrough", LOGISTIC), False),
        (make_pipeline(make_pipeline(SimpleImputer(), StandardScaler()), LOGISTIC), True),
        (GridSearchCV(TREES, {}), True),
        (GridSearchCV(make_pipeline(StandardScaler(), LOGISTIC), {}), False),
        # a selection keeps NaN, and this one refuses it by itself
        (make_pipeline(SelectKBest(), TREES), False),
    ],
)
def test_what_takes_missing_values(estimator, expected):
    assert takes_missing(estimator) is expected


GIVEN = {"groups": "g", "sample_weight": "w", "q_z": "q"}


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (PlattCrossFitCalibrator(), {"groups": "g", "sample_weight": "w"}),
        (PlattCrossFitCalibrator(censored="q_z"), GIVEN),
        (make_pipeline(SUMMARY, PlattCrossFitCalibrator(censored="q_z")), {
            "prefixforecaster__groups": "g", "prefixforecaster__sample_weight": "w",
            "plattcrossfitcalibrator__groups": "g", "plattcrossfitcalibrator__sample_weight": "w",
            "plattcrossfitcalibrator__q_z": "q",
        }),
        (make_pipeline("passthrough", LOGISTIC), {"logisticregression__sample_weight": "w"}),
        (GridSearchCV(LOGISTIC, {}, cv=3), {"sample_weight": "w"}),
        (GridSearchCV(LOGISTIC, {}, cv=GroupKFold()), {"sample_weight": "w", "groups": "g"}),
        (GridSearchCV(SUMMARY, {}), {"sample_weight": "w"}),
    ],
)  # fmt: skip
def test_what_a_fit_is_told(estimator, expected):
    assert fit_arguments(estimator, GIVEN) == expected
    without = {name: value for name, value in expected.items() if value != "w"}
    assert fit_arguments(estimator, {"groups": "g", "q_z": "q"}) == without


def test_weights_that_no_fit_takes_are_refused():
    with pytest.raises(ValueError, match="no fit of TraceAggregator takes it; leave it out"):
        fit_arguments(TraceAggregator(), GIVEN)
    assert fit_arguments(TraceAggregator(), {"groups": "g"}) == {}


class Square(PrefixForecaster):
    """Its forecasts are no numbers where the score is 2."""

    def _advance(self, state, scores, done):
        after, p = super()._advance(state, scores, done)
        return after, np.where(scores[:, 0] == 2, np.nan, p)


def test_forecasts_that_are_not_finite_are_refused_by_run_and_step(runs):
    X, y = runs
    forecaster = Square(features="last", last=1).fit(X, y)
    bad = TrajectoryArray([0.1, 0.2, 0.3, 2.0, 2.0], [2, 3])
    with pytest.raises(ValueError, match=r"row 1.*step 2: the forecast is not a finite number"):
        forecaster.transform(bad)
    with pytest.raises(ValueError, match="^the forecast is not a finite number; give scores on"):
        forecaster.advance(forecaster.begin(2), [0.5, 2.0])
