"""Out-of-fold traces: each run's by a forecaster that was fitted on the other folds."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import StackingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
    TrajectoryArray,
    make_tps_scorer,
    tps_scorer,
)
from trajscore.calibration import cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.metrics import aggregate, tps_score
from trajscore.monitoring import RawVerifier

SUMMARY = PrefixForecaster(features="summary", pooled=True)


@pytest.fixture(scope="module")
def runs():
    """Ids in another order than the rows."""
    X, y = make_trajectories(150, lengths=(1, 6), random_state=0, return_X_y=True)
    ids = np.random.default_rng(1).permutation(150)
    return TrajectoryArray(X.cells, X.lengths, ids=ids), y


def alternating(X, y, cv):
    """Folds that alternate within each outcome, over runs sorted by id."""
    fold = np.empty(len(y), dtype=int)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        fold[rows[np.argsort(X.ids[rows])]] = np.arange(len(rows)) % cv
    return fold


def by_hand(forecaster, X, y, fold):
    """The out-of-fold traces by a loop; training runs in the order of their ids."""
    out = np.empty(len(X.cells))
    for k in np.unique(fold):
        rows = np.flatnonzero(fold != k)
        rows = rows[np.argsort(X.ids[rows])]
        fitted = clone(forecaster).fit(X[rows], y[rows])
        held_out = np.flatnonzero(fold == k)
        out[np.repeat(fold == k, X.lengths)] = fitted.transform(X[held_out]).cells
    return out


FORECASTERS = {
    "forecaster": SUMMARY,
    "pipeline of forecasters": make_pipeline(SUMMARY, PlattCrossFitCalibrator()),
    "pipeline that ends in an aggregator": make_pipeline(
        PlattCrossFitCalibrator(), TraceAggregator()
    ),
    "search": GridSearchCV(SUMMARY, {"features": ["last", "summary"]}, scoring=tps_scorer, cv=2),
    "pipeline of a search": make_pipeline(
        GridSearchCV(SUMMARY, {"features": ["last", "summary"]}, scoring=tps_scorer, cv=2),
        PlattCrossFitCalibrator(),
    ),
    "e-process": DensityRatioEProcess(SUMMARY, threshold="ville"),
}


@pytest.mark.parametrize("forecaster", FORECASTERS.values(), ids=FORECASTERS)
def test_each_run_by_a_fit_on_the_other_folds(runs, forecaster, rng):
    X, y = runs
    out = cross_fit_traces(forecaster, X, y, cv=3)
    np.testing.assert_array_equal(out.cells, by_hand(forecaster, X, y, alternating(X, y, 3)))
    assert out.ids.tolist() == X.ids.tolist()
    order = rng.permutation(len(X))
    assert cross_fit_traces(forecaster, X[order], y[order], cv=3) == out[order]


def test_folds_are_fitted_in_parallel(runs):
    with parallel_config(backend="threading"):  # processes take seconds to start
        assert cross_fit_traces(SUMMARY, *runs, n_jobs=2) == cross_fit_traces(SUMMARY, *runs)


@pytest.mark.parametrize("cv", [2, 3, KFold(4, shuffle=True, random_state=0)])
@pytest.mark.parametrize("censored", ["failure", "drop", "q_z"])
def test_what_cross_fits_by_itself_gives_its_own_traces(runs, cv, censored):
    X, y = runs
    y = np.where(np.arange(len(y)) % 7 == 0, -1, y)
    known = {"sample_weight": np.arange(len(y)) % 3}
    if isinstance(cv, int):  # the splitter does not read groups
        known["groups"] = np.arange(len(y)) // 3
    soft = {"q_z": 0.3} if censored == "q_z" else {}
    calibrator = PlattCrossFitCalibrator(cv=cv, censored=censored)
    expected = clone(calibrator).fit_transform(X, y, **known, **soft)
    found = cross_fit_traces(calibrator.set_params(cv=7), X, y, cv=cv, q_z=0.3, **known)
    assert found == expected
    plain = cross_fit_traces(calibrator, X.padded(), y, cv=cv, q_z=0.3)
    assert isinstance(plain, np.ndarray)


def test_splitters_see_the_order_of_ids_and_lists_that_of_rows(runs):
    X, y = runs
    order = np.argsort(X.ids)
    out = cross_fit_traces(SUMMARY, X, y, cv=StratifiedKFold(3, shuffle=True, random_state=0))
    fold = np.empty(len(y), dtype=int)
    splits = StratifiedKFold(3, shuffle=True, random_state=0).split(y, y[order])
    for k, (_, test) in enumerate(splits):
        fold[order[test]] = k
    np.testing.assert_array_equal(out.cells, by_hand(SUMMARY, X, y, fold))
    half = np.arange(len(y)) % 2
    lists = [(np.flatnonzero(half != k), np.flatnonzero(half == k)) for k in (0, 1)]
    for cv in (PredefinedSplit(half), lists):
        out = cross_fit_traces(SUMMARY, X, y, cv=cv)
        np.testing.assert_array_equal(out.cells, by_hand(SUMMARY, X, y, half))


def test_unobserved_runs_get_a_trace_and_alternate_by_themselves(runs):
    X, y = runs
    codes = np.where(np.argsort(np.argsort(X.ids)) % 2 == 0, -1, y)  # every other in id order
    dropping = clone(SUMMARY).set_params(censored="drop")
    out = cross_fit_traces(dropping, X, codes, cv=2)
    np.testing.assert_array_equal(
        out.cells[np.repeat(codes >= 0, X.lengths)],
        by_hand(SUMMARY, X[codes >= 0], codes[codes >= 0], alternating(*known(X, codes), 2)),
    )
    assert ((out.cells > 0) & (out.cells < 1)).all()


def known(X, codes):
    return X[codes >= 0], codes[codes >= 0]


class Recorder(TransformerMixin, BaseEstimator):
    """Gives back X, and notes what its fit was told."""

    told = ()

    def fit(self, X, y, sample_weight=None, groups=None):
        assert set(y) <= {0, 1}
        Recorder.told += ((X.ids.tolist(), sample_weight, groups),)
        self.fitted_ = True
        return self

    def transform(self, X):
        return X


@pytest.mark.parametrize(
    "forecaster", [Recorder(), make_pipeline(TraceAggregator(), Recorder())], ids=["", "pipeline"]
)
def test_weights_and_groups_go_to_the_fits_that_take_them(runs, forecaster):
    X, y = runs
    groups, weight = np.char.add("task", (X.ids // 5).astype(str)), 1.0 + X.ids
    Recorder.told = ()
    assert cross_fit_traces(forecaster, X, y, groups=groups, sample_weight=weight, cv=3).ids.any()
    assert len(Recorder.told) == 3
    names = np.unique(groups)
    for ids, weights, codes in Recorder.told:
        assert ids == sorted(ids)
        assert weights.tolist() == [1.0 + one for one in ids]
        assert names[codes].tolist() == [f"task{one // 5}" for one in ids]
        others = set(X.ids) - set(ids)
        assert not {one // 5 for one in ids} & {one // 5 for one in others}  # no task is split


def test_a_search_takes_groups_where_its_folds_read_them(runs):
    X, y = runs
    groups = X.ids // 5

    class Told(GroupKFold):
        groups = ()

        def split(self, X, y=None, groups=None):
            Told.groups += (groups,)
            return super().split(X, y, groups)

    grid = {"features": ["last", "summary"]}
    for cv in (Told(2), 2):  # scikit-learn warns, here an error, where groups are not read
        search = GridSearchCV(SUMMARY, grid, scoring=tps_scorer, cv=cv)
        out = cross_fit_traces(search, X, y, groups=groups, sample_weight=np.ones(len(y)), cv=3)
        assert ((out.cells > 0) & (out.cells < 1)).all()
    assert len(Told.groups) == 3
    assert all(set(one) < set(range(30)) for one in Told.groups)


@pytest.mark.parametrize("routing", [False, True])
def test_a_nested_search_keeps_groups_whole_inside_and_outside(runs, routing):
    X, y = runs
    groups = X.ids // 5

    class Noted(GroupKFold):
        parts = ()

        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                Noted.parts += (
                    tuple({int(one) for one in groups[rows]} for rows in (train, test)),
                )
                yield train, test

    grid = {"features": ["last", "summary"]}
    for search in (
        GridSearchCV(SUMMARY, grid, scoring=tps_scorer, cv=Noted(2)),
        make_pipeline(
            GridSearchCV(SUMMARY, grid, scoring=tps_scorer, cv=Noted(2)), TraceAggregator()
        ),
    ):
        Noted.parts = ()
        with config_context(enable_metadata_routing=routing):
            out = cross_fit_traces(search, X, y, groups=groups, cv=3)
        assert ((out.cells > 0) & (out.cells < 1)).all()
        assert len(Noted.parts) == 3 * 2
        for train, test in Noted.parts:
            assert not train & test
            assert len(train | test) == 20  # two thirds of the 30 groups, the others held out


@pytest.mark.parametrize("search", [False, True])
def test_noise_stays_noise(search):
    tree = DecisionTreeClassifier(min_samples_leaf=3)
    forecaster = PrefixForecaster(tree, features="summary", pooled=True)
    if search:
        forecaster = GridSearchCV(forecaster, {"last": [1, 2]}, scoring=tps_scorer, cv=2)
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = TrajectoryArray(rng.random(300 * 3), [3] * 300), rng.integers(0, 2, 300)
        assert roc_auc_score(y, aggregate(forecaster.fit(X, y).transform(X), "mean")) > 0.75
        out = cross_fit_traces(forecaster, X, y, cv=3)
        rate = X.with_cells(np.full(len(X.cells), y.mean()))
        margin = tps_score(y, out) - tps_score(y, rate)
        found.append((roc_auc_score(y, aggregate(out, "mean")), margin))
    auroc, margin = np.mean(found, axis=0)
    assert auroc == pytest.approx(0.5, abs=0.05)
    assert margin < 0


def test_metadata_routing_says_who_gets_what(runs):
    X, y = runs
    weight = np.arange(len(y)) % 3
    with config_context(enable_metadata_routing=True):
        plain = make_pipeline(SUMMARY, TraceAggregator())
        with pytest.raises(ValueError, match="no fit of Pipeline takes it"):
            cross_fit_traces(plain, X, y, sample_weight=weight)
        weighted = clone(SUMMARY).set_fit_request(sample_weight=True)
        routed = cross_fit_traces(
            make_pipeline(weighted, TraceAggregator()), X, y, sample_weight=weight
        )
        scorer = make_tps_scorer().set_score_request(sample_weight=False)
        search = GridSearchCV(weighted, {"last": [1]}, scoring=scorer, cv=StratifiedGroupKFold(2))
        found = cross_fit_traces(search, X, y, sample_weight=weight, groups=X.ids // 5)
    assert routed == cross_fit_traces(SUMMARY, X, y, sample_weight=weight)
    assert found == cross_fit_traces(SUMMARY, X, y, sample_weight=weight, groups=X.ids // 5)


class TwoNumbers(Recorder):
    def transform(self, X):
        return TrajectoryArray.stack([X, X])


class Uncloned:
    def fit(self, X, y):
        return self

    def transform(self, X):
        return X


class Shorter(Recorder):
    def transform(self, X):
        return X.prefix(1)


@pytest.mark.parametrize(
    ("forecaster", "message"),
    [
        (LogisticRegression(), r"LogisticRegression has none; wrap a classifier as PrefixForec"),
        (RawVerifier(), "trace by its transform, and RawVerifier has none$"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "and Pipeline has none"),
        (PrefixForecaster, r"got a class; write PrefixForecaster\(\)"),
        ("platt", "forecaster must be an estimator, got 'platt'"),
        (None, "forecaster must be an estimator, got None"),
        (TwoNumbers(), "the transform of TwoNumbers does not give one number for each step"),
        (Shorter(), "the transform of Shorter does not give one number for each step"),
        (FrozenEstimator(SUMMARY), "^FrozenEstimator is not fitted anew for each fold, so its tra"),
        (
            make_pipeline(FrozenEstimator(SUMMARY), PlattCrossFitCalibrator()),
            r"Pipeline with frozenestimator=FrozenEstimator\(.*\) is not fitted anew",
        ),
        (
            PrefixForecaster(SelectFromModel(LogisticRegression(), prefit=True)),
            "PrefixForecaster with estimator__prefit=True is not fitted anew",
        ),
        (
            PrefixForecaster(StackingClassifier([("a", LogisticRegression())], cv="prefit")),
            "PrefixForecaster with estimator__cv='prefit' is not fitted anew",
        ),
        (Uncloned(), "Uncloned cannot be fitted anew for each fold, for it has no get_params"),
    ],
)
def test_what_cannot_be_cross_fitted_is_refused_by_name(runs, forecaster, message):
    with pytest.raises(ValueError, match=message):
        cross_fit_traces(forecaster, *runs)


def test_bad_input(runs):
    X, y = runs
    with pytest.raises(ValueError, match="no fit of TraceAggregator takes it; leave it out"):
        cross_fit_traces(TraceAggregator(), X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(ValueError, match="there are 149 outcomes for 150 runs"):
        cross_fit_traces(SUMMARY, X, y[1:])
    with pytest.raises(ValueError, match="cv = 99 is more than the number of successes"):
        cross_fit_traces(SUMMARY, X, y, cv=99)
    with pytest.raises(ValueError, match="test fold"):
        cross_fit_traces(SUMMARY, X, y, cv=ShuffleSplit(2, random_state=0))


def test_scores_that_are_missing_are_for_the_forecaster_to_judge(runs):
    X, y = runs
    gaps = TrajectoryArray(np.where(X.cells < 0.1, np.nan, X.cells), X.lengths, missing="allow")
    assert np.isnan(cross_fit_traces(Recorder(), gaps, y).cells).any()
    with pytest.raises(ValueError, match="the value is missing"):
        cross_fit_traces(SUMMARY, gaps, y)


def test_maps_are_named_by_letters_and_then_by_numbers():
    X, y = make_trajectories(120, lengths=2, random_state=0, return_X_y=True)
    names = list(PlattCrossFitCalibrator(cv=28).fit(X, y).maps_)
    assert names == [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "fold27", "fold28"]
