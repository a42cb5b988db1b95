"""The live form of an e-process against the process itself."""

import functools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    calibration,
    tps_scorer,
)
from trajscore import TrajectoryArray as Runs
from trajscore.datasets import make_trajectories
from trajscore.monitoring import Conformal, EProcessMonitor


@functools.cache
def runs():
    return make_trajectories(400, lengths=(1, 9), random_state=0, return_X_y=True)


@functools.cache
def two_channels():
    X, y = runs()
    cells = np.stack([X.cells, np.random.default_rng(0).random(len(X.cells))], axis=1)
    return Runs(cells, X.lengths, channels=["judge", "noise"], ids=X.ids, ended=X.ended), y


@functools.cache
def default():
    return DensityRatioEProcess(alpha=0.3).fit(*runs())


class Foreign(TransformerMixin, BaseEstimator):
    """A forecaster that has no live form of its own: the mean of the first channel so far."""

    def fit(self, X, y):
        self.channels_ = X.channels
        return self

    def transform(self, X):
        assert X.channels == self.channels_
        first = X.cells if X.cells.ndim == 1 else X.cells[:, 0]
        if (first > 5).any():
            raise RuntimeError("no features of that")
        means = [np.cumsum(run) / np.arange(1, len(run) + 1) for run in X.with_cells(first)]
        return X.with_cells(np.concatenate(means))


def failing(seen):
    if (seen > 5).any():
        raise RuntimeError("no features of that")
    return seen.mean(axis=1)


WORTH = Conformal(end_worth=0.3)
RUNNING = {"features": "running", "pooled": True}
PIPELINE = make_pipeline(PrefixForecaster(features=failing), PlattCrossFitCalibrator())
FOREST = RandomForestClassifier(5, min_samples_leaf=20, random_state=0)
TREES = {"estimator": FOREST, "end": "step", **RUNNING}
GROUPS = {
    "ends": [
        {},
        {"log_offset": 0.5},
        {"forecaster": PrefixForecaster(**RUNNING, end="after")},
        {"forecaster": PrefixForecaster(**RUNNING)},
    ],
    "worth of ends": [
        {"threshold": Conformal("randomized", end_worth=0)},
        {"forecaster": PrefixForecaster(**RUNNING, end="after"), "threshold": WORTH},
        {"forecaster": PrefixForecaster(**RUNNING), "threshold": WORTH},
    ],
    "features": [
        {"forecaster": PrefixForecaster(**how)}
        for how in ({}, {"features": "last", "last": 2}, RUNNING, TREES)
    ],
    "calibrators": [
        {"forecaster": getattr(calibration, name)()}
        for name in calibration.__all__
        if name.endswith("CrossFitCalibrator")
    ],
    "others": [
        {"threshold": "randomized_ville"},
        *({"forecaster": other} for other in (PIPELINE, Foreign(), "passthrough")),
    ],
}


@pytest.mark.parametrize("options", GROUPS.values(), ids=GROUPS)
def test_live_and_batch_are_the_same(options):
    X, y = runs()
    for option in options:
        process = DensityRatioEProcess(**{"alpha": 0.3, **option}).fit(X, y)
        for ended in (True, False):
            shown = X[:20].with_ended(ended)
            log_m, stops = process.transform(shown), process.stopping_steps(shown)
            margins, monitor = process.decision_function(shown), process.monitor()
            assert (stops > 0).any()
            for row, run_id in enumerate(shown.ids.tolist()):
                for t, score in enumerate(shown[row].tolist(), start=1):
                    done = ended and t == shown.lengths[row]
                    decision = monitor.update(score, run_id, done=done)
                    assert decision.step == t
                    assert abs(decision.log_e_value - log_m[row][t - 1]) <= 2e-15
                    assert decision.flagged == (0 < stops[row] <= t)
                    assert (decision.margin < 0) == decision.flagged
                assert decision.margin == pytest.approx(margins[row], rel=0, abs=4e-9), option
            assert len(monitor) == (0 if ended else 20)


@pytest.mark.parametrize("end", ["step", "after", None])
def test_an_end_that_is_said_late_gives_the_decision_on_the_whole_run(end):
    X, y = runs()
    options = [{"log_offset": 0.2}, {"threshold": Conformal(end_worth=0.1)}]
    for option in options + [{"threshold": "randomized_ville"}] * (end is not None):
        process = DensityRatioEProcess(PrefixForecaster(**RUNNING, end=end), alpha=0.3, **option)
        monitor, margins = process.fit(X, y).monitor(), process.decision_function(X[:40])
        for row, run_id in enumerate(X.ids[:40].tolist()):
            for score in X[row]:
                monitor.update(score, run_id)
            assert monitor.finish(run_id).margin == pytest.approx(margins[row], rel=0, abs=4e-9)
        assert len(monitor) == 0


def test_several_channels_and_forecasters_that_hold_others():
    X, y = two_channels()
    row = int(np.argmax(X.lengths))
    grid = {"features": ["prefix", "running"]}
    for forecaster in (
        None,
        GridSearchCV(PrefixForecaster(), grid, scoring=tps_scorer, cv=3),
        FrozenEstimator(PrefixForecaster().fit(X, y)),
        Foreign(),
        make_pipeline(Foreign(), "passthrough", PlattCrossFitCalibrator()),
        make_pipeline(GridSearchCV(PrefixForecaster(), {"last": [1]}, scoring=tps_scorer, cv=2)),
        calibration.AliveRate(end="step"),
    ):
        process = DensityRatioEProcess(forecaster, alpha=0.3).fit(X, y)
        monitor, log_m = process.monitor(), process.transform(X.with_ended(False))[row]
        for t, (judge, noise) in enumerate(X[row].tolist()):
            listed = monitor.update([judge, noise], "a")
            named = monitor.update({"noise": noise, "judge": judge}, "b")
            for one in (listed, named):
                assert one.log_e_value == pytest.approx(log_m[t], rel=0, abs=2e-15)
    with pytest.raises(ValueError, match="expected 2 scores, got 1"):
        monitor.update(0.5, "a")
    with pytest.raises(ValueError, match="named judge, .* judge, noise"):
        monitor.update({"judge": 0.5}, "a")


@pytest.mark.parametrize("offset", [0.0, 99.0])
def test_live_is_batch_to_the_last_digit_near_certainty(offset):
    """Close to a probability of 1, one more rounding of it would be 1e-10 of log M."""
    y = np.arange(2000) % 2
    scores = np.random.default_rng(0).normal(offset + 3 * y[:, None], 1, (2000, 8))
    X = Runs.from_padded(scores)
    for features in ("prefix", "last"):
        process = DensityRatioEProcess(PrefixForecaster(features=features), threshold="ville")
        monitor, log_m = process.fit(X, y).monitor(), process.transform(X[:50])
        for row in range(50):
            live = [monitor.update(score, row).log_e_value for score in scores[row].tolist()]
            np.testing.assert_allclose(live, log_m[row], rtol=0, atol=2e-15)


def test_a_bad_score_leaves_the_monitor_as_it_was():
    monitor, reference = default().monitor(), default().monitor()
    for one in (monitor, reference):
        one.update(0.4, "known")
    bad = [np.nan, np.inf, None, "high", "0.5", [0.1, 0.2], [[0.5]], [[1], [1, 2]], [True], True]
    bad += [np.datetime64("2026-01-01"), 0.5j, 10**400, [], {}, {"judge": 0.5}, 1.01e150, -1e308]
    for score in bad:
        for name, step in (("new", 1), ("known", 2)):
            with pytest.raises(ValueError, match=f"run '{name}', step {step}: "):
                monitor.update(score, name)
    assert list(monitor) == list(reference)
    assert monitor.update([0.5], "known") == reference.update(np.float32(0.5), "known")
    with pytest.warns(UserWarning, match="out of range"):
        assert np.isfinite(monitor.update(1e150, "known").log_e_value)


def test_forecasts_that_are_passed_on_lie_between_0_and_1():
    monitor = DensityRatioEProcess("passthrough", alpha=0.3).fit(*runs()).monitor()
    for score in (-2e-6, 1 + 2e-6):
        with pytest.raises(ValueError, match=r"run 'a', step 1: .*outside \[0, 1\]"):
            monitor.update(score, "a")
    for step, score in enumerate((0.0, 1.0, 0, 1, -2.2e-16), start=1):
        assert monitor.update(score, "a").step == step
    platt = DensityRatioEProcess(PlattCrossFitCalibrator(), threshold="ville").fit(*runs())
    with pytest.raises(ValueError, match=r"run 'run', step 1: .*1\.4 lies outside \[0, 1\]"):
        platt.monitor().update(1.4)


@pytest.mark.parametrize("forecaster", [PIPELINE[0], PIPELINE, Foreign()], ids=["1", "2", "other"])
def test_a_failing_forecast_leaves_the_monitor_as_it_was(forecaster):
    process = DensityRatioEProcess(forecaster, alpha=0.3).fit(*runs())
    monitor, reference = process.monitor(), process.monitor()
    for one in (monitor, reference):
        one.update(0.5, "a")
    for run_id in ("a", "new"):
        with pytest.raises(RuntimeError, match="no features"):
            monitor.update(9.0, run_id)
    assert repr(list(monitor)) == repr(list(reference))  # with NaN where there is no threshold
    assert repr(monitor.update(0.4, "a")) == repr(reference.update(0.4, "a"))


def test_other_arguments_that_are_refused():
    monitor = default().monitor()
    with pytest.raises(TypeError, match="test must be .*got str"):
        EProcessMonitor("process")
    with pytest.raises(ValueError, match="alpha=.*was not fitted"):
        default().monitor(0.2)
    for run in ([1], {}, float("nan"), True, (1, [2])):
        for call in (lambda run: monitor.update(0.4, run), monitor.finish, monitor.reset):
            with pytest.raises(TypeError, match="the id of a run"):
                call(run)
    with pytest.raises(ValueError, match="step must be .*'one'"):
        monitor.update(0.5, step="one")
    for seconds in (-1e-9, np.nan, "1", None):
        with pytest.raises(ValueError, match="seconds must be"):
            monitor.forget(seconds)
    for options in ({"threshold": Conformal("randomized")}, {"threshold": "randomized_ville"}):
        drawn = DensityRatioEProcess(alpha=0.3, **options).fit(*runs()).monitor()
        with pytest.raises(ValueError, match="run's id"):
            drawn.update(0.4)
        assert drawn.update(0.4, "a").step == 1
    assert len(monitor) == 0


def test_runs_are_opened_reset_and_finished():
    X, process = runs()[0], default()
    monitor = process.monitor()
    first = monitor.update(0.4)
    assert np.exp(first.log_threshold) == pytest.approx(process.thresholds_.iloc[0])
    assert first == monitor.update(score=0.4, run="other")._replace(id="run")
    assert "other" in monitor
    monitor.reset("other")
    assert "other" not in monitor
    assert monitor.update(0.4, "other").step == 1
    assert monitor.finish("other").step == 1
    assert monitor.finish("other") == monitor.finish("other")  # which was sent again
    with pytest.raises(KeyError, match="'other' is not open"):
        monitor.reset("other")
    monitor.update(0.4, "lost")
    with pytest.raises(ValueError, match="its end at step 2, but the last was step 1"):
        monitor.finish("lost", step=2)
    assert monitor.finish("lost", step=1).step == 1
    monitor.update(0.4, X.ids[3])  # NumPy's 7 is 7
    assert monitor.update(0.3, int(X.ids[3])).step == 2
    copy = pickle.loads(pickle.dumps(monitor))
    assert list(copy) == list(monitor)
    assert copy.update(0.2, X.ids[3]) == monitor.update(0.2, X.ids[3])
    assert "2 open runs" in repr(monitor)
    monitor.reset()
    assert len(monitor) == 0


def test_what_is_unusual_is_told_once():
    X, y = two_channels()
    monitor = default().monitor()
    low, high = X.cells[:, 0].min(), X.cells[:, 0].max()
    for score in (2 * low - high + 1e-9, 2 * high - low - 1e-9):
        monitor.update(score, "near")
    with pytest.warns(UserWarning, match="run 'a', step 1: score 70 is out of range"):
        monitor.update(70, "a")
    monitor.update(70, "b")  # a second warning would be an error
    for _ in range(8):
        monitor.update(0.5, "a")
    with pytest.warns(UserWarning, match="run 'a' is longer .* 9 steps"):
        monitor.update(0.5, "a")
    for _ in range(9):
        monitor.update(0.5, "b")
    named = DensityRatioEProcess(alpha=0.3).fit(X, y).monitor()
    with pytest.warns(UserWarning, match="score 7 of 'judge'"):
        named.update({"judge": 7, "noise": 0.5})


def test_many_threads():
    X, _ = runs()
    monitor = default().monitor()

    def follow(part):
        for t in range(9):
            for row in part:
                if t < X.lengths[row]:
                    monitor.update(X[row][t], row)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(follow, [range(k, 80, 4) for k in range(4)]))
    flagged = {decision.id: decision.flagged for decision in monitor}
    expected = default().predict(X[:80].with_ended(False)) == 0
    assert [flagged[row] for row in range(80)] == expected.tolist()
