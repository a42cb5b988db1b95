import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import PredefinedSplit

from trajscore import TrajectoryArray
from trajscore.censoring import (
    ContinuationModel,
    MonteCarloContinuation,
    StopHazard,
    censored_tps_interval,
)
from trajscore.metrics import censored_tps_samples, tps_samples

# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")


def learner(*args, **options):
    """A model that need not be told which forecast it will help to judge."""
    return ContinuationModel(*args, allow_predictor=True, **options)


def last(X):
    return X.cells[X.offsets[1:] - 1]


def log_odds(X):
    return logit(X.cells)


def z_score(samples):
    return samples.mean() / (samples.std() / np.sqrt(len(samples)))


def test_continuation_model_finds_q_and_the_score(world):
    runs, X, y, q, cut = world
    model = learner(features=log_odds).fit(X, y, predictor=X)
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


def test_some_resumed_runs_speak_for_all(world, rng):
    runs, X, y, q, cut = world
    audited = cut & (rng.random(len(y)) < 0.4)
    q_true = last(q)
    branches = [rng.random(6) < p if a else None for p, a in zip(q_true, audited, strict=True)]
    model = learner(features=log_odds).fit(X, branches=branches)
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


def test_any_classifier_will_do_and_the_order_of_rows_does_not_matter(world, rng):
    _, X, y, _, _ = world
    forest = RandomForestClassifier(20, min_samples_leaf=30, random_state=0)
    q = learner(forest).fit(X, y).predict(X)
    assert 0 < q.min() < q.max() < 1
    model = learner().fit(X, y)
    order = rng.permutation(len(y))
    again = learner().fit(X[order], y[order])
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
    rival = X.with_cells(np.random.default_rng(1).random(len(X.cells)))
    for predictor in (X, {"rival": rival, "judge": X}):
        for options in ({"y": y}, {"branches": [None] * len(y)}):
            with pytest.raises(ValueError, match="'judge' is the forecast under test"):
                ContinuationModel().fit(both, predictor=predictor, **options)
    with pytest.raises(ValueError, match="X is the forecast under test"):
        ContinuationModel().fit(X, y, predictor=both)
    learner().fit(both, y, predictor=X)
    ContinuationModel().fit(both[["noise"]], y, predictor={"judge": X, "rival": rival})
    constant = X.with_cells(np.ones(len(X.cells)))
    ContinuationModel(features=lambda X: np.ones(len(X.cells))).fit(constant, y, predictor=X)
    noise = np.random.default_rng(0).normal(size=len(X.cells))
    related = X.with_cells(logit(np.clip(X.cells, 0.01, 0.99)) + 0.3 * noise)
    assert spearmanr(related.cells, X.cells).statistic > 0.95
    model = ContinuationModel().fit(related, y, predictor=X)
    with pytest.raises(ValueError, match="the forecast under test"):
        model.summary(X, y, X)
    with pytest.raises(ValueError, match="the forecast under test"):
        censored_tps_interval(y, X, q_z=ContinuationModel(), history=X)


def test_a_model_that_is_not_told_what_it_will_judge_says_so(world):
    _, X, y, _, _ = world
    with pytest.warns(UserWarning, match="without predictor= .*it will help to judge"):
        ContinuationModel(cv=None).fit(X, y)


def test_a_predictor_of_other_runs_is_refused_even_if_it_may_be_learnt_from(world):
    _, X, y, _, _ = world
    model = learner()
    with pytest.raises(ValueError, match=r"run 'run 2999' in predictor, but run 'run 0000' in X"):
        model.fit(named(X), y, predictor=named(X)[::-1])


def test_common_budget_cannot_be_learnt_from():
    X = TrajectoryArray(np.full(9, 0.5), [3, 3, 3])
    with pytest.raises(ValueError, match=r"no observed run went on .*branches="):
        learner().fit(X, [1, 0, -1])
    model = learner(steps="all", cv=None).fit(X, [1, 0, -1])
    assert model.n_extrapolated_ == 1
    with pytest.raises(ValueError, match="cv=None made no held-out estimates"):
        model.check()


def test_estimators_are_scikit_learn_estimators(world):
    _, X, y, _, _ = world
    for model in (
        learner(cv=2, min_branches=3),
        StopHazard(cv=3),
        MonteCarloContinuation("failure"),
    ):
        assert clone(model).get_params() == model.get_params()
    fitted = learner().fit(X, y)
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
        learner(features=lambda X: np.ones(3)).fit(X, np.ones(200))


def test_a_fold_that_leaves_one_class_is_named_and_its_share_taken():
    H = TrajectoryArray(np.random.default_rng(0).random(180), [3] * 60)
    branches = [[int(k == 0)] if k < 30 else None for k in range(60)]
    with pytest.warns(UserWarning, match=r"outside fold 0 .*their share, 0,"):
        audit = learner().fit(H, branches=branches)
    assert (audit.held_out_ == 0).any()
    assert (audit.predict(H) > 0).all()
    lengths = np.r_[np.full(10, 2), np.full(20, 4)]
    Z = TrajectoryArray(np.random.default_rng(0).random(100), lengths)
    with pytest.warns(UserWarning, match="their share, 0,"):
        model = learner().fit(Z, np.r_[np.full(10, -1), 1, np.zeros(19)])
    assert (model.held_out_ == 0).any()
    one = [[1, 0] if k == 0 else None for k in range(60)]
    with pytest.raises(ValueError, match=r"cv = 5 is more than"):
        learner().fit(H, branches=one)
    assert np.isfinite(learner(cv=None).fit(H, branches=one).predict(H)).all()


def graded(n=40):
    """Every other run has the grade .5, the others failed; only a constant can be learnt."""
    X = TrajectoryArray(np.full(3 * n, 0.5), np.full(n, 3), ids=np.arange(n))
    return X, np.where(np.arange(n) % 2 == 0, 0.5, 0)


def test_a_grade_of_one_half_is_held_out_among_successes():
    X, y = graded()
    # so each of two folds holds half of the graded runs, and the other learns their share
    model = learner(steps="all", cv=2).fit(X, y)
    np.testing.assert_allclose(model.held_out_, 0.25, atol=1e-6)
    resumed = learner(cv=2).fit(X, branches=[[1, 0] if one else [0, 0] for one in y])
    np.testing.assert_allclose(resumed.held_out_, 0.25, atol=1e-6)


def test_folds_are_those_of_the_runs_that_are_learnt_from(world):
    _, X, y, _, _ = world
    learnt = np.isin(np.arange(len(y)), learner(cv=None).fit(X, y).training_rows_)
    whole = learner(cv=3).fit(X, y)
    # other observed runs may come and go
    keep = learnt | (y == -1)
    alone = learner(cv=3).fit(X[keep], y[keep])
    np.testing.assert_array_equal(alone.held_out_, whole.held_out_)
    weight = np.where(np.arange(len(y)) % 7 == 0, 0, 1)
    some = learner(cv=3).fit(X, y, sample_weight=weight)
    fewer = learner(cv=3).fit(X[weight > 0], y[weight > 0])
    held = some.held_out_[weight[some.training_rows_] > 0]
    np.testing.assert_allclose(held, fewer.held_out_, rtol=1e-6)


def test_a_splitter_makes_the_folds(world):
    _, X, y, _, _ = world
    fold = np.random.default_rng(0).integers(0, 3, len(y))
    model = learner(cv=PredefinedSplit(fold)).fit(X, y)
    rows = model.training_rows_
    for k in range(3):
        weight = (fold != k).astype(float)
        apart = learner(cv=None).fit(X, y, sample_weight=weight)
        held = fold[rows] == k
        np.testing.assert_allclose(
            model.held_out_[held], apart.predict(X.prefix(3))[rows[held]], rtol=1e-6
        )


def test_forecasts_are_found_by_their_identifiers(world):
    _, X, y, q, cut = world
    X = named(X)
    order = np.random.default_rng(0).permutation(len(y))
    likely = (last(q) > 0.5).astype(int)
    branches = [[one, one, 0] if a else None for one, a in zip(likely, cut, strict=True)]
    audit = MonteCarloContinuation(min_branches=1).fit(X, branches)
    hybrid = learner(cv=2).fit(X, branches=branches)
    model = learner(cv=2).fit(X, y)
    for table in (
        lambda F: audit.summary(F, n_resamples=10),
        lambda F: hybrid.check(F, score="brier"),
        lambda F: model.check(F, score="brier"),
    ):
        given = table(X)
        pd.testing.assert_frame_equal(table(X[order]), given)
        pd.testing.assert_frame_equal(table(named(X, range(3000))), given)  # no ids: by position
        with pytest.raises(ValueError, match="the traces are missing run 'run 0002' of fit"):
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


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda X: learner().fit(X, branches=[[1, 1]]), "have a constant outcome"),
        (lambda X: learner("x").fit(X), "requires y to be passed"),
        (lambda X: learner(steps="x").fit(X, [1]), "steps must be"),
        (lambda X: learner().fit(X, [1]), "nothing to learn q_Z from"),
    ],
)
def test_bad_input_gets_one_sentence(call, match):
    with pytest.raises(ValueError, match=match):
        call(TrajectoryArray(np.array([0.5]), [1]))


def test_where_all_outcomes_were_observed_there_is_nothing_to_summarise(world):
    _, X, y, _, _ = world
    model = learner(cv=None).fit(X, y)
    observed = y >= 0
    with pytest.raises(ValueError, match="every outcome was observed; there is no q_Z"):
        model.summary(X[observed], y[observed])
    with pytest.raises(ValueError, match="cv=None made no held-out estimates; fit with cv=2"):
        model.check()
