import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import beta as beta_function
from scipy.special import betainc, expit, logit

from trajscore import TrajectoryArray
from trajscore.metrics import murphy_curve, tps_decomposition, tps_score

COLUMNS = ["score", "miscalibration", "discrimination", "uncertainty"]


def problem(seed, n_runs=40, soft=False):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, n_runs)
    q = rng.random(n_runs)
    p = np.clip(np.repeat(q, lengths) + rng.normal(0, 0.2, lengths.sum()), 0, 1)
    p = np.where(rng.random(len(p)) < 0.5, np.round(p, 1), p)
    y = q if soft else (rng.random(n_runs) < q).astype(int)
    return y, TrajectoryArray(p, lengths), rng.random(n_runs)


def power_integral(m, n, low, high):
    """Integral of c^(m-1) (1-c)^(n-1)."""
    return beta_function(m, n) * (betainc(m, n, high) - betainc(m, n, low))


def mixture(y, X, w, a, b, cuts):
    """Integrate the curve against the beta density, exactly: it is linear between `cuts`."""
    edges = np.unique(np.concatenate([[0, 1], cuts]))
    low, high = edges[:-1], edges[1:]
    at = [low + share * (high - low) for share in (0.25, 0.75)]
    curves = [murphy_curve(y, X, thresholds=one, sample_weight=w) for one in at]
    slope = (curves[1] - curves[0].to_numpy()).div(at[1] - at[0], axis=0)
    start = curves[0].to_numpy() - slope.to_numpy() * at[0][:, None]
    const = power_integral(a, b, low, high)
    linear = power_integral(a + 1, b, low, high)
    return const @ start + linear @ slope.to_numpy()


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 4), (0.5, 2.5)])
def test_the_beta_family_is_its_mixture(a, b, soft):
    y, X, w = problem(0, soft=soft)
    family = ("beta", a, b)
    # the recalibrated and the constant forecast jump elsewhere: at ratios of masses
    score = mixture(y, X, w, a, b, X.cells)[0]
    assert score == pytest.approx(tps_score(y, X, score=family, sample_weight=w), abs=1e-10)
    if (a, b) == (1, 1):
        assert 2 * score == pytest.approx(
            tps_score(y, X, score="brier", sample_weight=w), abs=1e-10
        )


@pytest.mark.parametrize("score", ["brier", ("beta", 2, 4), "log"], ids=str)
def test_all_parts_mix_to_those_of_the_score(score):
    y, X, w = problem(1)
    if score == "log":  # clipped at 1e-6, and steep towards the ends
        edges = expit(np.linspace(logit(1e-6), logit(1 - 1e-6), 40_001))
    else:
        edges = np.linspace(0, 1, 40_001)
    c = (edges[1:] + edges[:-1]) / 2
    density = {"brier": 2.0, ("beta", 2, 4): c * (1 - c) ** 3, "log": 1 / (c * (1 - c))}[score]
    curve = murphy_curve(y, X, thresholds=c, sample_weight=w)
    mixed = (density * np.diff(edges)) @ curve.to_numpy()
    parts = tps_decomposition(y, X, score=score, sample_weight=w)
    for name, value in zip(COLUMNS, mixed, strict=True):
        assert value == pytest.approx(getattr(parts, name), abs=2e-4), name


@pytest.mark.parametrize(
    ("weights", "how"),
    [
        (lambda t, T: t**-0.5, {}),
        (lambda t, T: np.ones(T), {"weights": "uniform"}),
        (lambda t, T: np.maximum(5 - t, 0), {"weights": "linear_front", "horizon": 4}),
        (lambda t, T: (T + 1 - t) / (T * (T + 1)), {"weights": "linear_front", "horizon": "own"}),
    ],
)
@pytest.mark.filterwarnings("ignore:horizon=4 leaves:UserWarning")
def test_is_the_definition(weights, how):
    y, X, w = problem(2, soft=True)
    cuts = np.array([0.1, 0.7, 0.35, 0.5])
    curve = murphy_curve(y, X, thresholds=cuts, sample_weight=w, **how)
    np.testing.assert_array_equal(curve.index, cuts)
    assert curve.index.name == "threshold"
    assert list(curve.columns) == COLUMNS
    label = np.repeat(y, X.lengths)
    cell = np.concatenate(
        [v * weights(np.arange(1, T + 1), T) for v, T in zip(w, X.lengths, strict=True)]
    )
    cell = cell / cell.sum()
    for c in cuts:
        goes_on = X.cells > c
        loss = cell @ np.where(goes_on, c * (1 - label), (1 - c) * label)
        assert curve.loc[c, "score"] == pytest.approx(-loss, abs=1e-13)
        rate = cell @ label / cell.sum()
        assert curve.loc[c, "uncertainty"] == pytest.approx(
            min(c * (1 - rate), (1 - c) * rate), abs=1e-13
        )


@given(seed=st.integers(0, 10_000), soft=st.booleans())
def test_parts_add_up_and_have_their_sign(seed, soft):
    y, X, w = problem(seed, n_runs=8, soft=soft)
    curve = murphy_curve(y, X, sample_weight=w)
    total = -(curve["miscalibration"] - curve["discrimination"] + curve["uncertainty"])
    np.testing.assert_allclose(total, curve["score"], rtol=0, atol=1e-13)
    assert (curve["miscalibration"] >= -1e-13).all()
    assert (curve["discrimination"] >= -1e-13).all()
    assert (curve["score"] <= 0).all()


@given(q=st.floats(0, 1), p=st.floats(0, 1))
def test_every_elementary_score_is_proper(q, p):
    """No report beats the truth at any threshold, in expectation: the outcome is q itself."""
    truth, report = (murphy_curve([q], [[forecast]])["score"] for forecast in (q, p))
    assert (truth >= report - 1e-15).all()


def test_constant_forecast_has_no_discrimination():
    y, X, w = problem(3)
    curve = murphy_curve(y, X.with_cells(np.full(len(X.cells), 0.3)), sample_weight=w)
    np.testing.assert_allclose(curve["discrimination"], 0, atol=1e-15)


def test_perfect_forecast_loses_nothing():
    assert (murphy_curve([1, 0], [[1.0, 1.0], [0.0, 0.0]])["score"] == 0).all()


def test_default_thresholds():
    index = murphy_curve([1, 0], [[0.9], [0.4]]).index
    assert len(index) == 199
    assert index[0] == 0.005
    assert index[-1] == 0.995


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ([0.5, 0.0], "threshold 1: 0 does not lie strictly between 0 and 1"),
        ([np.nan], "threshold 0: nan does not lie"),
        ([1.0], "threshold 0: 1 does not lie"),
        (0.5, "must be a sequence"),
        ([], "must be a sequence"),
        ([[0.5]], "must be a sequence"),
    ],
)
def test_bad_thresholds(thresholds, message):
    with pytest.raises(ValueError, match=message):
        murphy_curve([1, 0], [[0.9], [0.4]], thresholds=thresholds)


def test_bad_runs():
    with pytest.raises(ValueError, match="run 0: the outcome is not observed"):
        murphy_curve([-1, 0], [[0.9], [0.4]])
    with pytest.raises(ValueError, match="outside"):
        murphy_curve([1, 0], [[0.9], [-0.4]])


@pytest.mark.parametrize(
    ("forecast", "score"),
    [
        (0.5 * (1 - 1e-9), -0.5),
        (0.5, -0.5),
        (0.5 * (1 + 1e-12), -0.5),  # no more than the threshold, but for rounding
        (0.5 * (1 + 2e-12), 0.0),
    ],
)
def test_forecasts_up_to_the_threshold_stop_a_run(forecast, score):
    assert murphy_curve([1], [[forecast]], thresholds=[0.5])["score"].tolist() == [score]
    assert murphy_curve([0], [[forecast]], thresholds=[0.5])["score"].tolist() == [-0.5 - score]
