"""Forecasters, scorers and containers inside scikit-learn's own machinery."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    PredefinedSplit,
    RandomizedSearchCV,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
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


def test_grid_search_is_the_same_in_two_processes(runs, pipeline):
    results = [
        GridSearchCV(
            pipeline,
            GRID,
            scoring={"tps": tps_scorer, "auc": "roc_auc"},
            refit="tps",
            cv=3,
            n_jobs=n_jobs,
        )
        .fit(*runs)
        .cv_results_["mean_test_tps"]
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*results)


def test_learning_curve_and_permutation_test(runs, pipeline):
    _, _, test = learning_curve(pipeline, *runs, scoring=tps_scorer, cv=3, train_sizes=[0.5, 1.0])
    assert np.isfinite(test).all()
    score, _, p = permutation_test_score(
        pipeline, *runs, scoring=tps_scorer, cv=3, n_permutations=19, random_state=0
    )
    assert score > np.log(0.5)
    assert p == pytest.approx(0.05)


def test_memory_and_feature_union(runs, tmp_path):
    X, y = runs
    square = FunctionTransformer(lambda X: X.with_cells(X.cells**2))
    union = FeatureUnion([("p", FunctionTransformer()), ("square", square)]).fit(X)
    out = union.transform(X)
    assert isinstance(out, TrajectoryArray)
    assert out.channels == ("value0", "value1")
    cached = make_pipeline(PlattCrossFitCalibrator(), TraceAggregator(), memory=str(tmp_path))
    first = cached.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(clone(cached).fit(X, y).predict_proba(X), first)


@pytest.mark.parametrize("splitter", [StratifiedKFold(4), StratifiedGroupKFold(4)])
def test_splitters_with_censored_outcomes(runs, pipeline, splitter):
    X, y = runs
    codes = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    groups = np.arange(len(y)) // 3
    with_groups = groups if isinstance(splitter, StratifiedGroupKFold) else None
    for train, test in splitter.split(X, codes, with_groups):
        assert set(codes[train]) == set(codes[test]) == {-1, 0, 1}
    folds = list(splitter.split(X, codes, with_groups))
    scores = cross_val_score(pipeline, X, codes, scoring=censored_tps_scorer, cv=folds)
    assert np.isfinite(scores).all()


def test_splits_and_predictions_keep_the_container(runs, pipeline):
    X, y = runs
    parts = train_test_split(X, y, stratify=y, random_state=0)
    assert [len(part) for part in parts] == [112, 38, 112, 38]
    out = cross_val_predict(pipeline, X, y, cv=3, method="predict_proba")
    assert out.shape == (150, 2)
    assert np.concatenate([X[:50], X[50:]]) == X


def test_a_meta_estimator_that_recodes_outcomes_is_stopped(runs, pipeline):
    X, y = runs
    codes = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    with pytest.raises(ValueError, match="meta-estimator"):
        cross_val_predict(
            pipeline,
            X,
            codes,
            cv=3,
            method="predict_proba",
        )


def test_metadata_routing_of_q_z_and_weights(runs):
    X, y = runs
    codes = np.where(np.arange(len(y)) % 4 == 0, -1, y)
    q_z = np.linspace(0, 1, len(y))
    weight = np.linspace(0.5, 1.5, len(y))
    folds = PredefinedSplit(np.arange(len(y)) % 2)
    with config_context(enable_metadata_routing=True):
        scorer = make_censored_tps_scorer(censored="q_z").set_score_request(
            q_z=True, sample_weight=True
        )
        calibrator = PlattCrossFitCalibrator(censored="q_z").set_fit_request(
            q_z=True, sample_weight=True
        )
        result = cross_validate(
            calibrator,
            X,
            codes,
            scoring=scorer,
            cv=folds,
            params={"q_z": q_z, "sample_weight": weight},
        )
    for score, (train, test) in zip(result["test_score"], folds.split(), strict=True):
        fitted = PlattCrossFitCalibrator(censored="q_z").fit(
            X[train], codes[train], sample_weight=weight[train], q_z=q_z[train]
        )
        expected = censored_tps_score(
            codes[test], fitted.transform(X[test]), q_z=q_z[test], sample_weight=weight[test]
        )
        assert score == expected


def one_channel(X):
    return X["a"]


def nothing(X):
    return X["a"].with_cells(np.full(len(X.cells), 0.5))


PLATT, BOTH, BASE_RATE = range(3)


def candidates(**how):
    """Platt on one channel, a forecaster on both, and the base rate, to be chosen among."""
    pairs = [
        (FunctionTransformer(one_channel), PlattCrossFitCalibrator()),
        ("passthrough", PrefixForecaster(features="last", last=1, **how)),
        (FunctionTransformer(nothing), PlattCrossFitCalibrator()),
    ]
    return [{"channel": [channel], "forecaster": [one]} for channel, one in pairs]


@pytest.fixture(scope="module")
def fifth():
    """Runs of two channels, a fifth of which were not observed."""
    X, y = make_trajectories(
        300, lengths=(3, 8), sharpness=1.5, noise=0.3, random_state=0, return_X_y=True
    )
    rng = np.random.default_rng(0)
    noisy = np.clip(X.cells + rng.normal(0, 0.25, len(X.cells)), 0.01, 0.99)
    both = X.with_cells(np.stack([noisy, X.cells], axis=1), channels=["a", "b"])
    return both, np.where(rng.random(300) < 0.2, -1, y)


def test_not_observed_is_a_failure_to_forecasters_folds_and_scorers_alike(fifth):
    X, codes = fifth
    zeros = np.maximum(codes, 0)
    folds = list(StratifiedKFold(5).split(zeros, zeros))
    model = Pipeline([("channel", "passthrough"), ("forecaster", PlattCrossFitCalibrator())])
    search = GridSearchCV(model, candidates(), scoring=censored_tps_scorer, cv=folds)
    one, other = (clone(search).fit(X, labels) for labels in (codes, zeros))
    scores = one.cv_results_["mean_test_score"]
    np.testing.assert_allclose(scores, other.cv_results_["mean_test_score"], rtol=0, atol=1e-12)
    assert (one.best_index_, other.best_index_, scores.argmin()) == (BOTH, BOTH, BASE_RATE)
    for grid in candidates():  # our own folds are the same, too
        forecaster = clone(model).set_params(**{name: made[0] for name, made in grid.items()})
        traces = [cross_fit_traces(forecaster, X, labels) for labels in (codes, zeros)]
        assert traces[0] == traces[1]


def test_where_forecaster_and_scorer_disagree_a_warning_names_both(fifth):
    X, codes = fifth
    model = Pipeline([("channel", "passthrough"), ("forecaster", PlattCrossFitCalibrator())])
    search = GridSearchCV(model, candidates(censored="drop"), scoring=censored_tps_scorer, cv=5)
    message = "PrefixForecaster was fitted with censored='drop', but .* has censored='failure'"
    for forecaster in (search, clone(search).set_params(param_grid=candidates(censored="drop")[1])):
        with pytest.warns(UserWarning, match=message):
            forecaster.fit(X, codes)
    assert search.best_index_ == PLATT  # the reason for the warning
    with pytest.warns(UserWarning, match=message):  # the winner of a search is judged
        censored_tps_scorer(forecaster, X, codes)
    observed = codes >= 0
    censored_tps_scorer(forecaster, X[observed], codes[observed])  # nothing to disagree on
    dropping = make_censored_tps_scorer(censored="drop")
    assert dropping(forecaster, X, codes) == censored_tps_scorer(
        forecaster, X[observed], codes[observed]
    )


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_the_scorer_of_observed_runs_raises_and_error_score_applies(fifth):
    X, codes = fifth
    message = r"outcome is -1 \(unobserved; .* use censored_tps_scorer, or make_censored_tps_sco"
    for scoring in (tps_scorer, {"tps": tps_scorer, "censored": censored_tps_scorer}):
        search = GridSearchCV(
            PrefixForecaster(features="last"), {"last": [1, 2]}, scoring=scoring, refit=False
        )
        with pytest.warns(UserWarning, match=message):
            search.fit(X, codes)
        name = "score" if scoring is tps_scorer else "tps"
        assert np.isnan(search.cv_results_[f"mean_test_{name}"]).all()
        with pytest.raises(ValueError, match=message):
            search.set_params(error_score="raise").fit(X, codes)
    forecaster, error_score = PrefixForecaster().fit(X, codes), 0.25
    with pytest.raises(ValueError, match=message):
        tps_scorer(forecaster, X, codes)
    assert error_score == 0.25  # a local variable of this name is the caller's own affair


def test_weights_through_a_search(runs):
    # weight 2 = the run twice and weight 0 = removed, in calibration and in the score
    X, y = runs
    weight = np.ones(len(y))
    weight[[0, 7]], weight[[1, 8]] = 2, 0
    fold = np.arange(len(y)) % 2
    kept = np.r_[np.flatnonzero(weight), [0, 7]]
    with config_context(enable_metadata_routing=True):
        weighted = GridSearchCV(
            PlattCrossFitCalibrator().set_fit_request(sample_weight=True),
            {"C": [0.01, 1.0]},
            scoring=make_tps_scorer().set_score_request(sample_weight=True),
            cv=PredefinedSplit(fold),
        ).fit(X, y, sample_weight=weight)
    repeated = GridSearchCV(
        PlattCrossFitCalibrator(),
        {"C": [0.01, 1.0]},
        scoring=make_tps_scorer(),
        cv=PredefinedSplit(fold[kept]),
    ).fit(X[kept], y[kept])
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"], atol=1e-9
    )


def test_aggregator():
    X = TrajectoryArray.from_list([[0.9, 0.4], [0.6]])
    model = TraceAggregator().fit(X, [1, 0])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], [0.4, 0.6])
    assert model.predict(X).tolist() == [0, 1]
    assert model.transform(X) == X
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="phi must be"):
        TraceAggregator(phi="max").fit(X)
    from sklearn.exceptions import NotFittedError

    for method in ("predict", "predict_proba", "transform"):
        with pytest.raises(NotFittedError):
            getattr(TraceAggregator(), method)(X)


@any_two_labels
class AnyAggregator(TraceAggregator):
    """It reads forecasts."""

    def _check_runs(self, X, *, reset):
        return super()._check_runs(as_forecasts(X), reset=reset)


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


def test_q_z_goes_to_the_scorer_and_not_to_the_calibrator(runs):
    X, y = runs[0], np.where(np.arange(len(runs[1])) < 30, -1, runs[1])
    q_z = np.full(len(y), 0.3)
    with config_context(enable_metadata_routing=True):
        scorer = make_censored_tps_scorer(censored="q_z").set_score_request(q_z=True)
        for forecaster in (PlattCrossFitCalibrator(), PrefixForecaster()):
            with pytest.warns(UserWarning, match="was fitted with censored='failure', but the"):
                found = cross_validate(forecaster, X, y, params={"q_z": q_z}, scoring=scorer, cv=3)
            assert np.isfinite(found["test_score"]).all()


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
