"""A forecaster that learns the chance of success from the scores so far."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from followed import followed
from trajscore import PrefixForecaster, TraceAggregator, TrajectoryArray
from trajscore.datasets import make_trajectories

NAN = float("nan")
TREES = HistGradientBoostingClassifier(max_iter=3)
LOGISTIC = LogisticRegression()
IMPUTED = make_pipeline(
    SimpleImputer(keep_empty_features=True), StandardScaler(), LogisticRegression(max_iter=500)
)


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(300, lengths=(1, 6), random_state=0, return_X_y=True)


class Rows(ClassifierMixin, BaseEstimator):
    """Keeps the features that it is given; takes missing ones."""

    given = ()

    def fit(self, X, y):
        Rows.given += (X,)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def features(X, kind, **how):
    """What the classifier of all steps is fitted on, run after run, step after step."""
    Rows.given = ()
    how = {"pooled": True, "min_class_count": 1, **how}
    y = np.resize([0, 1, 1, 0], len(X))
    PrefixForecaster(Rows(), features=kind, **how).fit(X, y)
    return Rows.given


# two channels; the second run ends after its second step and starts with a score not recorded
GAPS = TrajectoryArray(
    [[0.5, 2.0], [0.2, 5.0], [0.8, -1.0], [NAN, -1.0], [0.4, NAN]], [3, 2], missing="allow"
)


def statistics(scores):
    """Of the recorded scores of both channels, channel by channel within each statistic."""
    columns = [column[~np.isnan(column)] for column in np.transpose(scores)]
    p = [np.clip(column, 1e-4, 1 - 1e-4) for column in columns]
    of = (lambda a: a[-1], np.mean, np.min, np.max, lambda a: a[max(len(a) - 2, 0)])
    core = [f(a) for f in of for a in columns]
    core += [np.log(part / (1 - part)).mean() for part in p]
    return np.array(core + [a.std() for a in columns] + [a[0] for a in columns])


def test_features_by_hand():
    (rows,) = features(GAPS, "running")
    for t in (1, 2, 3):
        core = statistics(GAPS.cells[:t])
        step = [*np.eye(9)[t - 1], np.log(t)]
        np.testing.assert_allclose(rows[t - 1], [*core, *(core * np.log(t)), *step], atol=1e-12)
    late = statistics([[0.4, -1.0]])
    assert np.isnan(rows[3, 0:32:2]).all()
    np.testing.assert_allclose(rows[3, 1:16:2], late[1::2], atol=1e-12)
    np.testing.assert_allclose(rows[4, :16], late, atol=1e-12)
    # from the ninth step on they share an indicator
    (rows,) = features(TrajectoryArray(np.full(20, 0.5), [10, 10]), "running")
    np.testing.assert_array_equal(rows[7:10, 16:25], np.eye(9)[[7, 8, 8]])
    np.testing.assert_allclose(rows[:10, 25], np.log(np.arange(1, 11)))
    np.testing.assert_array_equal(rows[:, 6], 0)  # the spread of equal scores
    # the newest first, the first one repeated
    four = TrajectoryArray([1.0, 2, 3, 4, 9], [4, 1])
    (rows,) = features(four, "last", last=2)
    np.testing.assert_array_equal(rows, [[1, 1, 1], [2, 1, 2], [3, 2, 3], [4, 3, 4], [9, 9, 1]])
    (rows,) = features(GAPS, "last", last=2)
    np.testing.assert_array_equal(rows[2], [0.8, 0.2, -1, 5, 3])
    np.testing.assert_array_equal(rows[4], [0.4, NAN, NAN, -1, 2])
    (rows,) = features(GAPS, lambda seen: np.nansum(seen, axis=(1, 2)))
    np.testing.assert_allclose(rows, [[2.5, 1], [7.7, 2], [7.5, 3], [-1, 1], [-0.6, 2]])


def test_one_classifier_a_step_sees_the_steps_so_far():
    X = TrajectoryArray(np.arange(16.0), [4, 4, 4, 4])
    for kind, expected in (
        ("prefix", [[0, 1, 2], [4, 5, 6], [8, 9, 10], [12, 13, 14]]),
        ("last", [[1, 2], [5, 6], [9, 10], [13, 14]]),
    ):
        steps = features(X, kind, pooled=False, last=2)
        assert len(steps) == 4
        np.testing.assert_array_equal(steps[2], expected)


def test_steps_of_runs_that_end_are_for_another_classifier():
    X = TrajectoryArray(np.arange(9.0), [4, 1, 3, 1])
    for kind in ("running", "last", lambda seen: seen[:, -1]):
        (whole,) = features(X, kind)
        is_end = np.array([0, 0, 0, 1, 1, 0, 0, 1, 1], dtype=bool)
        for end, going in (("step", ~is_end), ("after", np.ones(9, dtype=bool))):
            parts = features(X, kind, end=end)
            np.testing.assert_array_equal(parts[0], whole[going])
            np.testing.assert_array_equal(parts[1], whole[is_end])


def test_forecasts_are_those_of_the_classifiers(runs):
    X, y = runs
    F = PrefixForecaster().fit(X, y).transform(X)
    running = PrefixForecaster(features="running", pooled=True).fit(X, y)
    optimum = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, tol=1e-9, max_iter=9999))
    optimum.fit(features(X, "running")[0], np.repeat(y, X.lengths))
    np.testing.assert_allclose(running.estimators_[0][-1].coef_, optimum[-1].coef_, atol=1e-5)
    for t in (1, 3, 6):
        alive = X.lengths >= t
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
        expected = model.fit(X.steps(t), y[alive]).predict_proba(X.steps(t))[:, 1]
        found = np.array([run[t - 1] for run in F if len(run) >= t])
        np.testing.assert_allclose(found, expected, atol=1e-4)
    scaled = X.with_cells(X.cells + 3)
    for model in (
        LOGISTIC,
        make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=2000)),
        make_pipeline(StandardScaler(with_std=False), LogisticRegression(max_iter=2000)),
        DecisionTreeClassifier(max_depth=2, random_state=0),
    ):
        fitted = PrefixForecaster(model).fit(scaled, y)
        expected = fitted.estimators_[1].predict_proba(scaled.steps(2))[:, 1]
        second = np.array([run[1] for run in fitted.transform(scaled) if len(run) > 1])
        np.testing.assert_allclose(second, np.clip(expected, 1e-6, 1 - 1e-6), rtol=1e-12)
    nearest = PrefixForecaster(KNeighborsClassifier(1), features="running", pooled=True)
    assert set(nearest.fit(X, y).transform(X).cells) == {1e-6, 1 - 1e-6}
    assert len(nearest.transform(X[:0])) == 0


def test_a_fit_has_one_thread_of_blas_and_leaves_as_many_as_before(runs):
    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    class Noting(Rows):
        def fit(self, X, y):
            assert threads() == {1}
            return super().fit(X, y)

    with threadpool_limits(2, "blas"), parallel_config(backend="threading"):
        PrefixForecaster(Noting(), n_jobs=2).fit(*runs)
        assert threads() == {2}


def test_steps_with_few_runs_of_an_outcome_keep_the_forecast():
    cells = np.r_[np.full(12, 0.2), np.full(12, 0.8), 0.1, 0.9]
    X = TrajectoryArray(cells, [1] * 22 + [2] * 2)
    y = np.repeat([0, 1], 12)
    forecaster = PrefixForecaster().fit(X, y)
    assert [model is None for model in forecaster.estimators_] == [False, True]
    assert forecaster.n_steps_ == 2
    last = forecaster.transform([[0.8, 0.1, 0.1]])[0]
    assert last[0] == last[1] == last[2]
    none = PrefixForecaster(min_class_count=13).fit(X, y)
    np.testing.assert_array_equal(none.transform(X).cells, 0.5)
    # .9 says failure at the first step and success at the second
    X = TrajectoryArray(np.r_[0.1, 0.9, 0.9, 0.1, 0.2, 0.8, 0.8, 0.2], np.full(4, 2))
    tree = DecisionTreeClassifier(random_state=0)
    fitted = PrefixForecaster(tree, features="last", last=1, min_class_count=1).fit(X, [1, 0, 1, 0])
    found = fitted.transform(TrajectoryArray([0.9, 0.9, 0.1, 0.1, 0.1], [2, 3]))
    np.testing.assert_allclose(found.cells.round(), [0, 1, 1, 0, 0])


OPTIONS = [
    {},
    {"features": "last", "last": 2, "pooled": True},
    {"features": "running"},
    {"features": "running", "pooled": True, "end": "step"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_weights_are_counts_and_rows_have_no_order(runs, options):
    X, y = runs
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(X)).astype(float)
    rows, order = np.repeat(np.arange(len(X)), weight.astype(int)), rng.permutation(len(X))
    exact = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, tol=1e-9, max_iter=999))
    forecaster = PrefixForecaster(exact, **options, min_class_count=1)
    weighted = clone(forecaster).fit(X, y, sample_weight=weight)
    repeated = TrajectoryArray.from_list([X[int(row)] for row in rows])
    other = clone(forecaster).fit(repeated, y[rows])
    np.testing.assert_allclose(weighted.transform(X).cells, other.transform(X).cells, atol=1e-4)
    assert weighted.base_rate_ == pytest.approx(y[rows].mean())
    with parallel_config(backend="threading"):  # processes take seconds to start
        two = clone(forecaster).set_params(n_jobs=2).fit(X[order], y[order])
    one = clone(forecaster).fit(X, y)
    np.testing.assert_array_equal(one.transform(X).cells, two.transform(X).cells)


@pytest.mark.parametrize("pooled", [False, True])
def test_what_unobserved_runs_are(runs, pooled):
    X, y = runs
    codes = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    forecaster = PrefixForecaster(features="last", last=1, pooled=pooled, min_class_count=1)

    def fit(codes, q_z=None, X=X, sample_weight=None, **how):
        return clone(forecaster).set_params(**how).fit(X, codes, sample_weight, q_z)

    one = fit(codes)
    assert (one.n_censored_, one.n_dropped_) == (60, 0)
    assert one.transform(X) == fit(np.maximum(codes, 0)).transform(X)
    assert one.transform(X) == fit(codes, 0.0, censored="q_z").transform(X)
    dropped, seen = fit(codes, censored="drop"), codes >= 0
    assert (dropped.n_censored_, dropped.n_dropped_) == (60, 60)
    assert dropped.base_rate_ == y[seen].mean()
    assert dropped.transform(X) == fit(y[seen], X=X[seen]).transform(X)
    # a run of soft outcome q is a success of weight q and a failure of weight 1 - q
    soft = np.flatnonzero(~seen)
    q_z, weight = np.full(len(y), np.nan), np.linspace(0.5, 2, len(y))
    q_z[soft] = np.linspace(0, 1, len(soft))
    shares = np.r_[np.where(seen, 1, 1 - q_z), q_z[soft]] * np.r_[weight, weight[soft]]
    twice = fit(
        np.r_[np.maximum(codes, 0), np.ones(len(soft))],
        X=TrajectoryArray.concat([X, X[soft]]),
        sample_weight=shares,
    )
    once = fit(codes, q_z, sample_weight=weight, censored="q_z")
    np.testing.assert_allclose(once.transform(X).cells, twice.transform(X).cells, atol=1e-6)
    assert once.base_rate_ == pytest.approx(twice.base_rate_)
    graded = fit(np.where(seen, codes, q_z), sample_weight=weight)
    assert graded.transform(X) == once.transform(X)


LIVE = [
    PrefixForecaster(),
    PrefixForecaster(features="last", last=2),
    PrefixForecaster(features=lambda seen: seen.mean(axis=1)),
    PrefixForecaster(features=lambda seen: seen[:, -1], pooled=True),
    PrefixForecaster(features="running", pooled=True, end="step"),
    PrefixForecaster(LogisticRegression(), features="running"),
    PrefixForecaster(TREES, features="last", pooled=True),
]


@pytest.mark.parametrize("forecaster", LIVE)
def test_live_is_batch_to_the_last_digit_alone_and_together(runs, forecaster):
    one, y = runs
    two = TrajectoryArray(np.stack([one.cells, one.cells**2], axis=1), one.lengths, ended=True)
    for X in (one.with_ended(), two, two.with_cells(1e4 + 1e-3 * two.cells)):
        fitted = forecaster.fit(X[:200], y[:200])
        new = X[200:225]
        batch = fitted.transform(new)
        assert followed(fitted, new).tolist() == batch.cells.tolist()
        for scores, expected in zip(new[:3], batch[:3], strict=True):  # one after the other
            state = fitted.begin()
            for t, step in enumerate(scores):
                state, p = fitted.advance(state, np.atleast_2d(step), [t + 1 == len(scores)])
                assert p[0] == pytest.approx(expected[t], abs=2e-15)


def test_bad_parameters_and_outcomes(runs):
    X, y = runs
    for how, words in (
        ({"features": "all"}, "features .*'all'"),
        ({"features": "last", "last": 0}, "last .*0"),
        ({"estimator": SVC()}, r"CalibratedClassifierCV\(SVC\(\)\)"),
        ({"pooled": True}, 'features="running"'),
        ({"end": "step"}, "end .*pooled=True"),
        ({"min_class_count": "a"}, "min_class_count .*'a'"),
        ({"features": lambda seen: seen[:1, -1]}, r"shape \(1, 1\) for 300 runs after step 1"),
        ({"features": lambda s: s[:, :, 0], "pooled": True}, "1 at step 1 and 2 at step 2"),
    ):
        with pytest.raises(ValueError, match=words):
            PrefixForecaster(**how).fit(X, y)
    for how, outcomes, words in (
        ({}, np.ones(len(X)), "all successes"),
        ({}, np.full(len(X), -1), "all failures"),
        ({"censored": "drop"}, np.full(len(X), -1), "observed outcome"),
        ({"estimator": KNeighborsClassifier()}, np.r_[0.5, y[1:]], "KNeighborsClassifier"),
        ({"censored": "q_z"}, np.full(len(X), -1), "q_z"),
    ):
        with pytest.raises(ValueError, match=words):
            PrefixForecaster(**how).fit(X, outcomes)
    weight = np.ones(len(y))
    with pytest.raises(ValueError, match="sample_weight .*KNeighborsClassifier"):
        PrefixForecaster(KNeighborsClassifier()).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):  # which ends at the forecaster
        routed = PrefixForecaster().fit(X, y, sample_weight=weight)
    assert routed.transform(X) == PrefixForecaster().fit(X, y, weight).transform(X)


def test_bad_steps(runs):
    X, y = runs
    forecaster, aggregator = PrefixForecaster().fit(X, y), TraceAggregator().fit([[0.5]], [1])
    with pytest.raises(NotFittedError):
        PrefixForecaster().begin()
    for fitted, scores, words in (
        (forecaster, [[0.1, 0.2]], r"\(n_runs, 1\), got \(1, 2\)"),
        (forecaster, [NAN], "missing or infinite"),
        (aggregator, [1.01], r"1.01 .*\[0, 1\]"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted.advance(fitted.begin(), scores)
    assert aggregator.advance(aggregator.begin(2), [0.0, 1.0])[1].tolist() == [0, 1]
    width = [2]
    forecaster = PrefixForecaster(features=lambda seen: np.ones((len(seen), width[0]))).fit(X, y)
    width[0] = 1  # would be spread over both coefficients
    for use in (
        lambda: forecaster.transform(X),
        lambda: forecaster.advance(forecaster.begin(), [0.5]),
    ):
        with pytest.raises(ValueError, match="1 features.* 2 "):
            use()


# ------------------------------------------------------------------ scores that were not recorded


@pytest.fixture(scope="module")
def gaps(runs):
    """Channels that are there always, sometimes and never."""
    X, y = runs
    rng = np.random.default_rng(5)
    some = np.where(rng.random(len(X.cells)) < 0.4, NAN, rng.normal(size=len(X.cells)))
    cells = np.column_stack([X.cells, some, np.full(len(X.cells), NAN)])
    return X.with_cells(cells, channels=["judge", "logprob", "tokens"]).with_ended(), y


@pytest.mark.parametrize("classifier", [TREES, IMPUTED], ids=["trees", "imputed"])
@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[1], OPTIONS[3]], ids=str)
def test_missing_scores_reach_classifiers_that_take_them(gaps, classifier, options):
    X, y = gaps
    fitted = PrefixForecaster(classifier, **options).fit(X[:200], y[:200])
    new = X[200:]
    batch = fitted.transform(new)
    assert ((batch.cells > 0) & (batch.cells < 1)).all()
    np.testing.assert_allclose(followed(fitted, new), batch.cells, rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match="infinite"):
        fitted.advance(fitted.begin(), [[0.5, np.inf, NAN]])
    # a channel that is missing everywhere changes nothing
    recorded = new[["judge", "logprob"]]
    without = PrefixForecaster(TREES, **options).fit(recorded, y[200:]).transform(recorded)
    with_it = PrefixForecaster(TREES, **options).fit(new, y[200:])
    assert with_it.transform(new) == without
    filled = new.with_cells(np.where(np.isnan(new.cells) & [False, False, True], 0.7, new.cells))
    assert with_it.transform(filled) == without  # where it is recorded for the first time


def test_classifiers_say_themselves_what_they_do_not_take(gaps):
    X, y = gaps
    takes = [
        DecisionTreeClassifier(max_depth=2),
        make_pipeline(StandardScaler(), "passthrough", VarianceThreshold(), TREES),
        make_pipeline(make_pipeline(SimpleImputer(), StandardScaler()), LOGISTIC),
        CalibratedClassifierCV(TREES, cv=2),
        GridSearchCV(IMPUTED, {"logisticregression__C": [0.1]}, cv=2),
    ]
    for classifier in takes:
        fitted = PrefixForecaster(classifier, features="last", pooled=True).fit(X, y)
        assert np.isfinite(fitted.transform(X).cells).all()
    with pytest.raises(ValueError, match="contains NaN"):
        PrefixForecaster(make_pipeline(StandardScaler(), LOGISTIC)).fit(X[["judge", "logprob"]], y)
    forecaster = PrefixForecaster()
    for given, words in (
        (X, r"'tokens' .*X\[\['judge', 'logprob'\]\].*HistGradientBoosting"),
        (X["tokens"], "'tokens' .*HistGradientBoosting"),
        (X[["judge", "logprob"]], r"step \d, channel 'logprob'.*SimpleImputer"),
    ):
        with pytest.raises(ValueError, match=words):
            forecaster.fit(given, y)
    forecaster.fit(X[["judge"]], y)
    with pytest.raises(ValueError, match="missing"):
        forecaster.transform(X["logprob"].with_cells(X["logprob"].cells, channels=["judge"]))
