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
