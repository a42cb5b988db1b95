import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, norm, spearmanr
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit

from trajscore import TrajectoryArray
from trajscore.censoring import (
    ContinuationModel,
    MonteCarloContinuation,
    StopHazard,
    censored_tps_interval,
    conditional_mean_test,
)
from trajscore.metrics import (
    censored_tps_samples,
    censored_tps_score,
    plug_in_regret,
    tps_samples,
    tps_score,
)

# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the outcome was observed after:UserWarning")

FAMILIES = ["log", "brier", ("beta", 2, 4)]


def last(X):
    return X.cells[X.offsets[1:] - 1]


def log_odds(X):
    return logit(X.cells)


@pytest.fixture(scope="module")
def world(coin_budget):
    return coin_budget(3000, 0)


@pytest.fixture
def branches(rng):
    return [rng.integers(-1, 2, rng.integers(0, 12)) for _ in range(100)]


# ------------------------------------------------------------- Monte Carlo


@pytest.mark.parametrize("score", FAMILIES, ids=str)
def test_branch_identity(branches, rng, score):
    lengths = rng.integers(1, 8, 100)
    X = TrajectoryArray(rng.uniform(0.05, 0.95, lengths.sum()), lengths)
    audit = MonteCarloContinuation(min_branches=3).fit(X, branches)
    table = audit.summary(X, score=score, n_resamples=50)
    kept = audit.audited_
    q = audit.predict(X)[kept]
    made = [(k, one[one >= 0]) for k, one in enumerate(branches) if kept[k]]
    over_branches = [
        tps_samples(valid, X[np.full(len(valid), k)], score=score).mean() for k, valid in made
    ]
    unobserved = -np.ones(kept.sum())
    exact = censored_tps_samples(unobserved, X[kept], q_z=q, score=score)
    np.testing.assert_allclose(exact, over_branches, rtol=0, atol=1e-15)
    exact = censored_tps_score(unobserved, X[kept], q_z=q, score=score)
    np.testing.assert_allclose(table.loc["exact score", "value"], exact, rtol=1e-13)
    assert table.loc["exact - simple", "low"] < table.loc["exact - simple", "high"]


def test_counts_and_unresolved_branches(branches):
    X = TrajectoryArray(np.full(100, 0.5), np.ones(100, dtype=int))
    share = {}
    for unresolved in ("missing", "failure", "success"):
        audit = MonteCarloContinuation(unresolved, min_branches=1).fit(X, branches)
        valid = [b[b >= 0] if unresolved == "missing" else b for b in branches]
        np.testing.assert_array_equal(audit.n_valid_, [len(b) for b in valid])
        np.testing.assert_array_equal(audit.n_unresolved_, [(b < 0).sum() for b in branches])
        np.testing.assert_array_equal(np.isnan(audit.q_z_), audit.n_valid_ < 1)
        share[unresolved] = audit.q_z_
    both = ~np.isnan(share["missing"])
    assert (share["failure"][both] <= share["missing"][both]).all()
    assert (share["success"][both] >= share["missing"][both]).all()


def test_tables_may_be_rectangular_and_rows_in_any_order(rng):
    table = rng.integers(0, 2, (20, 6)).astype(float)
    table[rng.random((20, 6)) < 0.2] = np.nan
    X = TrajectoryArray(np.full(20, 0.5), np.ones(20, dtype=int), ids=[f"r{k}" for k in range(20)])
    audit = MonteCarloContinuation(min_branches=1).fit(X, table)
    np.testing.assert_allclose(audit.q_z_, np.nanmean(table, axis=1))
    order = rng.permutation(20)
    np.testing.assert_array_equal(audit.predict(X[order]), audit.q_z_[order])
    assert not audit.n_unresolved_.any()


def test_beta_intervals_cover():
    rng = np.random.default_rng(0)
    q = rng.uniform(0.02, 0.98, 4000)
    made = (rng.random((4000, 10)) < q[:, None]).astype(float)
    X = TrajectoryArray(np.full(4000, 0.5), np.ones(4000, dtype=int))
    audit = MonteCarloContinuation().fit(X, made)
    assert 0.94 < ((audit.low_ <= q) & (q <= audit.high_)).mean() < 0.97


@pytest.mark.parametrize("prior", [0.5, 1])
def test_ends_of_the_interval_are_kept_where_all_continuations_agree(prior):
    X = TrajectoryArray(np.full(3, 0.5), np.ones(3, dtype=int))
    made = np.repeat([[0.0], [1.0], [0.0]], 5, axis=1)
    made[2, 0] = 1
    audit = MonteCarloContinuation(prior=prior, confidence_level=0.9).fit(X, made)
    one_sided = beta.ppf([0.05, 0.95], prior, 5 + prior)[1]
    assert (audit.low_[0], audit.high_[1]) == (0, 1)
    np.testing.assert_allclose([1 - audit.low_[1], audit.high_[0]], one_sided)
    ends = [audit.low_[2], audit.high_[2]]
    np.testing.assert_allclose(ends, beta.ppf([0.05, 0.95], 1 + prior, 4 + prior))


def test_runs_without_enough_branches_get_no_number():
    X = TrajectoryArray(np.array([0.5, 0.5]), [1, 1])
    audit = MonteCarloContinuation(min_branches=2).fit(X, [[1, 0], [1]])
    with pytest.raises(ValueError, match="row 1: its outcome was not observed and q_z is nan"):
        censored_tps_score([-1, -1], X, q_z=audit.predict(X))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda X: MonteCarloContinuation("x").fit(X, [[1]]), "unresolved must be one of"),
        (lambda X: MonteCarloContinuation(min_branches=0).fit(X, [[1]]), "min_branches"),
        (lambda X: MonteCarloContinuation(prior=0).fit(X, [[1]]), "prior"),
        (lambda X: MonteCarloContinuation(confidence_level=1).fit(X, [[1]]), "confidence_level"),
        (lambda X: MonteCarloContinuation().fit(X, [[1]]), "no run has 5 valid continuations"),
        (lambda X: MonteCarloContinuation().fit(X, [[1], [1]]), "must have 1 entries"),
        (lambda X: MonteCarloContinuation().fit(X, [[0.5]]), "row 0: a continuation has outcome"),
        (lambda X: ContinuationModel().fit(X, branches=[[1, 1]]), "have a constant outcome"),
        (lambda X: ContinuationModel("x").fit(X), "requires y to be passed"),
        (lambda X: ContinuationModel(steps="x").fit(X, [1]), "steps must be"),
        (lambda X: ContinuationModel().fit(X, [1]), "nothing to learn q_Z from"),
    ],
)
def test_bad_input_gets_one_sentence(call, match):
    with pytest.raises(ValueError, match=match):
        call(TrajectoryArray(np.array([0.5]), [1]))


# ------------------------------------------------------------- a known world


@pytest.mark.parametrize("score", FAMILIES, ids=str)
def test_exact_score_is_proper_and_simple_score_elicits_m(score, coin_budget):
    _, X, y, q, cut = coin_budget(30_000, 1)
    exact = {"q_z": last(q), "score": score}
    step = np.arange(len(q.cells)) - np.repeat(q.offsets[:-1], q.lengths) + 1
    # before the budget one in two of the long runs will be cut, and no one can tell which
    long = np.repeat(X.horizon > 3, X.lengths) & (step <= 3)
    m = q.with_cells(np.where(long, 0.5, 1.0) * q.cells)
    rivals = [q.with_cells(0.8 * q.cells + 0.1), q.with_cells(q.cells**1.5), m]
    truth = censored_tps_samples(y, q, **exact)
    for rival in rivals:
        assert z_score(truth - censored_tps_samples(y, rival, **exact)) > 4
    simple = censored_tps_samples(y, m, score=score)
    for rival in [q, m.with_cells(0.9 * m.cells), m.with_cells(0.8 * m.cells + 0.1)]:
        assert z_score(simple - censored_tps_samples(y, rival, score=score)) > 4
    assert cut.mean() > 0.2


def z_score(samples):
    return samples.mean() / (samples.std() / np.sqrt(len(samples)))


@pytest.mark.parametrize("score", ["brier", ("beta", 2, 4)], ids=str)
def test_plug_in_regret_is_as_remark_c5_says(score, coin_budget):
    _, X, y, q, _ = coin_budget(30_000, 2, sharpness=1.6)
    plug = 0.7 * last(q) + 0.2
    step = np.arange(len(q.cells)) - np.repeat(q.offsets[:-1], q.lengths) + 1
    half = np.where(np.repeat(X.horizon > 3, X.lengths) & (step <= 3), 0.5, 0.0)
    mean = q.with_cells((1 - half) * q.cells + half * (0.7 * q.cells + 0.2))  # q_t is a martingale
    parts = plug_in_regret(q, X, mean, score=score)
    assert (np.abs(parts.bias) <= parts.bound + 1e-15).all()
    found = censored_tps_samples(y, q, q_z=plug, score=score) - censored_tps_samples(
        y, X, q_z=plug, score=score
    )
    assert abs(z_score(found - parts.total)) < 3.5
    assert abs(z_score(found - parts.oracle)) > 5  # the bias is there


def test_continuation_model_finds_q_and_the_score(world):
    runs, X, y, q, cut = world
    model = ContinuationModel(features=log_odds, allow_predictor=True).fit(X, y, predictor=X)
    assert np.abs(model.predict(X) - last(q))[cut].mean() < 0.03
    assert model.n_extrapolated_ == 0
    assert (model.training_steps_ == 3).all()
    truth = tps_samples(runs.final_outcome, X)
    plug_in = censored_tps_samples(y, X, q_z=model.predict(X))
    assert abs(z_score(plug_in - truth)) < 3
    assert abs(z_score(censored_tps_samples(y, X) - truth)) > 8
    assert model.check(X).loc["all", "pvalue"] > 0.01
    table = model.summary(X, y, X, n_resamples=50)
    assert table.loc["unobserved runs", "value"] == cut.sum()
    assert table.loc["share q_Z = 0", "value"] == 0


def test_criterion_sees_a_bad_model(world):
    _, X, y, _, _ = world
    bad = ContinuationModel(features=lambda X: np.ones((len(X.cells), 1))).fit(X, y)
    table = bad.check(X, score="brier")
    assert table.loc["mean", "pvalue"] > 0.01
    assert table.loc["score", "pvalue"] < 1e-6
    assert table.loc["all", "pvalue"] < 1e-6
    # the row "score" is the bias of the plug-in score, here on held-out training prefixes
    residual = bad.outcome_ - bad.held_out_
    prefix = X[bad.training_rows_].truncate(bad.training_steps_)
    ones = np.ones(len(prefix))
    slope = tps_samples(ones, prefix, score="brier") - tps_samples(0 * ones, prefix, score="brier")
    np.testing.assert_allclose(table.loc["score", "mean"], (residual * slope).mean())


def test_any_classifier_will_do_and_the_order_of_rows_does_not_matter(world, rng):
    _, X, y, _, _ = world
    forest = RandomForestClassifier(20, min_samples_leaf=30, random_state=0)
    q = ContinuationModel(forest).fit(X, y).predict(X)
    assert 0 < q.min() < q.max() < 1
    model = ContinuationModel().fit(X, y)
    order = rng.permutation(len(y))
    again = ContinuationModel().fit(X[order], y[order])
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)
    first = pd.Series(model.held_out_, X.ids[model.training_rows_])
    second = pd.Series(again.held_out_, X[order].ids[again.training_rows_])
    np.testing.assert_allclose(second[first.index], first, rtol=1e-5)


def test_history_must_not_hold_the_forecast_under_test(world):
    _, X, y, _, _ = world
    recalibrated = X.with_cells(1 / (1 + (1 / X.cells - 1) ** 0.3))
    both = TrajectoryArray(
        np.column_stack([X.cells**0 * np.arange(len(X.cells)) % 7, recalibrated.cells]),
        X.lengths,
        channels=["noise", "judge"],
    )
    for options in ({"y": y}, {"branches": [None] * len(y)}):
        with pytest.raises(ValueError, match="'judge' is the forecast under test"):
            ContinuationModel().fit(both, predictor=X, **options)
    ContinuationModel(allow_predictor=True).fit(both, y, predictor=X)
    ContinuationModel().fit(both[["noise"]], y, predictor=X)
    noise = np.random.default_rng(0).normal(size=len(X.cells))
    related = X.with_cells(logit(np.clip(X.cells, 0.01, 0.99)) + 0.3 * noise)
    assert spearmanr(related.cells, X.cells).statistic > 0.95
    ContinuationModel().fit(related, y, predictor=X)
    with pytest.raises(ValueError, match="the forecast under test"):
        ContinuationModel().fit(X, y).summary(X, y, X)
    with pytest.raises(ValueError, match="the forecast under test"):
        censored_tps_interval(y, X, q_z=ContinuationModel(), history=X)


def test_common_budget_cannot_be_learnt_from():
    X = TrajectoryArray(np.full(9, 0.5), [3, 3, 3])
    with pytest.raises(ValueError, match=r"no observed run went on .*branches="):
        ContinuationModel().fit(X, [1, 0, -1])
    model = ContinuationModel(steps="all", cv=None).fit(X, [1, 0, -1])
    assert model.n_extrapolated_ == 1
    with pytest.raises(ValueError, match="cv=None made no held-out estimates"):
        model.check()


def test_some_resumed_runs_speak_for_all(world, rng):
    runs, X, y, q, cut = world
    audited = cut & (rng.random(len(y)) < 0.4)
    q_true = last(q)
    branches = [rng.random(6) < p if a else None for p, a in zip(q_true, audited, strict=True)]
    model = ContinuationModel(features=log_odds).fit(X, branches=branches)
    assert np.abs(model.predict(X) - q_true)[cut].mean() < 0.03
    np.testing.assert_array_equal(model.training_rows_, np.flatnonzero(audited))
    np.testing.assert_array_equal(model.training_steps_, X.lengths[audited])
    np.testing.assert_array_equal(model.outcome_, model.monte_carlo_.q_z_[audited])
    assert model.check(X).loc["all", "pvalue"] > 0.01
    table = model.summary(X[cut], n_resamples=50)
    pd.testing.assert_frame_equal(model.summary(X, y, n_resamples=50), table)
    assert table.loc["unobserved runs", "value"] == cut.sum()
    assert table.loc["runs audited", "value"] == audited.sum()
    assert table.loc["valid branches per run", "value"] == 6
    truth = tps_samples(runs.final_outcome, X)
    assert abs(z_score(censored_tps_samples(y, X, q_z=model.predict(X)) - truth)) < 3


def test_estimators_are_scikit_learn_estimators(world):
    _, X, y, _, _ = world
    for model in (
        ContinuationModel(cv=2, min_branches=3),
        StopHazard(cv=3),
        MonteCarloContinuation("failure"),
    ):
        assert clone(model).get_params() == model.get_params()
    fitted = ContinuationModel().fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_features_never_look_ahead(ragged):
    X, _ = ragged
    whole, short = (StopHazard(cv=2).fit(one, X.lengths > 5).features_ for one in (X, X.prefix(3)))
    kept = np.concatenate([np.arange(n) < 3 for n in X.lengths])
    np.testing.assert_allclose(short, whole[kept], rtol=1e-9)
    step = np.concatenate([np.arange(1, n + 1) for n in X.lengths])
    mean = np.concatenate([np.cumsum(run) / np.arange(1, len(run) + 1) for run in X])
    first = np.repeat(X.cells[X.offsets[:-1]], X.lengths)
    np.testing.assert_allclose(whole, np.column_stack([step, X.cells, mean, first]), rtol=1e-12)
    with pytest.raises(ValueError, match="features must give"):
        ContinuationModel(features=lambda X: np.ones(3)).fit(X, np.ones(200))


# ------------------------------------------------------------- intervals


def test_interval_of_a_known_q_is_that_of_the_mean(world):
    _, X, y, q, _ = world
    samples = censored_tps_samples(y, X, q_z=last(q), score="brier")
    found = censored_tps_interval(y, X, q_z=last(q), score="brier", random_state=0)
    np.testing.assert_allclose(found.value, samples.mean())
    np.testing.assert_allclose(found.std_error, samples.std() / np.sqrt(3000), rtol=0.1)
    assert found.low < found.value < found.high
    low, high = found.normal(0.9)
    np.testing.assert_allclose((low + high) / 2, found.value)
    np.testing.assert_allclose((high - low) / 2, norm.ppf(0.95) * found.std_error)


def test_refitting_widens_the_interval(world):
    _, X, y, _, _ = world
    model = ContinuationModel(allow_predictor=True)
    options = {"n_resamples": 60, "random_state": 0}
    honest = censored_tps_interval(y, X, q_z=model, history=X, **options)
    naive = censored_tps_interval(y, X, q_z=model.fit(X, y).predict(X), **options)
    np.testing.assert_allclose(honest.value, naive.value)
    assert honest.std_error > 1.02 * naive.std_error


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"q_z": ContinuationModel()}, "needs history="),
        ({"q_z": MonteCarloContinuation()}, "q_z=estimator.predict"),
        ({"confidence_level": 95}, r"confidence_level must lie in \(0, 1\)"),
        ({"groups": np.zeros(3000)}, "all runs are of one cluster"),
        ({"q_z": 1.5}, "q_z is 1.5"),
        ({"q_z": ContinuationModel(), "history": [[0.5]]}, "1 histories for 3000"),
    ],
)
def test_bad_intervals(world, options, match):
    _, X, y, _, _ = world
    with pytest.raises(ValueError, match=match):
        censored_tps_interval(y, X, n_resamples=10, **options)


def test_criterion_needs_runs():
    with pytest.raises(ValueError, match="only 2 held-out runs"):
        conditional_mean_test([1, 0, np.nan], [0.5, 0.5, 0.5])
    with pytest.raises(ValueError, match="got shapes"):
        conditional_mean_test([1, 0], [0.5])
    assert tps_score([1], [[0.5]]) < 0


def test_clusters_widen_the_criterion(rng):
    q = np.repeat(rng.random(50), 20)
    y = np.repeat(rng.random(50) < q[::20], 20)
    plain = conditional_mean_test(y, q)
    clustered = conditional_mean_test(y, q, groups=np.repeat(np.arange(50), 20))
    assert clustered.loc["mean", "std_error"] > 3 * plain.loc["mean", "std_error"]
    assert clustered.loc["all", "pvalue"] > 0.001


def test_the_joint_test_of_the_criterion_keeps_its_level_and_has_power():
    rejected, found = np.zeros(2), 0
    options = {
        "classifier": LogisticRegression(solver="newton-cholesky"),
        "features": lambda X: X.cells[:, None],
        "cv": 3,
    }
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(150, 3))
        q = expit(-x[:, -1])
        branches = [list((rng.random(6) < one).astype(int)) for one in q]
        audit = ContinuationModel(**options)
        stopped = TrajectoryArray.from_padded(x)
        rejected[0] += audit.fit(stopped, branches=branches).check().loc["all", "pvalue"] < 0.05
        y = (rng.random(150) < q).astype(int)
        longer = TrajectoryArray.from_padded(np.column_stack([x, np.zeros(150)]))
        both = concatenated(longer, stopped[:5])
        model = ContinuationModel(**options)
        model.fit(both, np.r_[y, np.full(5, -1)])
        rejected[1] += model.check().loc["all", "pvalue"] < 0.05
        wrong = conditional_mean_test(y, expit(-0.3 * x[:, -1]), x)
        found += wrong.loc["all", "pvalue"] < 0.05
    assert (rejected < 15).all()
    assert found > 100


def concatenated(one, other):
    return TrajectoryArray(
        np.concatenate([one.cells, other.cells]), np.concatenate([one.lengths, other.lengths])
    )


def test_continuations_that_are_no_numbers():
    with pytest.raises(ValueError, match="row 1: outcomes of continuations must be numbers"):
        MonteCarloContinuation().fit([[0.5], [0.5]], [None, ["solved"]])


# ------------------------------------------------------------- clusters, tables, small audits


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
        model = ContinuationModel(cv=2).fit(X, np.where(stopped, -1, solved), groups=task)
        branches = [[one] if cut else None for one, cut in zip(solved, stopped, strict=True)]
        audit = ContinuationModel(cv=2).fit(X, branches=branches, groups=task)
        rejected += [one.check(F).loc["score", "pvalue"] < 0.05 for one in (model, audit)]
    assert (rejected <= 6).all()  # P(more) = .3% at the level; it was half of the seeds


def test_check_needs_clusters():
    task, X, _, solved, stopped = audited_tasks(0)
    model = ContinuationModel().fit(X, np.where(stopped, -1, solved), groups=task // 8)
    with pytest.raises(ValueError, match="only 5 clusters"):
        model.check()
    with pytest.raises(ValueError, match="row 3: groups is missing"):
        ContinuationModel(cv=None).fit(
            X, np.where(stopped, -1, solved), groups=np.where(np.arange(600) == 3, np.nan, task)
        )


@pytest.mark.parametrize(
    ("outcome", "q_z", "options", "match"),
    [
        ([0, 1] * 10, np.r_[1.5, np.full(19, 0.5)], {}, "row 0: q_z is 1.5"),
        ([0, 7] * 10, np.full(20, 0.5), {}, "row 1: outcome is 7.*-1 where it was not observed"),
        ([0, np.inf] * 10, np.full(20, 0.5), {}, "row 1: outcome is inf"),
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


def test_branches_are_read_by_position():
    X = [[0.9]] * 3
    table = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 1]])
    expected = MonteCarloContinuation(min_branches=1).fit(X, table).q_z_
    lists = [list(row) for row in table]
    for branches in (
        pd.DataFrame(table, index=[2, 0, 1]),
        pd.Series(lists, index=[2, 1, 0]),
        pd.Series(lists, index=list("abc")),
        pd.DataFrame(table).astype("Int64"),
        tuple(lists),
    ):
        found = MonteCarloContinuation(min_branches=1).fit(X, branches).q_z_
        np.testing.assert_array_equal(found, expected)
    gaps = MonteCarloContinuation(min_branches=1).fit(X, pd.DataFrame([[1, None], [0, 1], [-1, 0]]))
    np.testing.assert_array_equal(gaps.n_valid_, [1, 2, 1])
    with pytest.raises(ValueError, match="branches must be a sequence"):
        MonteCarloContinuation().fit(X, dict(enumerate(lists)))


def small_audit(n_successes):
    rng = np.random.default_rng(0)
    X, H = (TrajectoryArray(rng.random(180), [3] * 60) for _ in range(2))
    y = np.where(np.arange(60) < 30, -1, rng.integers(0, 2, 60))
    branches = [[int(k < n_successes)] if k < 30 else None for k in range(60)]
    return X, H, y, branches


def test_an_interval_of_a_small_audit_counts_the_draws_of_a_constant_outcome():
    X, H, y, branches = small_audit(2)
    with pytest.warns(UserWarning, match=r"in \d+ of 200 replicates .* constant outcome"):
        found = censored_tps_interval(
            y,
            X,
            q_z=ContinuationModel(),
            history=H,
            branches=branches,
            n_resamples=200,
            random_state=0,
        )
    assert found.low < found.value < found.high
    with pytest.raises(ValueError, match="have a constant outcome"):
        censored_tps_interval(
            y, X, q_z=ContinuationModel(), history=H, branches=small_audit(0)[3], n_resamples=200
        )
    two = [one if k in (0, 29) else None for k, one in enumerate(branches)]
    with pytest.raises(ValueError, match="none of the runs to learn q_Z from"):
        censored_tps_interval(
            y,
            X,
            q_z=ContinuationModel(),
            history=H,
            branches=two,
            n_resamples=200,
            random_state=0,
        )


def test_a_fold_that_leaves_one_class_is_named_and_its_share_taken():
    _, H, _, branches = small_audit(1)
    with pytest.warns(UserWarning, match=r"outside fold 0 .*their share, 0,"):
        audit = ContinuationModel().fit(H, branches=branches)
    assert (audit.held_out_ == 0).any()
    assert (audit.predict(H) > 0).all()
    lengths = np.r_[np.full(10, 2), np.full(20, 4)]
    Z = TrajectoryArray(np.random.default_rng(0).random(100), lengths)
    with pytest.warns(UserWarning, match="their share, 0,"):
        model = ContinuationModel().fit(Z, np.r_[np.full(10, -1), 1, np.zeros(19)])
    assert (model.held_out_ == 0).any()
    one = [[1, 0] if k == 0 else None for k in range(60)]
    with pytest.raises(ValueError, match=r"cv = 5 is more than"):
        ContinuationModel().fit(H, branches=one)
    assert np.isfinite(ContinuationModel(cv=None).fit(H, branches=one).predict(H)).all()


# ------------------------------------------------------------- folds


def graded(n=40):
    """Every other run has the grade .5, the others failed; only a constant can be learnt."""
    X = TrajectoryArray(np.full(3 * n, 0.5), np.full(n, 3), ids=np.arange(n))
    return X, np.where(np.arange(n) % 2 == 0, 0.5, 0)


def test_a_grade_of_one_half_is_held_out_among_successes():
    X, y = graded()
    # so each of two folds holds half of the graded runs, and the other learns their share
    model = ContinuationModel(steps="all", cv=2).fit(X, y)
    np.testing.assert_allclose(model.held_out_, 0.25, atol=1e-6)
    resumed = ContinuationModel(cv=2).fit(X, branches=[[1, 0] if one else [0, 0] for one in y])
    np.testing.assert_allclose(resumed.held_out_, 0.25, atol=1e-6)


def test_folds_are_those_of_the_runs_that_are_learnt_from(world):
    _, X, y, _, _ = world
    learnt = np.isin(np.arange(len(y)), ContinuationModel(cv=None).fit(X, y).training_rows_)
    whole = ContinuationModel(cv=3).fit(X, y)
    # other observed runs may come and go
    keep = learnt | (y == -1)
    alone = ContinuationModel(cv=3).fit(X[keep], y[keep])
    np.testing.assert_array_equal(alone.held_out_, whole.held_out_)
    weight = np.where(np.arange(len(y)) % 7 == 0, 0, 1)
    some = ContinuationModel(cv=3).fit(X, y, sample_weight=weight)
    fewer = ContinuationModel(cv=3).fit(X[weight > 0], y[weight > 0])
    held = some.held_out_[weight[some.training_rows_] > 0]
    np.testing.assert_allclose(held, fewer.held_out_, rtol=1e-6)


def test_a_splitter_makes_the_folds(world):
    _, X, y, _, _ = world
    fold = np.random.default_rng(0).integers(0, 3, len(y))
    model = ContinuationModel(cv=PredefinedSplit(fold)).fit(X, y)
    rows = model.training_rows_
    for k in range(3):
        weight = (fold != k).astype(float)
        apart = ContinuationModel(cv=None).fit(X, y, sample_weight=weight)
        held = fold[rows] == k
        np.testing.assert_allclose(
            model.held_out_[held], apart.predict(X.prefix(3))[rows[held]], rtol=1e-6
        )


# ------------------------------------------------------------- forecasts of the same runs


def test_forecasts_are_found_by_their_identifiers(world):
    _, X, y, q, cut = world
    X = named(X)
    order = np.random.default_rng(0).permutation(len(y))
    likely = (last(q) > 0.5).astype(int)
    branches = [[one, one, 0] if a else None for one, a in zip(likely, cut, strict=True)]
    audit = MonteCarloContinuation(min_branches=1).fit(X, branches)
    hybrid = ContinuationModel(cv=2).fit(X, branches=branches)
    model = ContinuationModel(cv=2).fit(X, y)
    for table in (
        lambda F: audit.summary(F, n_resamples=10),
        lambda F: hybrid.check(F, score="brier"),
        lambda F: model.check(F, score="brier"),
    ):
        given = table(X)
        pd.testing.assert_frame_equal(table(X[order]), given)
        pd.testing.assert_frame_equal(table(named(X, range(3000))), given)  # no ids: by position
        with pytest.raises(ValueError, match="the traces lack run 'run 0002' of fit"):
            table(renamed(X, 2))
        with pytest.raises(ValueError, match="there are 2999 traces for the 3000 runs"):
            table(X[1:])
        with pytest.raises(ValueError, match="hold run 'run 0001' twice"):
            table(X[np.r_[0, 1, 1, 3 : len(y)]])


def named(X, names=None):
    names = [f"run {k:04d}" for k in range(len(X))] if names is None else names
    return TrajectoryArray(X.cells, X.lengths, horizon=X.horizon, ids=names)


def renamed(X, row):
    return named(X, ["other" if k == row else one for k, one in enumerate(X.ids)])


def test_a_predictor_of_other_runs_is_refused_even_if_it_may_be_learnt_from(world):
    _, X, y, _, _ = world
    model = ContinuationModel(allow_predictor=True)
    with pytest.raises(ValueError, match=r"run 'run 2999' in predictor, but run 'run 0000' in X"):
        model.fit(named(X), y, predictor=named(X)[::-1])
