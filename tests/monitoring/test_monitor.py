import pickle
import threading

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
    TraceAggregator,
    tps_scorer,
)
from trajscore import TrajectoryArray as Runs
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)
from trajscore.datasets import make_trajectories
from trajscore.monitoring import EProcessMonitor, _monitor
from trajscore.monitoring._monitor import _LOST


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(400, lengths=(1, 9), random_state=0, return_X_y=True)


def two_channels(X):
    rng = np.random.default_rng(0)
    cells = np.stack([X.cells, rng.random(len(X.cells))], axis=1)
    return Runs(cells, X.lengths, channels=["judge", "noise"], ids=X.ids, ended=X.ended)


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


RUNNING = {"features": "running", "pooled": True}
PROCESSES = {
    "the end with the step": {},
    "the end after the step": {"forecaster": PrefixForecaster(**RUNNING, end="after")},
    "the end not at all": {"forecaster": PrefixForecaster(**RUNNING)},
    "waiting": {"wait": 0.5},
    "a flag at the end worth less": {"end_worth": 0.3},
    "a flag at the end worth nothing": {"end_worth": 0, "ties": "randomized"},
    "worth less, the end after the step": {
        "forecaster": PrefixForecaster(**RUNNING, end="after"),
        "end_worth": 0.3,
    },
    "worth less, the end not at all": {"forecaster": PrefixForecaster(**RUNNING), "end_worth": 0.3},
    "worth less, cross-fitted": {"cross_fit": 3, "end_worth": 0.3},
    "prefix": {"forecaster": PrefixForecaster()},
    "last": {"forecaster": PrefixForecaster(features="last", last=2)},
    "summary": {"forecaster": PrefixForecaster(features="summary")},
    "pooled last": {"forecaster": PrefixForecaster(features="last", pooled=True)},
    "pooled summary": {"forecaster": PrefixForecaster(features="summary", pooled=True)},
    "function": {"forecaster": PrefixForecaster(features=lambda seen: seen[:, -1])},
    "forest": {
        "forecaster": PrefixForecaster(
            RandomForestClassifier(5, min_samples_leaf=20, random_state=0), **RUNNING, end="step"
        )
    },
    "platt": {"forecaster": PlattCrossFitCalibrator()},
    "beta": {"forecaster": BetaCrossFitCalibrator()},
    "isotonic": {"forecaster": IsotonicCrossFitCalibrator()},
    "ensemble": {"forecaster": EnsembleCrossFitCalibrator()},
    "pipeline": {"forecaster": make_pipeline(PrefixForecaster(), PlattCrossFitCalibrator())},
    "pipeline that ends in an aggregator": {
        "forecaster": make_pipeline(PlattCrossFitCalibrator(), "passthrough", TraceAggregator())
    },
    "foreign": {"forecaster": Foreign()},
    "pipeline of a foreign one": {
        "forecaster": make_pipeline(Foreign(), PlattCrossFitCalibrator())
    },
    "passthrough": {"forecaster": "passthrough"},
    "randomised": {"threshold": "conformal", "ties": "randomized"},
    "cross-fitted": {"threshold": "conformal", "cross_fit": 3},
}


@pytest.mark.parametrize("options", PROCESSES.values(), ids=PROCESSES)
@pytest.mark.parametrize("ended", [True, False])
def test_live_and_batch_are_the_same(runs, options, ended):
    X, y = runs
    process = DensityRatioEProcess(**{"alpha": 0.3, **options}).fit(X, y)
    shown = X[:25].with_ended(ended)
    log_m, stops = process.transform(shown), process.stopping_steps(shown)
    margins = process.decision_function(shown)
    monitor = process.monitor()
    assert (stops > 0).any()
    for row, run_id in enumerate(shown.ids.tolist()):
        for t, score in enumerate(shown[row].tolist(), start=1):
            decision = monitor.update(score, run_id, done=ended and t == shown.lengths[row])
            assert decision.step == t
            assert decision.log_e_value == pytest.approx(log_m[row][t - 1], rel=0, abs=2e-15)
            assert decision.flagged == (0 < stops[row] <= t)
            assert (decision.margin < 0) == decision.flagged
        assert decision.margin == pytest.approx(margins[row], rel=0, abs=4e-9)
    assert len(monitor) == (0 if ended else 25)


@pytest.mark.parametrize("options", [{"wait": 0.2}, {"end_worth": 0.1}], ids=repr)
@pytest.mark.parametrize("end", ["step", "after", None])
def test_an_end_that_is_said_late_gives_the_decision_on_the_whole_run(runs, end, options):
    X, y = runs
    process = DensityRatioEProcess(PrefixForecaster(**RUNNING, end=end), alpha=0.3, **options)
    process.fit(X, y)
    monitor, margins = process.monitor(), process.decision_function(X[:60])
    for row, run_id in enumerate(X.ids[:60].tolist()):
        for score in X[row]:
            monitor.update(score, run_id)
        assert monitor.finish(run_id).margin == pytest.approx(margins[row], rel=0, abs=4e-9)
    assert len(monitor) == 0


def test_several_verifiers(runs):
    X, y = two_channels(runs[0]), runs[1]
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    monitor = process.monitor()
    row = int(np.argmax(X.lengths))
    expected = process.transform(X.with_ended(False))[row]
    for t, (judge, noise) in enumerate(X[row].tolist()):
        assert monitor.update([judge, noise], "a").log_e_value == pytest.approx(
            expected[t], rel=0, abs=2e-15
        )
        named = monitor.update({"noise": noise, "judge": judge}, "b")
        assert named.log_e_value == pytest.approx(expected[t], rel=0, abs=2e-15)
    with pytest.raises(ValueError, match="expected 2 scores, got 1"):
        monitor.update(0.5, "a")
    with pytest.raises(
        ValueError, match="scores are named judge, but the process was fitted on judge, noise"
    ):
        monitor.update({"judge": 0.5}, "a")


def test_randomised_ville_takes_a_uniform_at_the_end(runs):
    X, y = runs
    process = DensityRatioEProcess(threshold="randomized_ville", alpha=0.3).fit(X, y)
    predicted = process.predict(X[:60])
    monitor = process.monitor()
    for row, run_id in enumerate(X.ids[:60].tolist()):
        for score in X[row]:
            monitor.update(score, run_id)
        assert monitor.finish(run_id).flagged == (predicted[row] == 0)
    assert len(monitor) == 0


BAD_SCORES = [np.nan, np.inf, None, "high", "0.5", [0.1, 0.2], [[0.5]], [True], True, np.True_]
BAD_SCORES += [np.datetime64("2026-01-01"), 0.5j, 10**400, [], {}, {"judge": 0.5}, ["0.5"]]


@pytest.mark.parametrize("bad", BAD_SCORES, ids=repr)
def test_a_bad_score_leaves_the_monitor_as_it_was(runs, bad):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    for name in ("new", "known"):
        if name == "known":
            monitor.update(0.4, name)
        before = list(monitor)
        with pytest.raises(ValueError, match=rf"run '{name}', step {len(before) + 1}: "):
            monitor.update(bad, name)
        assert list(monitor) == before
    reference = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    reference.update(0.4, "known")
    assert monitor.update(0.3, "known") == reference.update(0.3, "known")


@pytest.mark.parametrize("bad", [1.01e150, 1e155, -1e200, 1e308], ids=repr)
@pytest.mark.parametrize(
    "name", ["the end with the step", "pooled summary", "cross-fitted", "pipeline"]
)
@pytest.mark.filterwarnings("ignore:run 'a', step:UserWarning", "ignore:score .* is out of range")
def test_a_score_that_would_ruin_what_follows_is_refused(runs, name, bad):
    """As a batch refuses it; before, the run was NaN from then on."""
    process = DensityRatioEProcess(**{"alpha": 0.3, **PROCESSES[name]}).fit(*runs)
    monitor, scores = process.monitor(), []
    for score in (bad, 0.4, 1e150, bad, 0.2, 0.3):
        before = list(map(repr, monitor))
        batch = Runs.from_padded([[*scores, score]], ended=False)
        if score != bad:
            live = monitor.update(score, "a").log_e_value
            assert live == pytest.approx(process.transform(batch)[0][-1], abs=2e-15)
            scores.append(score)
            continue
        words = "is not a finite number up to 1e\\+150"
        with pytest.raises(
            ValueError, match=f"run 'a', step {len(scores) + 1}: the score .* {words}"
        ):
            monitor.update(score, "a")
        with pytest.raises(ValueError, match=rf"run 0 \(row 0\), step .*: the score .* {words}"):
            process.transform(batch)
        assert list(map(repr, monitor)) == before
    assert len(scores) == 4


def test_bad_passthrough_score(runs):
    monitor = DensityRatioEProcess("passthrough", alpha=0.3).fit(*runs).monitor()
    monitor.update(0.4)
    with pytest.raises(ValueError, match="run 'a', step 1: the forecast 1.4 lies outside"):
        monitor.update(1.4, "a")
    with pytest.raises(ValueError, match="run 'run', step 2: the forecast -0.1 lies outside"):
        monitor.update(-0.1)
    assert [one.step for one in monitor] == [1]


def test_runs_are_opened_reset_and_finished(runs):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    first = monitor.update(0.4)
    assert first == monitor.update(0.4, "other")._replace(id="run")
    monitor.reset("other")
    assert monitor.update(0.4, "other").step == 1
    assert monitor.finish("other").step == 1
    with pytest.raises(KeyError, match="'other' is not open"):
        monitor.finish("other")
    with pytest.raises(KeyError, match="'other' is not open"):
        monitor.reset("other")
    monitor.reset()
    assert len(monitor) == 0
    with pytest.raises(TypeError, match="score"):
        monitor.update()


def test_many_threads(runs):
    X, y = runs
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    monitor = process.monitor()
    rows = range(80)

    def follow(part):
        for t in range(9):
            for row in part:
                if t < X.lengths[row]:
                    monitor.update(X[row][t], row)

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
            monitor.update(scores, run_id)
        assert monitor.finish(run_id).flagged == (predicted[row] == 0)


def test_a_search_is_followed_like_the_forecaster_that_it_found(runs):
    X, y = two_channels(runs[0]), runs[1]
    grid = {"features": ["prefix", "summary"]}
    for forecaster in (
        GridSearchCV(PrefixForecaster(), grid, scoring=tps_scorer, cv=3),
        make_pipeline(PrefixForecaster(), PlattCrossFitCalibrator()),
        FrozenEstimator(PrefixForecaster().fit(X, y)),
        Foreign(),
    ):
        process = DensityRatioEProcess(forecaster, alpha=0.3).fit(X, y)
        monitor, log_m = process.monitor(), process.transform(X[:3])
        for t, (judge, noise) in enumerate(X[1]):
            decision = monitor.update({"judge": judge, "noise": noise}, "r")
            assert decision.log_e_value == pytest.approx(log_m[1][t], rel=0, abs=2e-15)


def test_ids_scores_and_thresholds_by_name(runs):
    X, y = runs
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    monitor = process.monitor()
    first = monitor.update(0.4, X.ids[3])
    assert monitor.update(run=int(X.ids[3]), score=0.3).step == 2
    assert monitor.update(score=0.4)._replace(id=first.id) == first
    assert np.exp(first.log_threshold) == pytest.approx(process.thresholds_.iloc[0])
    copy = pickle.loads(pickle.dumps(monitor))
    assert list(copy) == list(monitor)
    assert copy.update(0.2, X.ids[3]) == monitor.update(0.2, X.ids[3])
    assert monitor.finish(X.ids[3]).step == 3
    with pytest.raises(TypeError, match="value"):
        monitor.update(0.4, value=3)


def test_a_longer_run_than_any_seen_is_told_once(runs):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    for run_id in "ab":
        for _ in range(9):
            monitor.update(0.5, run_id)
    with pytest.warns(
        UserWarning, match="run 'a' is longer than the longest run in fitting, which has 9 steps"
    ):
        monitor.update(0.5, "a")
    for run_id in "ab":  # a second warning would be an error
        monitor.update(0.5, run_id)


@pytest.mark.parametrize("offset", [0.0, 9.0, 99.0])
def test_live_is_batch_to_the_last_digit_near_certainty(offset):
    """Close to a probability of 1, one more rounding of it would be 1e-10 of log M."""
    y = np.arange(3000) % 2
    scores = np.random.default_rng(0).normal(offset + 3 * y[:, None], 1, (3000, 8))
    X = Runs.from_padded(scores)
    for features in ("prefix", "summary", "last"):
        process = DensityRatioEProcess(PrefixForecaster(features=features), threshold="ville")
        process.fit(X, y)
        monitor, log_m = process.monitor(), process.transform(X[:100])
        for row in range(100):
            live = [monitor.update(score, row).log_e_value for score in scores[row].tolist()]
            np.testing.assert_allclose(live, log_m[row], rtol=0, atol=2e-15)


def test_messages_say_what_to_send(runs):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    with pytest.raises(ValueError, match=r"expected one score, got an array of shape \(1, 1\)"):
        monitor.update([[0.5]])
    with pytest.raises(ValueError, match="expected one score, got 0"):
        monitor.update([])
    with pytest.raises(ValueError, match="fitted on channels without names; send a number"):
        monitor.update({"judge": 0.5})
    with pytest.raises(ValueError, match="the score '0.5' is not a number; send one"):
        monitor.update("0.5")
    assert monitor.update([0.5]) == monitor.update(np.float32(0.5), "other")._replace(id="run")
    for use in (lambda run: monitor.update(0.5, run), monitor.finish, monitor.reset):
        with pytest.raises(TypeError, match="the id of a run must be text or a number, got True"):
            use(True)


def failing(seen):
    if (seen > 5).any():
        raise RuntimeError("no features of that")
    return seen.mean(axis=1)


def fails_in_one_fold(seen):
    """Works for a few calls, as where the second of several members fails."""
    if (seen > 5).any():
        fails_in_one_fold.calls += 1
        if fails_in_one_fold.calls > 2:
            raise RuntimeError("no features of that")
    return seen.mean(axis=1)


@pytest.mark.parametrize(
    "options",
    [
        {"forecaster": PrefixForecaster(features=failing)},
        {"forecaster": PrefixForecaster(features=failing, pooled=True)},
        {
            "forecaster": PrefixForecaster(features=fails_in_one_fold),
            "threshold": "conformal",
            "cross_fit": 3,
        },
        {
            "forecaster": make_pipeline(
                PrefixForecaster(features=failing), PlattCrossFitCalibrator()
            )
        },
        {"forecaster": Foreign()},
    ],
    ids=["prefix", "pooled", "cross-fitted", "pipeline", "foreign"],
)
def test_a_failing_forecast_leaves_the_monitor_as_it_was(runs, options):
    process = DensityRatioEProcess(**{"alpha": 0.3, **options}).fit(*runs)
    monitor, reference = process.monitor(), process.monitor()
    for one in (monitor, reference):
        one.update(0.5, "a")
    fails_in_one_fold.calls = 0
    for run_id in ("a", "new"):
        with pytest.raises(RuntimeError, match="no features"):
            monitor.update(9.0, run_id)
    assert repr(list(monitor)) == repr(list(reference))  # with NaN where there is no threshold
    for score in (0.4, 0.2, 0.3):
        assert repr(monitor.update(score, "a")) == repr(reference.update(score, "a"))


@pytest.mark.parametrize(
    "forecaster",
    [
        PrefixForecaster(features="last"),
        PrefixForecaster(**RUNNING, end="step"),
        make_pipeline(PrefixForecaster(features="summary"), PlattCrossFitCalibrator()),
    ],
    ids=str,
)
def test_what_is_remembered_of_a_run_does_not_grow_with_it(runs, forecaster):
    test = DensityRatioEProcess(forecaster, threshold="ville").fit(*runs).test_
    progress, sizes = test.begin(), []
    for step in range(1, 41):
        progress, _, _ = test.advance(progress, np.array([0.5]), "a", step)
        sizes.append(len(pickle.dumps(progress)))
    assert sizes[-1] <= sizes[5] + 8


def test_a_score_that_a_forecaster_cannot_read_is_placed(runs):
    monitor = (
        DensityRatioEProcess(PlattCrossFitCalibrator(), threshold="ville").fit(*runs).monitor()
    )
    monitor.update(0.5, "a")
    with pytest.raises(ValueError, match=r"run 'a', step 2: forecast 1\.4 lies outside \[0, 1\]"):
        monitor.update(1.4, "a")
    assert [one.step for one in monitor] == [1]


def kept(process, state, *updates):
    monitor = process.monitor(state=state)
    for update in updates:
        monitor.update(*update)
    monitor.close()
    return state


def test_a_state_is_gone_on_with_only_by_its_own_process(runs, tmp_path):
    X, y = runs
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    path = kept(process, tmp_path / "state", (0.4, "a"), (0.2, "a"))
    same = DensityRatioEProcess(alpha=0.3).fit(X[::-1], y[::-1])
    again = same.monitor(state=path)
    assert [one.step for one in again] == [2]
    again.close()
    summary = PrefixForecaster(features="summary", pooled=True)
    before = path.read_bytes()
    for other in (
        DensityRatioEProcess(alpha=0.3).fit(two_channels(X), y),
        DensityRatioEProcess(alpha=0.3).fit(X[:300], y[:300]),
        DensityRatioEProcess(alpha=0.3, threshold="ville").fit(X, y),
        DensityRatioEProcess(alpha=0.3, random_state=1).fit(X, y),
        DensityRatioEProcess(summary, alpha=0.3).fit(X, y),
    ):
        with pytest.raises(ValueError, match="was written with another fitted process"):
            other.monitor(state=path)
        assert path.read_bytes() == before
    # the same thresholds, seed and base rate: only log M tells
    ville = DensityRatioEProcess(alpha=0.3, threshold="ville").fit(X, y)
    path = kept(ville, tmp_path / "ville", (0.4, "a"), (0.2, "a"))
    with pytest.raises(ValueError, match="was written with another fitted process"):
        DensityRatioEProcess(summary, alpha=0.3, threshold="ville").fit(X, y).monitor(state=path)
    ville.monitor(state=path).close()  # what was refused has let go of the file


@pytest.mark.parametrize("run", [[1], {}, float("nan"), True, (1, [2])])
def test_what_cannot_be_an_id_is_refused_in_words(runs, run):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    for call in (lambda: monitor.update(0.4, run), lambda: monitor.finish(run)):
        with pytest.raises(TypeError, match="the id of a run must be text or a number, got"):
            call()
    assert len(monitor) == 0


@pytest.mark.parametrize(
    "options", [{"ties": "randomized"}, {"threshold": "randomized_ville"}], ids=str
)
def test_a_run_without_an_id_has_no_coin(runs, options):
    monitor = DensityRatioEProcess(alpha=0.3, **options).fit(*runs).monitor()
    with pytest.raises(ValueError, match="a run's id decides ties and ends that are randomised"):
        monitor.update(0.4)
    assert monitor.update(0.4, "a").step == 1


def test_times_and_levels_are_numbers(runs):
    process = DensityRatioEProcess(alpha=0.3).fit(*runs)
    with pytest.raises(ValueError, match="seconds must be a number of at least 0"):
        process.monitor().forget("a day")
    for level in ("a", [0.3], 0.2):
        with pytest.raises(ValueError, match="was not fitted"):
            process.monitor(level)


def test_a_score_on_another_scale_is_warned_of_once(runs):
    X, y = runs
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    low, high = X.cells.min(), X.cells.max()
    monitor = process.monitor()
    for score in (2 * low - high + 1e-9, 2 * high - low - 1e-9):
        monitor.update(score, "near")
    with pytest.warns(UserWarning, match="run 'a', step 1: score 70 is out of range"):
        monitor.update(70, "a")
    monitor.update(70, "b")
    with pytest.warns(
        UserWarning, match=f"score 70 .*: training scores go from {low:g} to {high:g}"
    ):
        process.predict(X.with_cells(np.where(np.arange(len(X.cells)) == 3, 70, X.cells)))
    flag = Runs(np.column_stack([X.cells, 0 * X.cells]), X.lengths, channels=["a", "set"])
    DensityRatioEProcess(alpha=0.3).fit(flag, y).monitor().update({"a": 0.5, "set": 1})
    two = Runs(np.column_stack([X.cells, 9 * X.cells]), X.lengths, channels=["a", "b"])
    monitor = DensityRatioEProcess(alpha=0.3).fit(two, y).monitor()
    monitor.update({"a": 0.5, "b": 7})
    with pytest.warns(UserWarning, match="score 7 of 'a' is out of range"):
        monitor.update({"a": 7, "b": 0.5})


def test_what_a_monitor_does_not_take(runs):
    with pytest.raises(TypeError, match="test must be test_ of a fitted process, got str"):
        EProcessMonitor("process")
    monitor = DensityRatioEProcess("passthrough", alpha=0.3).fit(*runs).monitor()
    with pytest.raises(ValueError, match="step must be the number of the step, got 'one'"):
        monitor.update(0.5, step="one")
    with pytest.raises(ValueError, match=r"the score \[\[1\], \[1, 2\]\] is not a number"):
        monitor.update([[1], [1, 2]])
    for score in (-1e-9, 1 + 1e-6):
        with pytest.raises(ValueError, match=r"lies outside \[0, 1\]"):
            monitor.update(score)
    for step, score in enumerate((0.0, 1.0, 0, 1), start=1):
        assert monitor.update(score).step == step


@pytest.mark.parametrize("lost", ["a", None])
@pytest.mark.parametrize("step", [None, 2, 3])
def test_a_lost_run_goes_on_only_from_its_first_step(runs, lost, step):
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    monitor._lost.add(lost)
    with pytest.raises(ValueError, match="run a|run 'a'") as error:
        monitor.update(0.5, "a", step=step)
    assert str(error.value) == _LOST.format("a")
    assert monitor.update(0.5, "a", step=1).step == 1
    assert monitor.update(0.5, "a").step == 2


def test_no_time_at_all_may_be_asked_for(runs, monkeypatch):
    now = 5.0
    monkeypatch.setattr(_monitor.time, "monotonic", lambda: now)
    monitor = DensityRatioEProcess(alpha=0.3).fit(*runs).monitor()
    monitor.update(0.5, "a")
    assert monitor.forget(0) == []  # not older than 0 seconds
    now = 6.0
    monitor.update(0.5, "b")
    assert monitor.forget(1) == []
    assert monitor.forget(0) == ["a"]
    for seconds in (-1e-9, np.nan, "1", None):
        with pytest.raises(ValueError, match="seconds must be a number of at least 0, got"):
            monitor.forget(seconds)
