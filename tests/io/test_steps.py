"""Steps of agents as messages: those of smolagents, Vercel's AI SDK, LangChain, OpenHands."""

import pytest

from trajscore import io
from trajscore.io._steps import (
    is_event_of_openhands,
    is_step,
    results_of,
    turn_of_step,
    turns_of_actions,
    turns_of_events,
)

CALLS = [{"id": "c1", "function": {"name": "f"}}, {"id": "c2", "function": {"name": "g"}}]
LOG = [{"kwargs": {"content": "I look."}}]


@pytest.mark.parametrize(
    ("fields", "is_one"),
    [
        ({"task": "Sum up", "task_images": None}, True),
        ({"task": "Sum up", "task_images": None, "step": 1}, False),
        ({"task": ["x"], "task_images": None}, False),
        ({"task": "Sum up"}, False),
        ({"model_output_message": None}, True),
        ({"finishReason": "stop", "content": []}, True),
        ({"finishReason": "stop", "content": [], "role": "assistant"}, False),
        ({"finishReason": "stop", "content": "x"}, False),
        ({"content": []}, False),
    ],
)
def test_which_records_are_steps(fields, is_one):
    assert is_step(fields) is is_one


def step(**fields):
    return turn_of_step({"model_output_message": {"role": "assistant"}} | fields)


def test_a_task_is_the_users():
    assert turn_of_step({"task": "Sum up", "task_images": None}) == [
        {"role": "user", "content": "Sum up"}
    ]


def test_a_step_has_its_calls_and_their_results():
    turn, *results = step(
        model_output="I look.", tool_calls=CALLS, observations="1\n2", token_usage={"n": 3}
    )
    assert turn["content"] == "I look."
    assert (turn["tool_calls"], turn["usage"]) == (CALLS, {"n": 3})
    assert [(one["tool_call_id"], one["content"]) for one in results] == [("c1", "1"), ("c2", "2")]
    assert not any("error" in one for one in results)
    (turn,) = step(model_output="I look.", tool_calls=CALLS)
    assert turn["tool_calls"] == CALLS


def test_calls_of_the_answer_stand_in_for_those_of_the_step():
    answer = {"content": "I look.", "tool_calls": CALLS[:1]}
    turn, result = step(model_output_message=answer, observations="1")
    assert (turn["content"], turn["tool_calls"]) == ("I look.", CALLS[:1])
    assert result["tool_call_id"] == "c1"
    turn, _ = step(model_output_message=answer, tool_calls=CALLS[1:], observations="1")
    assert turn["tool_calls"] == CALLS[1:]


def test_an_error_is_observed_and_marks_the_results():
    _, result = step(
        model_output="", tool_calls=CALLS[:1], observations="1", error={"message": "lost"}
    )
    assert (result["content"], result["error"]) == ("1\nlost", True)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"model_output": "a", "plan": "b"}, "a"),
        ({"plan": "b"}, "b"),
        ({"is_final_answer": True, "observations": "c"}, "c"),
        ({"is_final_answer": False, "observations": "c"}, ""),
        ({"is_final_answer": True}, ""),
        ({"is_final_answer": True, "observations": "c", "model_output": "a"}, "a"),
        ({"action_output": "d"}, ""),
        ({"action_output": "d", "model_output_message": None}, "d"),
        ({"action_output": "d", "model_output_message": None, "model_output": "a"}, "a"),
    ],
)
def test_what_a_step_says(fields, text):
    assert step(**fields)[0]["content"] == text


def test_a_step_of_vercels():
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}}
    result = {"type": "tool-result", "toolCallId": "c1", "output": "1"}
    fields = {"finishReason": "stop", "content": [call, result], "usage": {"n": 3}}
    turn, answer = turn_of_step(fields)
    assert (turn["role"], turn["usage"]) == ("assistant", {"n": 3})
    assert (turn["tool_calls"][0]["name"], answer["content"]) == ("f", "1")


@pytest.mark.parametrize(
    ("calls", "text", "results"),
    [
        (CALLS, "1\n2", [("1", "c1"), ("2", "c2")]),
        (CALLS, "Observation:\n1\n2", [("1", "c1"), ("2", "c2")]),
        (CALLS, "1", [("1", "c1, c2")]),
        (CALLS, "1\n2\n3", [("1\n2\n3", "c1, c2")]),
        (CALLS[:1], "1", [("1", "c1")]),
        (CALLS[:1], "1\n2", [("1\n2", "c1")]),
        ([], "1", [("1", None)]),
    ],
)
def test_what_several_calls_gave(calls, text, results):
    read = results_of(calls, text)
    assert [(one["content"], one["tool_call_id"]) for one in read] == results
    assert {one["role"] for one in read} == {"tool"}


def action(tool, k=None, log=LOG, **more):
    return {"tool": tool, "tool_input": {"n": 3}, "message_log": log, "tool_call_id": k} | more


def test_actions_of_one_message_are_one_turn():
    steps = [[action("f", "c1"), "1"], [action("g", "c2"), "2"], [action("h", log=None), "3"]]
    first, one, two, last, three = turns_of_actions(steps)
    assert first["content"] == "I look."
    assert [(call["name"], call["id"]) for call in first["tool_calls"]] == [
        ("f", "c1"), ("g", "c2")
    ]  # fmt: skip
    assert first["tool_calls"][0]["args"] == {"n": 3}
    assert [(m["content"], m["tool_call_id"]) for m in (one, two, three)] == [
        ("1", "c1"), ("2", "c2"), ("3", None)
    ]  # fmt: skip
    assert [call["name"] for call in last["tool_calls"]] == ["h"]


def test_actions_without_messages_are_a_turn_each():
    steps = [[{"tool": name, "log": f"Use {name}."}, name] for name in "fg"]
    first, _, second, _ = turns_of_actions(steps)
    assert (first["content"], second["content"]) == ("Use f.", "Use g.")
    assert len(second["tool_calls"]) == 1


def test_actions_that_langchain_has_dumped():
    (turn, result) = turns_of_actions([[{"lc": 1, "kwargs": {"tool": "f", "log": "Use f."}}, "1"]])
    assert (turn["content"], turn["tool_calls"][0]["name"]) == ("Use f.", "f")
    assert result["content"] == "1"


def test_an_action_without_an_observation():
    turn, result = turns_of_actions([action("f", "c1")])
    assert turn["tool_calls"][0]["id"] == "c1"
    assert result["content"] is None
    first, *_ = turns_of_actions([["f", "1"]])
    assert first == "f"  # which is not an action, as the reader will say


# ------------------------------------------------------------------ events of OpenHands


def event(number, name, words="", *, source="agent", answer=None, **arguments):
    """Return an event as OpenHands saves it; several may belong to one answer of the model."""
    fields = {"id": number, "source": source, "action": name, "message": "Shown"}
    fields["args"] = {"content" if name == "message" else "thought": words} | arguments
    if answer is not None:
        fields["tool_call_metadata"] = {"model_response": {"id": answer}}
    return fields


def seen(number, cause, text):
    return {
        "id": number,
        "source": "agent",
        "observation": "run",
        "content": text,
        "extras": {},
    } | ({} if cause is None else {"cause": cause})


HISTORY = [
    event(0, "message", "Fix it", source="user"),
    seen(1, None, ""),  # a change of the agent's state
    event(2, "run", "I look.", answer="a", command="ls"),
    seen(3, 2, "one file"),
    event(4, "run", answer="a", command="cat"),
    seen(5, 4, "empty"),
    event(6, "finish", "", final_thought="Done."),
]


@pytest.mark.parametrize("paired", [False, True])
def test_observations_of_openhands_are_results_of_their_cause(write, paired):
    history = HISTORY if not paired else [HISTORY[:2], HISTORY[2:4], HISTORY[4:6], HISTORY[6:]]
    lines = [{"instance_id": f"i{k}", "history": history, "report": {"resolved": k > 0}}
             for k in range(2)]  # fmt: skip
    runs = io.read_runs(write("output.jsonl", lines, lines=True))
    assert [(run.task, run.outcome) for run in runs] == [("i0", 0), ("i1", 1)]
    for run in runs:
        assert [(step.actor, step.text) for step in run.steps] == [
            ("user", "Fix it"), ("agent", "I look."), ("agent", "Done."),
        ]  # fmt: skip
        calls = [(call.arguments["command"], call.result) for call in run.steps[1].tool_calls]
        assert calls == [("ls", "one file"), ("cat", "empty")]


def test_a_file_of_events_is_a_run(write):
    (run,) = io.read_runs(write("events.json", HISTORY))
    assert [step.actor for step in run.steps] == ["user", "agent", "agent"]


@pytest.mark.parametrize(
    ("names", "text", "results"),
    [
        ("", "x", [(None, "x")]),
        ("a", "Observation:\nx", [("a", "Observation:\nx")]),
        ("a", "1\n2", [("a", "1\n2")]),
        ("ab", "Observation:\n1\n2", [("a", "1"), ("b", "2")]),
        ("ab", "1\n2\n3", [("a, b", "1\n2\n3")]),
        ("ab", "Observation:\n1", [("a, b", "Observation:\n1")]),
        ("ab", "", [("a, b", "")]),
    ],
)
def test_a_line_for_each_of_several_calls(names, text, results):
    found = results_of([{"id": name} for name in names], text)
    assert [(result["tool_call_id"], result["content"]) for result in found] == results


@pytest.mark.parametrize(
    ("fields", "is_one"),
    [
        ({"action": "run", "args": {}}, True),
        ({"action": "run", "message": "m"}, True),
        ({"action": "run"}, False),
        ({"args": {}, "message": "m"}, False),
        ({"action": 1, "args": {}}, False),
        ({"observation": "run", "content": ""}, True),
        ({"observation": "run"}, False),
        ({"observation": None, "content": ""}, False),
        ({"action": "run", "args": {}, "role": "assistant"}, False),
        ({"action": "run", "args": {}, "source": "tool"}, False),
        ({"action": "run", "args": {}, "source": "environment"}, True),
    ],
)
def test_which_records_are_events_of_openhands(fields, is_one):
    event = {"id": 1, "source": "agent"} | fields
    assert is_event_of_openhands(event) is is_one
    assert is_step(event) is is_one
    assert not is_event_of_openhands({k: v for k, v in event.items() if k != "id"})
    assert not is_event_of_openhands({k: v for k, v in event.items() if k != "source"})
    assert not is_event_of_openhands([event])


@pytest.mark.parametrize(
    ("fields", "is_one"),
    [
        ({}, True),
        ({"type": "info"}, True),
        ({"type": "warning"}, True),
        ({"type": "error"}, True),
        ({"type": "user"}, False),
        ({"role": "assistant"}, False),
    ],
)
def test_which_records_are_turns_of_gemini_cli(fields, is_one):
    turn = {"id": "a", "timestamp": "t", "content": "x", "type": "gemini"} | fields
    assert is_step(turn) is is_one
    for name in ("id", "timestamp", "content"):
        assert not is_step({k: v for k, v in turn.items() if k != name})


def test_a_turn_of_gemini_cli_has_its_calls_and_their_results():
    answer = {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "1"}}}
    call = {"id": "c1", "name": "f", "args": {"n": 3}, "result": [answer]}
    own = {"id": "a", "timestamp": "t", "model": "m"}
    turn = own | {"type": "gemini", "content": "I look.", "toolCalls": [call], "tokens": {"n": 1}}
    said, result = turn_of_step(turn)
    assert {name: said[name] for name in own} == own
    assert not {"type", "toolCalls", "tokens"} & said.keys()
    assert (said["role"], said["usage"]) == ("assistant", {"n": 1})
    assert [(one["name"], one["id"]) for one in said["tool_calls"]] == [("f", "c1")]
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")
    (notice,) = turn_of_step(own | {"type": "info", "content": "Hi"})
    assert (notice["role"], notice["usage"]) == ("info", None)


OWN = {"id": 1, "timestamp": None, "message": "Shown"}


@pytest.mark.parametrize(
    ("made", "messages"),
    [
        (event(1, "message", "Hi", source="user"), [{"role": "user", "content": "Hi"}]),
        (event(1, "message", "Hi"), [{"role": "assistant", "content": "Hi"}]),
        (event(1, "system", content="Hi"), [{"role": "system", "content": "Hi"}]),
        (
            event(1, "system", source="environment", content="Hi"),
            [{"role": "system", "content": "Hi"}],
        ),
        (event(1, "run", "I look.", source="user", command="ls"), []),
        (event(1, "finish", "Done", source="user"), []),
        (
            event(1, "run", "I look.", command="ls"),
            [
                {
                    "role": "assistant",
                    "content": "I look.",
                    "usage": None,
                    "tool_calls": [{"id": 1, "name": "run", "args": {"command": "ls"}}],
                }
            ],
        ),
        (
            event(1, "run", "", command="ls"),
            [
                {
                    "role": "assistant",
                    "content": "",
                    "usage": None,
                    "tool_calls": [{"id": 1, "name": "run", "args": {"command": "ls"}}],
                }
            ],
        ),
        (
            event(1, "finish", "So.", final_thought="Done."),
            [{"role": "assistant", "content": "Done.", "usage": None}],
        ),
        (
            event(1, "finish", "So.", final_thought=""),
            [{"role": "assistant", "content": "So.", "usage": None}],
        ),
        (
            event(1, "think", "Hm."),
            [{"role": "assistant", "content": "Hm.", "usage": None}],
        ),
        (
            {**event(1, "think"), "args": {}},
            [{"role": "assistant", "content": "Shown", "usage": None}],
        ),
        (
            {**event(1, "run"), "args": {}},
            [
                {
                    "role": "assistant",
                    "content": "",
                    "usage": None,
                    "tool_calls": [{"id": 1, "name": "run", "args": {}}],
                }
            ],
        ),
    ],
)
def test_what_an_event_of_openhands_says(made, messages):
    assert turn_of_step(made) == [OWN | message for message in messages]


def test_results_of_events_of_openhands():
    own = {"role": "tool", "tool_call_id": 2}
    assert turn_of_step(seen(3, 2, "x")) == [own | {"content": "x", "error": False}]
    failed = seen(3, 2, "x") | {"observation": "error"}
    assert turn_of_step(failed) == [own | {"content": "x", "error": True}]
    assert turn_of_step(seen(3, 2, "")) == []
    assert turn_of_step(seen(3, 2, "x") | {"observation": "agent_state_changed"}) == []


def test_actions_of_one_answer_are_one_turn_of_openhands():
    def calls(message):
        return [call["name"] for call in message.get("tool_calls", ())]

    events = [
        event(1, "think", "Hm.", answer="a"),
        event(2, "run", answer="a"),
        seen(3, 2, "x"),
        [event(4, "read", answer="a"), seen(5, 4, "y")],
        event(6, "run", answer="b"),
        event(7, "think", "So.", answer="b"),
        event(8, "run"),
        event(9, "run"),
        {"role": "user", "content": "Hi"},
    ]
    turns = turns_of_events(events)
    assert [(turn["role"], turn["content"], calls(turn)) for turn in turns] == [
        ("assistant", "Hm.", ["run", "read"]), ("tool", "x", []), ("tool", "y", []),
        ("assistant", "", ["run"]), ("assistant", "", ["run"]), ("assistant", "", ["run"]),
        ("user", "Hi", []),
    ]  # fmt: skip
    assert turns_of_events([]) == []


def test_the_usage_of_an_answer_is_that_of_its_turn():
    made = event(1, "run") | {"tool_call_metadata": {"model_response": {"usage": {"n": 2}}}}
    assert turn_of_step(made)[0]["usage"] == {"n": 2}


def test_lists_that_are_no_pairs_of_an_action_and_its_observation():
    none = {"role": "tool", "content": None, "tool_call_id": None}
    for step in (["f", "1", "x"], ["f"], []):
        assert turns_of_actions([step]) == [step, none]
    assert turns_of_actions([]) == []


def test_an_action_of_another_message_begins_a_turn():
    other = [{"kwargs": {"content": "I go on."}}, {"content": "Now."}]
    steps = [
        [action("f", "c1"), "1"],
        [action("g", "c2", log=other), "2"],
        [action("h", "c3"), "3"],
    ]
    turns = [turn for turn in turns_of_actions(steps) if turn["role"] == "assistant"]
    assert [(turn["content"], [call["id"] for call in turn["tool_calls"]]) for turn in turns] == [
        ("I look.", ["c1"]), ("I go on.\nNow.", ["c2"]), ("I look.", ["c3"]),
    ]  # fmt: skip
