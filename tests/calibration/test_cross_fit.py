"""Out-of-fold traces: each run's by a forecaster that was fitted on the other folds."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
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
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from known_agent import bent_forecasts
from trajscore import (
    ActionSignals,
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
    TracerSignals,
    TrajectoryArray,
    censored_tps_scorer,
    evaluate,
    io,
    make_tps_scorer,
    tps_scorer,
)
from trajscore.calibration import (
    AliveRate,
    BetaCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
    _cross_fit,
    cross_fit_traces,
)
from trajscore.calibration._cross_fit import folds_of
from trajscore.core.folds import folds_of_checked
from trajscore.datasets import make_trajectories
from trajscore.metrics import aggregate, tps_score
from trajscore.monitoring import RawVerifier
from trajscore.testing import check_trajectory_estimator

MAPS = [IsotonicCrossFitCalibrator(), BetaCrossFitCalibrator()]
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


def test_runs_without_weight_alternate_by_themselves(runs):
    X, y = runs
    weight = (np.argsort(np.argsort(X.ids)) % 2).astype(float)  # every other in id order
    out = cross_fit_traces(SUMMARY, X, y, cv=2, sample_weight=weight)
    counted = weight > 0
    folds = folds_of(out)
    np.testing.assert_array_equal(folds[counted], alternating(X[counted], y[counted], 2))
    assert 0.3 < folds[~counted].mean() < 0.7


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


@pytest.mark.parametrize("forecaster", [SUMMARY, AliveRate(end="step")], ids=["prefix", "alive"])
def test_fit_transform_of_a_learned_forecaster_is_out_of_fold(runs, forecaster):
    X, y = runs
    groups, weight = X.ids // 5, 1.0 + X.ids % 3
    one = clone(forecaster)
    out = one.fit_transform(X, y, sample_weight=weight, groups=groups)
    expected = cross_fit_traces(forecaster, X, y, groups=groups, sample_weight=weight)
    np.testing.assert_array_equal(out.cells, expected.cells)
    assert out.meta.equals(expected.meta)
    # of new runs forecasts are those of the fit on all
    whole = clone(forecaster).fit(X, y, sample_weight=weight).transform(X)
    np.testing.assert_array_equal(one.transform(X).cells, whole.cells)
    assert np.abs(out.cells - whole.cells).max() > 0.01
    padded = clone(forecaster).fit_transform(X.padded(), y)
    assert isinstance(padded, np.ndarray)
    assert padded.shape == X.shape


def test_a_calibrator_in_a_pipeline_does_not_learn_what_the_forecaster_knows_by_heart(runs):
    X, y = runs
    trees = PrefixForecaster(DecisionTreeClassifier(random_state=0), "summary", pooled=True)
    pipeline = make_pipeline(trees, PlattCrossFitCalibrator()).fit(X, y)
    new, outcomes = make_trajectories(1000, lengths=(1, 6), random_state=1, return_X_y=True)
    base = tps_score(outcomes, np.full((1000, 6), y.mean()))
    assert abs(tps_score(outcomes, pipeline.transform(new)) - base) < 0.1
    by_heart = PlattCrossFitCalibrator().fit(pipeline[0].transform(X), y)
    assert tps_score(outcomes, by_heart.transform(pipeline[0].transform(new))) < base - 0.5


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_a_forecaster_inside_a_pipeline(runs, routing):
    X, y = runs
    groups = X.ids // 5
    pipeline = make_pipeline(SUMMARY, PlattCrossFitCalibrator())
    given = (
        {"groups": groups}
        if routing
        else {f"{step}__groups": groups for step in pipeline.named_steps}
    )
    with config_context(enable_metadata_routing=routing):
        out = pipeline.fit_transform(X, y, **given)
    inner = clone(SUMMARY).fit_transform(X, y, groups=groups)
    expected = PlattCrossFitCalibrator().fit_transform(inner, y, groups=groups)
    np.testing.assert_array_equal(out.cells, expected.cells)


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
        (RawVerifier(), "transform that returns forecasts, and RawVerifier has none$"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "and Pipeline has none"),
        (PrefixForecaster, r"got a class; write PrefixForecaster\(\)"),
        ("platt", "forecaster must be an estimator, got 'platt'"),
        (None, "forecaster must be an estimator, got None"),
        (TwoNumbers(), "the transform of TwoNumbers must give one number for each step"),
        (Shorter(), "the transform of Shorter must give one number for each step"),
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
    with pytest.raises(ValueError, match="y has 149 outcomes for 150 runs"):
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


# ------------------------------------------------------------------ runs of a log

SIGNALS = ActionSignals(["agent_turns", "writes", "refusals"], writes=["set"], transfers=[])
LAST = PrefixForecaster(features="last", last=1, pooled=True)
OVER_LOGS = make_pipeline(SIGNALS, LAST)


@pytest.fixture(scope="module")
def log():
    """Runs that fail more often the more they write, in another order than their ids."""
    rng = np.random.default_rng(0)
    runs = []
    for k in rng.permutation(60):
        outcome = int(rng.integers(0, 2))
        writes = [
            io.ToolCall("set", {"x": j}) for j in range(rng.integers(0, 3) + 2 * (1 - outcome))
        ]
        steps = [io.Step("agent", tool_calls=[call]) for call in writes]
        steps = [io.Step("user", "Hi"), *steps, io.Step("agent", "Done")]
        runs.append(
            io.Run(f"r{k:02d}", steps, outcome=outcome, task=f"t{k // 3}", trial=int(k % 3))
        )
    return runs


def as_objects(runs):
    held = np.empty(len(runs), dtype=object)
    held[:] = runs
    return held


OPTIONS = {
    "default": {},
    "groups": {"groups": True},
    "splitter of groups": {"groups": True, "cv": GroupKFold(3)},
    "splitter": {"cv": KFold(3, shuffle=True, random_state=0)},
    "folds of rows": {"cv": PredefinedSplit(np.arange(60) % 4)},
    "weights": {"sample_weight": np.arange(60) % 3},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_runs_of_a_log_go_through_pipelines_as_their_signals_do(log, options, rng):
    y, tasks = io.outcomes(log), np.array([run.task for run in log])
    options = {**options, "groups": tasks} if "groups" in options else options
    found = cross_fit_traces(OVER_LOGS, log, y, **options)
    expected = cross_fit_traces(LAST, SIGNALS.fit_transform(log), y, **options)
    assert found == expected  # steps, ids, meta with the folds, and what has ended
    if "cv" not in options and "sample_weight" not in options:
        order = rng.permutation(len(log))
        groups = {name: values[order] for name, values in options.items()}
        again = cross_fit_traces(OVER_LOGS, [log[row] for row in order], y[order], **groups)
        assert again == found[order]


@pytest.mark.parametrize("form", [tuple, io.Runs, pd.Series, as_objects])
def test_a_log_in_any_list(log, form):
    y = io.outcomes(log)
    assert cross_fit_traces(OVER_LOGS, form(log), y) == cross_fit_traces(OVER_LOGS, log, y)


class SeenBefore(TransformerMixin, BaseEstimator):
    """1 for a run that was in the fit, at each of its steps."""

    def fit(self, X, y):
        self.ids_ = {run.id for run in X}
        return self

    def transform(self, X):
        return TrajectoryArray.from_list([[float(run.id in self.ids_)] * len(run) for run in X])


def test_what_reads_a_log_is_fitted_on_the_training_runs_too(log):
    traces = cross_fit_traces(make_pipeline(SeenBefore()), log, io.outcomes(log))
    assert (traces.cells == 0).all()
    assert traces.lengths.tolist() == [len(run) for run in log]
    assert traces.ids.tolist() == [run.id for run in log]  # though the transformer names none


def test_a_held_out_run_has_ended_where_the_log_says_so(log):
    """Fits learn from the outcomes in `y`; a forecast is told nothing of its run by them."""
    y = io.outcomes(log)
    knows_ends = make_pipeline(SIGNALS, clone(LAST).set_params(end="step"))
    silent = [io.Run(run.id, run.steps, task=run.task, trial=run.trial) for run in log]
    traces = cross_fit_traces(knows_ends, silent, y)
    signals = SIGNALS.fit_transform(silent)
    assert not signals.ended.any()
    expected = by_hand(knows_ends[-1], signals, y, alternating(signals, y, 5))
    np.testing.assert_array_equal(traces.cells, expected)
    assert traces.ended.all()
    assert (traces.cells != cross_fit_traces(knows_ends, log, y).cells).any()
    unobserved = np.where(np.arange(len(y)) % 6 == 0, -1, y)
    assert cross_fit_traces(knows_ends, log, unobserved).ended.all()
    ended = cross_fit_traces(knows_ends, silent, unobserved).ended
    assert ended.tolist() == (unobserved != -1).tolist()
    one_less = [io.Run(run.id, run.steps[:-1]) for run in log]
    fitted = knows_ends.fit(log, y)
    uncut = fitted.transform(silent)
    np.testing.assert_array_equal(
        fitted.transform(one_less).cells, uncut.truncate(uncut.lengths - 1).cells
    )


@pytest.mark.filterwarnings("ignore:The fold has")
def test_searches_and_scorers_over_a_log(log):
    y, tasks = io.outcomes(log), np.array([run.task for run in log])
    X = SIGNALS.fit_transform(log)
    grid = {"last": [1, 2], "features": ["last", "summary"]}
    over_logs = {f"prefixforecaster__{name}": values for name, values in grid.items()}
    for cv in (3, GroupKFold(3)):
        known = {"groups": tasks} if isinstance(cv, GroupKFold) else {}
        for scoring in (tps_scorer, censored_tps_scorer):
            searches = [
                GridSearchCV(OVER_LOGS, over_logs, scoring=scoring, cv=cv).fit(
                    io.Runs(log), y, **known
                ),
                GridSearchCV(LAST, grid, scoring=scoring, cv=cv).fit(X, y, **known),
            ]
            scores = [one.cv_results_["mean_test_score"] for one in searches]
            np.testing.assert_array_equal(*scores)
            assert searches[0].best_estimator_.transform(log) == searches[1].transform(X)
    search = GridSearchCV(OVER_LOGS, over_logs, scoring=tps_scorer, cv=GroupKFold(2))
    traces = cross_fit_traces(search, log, y, groups=tasks, cv=3)
    own = GridSearchCV(LAST, grid, scoring=tps_scorer, cv=GroupKFold(2))
    assert traces == cross_fit_traces(own, X, y, groups=tasks, cv=3)
    ended = make_pipeline(SIGNALS, LAST, TraceAggregator())
    scoring = {"tps": tps_scorer, "auroc": "roc_auc"}
    found = cross_validate(ended, log, y, groups=tasks, scoring=scoring, cv=GroupKFold(3))
    assert np.isfinite(found["test_tps"]).all()
    assert found["test_auroc"].mean() > 0.7


def test_evaluate_judges_pipelines_over_a_log_by_their_traces(log):
    y, tasks = io.outcomes(log), np.array([run.task for run in log])
    traces = cross_fit_traces(OVER_LOGS, log, y, groups=tasks)
    report = evaluate({"actions": traces}, y, groups=tasks)
    of_signals = cross_fit_traces(LAST, SIGNALS.fit_transform(log), y, groups=tasks)
    pd.testing.assert_frame_equal(
        report.table, evaluate({"actions": of_signals}, y, groups=tasks).table
    )
    assert report.table.loc[("actions", "as_given"), "AUROC"] > 0.7


@pytest.mark.parametrize(
    "use",
    [
        lambda runs, y: evaluate(runs, y),
        lambda runs, y: evaluate({"actions": runs}, y),
        lambda runs, y: tps_score(y, runs),
        lambda runs, y: cross_fit_traces(PlattCrossFitCalibrator(), runs, y),
        lambda runs, y: cross_fit_traces(LAST, runs, y),
        lambda runs, y: LAST.fit(runs, y),
    ],
)
@pytest.mark.parametrize("n_steps", [None, 2])
def test_what_reads_no_log_says_what_does(log, use, n_steps):
    runs = [io.Run(run.id, run.steps[:n_steps]) for run in log]  # of one length, or of several
    with pytest.raises(
        ValueError,
        match=r"runs of a log; make signals .* cross_fit_traces\(make_pipeline\(ActionSignals",
    ):
        use(runs, io.outcomes(log))


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (SIGNALS, "the transform of ActionSignals must give one number for each step"),
        (
            make_pipeline(SIGNALS, FunctionTransformer(lambda X: X["writes"][1:])),
            "the transform of Pipeline must give one number for each step of each run",
        ),
    ],
)
def test_pipelines_that_make_no_traces_of_a_log(log, pipeline, message):
    with pytest.raises(ValueError, match=message):
        cross_fit_traces(pipeline, log, io.outcomes(log))


def test_bad_input_with_a_log(log):
    y, ids = io.outcomes(log), [run.id for run in log]
    with pytest.raises(ValueError, match="y has 59 outcomes for 60 runs"):
        cross_fit_traces(OVER_LOGS, log, y[1:])
    with pytest.raises(ValueError, match=f"row 0: y is of run '{ids[-1]}', X of run '{ids[0]}'"):
        cross_fit_traces(OVER_LOGS, log, pd.Series(y, index=ids)[::-1])
    with pytest.raises(ValueError, match="runs must be Run objects, .* got 'r1'"):
        cross_fit_traces(OVER_LOGS, [*log[1:], "r1"], y)


def test_signals_that_a_public_log_does_not_hold(public_file):
    runs = io.read_runs(public_file("tau2", "airline_gpt-oss-120b.json"))
    y, tasks = io.outcomes(runs), [run.task for run in runs]
    surprisal = TracerSignals().fit_transform(runs)["surprisal"].cells
    assert np.isnan(surprisal).all()
    trees = HistGradientBoostingClassifier(max_iter=5)
    forecaster = PrefixForecaster(trees, features="summary", pooled=True)
    traces = cross_fit_traces(make_pipeline(TracerSignals(), forecaster), runs, y, groups=tasks)
    assert traces.ids.tolist() == [run.id for run in runs]
    assert len(traces.cells) == len(surprisal)
    assert ((traces.cells > 0) & (traces.cells < 1)).all()
    with pytest.raises(ValueError, match="'surprisal' has no value at any step; leave it out"):
        cross_fit_traces(make_pipeline(TracerSignals(), PrefixForecaster()), runs, y)


@pytest.mark.parametrize("calibrator", MAPS)
def test_each_map_is_fitted_out_of_fold(calibrator, rng):
    noise = TrajectoryArray(rng.random(400), np.full(200, 2))
    y = rng.integers(0, 2, 200)
    held_out = calibrator.fit_transform(noise, y)
    seen = calibrator.fit(noise, y).transform(noise)
    assert tps_score(y, held_out) < tps_score(y, seen)
    other = y.copy()
    row = 17  # its own outcome does not move a run's own trace, unless it moves the folds
    other[row], swap = 1 - y[row], np.flatnonzero(y != y[row])[0]
    other[swap] = y[row]
    assert calibrator.fit_transform(noise, other).shape == held_out.shape


@pytest.mark.parametrize("calibrator", MAPS)
def test_a_bent_signal_is_better_calibrated_than_by_platt(calibrator, rng):
    X, y, _ = bent_forecasts(rng, 4000, a=4.0, b=0.05, c=1.0)
    platt = tps_score(y, PlattCrossFitCalibrator().fit_transform(X, y))
    assert tps_score(y, calibrator.fit_transform(X, y)) > platt


def test_tps_chooses_among_calibrators(rng):
    X, y, _ = bent_forecasts(rng, 1500, a=4.0, b=0.05, c=1.0)
    model = Pipeline([("calibrator", PlattCrossFitCalibrator())])
    grid = {"calibrator": [PlattCrossFitCalibrator(), *MAPS]}
    search = GridSearchCV(model, grid, scoring=tps_scorer, cv=3).fit(X, y)
    assert not isinstance(search.best_params_["calibrator"], PlattCrossFitCalibrator)


@pytest.mark.parametrize("calibrator", MAPS)
def test_public_checks_of_each_map(calibrator):
    assert len(check_trajectory_estimator(calibrator)) == 10


def test_runs_that_do_not_count_are_numbered_and_in_folds_of_their_own(monkeypatch):
    seen = []

    def folds(cv, ids, stratum, counts, groups):
        seen.append(counts.tolist())
        return folds_of_checked(cv, ids, stratum, counts, groups)

    monkeypatch.setattr(_cross_fit, "folds_of_checked", folds)
    y = np.array([0, 1] * 6 + [-1, -1, -1])
    weight = np.r_[0.0, np.ones(14)]
    X = TrajectoryArray(np.linspace(0.1, 0.9, 15), np.ones(15, dtype=int))
    calibrator = PlattCrossFitCalibrator(cv=3, censored="drop")
    calibrator.fit_transform(X, y, sample_weight=weight)
    assert seen == [[False] + [True] * 11 + [False] * 3]
    assert (calibrator.n_censored_, calibrator.n_dropped_) == (3, 4)
