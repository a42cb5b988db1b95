import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import chi2, norm
from sklearn.linear_model import LogisticRegression

from trajscore import TrajectoryArray
from trajscore.censoring import ContinuationModel, conditional_mean_test
from trajscore.censoring._conditional_mean import quadratic_form
from trajscore.metrics import tps_samples

# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")


def learner(*args, **options):
    """A model that need not be told which forecast it will help to judge."""
    return ContinuationModel(*args, allow_predictor=True, **options)


def test_criterion_needs_runs():
    with pytest.raises(ValueError, match="only 2 held-out runs"):
        conditional_mean_test([1, 0, np.nan], [0.5, 0.5, 0.5])
    with pytest.raises(ValueError, match="got shapes"):
        conditional_mean_test([1, 0], [0.5])


def test_clusters_widen_the_criterion(rng):
    q = np.repeat(rng.random(50), 20)
    y = np.repeat(rng.random(50) < q[::20], 20)
    plain = conditional_mean_test(y, q)
    clustered = conditional_mean_test(y, q, groups=np.repeat(np.arange(50), 20))
    assert clustered.loc["mean", "std_error"] > 3 * plain.loc["mean", "std_error"]
    assert clustered.loc["all", "pvalue"] > 0.001


@pytest.mark.parametrize(
    ("outcome", "q_z", "options", "match"),
    [
        ([0, 1] * 10, np.r_[1.5, np.full(19, 0.5)], {}, "run 0: q_z is 1.5"),
        ([0, 7] * 10, np.full(20, 0.5), {}, "run 1: outcome is 7.*-1 where it was not observed"),
        ([0, np.inf] * 10, np.full(20, 0.5), {}, "run 1: outcome is inf"),
        ([0] * 20, np.full(20, 0.3), {}, "is -0.3 for each of the 20 held-out runs"),
        ([0, 1] * 10, np.full(20, 0.5), {"groups": np.zeros(20)}, "only 1 clusters"),
        ([0, 1] * 5 + [-1], np.full(11, 0.5), {"groups": [0] * 10 + [1]}, "only 1 clusters"),
        ([0, 1, -1, -1] * 4, np.full(16, 0.5), {}, "only 8 held-out runs"),
    ],
)
def test_the_criterion_gives_no_number_where_none_is_justified(outcome, q_z, options, match):
    with pytest.raises(ValueError, match=match):
        conditional_mean_test(outcome, q_z, **options)


def test_the_criterion_leaves_out_what_was_not_observed(rng):
    y, q = rng.integers(0, 2, 40).astype(float), rng.random(40)
    hidden = np.arange(40) < 10
    by_code = conditional_mean_test(np.where(hidden, -1, y), q)
    pd.testing.assert_frame_equal(by_code, conditional_mean_test(np.where(hidden, np.nan, y), q))
    constant = conditional_mean_test(y, q, np.full((40, 1), 0.1))
    assert constant.loc["feature 0", ["z", "pvalue"]].isna().all()
    assert 0 < constant.loc["all", "pvalue"] < 1


def test_criterion_sees_a_bad_model(world):
    _, X, y, _, _ = world
    bad = learner(features=lambda X: np.ones((len(X.cells), 1))).fit(X, y)
    table = bad.check(X, score="brier")
    assert table.loc["mean", "pvalue"] > 0.01
    assert table.loc["score", "pvalue"] < 1e-6
    assert table.loc["all", "pvalue"] < 1e-6
    # the row "score" is the bias of the plug-in score, here on held-out training prefixes
    residual = bad.outcome_ - bad.held_out_
    runs = X[bad.training_rows_]
    prefix = runs.truncate(bad.training_steps_).with_horizon(runs.horizon)
    ones = np.ones(len(prefix))
    slope = tps_samples(ones, prefix, score="brier") - tps_samples(0 * ones, prefix, score="brier")
    np.testing.assert_allclose(table.loc["score", "mean"], (residual * slope).mean())


def test_the_joint_test_of_the_criterion_keeps_its_level_and_has_power():
    rejected, found = np.zeros(2), 0
    options = {
        "classifier": LogisticRegression(solver="newton-cholesky"),
        "features": lambda X: X.cells[:, None],
        "cv": 3,
    }
    for seed in range(45):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(150, 3))
        q = expit(-x[:, -1])
        branches = [list((rng.random(6) < one).astype(int)) for one in q]
        audit = learner(**options)
        stopped = TrajectoryArray.from_padded(x)
        rejected[0] += audit.fit(stopped, branches=branches).check().loc["all", "pvalue"] < 0.05
        y = (rng.random(150) < q).astype(int)
        longer = TrajectoryArray.from_padded(np.column_stack([x, np.zeros(150)]))
        both = concatenated(longer, stopped[:5])
        model = learner(**options)
        model.fit(both, np.r_[y, np.full(5, -1)])
        rejected[1] += model.check().loc["all", "pvalue"] < 0.05
        wrong = conditional_mean_test(y, expit(-0.3 * x[:, -1]), x)
        found += wrong.loc["all", "pvalue"] < 0.05
    assert (rejected < 8).all()  # P(more) = .1% at the level
    assert found > 30


def concatenated(one, other):
    return TrajectoryArray(
        np.concatenate([one.cells, other.cells]), np.concatenate([one.lengths, other.lengths])
    )


def audited_tasks(seed, n_tasks=40, per_task=15):
    """Runs of a task share chance, signal and forecast; a coin stops half of them."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), per_task)
    solved = (rng.random(len(task)) < rng.choice([0.1, 0.9], n_tasks)[task]).astype(int)
    stopped = rng.random(len(task)) < 0.5
    lengths = np.where(stopped, 2, 4)
    signal, forecast = rng.random((2, n_tasks))[:, task]
    X, F = (TrajectoryArray(np.repeat(one, lengths), lengths) for one in (signal, forecast))
    return task, X, F, solved, stopped


def test_check_keeps_its_level_where_runs_of_a_task_are_alike():
    rejected = np.zeros(2)
    for seed in range(40):
        task, X, F, solved, stopped = audited_tasks(seed)
        model = learner(cv=2).fit(X, np.where(stopped, -1, solved), groups=task)
        branches = [[one] if cut else None for one, cut in zip(solved, stopped, strict=True)]
        audit = learner(cv=2).fit(X, branches=branches, groups=task)
        rejected += [one.check(F).loc["score", "pvalue"] < 0.05 for one in (model, audit)]
    assert (rejected <= 6).all()  # P(more) = .3% at the level; it was half of the seeds


def test_check_needs_clusters():
    task, X, _, solved, stopped = audited_tasks(0)
    model = learner().fit(X, np.where(stopped, -1, solved), groups=task // 8)
    with pytest.raises(ValueError, match="only 5 clusters"):
        model.check()
    with pytest.raises(ValueError, match="row 3: groups is missing"):
        learner(cv=None).fit(
            X, np.where(stopped, -1, solved), groups=np.where(np.arange(600) == 3, np.nan, task)
        )


Y = np.array([1.0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, -1])
Q = np.array([0.9, 0.2, 0.4, 0.8, 0.3, 0.6, 0.7, 0.1, 0.5, 0.6, 0.4, 0.3, 0.5])
X0, X1 = np.arange(13.0) ** 2, np.resize([1.0, -1.0, 0.5], 13)


def standard(x):
    return (x - x.mean()) / x.std()


# ten clusters of the twelve runs that were observed
@pytest.mark.parametrize("groups", [None, np.array([5, 5, 1, 1, 2, 0, 3, 4, 6, 7, 8, 9, 77])])
def test_moments_by_hand(groups):
    table = conditional_mean_test(Y, Q, pd.DataFrame({"x": X0, 3: X1}), groups=groups)
    assert table.index.tolist() == ["mean", "q_z", "x", "feature 3", "all"]
    residual = (Y - Q)[:12]
    # features are standardised over all runs, of which the last one has no outcome
    instruments = [np.ones(13), standard(Q), standard(X0), standard(X1)]
    moments = np.column_stack([column[:12] * residual for column in instruments])
    mean, centred = moments.mean(axis=0), moments - moments.mean(axis=0)
    if groups is not None:
        codes = groups[:12]
        centred = np.array([centred[codes == code].sum(axis=0) for code in range(10)])
    covariance = centred.T @ centred / 12**2
    error = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(table["mean"].iloc[:4], mean)
    np.testing.assert_allclose(table["std_error"].iloc[:4], error)
    np.testing.assert_allclose(table["z"].iloc[:4], mean / error)
    np.testing.assert_allclose(table["pvalue"].iloc[:4], 2 * norm.sf(np.abs(mean / error)))
    # beside features, the estimate itself is no part of the joint test
    part = np.ix_([0, 2, 3], [0, 2, 3])
    form = mean[[0, 2, 3]] @ np.linalg.solve(covariance[part], mean[[0, 2, 3]])
    assert table.loc["all", "pvalue"] == pytest.approx(chi2.sf(form, 3))
    assert table.loc["all"].iloc[:3].isna().all()


def test_without_features_the_estimate_is_tested_with_the_mean():
    table = conditional_mean_test(Y, Q)
    moments = np.column_stack([np.ones(12), standard(Q)[:12]]) * (Y - Q)[:12, None]
    mean, covariance = moments.mean(axis=0), np.cov(moments.T, bias=True) / 12
    form = mean @ np.linalg.solve(covariance, mean)
    assert table.loc["all", "pvalue"] == pytest.approx(chi2.sf(form, 2))
    one = conditional_mean_test(Y, Q, X0)
    assert one.index.tolist() == ["mean", "q_z", "feature 0", "all"]


def test_the_bias_of_a_score_by_hand():
    forecasts = TrajectoryArray(np.linspace(0.1, 0.9, 26), np.full(13, 2))
    table = conditional_mean_test(Y, Q, traces=forecasts, score="brier", weights="uniform")
    p = forecasts.cells.reshape(13, 2)
    slope = (p**2 - (1 - p) ** 2).mean(axis=1)  # of minus squares, over two steps of weight 1
    assert table.loc["score", "mean"] == pytest.approx((slope * (Y - Q))[:12].mean())
    with pytest.raises(ValueError, match="there are 12 traces for 13 runs"):
        conditional_mean_test(Y, Q, traces=forecasts[:12])


@pytest.mark.parametrize(
    ("features", "match"),
    [
        (np.zeros((2, 2, 2)), r"features must have one row a run, got shape \(2, 2, 2\)"),
        (np.zeros((12, 1)), "features has 12 rows for 13 runs"),
    ],
)
def test_features_of_other_runs(features, match):
    with pytest.raises(ValueError, match=match):
        conditional_mean_test(Y, Q, features)


@pytest.mark.parametrize("n", [9, 10])
def test_ten_held_out_runs_are_enough(n):
    if n == 9:
        with pytest.raises(ValueError, match="only 9 held-out runs have both .* at least 10"):
            conditional_mean_test(Y[:n], Q[:n])
        return
    assert np.isfinite(conditional_mean_test(Y[:n], Q[:n]).loc["all", "pvalue"])


def test_a_quadratic_form_leaves_out_directions_without_variance():
    assert quadratic_form(np.array([2.0, 3.0]), np.diag([4.0, 9.0])) == (pytest.approx(2), 2)
    flat = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert quadratic_form(np.array([3.0, 1.0]), flat) == (pytest.approx(4), 1)  # (3 + 1)^2 / 4
    assert quadratic_form(np.array([2.0, 5.0]), np.diag([1.0, 1e-9])) == (pytest.approx(4), 1)
    assert quadratic_form(np.array([2.0, 1e-3]), np.diag([1.0, 1e-7])) == (pytest.approx(14), 2)
    assert quadratic_form(np.ones(2), np.zeros((2, 2))) == (0, 0)
