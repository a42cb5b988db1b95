import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from known_scores import FAMILIES, OWN, WAYS
from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.metrics import tps_decomposition, tps_score

# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")

PARTS = ["miscalibration", "discrimination", "uncertainty"]
ALL = ["score", *PARTS]


def rebuilt(parts):
    return -(parts.miscalibration - parts.discrimination + parts.uncertainty)


@pytest.fixture
def tied(rng):
    """Runs with many ties and forecasts of 0 and 1, and labels that go with them."""
    lengths, q = rng.integers(1, 13, 300), rng.random(300)
    p = np.repeat(q, lengths) + rng.normal(0, 0.2, lengths.sum())
    X = TrajectoryArray(np.round(np.clip(p, 0, 1), 1), lengths)
    return X, (rng.random(300) < q).astype(int)


probabilities = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1e-9, 1e-6, 0.25, 0.5, 1 - 1e-6, 1.0])
)


@st.composite
def problems(draw):
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=8))
    n = len(lengths)
    cells = draw(st.lists(probabilities, min_size=sum(lengths), max_size=sum(lengths)))
    labels = st.one_of(st.sampled_from([0.0, 1.0]), probabilities)
    y = np.array(draw(st.lists(labels, min_size=n, max_size=n)))
    w = np.array(draw(st.lists(st.sampled_from([0, 0.3, 1, 7]), min_size=n, max_size=n)), float)
    w[0] = 1
    horizon = np.array(lengths) + draw(st.integers(0, 3))
    return y, TrajectoryArray(np.array(cells), lengths, horizon=horizon), w


@settings(max_examples=25)
@given(problem=problems(), way=st.sampled_from(WAYS), score=st.sampled_from([*FAMILIES]))
def test_parts_add_to_the_score(score, problem, way):
    y, X, w = problem
    how = {"score": score, "sample_weight": w, **way}
    total = tps_score(y, X, **how)
    parts = tps_decomposition(y, X, **how)
    assert parts.score == pytest.approx(total, rel=0, abs=1e-12)
    assert rebuilt(parts) == pytest.approx(total, rel=0, abs=1e-12)
    assert parts.miscalibration >= -1e-12
    assert parts.discrimination >= -1e-12
    table = tps_decomposition(y, X, by="step", **how)
    np.testing.assert_allclose(rebuilt(table), table["score"], rtol=0, atol=1e-12)
    assert table["weight"] @ table["score"] == pytest.approx(total, rel=0, abs=1e-12)
    assert (table[["miscalibration", "discrimination"]] >= -1e-12).all(axis=None)
    # a constant a step is never worse than one for all
    assert table["weight"] @ table["uncertainty"] <= parts.uncertainty + 1e-12


def early(T):
    """Weights of the steps of a run."""
    return np.arange(1, T + 1) ** -0.5


def falling(T):
    """Weights of the paper, over the length of a run."""
    return 2 * np.arange(T, 0, -1) / (T * (T + 1))


def recalibrated(y, X, w, weights):
    """Weight of each cell, and its forecast by isotonic regression."""
    label = np.repeat(y, X.lengths).astype(float)
    cell_weight = np.repeat(w, X.lengths) * np.concatenate([weights(T) for T in X.lengths])
    cell_weight /= cell_weight.sum()  # also the paper's: runs of which each weighs one
    _, place = np.unique(X.cells, return_inverse=True)
    mass = np.bincount(place, cell_weight)
    fit = isotonic_regression(np.bincount(place, cell_weight * label) / mass, sample_weight=mass)
    return cell_weight, label, np.clip(fit, 0, 1)[place]


@pytest.mark.parametrize("score", FAMILIES, ids=str)
def test_is_the_definition(tied, rng, score):
    X, y = tied
    w, family = rng.random(len(X)), FAMILIES[score]
    for labels in (y, rng.random(len(y))):
        for weights, how in ((early, {}), (falling, OWN)):
            mass, label, best = recalibrated(labels, X, w, weights)
            total, most, base = (
                mass @ (label * family.success(p) + (1 - label) * family.failure(p))
                for p in (X.cells, best, np.full(len(label), mass @ label))
            )
            parts = tps_decomposition(labels, X, score=score, sample_weight=w, **how)
            found = [getattr(parts, name) for name in ALL]
            np.testing.assert_allclose(
                found, [total, most - total, most - base, -base], rtol=1e-12, atol=1e-12
            )
            # a recalibrated forecast has no miscalibration, and as much discrimination
            after = tps_decomposition(
                labels, X.with_cells(best), score=score, sample_weight=w, **how
            )
            assert after.miscalibration == pytest.approx(0, abs=1e-12)
            assert after.discrimination == pytest.approx(parts.discrimination, rel=0, abs=1e-9)


@pytest.mark.parametrize(("weights", "how"), [(early, {}), (falling, OWN)], ids=["early", "own"])
def test_each_step_is_decomposed_by_itself(tied, rng, weights, how):
    X, y = tied
    w = rng.random(len(X))
    table = tps_decomposition(y, X, by="step", sample_weight=w, **how)
    weight = w @ [weights(T).sum() for T in X.lengths]
    assert table.index.tolist() == list(range(1, 13))
    assert table["n_runs"].tolist() == [int((X.lengths >= t).sum()) for t in table.index]
    for t, row in table.iterrows():
        alive = np.flatnonzero(X.lengths >= t)
        here = w[alive] * [weights(T)[t - 1] for T in X.lengths[alive]]
        cells = TrajectoryArray([X[int(run)][t - 1] for run in alive], np.ones(len(alive), int))
        parts = tps_decomposition(y[alive], cells, sample_weight=here)
        assert row["weight"] == pytest.approx(here.sum() / weight)
        for name in ALL:
            assert row[name] == pytest.approx(getattr(parts, name), rel=0, abs=1e-12)


@pytest.mark.parametrize("by", ["pooled", "step"])
def test_order_of_rows_and_counts_of_runs(tied, rng, by):
    X, y = tied
    counts = rng.integers(0, 3, len(X))
    rows = rng.permutation(np.repeat(np.arange(len(X)), counts))
    one = tps_decomposition(y, X, by=by, sample_weight=counts)
    other = tps_decomposition(y[rows], X[rows], by=by)
    for name in ALL:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-13)


def test_perfect_and_reversed_forecasts():
    parts = tps_decomposition([1, 0, 1], [[1.0], [0.0], [1.0]], score="brier")
    assert (parts.score, parts.miscalibration) == (0, 0)
    assert parts.discrimination == parts.uncertainty == pytest.approx(2 / 9)
    clipped = tps_decomposition([1, 0, 1], [[1.0], [0.0], [1.0]])
    assert clipped.miscalibration == 0
    assert clipped.score == pytest.approx(np.log1p(-1e-6))
    parts = tps_decomposition([1, 0, 0, 1], [[0.1], [0.9], [0.9], [0.2]])
    assert parts.discrimination == 0
    assert parts.miscalibration > 1


def test_custom_weights_may_leave_steps_out():
    X = TrajectoryArray.from_list([[0.9, 0.5, 0.8], [0.2, 0.4, 0.1]])
    zeros = pytest.warns(UserWarning, match="zero at step 1")
    with zeros:
        table = tps_decomposition([1, 0], X, weights=lambda step: step % 2 == 0, by="step")
    assert (table.index.tolist(), table["weight"].tolist()) == ([2], [1])
    cut = X[:1].truncate([2]).with_horizon([3])
    with zeros, pytest.raises(ValueError, match="no step has a positive weight"):
        tps_decomposition([1], cut, weights=lambda step: step > 2, horizon="own")


def test_bad_input():
    y, F = [1, 0], [[0.5], [0.5]]
    rows = [
        (y, F, {"by": "run"}, "by must be .* got 'run'"),
        ([1, -1], F, {}, "run 1: the outcome is not observed"),
        (y, [[0.5], [1.5]], {}, r"forecast 1.5 lies outside \[0, 1\]"),
        (y, F, {"sample_weight": [1, -1]}, "row 1: sample_weight is -1"),
        (y, F, {"weights": lambda step: [0, 1]}, "weights for steps 1 to 1"),
        ([], TrajectoryArray([], []), {}, "no runs"),
    ]
    assert not not_refused(tps_decomposition, rows)
