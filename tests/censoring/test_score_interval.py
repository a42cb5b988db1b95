import numpy as np
import pytest
from scipy.stats import norm

from trajscore import TrajectoryArray
from trajscore.censoring import ContinuationModel, MonteCarloContinuation, censored_tps_interval
from trajscore.inference import bootstrap
from trajscore.metrics import censored_tps_samples, censored_tps_score


def last(X):
    return X.cells[X.offsets[1:] - 1]


def test_interval_of_a_known_q_is_that_of_the_mean(world):
    _, X, y, q, _ = world
    samples = censored_tps_samples(y, X, q_z=last(q), score="brier")
    found = censored_tps_interval(y, X, q_z=last(q), score="brier", random_state=0)
    np.testing.assert_allclose(found.value, samples.mean())
    np.testing.assert_allclose(found.std_error, samples.std() / np.sqrt(3000), rtol=0.1)
    assert found.low < found.value < found.high
    low, high = found.normal(0.9)
    np.testing.assert_allclose((low + high) / 2, found.value)
    np.testing.assert_allclose((high - low) / 2, norm.ppf(0.95) * found.std_error)


def test_refitting_widens_the_interval(world):
    _, X, y, _, _ = world
    model = ContinuationModel(allow_predictor=True)
    options = {"n_resamples": 60, "random_state": 0}
    honest = censored_tps_interval(y, X, q_z=model, history=X, **options)
    naive = censored_tps_interval(y, X, q_z=model.fit(X, y).predict(X), **options)
    np.testing.assert_allclose(honest.value, naive.value)
    assert honest.std_error > 1.02 * naive.std_error


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"q_z": ContinuationModel()}, "needs history="),
        ({"q_z": MonteCarloContinuation()}, "q_z=estimator.predict"),
        ({"confidence_level": 95}, "confidence_level must lie strictly"),
        ({"groups": np.zeros(3000)}, "all runs are of one cluster"),
        ({"q_z": 1.5}, "q_z is 1.5"),
        ({"q_z": ContinuationModel(), "history": [[0.5]]}, "1 histories for 3000"),
    ],
)
def test_bad_intervals(world, options, match):
    _, X, y, _, _ = world
    with pytest.raises(ValueError, match=match):
        censored_tps_interval(y, X, n_resamples=10, **options)


def small_audit(n_successes):
    rng = np.random.default_rng(0)
    X, H = (TrajectoryArray(rng.random(180), [3] * 60) for _ in range(2))
    y = np.where(np.arange(60) < 30, -1, rng.integers(0, 2, 60))
    branches = [[int(k < n_successes)] if k < 30 else None for k in range(60)]
    return X, H, y, branches


def test_an_interval_of_a_small_audit_counts_the_draws_of_a_constant_outcome():
    X, H, y, branches = small_audit(2)
    with pytest.warns(UserWarning, match=r"in \d+ of 60 replicates, .* the same outcome"):
        found = censored_tps_interval(
            y,
            X,
            q_z=ContinuationModel(),
            history=H,
            branches=branches,
            n_resamples=60,
            random_state=0,
        )
    assert found.low < found.value < found.high
    with pytest.raises(ValueError, match="have a constant outcome"):
        censored_tps_interval(
            y, X, q_z=ContinuationModel(), history=H, branches=small_audit(0)[3], n_resamples=60
        )
    two = [one if k in (0, 29) else None for k, one in enumerate(branches)]
    with pytest.raises(ValueError, match="none of the runs to learn q_Z from"):
        censored_tps_interval(
            y,
            X,
            q_z=ContinuationModel(),
            history=H,
            branches=two,
            n_resamples=60,
            random_state=0,
        )


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
    reach = norm.ppf(0.975) * found.std_error
    assert found.normal() == pytest.approx((found.value - reach, found.value + reach))


def test_the_order_of_runs_with_ids_does_not_matter():
    X, _, y, _ = small_audit(2)
    X = TrajectoryArray(X.cells, X.lengths, ids=[f"{(7 * k) % 60:02d}" for k in range(60)])
    options = {"score": "brier", "n_resamples": 40, "random_state": 0}
    turned = censored_tps_interval(y[::-1], X[::-1], **options)
    assert turned == pytest.approx(censored_tps_interval(y, X, **options), rel=1e-12)
