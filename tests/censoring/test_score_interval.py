import numpy as np
import pytest

from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import ContinuationModel, MonteCarloContinuation, censored_tps_interval
from trajscore.inference import bootstrap
from trajscore.metrics import censored_tps_score


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
