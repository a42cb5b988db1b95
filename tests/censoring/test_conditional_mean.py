from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import ContinuationModel, conditional_mean_test
from trajscore.metrics import tps_samples

# a model that need not be told which forecast it will help to judge
learner = partial(ContinuationModel, allow_predictor=True)


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
    assert table.loc["score", "pvalue"] == table.loc["all", "pvalue"] == 1 / 1001
    # the row "score" is the bias of the plug-in score, here on held-out training prefixes
    residual = bad.outcome_ - bad.held_out_
    runs = X[bad.training_rows_]
    prefix = runs.truncate(bad.training_steps_).with_horizon(runs.horizon)
    ones = np.ones(len(prefix))
    slope = tps_samples(ones, prefix, score="brier") - tps_samples(0 * ones, prefix, score="brier")
    np.testing.assert_allclose(table.loc["score", "mean"], (residual * slope).mean())


Y = np.array([1.0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, -1])
Q = np.array([0.9, 0.2, 0.4, 0.8, 0.3, 0.6, 0.7, 0.1, 0.5, 0.6, 0.4, 0.3, 0.5])
X0, X1 = np.arange(13.0) ** 2, np.resize([1.0, -1.0, 0.5], 13)


def standard(x):
    return (x - x.mean()) / x.std()


def by_hand(features):
    """Mean and standard error of each moment, and p-values by all outcomes that there can be."""
    columns = [np.ones(13), *map(standard, (Q, *features))]
    # features are standardised over all runs, of which the last one has no outcome
    x, q = np.column_stack(columns)[:12], Q[:12]
    outcomes = np.vstack([Y[:12], list(product([0, 1], repeat=12))])
    chance = np.prod(np.where(outcomes == 1, q, 1 - q), axis=1)[1:]
    mean, covariance = (outcomes - q) @ x / 12, (x.T * (q * (1 - q))) @ x / 12**2
    error = np.sqrt(np.diag(covariance))
    # beside features, the estimate itself is no part of the joint test
    part = [k for k in range(x.shape[1]) if not features or k != 1]
    form = mean[:, part] @ np.linalg.inv(covariance[np.ix_(part, part)])
    values = np.column_stack([np.abs(mean / error), (form * mean[:, part]).sum(axis=1)])
    return mean[0], error, chance @ (values[1:] >= values[0] - 1e-9)


@pytest.mark.parametrize("features", [(), (X0, X1)], ids=["no features", "two features"])
def test_moments_by_hand(features):
    named = pd.DataFrame({"x": X0, 3: X1}) if features else None
    table = conditional_mean_test(Y, Q, named, n_resamples=20_000)
    added = ["x", "feature 3"] if features else []
    assert table.index.tolist() == ["mean", "q_z", *added, "all"]
    mean, error, pvalue = by_hand(features)
    moments = table.iloc[:-1]
    np.testing.assert_allclose(moments["mean"], mean)
    np.testing.assert_allclose(moments["std_error"], error)
    np.testing.assert_allclose(moments["z"], mean / error)
    np.testing.assert_allclose(table["pvalue"], pvalue, atol=0.011)  # three standard errors
    assert table.loc["all"].iloc[:3].isna().all()


def test_standard_errors_of_clusters_by_hand(rng):
    task, y = np.repeat(np.arange(10), 2), np.repeat([0, 0, 0, 1, 1, 1, 1, 1, 0, 1], 2)
    y[[1, 4]] = 1
    q, x = rng.uniform(0.2, 0.8, 20), rng.normal(size=20)
    table = conditional_mean_test(y, q, x, groups=task)
    # of two runs of a task the residuals are as alike as they are in all tasks
    residual, spread = y - q, np.sqrt(q * (1 - q))
    alike = (residual[::2] @ residual[1::2]) / (spread[::2] @ spread[1::2])
    assert 0 < alike < 1
    for name, column in {"mean": np.ones(20), "feature 0": standard(x)}.items():
        sd = column * spread
        variance = sd @ sd + 2 * alike * (sd[::2] @ sd[1::2])
        assert table.loc[name, "std_error"] == pytest.approx(np.sqrt(variance) / 20)
    order = rng.permutation(20)
    again = conditional_mean_test(y[order], q[order], x[order], groups=task[order])
    pd.testing.assert_frame_equal(again, table)


KINDS = "independent", "rare", "shares of 4"


@pytest.mark.parametrize(
    "kind", ["in pairs", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS)]
)
def test_a_right_estimate_is_rejected_at_the_level(kind):
    rng, rejected, task = np.random.default_rng(5), np.zeros(6), np.arange(20) // 2
    for seed in range(100):
        q = rng.random(20) if kind != "rare" else np.full(20, 0.07)
        uniform = rng.random((4 if kind == "shares of 4" else 1, 20))
        if kind == "in pairs":
            uniform = uniform[:, 2 * task]
        y, more = (uniform < q).mean(axis=0), {"random_state": seed, "n_resamples": 99}
        groups = task if kind == "in pairs" else None
        table = conditional_mean_test(y, q, rng.normal(size=(20, 3)), groups=groups, **more)
        rejected += table["pvalue"].to_numpy() <= 0.05
    assert (rejected <= 12).all()  # 5 expected; the normal approximation has 15 and more
    wrong = conditional_mean_test(np.zeros(20), np.full(20, 0.3))  # no residual differs
    assert wrong.loc["all", "pvalue"] < 0.02


def test_the_bias_of_a_score_by_hand():
    forecasts = TrajectoryArray(np.linspace(0.1, 0.9, 26), np.full(13, 2))
    table = conditional_mean_test(Y, Q, traces=forecasts, score="brier", weights="uniform")
    p = forecasts.cells.reshape(13, 2)
    slope = (p**2 - (1 - p) ** 2).mean(axis=1)  # of minus squares, over two steps of weight 1
    assert table.loc["score", "mean"] == pytest.approx((slope * (Y - Q))[:12].mean())


def test_the_joint_test_leaves_out_directions_without_variance():
    # a feature twice is one feature
    once = conditional_mean_test(Y, Q, X1).loc["all", "pvalue"]
    twice = conditional_mean_test(Y, Q, np.column_stack([X1, 3 - 2 * X1])).loc["all", "pvalue"]
    assert twice == pytest.approx(once, rel=1e-9)
    assert np.isfinite(conditional_mean_test(Y[:10], Q[:10]).loc["all", "pvalue"])


def test_bad_input():
    y, half, scored = [0, 1] * 10, np.full(20, 0.5), pd.DataFrame({"score": Y})
    rows = [
        ([1, 0, np.nan], [0.5] * 3, {}, "only 2 held-out runs .* at least 10"),
        ([0, 1, -1, -1] * 4, half[:16], {}, "only 8 held-out runs"),
        ([1, 0], [0.5], {}, r"outcome and q_z .*\(2,\) and \(1,\)"),
        (y, np.r_[1.5, half[1:]], {}, "row 0: q_z is 1.5"),
        ([0, 7] * 10, half, {}, "row 1: outcome is 7.*-1 where"),
        ([0, np.inf] * 10, half, {}, "row 1: outcome is inf"),
        ([0, 1] * 10, [1, 0] * 10, {}, "q_z is 0, 1 or .* each of the 20 held-out"),
        (half, half, {}, "the outcome itself for each of the 20 held-out"),
        (Y, Q, {"n_resamples": 0}, "n_resamples"),
        (y, half, {"groups": np.zeros(20)}, r"only 1 clusters \(groups"),
        (Y, Q, np.zeros((2, 2, 2)), {}, r"features .*\(2, 2, 2\)"),
        (Y, Q, np.zeros((12, 1)), {}, "features has 12 rows for 13 runs"),
        (Y, Q, scored, {}, "'score' is the name of a row .* rename the feature"),
        (y, half, [np.nan, *y[1:]], {}, "'feature 0' is missing for a run with an outcome"),
        (Y, Q, {"traces": np.full((12, 1), 0.5)}, "12 traces for 13 runs"),
    ]
    assert not not_refused(conditional_mean_test, rows)
    X = TrajectoryArray(np.random.default_rng(0).random(160), np.tile([2, 6], 20))
    y = np.where(X.lengths == 2, -1, np.arange(40) // 2 % 2)
    model = learner().fit(X, y, groups=np.arange(40) // 8)
    assert not not_refused(model.check, [({}, "only 5 clusters")])
