import numpy as np
import pytest

from trajscore import TrajectoryArray, metrics
from trajscore.core.run_sums import row_chunks
from trajscore.core.score_families import get_family
from trajscore.metrics import (
    regret,
    step_profile,
    tps_samples,
    tps_score,
    trajectory_diagnostics,
)

FAMILIES = ["log", "brier", ("beta", 2, 4), ("beta", 0.5, 2.5)]
OWN = {"weights": "linear_front", "horizon": "own"}  # the convention of the paper
# w_t, of the step's number alone
STEP = {
    "early": lambda t: 1 / np.sqrt(t),
    "uniform": lambda t: 1.0,
    "exponential_front": lambda t: 2.0 ** (1 - t),
    "linear_back": float,
}
# w_t over a horizon T, as the paper writes them
PAPER = {
    "uniform": lambda t, T: 1 / T,
    "linear_front": lambda t, T: 2 * (T - t + 1) / (T * (T + 1)),
    "exponential_front": lambda t, T: 2.0 ** -(t - 1) / (2 * (1 - 2.0**-T)),
    "linear_back": lambda t, T: 2 * t / (T * (T + 1)),
}


def by_hand(y, X, score, weight):
    """N_i and D_i by the definition, one run and one step at a time; `weight` is of row, step."""
    family, sums = get_family(score), []
    for row, (label, run) in enumerate(zip(y, X, strict=True)):
        total = divisor = 0.0
        for t, p in enumerate(np.atleast_2d(run).T, start=1):
            w = weight(row, t)
            total += w * (label * family.success(p) + (1 - label) * family.failure(p)).item()
            divisor += w
        sums.append((total, divisor))
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
@pytest.mark.parametrize("weights", STEP)
def test_is_the_definition(ragged, rng, score, weights):
    X, y = ragged
    for labels in (y, rng.random(len(y))):
        sums = by_hand(labels, X, score, lambda row, t: STEP[weights](t))
        how = {"score": score, "weights": weights}
        assert_score(labels, X, *sums, **how)
        assert_score(labels, X, *sums, sample_weight=rng.random(len(y)), **how)


@pytest.mark.filterwarnings("ignore:horizon=5 leaves:UserWarning")
@pytest.mark.parametrize("weights", PAPER)
@pytest.mark.parametrize("horizon", [5, 9, 30])
def test_is_the_definition_over_one_horizon(ragged, weights, horizon):
    X, y = ragged
    sums = by_hand(y, X, "log", lambda row, t: PAPER[weights](t, horizon) * (t <= horizon))
    assert_score(y, X, *sums, weights=weights, horizon=horizon)


def test_a_function_of_steps_weighs_them(ragged):
    X, y = ragged
    sums = by_hand(y, X, "brier", lambda row, t: 1 / (1 + t / 10))
    assert_score(y, X, *sums, score="brier", weights=lambda step: 3 / (1 + step / 10) / 3)


@pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")
@pytest.mark.parametrize("score", FAMILIES, ids=str)
@pytest.mark.parametrize("weights", PAPER)
def test_is_the_definition_of_the_paper(ragged, rng, score, weights):
    # a mean over runs, whose weights add up to one over the own horizon of each
    X, y = ragged
    short = X.truncate(rng.integers(1, X.lengths + 1)).with_horizon(X.lengths)
    how = {"score": score, "weights": weights, "horizon": "own"}
    for traces in (X, short):
        for labels in (y, rng.random(len(y))):
            total, _ = by_hand(
                labels, traces, score, lambda row, t: PAPER[weights](t, X.lengths[row])
            )
            samples = tps_samples(labels, traces, **how)
            np.testing.assert_allclose(samples, total, rtol=1e-12, atol=1e-15)
            assert tps_score(labels, traces, **how) == pytest.approx(total.mean(), rel=1e-12)
            v = rng.random(len(y))
            weighted = tps_score(labels, traces, sample_weight=v, **how)
            assert weighted == pytest.approx(np.average(total, weights=v), rel=1e-12)


def test_a_horizon_of_the_container_is_read_for_own_alone(ragged):
    X, y = ragged
    longer = X.with_horizon(X.lengths + 5)
    for how in ({}, {"weights": "linear_front", "horizon": 9}):
        assert tps_score(y, longer, **how) == tps_score(y, X, **how)


@pytest.mark.parametrize("how", [{}, {"weights": "uniform"}, {"normalize": False}, OWN], ids=str)
def test_the_mean_of_the_samples_is_the_score(ragged, rng, how):
    X, y = ragged
    for v in (None, rng.random(len(y)), rng.integers(0, 3, len(y))):
        samples = tps_samples(y, X, sample_weight=v, **how)
        expected = tps_score(y, X, sample_weight=v, **how)
        assert np.average(samples, weights=v) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("how", [{}, {"weights": "uniform"}, {"normalize": False}, OWN], ids=str)
def test_a_weight_of_two_is_the_run_twice(ragged, rng, how):
    X, y = ragged
    v = rng.integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), v)
    again = X[rows]
    assert tps_score(y, X, sample_weight=v, **how) == pytest.approx(
        tps_score(y[rows], again, **how)
    )
    samples = tps_samples(y, X, sample_weight=v, **how)[rows]
    np.testing.assert_allclose(samples, tps_samples(y[rows], again, **how), rtol=1e-12)


@pytest.mark.parametrize("how", [{}, {"weights": "uniform"}, {"normalize": False}, OWN], ids=str)
def test_samples_are_the_influence_of_each_run(ragged, rng, how):
    # of a score, and of the margin of one predictor over another, by differences of weights
    X, y = ragged
    rival, n = X.with_cells(rng.random(len(X.cells))), len(y)

    def margin(v):
        return tps_score(y, X, sample_weight=v, **how) - tps_score(y, rival, sample_weight=v, **how)

    found = tps_samples(y, X, **how) - tps_samples(y, rival, **how)
    assert found.mean() == pytest.approx(margin(np.ones(n)), abs=1e-14)
    step = 1e-5 * np.eye(n)[:40]
    numeric = [n * (margin(1 + h) - margin(1 - h)) / 2e-5 for h in step]
    np.testing.assert_allclose((found - found.mean())[:40], numeric, atol=1e-7)


def test_the_spread_of_the_samples_is_the_jackknife(ragged, rng):
    X, y = ragged
    rival, n = X.with_cells(rng.random(len(X.cells))), len(y)
    found = tps_samples(y, X) - tps_samples(y, rival)
    others = [np.delete(np.arange(n), row) for row in range(n)]
    left_out = [tps_score(y[k], X[k]) - tps_score(y[k], rival[k]) for k in others]
    # leaving out a run of D_i changes the margin by its influence over the others' weight
    weight = by_hand(y, X, "brier", lambda row, t: t**-0.5)[1]
    change = (found - found.mean()) * weight.mean() / (weight.sum() - weight)
    np.testing.assert_allclose(found.mean() - np.array(left_out), change, atol=1e-14)
    jackknife = np.sqrt((n - 1) / n * np.sum((left_out - np.mean(left_out)) ** 2))
    assert found.std(ddof=1) / np.sqrt(n) == pytest.approx(jackknife, rel=0.02)


def test_clusters_add_up_their_samples(ragged, rng):
    # the influence of a cluster is the sum of those of its runs
    X, y = ragged
    cluster = rng.integers(0, 12, len(y))
    samples, R = tps_samples(y, X), tps_score(y, X)
    inside = cluster == 3
    numeric = [tps_score(y, X, sample_weight=1 + h * inside) for h in (1e-5, -1e-5)]
    derivative = len(y) * np.subtract(*numeric) / 2e-5
    assert (samples[inside] - R).sum() == pytest.approx(derivative, abs=1e-6)


@pytest.mark.parametrize("how", [{"normalize": False}, OWN, {**OWN, "normalize": False}], ids=str)
def test_row_order_and_chunks_do_not_matter_at_all(rng, how):
    lengths = rng.integers(1, 60, 8000)
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    y = rng.integers(0, 2, len(X))
    assert len(row_chunks(X.offsets)) > 2
    whole = tps_samples(y, X, **how)
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(tps_samples(y[order], X[order], **how), whole[order])
    alone = [tps_samples(y[[k]], X[[k]], **how)[0] for k in range(50)]
    np.testing.assert_array_equal(alone, whole[:50])


def test_row_order_does_not_matter_to_a_ratio(ragged, rng):
    X, y = ragged
    order = rng.permutation(len(y))
    assert tps_score(y[order], X[order]) == pytest.approx(tps_score(y, X), rel=1e-14)
    found = tps_samples(y[order], X[order])
    np.testing.assert_allclose(found, tps_samples(y, X)[order], rtol=1e-13)


def test_chunks_cover_every_run_once():
    offsets = np.array([0, 5, 6, 200, 201, 202])
    chunks = row_chunks(offsets, 10)
    rows = [row for chunk in chunks for row in range(chunk.start, chunk.stop)]
    assert rows == [0, 1, 2, 3, 4]


# (success rate, log, Brier, Beta(2,4)) as printed in Tables 2 to 4 of the paper
BASE_RATES = [
    (0.842, "-0.436", "-0.133", "-0.00263"),
    (0.443, "-0.687", "-0.247", "-0.00760"),
    (0.583, "-0.679", "-0.243", "-0.00649"),
]


@pytest.mark.parametrize("how", [OWN, {}], ids=["own", "early"])
@pytest.mark.parametrize(("rate", "log", "brier", "beta"), BASE_RATES)
def test_base_rate_constants_of_the_paper(rate, log, brier, beta, how):
    # the same by step, as long as all runs are equally long
    y = (np.arange(1000) < round(1000 * rate)).astype(int)
    F = np.full((1000, 4), rate)
    assert f"{tps_score(y, F, **how):.3f}" == log
    assert f"{tps_score(y, F, score='brier', **how):.3f}" == brier
    assert f"{tps_score(y, F, score=('beta', 2, 4), **how):.5f}" == beta
    found = trajectory_diagnostics(y, F, **how)
    assert found["AUROC"] == 0.5
    assert found["AUPRC"] == pytest.approx(1 - rate, abs=1e-12)
    assert found["AURC"] == pytest.approx(1 - rate, abs=1e-12)
    assert found["T-ECE"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("rate", "log", "brier", "beta"), BASE_RATES)
def test_base_rate_constants_hold_for_runs_of_any_length_in_the_paper(rate, log, brier, beta, rng):
    # there each run counts alike; by step a run that is twice as long counts more
    y = (np.arange(1000) < round(1000 * rate)).astype(int)
    lengths = np.where(y, 2, 11)
    F = TrajectoryArray(np.full(lengths.sum(), rate), lengths)
    assert f"{tps_score(y, F, **OWN):.3f}" == log
    assert f"{tps_score(y, F, score='brier', **OWN):.3f}" == brier
    assert f"{tps_score(y, F, score=('beta', 2, 4), **OWN):.5f}" == beta
    weight = np.where(y, 1 + 2**-0.5, (np.arange(1, 12) ** -0.5).sum())
    won = weight @ y / weight.sum()
    expected = won * np.log(rate) + (1 - won) * np.log(1 - rate)
    assert tps_score(y, F) == pytest.approx(expected, rel=1e-12)


def test_bad_input(ragged):
    X, y = ragged
    with pytest.raises(ValueError, match=r"run '.*': the outcome is not observed"):
        tps_score(np.r_[-1, y[1:]], X)
    with pytest.raises(ValueError, match="199 outcomes for 200 runs"):
        tps_score(y[1:], X)
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        tps_score(y, X.with_cells(X.cells + 1))
    with pytest.raises(ValueError, match="unknown score"):
        tps_score(y, X, score="logg")
    with pytest.raises(ValueError, match="unknown weights of type ndarray"):
        tps_score(y, X, weights=np.ones(4) / 4)
    with pytest.raises(ValueError, match=r"'linear_front' .* give horizon=30, say, or horizon='o"):
        tps_score(y, X, weights="linear_front")
    with pytest.raises(ValueError, match="horizon must be a number of steps"):
        tps_samples(y, X, horizon=[9] * len(y))
    with pytest.raises(ValueError, match="normalize must be True or False, got 'no'"):
        tps_score(y, X, normalize="no")


def test_runs_whose_steps_weigh_nothing_have_no_score():
    X = TrajectoryArray.from_list([[0.5, 0.6], [0.7]])

    def second(step):
        return (step == 2) * 1.0

    zeros = pytest.warns(UserWarning, match="weights for steps 1 to 2 are zero at step 1")
    with zeros:
        assert tps_score([1, 0], X, weights=second) == pytest.approx(np.log(0.6))
    for function in (tps_score, tps_samples, metrics.tps_decomposition):
        with zeros, pytest.raises(ValueError, match="no step has a positive weight"):
            function([1, 0], X, weights=second, sample_weight=[0, 1])


def test_no_runs(ragged):
    none = ragged[0][[]]
    for how in ({}, {"weights": lambda step: 1 / step}, OWN):
        assert tps_samples([], none, **how).tolist() == []
        with pytest.raises(ValueError, match="there are no runs to score"):
            tps_score([], none, **how)


def test_steps_beyond_a_horizon_are_not_scored():
    whole = TrajectoryArray.from_list([[0.5, 0.9, 0.1, 0.7], [0.2, 0.3, 0.8], [0.4]])
    short = whole.truncate([2, 2, 1])
    how = {"weights": "linear_front", "horizon": 2}
    with pytest.warns(UserWarning, match="horizon=2 leaves 3 steps of 2 runs unscored; give a"):
        found = tps_samples([1, 0, 1], whole, **how)
    np.testing.assert_array_equal(found, tps_samples([1, 0, 1], short, **how))


WEIGHTED = [
    tps_score,
    tps_samples,
    metrics.censored_tps_score,
    metrics.censored_tps_samples,
    metrics.tps_decomposition,
    metrics.step_calibration_error,
]


@pytest.mark.parametrize(
    "function",
    [*WEIGHTED, metrics.tps_sensitivity, lambda _, X, **how: regret(X, X, **how)],
)
def test_unscored_steps_are_counted_in_a_warning(function):
    X = TrajectoryArray.from_list([[0.5], [0.5, 0.6, 0.4], [0.5]])
    message = "horizon=2 leaves 1 step of 1 run unscored; give a horizon of 3 to score them all"
    with pytest.warns(UserWarning, match=message) as seen:
        function([1, 0, 1], X, horizon=2)
    assert len(seen) == 1
    assert seen[0].filename == __file__


class Squares:
    """A custom family that shapes its answers as it is told."""

    name = "squares"

    def __init__(self, shape=lambda scores: scores):
        self.shape = shape

    def success(self, p):
        return self.shape(-((1 - p) ** 2))

    def failure(self, p):
        return self.shape(-(p**2))


def test_a_custom_score_gives_one_number_for_each_forecast(ragged):
    X, y = ragged
    assert tps_score(y, X, score=Squares()) == pytest.approx(tps_score(y, X, score="brier"))
    works = [
        lambda score: tps_score(y, X, score=score),
        lambda score: tps_score(y / 2, X, score=score),
        lambda score: regret(X, X, score=score),
        lambda score: step_profile(y, X, score=score),
    ]
    for shape in (lambda s: s[:3], lambda s: s[:, None], lambda s: s[None]):
        for work in works:
            with pytest.raises(ValueError, match=r"score squares: success\(p\) returned shape"):
                work(Squares(shape))


class Unclipped:
    """The log score that is infinite where the impossible happened."""

    def success(self, p):
        with np.errstate(divide="ignore"):
            return np.log(p)

    def failure(self, p):
        return self.success(1 - p)


def test_an_infinite_score_of_what_did_not_happen_costs_nothing():
    X, y = np.array([[1.0, 0.5], [0.0, 0.5], [0.5, 0.5]]), np.array([1, 0, 0.5])
    expected = tps_score(y, X)
    assert tps_score(y, X, score=Unclipped()) == pytest.approx(expected, abs=1e-6)
    profile = step_profile(y, X, score=Unclipped())["score"]
    assert profile.tolist() == pytest.approx(step_profile(y, X)["score"].tolist(), abs=1e-6)


@pytest.mark.parametrize("function", WEIGHTED)
def test_a_horizon_beyond_the_end_is_warned_of(function):
    X = TrajectoryArray.from_list([[0.5], [0.5, 0.6], [0.5]], horizon=[1, 30, 30])
    message = "row 1: the run ended after 2 steps, but its horizon is 30 .2 such runs."
    with pytest.warns(UserWarning, match=message) as seen:
        function([1, 0, 1], X, **OWN)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    function([1, 0, 1], X)  # by step, no horizon is read


def test_a_run_that_was_cut_off_may_have_a_longer_horizon(recwarn):
    X = TrajectoryArray.from_list([[0.5], [0.5, 0.6]], horizon=[30, 2])
    metrics.censored_tps_score([-1, 1], X, q_z=0.0, **OWN)
    metrics.tps_decomposition([0.3, 1], X, **OWN)  # its q_Z, as a soft outcome
    assert not len(recwarn)


def test_of_no_runs_there_is_no_regret():
    nothing = TrajectoryArray([], [])
    assert regret(nothing, nothing).tolist() == []


def test_regret_by_hand():
    q, F = [[0.8, 0.5], [0.25]], [[0.6, 0.5], [0.75]]
    uniform = regret(q, F, score="brier", weights="uniform")
    # (q - F)^2 at each step; runs weigh 2 and 1, on average 1.5
    np.testing.assert_allclose(uniform, [0.04 / 1.5, 0.25 / 1.5])
    own = regret(q, F, score="brier", weights="linear_front", horizon="own")
    np.testing.assert_allclose(own, [0.04 * 2 / 3, 0.25])
    assert regret(q, q).tolist() == [0, 0]
