import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from known_scores import censored_tps_samples, collapsed, z_score
from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import ContinuationModel, MonteCarloContinuation, censored_tps_interval
from trajscore.metrics import tps_samples

# a model that need not be told which forecast it will help to judge
learner = partial(ContinuationModel, allow_predictor=True)


def log_odds(X):
    return logit(X.cells)


def test_continuation_model_finds_q_and_the_score(world):
    runs, X, y, q, cut = world
    model = learner(features=log_odds).fit(X, y, predictor=X)
    assert np.abs(model.predict(X) - collapsed(q, "last"))[cut].mean() < 0.03
    assert model.n_extrapolated_ == 0
    assert (model.training_steps_ == 3).all()
    truth = tps_samples(runs.final_outcome, X)
    plug_in = censored_tps_samples(y, X, q_z=model.predict(X))
    assert abs(z_score(plug_in - truth)) < 3
    assert abs(z_score(censored_tps_samples(y, X) - truth)) > 8
    assert model.check(X).loc["all", "pvalue"] > 0.01


def named(X, names=None):
    names = [f"run {k:04d}" for k in range(len(X))] if names is None else names
    return TrajectoryArray(X.cells, X.lengths, horizon=X.horizon, ids=names)


def test_some_resumed_runs_speak_for_all(world, rng):
    runs, X, y, q, cut = world
    audited = cut & (rng.random(len(y)) < 0.4)
    q_true = collapsed(q, "last")
    branches = [rng.random(6) < p if a else None for p, a in zip(q_true, audited, strict=True)]
    model = learner(features=log_odds).fit(X, branches=branches)
    assert np.abs(model.predict(X) - q_true)[cut].mean() < 0.03
    assert model.check(X).loc["all", "pvalue"] > 0.01
    truth = tps_samples(runs.final_outcome, X)
    assert abs(z_score(censored_tps_samples(y, X, q_z=model.predict(X)) - truth)) < 3


class Mean(ClassifierMixin, BaseEstimator):
    """Says for every row the weighted share of the label 1."""

    def fit(self, X, y, sample_weight):
        self.classes_ = np.unique(y)[::-1]
        self.share_ = np.average(y, weights=sample_weight)
        return self

    def predict_proba(self, X):
        return np.tile([self.share_, 1 - self.share_], (len(X), 1))


def test_shares_by_hand():
    # 8 runs, resumed 0 to 4 times
    X = TrajectoryArray(np.linspace(0.1, 0.9, 16), np.full(8, 2))
    branches = [[1], [0, 0], [1, 0, 0, 0], [1, 1], None, [-1], [0, 1], [1, 0]]
    weight = np.array([1.0, 2, 1, 0, 1, 1, 1, 3])
    folds = PredefinedSplit([0, 1, 0, 1, 0, 1, 0, 1])
    # successes and branches, of which each run has as many as it weighs
    won = weight * [1, 0, 1, 2, 0, 0, 1, 1]
    made = weight * [1, 2, 4, 2, 0, 0, 2, 2]
    for classifier in (Mean(), make_pipeline(StandardScaler(), Mean())):
        model = learner(classifier, cv=folds).fit(X, branches=branches, sample_weight=weight)
        np.testing.assert_allclose(model.predict(X), won.sum() / made.sum())
        even = np.arange(8) % 2 == 0
        held = np.where(
            even, won[~even].sum() / made[~even].sum(), won[even].sum() / made[even].sum()
        )
        np.testing.assert_allclose(model.held_out_, held[model.training_rows_])
        assert model.training_rows_.tolist() == [0, 1, 2, 3, 6, 7]
        np.testing.assert_allclose(model.outcome_, [1, 0, 0.25, 1, 0.5, 0.5])
    assert not hasattr(classifier[-1], "share_")  # a classifier is copied


def test_the_default_is_a_logistic_regression_on_squares():
    rng = np.random.default_rng(0)
    X = TrajectoryArray.from_padded(rng.normal(size=(60, 2)))
    y = np.where(np.abs(X.padded()[:, 0]) > 0.7, 1, 0)
    model = learner(steps="all", features=lambda X: X.cells, cv=None).fit(X, y)
    first, end = X.padded().T
    mean, spread = first.mean(), first.std()
    squares = (
        np.column_stack([(x - mean) / spread, ((x - mean) / spread) ** 2]) for x in (first, end)
    )
    train, last_step = squares
    expected = LogisticRegression(solver="newton-cholesky").fit(train, y)
    found = model.predict(X)
    np.testing.assert_allclose(found, expected.predict_proba(last_step)[:, 1], atol=1e-6)


def test_features_are_of_the_steps_so_far(world):
    # step number, and of each channel the latest value, the mean so far and the first one
    X = TrajectoryArray(np.arange(24.0).reshape(12, 2), [3] * 4, channels=["a", "b"])
    model = learner(Mean(), steps="all", cv=2).fit(X, [0, 1, 0, 1])
    step = np.tile([1.0, 2], 4)
    first = np.repeat(X.cells[::3], 2, axis=0)
    now = first + 2 * (step - 1)[:, None]
    expected = np.stack([now, (first + now) / 2, first], axis=2).reshape(8, 6)
    np.testing.assert_allclose(model.training_features_, np.column_stack([step, expected]))
    _, X, y, _, _ = world
    order = np.random.default_rng(0).permutation(len(y))
    found = learner().fit(X[order], y[order]).predict(X)
    np.testing.assert_allclose(found, learner().fit(X, y).predict(X), rtol=1e-6)


def test_history_must_not_hold_the_forecast_under_test(world):
    _, X, y, _, _ = world
    rng = np.random.default_rng(1)
    noise, rival = rng.random((2, len(X.cells)))
    recalibrated = 1 - 1 / (1 + (1 / X.cells - 1) ** 0.3)
    both = TrajectoryArray(
        np.column_stack([noise, recalibrated]), X.lengths, channels=["noise", "judge"]
    )
    rival = X.with_cells(rival)
    model = ContinuationModel(cv=None)
    rows = [
        (both, {"y": y, "predictor": X}, "'judge' is the forecast under test"),
        (both, {"y": y, "predictor": {"a": rival, "b": X}}, "'judge' is the forecast under test"),
        (both, {"branches": [None] * 3000, "predictor": X}, "'judge' is the forecast under test"),
        (X, {"y": y, "predictor": both}, "X is the forecast under test"),
        (named(X), {"y": y, "predictor": named(X)[::-1]}, "'run 2999' in predictor"),
    ]
    assert not not_refused(model.fit, rows)
    learner(cv=None).fit(both, y, predictor=X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(both[["noise"]], y, predictor={"judge": X, "rival": rival})
        constant = X.with_cells(np.ones(len(X.cells)))
        flat = ContinuationModel(features=lambda X: np.ones(len(X.cells)))
        flat.fit(constant, y, predictor=X)
        related = X.with_cells(logit(np.clip(X.cells, 0.01, 0.99)) + 0.6 * noise)
        model.fit(related, y, predictor=X)
    how = {"q_z": ContinuationModel(), "history": X}
    assert not not_refused(censored_tps_interval, [(y, X, how, "the forecast under test")])
    with pytest.warns(UserWarning, match="without predictor= .*allow_predictor=True"):
        model.fit(X, y)


def test_a_fold_that_leaves_one_class_is_named_and_its_share_taken():
    H = TrajectoryArray(np.random.default_rng(0).random(180), [3] * 60)
    branches = [[int(k == 0)] if k < 30 else None for k in range(60)]
    with pytest.warns(UserWarning, match="outside fold 0 .*share, 0,"):
        audit = learner().fit(H, branches=branches)
    assert (audit.held_out_ == 0).any()
    assert (audit.predict(H) > 0).all()
    one = [[1, 0] if k == 0 else None for k in range(60)]
    assert np.isfinite(learner(cv=None).fit(H, branches=one).predict(H)).all()
    rows = [
        (H, {"branches": one}, "cv = 5 is more than"),
        (H, {"branches": [[1]] * 60}, "constant outcome"),
        (H, {"branches": branches, "sample_weight": [0] * 30 + [1] * 30}, "weight above 0"),
    ]
    assert not not_refused(learner().fit, rows)


def test_folds_are_those_of_the_runs_that_are_learnt_from(world):
    # a grade of one half is held out among successes: each fold has half of the graded runs
    X = TrajectoryArray(np.full(120, 0.5), np.full(40, 3), ids=np.arange(40))
    y = np.where(np.arange(40) % 2 == 0, 0.5, 0)
    model = learner(steps="all", cv=2).fit(X, y)
    np.testing.assert_allclose(model.held_out_, 0.25, atol=1e-6)
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
    # runs of a group are held out together
    grouped = learner(cv=3).fit(X, y, groups=np.arange(3000) // 10)
    assert len(grouped.training_groups_) == len(grouped.held_out_)
    assert not np.allclose(grouped.held_out_, whole.held_out_)


def test_forecasts_are_found_by_their_identifiers(world):
    _, X, y, q, cut = world
    X = named(X)
    order = np.random.default_rng(0).permutation(len(y))
    likely = (collapsed(q, "last") > 0.5).astype(int)
    branches = [[one, one, 0] if a else None for one, a in zip(likely, cut, strict=True)]
    audit = MonteCarloContinuation(min_branches=1).fit(X, branches)
    model = learner(cv=2).fit(X, y)
    other = named(X, ["other" if k == 2 else one for k, one in enumerate(X.ids)])
    for table in (
        lambda F: audit.summary(F, n_resamples=10),
        lambda F: model.check(F, score="brier"),
    ):
        given = table(X)
        pd.testing.assert_frame_equal(table(X[order]), given)
        pd.testing.assert_frame_equal(table(named(X, range(3000))), given)  # no ids: by position
        rows = [
            (other, {}, "missing run 'run 0002' of fit"),
            (X[1:], {}, "2999 traces for the 3000 runs"),
            (X[np.r_[0, 1, 1, 3 : len(y)]], {}, "run 'run 0001' twice"),
            (X.with_cells(X.cells + 1), {}, "outside"),
        ]
        assert not not_refused(table, rows)


def test_bad_input():
    X = TrajectoryArray(np.full(9, 0.5), [3, 3, 3])
    rows = [
        (X, [1, 0, -1], {}, "no observed run went on .*branches="),  # one budget for all
        (X[:1].truncate([1]), [1], {}, "nothing to learn q_Z from"),
    ]
    assert not not_refused(learner().fit, rows)
    rows = [(X, [1, 0, 1], {}, "steps .* got 'x'")]
    assert not not_refused(learner(steps="x").fit, rows)
    assert not not_refused(learner("x").fit, [(X, {}, "requires y")])
    for features, words in (
        ("prefix", "features .* got 'prefix'"),
        (lambda X: np.ones(3), "features must give 9 rows.* got 3"),
        (lambda X: [0, 1, 2, np.nan, 4, 5, 6, 7, 8], "row 1.*step 1"),
        (lambda X: [[0, 1]] * 8 + [[0, np.inf]], "row 2.*step 3"),
    ):
        model = learner(steps="all", features=features)
        assert not not_refused(model.fit, [(X, [1, 0, 1], {}, words)])
    model = learner(steps="all", cv=None).fit(X, [1, 0, -1])
    assert model.n_extrapolated_ == 1
    assert not not_refused(model.check, [({}, "cv=None .* cv=2")])
    with pytest.raises(ValueError, match="row 1: groups is missing"):
        learner(steps="all").fit(X, [1, 0, 1], groups=["a", None, "b"])
