"""Bounds of the censored score, and intervals that know its q_z."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_scores import FAMILIES
from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import (
    ContinuationModel,
    MonteCarloContinuation,
    break_even_q,
    censored_tps_interval,
    tps_bounds,
)
from trajscore.inference import bootstrap
from trajscore.metrics import censored_tps_score

HOW = [{}, {"weights": "linear_front", "horizon": 9}, {"weights": "linear_front", "horizon": "own"}]


def drawn(seed, n=12):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, n)
    total = lengths.sum()
    X = TrajectoryArray(rng.random(total), lengths, horizon=lengths + 1)
    other = TrajectoryArray(rng.random(total), lengths, horizon=lengths + 1)
    y = rng.integers(-1, 2, n)
    y[:3] = [-1, 0, 1]
    ends = np.sort(rng.random((2, n)), axis=0)
    return rng, X, other, y, ends[0], ends[1]


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), score=st.sampled_from([*FAMILIES]), how=st.sampled_from(HOW))
def test_bounds_are_sharp_and_hold_the_truth(score, how, seed):
    rng, X, other, y, low, high = drawn(seed)
    how = {"score": score, "sample_weight": rng.integers(1, 4, len(y)), **how}
    bounds = tps_bounds(y, X, low, high, **how)
    for value, q in [(bounds.low, bounds.q_low), (bounds.high, bounds.q_high)]:
        np.testing.assert_allclose(
            censored_tps_score(y, X, q_z=q, **how), value, rtol=1e-12, atol=1e-15
        )
    q = low + rng.random(len(y)) * (high - low)
    truth = censored_tps_score(y, X, q_z=q, **how)
    assert bounds.low - 1e-12 <= truth <= bounds.high + 1e-12
    difference = tps_bounds(y, X, low, high, reference=other, **how)
    gap = truth - censored_tps_score(y, other, q_z=q, **how)
    assert difference.low - 1e-12 <= gap <= difference.high + 1e-12
    for value, q in [(difference.low, difference.q_low), (difference.high, difference.q_high)]:
        ours, theirs = (censored_tps_score(y, one, q_z=q, **how) for one in (X, other))
        np.testing.assert_allclose(ours - theirs, value, rtol=1e-9, atol=1e-12)
    rival = tps_bounds(y, other, low, high, **how)
    assert difference.high <= bounds.high - rival.low + 1e-12
    assert np.isnan(bounds.q_low[y != -1]).all()


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), score=st.sampled_from([*FAMILIES]), how=st.sampled_from(HOW))
def test_verdict_flips_at_break_even(score, how, seed):
    rng, X, other, y, _, _ = drawn(seed)
    how = {"score": score, "sample_weight": rng.integers(1, 4, len(y)), **how}
    point = break_even_q(y, X, other, **how)

    def gap(q):
        ours, theirs = (censored_tps_score(y, one, q_z=q, **how) for one in (X, other))
        return ours - theirs

    np.testing.assert_allclose(point.difference_at_0, gap(0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(point.difference_at_1, gap(1), rtol=1e-9, atol=1e-12)
    assert point.flips == (gap(0) * gap(1) <= 0)
    if point.flips:
        assert abs(gap(point.q)) < 1e-12
    else:
        assert np.isnan(point.q)


@pytest.mark.parametrize(("observed", "q"), [(0, 0.0), (1, 1.0)])
def test_verdict_may_flip_at_either_end(observed, q):
    # a cut-off run that ends as the observed one did makes up for exactly what is gained on it
    point = break_even_q([observed, -1], [[0.5], [0.25]], [[0.25], [0.5]], score="brier")
    assert point.q == q
    assert point.flips
    assert (point.difference_at_0, point.difference_at_1)[observed] == 0


def test_equal_predictors_have_no_point_at_which_a_verdict_flips():
    point = break_even_q([1, -1], [[0.5], [0.25]], [[0.5], [0.25]], score="brier")
    assert np.isnan(point.q)


def test_bad_input():
    X = TrajectoryArray(np.array([0.5, 0.6]), [1, 1], ids=["a", "b"])
    y = [1, -1]
    rows = [
        (y, X, 0.8, 0.2, {}, "row 1: q_z cannot be at least 0.8"),
        (y, X, [0.1, 0.8], [0.9, 0.2], {}, "row 1: .* at least 0.8 and at most 0.2"),
        (y, X, -0.1, {}, "row 1: .* q_z is -0.1"),
        (y, X, {"high": [np.nan] * 2}, "row 1: .* q_z is nan"),
        (y, X, {"reference": X[::-1]}, "row 0 is run 'a' in .*'traces', but run 'b' in .*'other'"),
    ]
    assert not not_refused(tps_bounds, [*rows, ([], X[:0], {}, "no runs to score")])
    rows = [
        ([1, 0], X, X, {}, "every outcome was observed"),
        (y, X, X[:1], {}, "have 2 and 1 runs"),
        (y, X, [[0.4, 0.3], [0.5]], {}, "have 1 and 2 steps in row 0"),
    ]
    assert not not_refused(break_even_q, rows)


def small_audit(n_successes):
    rng = np.random.default_rng(0)
    X, H = (TrajectoryArray(rng.random(180), [3] * 60) for _ in range(2))
    y = np.where(np.arange(60) < 30, -1, rng.integers(0, 2, 60))
    branches = [[int(k < n_successes)] if k < 30 else None for k in range(60)]
    return X, H, y, branches


@pytest.mark.parametrize("groups", [None, np.arange(60) // 3])
@pytest.mark.parametrize("q_z", [0.0, np.linspace(0, 1, 60)], ids=["failed", "graded"])
def test_replicates_are_scores_of_the_runs_that_are_drawn(groups, q_z):
    X, _, y, _ = small_audit(2)
    found = censored_tps_interval(
        y, X, q_z=q_z, score="brier", groups=groups, n_resamples=80, confidence_level=0.8,
        random_state=3,
    )  # fmt: skip
    assert found.value == pytest.approx(censored_tps_score(y, X, q_z=q_z, score="brier"))

    def scores(counts):
        return np.array([
            censored_tps_score(y, X, q_z=q_z, score="brier", sample_weight=row) for row in counts
        ])  # fmt: skip

    drawn = bootstrap(scores, 60, groups=groups, n_resamples=80, random_state=3)
    assert found.std_error == pytest.approx(drawn.std(ddof=1))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.1, 0.9])))


def test_the_order_of_runs_with_ids_does_not_matter():
    X, _, y, _ = small_audit(2)
    X = TrajectoryArray(X.cells, X.lengths, ids=[f"{(7 * k) % 60:02d}" for k in range(60)])
    options = {"score": "brier", "n_resamples": 40, "random_state": 0}
    turned = censored_tps_interval(y[::-1], X[::-1], **options)
    assert turned == pytest.approx(censored_tps_interval(y, X, **options), rel=1e-12)


def test_refitting_widens_the_interval(world):
    _, X, y, _, _ = world
    X, y = X[:1000], y[:1000]
    model = ContinuationModel(allow_predictor=True)
    options = {"n_resamples": 60, "random_state": 0}
    honest = censored_tps_interval(y, X, q_z=model, history=X, **options)
    naive = censored_tps_interval(y, X, q_z=model.fit(X, y).predict(X), **options)
    np.testing.assert_allclose(honest.value, naive.value)
    assert honest.std_error > 1.02 * naive.std_error


def test_a_draw_of_a_constant_outcome_is_counted():
    X, H, y, branches = small_audit(2)
    how = {"q_z": ContinuationModel(), "history": H, "n_resamples": 40, "random_state": 0}
    with pytest.warns(UserWarning, match=r"in \d+ of 40 replicates, .* the same outcome"):
        found = censored_tps_interval(y, X, branches=branches, **how)
    assert found.low < found.value < found.high
    two = [one if k in (0, 29) else None for k, one in enumerate(branches)]
    rows = [
        (y, X, how | {"branches": small_audit(0)[3]}, "constant outcome"),
        (y, X, how | {"branches": two}, "weight above 0"),
        (y, X, {"q_z": ContinuationModel()}, "history="),
        (y, X, {"q_z": 0.2, "history": X}, "only an estimator"),
        (y, X, {"branches": [[1]] * len(y)}, "only an estimator"),
        (y, X, {"q_z": MonteCarloContinuation()}, "q_z=estimator.predict"),
        (y, X, {"confidence_level": 95}, "confidence_level"),
        (y, X, {"groups": np.zeros(60)}, "one cluster"),
        (y, X, {"q_z": 1.5}, "q_z is 1.5"),
        (y, X, {"q_z": ContinuationModel(), "history": [[0.5]]}, "1 histories for 60"),
    ]
    assert not not_refused(censored_tps_interval, rows)
