import numpy as np
import pytest

from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor
from trajscore.monitoring._fleet_recalibration import Recalibration, recalibration

N = 500


@pytest.fixture(scope="module")
def runs():
    made = make_trajectories(1500, lengths=(2, 8), random_state=0)
    return made.q, made.target


def test_a_new_map_where_the_judge_is_bolder(runs):
    X, y = runs
    bolder = X.with_cells(X.cells**0.2)
    result = recalibration(bolder, y)
    assert 0 < result.low < result.gain < result.high
    assert result.n_runs == len(y)
    assert str(result).startswith("Recalibrating gains +")
    mean = result.calibrator.transform(bolder).cells.mean()
    assert mean == pytest.approx(y.mean(), abs=0.05)


def test_no_new_map_where_nothing_changed(runs):
    X, y = runs
    result = recalibration(X, y, np.arange(len(y)) // 2)
    assert result.low < 0.01
    assert "use the new map" not in str(result)


def test_too_few_outcomes(runs):
    X, y = runs
    labels = np.where(np.cumsum(y == 0) > 19, -1, y)
    with pytest.raises(ValueError, match=r"there are 19 failures in \d+ runs after the alarm"):
        recalibration(X, labels)


def test_a_map_of_the_runs_after_an_alarm(runs, tmp_path):
    skops = pytest.importorskip("skops.io")
    X, y = runs
    fleet = FleetMonitor(n_after=200).fit(X[:N], y[:N])
    with pytest.raises(ValueError, match="nothing has changed since the fit"):
        fleet.recalibrate()
    bolder = X.with_cells(X.cells**0.2)
    fleet.update(bolder[N : N + 150], y[N : N + 150])
    assert fleet.changes_[0].cause == ""
    assert fleet.recalibrate().n_runs == 150 - fleet.changes_[0].alarm
    fleet.update(bolder[N + 150 :], y[N + 150 :])
    result = fleet.recalibrate()
    assert result.n_runs == len(y) - N - fleet.changes_[0].alarm
    assert result.low > 0
    result.save(tmp_path / "map.skops")
    file = tmp_path / "map.skops"
    again = skops.load(file, trusted=skops.get_untrusted_types(file=file))
    assert again.full_map_([0.9]) == result.calibrator.full_map_([0.9])
    with pytest.raises(ValueError, match="predictor must be"):
        fleet.recalibrate("judge")


@pytest.mark.parametrize(
    ("gain", "low", "high", "sentence"),
    [
        (0.2, 0.1, 0.3, "gains +0.200 nats a run (95% interval +0.100 to +0.300); use the new map"),
        (-0.2, -0.3, -0.1, "loses 0.200 nats a run; keep the old map"),
        (0.2, 0.0, 0.3, "may gain nothing: +0.200 nats a run (95% interval +0.000 to +0.300)"),
        (-0.2, -0.3, 0.0, "may gain nothing: -0.200 nats a run"),
    ],
)
def test_what_a_new_map_is_worth_in_words(gain, low, high, sentence):
    assert str(Recalibration(None, gain, low, high, 50)).startswith(f"Recalibrating {sentence}")
