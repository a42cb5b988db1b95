import numpy as np
import pytest

from trajscore import TrajectoryArray, metrics
from trajscore.core.weights import WEIGHT_SCHEDULES, step_weights
from trajscore.metrics import (
    regret,
    step_profile,
    tps_samples,
    tps_score,
    trajectory_diagnostics,
)
from trajscore.metrics._proper_scores import get_family
from trajscore.metrics._tps import row_chunks

FAMILIES = ["log", "brier", ("beta", 2, 4), ("beta", 0.5, 2.5)]


def by_hand(y, X, score, weights):
    """The definition, one run and one step at a time."""
    family, out = get_family(score), []
    horizon = X.lengths if X.horizon is None else X.horizon
    for label, run, T in zip(y, X, horizon, strict=True):
        w = step_weights([len(run)], [T], weights)
        terms = [
            w_t * (label * family.success(p) + (1 - label) * family.failure(p))
            for w_t, p in zip(w, np.atleast_2d(run).T, strict=True)
        ]
        out.append(float(np.sum(terms)))
    return np.array(out)


@pytest.mark.filterwarnings("ignore:row .* the outcome was observed after:UserWarning")
@pytest.mark.parametrize("score", FAMILIES, ids=str)
@pytest.mark.parametrize("weights", WEIGHT_SCHEDULES)
def test_is_the_definition(ragged, rng, score, weights):
    X, y = ragged
    short = X.truncate(rng.integers(1, X.lengths + 1)).with_horizon(X.lengths)
    for traces in (X, short):
        for labels in (y, rng.random(len(y))):
            np.testing.assert_allclose(
                tps_samples(labels, traces, score=score, weights=weights),
                by_hand(labels, traces, score, weights),
                rtol=1e-12,
                atol=1e-15,
            )


def test_row_order_and_chunks_do_not_matter_at_all(rng):
    lengths = rng.integers(1, 60, 8000)
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    y = rng.integers(0, 2, len(X))
    assert len(row_chunks(X.offsets)) > 2
    whole = tps_samples(y, X)
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(tps_samples(y[order], X[order]), whole[order])
    alone = [tps_samples(y[[k]], X[[k]])[0] for k in range(50)]
    np.testing.assert_array_equal(alone, whole[:50])


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


@pytest.mark.parametrize(("rate", "log", "brier", "beta"), BASE_RATES)
def test_base_rate_constants_of_the_paper(rate, log, brier, beta):
    y = (np.arange(1000) < round(1000 * rate)).astype(int)
    F = np.full((1000, 4), rate)
    assert f"{tps_score(y, F):.3f}" == log
    assert f"{tps_score(y, F, score='brier'):.3f}" == brier
    assert f"{tps_score(y, F, score=('beta', 2, 4)):.5f}" == beta
    found = trajectory_diagnostics(y, F)
    assert found["AUROC"] == 0.5
    assert found["AUPRC"] == pytest.approx(1 - rate, abs=1e-12)
    assert found["AURC"] == pytest.approx(1 - rate, abs=1e-12)
    assert found["T-ECE"] == pytest.approx(0, abs=1e-12)


def test_sample_weight_means_what_it_says(ragged):
    X, y = ragged
    weight = np.ones(len(y))
    weight[3], weight[5] = 2, 0
    rows = np.r_[np.delete(np.arange(len(y)), 5), 3]
    assert tps_score(y, X, sample_weight=weight) == pytest.approx(tps_score(y[rows], X[rows]))


def test_bad_input(ragged):
    X, y = ragged
    with pytest.raises(ValueError, match=r"row 0: the outcome is not observed"):
        tps_score(np.r_[-1, y[1:]], X)
    with pytest.raises(ValueError, match="199 outcomes for 200 runs"):
        tps_score(y[1:], X)
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        tps_score(y, X.with_cells(X.cells + 1))
    with pytest.raises(ValueError, match="unknown score"):
        tps_score(y, X, score="logg")
    with pytest.raises(ValueError, match="unknown weights of type ndarray"):
        tps_score(y, X, weights=np.ones(4) / 4)


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


@pytest.mark.parametrize(
    "function",
    [
        tps_score,
        tps_samples,
        metrics.censored_tps_score,
        metrics.censored_tps_samples,
        metrics.tps_decomposition,
        metrics.murphy_curve,
        metrics.step_calibration_error,
    ],
)
def test_a_horizon_beyond_the_end_is_warned_of(function):
    X = TrajectoryArray.from_list([[0.5], [0.5, 0.6], [0.5]], horizon=[1, 30, 30])
    message = "row 1: the outcome was observed after 2 steps, but the horizon is 30 .2 such runs."
    with pytest.warns(UserWarning, match=message) as seen:
        function([1, 0, 1], X)
    assert len(seen) == 1
    assert seen[0].filename == __file__


def test_a_run_that_was_cut_off_may_have_a_longer_horizon(recwarn):
    X = TrajectoryArray.from_list([[0.5], [0.5, 0.6]], horizon=[30, 2])
    metrics.censored_tps_score([-1, 1], X, q_z=0.0)
    metrics.tps_decomposition([0.3, 1], X)  # its q_Z, as a soft outcome
    assert not len(recwarn)
