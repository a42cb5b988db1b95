"""ATIF: its files, Harbor's results beside them, and each field of a step."""

import pytest

from trajscore import io
from trajscore.io.formats.atif import ATIF, _of_step
from trajscore.io.registry import Head

TURN = {"source": "agent", "message": "Done"}


def trajectory(*steps, **fields):
    return {"schema_version": "ATIF-v1.8", "steps": list(steps or [TURN])} | fields


def result(reward=1.0, **fields):
    verdict = {"verifier_result": {"rewards": {"reward": reward}}}
    return {"trial_name": "trial", "task_name": "task"} | verdict | fields


def ended_by(name):
    return {"exception_info": {"exception_type": name}}


@pytest.fixture
def read(write):
    """Read one trajectory, with its result if there is one."""

    def read_one(raw, beside=None, **options):
        if beside is not None:
            write("t/result.json", beside)
        (run,) = io.read_runs(write("t/trajectory.json", raw), **options, format="atif")
        return run

    return read_one


@pytest.mark.parametrize(
    ("fields", "listed", "recognised"),
    [
        ({"schema_version": "atif-v1.8"}, False, True),
        ({"schema_version": "ATIF-v1.8"}, True, False),
        ({"schema_version": 2}, False, False),
        ({"steps": [], "agent": {}}, False, True),
        ({"steps": [], "session_id": "s"}, False, True),
        ({"steps": []}, False, False),
        ({"trajectory_id": "t"}, False, False),
    ],
)
def test_files_of_the_format(fields, listed, recognised):
    assert ATIF().recognise(Head(fields, listed=listed)) == recognised


def test_a_job_folder_has_one_run_a_trajectory(write, tmp_path):
    for place in ("b/agent/trajectory.json", "a/trajectory.json", "a/trajectory-2.json"):
        write(f"job/{place}", trajectory(trajectory_id=place))
    for name in ("trajectory.cont-1.json", "trajectory.summarization-1.json", "other.json"):
        write(f"job/a/{name}", trajectory())
    runs = io.read_runs(tmp_path / "job")
    assert [run.id for run in runs] == [
        "a/trajectory-2.json", "a/trajectory.json", "b/agent/trajectory.json",
    ]  # fmt: skip


# ------------------------------------------------------------------ of the run


@pytest.mark.parametrize(
    ("raw", "beside", "name"),
    [
        ({"trajectory_id": "t", "session_id": "s"}, result(), "t"),
        ({"session_id": "s"}, result(), "trial"),
        ({"session_id": "s"}, None, "s"),
        ({}, None, "trajectory-0"),
        ({"trajectory_id": "t"}, result(step_name="one"), "trial/one"),
        ({"trajectory_id": "t"}, {"step_name": "one"}, "t"),
    ],
)
def test_id(read, raw, beside, name):
    assert read(trajectory(**raw), beside).id == name


@pytest.mark.parametrize(
    ("beside", "task"),
    [
        ({"task_name": "a"}, "a"),
        ({"task_name": "a", "step_name": "b"}, "a/b"),
        ({"step_name": "b"}, "b"),
        ({}, None),
    ],
)
def test_task(read, beside, task):
    assert read(trajectory(), beside).task == task


@pytest.mark.parametrize(
    ("beside", "outcome"),
    [
        (None, -1), (result(1), 1), (result(0.5), 0), (result(None), -1),
        ({"verifier_result": None}, -1), ({"verifier_result": {"rewards": {}}}, -1),
        ({"verifier_result": {"rewards": {"other": 1}}}, 1),
    ],
)  # fmt: skip
def test_outcome(read, beside, outcome):
    assert read(trajectory(), beside).outcome == outcome


def test_one_of_several_rewards(read):
    several = {"verifier_result": {"rewards": {"a": 1, "reward": 0}}}
    assert read(trajectory(), several).outcome == 0
    assert read(trajectory(), several, reward="a").outcome == 1


def test_what_a_run_holds(read):
    fields = {
        "final_metrics": {"total_cost_usd": 2.0}, "agent": {"model_name": "m"}, "notes": "n",
        "trajectory_id": "t",
    }  # fmt: skip
    run = read(trajectory(**fields), result(0.0))
    assert (run.meta["reward"], run.meta["cost"], run.meta["model"]) == (0.0, 2.0, "m")
    assert run.meta["file"].endswith("trajectory.json")
    assert run.trial == "trial"
    assert set(run.extra) == {"schema_version", "final_metrics", "agent", "notes", "result"}
    bare = read(trajectory(agent="m"), {})
    assert (bare.meta["cost"], bare.meta["model"]) == (None, None)
    assert set(bare.extra) == {"schema_version", "agent"}


def test_an_exception_is_the_stop(read):
    run = read(trajectory(), result() | ended_by("MaxStepsError"))
    assert (run.stop_reason, run.outcome, run.meta["reward"]) == ("MaxStepsError", -1, 1.0)
    scored = read(trajectory(), result() | ended_by("MaxStepsError"), cut_runs="score")
    assert scored.outcome == 1
    assert read(trajectory(), result() | {"exception_info": None}).stop_reason is None


def test_results_of_the_trial_stand_one_or_two_folders_up(write):
    near, far = write("job/t/agent/trajectory.json", trajectory()), "job/t/result.json"
    write("job/result.json", result(0))  # of the job
    assert io.read_runs(near, format="atif")[0].outcome == -1
    write(far, result(1))
    assert io.read_runs(near, format="atif")[0].outcome == 1
    write("job/t/agent/result.json", result(0))
    assert io.read_runs(near, format="atif")[0].outcome == 0


def test_a_result_three_folders_up_is_not_that_of_the_trial(write):
    write("job/result.json", result(0))
    (run,) = io.read_runs(write("job/x/t/agent/trajectory.json", trajectory()), format="atif")
    assert run.outcome == -1


# ------------------------------------------------------------------ steps of a trial


def test_a_step_of_a_trial_has_its_own_result(write):
    steps = [
        {"step_name": "one", "verifier_result": {"rewards": {"reward": 0}}},
        {"step_name": "two", "exception_info": {"exception_type": "MaxStepsError"}},
        {"step_name": "three"},
    ]
    write("job/t/result.json", result(1, step_results=steps))
    runs = {
        name: io.read_runs(
            write(f"job/t/steps/{name}/agent/trajectory.json", trajectory()), format="atif"
        )[0]
        for name in ("one", "two", "three", "four")
    }
    assert [run.id for run in runs.values()] == [
        "trial/one", "trial/two", "trial/three", "trial",
    ]  # fmt: skip
    assert [run.task for run in runs.values()] == ["task/one", "task/two", "task/three", "task"]
    assert [run.outcome for run in runs.values()] == [0, -1, 1, 1]
    assert [run.stop_reason for run in runs.values()] == [None, "MaxStepsError", None, None]


def test_the_last_verdict_of_the_steps_is_that_of_the_trial():
    steps = [{"verifier_result": {"a": 1}}, {"verifier_result": {"a": 2}}]
    assert _of_step({"step_results": steps}, None)["verifier_result"] == {"a": 2}
    own = {"verifier_result": {"a": 3}, "step_results": steps}
    assert _of_step(own, None) == own
    for listed in (None, [], ["x"], "x"):
        assert _of_step({"step_results": listed}, "one") == {"step_results": listed}


# ------------------------------------------------------------------ turns


def test_all_fields_of_a_turn(read):
    step = {
        "step_id": 4, "source": "agent", "message": "Look", "reasoning_content": "hm",
        "tool_calls": [{"tool_call_id": 7, "function_name": "run", "arguments": {"x": 1}}],
        "observation": {"results": [{"source_call_id": 7, "content": "file"}, {"content": "b"}]},
        "metrics": {"logprobs": [-1.0], "cost_usd": 0.5, "prompt_tokens": 3},
        "extra": {"note": "n"},
    }  # fmt: skip
    (turn,) = read(trajectory(step)).steps
    assert (turn.actor, turn.text, turn.index) == ("agent", "Look", 0)
    assert (turn.logprobs, turn.tokens, turn.cost) == ((-1.0,), None, 0.5)
    (call,) = turn.tool_calls
    assert (call.name, call.arguments, call.id, call.result) == ("run", {"x": 1}, "7", "file")
    assert turn.observation == "file\nb"
    assert turn.extra == {
        "step_id": 4, "reasoning_content": "hm", "note": "n", "metrics": {"prompt_tokens": 3},
    }  # fmt: skip


def test_metrics_that_are_all_used_are_not_kept_twice(read):
    (turn,) = read(trajectory(TURN | {"metrics": {"cost_usd": 1}})).steps
    assert (turn.cost, turn.extra) == (1.0, {})


def test_copied_steps_are_left_out_and_counted(read):
    copied = TURN | {"is_copied_context": True}
    run = read(trajectory(copied, copied, TURN | {"is_copied_context": False}))
    assert ([step.index for step in run.steps], run.extra["n_copied_steps"]) == ([2], 2)
    assert "n_copied_steps" not in read(trajectory()).extra


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (None, "it has no list of 'steps'"),
        ([TURN, 3], "message 1 is int, not an object"),
        ([TURN | {"observation": {"results": "x"}}], "results of its observation are str, not a"),
        ([TURN, TURN | {"observation": {"results": [1]}}], "message 1: a result .* is int, not an"),
    ],
)
def test_steps_that_cannot_be_read(read, steps, problem):
    with pytest.raises(ValueError, match=problem):
        read(trajectory() | {"steps": steps})


@pytest.mark.parametrize("observation", [None, "x", {}, {"results": None}, {"results": []}])
def test_turns_without_results(read, observation):
    (turn,) = read(trajectory(TURN | {"observation": observation})).steps
    assert turn.observation is None


# ------------------------------------------------------------------ continuations


def test_a_trajectory_goes_on_in_other_files(write, read):
    for k, rest in ((1, "elsewhere/trajectory.cont-2.json"), (2, "trajectory.json")):
        metrics = {"total_cost_usd": float(k)}
        more = trajectory(TURN | {"message": str(k)}, final_metrics=metrics)
        write(f"t/trajectory.cont-{k}.json", more | {"continued_trajectory_ref": rest})
    run = read(trajectory(continued_trajectory_ref="trajectory.cont-1.json"))
    assert [step.text for step in run.steps] == ["Done", "1", "2"]
    assert run.meta["cost"] == 2.0


def test_a_continuation_that_is_not_there_ends_the_run(read):
    run = read(trajectory(continued_trajectory_ref="gone.json"))
    assert [step.text for step in run.steps] == ["Done"]


def test_a_trajectory_without_steps_is_not_continued(write):
    path = write("t/trajectory.json", trajectory(steps=3, continued_trajectory_ref="more.json"))
    write("t/more.json", trajectory())
    with pytest.raises(ValueError, match="it has no list of 'steps'"):
        io.read_runs(path, format="atif")


def test_a_reward_is_chosen_by_a_name(write):
    several = {"verifier_result": {"rewards": {"a": 1, "b": 0}}}
    path = write("t/trajectory.json", trajectory())
    write("t/result.json", several)
    for name in (["a"], "c"):
        with pytest.raises(ValueError, match=r"no reward is named .*; choose one of a, b with rew"):
            io.read_runs(path, format="atif", reward=name)


def test_a_trajectory_beside_no_folders(write, monkeypatch):
    path = write("trajectory.json", trajectory())
    monkeypatch.chdir(path.parent)
    assert io.read_runs("trajectory.json", format="atif")[0].outcome == -1


def test_a_folder_of_steps_further_up_has_no_result_of_a_step(write):
    write("steps/result.json", result(1))
    (run,) = io.read_runs(write("steps/x/t/agent/trajectory.json", trajectory()), format="atif")
    assert run.outcome == -1
