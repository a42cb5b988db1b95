"""Forecasters, scorers and containers inside scikit-learn's own machinery."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    PredefinedSplit,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import any_two_labels, as_forecasts
from trajscore import (
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
    TrajectoryArray,
    censored_tps_scorer,
    make_censored_tps_scorer,
    make_tps_scorer,
    tps_scorer,
)
from trajscore.calibration import cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.metrics import censored_tps_score

GRID = {"plattcrossfitcalibrator__C": [1e-4, 1.0]}


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(150, sharpness=2, random_state=0, return_X_y=True)


@pytest.fixture
def pipeline():
    return make_pipeline(PlattCrossFitCalibrator(), TraceAggregator())


def test_one_cross_validation_with_both_kinds_of_scorers(runs, pipeline):
    scoring = {
        "log": tps_scorer,
        "brier": make_tps_scorer("brier", "uniform"),
        "auroc": "roc_auc",
        "scalar": "neg_brier_score",
    }
    scores = cross_validate(pipeline, *runs, scoring=scoring, cv=3)
    assert (scores["test_auroc"] > 0.6).all()
    assert (scores["test_log"] > np.log(0.5)).all()
    assert (scores["test_brier"] < 0).all()


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV])
def test_searches(runs, pipeline, search):
    options = {"n_iter": 2} if search is RandomizedSearchCV else {}
    if search is not GridSearchCV:
        options["random_state"] = 0
    found = search(pipeline, GRID, scoring=tps_scorer, cv=3, **options).fit(*runs)
    assert found.best_params_ == {"plattcrossfitcalibrator__C": 1.0}
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


def test_memory_unions_and_splits(runs, tmp_path):
    X, y = runs
    square = FunctionTransformer(lambda X: X.with_cells(X.cells**2))
    union = FeatureUnion([("p", FunctionTransformer()), ("square", square)]).fit(X)
    assert union.transform(X).channels == ("value0", "value1")
    parts = train_test_split(X, y, stratify=y, random_state=0)
    assert [len(part) for part in parts] == [112, 38, 112, 38]
    cached = make_pipeline(PlattCrossFitCalibrator(), TraceAggregator(), memory=str(tmp_path))
    first = cached.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(clone(cached).fit(X, y).predict_proba(X), first)
    assert cross_val_predict(cached, X, y, cv=3, method="predict_proba").shape == (150, 2)


def test_metadata_routing_of_q_z_and_weights(runs):
    X, y = runs
    codes = np.where(np.arange(len(y)) % 4 == 0, -1, y)
    q_z = np.linspace(0, 1, len(y))
    weight = np.linspace(0.5, 1.5, len(y))
    folds = PredefinedSplit(np.arange(len(y)) % 2)
    with config_context(enable_metadata_routing=True):
        asked, known = {"q_z": True, "sample_weight": True}, {"q_z": q_z, "sample_weight": weight}
        scorer = make_censored_tps_scorer(censored="q_z").set_score_request(**asked)
        calibrator = PlattCrossFitCalibrator(censored="q_z").set_fit_request(**asked)
        result = cross_validate(calibrator, X, codes, scoring=scorer, cv=folds, params=known)
    for score, (train, test) in zip(result["test_score"], folds.split(), strict=True):
        fitted = PlattCrossFitCalibrator(censored="q_z").fit(
            X[train], codes[train], sample_weight=weight[train], q_z=q_z[train]
        )
        expected = censored_tps_score(
            codes[test], fitted.transform(X[test]), q_z=q_z[test], sample_weight=weight[test]
        )
        assert score == expected


@pytest.fixture(scope="module")
def fifth(runs):
    """Runs a fifth of which were not observed."""
    X, y = runs
    return X, np.where(np.random.default_rng(0).random(len(y)) < 0.2, -1, y)


def test_not_observed_is_a_failure_to_forecasters_folds_and_scorers_alike(fifth):
    X, codes = fifth
    zeros = np.maximum(codes, 0)
    folds = list(StratifiedKFold(3).split(zeros, zeros))
    for forecaster, grid in (
        (PlattCrossFitCalibrator(), {"C": [1e-4, 1.0]}),
        (PrefixForecaster(features="last"), {"last": [1, 2]}),
    ):
        search = GridSearchCV(forecaster, grid, scoring=censored_tps_scorer, cv=folds)
        one, other = (clone(search).fit(X, labels).cv_results_ for labels in (codes, zeros))
        np.testing.assert_allclose(one["mean_test_score"], other["mean_test_score"], atol=1e-12)
        # our own folds are the same, too
        assert cross_fit_traces(forecaster, X, codes) == cross_fit_traces(forecaster, X, zeros)


def test_where_forecaster_and_scorer_disagree_a_warning_names_both(fifth):
    X, codes = fifth
    forecaster = PrefixForecaster(features="last", censored="drop")
    search = GridSearchCV(forecaster, {"last": [1, 2]}, scoring=censored_tps_scorer, cv=3)
    message = "PrefixForecaster was fitted with censored='drop', but .* has censored='failure'"
    with pytest.warns(UserWarning, match=message):
        search.fit(X, codes)
    with pytest.warns(UserWarning, match=message):  # the winner of a search is judged
        censored_tps_scorer(search, X, codes)
    observed = codes >= 0
    score = censored_tps_scorer(search, X[observed], codes[observed])  # nothing to disagree on
    assert make_censored_tps_scorer(censored="drop")(search, X, codes) == score


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.filterwarnings("ignore:tps_scorer gives no score")
def test_the_scorer_of_observed_runs_raises_and_error_score_applies(fifth):
    X, codes = fifth
    message = r"outcome is -1 \(unobserved; .* use censored_tps_scorer, or make_censored_tps_sco"
    for scoring in (tps_scorer, {"tps": tps_scorer, "censored": censored_tps_scorer}):
        search = GridSearchCV(
            PrefixForecaster(features="last"), {"last": [1, 2]}, scoring=scoring, refit=False
        )
        with pytest.warns(UserWarning, match=message), pytest.warns(UserWarning, match="a search"):
            search.fit(X, codes)
        name = "score" if scoring is tps_scorer else "tps"
        assert np.isnan(search.cv_results_[f"mean_test_{name}"]).all()
        with pytest.raises(ValueError, match=message):
            search.set_params(error_score="raise").fit(X, codes)
    with pytest.raises(ValueError, match=message):
        tps_scorer(PrefixForecaster().fit(X, codes), X, codes)


def test_an_aggregator_reads_what_was_fitted():
    model = TraceAggregator().fit([[0.9, 0.4], [0.6, 0.6]], [1, 0])
    assert model.predict([[0.9, 0.4], [0.2, 0.5]]).tolist() == [0, 1]
    assert model.classes_.tolist() == [0, 1]
    own = TraceAggregator(phi="mean").fit([[0.9, 0.7]], [1])
    proba = own.predict_proba([[0.9, 0.7], [0.2, 0.2]])
    np.testing.assert_allclose(proba, [[0.2, 0.8], [0.8, 0.2]])
    for method in ("predict", "predict_proba", "transform"):
        with pytest.raises(NotFittedError):
            getattr(TraceAggregator(), method)([[0.5]])


@any_two_labels
class AnyAggregator(TraceAggregator):
    """Reads any numbers as forecasts."""

    def fit(self, X, y=None):
        return super().fit(as_forecasts(X), y)

    def transform(self, X):
        return super().transform(as_forecasts(X))

    def predict_proba(self, X):
        return super().predict_proba(as_forecasts(X))


NOT_A_LABEL_ENCODER = {
    "check_classifiers_classes": "outcomes are 0 and 1, not labels of any kind",
    "check_classifiers_regression_target": "a grade between 0 and 1 is an outcome, too",
    "check_supervised_y_no_nan": "a missing outcome was not observed; infinity has words of ours",
    "check_supervised_y_2d": "a column of outcomes is taken without a warning",
    "check_classifier_not_supporting_multiclass": "a third class is refused in words of ours",
}


@parametrize_with_checks([AnyAggregator()], expected_failed_checks=lambda _: NOT_A_LABEL_ENCODER)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


def test_tables_are_refused_in_a_sentence(runs):
    union = FeatureUnion([("a", PlattCrossFitCalibrator())])
    pipeline = make_pipeline(PlattCrossFitCalibrator(), TraceAggregator())
    for asked in (PlattCrossFitCalibrator(), PrefixForecaster(), union, pipeline):
        with pytest.raises(ValueError, match=r"cannot be set to 'pandas'; .* \.to_frame\(\)$"):
            asked.set_output(transform="pandas")
        assert asked.set_output(transform="default") is asked
    with config_context(transform_output="pandas"):  # which is for those that make tables
        assert isinstance(PlattCrossFitCalibrator().fit_transform(*runs), TrajectoryArray)
        with pytest.raises(TypeError, match="leave scikit-learn's set_output at its default"):
            FeatureUnion([("a", PlattCrossFitCalibrator())]).fit_transform(*runs)


def test_grouped_nested_search_by_routing_asks_for_nothing_more(runs, pipeline):
    X, y = runs
    task = np.arange(len(y)) // 3
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline, GRID, scoring=tps_scorer, cv=GroupKFold(3))
        scores = cross_validate(
            search, X, y, scoring=tps_scorer, cv=GroupKFold(2), params={"groups": task}
        )["test_score"]
    for score, (train, test) in zip(scores, GroupKFold(2).split(X, y, task), strict=True):
        known = {"groups": task[train], "plattcrossfitcalibrator__groups": task[train]}
        found = clone(search).fit(X[train], y[train], **known)
        assert tps_scorer(found, X[test], y[test]) == score
