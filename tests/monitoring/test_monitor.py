import json
import pickle
import threading

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    tps_scorer,
)
from trajscore import TrajectoryArray as Runs
from trajscore.datasets import make_trajectories


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(400, lengths=(1, 9), random_state=0, return_X_y=True)


def two_channels(X):
    rng = np.random.default_rng(0)
    cells = np.stack([X.cells, rng.random(len(X.cells))], axis=1)
    return Runs(cells, X.lengths, channels=["judge", "noise"], ids=X.ids)


PROCESSES = {
    "prefix": {},
    "last": {"forecaster": PrefixForecaster(features="last", last=2)},
    "summary": {"forecaster": PrefixForecaster(features="summary")},
    "pooled last": {"forecaster": PrefixForecaster(features="last", pooled=True)},
    "pooled summary": {"forecaster": PrefixForecaster(features="summary", pooled=True)},
    "function": {"forecaster": PrefixForecaster(features=lambda seen: seen[:, -1])},
    "forest": {
        "forecaster": PrefixForecaster(
            RandomForestClassifier(5, random_state=0), features="summary", pooled=True
        )
    },
    "platt": {"forecaster": PlattCrossFitCalibrator()},
    "passthrough": {"forecaster": "passthrough"},
    "randomised": {"threshold": "conformal", "ties": "randomized"},
    "cross-fitted": {"threshold": "conformal", "cross_fit": 3},
}


@pytest.mark.parametrize("options", PROCESSES.values(), ids=PROCESSES)
def test_live_and_batch_are_the_same(runs, options):
    X, y = runs
    process = DensityRatioEProcess(**{"alpha": 0.3, **options}).fit(X, y)
    shown = X[:25]
    log_m, stops = process.transform(shown), process.stopping_steps(shown)
    monitor = process.monitor()
    assert (stops > 0).any()
    for row, run_id in enumerate(shown.ids.tolist()):
        for t, score in enumerate(shown[row].tolist()):
            decision = monitor.update(run_id, score)
            assert decision.step == t + 1
            assert decision.log_e_value == pytest.approx(log_m[row][t], abs=1e-12)
            assert decision.flagged == (0 < stops[row] <= t + 1)
            assert (decision.margin < 0) == decision.flagged
    assert len(monitor) == 25


def test_several_verifiers(runs):
    X, y = two_channels(runs[0]), runs[1]
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    monitor = process.monitor()
    row = int(np.argmax(X.lengths))
    expected = process.transform(X)[row]
    for t, (judge, noise) in enumerate(X[row].tolist()):
        assert monitor.update("a", [judge, noise]).log_e_value == pytest.approx(
            expected[t], abs=1e-12
        )
        named = monitor.update("b", {"noise": noise, "judge": judge})
        assert named.log_e_value == pytest.approx(expected[t], abs=1e-12)
    with pytest.raises(ValueError, match="expected 2 scores, got 1"):
        monitor.update("a", 0.5)
    with pytest.raises(ValueError, match="scores are named"):
        monitor.update("a", {"judge": 0.5})


def test_randomised_ville_tosses_its_coin_at_the_end(runs):
    X, y = runs
    process = DensityRatioEProcess(threshold="randomized_ville", alpha=0.3).fit(X, y)
    predicted = process.predict(X[:60])
    monitor = process.monitor()
    for row, run_id in enumerate(X.ids[:60].tolist()):
        for score in X[row]:
            monitor.update(run_id, score)
        assert monitor.finish(run_id).flagged == (predicted[row] == 0)
    assert len(monitor) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, None, "high", [0.1, 0.2]])
def test_a_bad_score_leaves_the_monitor_as_it_was(runs, bad):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    for name in ("new", "known"):
        if name == "known":
            monitor.update(name, 0.4)
        before = list(monitor)
        with pytest.raises(ValueError, match=rf"run '{name}', step {len(before) + 1}: "):
            monitor.update(name, bad)
        assert list(monitor) == before
    reference = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    reference.update("known", 0.4)
    assert monitor.update("known", 0.3) == reference.update("known", 0.3)


def test_bad_passthrough_score(runs):
    monitor = DensityRatioEProcess("passthrough", alpha=0.3).fit(*runs).monitor()
    monitor.update(0.4)
    with pytest.raises(ValueError, match="lies outside"):
        monitor.update(1.4)
    assert [one.step for one in monitor] == [1]


def test_runs_are_opened_reset_and_finished(runs):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    first = monitor.update(0.4)
    assert first == monitor.update("other", 0.4)._replace(id="run")
    monitor.reset("other")
    assert monitor.update("other", 0.4).step == 1
    assert monitor.finish("other").step == 1
    with pytest.raises(KeyError, match="'other' is not open"):
        monitor.finish("other")
    with pytest.raises(KeyError, match="'other' is not open"):
        monitor.reset("other")
    monitor.reset()
    assert len(monitor) == 0
    with pytest.raises(TypeError, match="update\\(id, score\\)"):
        monitor.update()


def test_save_and_load_mid_run(runs, tmp_path):
    process = DensityRatioEProcess(alpha=[0.3, 0.1]).fit(*runs)
    monitor = process.monitor()
    for run_id, score in [("a", 0.4), (7, 0.3), ("a", 0.2)]:
        monitor.update(run_id, score)
    monitor.save(tmp_path / "state.json")
    other = process.monitor().load(tmp_path / "state.json")
    assert list(other) == list(monitor)
    assert other.update("a", 0.1) == monitor.update("a", 0.1)
    with pytest.raises(ValueError, match=r"saved at alpha = 0\.3, this monitor has 0\.1"):
        process.monitor(alpha=0.1).load(tmp_path / "state.json")
    (tmp_path / "other.json").write_text(json.dumps({"format": "else"}))
    with pytest.raises(ValueError, match="no file of a trajscore monitor"):
        process.monitor().load(tmp_path / "other.json")
    monitor.update(("a", 1), 0.5)
    with pytest.raises(TypeError, match="only ids that are text or integers"):
        monitor.save(tmp_path / "state.json")


def test_many_threads(runs):
    X, y = runs
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    monitor = process.monitor()
    rows = range(80)

    def follow(part):
        for t in range(9):
            for row in part:
                if t < X.lengths[row]:
                    monitor.update(row, X[row][t])

    threads = [threading.Thread(target=follow, args=(rows[k::4],)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flagged = {decision.id: decision.flagged for decision in monitor}
    assert [flagged[row] for row in rows] == (process.predict(X[:80]) == 0).tolist()


def test_randomised_ville_of_several_verifiers(runs):
    X, y = two_channels(runs[0]), runs[1]
    process = DensityRatioEProcess(threshold="randomized_ville", alpha=0.3).fit(X, y)
    monitor, predicted = process.monitor(), process.predict(X[:20])
    for row, run_id in enumerate(X.ids[:20]):
        for scores in X[row]:
            monitor.update(run_id, scores)
        assert monitor.finish(run_id).flagged == (predicted[row] == 0)


def test_a_search_is_followed_like_the_forecaster_that_it_found(runs):
    X, y = two_channels(runs[0]), runs[1]
    grid = {"features": ["prefix", "summary"]}
    for forecaster in (
        GridSearchCV(PrefixForecaster(), grid, scoring=tps_scorer, cv=3),
        make_pipeline(PrefixForecaster(), PlattCrossFitCalibrator()),
    ):
        process = DensityRatioEProcess(forecaster, alpha=0.3).fit(X, y)
        monitor, log_m = process.monitor(), process.transform(X[:3])
        for t, (judge, noise) in enumerate(X[1]):
            decision = monitor.update("r", {"judge": judge, "noise": noise})
            assert decision.log_e_value == pytest.approx(log_m[1][t], abs=1e-12)


def test_ids_scores_and_thresholds_by_name(runs, tmp_path):
    X, y = runs
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    monitor = process.monitor()
    first = monitor.update(X.ids[3], 0.4)
    assert monitor.update(id=int(X.ids[3]), score=0.3).step == 2
    assert monitor.update(score=0.4)._replace(id=first.id) == first
    assert first.threshold == pytest.approx(process.thresholds_.iloc[0])
    monitor.save(tmp_path / "state.json")
    copy = pickle.loads(pickle.dumps(monitor))
    assert list(copy) == list(monitor)
    assert copy.update(X.ids[3], 0.2) == monitor.update(X.ids[3], 0.2)
    assert monitor.finish(X.ids[3]).step == 3
    with pytest.raises(TypeError, match="update\\(id, score\\)"):
        monitor.update(0.4, value=3)


def test_a_longer_run_than_any_seen_is_told_once(runs):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    for run_id in "ab":
        for _ in range(9):
            monitor.update(run_id, 0.5)
    with pytest.warns(UserWarning, match="run 'a' has more than the 9 steps"):
        monitor.update("a", 0.5)
    for run_id in "ab":  # a second warning would be an error
        monitor.update(run_id, 0.5)
