import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from trajscore import TrajectoryArray
from trajscore.core.score_families import get_family
from trajscore.core.ties import group_ties
from trajscore.core.weights import WEIGHT_SCHEDULES
from trajscore.metrics import tps_decomposition, tps_score

# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")

FAMILIES = ["log", "brier", ("beta", 2, 4), ("beta", 0.5, 2.5)]
PARTS = ["miscalibration", "discrimination", "uncertainty"]
OWN = {"weights": "linear_front", "horizon": "own"}  # the convention of the paper
WAYS = [
    *({"weights": name, "horizon": "own"} for name in WEIGHT_SCHEDULES),
    *({"weights": name} for name in WEIGHT_SCHEDULES if name != "linear_front"),
    {"weights": "linear_front", "horizon": 5},
    {"weights": lambda step: 1 / (1 + step / 10)},
]


def rebuilt(parts):
    return -(parts.miscalibration - parts.discrimination + parts.uncertainty)


def tied(rng, n_runs=300, longest=12):
    """Runs with many ties and forecasts of 0 and 1, and labels that go with them."""
    lengths = rng.integers(1, longest + 1, n_runs)
    q = rng.random(n_runs)
    X = TrajectoryArray(
        np.round(np.clip(np.repeat(q, lengths) + rng.normal(0, 0.2, lengths.sum()), 0, 1), 1),
        lengths,
    )
    return X, (rng.random(n_runs) < q).astype(int)


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


@pytest.mark.parametrize("score", FAMILIES, ids=str)
@given(problem=problems(), way=st.sampled_from(WAYS))
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


@pytest.mark.parametrize("score", FAMILIES, ids=str)
@given(problem=problems(), constant=probabilities, by=st.sampled_from(["pooled", "step"]))
def test_a_constant_forecast_has_no_discrimination(score, problem, constant, by):
    y, X, w = problem
    X = X.with_cells(np.full(len(X.cells), constant))
    parts = tps_decomposition(y, X, score=score, sample_weight=w, by=by)
    assert np.max(parts.discrimination) == 0
    assert np.min(parts.discrimination) == 0


@pytest.mark.parametrize("score", FAMILIES, ids=str)
@given(problem=problems())
def test_an_isotonic_recalibration_has_no_miscalibration(score, problem):
    y, X, w = problem
    w = np.maximum(w, 0.1)
    cell_weight = np.repeat(w, X.lengths) * np.concatenate([early(T) for T in X.lengths])
    frame = pd.DataFrame(
        {
            "tie": group_ties(X.cells)[1],
            "w": cell_weight,
            "wy": cell_weight * np.repeat(y, X.lengths),
        }
    )
    pooled = frame.groupby("tie").sum()
    pooled["fit"] = isotonic_regression(pooled["wy"] / pooled["w"], sample_weight=pooled["w"])
    better = X.with_cells(np.clip(frame["tie"].map(pooled["fit"]).to_numpy(), 0, 1))
    before = tps_decomposition(y, X, score=score, sample_weight=w)
    after = tps_decomposition(y, better, score=score, sample_weight=w)
    assert after.miscalibration == pytest.approx(0, abs=1e-12)
    assert after.discrimination == pytest.approx(before.discrimination, rel=0, abs=1e-9)
    assert after.score == pytest.approx(before.score + before.miscalibration, rel=0, abs=1e-9)


def early(T):
    """Weights of the steps of a run."""
    return np.arange(1, T + 1) ** -0.5


def falling(T):
    """Weights of the paper, over the length of a run."""
    return 2 * np.arange(T, 0, -1) / (T * (T + 1))


def by_hand(y, X, score, w, weights=early):
    """The definition for one group of cells, via a recalibrated forecast a cell."""
    family = get_family(score)
    label = np.repeat(y, X.lengths).astype(float)
    cell_weight = np.repeat(w, X.lengths) * np.concatenate([weights(T) for T in X.lengths])
    cell_weight /= cell_weight.sum()  # also the paper's: runs of which each weighs one
    _, place = np.unique(X.cells, return_inverse=True)
    mass = np.bincount(place, cell_weight)
    fit = isotonic_regression(np.bincount(place, cell_weight * label) / mass, sample_weight=mass)
    constant = np.full(len(label), cell_weight @ label / cell_weight.sum())

    def total(p):
        return cell_weight @ (label * family.success(p) + (1 - label) * family.failure(p))

    forecast, recalibrated, base = total(X.cells), total(fit[place]), total(constant)
    return forecast, recalibrated - forecast, recalibrated - base, -base


@pytest.mark.parametrize("score", FAMILIES, ids=str)
def test_is_the_definition(rng, score):
    X, y = tied(rng)
    w = rng.random(len(X))
    for labels in (y, rng.random(len(y))):
        for weights, how in ((early, {}), (falling, OWN)):
            parts = tps_decomposition(labels, X, score=score, sample_weight=w, **how)
            expected = by_hand(labels, X, score, w, weights)
            np.testing.assert_allclose(
                [parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty],
                expected,
                rtol=1e-12,
                atol=1e-12,
            )


@pytest.mark.parametrize(("weights", "how"), [(early, {}), (falling, OWN)], ids=["early", "own"])
def test_each_step_is_decomposed_by_itself(rng, weights, how):
    X, y = tied(rng)
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
        for name in ["score", *PARTS]:
            assert row[name] == pytest.approx(getattr(parts, name), rel=0, abs=1e-12)


@pytest.mark.parametrize("by", ["pooled", "step"])
def test_row_order_does_not_matter(rng, by):
    X, y = tied(rng)
    order = rng.permutation(len(X))
    w = rng.random(len(X))
    one = tps_decomposition(y, X, by=by, sample_weight=w)
    other = tps_decomposition(y[order], X[order], by=by, sample_weight=w[order])
    for name in ["score", *PARTS]:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-13)


@pytest.mark.parametrize("by", ["pooled", "step"])
def test_sample_weight_counts_runs(rng, by):
    X, y = tied(rng, n_runs=60)
    w = rng.integers(0, 3, 60)
    repeated = np.repeat(np.arange(60), w)
    one = tps_decomposition(y, X, by=by, sample_weight=w)
    other = tps_decomposition(y[repeated], X[repeated], by=by)
    for name in ["score", *PARTS]:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-13)


def test_a_monotone_map_moves_only_the_miscalibration(rng):
    X, y = tied(rng)
    raw = tps_decomposition(y, X, score="brier")
    squared = tps_decomposition(y, X.with_cells(X.cells**2), score="brier")
    assert squared.discrimination == pytest.approx(raw.discrimination, abs=1e-15)
    assert squared.uncertainty == pytest.approx(raw.uncertainty, abs=1e-15)
    assert squared.miscalibration > raw.miscalibration + 0.01


def test_a_perfect_forecast_explains_all_uncertainty():
    parts = tps_decomposition([1, 0, 1], [[1.0], [0.0], [1.0]], score="brier")
    assert (parts.score, parts.miscalibration) == (0, 0)
    assert parts.discrimination == parts.uncertainty > 0
    clipped = tps_decomposition([1, 0, 1], [[1.0], [0.0], [1.0]])
    assert clipped.miscalibration == 0
    assert clipped.score == pytest.approx(np.log1p(-1e-6))


def test_a_reversed_forecast_has_no_discrimination():
    parts = tps_decomposition([1, 0, 0, 1], [[0.1], [0.9], [0.9], [0.2]])
    assert parts.discrimination == 0
    assert parts.miscalibration > 1


def test_an_unbounded_family_may_lose_everything():
    class Unclipped:
        def success(self, p):
            with np.errstate(divide="ignore"):
                return np.log(p)

        def failure(self, p):
            with np.errstate(divide="ignore"):
                return np.log1p(-p)

    perfect = tps_decomposition([1, 0], [[1.0], [0.0]], score=Unclipped())
    assert (perfect.score, perfect.miscalibration) == (0, 0)
    assert perfect.discrimination == pytest.approx(np.log(2))
    wrong = tps_decomposition([1, 0], [[0.0], [0.5]], score=Unclipped())
    assert (wrong.score, wrong.miscalibration) == (-np.inf, np.inf)


def test_custom_weights_may_leave_steps_out():
    X = TrajectoryArray.from_list([[0.9, 0.5, 0.8], [0.2, 0.4, 0.1]])
    with pytest.warns(UserWarning, match="weights for a horizon of 3 are zero at step 1: .*4.1"):
        table = tps_decomposition(
            [1, 0], X, weights=lambda T: [0] * (T - 1) + [1], horizon="own", by="step"
        )
    assert table.index.tolist() == [3]
    assert table["weight"].tolist() == [1]
    with pytest.warns(UserWarning, match="weights for steps 1 to 3 are zero at step 1: .*4.1"):
        table = tps_decomposition([1, 0], X, weights=lambda step: step % 2 == 0, by="step")
    assert table.index.tolist() == [2]
    assert table["weight"].tolist() == [1]


def test_cut_runs_with_a_horizon_keep_their_weights(rng):
    X, y = tied(rng)
    X = X.truncate(np.maximum(X.lengths - 2, 1)).with_horizon(X.lengths)
    total = tps_score(y, X, **OWN)
    assert rebuilt(tps_decomposition(y, X, **OWN)) == pytest.approx(total, abs=1e-12)
    table = tps_decomposition(y, X, by="step", **OWN)
    assert table["weight"].sum() < 1
    assert table["weight"] @ table["score"] == pytest.approx(total, abs=1e-12)


def test_hotpotqa_recalibration_moves_calibration_alone(hotpotqa):
    X, y = hotpotqa
    parts = tps_decomposition(y, X, **OWN)
    assert f"{parts.score:.3f}" == "-0.684"
    assert f"{parts.miscalibration:.4f} {parts.discrimination:.4f}" == "0.0525 0.0608"
    assert rebuilt(parts) == pytest.approx(tps_score(y, X, **OWN), abs=1e-12)
    parts = tps_decomposition(y, X)
    found = [parts.score, *(getattr(parts, name) for name in PARTS)]
    assert [f"{part:.4f}" for part in found] == ["-0.7236", "0.0779", "0.0420", "0.6878"]
    _, place = group_ties(X.cells)
    rounded = X.with_cells(X.cells[np.unique(place, return_index=True)[1]][place])
    np.testing.assert_allclose(found, by_hand(y, rounded, "log", np.ones(len(y))), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": "run"}, "by must be 'pooled' or 'step', got 'run'"),
        ({"score": "bier"}, "unknown score 'bier'"),
        ({"weights": "front"}, "unknown weights 'front'"),
        ({"y_true": [1, -1]}, "run 1: the outcome is not observed"),
        ({"y_true": [1]}, "1 outcome for 2 runs"),
        ({"traces": [[0.5], [1.5]]}, r"forecast 1.5 lies outside \[0, 1\]"),
        ({"sample_weight": [1, -1]}, "row 1: sample_weight -1 is negative"),
        ({"sample_weight": [0, 0]}, "all sample weights are zero"),
        ({"weights": lambda step: [0, 1]}, "weights for steps 1 to 1 must be 1"),
    ],
)
def test_bad_input(change, message):
    arguments = {"y_true": [1, 0], "traces": [[0.5], [0.5]], **change}
    with pytest.raises(ValueError, match=message):
        tps_decomposition(arguments.pop("y_true"), arguments.pop("traces"), **arguments)


def test_nothing_to_decompose():
    X = TrajectoryArray.from_list([[0.9, 0.5, 0.8]])
    zeros = pytest.warns(UserWarning, match="are zero at step 1")
    with zeros, pytest.raises(ValueError, match="no step has a positive weight"):
        tps_decomposition(
            [1],
            X.truncate([2]).with_horizon([3]),
            weights=lambda T: [0] * (T - 1) + [1],
            horizon="own",
        )
    with pytest.raises(ValueError, match="there are no runs"):
        tps_decomposition([], X[:0])
