"""The trajectory score by hand, and how much its weights and its score matter."""

import warnings

import numpy as np
import pytest

from known_scores import FAMILIES, OWN
from refused import not_refused
from trajscore import TrajectoryArray, metrics
from trajscore.metrics import regret, step_profile, tps_samples, tps_score, tps_sensitivity

WAYS = ({}, {"weights": "uniform"}, {"normalize": False}, OWN)
# w_t, of the step's number alone
STEP = {
    "early": lambda t: 1 / np.sqrt(t),
    "uniform": lambda t: 1.0,
    "exponential_front": lambda t: 2.0 ** (1 - t),
    "linear_back": float,
    lambda step: 1 / (1 + step / 10): lambda t: 1 / (1 + t / 10),
}
# w_t over a horizon T, as the paper writes them
PAPER = {
    "early": lambda t, T: t**-0.5 / (np.arange(1, T + 1) ** -0.5).sum(),
    "uniform": lambda t, T: 1 / T,
    "linear_front": lambda t, T: 2 * (T - t + 1) / (T * (T + 1)),
    "exponential_front": lambda t, T: 2.0 ** -(t - 1) / (2 * (1 - 2.0**-T)),
    "linear_back": lambda t, T: 2 * t / (T * (T + 1)),
}


def by_hand(y, X, score, weight):
    """N_i and D_i by the definition, one run and one step at a time; `weight` is of row, step."""
    family, sums = FAMILIES[score], []
    for row, (label, run) in enumerate(zip(y, X, strict=True)):
        steps = np.arange(1, len(run) + 1)
        w = np.array([weight(row, t) for t in steps])
        earned = label * family.success(run) + (1 - label) * family.failure(run)
        sums.append((w @ earned, w.sum()))
    return np.array(sums).T


def assert_score(y, X, total, divisor, sample_weight=None, **how):
    """Hold the score, and the numbers of the runs, against sums by hand."""
    v = np.ones(len(y)) if sample_weight is None else sample_weight
    expected = v @ total / (v @ divisor)
    how |= {"sample_weight": sample_weight}
    assert tps_score(y, X, **how) == pytest.approx(expected, rel=1e-12)
    pseudo = expected + (total - expected * divisor) / np.average(divisor, weights=v)
    np.testing.assert_allclose(tps_samples(y, X, **how), pseudo, rtol=1e-11, atol=1e-14)
    plain = tps_samples(y, X, normalize=False, **how)
    np.testing.assert_allclose(plain, total, rtol=1e-12, atol=1e-15)
    assert tps_score(y, X, normalize=False, **how) == pytest.approx(np.average(total, weights=v))


@pytest.mark.parametrize("score", FAMILIES, ids=str)
def test_is_the_definition(ragged, rng, score):
    X, y = ragged
    for weights, weight in STEP.items():
        for labels, v in ((y, None), (rng.random(len(y)), rng.random(len(y)))):
            sums = by_hand(labels, X, score, lambda row, t: weight(t))  # noqa: B023
            assert_score(labels, X, *sums, sample_weight=v, score=score, weights=weights)


@pytest.mark.filterwarnings("ignore:horizon=5 leaves:UserWarning")
@pytest.mark.parametrize("weights", PAPER)
def test_is_the_definition_over_one_horizon(ragged, weights):
    X, y = ragged
    for T in (5, 9, 30):
        sums = by_hand(y, X, "log", lambda row, t: PAPER[weights](t, T) * (t <= T))  # noqa: B023
        assert_score(y, X, *sums, weights=weights, horizon=T)


@pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")
@pytest.mark.parametrize("weights", PAPER)
def test_is_the_definition_of_the_paper(ragged, rng, weights):
    # a mean over runs, whose weights add up to one over the own horizon of each
    X, y = ragged
    short = X.truncate(rng.integers(1, X.lengths + 1)).with_horizon(X.lengths)
    how = {"score": ("beta", 2, 4), "weights": weights, "horizon": "own"}
    for traces in (X, short):
        for labels in (y, rng.random(len(y))):
            total, _ = by_hand(
                labels, traces, ("beta", 2, 4), lambda row, t: PAPER[weights](t, X.lengths[row])
            )
            samples = tps_samples(labels, traces, **how)
            np.testing.assert_allclose(samples, total, rtol=1e-12, atol=1e-15)
            assert tps_score(labels, traces, **how) == pytest.approx(total.mean(), rel=1e-12)
            v = rng.random(len(y))
            weighted = tps_score(labels, traces, sample_weight=v, **how)
            assert weighted == pytest.approx(np.average(total, weights=v), rel=1e-12)


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_samples(ragged, rng, how):
    X, y = ragged
    rival, n = X.with_cells(rng.random(len(X.cells))), len(y)
    counts, order = rng.integers(0, 3, n), rng.permutation(n)
    # their mean is the score
    for v in (None, rng.random(n), counts):
        samples = tps_samples(y, X, sample_weight=v, **how)
        expected = tps_score(y, X, sample_weight=v, **how)
        assert np.average(samples, weights=v) == pytest.approx(expected, rel=1e-13)
    # a weight of two is the run twice, and the order of rows does not matter
    rows = np.repeat(np.arange(n), counts)
    repeated = tps_samples(y[rows], X[rows], **how)
    np.testing.assert_allclose(samples[rows], repeated, rtol=1e-12)
    shuffled = tps_samples(y[order], X[order], **how)
    np.testing.assert_allclose(shuffled, tps_samples(y, X, **how)[order], rtol=1e-13)

    # the influence of each run on the margin of one predictor over another
    def margin(v):
        return tps_score(y, X, sample_weight=v, **how) - tps_score(y, rival, sample_weight=v, **how)

    found = tps_samples(y, X, **how) - tps_samples(y, rival, **how)
    numeric = [n * (margin(1 + h) - margin(1 - h)) / 2e-5 for h in 1e-5 * np.eye(n)[:40]]
    np.testing.assert_allclose((found - found.mean())[:40], numeric, atol=1e-7)


# (success rate, log, Brier, Beta(2,4)) as printed in Tables 2 to 4 of the paper
BASE_RATES = [
    (0.842, "-0.436", "-0.133", "-0.00263"),
    (0.443, "-0.687", "-0.247", "-0.00760"),
    (0.583, "-0.679", "-0.243", "-0.00649"),
]


@pytest.mark.parametrize(("rate", "log", "brier", "beta"), BASE_RATES)
def test_base_rate_constants_of_the_paper(rate, log, brier, beta):
    y = (np.arange(1000) < round(1000 * rate)).astype(int)
    same = np.full((1000, 4), rate)
    lengths = np.where(y, 2, 11)
    F = TrajectoryArray(np.full(lengths.sum(), rate), lengths)
    # by step the same, as long as all runs are equally long
    for traces, how in ((same, OWN), (same, {}), (F, OWN)):
        assert f"{tps_score(y, traces, **how):.3f}" == log
        assert f"{tps_score(y, traces, score='brier', **how):.3f}" == brier
        assert f"{tps_score(y, traces, score=('beta', 2, 4), **how):.5f}" == beta
    # by step, a run that is longer counts more
    weight = np.where(y, 1 + 2**-0.5, (np.arange(1, 12) ** -0.5).sum())
    won = weight @ y / weight.sum()
    expected = won * np.log(rate) + (1 - won) * np.log(1 - rate)
    assert tps_score(y, F) == pytest.approx(expected, rel=1e-12)


def second(step):
    return (step == 2) * 1.0


def test_runs_whose_steps_weigh_nothing_have_no_score():
    X = TrajectoryArray.from_list([[0.5, 0.6], [0.7]])
    zeros = pytest.warns(UserWarning, match="zero at step 1")
    with zeros:
        assert tps_score([1, 0], X, weights=second) == pytest.approx(np.log(0.6))
    for function in (tps_score, tps_samples, metrics.tps_decomposition):
        with zeros, pytest.raises(ValueError, match="no step has a positive weight"):
            function([1, 0], X, weights=second, sample_weight=[0, 1])


WEIGHTED = [
    tps_score,
    tps_samples,
    metrics.censored_tps_score,
    metrics.tps_decomposition,
    metrics.step_calibration_error,
]


def warned_of(function, *arguments, **options):
    """What the one warning says; it must point to the caller."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function(*arguments, **options)
    assert [one.filename for one in seen] == [__file__], function
    return str(seen[0].message)


def test_steps_beyond_a_horizon_are_not_scored():
    whole = TrajectoryArray.from_list([[0.5, 0.9, 0.1, 0.7], [0.2, 0.3, 0.8], [0.4]])
    short = whole.truncate([2, 2, 1])
    how = {"weights": "linear_front", "horizon": 2}
    with pytest.warns(UserWarning, match="horizon=2 leaves 3 steps of 2 runs"):
        found = tps_samples([1, 0, 1], whole, **how)
    np.testing.assert_array_equal(found, tps_samples([1, 0, 1], short, **how))
    others = (metrics.tps_sensitivity, lambda _, X, **how: regret(X, X, **how))
    for function in (*WEIGHTED, *others):
        assert "horizon of 4" in warned_of(function, [1, 0, 1], whole, horizon=2)


def test_a_horizon_beyond_the_end_is_warned_of(recwarn):
    X = TrajectoryArray.from_list([[0.5], [0.5, 0.6], [0.5]], horizon=[1, 30, 30])
    for function in WEIGHTED:
        message = warned_of(function, [1, 0, 1], X, **OWN)
        for words in ("row 1", "2 steps", "horizon is 30", "2 such runs"):
            assert words in message, function
        function([1, 0, 1], X)  # by step, no horizon of the container is read
    # a run that was cut off may have a longer horizon
    X = TrajectoryArray.from_list([[0.5], [0.5, 0.6]], horizon=[30, 2])
    metrics.censored_tps_score([-1, 1], X, q_z=0.0, **OWN)
    metrics.tps_decomposition([0.3, 1], X, **OWN)  # its q_Z, as a soft outcome
    assert not len(recwarn)


class Unclipped:
    """The log score that is infinite where the impossible happened."""

    def success(self, p):
        with np.errstate(divide="ignore"):
            return np.log(p)

    def failure(self, p):
        return self.success(1 - p)


class Short(Unclipped):
    name = "short"

    def success(self, p):
        return super().success(p)[:3]


def test_an_infinite_score_of_what_did_not_happen_costs_nothing():
    X, y = np.array([[1.0, 0.5], [0.0, 0.5], [0.5, 0.5]]), np.array([1, 0, 0.5])
    expected = tps_score(y, X)
    assert tps_score(y, X, score=Unclipped()) == pytest.approx(expected, abs=1e-6)
    for function in (tps_score, step_profile, lambda y, X, score: regret(X, X, score=score)):
        rows = [(y, X, {"score": Short()}, r"short: success\(p\) returned shape")]
        assert not not_refused(function, rows)
    profile = step_profile(y, X, score=Unclipped())["score"]
    assert profile.tolist() == pytest.approx(step_profile(y, X)["score"].tolist(), abs=1e-6)
    assert tps_score([1, 0.5], [[1.0], [1.0]], score=Unclipped()) == -np.inf


def test_regret_by_hand():
    q, F = [[0.8, 0.5], [0.25]], [[0.6, 0.5], [0.75]]
    uniform = regret(q, F, score="brier", weights="uniform")
    # (q - F)^2 at each step; runs weigh 2 and 1, on average 1.5
    np.testing.assert_allclose(uniform, [0.04 / 1.5, 0.25 / 1.5])
    own = regret(q, F, score="brier", weights="linear_front", horizon="own")
    np.testing.assert_allclose(own, [0.04 * 2 / 3, 0.25])
    assert regret(q, q).tolist() == [0, 0]


def test_no_runs_have_no_numbers():
    nothing = TrajectoryArray([], [])
    assert regret(nothing, nothing).tolist() == []
    for how in ({}, OWN):
        assert tps_samples([], nothing, **how).tolist() == []


def weight_of_runs(X, weights, horizon):
    """Weight of each run in the base rate over forecasts; in the paper each counts alike."""
    if horizon == "own":
        return np.ones(len(X))
    scored = X.lengths if horizon is None else np.minimum(X.lengths, horizon)
    # up to a factor
    return np.array([sum(PAPER[weights](t, 7) for t in range(1, T + 1)) for T in scored])


@pytest.mark.filterwarnings("ignore:horizon=7 leaves:UserWarning")
@pytest.mark.parametrize("horizon", [None, 7, "own"])
def test_every_cell_is_the_score_and_the_base_rate_is_a_predictor(ragged, rng, horizon):
    X, y = ragged
    weight = rng.integers(0, 3, len(y))
    predictors = {"judge": X, "rival": X.with_cells(rng.random(len(X.cells)))}
    table = tps_sensitivity(y, predictors, sample_weight=weight, horizon=horizon)
    assert list(table.index.unique("score")) == ["log", "brier", "beta(4,2)"]
    # linear_front falls to zero over a horizon, and needs one
    schedules = [w for w in PAPER if horizon or w != "linear_front"]
    assert sorted(table.index.unique("weights")) == sorted(schedules)
    for weights in schedules:
        how = {"weights": weights, "horizon": horizon, "sample_weight": weight}
        rate = np.average(y, weights=weight * weight_of_runs(X, weights, horizon))
        flat = X.with_cells(np.full(len(X.cells), rate))
        for name, F in (predictors | {"base rate": flat}).items():
            for label, score in (("log", "log"), ("beta(4,2)", ("beta", 4, 2))):
                row = table.loc[(name, label, weights)]
                np.testing.assert_allclose(row["score"], tps_score(y, F, score=score, **how))
                base = tps_score(y, flat, score=score, **how)
                np.testing.assert_allclose(row["margin"], row["score"] - base, atol=1e-15)
        # no other constant does better
        for other in (rate - 0.01, rate + 0.01):
            constant = X.with_cells(np.full(len(X.cells), other))
            assert tps_score(y, constant, **how) < table.loc[("base rate", "log", weights), "score"]


def test_a_schedule_can_turn_the_ranks_over():
    first, last = [0.9, 0.55], [0.55, 0.9]
    cells = np.column_stack([first + first, last + last, last + last])
    X = TrajectoryArray(cells, [2, 2], channels=["first", "last", "twin"])
    table = tps_sensitivity([1, 1], X, scores=["brier"])
    ranks = table["rank"].unstack("weights")
    assert ranks.loc["base rate"].eq(1).all().all()
    assert ranks.loc["first", "early"].item() == 2
    assert ranks.loc["last", "early"].item() == 3
    assert ranks.loc["last"].equals(ranks.loc["twin"])
    assert ranks.loc["last", "linear_back"].item() == 2
    assert ranks.loc["first", "linear_back"].item() == 4
    flips = table["rank_flip"].unstack("weights")
    assert not flips["early"].any()
    assert flips.loc["first", "linear_back"].all()
    # equal weights: all three tie, whatever rounding does to their sums
    assert ranks["uniform"].tolist() == [2, 2, 2, 1]
    assert not table["sign_flip"].any()


@pytest.mark.parametrize("horizon", [None, 2, "own"])
def test_the_sign_of_a_margin_can_flip(horizon):
    # better than the base rate of one half early, worse late
    X = TrajectoryArray([0.9, 0.3, 0.1, 0.7], [2, 2])
    table = tps_sensitivity([1, 0], X, scores=["brier"], horizon=horizon)
    assert table.loc[("forecast", "brier", "early"), "margin"] > 0
    assert table.loc[("forecast", "brier", "linear_back"), "sign_flip"]
    assert not table.loc["base rate", "sign_flip"].any()
    # the base rate up to rounding is no better and no worse, under any schedule
    near = np.full((3, 7), np.nextafter(1 / 3, 1))
    same = tps_sensitivity([1, 0, 0], near, horizon=None if horizon is None else "own")
    assert (same["rank"] == 1).all()
    assert not same["sign_flip"].any()
