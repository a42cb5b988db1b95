import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from trajscore import TrajectoryArray
from trajscore.censoring import ContinuationModel, conditional_mean_test
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
