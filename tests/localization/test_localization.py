"""The first wrong step: what is learnt, how it is scored, and what a window holds."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import CROSS_FIT_CHECKS, any_two_labels
from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.localization import FirstErrorLocator, FirstErrorWindow, compare_locators
from trajscore.metrics import (
    first_error_samples,
    first_error_score,
    first_error_scorer,
    reading_cost,
)

N = 240


def made(n=N, seed=0, per_task=1, slope=3.0):
    """Runs in which a step is wrong with chance 1 / (1 + exp(3 + slope * signal)), and the truth.

    Tasks differ in how good the signal is.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, n)
    task = np.arange(n) // per_task
    slopes = np.repeat(slope * rng.uniform(0.5, 1.5, n)[task], lengths)
    signal = rng.normal(size=lengths.sum())
    hazard = 1 / (1 + np.exp(3 + slopes * signal))
    X = TrajectoryArray(
        np.c_[signal, rng.normal(size=len(signal))],
        lengths,
        channels=["signal", "noise"],
        ids=rng.permutation(n),
        meta={"task": task},
    )
    wrong = X.with_cells(rng.random(len(signal)) < hazard, channels=["a", "b"][:1])
    first = [int(np.argmax(run)) + 1 if run.any() else 0 for run in wrong]
    p = [h * np.cumprod(np.append(1, 1 - h[:-1])) for h in X.with_cells(hazard, channels=["h"])]
    return X, np.array(first), X.with_cells(np.concatenate(p), channels=["p"])


X, F, TRUTH = made()
P = FirstErrorLocator().fit_transform(X, F)


def test_the_probabilities_are_those_of_a_hazard():
    at_risk = np.where(F > 0, F, X.lengths).sum()
    h = (F > 0).sum() / at_risk
    fitted = FirstErrorLocator(DummyClassifier()).fit(X, F).transform(X)
    step = X.to_frame()["step"].to_numpy()
    np.testing.assert_allclose(fitted.cells, h * (1 - h) ** (step - 1), rtol=1e-12)


def test_it_comes_near_the_truth_and_beats_position_which_noise_does_not():
    named = {"all": P, "noise": FirstErrorLocator().fit_transform(X[["noise"]], F)}
    table = compare_locators(F, named, random_state=0)
    assert list(table.index) == ["all", "noise", "position", "uniform"]
    assert table["beats_position"].tolist() == [True, False, False, False]
    assert table.loc["all", "log_score"] > first_error_score(F, TRUTH) - 0.12
    assert table.loc["all", "steps_read"] == np.nanmean(reading_cost(F, P))
    share = np.repeat((F > 0).mean() / X.lengths, X.lengths)
    uniform = first_error_score(F, X.with_cells(share, channels=["p"]))
    assert table.loc["uniform", "log_score"] == pytest.approx(uniform, abs=1e-12)
    difference = table["log_score"]["all"] - table["log_score"]["position"]
    assert table.loc["all", "difference"] == pytest.approx(difference, abs=1e-12)


@pytest.mark.parametrize(
    "estimator", [None, HistGradientBoostingClassifier(max_iter=5)], ids=["default", "boosting"]
)
def test_live_prefixes_get_exactly_the_values_of_their_whole_runs(estimator):
    gaps = X.with_cells(np.where(np.arange(2 * len(X.cells)).reshape(-1, 2) % 7, X.cells, np.nan))
    fitted = FirstErrorLocator(estimator, live=True).fit(gaps, F)
    whole = fitted.transform(gaps).padded()
    for t in range(1, 9):
        prefix = fitted.transform(gaps.prefix(t)).padded()
        np.testing.assert_array_equal(prefix, np.where(np.isnan(prefix), np.nan, whole[:, :t]))


@pytest.mark.parametrize("live", [False, True])
def test_order_and_unlabelled_runs_do_not_matter(live, rng):
    locator = FirstErrorLocator(live=live)
    known = rng.random(N) < 0.7
    some = np.where(known, F, -1)
    expected = locator.fit(X[known], F[known]).transform(X)
    assert locator.fit(X, some).transform(X) == expected
    assert locator.n_unlabelled_ == (~known).sum()
    order = rng.permutation(N)
    task = X.meta["task"].to_numpy() // 2
    for way in ("fit_transform", "fit"):
        there, back = (
            getattr(locator, way)(X[rows], some[rows], groups=task[rows])
            for rows in (order, np.arange(N))
        )
        if way == "fit":
            there, back = locator.fit(X[order], some[order]).transform(X[order]), expected
        np.testing.assert_allclose(there.cells, back[order].cells, rtol=0, atol=1e-12)


def test_out_of_fold_means_by_other_tasks():
    task = X.meta["task"].to_numpy() // 3
    out, again = (
        FirstErrorLocator().fit_transform(X, labels, groups=task)
        for labels in (F, np.where((task == 5) & (F > 0), X.lengths, F))
    )
    of_task = np.repeat(task == 5, X.lengths)
    np.testing.assert_array_equal(out.cells[of_task], again.cells[of_task])
    assert (out.cells[~of_task] != again.cells[~of_task]).any()


@pytest.mark.parametrize("live", [False, True])
def test_edges(live):
    locator = FirstErrorLocator(live=live)
    one = X.prefix(1)
    fitted = locator.fit(one, np.minimum(F, 1))
    assert 0 < fitted.transform(one).cells.min() <= fitted.transform(one).cells.max() < 1
    first_always = locator.fit(X, np.ones(N)).transform(X)
    assert first_always.steps(1).min() > 0.99
    empty = X.with_cells(np.c_[X.cells, np.full(len(X.cells), np.nan)], channels=["a", "b", "c"])
    assert np.isfinite(locator.fit(empty, F).transform(empty).cells).all()
    some = F > 0
    sums = np.array([run.sum() for run in locator.fit(X[some], F[some]).transform(X)])
    assert np.allclose(sums, 1) != live
    assert locator.transform(X[:0]).shape[0] == 0


def test_what_cannot_be_learnt_is_said():
    locator, window = FirstErrorLocator(), FirstErrorWindow()
    beyond = np.where(np.arange(N) == 7, 99, F)
    rows = [
        (locator.fit, X, beyond, {}, rf"run {X.ids[7]} \(row 7\): first_error is 99, .* -1 where"),
        (locator.fit, X, F * 0, {}, "no labelled run .* give runs in which a step is wrong"),
        (locator.fit, X, F + 0.5, {}, "first_error is"),
        (locator.fit, X, None, {}, "first_error is nan"),
        (window.fit, X["signal"], F, {}, "lies outside"),
        (window.fit, P.with_cells(P.cells * 0 + 0.9), F, {}, "add up to .* more than 1"),
        (FirstErrorWindow(2).fit, P, F, {}, "alpha must"),
        (first_error_samples, F, P, {"score": "brier"}, "score must be 'log' or 'rps'"),
        (compare_locators, F, {}, {}, "no predictor"),
        (compare_locators, F, {"uniform": P}, {}, "rename"),
        (compare_locators, F, {"a": P, "b": P[::-1]}, {}, "one order of runs"),
    ]
    calls = [(lambda *a, f=f, **k: f(*a, **k), *rest) for f, *rest in rows]
    assert [not_refused(call, [tuple(rest)]) for call, *rest in calls] == [[]] * len(rows)
    few = np.where(np.cumsum(F > 0) <= 29, F, 0)
    with pytest.warns(UserWarning, match="Only 29 labelled runs"):
        locator.fit(X, few)
    for n, is_whole in ((8, True), (9, False)):
        some = np.where(np.cumsum(F > 0) <= n, F, 0)
        assert np.isinf(FirstErrorWindow().fit(P, some).limit_) == is_whole


# ----------------------------------------------------------------------- scores and windows

DISTRIBUTIONS = st.lists(
    st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 1 / 3, 0.7]), min_size=1, max_size=6),
    min_size=1, max_size=5,
).map(lambda runs: [np.array(run) / max(sum(run), 1) for run in runs])  # fmt: skip


@settings(max_examples=20)
@given(DISTRIBUTIONS, st.data())
def test_scores_and_reading_are_those_of_loops(runs, data):
    first = [data.draw(st.integers(-1, len(run))) for run in runs]
    many = TrajectoryArray.from_list(runs)
    log, rps = (first_error_samples(first, many, score=score) for score in ("log", "rps"))
    for k, (p, f) in enumerate(zip(runs, first, strict=True)):
        if f < 0:
            assert np.isnan([log[k], rps[k], reading_cost(first, many)[k]]).all()
            continue
        chance = p[f - 1] if f else 1 - p.sum()
        assert log[k] == pytest.approx(np.log(max(chance, 1e-6)), abs=1e-9)
        squares = [(p[:t].sum() - (0 < f <= t)) ** 2 for t in range(1, len(p) + 1)]
        assert rps[k] == pytest.approx(-np.mean(squares), abs=1e-12)
        read = np.nan
        if f:
            read = (p > chance + 1e-9).sum() + (np.isclose(p, chance).sum() + 1) / 2
        assert reading_cost(first, many)[k] == pytest.approx(read, nan_ok=True)


@settings(max_examples=20)
@given(DISTRIBUTIONS, st.sampled_from([0.1, 0.3, 0.5]))
def test_a_window_grows_by_its_likelier_neighbour(runs, alpha):
    runs = [run + 0.01 * np.arange(len(run)) ** 2 / len(run) ** 3 for run in runs]  # without ties
    many = TrajectoryArray.from_list([run / (run.sum() + 0.2) for run in runs])
    fitted = FirstErrorWindow(alpha).fit(P, F)
    for p, inside in zip(many, fitted.transform(many), strict=True):
        low = high = int(p.argmax())
        while high - low + 1 < len(p) and p[low : high + 1].sum() / p.sum() <= fitted.limit_:
            left, right = p[low - 1] if low else -1, p[high + 1] if high + 1 < len(p) else -1
            low, high = (low - 1, high) if left > right else (low, high + 1)
        assert inside.tolist() == [low <= k <= high for k in range(len(p))]


@pytest.mark.slow
@pytest.mark.parametrize("n_tasks", [30, 100, 300])
def test_windows_hold_what_they_say(n_tasks, n_simulations):
    held = []
    for seed in range(n_simulations):
        runs, first, truth = made((n_tasks + 50) * 3, seed + 1, per_task=3)
        task = runs.meta["task"].to_numpy()
        train = task < n_tasks
        window = FirstErrorWindow().fit(truth[train], first[train], task[train])
        new = ~train & (first > 0)
        inside = window.transform(truth[new])
        held.append(np.mean([run[f - 1] for run, f in zip(inside, first[new], strict=True)]))
    assert 0.89 < np.mean(held) < 0.9 + 1.5 / n_tasks + 0.01


# ------------------------------------------------------------------------- scikit-learn


@any_two_labels
class AnyLocator(FirstErrorLocator):
    def fit(self, X, y, groups=None):
        return super().fit(X, y, groups)

    def fit_transform(self, X, y, groups=None):
        return super().fit_transform(X, y, groups)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([AnyLocator()], expected_failed_checks=lambda _: CROSS_FIT_CHECKS)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_pipelines_and_searches():
    task = X.meta["task"].to_numpy() // 2
    pipeline = make_pipeline(FirstErrorLocator(), FirstErrorWindow(0.3))
    inside = pipeline.fit(X, F).transform(X)
    assert set(inside.cells) == {0.0, 1.0}
    assert pipeline[-1].limit_ == FirstErrorWindow(0.3).fit(P, F).limit_
    scorer = functools.partial(first_error_scorer, score="rps")
    search = GridSearchCV(FirstErrorLocator(), {"live": [True, False]}, scoring=scorer,
                          cv=GroupKFold(3)).fit(X, F, groups=task)  # fmt: skip
    train, test = next(GroupKFold(3).split(F, groups=task))
    expected = FirstErrorLocator(live=True).fit(X[train], F[train]).transform(X[test])
    assert search.cv_results_["split0_test_score"][0] == first_error_score(
        F[test], expected, score="rps"
    )
    some = np.where(F == 0, F, -1)
    assert first_error_score(some, P) == pytest.approx(first_error_samples(F, P)[F == 0].mean())
