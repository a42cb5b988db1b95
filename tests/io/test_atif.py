"""ATIF: its files, Harbor's results beside them, and each field of a step."""

import pytest

from known_dialogue import said
from trajscore import io

TURN = {"source": "agent", "message": "Done"}


def trajectory(*steps, **fields):
    return {"schema_version": "ATIF-v1.8", "steps": list(steps or [TURN])} | fields


def result(reward=1.0, **fields):
    verdict = {"verifier_result": {"rewards": {"reward": reward}}}
    return {"trial_name": "trial", "task_name": "task"} | verdict | fields


def ended_by(name):
    return {"exception_info": {"exception_type": name}}


def read(write, raw, beside=None, **options):
    if beside is not None:
        write("t/result.json", beside)
    (run,) = io.read_runs(write("t/trajectory.json", raw), **options, format="atif")
    return run


def test_a_job_folder_has_one_run_a_trajectory(write, tmp_path):
    for place in ("b/agent/trajectory.json", "a/trajectory.json", "a/trajectory-2.json"):
        write(f"job/{place}", trajectory(trajectory_id=place))
    for name in ("trajectory.cont-1.json", "trajectory.summarization-1.json", "other.json"):
        write(f"job/a/{name}", trajectory())
    write("job/b/result.json", result(0))
    runs = io.read_runs(tmp_path / "job")
    assert [(run.id, run.outcome) for run in runs] == [
        ("a/trajectory-2.json", -1), ("a/trajectory.json", -1), ("b/agent/trajectory.json", 0),
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"no runs in .*result\.json"):
        io.read_runs(write("r/result.json", result()), format="atif")


def test_names_and_outcomes(write, tmp_path):
    several = {"verifier_result": {"rewards": {"a": 1, "reward": 0}}}
    for raw, beside, expected in (
        ({"trajectory_id": "t", "session_id": "s"}, None, ("t", None, -1)),
        ({"session_id": "s"}, None, ("s", None, -1)), ({}, None, ("trajectory-0", None, -1)),
        ({"trajectory_id": "t"}, result(), ("t", "task", 1)),
        ({"session_id": "s"}, result(0.5), ("trial", "task", 0)),
        ({"trajectory_id": "t"}, {"verifier_result": {"rewards": {"x": 1}}}, ("t", None, 1)),
        ({"trajectory_id": "t"}, several, ("t", None, 0)),
    ):  # fmt: skip
        run = read(write, trajectory(**raw), beside)
        assert (run.id, run.task, run.outcome) == expected, (raw, beside)
    assert read(write, trajectory(), several, outcome="rewards.a").outcome == 1
    assert read(write, trajectory(), result(-0.5)).outcome == 0  # less than 1 is a failure


def test_what_a_reward_above_1_means_must_be_said(write):
    with pytest.raises(ValueError, match=r"run 'trial': the outcome is 85.0 .*outcome_map"):
        read(write, trajectory(), result(85.0))
    assert read(write, trajectory(), result(85.0), outcome_map={85: 1}).outcome == 1
    assert read(write, trajectory(), result(1 + 1e-9)).outcome == 1


def test_all_fields(write):
    step = {
        "step_id": 4, "source": "agent", "message": "Look", "reasoning_content": "hm",
        "tool_calls": [{"tool_call_id": 7, "function_name": "run", "arguments": {"x": 1}}],
        "observation": {"results": [{"source_call_id": 7, "content": "file"}, {"content": "b"}]},
        "metrics": {"logprobs": [-1.0], "cost_usd": 0.5, "prompt_tokens": 3},
        "extra": {"note": "n", "confidence": 0.75},
    }  # fmt: skip
    copied = TURN | {"is_copied_context": True}
    fields = {"final_metrics": {"total_cost_usd": 2.0}, "agent": {"model_name": "m"}, "notes": "n"}
    system = {"source": "system", "message": "Rules"}
    task = {"source": "user", "message": [{"type": "text", "text": "Fix it"}]}
    run = read(write, trajectory(system, task, copied, step, **fields), result(0.0))
    assert said(run) == [
        ("system", "Rules"), ("user", "Fix it"), ("agent", "Look"), ("run", {"x": 1}, "file"),
    ]  # fmt: skip
    turn = run.steps[1]
    assert (turn.index, turn.logprobs, turn.tokens, turn.cost) == (3, (-1.0,), None, 0.5)
    assert (turn.observation, turn.confidence) == ("file\nb", 0.75)
    assert turn.extra == {
        "step_id": 4, "reasoning_content": "hm", "note": "n", "metrics": {"prompt_tokens": 3},
    }  # fmt: skip
    assert (run.meta["reward"], run.meta["cost"], run.meta["model"]) == (0.0, 2.0, "m")
    assert (run.trial, run.extra["n_copied_steps"], run.extra["notes"]) == ("trial", 1, "n")
    (turn,) = read(write, trajectory(TURN | {"metrics": {"cost_usd": 1}})).steps
    assert (turn.cost, turn.extra) == (1.0, {})
    for observation in ("x", {}, {"results": None}):
        (turn,) = read(write, trajectory(TURN | {"observation": observation}, agent="m")).steps
        assert turn.observation is None


def test_an_exception_is_the_stop(write):
    for name, kind in (
        ("AgentTimeoutError", "unknown"), ("ContextLengthExceededError", "informative"),
        ("NonZeroAgentExitCodeError", "informative"), ("SomethingNewError", "unknown"),
    ):  # fmt: skip
        for reward in (0, 1):
            run = read(write, trajectory(), result(reward) | ended_by(name))
            ended = kind if kind == "unknown" else "complete"
            assert (run.outcome, run.stop_reason, run.stop_kind) == (reward, name, ended)
        run = read(write, trajectory(), ended_by(name))
        assert (run.outcome, run.stop_kind) == (-1, kind)
    for name in ("EnvironmentStartTimeoutError", "VerifierTimeoutError"):  # faults of the bench
        write("t/result.json", result() | ended_by(name))
        path = write("t/trajectory.json", trajectory() | {"steps": []})
        with pytest.warns(UserWarning, match=f"1 of 1 run is left out.*{name} 1"):
            assert not io.read_runs(path, format="atif")


def test_which_result_is_that_of_a_trajectory(write):
    def outcome(place):
        return io.read_runs(write(place, trajectory()), format="atif")[0].outcome

    write("job/result.json", result(0))  # of the job
    assert outcome("job/t/agent/trajectory.json") == -1
    write("job/t/result.json", result(1))
    assert outcome("job/t/agent/trajectory.json") == 1
    write("job/t/agent/result.json", result(0))
    assert outcome("job/t/agent/trajectory.json") == 0


def test_a_trajectory_goes_on_in_other_files(write):
    for k, rest in ((1, "elsewhere/trajectory.cont-2.json"), (2, "trajectory.json")):
        more = trajectory(TURN | {"message": str(k)}, final_metrics={"total_cost_usd": float(k)})
        write(f"t/trajectory.cont-{k}.json", more | {"continued_trajectory_ref": rest})
    run = read(write, trajectory(continued_trajectory_ref="trajectory.cont-1.json"))
    assert ([step.text for step in run.steps], run.meta["cost"]) == (["Done", "1", "2"], 2.0)
    run = read(write, trajectory(continued_trajectory_ref="gone.json"))
    assert [step.text for step in run.steps] == ["Done"]


def test_what_cannot_be_read(write):
    loud = TURN | {"metrics": {"logprobs": [0.5]}}
    for steps, words in (
        (None, "its steps are"), (3, "its steps are"), ([TURN, 3], "message 1 is int"),
        ([TURN | {"observation": {"results": "x"}}], "message 0.*results.*str, not a list"),
        ([TURN, TURN | {"observation": {"results": [1]}}], "message 1: a result .* is int"),
        ([loud], "message 0: the logprob is 0.5"),
    ):  # fmt: skip
        raw = {"trajectory_id": "q", "steps": steps, "continued_trajectory_ref": "x"}
        with pytest.raises(ValueError, match=rf"run 'q' \(index 0\).*{words}"):
            read(write, trajectory() | raw)
    for content in ({"schema_version": 2}, {"steps": []}, {"trajectory_id": "t"}):
        with pytest.raises(ValueError, match=r"x\.json"):
            io.read_runs(write("x.json", content))
    for beside in ({"agent": {}}, {"session_id": "s"}):
        assert io.read_runs(write("x.json", {"steps": [TURN]} | beside))[0].steps
