import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.core import weighted_steps as steps_module
from trajscore.core.weighted_steps import PARTS, weighted_steps
from trajscore.core.weights import as_step_weights
from trajscore.metrics import step_calibration_error, tps_decomposition
from trajscore.metrics._decomposition import recalibrated_sums


@pytest.mark.parametrize("how", [{}, {"weights": "linear_front", "horizon": "own"}], ids=str)
def test_recalibrated_forecasts_gain_the_miscalibration(ragged, rng, how):
    X, y = ragged
    for labels in (y.astype(float), rng.random(len(y))):
        best = recalibrated_sums(weighted_steps(labels, X, as_step_weights(**how)), "brier")
        parts = tps_decomposition(labels, X, score="brier", **how)
        expected = parts.score + parts.miscalibration
        assert best.mean(np.ones(len(y))) == pytest.approx(expected, rel=1e-12)
        assert best.samples().mean() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("spread", [0.3, 3.0, 20.0])
def test_cells_of_many_steps_change_nothing_that_shows(monkeypatch, rng, spread):
    lengths = rng.integers(1, 15, 30_000)
    chance = rng.beta(2, 2, len(lengths))
    noisy = np.repeat(np.log(chance / (1 - chance)), lengths) + rng.normal(0, 1, lengths.sum())
    X = TrajectoryArray(1 / (1 + np.exp(-spread * noisy)), lengths)
    y = (rng.random(len(lengths)) < chance).astype(float)

    def numbers():
        errors = [step_calibration_error(y, X, part=part) for part in (None, *PARTS)]
        return [*errors, recalibrated_sums(weighted_steps(y, X), "log").mean(np.ones(len(y)))]

    exact = numbers()
    parts = tps_decomposition(y, X)
    assert exact[-1] == pytest.approx(parts.score + parts.miscalibration, rel=1e-12)
    monkeypatch.setattr(steps_module, "MANY", 10)
    in_cells = numbers()
    assert (in_cells != exact) == (spread < 20)  # then so many share a cell that they are sorted
    # as much as one step at the edge of a bin
    np.testing.assert_allclose(in_cells, exact, atol=3 / lengths.sum())


@pytest.mark.parametrize(("n_alike", "in_cells"), [(1, True), (10, True), (11, False), (50, False)])
def test_at_most_a_thousandth_of_the_steps_may_share_a_cell(monkeypatch, n_alike, in_cells):
    forecasts = (0.5 + np.arange(10_000)) / 10_000
    forecasts[:n_alike] = 0.25003 + 1e-9 * np.arange(n_alike)  # all different, in one cell
    X = TrajectoryArray(forecasts, np.ones(10_000, dtype=int))
    success = np.zeros(10_000)
    assert weighted_steps(success, X).n_ties == 10_000
    monkeypatch.setattr(steps_module, "MANY", 9_999)
    assert weighted_steps(success, X).n_ties == ((1 << 20) + 1 if in_cells else 10_000)
    monkeypatch.setattr(steps_module, "MANY", 10_000)
    assert weighted_steps(success, X).n_ties == 10_000


def test_steps_and_their_weights():
    X = TrajectoryArray([0.5, 0.25, *[0.5] * 11], [1, 12])
    run_weight = np.array([2.0, 3.0])
    steps = weighted_steps(np.array([1.0, 0.0]), X, as_step_weights("linear_back"), run_weight)
    assert steps.weight.tolist() == [2, *(3 * np.arange(1, 13))]
    assert steps.part.tolist() == [0, 0, 0, 0, *[1] * 7, 2, 2]
    assert (steps.tie.tolist(), steps.n_ties) == ([1, 0, *[1] * 11], 2)
    assert steps.by_tie(steps.weight).tolist() == [3, 2 + 3 * sum(range(2, 13))]
    assert steps.of(X) is steps
    other = steps.of(X.with_cells(np.arange(13) / 13))
    assert (other.n_ties, other.weight is steps.weight) == (13, True)
    assert other.by_tie(other.weight).tolist() == steps.weight.tolist()
