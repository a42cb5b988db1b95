"""A guard decides on a conversation as its process does on the finished log."""

import copy
import gc
import re
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import make_pipeline

from scripts import load_script
from trajscore import ActionSignals, DensityRatioEProcess, TracerSignals, TrajectoryArray, io
from trajscore.cli.main import main
from trajscore.integrations import Guard, StopRun
from trajscore.monitoring import Conformal

live = load_script("live_runs", "tools")


@pytest.fixture(scope="module")
def guard():
    return live.fitted_guard(0, 300)


@pytest.fixture(scope="module")
def talks():
    rng = np.random.default_rng(5)
    return [live.talk_of(rng) for _ in range(15)]


def test_every_look_is_that_of_the_finished_log(guard, talks):
    stops = guard.stopping_steps([live.run_of(talk, str(k)) for k, talk in enumerate(talks)])
    assert (stops > 0).any()
    assert (stops == 0).any()
    for k, (talk, stop) in enumerate(zip(talks, stops, strict=True)):
        messages = live.chat_of(talk)
        watch = guard.follow(str(k))
        for n in range(1, len(messages) + 1):
            look = guard.look(messages[:n], str(k), done=n == len(messages))
            assert watch.look(messages[:n], done=n == len(messages)) == look
            # before the end the flag is that of the log, as soon as the step is there
            if n < len(messages) and look.step < stop:
                assert not look.stop
            elif n == len(messages) or stop < look.step:
                assert look.stop == (stop > 0)
                assert look.flagged_step == (stop or None)
    assert look.suspicion <= 1


def test_looks_of_a_log_are_those_at_each_of_its_steps(guard, talks):
    runs = [live.run_of(talk, str(k)) for k, talk in enumerate(talks)]
    silent = io.Run("silent", [io.Step("environment", "...")])
    *looks, none = guard.looks([*runs, silent])
    assert none == []
    for run, own in zip(runs, looks, strict=True):
        assert own[-1] == guard.look(run, run.id, done=True)
        for n, look in enumerate(own[:-1], start=1):
            assert look == guard.look(io.Run(run.id, run.steps[:n]), run.id)
    assert guard.looks([silent]) == [[]]


def test_suspicion_is_the_level_at_which_a_run_is_stopped(guard, talks):
    for k, talk in enumerate(talks):
        look = guard.look(live.chat_of(talk), str(k), done=True)
        assert look.stop == (look.suspicion >= 1 - look.promise.alpha - 1e-12)


def test_calls_that_have_no_result_yet_are_not_counted(guard, talks):
    talk = next(talk for talk in talks if talk.turns[0].order is not None)
    messages = live.chat_of(talk)
    assert guard.look(messages[:1]) == guard.look(messages[:2])
    assert guard.look(messages[:3]).step == 2
    assert guard.look([{"role": "system", "content": "Be kind."}])[1:4] == (0, False, None)


def test_a_guard_is_saved_and_decides_the_same(guard, talks, tmp_path, capsys):
    pytest.importorskip("skops")
    guard.save(tmp_path / "guard.skops")
    again = Guard.load(tmp_path / "guard.skops")
    for talk in talks[:5]:
        assert again.look(live.chat_of(talk)) == guard.look(live.chat_of(talk))
    assert main(["monitor", "--model", str(tmp_path / "guard.skops")]) == 2
    assert "holds a Guard, not a DensityRatioEProcess" in capsys.readouterr().err


def test_a_guard_without_outcomes_spares_most_runs_and_learns_when_they_are_known(tmp_path):
    pytest.importorskip("skops")
    rng = np.random.default_rng(3)
    known = [live.run_of(live.talk_of(rng), str(k)) for k in range(150)]
    runs = [io.Run(run.id, run.steps) for run in known]
    guard = Guard(process=DensityRatioEProcess(alpha=0.2)).fit(runs)
    assert "stops at most 0.2 of the runs, on average over sets of known runs" in repr(guard)
    guard.save(tmp_path / "guard.skops")
    again = Guard.load(tmp_path / "guard.skops")
    stops = again.stopping_steps(runs)
    good = np.array([run.outcome for run in known]) == 1
    assert (stops[~good] > 0).mean() > 0.2 > (stops[good] > 0).mean()
    for run, stop in zip(runs[:20], stops, strict=False):
        look = guard.look(run, run.id, done=True)
        assert (look.flagged_step or 0, look.promise.of) == (stop, "runs")
    assert again.fit(known).look(runs[0]).promise[:2] == (0.2, "successes")
    with pytest.warns(UserWarning, match="too few held-out runs"):
        assert not guard.fit(runs[:3]).look(runs[0]).stop
    guard = Guard(process=DensityRatioEProcess(threshold="ville", alpha=[0.9, 1e-9]))
    with pytest.warns(UserWarning, match="none of the 150 runs .* at alpha = 1e-09, so"):
        guard.fit(known)


def test_the_signal_without_outcomes_falls_with_trouble():
    call = io.ToolCall("find", {"order": 1}, result=live.ERROR)
    steps = [io.Step("user", "Hi"), *[io.Step("agent", tool_calls=[call])] * 2]
    steps += [io.Step("agent", "Hm.", logprobs=[-2.0, -1.0]), io.Step("agent", "a", logprobs=[0.0])]
    guard = Guard().fit([io.Run(str(k), steps) for k in range(19)])
    signal = guard.signals_.transform([io.Run("a", steps)]).cells
    assert signal == pytest.approx([-0.001, -1.002, -3.003, -4.504, -4.505])


def test_a_history_that_was_changed_is_refused(guard, talks):
    messages = live.chat_of(talks[0])
    watch = guard.follow("run 1")
    watch.look(messages[:5])
    changed = copy.deepcopy(messages)
    changed[0]["content"] = "Something else"
    for other in (changed, messages[2:], messages[:1]):
        with pytest.raises(ValueError, match="run 'run 1': turn . has changed or is missing"):
            watch.look(other)
    assert watch.look(messages).step > 2


def test_signals_that_know_the_future_are_refused(talks):
    class Length(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            lengths = [len(run.steps) for run in X]
            cells = np.repeat(np.array(lengths, dtype=float), lengths)
            return TrajectoryArray(cells, lengths, ids=[run.id for run in X])

    runs = [live.run_of(talk, str(k)) for k, talk in enumerate(talks)]
    with pytest.raises(ValueError, match="depend on the turns so far alone"):
        Guard(Length()).fit(runs)


def test_signals_with_gaps_are_refused(talks):
    runs = [live.run_of(talk, str(k)) for k, talk in enumerate(talks)]
    signals = TracerSignals().fit_transform(runs)
    first = signals.place(int(np.flatnonzero(np.isnan(signals.cells).any(axis=1))[0]))
    where = f"{first}: a signal has no value here, and a guard needs one"
    with pytest.raises(ValueError, match=re.escape(where)):
        Guard(TracerSignals()).fit(runs)


def test_signals_may_be_a_pipeline_and_levels_several(talks):
    rng = np.random.default_rng(2)
    runs = [live.run_of(live.talk_of(rng), str(k)) for k in range(200)]
    signals = make_pipeline(ActionSignals(["errors", "repeats"]))
    guard = Guard(signals, DensityRatioEProcess(alpha=(0.3, 0.1)))
    assert clone(guard).get_params()["process__alpha"] == (0.3, 0.1)
    guard.fit(runs, [run.outcome for run in runs], groups=np.arange(200))
    stops = [guard.stopping_steps(runs, alpha) > 0 for alpha in (0.3, 0.1)]
    assert stops[0].sum() > stops[1].sum()
    messages = live.chat_of(talks[0])
    assert guard.look(messages, alpha=0.1).log_threshold > guard.look(messages).log_threshold


def test_what_is_not_a_rule_or_a_log_is_refused(guard, talks):
    runs = [live.run_of(talk, str(k)) for k, talk in enumerate(talks)]
    with pytest.raises(ValueError, match="process must be a DensityRatioEProcess.* 'auto'"):
        Guard(process="auto").fit(runs)
    with pytest.raises(TypeError, match="Guard reads runs of a log, got TrajectoryArray"):
        Guard().fit(TrajectoryArray([0.5], [1]), [1])
    with pytest.raises(TypeError, match="looks takes runs, but row 0 is of type"):
        guard.looks(live.chat_of(talks[0]))


def test_a_guard_that_was_not_fitted_is_refused():
    for use in (Guard().follow, lambda: Guard().look([]), lambda: Guard().stopping_steps([])):
        with pytest.raises(ValueError, match="not fitted"):
            use()


@pytest.mark.parametrize("name", live.FRAMEWORKS)
@pytest.mark.filterwarnings("ignore")  # of the frameworks themselves
def test_agents_of_frameworks_stop_where_the_log_does(guard, talks, tmp_path, name):
    pytest.importorskip(live.FRAMEWORKS[name][0])
    pytest.importorskip("skops")
    guard.save(tmp_path / "guard.skops")
    assert live.trial(name, guard, talks, tmp_path / "guard.skops") == []
    gc.collect()  # event loops that they leave open


@pytest.mark.parametrize("module", ["langchain", "openai_agents", "inspect_sentinel"])
def test_a_missing_framework_names_its_extra(module):
    if live.importlib.util.find_spec(live.FRAMEWORKS[module][0]) is not None:
        pytest.skip("it is installed")
    extra = module.removeprefix("inspect_").replace("_", "-")
    with pytest.raises(ImportError, match=rf"scikit-trajscore\[{extra}\]"):
        import_module(f"trajscore.integrations.{module}")


def test_an_exception_says_what_was_stopped(guard, talks):
    stops = guard.stopping_steps([live.run_of(talk, str(k)) for k, talk in enumerate(talks)])
    talk = talks[int(np.argmax(stops > 0))]
    look = guard.look(live.chat_of(talk), "run 7", done=True)
    assert f"'run 7' was stopped at step {look.flagged_step}" in str(StopRun(look))


def test_a_guard_of_a_real_log_decides_on_every_prefix_as_the_batch(public_file):
    log = public_file("tau_bench", "gpt-4o-airline.json")
    runs = io.read_runs(log, max_turns=None)
    guard = Guard(process=DensityRatioEProcess(threshold=Conformal(end_worth=0.3), alpha=0.2))
    guard.fit(runs, groups=[run.task for run in runs])
    stops = guard.stopping_steps(runs)
    assert 0.2 < (stops > 0).mean() < 0.7
    for run, stop in list(zip(runs, stops, strict=True))[::50]:
        first = 0
        for n in range(1, len(run.steps)):
            look = guard.look(io.Run(run.id, run.steps[:n], task=run.task), run.id)
            first = first or look.flagged_step or 0
        done = guard.look(run, run.id, done=True).flagged_step or 0
        assert done == stop
        assert first in (0, stop)


@pytest.mark.parametrize(("role", "why"), [("worker", "name them"), ("assistant", "with the user")])
def test_messages_of_which_nothing_is_seen(guard, role, why):
    for looks in (guard.look, guard.follow().look):
        with pytest.warns(UserWarning, match=why):
            look = looks([{"role": role, "content": "Hi"}, *[{"role": role, "content": "No"}] * 9])
        assert (look.step, look.stop, look.flagged_step) == (0, False, None)
