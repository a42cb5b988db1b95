"""tau-bench and tau2-bench: fields of a trajectory, what cut it off, and rewards."""

import pytest

from known_dialogue import said
from trajscore import io

ASK, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}
STOP = {"role": "user", "content": "Bye ###STOP###"}


def calling(name):
    call = {"id": "c", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def trajectory(*messages, **fields):
    own = {"task_id": 7, "trial": 1, "reward": 0.0, "info": {}, "traj": list(messages)}
    return own | fields


def read(write, *messages, max_turns=2, **fields):
    log = write("a.json", [trajectory(*messages, **fields)])
    return io.read_runs(log, format="tau_bench", max_turns=max_turns)[0]


def test_all_fields(write):
    run = read(write, ASK, ANSWER, reward=1.0, user_cost=0.5)
    assert (run.id, run.task, run.trial, run.outcome) == ("7-1", "7", 1, 1)
    assert (run.meta["reward"], run.extra) == (1.0, {"info": {}, "user_cost": 0.5})
    assert [step.text for step in run.steps] == ["Hi", "Yes"]
    assert read(write, ASK, ANSWER, reward=None).outcome == -1
    nameless = read(write, ASK, ANSWER, task_id=None)
    assert (nameless.id, nameless.task) == ("a-0", None)


def test_a_run_at_the_cap_that_has_not_ended_was_cut_off(write):
    for messages, cut in (
        ([ASK, ANSWER, ASK], False), ([ASK, ANSWER, ASK, ANSWER], True),
        ([ASK, ANSWER, ASK, ANSWER, ASK], True), ([ASK, ANSWER, ASK, ANSWER, STOP], False),
        ([ASK, ANSWER, calling("find")], True),
        ([ASK, ANSWER, calling("transfer_to_human_agents")], False),
        ([ASK, ANSWER, ASK, ANSWER, ASK, ANSWER, STOP], False),
    ):  # fmt: skip
        run = read(write, *messages)
        assert (run.stop_reason, run.outcome) == (("max_steps", -1) if cut else (None, 0)), messages
        assert run.stop_kind == ("administrative" if cut else "complete")
        assert read(write, *messages, reward=1.0).outcome == 1
        assert read(write, *messages, max_turns=None).stop_reason is None
    for n, cut in ((29, False), (30, True)):  # the usual cap
        (run,) = io.read_runs(write("a.json", [trajectory(ASK, *[ANSWER] * n)]))
        assert run.stop_reason == ("max_steps" if cut else None)


def test_what_cannot_be_read(write):
    for max_turns in (0, -1, 2.5, True, "3"):
        with pytest.raises(ValueError, match="max_turns must be a whole number"):
            read(write, ASK, ANSWER, max_turns=max_turns)
    bad = {
        "'traj'": trajectory(traj=None), "'x', not a number": trajectory(ANSWER, reward="x"),
        "dict, not a list": trajectory(traj={}), "int": 3,
    }  # fmt: skip
    with pytest.warns(UserWarning, match=r"4 of 5 runs.*\(index 1\)"):
        runs = io.read_runs(write("t.json", [trajectory(ANSWER, reward=1.0), *bad.values()]))
    for k, (words, one) in enumerate(zip(bad, runs.left_out, strict=True), 1):
        assert words in one.reason
        assert one.index == k
    for fields in ({"traj": "id"}, {"traj": 3}, {"trajectory": [{"action": "ls"}]}):
        record = {"task_id": 1, "reward": 1.0} | fields
        with pytest.raises(ValueError, match=r"a\.json"):
            io.read_runs(write("a.json", record), format="tau_bench")


HELLO = {"role": "assistant", "content": "Hello"}


def simulation(name, reason="user_stop", reward=1.0, **more):
    own = {"id": name, "task_id": "t", "trial": 0, "messages": [HELLO]}
    return own | {"termination_reason": reason, "reward_info": {"reward": reward}} | more


def read_simulations(write, *runs, **options):
    return io.read_tau2(write("log.json", {"info": {}, "simulations": list(runs)}), **options)


def test_the_stop_reason_comes_before_the_reward(write):
    for reason, reward, outcome, kind in (
        ("agent_stop", 1.0, 1, "complete"), ("user_stop", 1 + 1e-7, 1, "complete"),
        ("user_stop", 0.5, 0, "complete"), ("user_stop", None, -1, "complete"),
        ("tau2.TerminationReason.USER_STOP", 0.0, 0, "complete"),
        ("max_steps", 0.0, -1, "administrative"), ("max_steps", 1.0, 1, "complete"),
        ("timeout", 0.0, 0, "unknown"), ("timeout", None, -1, "unknown"),
        ("too_many_errors", 0.0, 0, "complete"), ("agent_error", None, -1, "informative"),
    ):  # fmt: skip
        (run,) = read_simulations(write, simulation("a", reason, reward))
        assert (run.outcome, run.stop_kind) == (outcome, kind), (reason, reward)
        assert run.meta["reward"] == reward
        assert run.stop_reason == reason.rpartition(".")[2].lower()


def test_faults_of_the_bench_are_excluded_and_counted(write):
    for reason in ("user_error", "infrastructure_error", "unexpected_error"):
        with pytest.warns(UserWarning, match=rf"1 of 2 runs is left out, as .* \({reason} 1\)"):
            runs = read_simulations(
                write, simulation("a"), simulation("b", reason, 0.0, messages=[])
            )
        assert [run.id for run in runs] == ["a"]
        assert [(one.id, one.index, one.kind) for one in runs.left_out] == [("b", 1, "excluded")]


def test_runs_that_cannot_be_read_are_named(write):
    bad = {
        "termination_reason": simulation("b", None), "termination": simulation("b", ["user_stop"]),
        "int": 17, "NoneType, not a list": simulation("b", messages=None),
        "int, not a list": simulation("b", messages=3), "'good'": simulation("b", reward="good"),
    }  # fmt: skip
    with pytest.warns(UserWarning, match=r"6 of 7 runs could not be read.*run 'b' \(index 1\)"):
        runs = read_simulations(write, simulation("a"), *bad.values())
    assert len(runs) == 1
    for words, one in zip(bad, runs.left_out, strict=True):
        assert words in one.reason
    with pytest.raises(ValueError, match="there are no runs in"):
        read_simulations(write)
    for other in ({"something": 1}, {"info": {}}, {"reward_info": {}, "x": 1}):
        with pytest.raises(ValueError, match=r"other\.json.*under 'simulations'"):
            io.read_tau2(write("other.json", other))


def test_turns_calls_and_results(write):
    messages = [
        {"role": "assistant", "content": None, "cost": 0.25, "tool_calls":
         [{"id": "1", "name": "f", "arguments": {}, "requestor": "assistant"},
         {"id": "2", "name": "g", "arguments": {"a": [1]}}]},
        {"role": "tool", "tool_messages": [{"role": "tool", "id": "2", "content": "two",
         "error": True}, {"role": "tool", "id": "1", "content": "one", "error": False}]},
        {"role": "user", "tool_calls": [{"id": "3", "name": "h", "requestor": "user"}]},
        {"role": "tool", "id": "3", "content": "three", "requestor": "user"},
    ]  # fmt: skip
    (run,) = runs = read_simulations(write, simulation("a", messages=messages, seed=3, policy="x"))
    turn, user = run.steps
    assert said(run) == [("f", {}, "one"), ("g", {"a": [1]}, "two"), ("h", {}, "three")]
    assert (run.task, run.trial) == ("t", 0)
    assert [call.error for call in turn.tool_calls] == [False, True]
    assert (turn.observation, turn.cost, user.observation) == ("two\none", 0.25, "three")
    assert user.tool_calls[0].extra == {"requestor": "user"}
    assert run.extra == {"reward_info": {"reward": 1.0}, "policy": "x"}
    assert (run.meta["seed"], *runs.info.values()) == (3, {"info": {}})
    # log-probabilities, and the confidence that agent-tracer asks for
    scores = {"content": [{"token": "Hi", "logprob": -0.5, "top_logprobs": []}]}
    raw = {"choices": [{"logprobs": scores, "index": 0}], "model": "m"}
    sure = {"uncertainty": {"self_assessed_confidence": 0.75}}
    messages = [
        HELLO | {"raw_data": raw}, HELLO | sure, HELLO | sure | {"confidence": 0.25},
        HELLO | {"uncertainty": None}, {"role": "user", "content": "Hi"} | sure,
    ]  # fmt: skip
    (run,) = read_simulations(write, simulation("a", messages=messages))
    assert run.steps[0].logprobs == (-0.5,)
    assert [step.confidence for step in run.steps] == [None, 0.75, 0.25, None, 0.75]


def test_folders_with_one_file_a_simulation(write, tmp_path):
    head = {"info": {"max_steps": 9}, "tasks": [], "simulations": [{"id": "x"}]}
    path = write("exp/results.json", head)
    write("exp/simulations/a.json", simulation("a"))
    write("exp/simulations/b.json", simulation("b", "max_steps", 0.0))
    for place in (path, path.parent):
        runs = io.read_tau2(place)
        assert [(run.id, run.outcome, run.meta["max_steps"]) for run in runs] == [
            ("a", 1, 9), ("b", -1, 9),
        ]  # fmt: skip
    assert [run.id for run in io.read_runs(path.parent)] == ["a", "b"]
    write("exp/results.json", head | {"simulations": [simulation("x"), {"id": "y"}]})
    assert [run.id for run in io.read_tau2(path)] == ["x", "a", "b"]
    for other in ("exp/other.json", "alone/results.json"):
        listed = write(other, {"simulations": [simulation("z"), {"id": "y"}]})
        with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
            assert [run.id for run in io.read_tau2(listed)] == ["z"]
    for name in ("a", "b"):  # result files in a folder of that name
        runs = [simulation(name + "1"), simulation(name + "2", "max_steps")]
        file = write(f"data/simulations/{name}.json", head | {"simulations": runs})
    assert [(run.id, run.meta["max_steps"]) for run in io.read_tau2(file)] == [("b1", 9), ("b2", 9)]
    assert [run.id for run in io.read_runs(tmp_path / "data")] == ["a1", "a2", "b1", "b2"]
    for alone in (simulation("a"), simulation("a", ticks=[])):
        assert len(io.read_runs(write("one.json", alone), format="tau2")) == 1
    lines = write("log.jsonl", [simulation("a"), simulation("b")], lines=True)
    assert [run.id for run in io.read_runs(lines)] == ["a", "b"]
    assert read_simulations(write, simulation(None))[0].id == "t-0"
