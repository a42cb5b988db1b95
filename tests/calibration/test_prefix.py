import pickle

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import CROSS_FIT_CHECKS, any_two_labels
from trajscore import (
    DensityRatioEProcess,
    PrefixForecaster,
    TraceAggregator,
    TrajectoryArray,
    make_tps_scorer,
    tps_scorer,
)
from trajscore.calibration import _prefix
from trajscore.calibration._features import PrefixFeatures, without
from trajscore.core.within_runs import cells_by_step, first_step_above, running_max, running_sum
from trajscore.datasets import make_trajectories
from trajscore.metrics import tps_score
from trajscore.testing._estimator_checks import check_trajectory_estimator


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(500, lengths=(1, 7), random_state=0, return_X_y=True)


def test_one_classifier_a_step(runs):
    X, y = runs
    F = PrefixForecaster().fit(X, y).transform(X)
    for t in (1, 3, 7):
        alive = X.lengths >= t
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
        expected = model.fit(X.steps(t), y[alive]).predict_proba(X.steps(t))[:, 1]
        found = np.array([F[row][t - 1] for row in np.flatnonzero(alive)])
        np.testing.assert_allclose(found, expected, atol=1e-4)


def reference_features(run, t, kind, last):
    seen = run[:t]
    if kind == "summary":
        change = seen[-1] - seen[-2] if t > 1 else 0.0
        return [seen.mean(), seen.min(), seen.max(), seen[-1], change, t]
    back = [seen[max(t - 1 - lag, 0)] for lag in range(last)]
    return [*back, t]


@pytest.mark.parametrize("kind", ["summary", "last"])
def test_features_run_by_run(runs, kind):
    X, _ = runs
    rows = PrefixFeatures(kind, 3, pooled=True).at_all_steps(X)
    expected = [reference_features(run, t, kind, 3) for run in X for t in range(1, len(run) + 1)]
    np.testing.assert_allclose(rows, expected, rtol=1e-12)
    called = PrefixFeatures(lambda seen: seen[:, -1], 3, pooled=True).at_all_steps(X)
    np.testing.assert_array_equal(called[:, 0], X.cells)


def test_running_statistics_are_exact(rng):
    lengths = rng.integers(1, 30, 300)
    X = TrajectoryArray(rng.normal(size=lengths.sum()) * 1e6, lengths)
    sums = np.concatenate([np.cumsum(run) for run in X])
    highs = np.concatenate([np.maximum.accumulate(run) for run in X])
    np.testing.assert_array_equal(running_sum(X, X.cells), sums)
    np.testing.assert_array_equal(running_max(X, X.cells), highs)
    limit = rng.normal(size=300) * 1e6
    expected = [
        next((t for t, value in enumerate(run, start=1) if value > c), 0)
        for run, c in zip(X, limit, strict=True)
    ]
    assert first_step_above(X, X.cells, limit).tolist() == expected
    summary = PrefixFeatures("summary", 1, pooled=True)
    seen, live = summary.begin(1, 1), []
    for t, value in enumerate(X[5], start=1):
        seen = summary.push(seen, np.array([[value]]), t)
        live += summary.rows(seen, t).tolist()
    np.testing.assert_array_equal(live, summary.at_all_steps(X)[X.offsets[5] : X.offsets[6]])


def test_steps_with_few_runs_of_an_outcome_keep_the_forecast():
    cells = np.r_[np.full(12, 0.2), np.full(12, 0.8), 0.1, 0.9]
    X = TrajectoryArray(cells, [1] * 22 + [2] * 2)
    y = np.r_[np.zeros(12), np.ones(12)].astype(int)
    forecaster = PrefixForecaster().fit(X, y)
    assert len(forecaster.estimators_) == 2  # one a step
    assert forecaster.estimators_[1] is None
    F = forecaster.transform(X)
    assert (F[23] == F[23][0]).all()
    none = PrefixForecaster(min_class_count=13).fit(X, y)
    np.testing.assert_array_equal(none.transform(X).cells, 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"features": "summary"},
        {"features": "last", "last": 2, "pooled": True},
        {"features": "summary", "pooled": True},
    ],
    ids=str,
)
def test_weights_are_counts_and_rows_have_no_order(runs, options):
    X, y = runs
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    weighted = PrefixForecaster(**options, min_class_count=1).fit(X, y, sample_weight=weight)
    repeated = TrajectoryArray.from_list([X[int(row)] for row in rows])
    other = PrefixForecaster(**options, min_class_count=1).fit(repeated, y[rows])
    np.testing.assert_allclose(weighted.transform(X).cells, other.transform(X).cells, atol=2e-4)
    order = np.random.default_rng(0).permutation(len(X))
    one = PrefixForecaster(**options).fit(X, y)
    with parallel_config(backend="threading"):  # processes take seconds to start
        two = PrefixForecaster(**options, n_jobs=2).fit(X[order], y[order])
    np.testing.assert_array_equal(one.transform(X).cells, two.transform(X).cells)


@pytest.mark.parametrize("options", [{}, {"features": "summary", "pooled": True}], ids=str)
def test_our_own_checks(options):
    check_trajectory_estimator(PrefixForecaster(**options, min_class_count=1))


@any_two_labels
class AnyPrefix(PrefixForecaster):
    pass


# converged, so that weights are counts to the checks' tolerance
EXACT = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-12, max_iter=2000))


@parametrize_with_checks(
    [AnyPrefix(EXACT, min_class_count=1)],
    expected_failed_checks=lambda _: CROSS_FIT_CHECKS,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_proper_scores_choose_among_settings(runs):
    X, y = runs
    pipeline = make_pipeline(PrefixForecaster(), TraceAggregator())
    search = GridSearchCV(
        pipeline,
        {
            "prefixforecaster__features": ["prefix", "last"],
            "prefixforecaster__estimator": [None, HistGradientBoostingClassifier(max_iter=5)],
        },
        scoring=make_tps_scorer("log"),
        cv=3,
        n_jobs=2,
    ).fit(X, y)
    assert search.best_params_["prefixforecaster__estimator"] is None
    scores = cross_validate(
        clone(pipeline), X, y, scoring={"tps": tps_scorer, "auroc": "roc_auc"}, cv=3
    )
    assert scores["test_auroc"].mean() > 0.6
    base = tps_score(y, X.with_cells(np.full(len(X.cells), y.mean())))
    assert scores["test_tps"].mean() > base


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "all"}, "features must be prefix, last, summary, running or a function"),
        ({"features": "last", "last": 0}, "last must be a whole number >= 1"),
        ({"estimator": SVC()}, r"SVC has none; .* use CalibratedClassifierCV\(SVC\(\)\)"),
        ({"pooled": True}, 'use features="summary"'),
        ({"end": "never"}, "end must be 'step', 'after' or None, got 'never'"),
        ({"end": "step"}, "end needs pooled=True"),
        ({"min_class_count": "a"}, "min_class_count must be a whole number, got 'a'"),
        ({"features": lambda seen: seen[:1, -1]}, "must return one row a run"),
        ({"features": lambda seen: seen[:, :, 0], "pooled": True}, "as many features at every"),
    ],
)
def test_bad_parameters(runs, options, message):
    with pytest.raises(ValueError, match=message):
        PrefixForecaster(**options).fit(*runs)


def test_unobserved_runs_are_left_out_and_counted(runs):
    X, y = runs
    codes = np.where(np.arange(len(y)) < 30, -1, y)
    forecaster = PrefixForecaster(features="last", last=1, pooled=True, censored="drop")
    one, other = clone(forecaster).fit(X, codes), clone(forecaster).fit(X[30:], y[30:])
    assert (one.n_dropped_, other.n_dropped_) == (30, 0)
    assert (one.n_censored_, other.n_censored_) == (30, 0)
    assert one.base_rate_ == y[30:].mean()
    assert one.transform(X) == other.transform(X)


@pytest.mark.parametrize("pooled", [False, True])
def test_unobserved_runs_are_failures_unless_said_otherwise(runs, pooled):
    X, y = runs
    codes = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    forecaster = PrefixForecaster(features="summary", pooled=pooled)
    one = clone(forecaster).fit(X, codes)
    assert (one.n_censored_, one.n_dropped_) == (100, 0)
    assert one.transform(X) == clone(forecaster).fit(X, np.maximum(codes, 0)).transform(X)
    soft = clone(forecaster).set_params(censored="q_z")
    assert clone(soft).fit(X, codes, q_z=0.0).transform(X) == one.transform(X)
    with pytest.raises(ValueError, match='censored="q_z" needs q_z'):
        soft.fit(X, codes)
    with pytest.raises(ValueError, match="q_z is read only with"):
        one.fit(X, codes, q_z=0.5)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_run_of_soft_outcome_counts_twice(runs, pooled):
    X, y = runs
    soft = np.flatnonzero(np.arange(len(y)) % 5 == 0)
    codes, q_z, weight = y.copy(), np.full(len(y), np.nan), np.linspace(0.5, 2, len(y))
    codes[soft], q_z[soft] = -1, np.linspace(0, 1, len(soft))
    forecaster = PrefixForecaster(features="last", last=1, pooled=pooled, min_class_count=1)
    twice = clone(forecaster).fit(
        TrajectoryArray.concat([X, X[soft]]),
        np.r_[np.where(codes < 0, 0, codes), np.ones(len(soft))],
        sample_weight=np.r_[np.where(codes < 0, 1 - q_z, 1), q_z[soft]]
        * np.r_[weight, weight[soft]],
    )
    once = clone(forecaster).set_params(censored="q_z").fit(X, codes, weight, q_z)
    np.testing.assert_allclose(once.transform(X).cells, twice.transform(X).cells, rtol=0, atol=1e-6)
    assert once.base_rate_ == pytest.approx(twice.base_rate_)
    graded = clone(forecaster).fit(X, np.where(codes < 0, q_z, codes), weight)
    assert graded.transform(X) == once.transform(X)


def test_bad_outcomes(runs):
    X, y = runs
    with pytest.raises(ValueError, match="all successes, one class"):
        PrefixForecaster().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="or soft outcomes need it, but no fit of KNeighbors"):
        PrefixForecaster(KNeighborsClassifier()).fit(X, np.r_[0.5, y[1:]])
    with pytest.raises(ValueError, match="no training run has an observed outcome"):
        PrefixForecaster(censored="drop").fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="all failures, one class"):
        PrefixForecaster().fit(X, np.full(len(X), -1))


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_live_forecasts_of_scores_far_from_zero(runs, offset):
    X, y = runs
    X = X.with_cells(X.cells * 1e-3 + offset)
    forecaster = PrefixForecaster().fit(X, y)
    row = int(np.argmax(X.lengths))
    state, live = forecaster.begin(), []
    for score in X[row]:
        state, p = forecaster.advance(state, [score])
        live += p.tolist()
    np.testing.assert_allclose(live, forecaster.transform(X)[row], rtol=0, atol=1e-13)


LIVE = {
    "prefix": PrefixForecaster(),
    "last": PrefixForecaster(features="last", last=2),
    "summary": PrefixForecaster(features="summary"),
    "function": PrefixForecaster(features=lambda seen: seen.mean(axis=1)),
    "pooled last": PrefixForecaster(features="last", pooled=True),
    "pooled summary": PrefixForecaster(features="summary", pooled=True),
    "pooled function": PrefixForecaster(features=lambda seen: seen[:, -1], pooled=True),
    "unscaled": PrefixForecaster(LogisticRegression()),
    "trees": PrefixForecaster(
        HistGradientBoostingClassifier(max_iter=3), features="summary", pooled=True
    ),
}


@pytest.mark.parametrize("forecaster", LIVE.values(), ids=LIVE)
@pytest.mark.parametrize("n_channels", [1, 2])
def test_live_is_batch_to_the_last_digit_alone_and_together(runs, forecaster, n_channels):
    X, y = runs
    if n_channels == 2:
        X = TrajectoryArray(np.stack([X.cells, X.cells**2], axis=1), X.lengths)
    fitted = forecaster.fit(X[:300], y[:300])
    new = X[300:340]
    batch = fitted.transform(new)
    for row, scores in enumerate(new):  # one run after the other
        state = fitted.begin()
        for t, step in enumerate(scores):
            state, p = fitted.advance(state, np.atleast_2d(step), [t + 1 == len(scores)])
            assert p.shape == (1,)
            assert p[0] == pytest.approx(batch[row][t], abs=2e-15)
    state, rows = fitted.begin(len(new)), np.arange(len(new))  # all at once
    for t in range(int(new.lengths.max())):
        scores = np.stack([np.atleast_1d(new[int(row)][t]) for row in rows])
        ends = new.lengths[rows] == t + 1
        before = pickle.dumps(state)
        after, p = fitted.advance(state, scores, ends)
        assert pickle.dumps(state) == before  # so that a step can be taken back
        assert p.tolist() == [batch[int(row)][t] for row in rows]
        state, rows = after, rows[~ends]


@pytest.mark.parametrize(
    ("scaler", "name"),
    [(StandardScaler(with_mean=False), "mean"), (StandardScaler(with_std=False), "std")],
)
def test_a_scaler_that_leaves_a_part_out_is_followed(runs, scaler, name):
    X, y = runs
    X = X.with_cells(X.cells + 3)
    forecaster = PrefixForecaster(make_pipeline(scaler, LogisticRegression(max_iter=2000))).fit(
        X, y
    )
    expected = forecaster.estimators_[1].predict_proba(X.steps(2))[:, 1]
    second = np.array([run[1] for run in forecaster.transform(X) if len(run) > 1])
    np.testing.assert_allclose(second, expected, rtol=1e-12)


def test_bad_steps_are_refused(runs):
    forecaster = PrefixForecaster().fit(*runs)
    with pytest.raises(NotFittedError):
        PrefixForecaster().begin()
    for scores, message in [
        ([[0.1, 0.2]], r"scores must have shape \(n_runs, 1\), got \(1, 2\)"),
        ([np.nan], "a score is missing or infinite"),
        ([np.inf], "a score is missing or infinite"),
    ]:
        with pytest.raises(ValueError, match=message):
            forecaster.advance(forecaster.begin(), scores)
    aggregator = TraceAggregator().fit([[0.5]], [1])
    with pytest.raises(ValueError, match=r"forecast 1.4 lies outside \[0, 1\]"):
        aggregator.advance(aggregator.begin(), [1.4])


@pytest.mark.parametrize("last", [1, 3, 9])
def test_the_last_scores_are_kept_without_the_whole_prefix(runs, last):
    X, _ = runs
    two = TrajectoryArray(np.stack([X.cells, -X.cells], axis=1), X.lengths)
    features = PrefixFeatures("last", last, pooled=False)
    for one in (X, two):
        cells = one.cells.reshape(len(one.cells), -1)
        seen = features.begin(len(X), one.n_channels)
        for t, (here, ends) in enumerate(cells_by_step(one), start=1):
            seen = features.push(seen, cells[here], t)
            expected = one.steps(t).reshape(-1, t, one.n_channels)[:, -last:]
            np.testing.assert_array_equal(
                features.rows(seen, t), expected.reshape(len(expected), -1)
            )
            assert seen[0].shape[1] == min(last, t)
            seen = without(seen, ends)


def test_weights_that_no_classifier_takes_are_refused(runs):
    weight = np.ones(len(runs[1]))
    with pytest.raises(ValueError, match="no fit of KNeighborsClassifier takes it"):
        PrefixForecaster(KNeighborsClassifier()).fit(*runs, sample_weight=weight)
    with config_context(enable_metadata_routing=True):  # which ends at the forecaster
        routed = PrefixForecaster().fit(*runs, sample_weight=weight)
    assert routed.transform(runs[0]) == PrefixForecaster().fit(*runs, weight).transform(runs[0])


@pytest.mark.parametrize("features", ["prefix", "last", "summary", lambda seen: seen[:, -1]])
def test_no_runs(runs, features):
    X, y = runs
    for pooled in (False, True):
        if not (pooled and features == "prefix"):
            forecaster = PrefixForecaster(features=features, pooled=pooled).fit(X, y)
            assert len(forecaster.transform(X[:0])) == 0


def test_features_of_another_width_than_in_fitting(runs):
    X, y = runs
    width = [2]
    forecaster = PrefixForecaster(features=lambda seen: np.ones((len(seen), width[0]))).fit(X, y)
    width[0] = 1  # would be spread over both coefficients
    live = forecaster.begin()
    for use in (lambda: forecaster.transform(X), lambda: forecaster.advance(live, [0.5])):
        with pytest.raises(ValueError, match="returned 1 features, in fitting it returned 2"):
            use()


def test_outputs_have_the_names_that_they_claim():
    X, y = make_trajectories(120, random_state=0, return_X_y=True)
    process = DensityRatioEProcess(PrefixForecaster(), threshold="ville").fit(X, y)
    for fitted in (process.forecaster_, process):
        assert fitted.transform(X).channels == tuple(fitted.get_feature_names_out())
    union = FeatureUnion(
        [("paper", PrefixForecaster()), ("e", DensityRatioEProcess(threshold="ville"))],
        verbose_feature_names_out=False,
    )
    both = union.fit(X, y).transform(X)
    assert both.channels == tuple(union.get_feature_names_out()) == ("probability", "log_e_value")


def test_running_features_are_those_of_the_scores_so_far(runs):
    """Twenty-six numbers, from the steps so far alone."""
    seen = []

    class Recorder(LogisticRegression):
        def fit(self, rows, y):
            seen.append(rows)
            return super().fit(rows, y)

    X, y = runs
    PrefixForecaster(Recorder(), features="running", pooled=True).fit(X, y)
    order = np.argsort(X.ids)
    row, t = int(order[np.argmax(X.lengths[order] == 5)]), 4
    start = X.lengths[order][: np.flatnonzero(order == row)[0]].sum()
    s = X[row][:t]
    log_odds = np.log(s / (1 - s)).mean()
    core = [s[-1], s.mean(), s.min(), s.max(), s[-2], log_odds, s.std(), s[0]]
    step = [*np.eye(9)[t - 1], np.log(t)]
    expected = [*core, *(np.array(core) * np.log(t)), *step]
    np.testing.assert_allclose(seen[0][start + t - 1], expected, rtol=1e-9)


@pytest.mark.parametrize("end", ["step", "after"])
def test_last_steps_have_a_classifier_of_their_own(end):
    X, y = make_trajectories(600, lengths=(1, 5), random_state=0, return_X_y=True)
    y = np.where(X.lengths == 1, 0, y)  # that a run ends at once tells all
    forecaster = PrefixForecaster(features="running", pooled=True, end=end).fit(X, y)
    first = X[X.lengths > 1].prefix(1)
    assert not first.ended.any()
    going, ended = forecaster.transform(first), forecaster.transform(first.with_ended())
    assert ended.cells.max() < 0.1 < going.cells.mean()
    trained = PrefixForecaster(features="running", pooled=True)
    on_all = trained.fit(X, y).transform(first)
    assert (np.abs(on_all.cells - going.cells).max() < 1e-12) == (end == "after")
    score = tps_scorer(forecaster, X.with_ended(False), y)  # outcomes say what has ended
    assert score == tps_score(y, forecaster.transform(X.with_ended()))
    few = X[np.r_[np.flatnonzero(y == 1)[:4], np.flatnonzero(y == 0)[:40]]]
    sparse = clone(forecaster).fit(few, np.repeat([1, 0], [4, 40]))
    assert sparse.estimators_[1] is None
    assert sparse.transform(few.prefix(1).with_ended()).cells[0] == pytest.approx(4 / 44)


@pytest.mark.parametrize("features", ["last", "running"])
def test_a_logistic_regression_alone_forecasts_as_it_does(runs, features):
    X, y = runs
    forecaster = PrefixForecaster(LogisticRegression(), features=features, pooled=True).fit(X, y)
    rows = PrefixFeatures(features, 3, True).at_all_steps(X)
    expected = forecaster.estimators_[0].predict_proba(rows)[:, 1]
    np.testing.assert_allclose(forecaster.transform(X).cells, expected, rtol=1e-12)


@pytest.mark.parametrize("end", [None, "step"])
@pytest.mark.parametrize("at_once", [1, 20])
def test_steps_are_forecast_in_chunks(runs, monkeypatch, end, at_once):
    X, y = runs
    forecaster = PrefixForecaster(features="summary", pooled=True, end=end).fit(X, y)
    whole = forecaster.transform(X.with_ended())
    sizes, chunk = [], PrefixForecaster._of_all_steps

    def counted(self, part):
        sizes.append(len(part.cells))
        return chunk(self, part)

    monkeypatch.setattr(PrefixForecaster, "_of_all_steps", counted)
    monkeypatch.setattr(_prefix, "_CHUNK_CELLS", at_once)
    np.testing.assert_array_equal(forecaster.transform(X.with_ended()).cells, whole.cells)
    assert sum(sizes) == len(X.cells)
    assert max(sizes) < at_once + 7  # a run stays whole


@pytest.mark.parametrize("features", ["summary", "running", "last", lambda seen: seen[:, -1]])
def test_cells_that_are_used_are_in_the_order_of_the_runs(features):
    X = TrajectoryArray(np.arange(9.0), [4, 1, 3, 1])
    every = PrefixFeatures(features, 2, pooled=True)
    whole = every.at_all_steps(X)
    assert whole.shape[0] == 9
    for cells in ([0], [8], [3, 4], [0, 2, 5, 8], [1, 2, 3, 6, 7], range(9)):
        used = np.isin(np.arange(9), cells)
        np.testing.assert_array_equal(every.at_all_steps(X, used), whole[used])


def test_certain_forecasts_are_clipped_on_both_sides(runs):
    X, y = runs
    nearest = PrefixForecaster(KNeighborsClassifier(1), features="summary", pooled=True).fit(X, y)
    assert set(nearest.transform(X).cells) == {1e-6, 1 - 1e-6}


# ------------------------------------------------------------------ scores that were not recorded

TREES = HistGradientBoostingClassifier(max_iter=3)
IMPUTED = make_pipeline(
    SimpleImputer(keep_empty_features=True), StandardScaler(), LogisticRegression(max_iter=500)
)
FEATURES = {
    "prefix": {},
    "last": {"features": "last", "last": 2, "pooled": True},
    "summary": {"features": "summary"},
    "running": {"features": "running", "pooled": True, "end": "step"},
    "function": {"features": lambda seen: seen[:, -1], "pooled": True},
}


@pytest.fixture(scope="module")
def gaps(runs):
    """Channels that are there always, sometimes and never."""
    X, y = runs
    rng = np.random.default_rng(5)
    some = np.where(rng.random(len(X.cells)) < 0.4, np.nan, rng.normal(size=len(X.cells)))
    never = np.full(len(X.cells), np.nan)
    cells = np.column_stack([X.cells, some, never])
    return X.with_cells(cells, channels=["judge", "logprob", "tokens"]).with_ended(), y


@pytest.mark.parametrize("kind", ["summary", "running"])
def test_statistics_are_of_the_scores_that_were_recorded(gaps, kind):
    X, _ = gaps
    X, n = X["logprob"], {"summary": 5, "running": 8}[kind]
    features = PrefixFeatures(kind, 3, pooled=True)
    rows = features.at_all_steps(X)
    for run, found in zip(X, np.split(rows, X.offsets[1:-1]), strict=True):
        recorded = run[~np.isnan(run)]
        dense = features.at_all_steps(
            TrajectoryArray(recorded, [len(recorded)] * bool(len(recorded)))
        )
        for t in range(1, len(run) + 1):
            k = int((~np.isnan(run[:t])).sum())
            expected = dense[k - 1, :n] if k else np.full(n, np.nan)
            np.testing.assert_array_equal(found[t - 1, :n], expected)
            if kind == "running":
                np.testing.assert_array_equal(found[t - 1, n : 2 * n], expected * np.log(t))
            assert not np.isnan(found[t - 1, -1])  # the step is always known


@pytest.mark.parametrize("options", FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("classifier", [TREES, IMPUTED], ids=["trees", "imputed"])
def test_missing_scores_reach_classifiers_that_take_them_live_and_in_a_batch(
    gaps, classifier, options
):
    X, y = gaps
    fitted = PrefixForecaster(classifier, **options).fit(X[:300], y[:300])
    batch = fitted.transform(X)
    live, state = np.empty(len(X.cells)), fitted.begin(len(X))
    for here, ends in cells_by_step(X):
        state, live[here] = fitted.advance(state, X.cells[here], ends)
    np.testing.assert_allclose(live, batch.cells, rtol=0, atol=1e-15)
    assert ((live > 0) & (live < 1)).all()
    cut = fitted.transform(X.prefix(2).with_ended(X.lengths <= 2))
    # nothing of later steps
    np.testing.assert_allclose(cut.cells, batch.prefix(2).cells, rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match="a score is missing or infinite"):
        fitted.advance(fitted.begin(), [[0.5, np.inf, np.nan]])


@pytest.mark.parametrize("options", FEATURES.values(), ids=FEATURES)
def test_a_channel_that_is_missing_everywhere_changes_nothing(gaps, options):
    X, y = gaps
    with_it = PrefixForecaster(TREES, **options).fit(X, y)
    recorded = X[["judge", "logprob"]]
    without_it = PrefixForecaster(TREES, **options).fit(recorded, y).transform(recorded)
    assert with_it.transform(X) == without_it
    new = X.with_cells(np.nan_to_num(X.cells, nan=0.7))  # where it is recorded for the first time
    known = PrefixForecaster(TREES, **options).fit(recorded, y)
    assert with_it.transform(new) == known.transform(new[["judge", "logprob"]])


@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(5, random_state=0),
        make_pipeline(StandardScaler(), "passthrough", VarianceThreshold(), TREES),
        make_pipeline(SimpleImputer(), LogisticRegression()),
        CalibratedClassifierCV(TREES, cv=2),
        GridSearchCV(IMPUTED, {"logisticregression__C": [0.1]}, cv=2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_takes_missing_scores_is_told_by_its_tags(gaps, classifier):
    F = PrefixForecaster(classifier, features="last", pooled=True).fit(*gaps).transform(gaps[0])
    assert np.isfinite(F.cells).all()


@pytest.mark.parametrize(
    "classifier",
    [
        None,
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        CalibratedClassifierCV(LogisticRegression()),
    ],
    ids=str,
)
def test_other_classifiers_refuse_missing_scores_and_name_the_channel(gaps, classifier):
    X, y = gaps
    remedy = (
        r"; or give PrefixForecaster a classifier that takes missing values: "
        r"HistGradientBoostingClassifier\(\), or make_pipeline\(SimpleImputer\("
    )
    forecaster = PrefixForecaster(classifier)
    everywhere = (
        rf"'tokens' has no value at any step; leave it out: X\[\['judge', 'logprob'\]\]{remedy}"
    )
    with pytest.raises(ValueError, match=everywhere):
        forecaster.fit(X, y)
    with pytest.raises(ValueError, match=f"'tokens' has no value at any step; give sig.*{remedy}"):
        forecaster.fit(X["tokens"], y)
    with pytest.raises(ValueError, match=rf"step \d, channel 'logprob': the value is .*{remedy}"):
        forecaster.fit(X[["judge", "logprob"]], y)
    forecaster.fit(X[["judge"]], y)
    with pytest.raises(ValueError, match=r"the value is missing"):
        forecaster.transform(X[["logprob"]].with_cells(X["logprob"].cells, channels=["judge"]))
    with pytest.raises(ValueError, match="a score is missing or infinite"):
        forecaster.advance(forecaster.begin(), [np.nan])


@pytest.mark.parametrize(("features", "C"), [("prefix", 1.0), ("running", 0.3)])
def test_shrinkage_of_the_usual_classifier(runs, features, C):
    X, y = runs
    fitted = PrefixForecaster(features=features, pooled=features == "running").fit(X[:60], y[:60])
    assert fitted.estimators_[0][-1].C == C


@pytest.mark.parametrize(
    ("rarer", "least", "fits"), [(1, 0, True), (1, 1, True), (1, 2, False), (2, 2, True)]
)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("pooled", [False, True])
def test_fewest_runs_of_the_rarer_outcome(rarer, least, fits, first, pooled):
    n = 3 + rarer
    X = TrajectoryArray(np.linspace(0.1, 0.9, 2 * n), np.full(n, 2), ended=True)
    y = np.r_[np.full(3, first), np.full(rarer, 1 - first)]
    model = KNeighborsClassifier(n_neighbors=1)
    options = {"pooled": True, "end": "step", "features": "last"} if pooled else {}
    fitted = PrefixForecaster(model, min_class_count=least, **options).fit(X, y)
    assert [one is not None for one in fitted.estimators_] == [fits, fits]
    base = fitted.transform(X).cells == y.mean()
    assert (~base).all() if fits else base.all()


def test_each_step_up_to_the_last_has_its_classifier():
    X = TrajectoryArray(np.r_[0.1, 0.9, 0.9, 0.1, 0.2, 0.8, 0.8, 0.2], np.full(4, 2))
    y = np.array([1, 0, 1, 0])
    model = DecisionTreeClassifier(random_state=0)
    fitted = PrefixForecaster(model, features=last_score, min_class_count=1).fit(X, y)
    assert len(fitted.estimators_) == 2
    assert [fitted._model(t) for t in (1, 2, 3)] == [*fitted.estimators_, None]
    # a score of .9 says failure at the first step and success at the second
    found = fitted.transform(TrajectoryArray([0.9, 0.9, 0.1, 0.1, 0.1], [2, 3]))
    np.testing.assert_allclose(found.cells.round(), [0, 1, 1, 0, 0])


def last_score(prefix):
    return prefix[:, -1]
