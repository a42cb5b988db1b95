"""Steps of agents as messages: those of smolagents, Vercel's AI SDK, LangChain, OpenHands."""

import pytest

from trajscore import io
from trajscore.io._steps import is_step, results_of, turn_of_step, turns_of_actions

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
