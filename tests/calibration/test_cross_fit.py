"""Out-of-fold traces: each run's by a forecaster that was fitted on the other folds."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import StackingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from trajscore import (
    ActionSignals,
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
    TrajectoryArray,
    io,
    tps_scorer,
)
from trajscore.calibration import AliveRate, cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.monitoring import RawVerifier

RUNNING = PrefixForecaster(features="running", pooled=True)
SEARCH = GridSearchCV(RUNNING, {"features": ["last", "running"]}, scoring=tps_scorer, cv=2)


@pytest.fixture(scope="module")
def runs():
    """Ids in another order than the rows."""
    X, y = make_trajectories(150, lengths=(1, 6), random_state=0, return_X_y=True)
    return TrajectoryArray(X.cells, X.lengths, ids=np.random.default_rng(1).permutation(150)), y


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


def folds_of(traces):
    return traces.meta["cross_fit_fold"].to_numpy()


@pytest.mark.parametrize(
    "forecaster",
    [
        RUNNING,
        make_pipeline(RUNNING, PlattCrossFitCalibrator()),
        make_pipeline(PlattCrossFitCalibrator(), TraceAggregator()),
        make_pipeline(SEARCH, PlattCrossFitCalibrator()),
        DensityRatioEProcess(RUNNING, threshold="ville"),
    ],
    ids=["forecaster", "pipeline", "aggregator", "search", "e-process"],
)
def test_each_run_by_a_fit_on_the_other_folds(runs, forecaster, rng):
    X, y = runs
    out, fold = cross_fit_traces(forecaster, X, y, cv=3), alternating(X, y, 3)
    np.testing.assert_array_equal(out.cells, by_hand(forecaster, X, y, fold))
    assert out.ids.tolist() == X.ids.tolist()
    assert folds_of(out).tolist() == fold.tolist()
    order = rng.permutation(len(X))
    with parallel_config(backend="threading"):  # processes take seconds to start
        assert cross_fit_traces(forecaster, X[order], y[order], cv=3, n_jobs=2) == out[order]


def test_splitters_see_the_order_of_ids_and_lists_that_of_rows(runs):
    X, y = runs
    order, fold = np.argsort(X.ids), np.empty(150, dtype=int)
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    for k, (_, test) in enumerate(splitter.split(y, y[order])):
        fold[order[test]] = k
    half = np.arange(len(y)) % 2
    lists = [(np.flatnonzero(half != k), np.flatnonzero(half == k)) for k in (0, 1)]
    for cv, folds in ((splitter, fold), (PredefinedSplit(half), half), (lists, half)):
        out = cross_fit_traces(RUNNING, X, y, cv=cv)
        np.testing.assert_array_equal(out.cells, by_hand(RUNNING, X, y, folds))
    # folds are noted within those of an earlier cross-fitting
    again = cross_fit_traces(RUNNING, out, y, cv=3)
    pairs = list(zip(half.tolist(), alternating(X, y, 3).tolist(), strict=True))
    assert folds_of(again).tolist() == [sorted(set(pairs)).index(pair) for pair in pairs]


@pytest.mark.parametrize("censored", ["failure", "drop", "q_z"])
def test_what_cross_fits_by_itself_gives_its_own_traces(runs, censored):
    X, y = runs
    y = np.where(np.arange(len(y)) % 7 == 0, -1, y)
    for cv in (3, KFold(4, shuffle=True, random_state=0)):
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


def test_runs_that_do_not_count_alternate_by_themselves(runs):
    X, y = runs
    counted = np.argsort(np.argsort(X.ids)) % 2 == 1  # every other in id order
    alone = alternating(X[counted], y[counted], 2)
    dropping = clone(RUNNING).set_params(censored="drop")
    out = cross_fit_traces(dropping, X, np.where(counted, y, -1), cv=2)
    expected = by_hand(RUNNING, X[counted], y[counted], alone)
    np.testing.assert_array_equal(out.cells[np.repeat(counted, X.lengths)], expected)
    assert ((out.cells > 0) & (out.cells < 1)).all()
    weighted = cross_fit_traces(RUNNING, X, y, cv=2, sample_weight=counted.astype(float))
    for folds in (folds_of(out), folds_of(weighted)):
        assert folds[counted].tolist() == alone.tolist()
    assert 0.3 < folds_of(weighted)[~counted].mean() < 0.7
    soft = clone(RUNNING).set_params(censored="q_z")
    codes, q_z = np.where(counted, y, -1), np.where(y == 1, 0.9, 0.1)
    balanced = folds_of(cross_fit_traces(soft, X, codes, cv=2, q_z=q_z))
    assert balanced.tolist() == alternating(X, y, 2).tolist()


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


@pytest.mark.parametrize("forecaster", [Recorder(), make_pipeline("passthrough", Recorder())])
def test_weights_and_groups_go_to_the_fits_that_take_them(runs, forecaster):
    X, y = runs
    groups, weight = np.char.add("task", (X.ids // 5).astype(str)), 1.0 + X.ids
    Recorder.told = ()
    cross_fit_traces(forecaster, X, y, groups=groups, sample_weight=weight, cv=3)
    assert len(Recorder.told) == 3
    names = np.unique(groups)
    for ids, weights, codes in Recorder.told:
        assert ids == sorted(ids)
        assert weights.tolist() == [1.0 + one for one in ids]
        assert names[codes].tolist() == [f"task{one // 5}" for one in ids]
        others = set(X.ids) - set(ids)
        assert not {one // 5 for one in ids} & {one // 5 for one in others}  # no task is split


@pytest.mark.parametrize("forecaster", [RUNNING, AliveRate(end="step")], ids=["prefix", "alive"])
def test_fit_transform_of_a_learned_forecaster_is_out_of_fold(runs, forecaster):
    X, y = runs
    groups, weight = X.ids // 5, 1.0 + X.ids % 3
    one = clone(forecaster)
    out = one.fit_transform(X, y, sample_weight=weight, groups=groups)
    assert out == cross_fit_traces(forecaster, X, y, groups=groups, sample_weight=weight)
    # of new runs forecasts are those of the fit on all
    whole = clone(forecaster).fit(X, y, sample_weight=weight).transform(X)
    np.testing.assert_array_equal(one.transform(X).cells, whole.cells)
    assert np.abs(out.cells - whole.cells).max() > 0.01
    padded = clone(forecaster).fit_transform(X.padded(), y)
    assert padded.shape == X.shape
    # so are those that a calibrator after it learns from
    pipeline = make_pipeline(clone(forecaster), PlattCrossFitCalibrator())
    inner = clone(forecaster).fit_transform(X, y, groups=groups)
    expected = PlattCrossFitCalibrator().fit_transform(inner, y, groups=groups)
    given = {f"{step}__groups": groups for step in pipeline.named_steps}
    assert pipeline.fit_transform(X, y, **given).cells.tolist() == expected.cells.tolist()


@pytest.mark.parametrize("routing", [False, True])
def test_a_nested_search_keeps_groups_whole_inside_and_outside(runs, routing):
    X, y = runs
    groups = X.ids // 5

    class Noted(GroupKFold):
        parts = ()

        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                Noted.parts += (tuple(set(groups[rows].tolist()) for rows in (train, test)),)
                yield train, test

    search = clone(SEARCH).set_params(cv=Noted(2))
    for forecaster in (search, make_pipeline(search, TraceAggregator())):
        Noted.parts = ()
        with config_context(enable_metadata_routing=routing):
            cross_fit_traces(forecaster, X, y, groups=groups, cv=3)
        assert len(Noted.parts) == 3 * 2
        for train, test in Noted.parts:
            assert not train & test
            assert len(train | test) == 20  # two thirds of the 30 groups, the others held out
    # scikit-learn warns, here an error, where groups are not read
    cross_fit_traces(SEARCH, X, y, groups=groups, sample_weight=np.ones(len(y)), cv=3)


class Uncloned:
    def fit(self, X, y):
        return self

    def transform(self, X):
        return X


class TwoNumbers(Recorder):
    def transform(self, X):
        return TrajectoryArray.stack([X, X])


class Shorter(Recorder):
    def transform(self, X):
        return X.prefix(1)


def test_what_cannot_be_cross_fitted_is_refused_by_name(runs):
    X, y = runs
    prefit = SelectFromModel(LogisticRegression(), prefit=True)
    stacked = StackingClassifier([("a", LogisticRegression())], cv="prefit")
    for forecaster, words in (
        (LogisticRegression(), r"PrefixForecaster\(LogisticRegression\(\)\)"),
        (RawVerifier(), "RawVerifier has none$"), (PrefixForecaster, r"PrefixForecaster\(\)"),
        ("platt", "forecaster .*'platt'"), (TwoNumbers(), "TwoNumbers .*one number"),
        (Shorter(), "Shorter .*one number"), (FrozenEstimator(RUNNING), "FrozenEstimator"),
        (make_pipeline(FrozenEstimator(RUNNING), TraceAggregator()), "Pipeline with frozenest"),
        (PrefixForecaster(prefit), "PrefixForecaster with estimator__prefit=True"),
        (PrefixForecaster(stacked), "PrefixForecaster with estimator__cv='prefit'"),
        (Uncloned(), "Uncloned .*BaseEstimator"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            cross_fit_traces(forecaster, X, y)
    for forecaster, outcomes, how, words in (
        (TraceAggregator(), y, {"sample_weight": np.ones(len(y))}, "sample_weight .*TraceAggr"),
        (RUNNING, y[1:], {}, "149 outcomes for 150 runs"),
        (RUNNING, y, {"cv": 99}, "cv = 99"),
        (RUNNING, y, {"cv": ShuffleSplit(2, random_state=0)}, "test fold"),
        (RUNNING, y, {"n_jobs": 0}, "n_jobs"),
    ):
        with pytest.raises(ValueError, match=words):
            cross_fit_traces(forecaster, X, outcomes, **how)
    gaps = TrajectoryArray(np.where(X.cells < 0.1, np.nan, X.cells), X.lengths, missing="allow")
    assert np.isnan(cross_fit_traces(Recorder(), gaps, y).cells).any()
    for forecaster in (RUNNING, PlattCrossFitCalibrator()):
        with pytest.raises(ValueError, match="missing"):
            cross_fit_traces(forecaster, gaps, y)


# ------------------------------------------------------------------ runs of a log

SIGNALS = ActionSignals(["agent_turns", "writes", "refusals"], writes=["set"], transfers=[])
LAST = PrefixForecaster(features="last", last=1, pooled=True)
OVER_LOGS = make_pipeline(SIGNALS, LAST)


@pytest.fixture(scope="module")
def log():
    """Runs that fail more often the more they write, in another order than their ids."""
    rng, runs = np.random.default_rng(0), []
    for k in rng.permutation(60):
        outcome = int(rng.integers(0, 2))
        n_writes = rng.integers(0, 3) + 2 * (1 - outcome)
        calls = [io.ToolCall("set", {"x": j}) for j in range(n_writes)]
        steps = [io.Step("agent", tool_calls=[call]) for call in calls]
        steps = [io.Step("user", "Hi"), *steps, io.Step("agent", "Done")]
        task = {"task": f"t{k // 3}", "trial": int(k % 3)}
        runs.append(io.Run(f"r{k:02d}", steps, outcome=outcome, **task))
    return runs


def test_runs_of_a_log_go_through_pipelines_as_their_signals_do(log, rng):
    y, tasks = io.outcomes(log), np.array([run.task for run in log])
    signals = SIGNALS.fit_transform(log)
    for options in (
        {},
        {"groups": tasks, "cv": GroupKFold(3)},
        {"cv": PredefinedSplit(np.arange(60) % 4)},
        {"sample_weight": np.arange(60) % 3},
    ):
        found = cross_fit_traces(OVER_LOGS, log, y, **options)
        expected = cross_fit_traces(LAST, signals, y, **options)
        assert found == expected  # steps, ids, meta with the folds, and what has ended
    found = cross_fit_traces(OVER_LOGS, log, y)
    order = rng.permutation(len(log))
    assert cross_fit_traces(OVER_LOGS, [log[row] for row in order], y[order]) == found[order]
    held = np.empty(60, dtype=object)
    held[:] = log
    for form in (tuple(log), io.Runs(log), pd.Series(log), held):
        assert cross_fit_traces(OVER_LOGS, form, y) == found


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


def test_bad_input_with_a_log(log):
    y, ids = io.outcomes(log), [run.id for run in log]
    shorter = make_pipeline(SIGNALS, FunctionTransformer(lambda X: X["writes"][1:]))
    for work, words in (
        (lambda: cross_fit_traces(OVER_LOGS, log, y[1:]), "59 outcomes for 60 runs"),
        (
            lambda: cross_fit_traces(OVER_LOGS, log, pd.Series(y, index=ids)[::-1]),
            f"row 0: y .*'{ids[-1]}'.*'{ids[0]}'",
        ),
        (lambda: cross_fit_traces(OVER_LOGS, [*log[1:], "r1"], y), "'r1'"),
        (lambda: cross_fit_traces(SIGNALS, log, y), "ActionSignals .*one number"),
        (lambda: cross_fit_traces(shorter, log, y), "Pipeline .*one number"),
        (lambda: cross_fit_traces(PlattCrossFitCalibrator(), log, y), "make_pipeline"),
        (lambda: cross_fit_traces(LAST, log, y), "make_pipeline"),
        (lambda: LAST.fit(log, y), "make_pipeline"),
    ):
        with pytest.raises(ValueError, match=words):
            work()
