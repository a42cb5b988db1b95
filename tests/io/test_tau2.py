"""tau2-bench: the stop reason comes before the reward."""

import pytest

from trajscore import io
from trajscore.io.formats.tau2 import Tau2, _merge_ticks, _messages
from trajscore.io.registry import Head


def simulation(name, reason="user_stop", reward=1.0, **more):
    turn = {"role": "assistant", "content": "Hello"}
    return {
        "id": name,
        "task_id": "t",
        "trial": 0,
        "messages": [turn],
        "termination_reason": reason,
        "reward_info": {"reward": reward},
        **more,
    }


def read(write, *runs, **options):
    return io.read_tau2(write("log.json", {"info": {}, "simulations": list(runs)}), **options)


@pytest.mark.parametrize(
    ("names", "more", "recognised"),
    [
        ("info tasks", {}, True), ("info tasks x", {}, True), ("info", {}, False),
        ("simulations", {}, True), ("simulations", {"whole": True}, False),
        ("reward_info messages", {"whole": True}, True), ("messages", {"listed": True}, False),
        ("termination_reason ticks", {"listed": True}, True), ("reward_info messages", {}, False),
        ("reward_info x", {"whole": True}, False), ("termination_reason", {"listed": True}, False),
        ("ticks messages", {"whole": True}, False), ("tasks simulations", {}, True),
    ],
)  # fmt: skip
def test_files_of_the_format(names, more, recognised):
    assert Tau2().recognise(Head(dict.fromkeys(names.split()), **more)) == recognised


@pytest.mark.parametrize(
    ("reason", "reward", "outcome", "kind"),
    [
        ("agent_stop", 1.0, 1, "complete"),
        ("user_stop", 1 + 1e-7, 1, "complete"),
        ("user_stop", 0.5, 0, "complete"),
        ("TerminationReason.USER_STOP", 0.0, 0, "complete"),
        ("user_stop", None, -1, "complete"),
        ("max_steps", 0.0, -1, "administrative"),
        ("timeout", 0.0, -1, "unknown"),
        ("too_many_errors", 0.0, -1, "informative"),
        ("agent_error", 0.0, -1, "informative"),
        ("context_window_exceeded", 0.0, -1, "informative"),
        ("something_new", 0.0, -1, "unknown"),
    ],
)
def test_stop_reason_before_reward(write, reason, reward, outcome, kind):
    (run,) = read(write, simulation("a", reason, reward))
    assert (run.outcome, run.stop_kind) == (outcome, kind)
    assert run.meta["reward"] == reward


@pytest.mark.parametrize("reason", ["user_error", "infrastructure_error", "unexpected_error"])
def test_faults_of_the_bench_are_excluded_and_counted(write, reason):
    with pytest.warns(UserWarning, match=f"1 of 2 runs is excluded \\({reason} 1\\)"):
        runs = read(write, simulation("a"), simulation("b", reason, 0.0, messages=[]))
    assert [run.id for run in runs] == ["a"]
    assert [(one.id, one.index, one.kind) for one in runs.left_out] == [("b", 1, "excluded")]


def test_the_user_decides_about_timeouts(write):
    run = simulation("a", "timeout", 0.0)
    for kind in ("administrative", "informative"):
        assert read(write, run, rule={"timeout": kind})[0].stop_kind == kind
    with pytest.warns(UserWarning, match=r"1 of 1 run is excluded \(timeout 1\)"):
        assert not read(write, run, rule={"timeout": "excluded"})
    with pytest.raises(ValueError, match="stop reason 'timeout': the rule says 'failure'; say one"):
        read(write, run, rule={"timeout": "failure"})


def test_malformed_runs_are_named(write):
    bad = simulation("b")
    del bad["termination_reason"]
    with pytest.warns(UserWarning, match=r"5 of 6 runs could not be read.*run 'b' \(index 1\)"):
        runs = read(
            write,
            simulation("a"),
            bad,
            17,
            simulation("c", messages=None),
            simulation("d", reward="good"),
            simulation("e", messages=[{"role": "user", "content": "Anyone?"}]),
        )
    assert len(runs) == 1
    reasons = [one.reason for one in runs.left_out]
    assert "termination_reason" in reasons[0]
    assert "int" in reasons[1]
    assert "neither messages nor ticks" in reasons[2]
    assert "'good'" in reasons[3]
    assert "no turn of the agent" in reasons[4]


def test_nested_results_and_requestors(write):
    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "name": "f", "arguments": {}, "requestor": "assistant"},
                {"id": "2", "name": "g", "arguments": {"a": [1]}},
            ],
            "cost": 0.25,
        },
        {
            "role": "tool",
            "tool_messages": [
                {"role": "tool", "id": "2", "content": "two", "error": True},
                {"role": "tool", "id": "1", "content": "one", "error": False},
            ],
        },
        {"role": "user", "tool_calls": [{"id": "3", "name": "h", "requestor": "user"}]},
        {"role": "tool", "id": "3", "content": "three", "requestor": "user"},
    ]
    (run,) = read(write, simulation("a", messages=messages))
    agent, user = run.steps
    assert [(c.name, c.result, c.error) for c in agent.tool_calls] == [
        ("f", "one", False),
        ("g", "two", True),
    ]
    assert agent.observation == "two\none"
    assert agent.cost == 0.25
    assert user.observation == "three"
    assert user.tool_calls[0].extra == {"requestor": "user"}


@pytest.mark.parametrize("nested", [True, False])
def test_logprobs_in_raw_data_or_on_the_message(write, nested):
    scores = {"content": [{"token": "Hi", "logprob": -0.5, "top_logprobs": []}]}
    turn = {"role": "assistant", "content": "Hi"}
    if nested:
        turn["raw_data"] = {"choices": [{"logprobs": scores, "index": 0}], "model": "m"}
    else:
        turn["logprobs"] = scores
    (run,) = read(write, simulation("a", messages=[turn]))
    step = run.steps[0]
    assert (step.tokens, step.logprobs, step.top_logprobs) == (("Hi",), (-0.5,), None)
    if nested:  # what the step holds is not kept twice, all else is
        assert step.extra["raw_data"] == {"choices": [{"index": 0}], "model": "m"}


def test_folder_with_one_file_a_simulation(write, tmp_path):
    write("exp/results.json", {"info": {"max_steps": 9}, "tasks": [], "simulations": [{"id": "x"}]})
    write("exp/simulations/a.json", simulation("a"))
    write("exp/simulations/b.json", simulation("b", "max_steps", 0.0))
    runs = io.read_tau2(tmp_path / "exp")
    assert [(run.id, run.outcome, run.meta["max_steps"]) for run in runs] == [
        ("a", 1, 9),
        ("b", -1, 9),
    ]
    assert [run.id for run in io.read_runs(tmp_path / "exp")] == ["a", "b"]


def test_the_head_of_a_folder_stands_for_the_folder(write):
    head = write("exp/results.json", {"info": {"max_steps": 9}, "simulations": [{"id": "x"}]})
    write("exp/simulations/a.json", simulation("a"))
    assert [(run.id, run.meta["max_steps"]) for run in io.read_tau2(head)] == [("a", 9)]


def test_result_files_in_a_folder_called_simulations(write, tmp_path):
    for name in ("a", "b"):
        runs = [simulation(name + "1"), simulation(name + "2", "max_steps")]
        value = {"info": {"max_steps": 9}, "simulations": runs}
        path = write(f"data/simulations/{name}.json", value)
    assert [(run.id, run.meta["max_steps"]) for run in io.read_tau2(path)] == [("b1", 9), ("b2", 9)]
    assert [run.id for run in io.read_runs(tmp_path / "data")] == ["a1", "a2", "b1", "b2"]


def test_full_duplex_ticks(write):
    ticks = [
        {"tick_id": 0, "agent_chunk": {"role": "assistant", "content": "Good "}},
        {"tick_id": 1, "agent_chunk": {"role": "assistant", "content": "day"},
         "user_chunk": {"role": "user", "content": "Hi"}},
        {"tick_id": 2, "user_chunk": {"role": "user", "content": " there"}},
        {"tick_id": 3, "agent_tool_calls": [{"id": "1", "name": "f", "arguments": {}}],
         "agent_tool_results": [{"id": "1", "role": "tool", "content": "ok"}]},
    ]  # fmt: skip
    (run,) = read(write, simulation("a", messages=None, ticks=ticks))
    assert [(step.actor, step.text) for step in run.steps] == [
        ("agent", "Good day"),
        ("user", "Hi there"),
        ("agent", ""),
    ]
    assert run.steps[2].observation == "ok"


def test_a_single_simulation_and_an_empty_list(write):
    assert len(io.read_tau2(write("one.json", simulation("a")))) == 1
    with pytest.raises(ValueError, match="there are no runs in"):
        read(write)
    with pytest.raises(ValueError, match="no 'simulations'"):
        io.read_tau2(write("other.json", {"something": 1}))


def test_what_the_file_says_is_kept(write):
    runs = read(write, simulation("a", seed=3, policy="x"))
    assert runs[0].extra == {"reward_info": {"reward": 1.0}, "policy": "x"}
    assert runs[0].meta["seed"] == 3
    assert next(iter(runs.info.values())) == {"info": {}}


def test_self_assessed_confidence_of_agent_tracer(write):
    turn = {"role": "assistant", "content": "Hello"}
    messages = [
        turn | {"uncertainty": {"normalized_entropy": 0.1, "self_assessed_confidence": 0.75}},
        turn | {"uncertainty": {"self_assessed_confidence": None}},
        turn | {"uncertainty": None},
        {"role": "user", "content": "Hi", "uncertainty": {"self_assessed_confidence": 0.5}},
        turn | {"uncertainty": {"self_assessed_confidence": 0.75}, "confidence": 0.25},
    ]
    (run,) = read(write, simulation("a", messages=messages))
    assert [step.confidence for step in run.steps] == [0.75, None, None, 0.5, 0.25]
    assert run.steps[0].extra["uncertainty"]["normalized_entropy"] == 0.1


def test_costs_of_ticks_that_are_one_message_are_added_up(write):
    ticks = [
        {"agent_chunk": {"content": "Good ", "cost": 0.5}},
        {"agent_chunk": {"content": "day", "cost": 0.25}},
        {"agent_chunk": {"content": "!"}, "user_chunk": {"content": "Hi"}},
        {"user_chunk": {"content": " you", "cost": 0.1}},
        {"agent_chunk": {"content": "x", "contains_speech": False}},
        {"agent_chunk": {"content": "So"}},
    ]
    (run,) = read(write, simulation("a", messages=None, ticks=ticks))
    assert [(step.text, step.cost) for step in run.steps] == [
        ("Good day!", 0.75), ("Hi you", 0.1), ("So", None),
    ]  # fmt: skip


@pytest.mark.parametrize("reason", [None, "", 3, ["user_stop"]])
def test_a_run_must_say_why_it_ended(write, reason):
    with pytest.raises(ValueError, match="it has no termination_reason, without which its reward"):
        read(write, simulation("a", reason))


def test_only_the_last_part_of_a_reason_counts(write):
    (run,) = read(write, simulation("a", "tau2.TerminationReason.USER_STOP"))
    assert run.stop_reason == "user_stop"


def test_a_list_beside_simulations_may_hold_runs(write):
    head = write("exp/results.json", {"info": {}, "simulations": [simulation("x"), {"id": "y"}]})
    write("exp/simulations/a.json", simulation("a"))
    assert [run.id for run in io.read_tau2(head)] == ["x", "a"]
    other = write("exp/other.json", {"simulations": [simulation("z"), {"id": "y"}]})
    with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
        assert [run.id for run in io.read_tau2(other)] == ["z"]
    alone = write("alone/results.json", {"simulations": [simulation("z"), {"id": "y"}]})
    with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
        assert [run.id for run in io.read_tau2(alone)] == ["z"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"messages": [1], "ticks": [{}]}, [1]),
        ({"messages": []}, []),
        ({"messages": 3}, 3),
        ({"messages": [], "ticks": []}, []),
        ({"messages": None, "ticks": [{}]}, []),
    ],
)
def test_messages_or_ticks(raw, expected):
    assert _messages(raw) == expected


def test_calls_end_the_turn_of_a_side():
    calls = [{"id": "1", "name": "f"}]
    ticks = [
        {"agent_chunk": {"content": "a"}},
        {"agent_chunk": {"content": "b"}, "agent_tool_calls": calls},
        {"agent_chunk": {"content": "c"}, "agent_tool_results": [{"id": "1", "content": "r"}]},
        {"agent_chunk": {"content": "d", "cost": 0.5}},
        {"agent_chunk": {"content": ""}},
        {"agent_chunk": {"content": "e"}, "user_tool_results": [{"id": "2", "requestor": "x"}]},
    ]
    turns = [
        {"role": "assistant", "content": "a", "tool_calls": []},
        {"role": "assistant", "content": "b", "tool_calls": calls},
        {"role": "assistant", "content": "cd", "tool_calls": [], "cost": 0.5},
        {"requestor": "assistant", "id": "1", "content": "r", "role": "tool"},
        {"role": "assistant", "content": "e", "tool_calls": []},
        {"requestor": "x", "id": "2", "role": "tool"},
    ]
    assert _merge_ticks(ticks) == turns
    with pytest.raises(ValueError, match="tick 1 is int, not an object"):
        _merge_ticks([{}, 3])
