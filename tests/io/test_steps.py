"""Steps of agents, which hold a turn and what came of it: smolagents, LangChain, OpenHands ..."""

import sqlite3

import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, TOLD, said, turns
from trajscore import io

CALLS = [{"id": f"c{k}", "name": name} for k, name in enumerate("fg")]


def step(**fields):
    """Return a step of smolagents."""
    return {"model_output_message": {"role": "assistant"}, **fields}


def gemini(kind="gemini", **fields):
    return {"id": "1", "timestamp": "t", "type": kind, "content": ""} | fields


def vercel(*content, **fields):
    return {"finishReason": "stop", "content": list(content)} | fields


TOOL_CALL = {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}}
STEPS = [
    # what a step says
    (step(model_output="a", plan="b"), [("agent", "a")]), (step(plan="b"), [("agent", "b")]),
    (step(is_final_answer=True, observations="c"), [("agent", "c")]),
    (step(is_final_answer=False, observations="c"), []), (step(is_final_answer=True), []),
    (step(action_output="d"), []),
    (step(action_output="d", model_output_message=None), [("agent", "d")]),
    # its calls, and their results: a line each, or that of none
    (step(tool_calls=CALLS, observations="1\n2"), [("f", {}, "1"), ("g", {}, "2")]),
    (step(tool_calls=CALLS, observations="Observation:\n1\n2"), [("f", {}, "1"), ("g", {}, "2")]),
    (step(tool_calls=CALLS, observations="1\n2\n3"), [("f", {}, None), ("g", {}, None)]),
    (step(tool_calls=CALLS[:1], observations="1\n2"), [("f", {}, "1\n2")]),
    (step(tool_calls=CALLS), [("f", {}, None), ("g", {}, None)]),
    (step(model_output_message={"content": "a", "tool_calls": CALLS[:1]}, observations="1"),
     [("agent", "a"), ("f", {}, "1")]),
    (step(model_output_message={"tool_calls": CALLS[:1]}, tool_calls=CALLS[1:]), [("g", {}, None)]),
    (step(tool_calls=CALLS[:1], observations="1", error={"message": "lost"}),
     [("f", {}, "1\nlost")]),
    # Vercel's AI SDK
    (vercel({"type": "text", "text": "a"}, TOOL_CALL,
     {"type": "tool-result", "toolCallId": "c", "output": "1"}), [("agent", "a"), ("f", {}, "1")]),
    (vercel(TOOL_CALL, {"type": "tool-error", "toolCallId": "c", "error": "1"}), [("f", {}, "1")]),
    # Gemini CLI
    (gemini(content="a"), [("agent", "a")]), (gemini("info", content="a"), [("environment", "a")]),
    (gemini(toolCalls=[{"id": "c", "name": "f", "args": {"n": 3}}]), [("f", {"n": 3}, None)]),
]  # fmt: skip


def test_what_a_step_says_and_what_came_of_it():
    wrong = []
    for one, expected in STEPS:
        got = said(io.as_run([one]))
        wrong += [(one, got)] if got != expected else []
    assert not wrong


def test_what_else_a_step_has():
    failed = step(tool_calls=CALLS, observations="1", error={"message": "lost"})
    assert [call.error for call in io.as_run([failed]).steps[0].tool_calls] == [True, True]
    result = {"functionResponse": {"id": "c1", "response": {"output": "a.txt"}}}
    call = {"id": "c1", "name": "ls", "args": {"path": "."}, "result": [result]}
    turn = gemini(toolCalls=[call], thoughts=["Hm"], tokens={"input": 10, "output": 5})
    run = io.as_run([turn])
    assert said(run) == [("ls", {"path": "."}, '{"output": "a.txt"}')]
    assert (run.steps[0].extra["thoughts"], run.meta["input_tokens"]) == (["Hm"], 10)
    for one in (step(token_usage={"input_tokens": 3}), vercel(usage={"inputTokens": 3})):
        assert io.as_run([one]).meta["input_tokens"] == 3


@pytest.mark.parametrize("lines", [True, False])
def test_results_of_agents_are_runs(write, lines):
    name = "r.jsonl" if lines else "r.json"
    call = {"id": "c1", "function": {"name": "find", "arguments": {"order": 3}}}
    steps = [
        {"task": ASK["content"], "task_images": None},
        step(model_output="I look.", tool_calls=[call], observations="in Paris"),
        step(model_output="In Paris.", is_final_answer=True),
    ]
    result = {"output": "In Paris.", "state": "max_steps_error", "steps": steps, "timing": {}}
    (run,) = io.read_runs(write(name, [result] if lines else result, lines=lines))
    assert (said(run), run.stop_kind) == (ALL, "administrative")
    own = {"toolCallId": "c1", "toolName": "find"}
    parts = [
        {"type": "tool-call", "input": {"order": 3}},
        {"type": "tool-result", "output": "in Paris"},
    ]
    first = vercel({"type": "text", "text": "I look."}, *(part | own for part in parts))
    steps = [first, vercel({"type": "text", "text": "In Paris."})]
    result = {"prompt": ASK["content"], "text": "In Paris.", "steps": steps}
    (run,) = io.read_runs(write(name, [result] if lines else result, lines=lines))
    assert said(run) == ALL
    state = {"output": "In Paris.", "_state": {"message_history": [ASK, LOOK, FOUND, TOLD]}}
    (run,) = io.read_runs(write(name, [state] if lines else state, lines=lines))
    assert said(run) == ALL


# ------------------------------------------------------------------ actions of LangChain


def action(tool, key=None, log="I look.", **more):
    message = [{"kwargs": {"content": log}}] if log else None
    fields = {"tool": tool, "tool_input": {"n": 3}, "message_log": message, "tool_call_id": key}
    return fields | more


def test_actions_and_what_came_of_them(write):
    def read(*steps):
        record = {"input": "Hi", "output": "Yes", "intermediate_steps": list(steps)}
        first, *others, last = said(io.read_runs(write("log.json", record))[0])
        assert (first, last) == (("user", "Hi"), ("agent", "Yes"))
        return others

    look, n = ("agent", "I look."), {"n": 3}
    assert read([action("f", "c1"), "1"], [action("g", "c2"), "2"]) == [
        look, ("f", n, "1"), ("g", n, "2")
    ]  # fmt: skip
    other = [action("f", "c1"), "1"], [action("g", "c2", "Next."), "2"], [action("h", "c3"), "3"]
    assert read(*other) == [
        look, ("f", n, "1"), ("agent", "Next."), ("g", n, "2"), look, ("h", n, "3"),
    ]  # fmt: skip
    plain = [[{"tool": name, "tool_input": "x", "log": f"Use {name}."}, name] for name in "fg"]
    assert read(*plain) == [
        ("agent", "Use f."), ("f", "x", "f"), ("agent", "Use g."), ("g", "x", "g"),
    ]  # fmt: skip
    dumped = {"lc": 1, "kwargs": {"tool": "f", "log": "Use f."}}
    assert read([dumped, "1"]) == [("agent", "Use f."), ("f", {}, "1")]
    assert read([action("f", "c1"), None]) == [look, ("f", n, "")]
    for bad in (["f", "1"], ["f"], []):
        with pytest.raises(ValueError, match="message 1"):
            read(bad)


# ------------------------------------------------------------------ events of OpenHands


def event(number, name, words="", *, source="agent", answer=None, **arguments):
    """Return an event as OpenHands saves it; several may belong to one answer of the model."""
    fields = {"id": number, "source": source, "action": name, "message": "Shown"}
    fields["args"] = {"content" if name == "message" else "thought": words} | arguments
    if answer is not None:
        usage = {"prompt_tokens": 2}
        fields["tool_call_metadata"] = {"model_response": {"id": answer, "usage": usage}}
    return fields


def seen(number, cause, words, kind="run"):
    return {"id": number, "source": "agent", "observation": kind, "content": words, "cause": cause}


EVENTS = [
    (event(1, "message", "Hi", source="user"), [("user", "Hi")]),
    (event(1, "message", "Hi"), [("agent", "Hi")]),
    (event(1, "system", source="environment", content="Hi"), [("system", "Hi")]),
    (event(1, "run", "I look.", source="user", command="ls"), []),
    (event(1, "finish", "Done", source="user"), []),
    (event(1, "run", "I look.", command="ls"),
     [("agent", "I look."), ("run", {"command": "ls"}, None)]),
    (event(1, "finish", "So.", final_thought="Done."), [("agent", "Done.")]),
    (event(1, "finish", "So.", final_thought=""), [("agent", "So.")]),
    (event(1, "think", "Hm."), [("agent", "Hm.")]),
    (event(1, "think") | {"args": {}}, [("agent", "Shown")]),
    (event(1, "run") | {"args": {}}, [("run", {}, None)]),
    (seen(3, 2, "x", "agent_state_changed"), []),
]  # fmt: skip


def test_what_an_event_of_openhands_says(write):
    start = event(0, "message", "Go", source="user"), event(9, "message", "Bye")
    for one, expected in EVENTS:
        (run,) = io.read_runs(write("events.json", [start[0], one, start[1]]))
        system = [part for part in expected if part[0] == "system"]
        others = [part for part in expected if part[0] != "system"]
        assert said(run) == [*system, ("user", "Go"), *others, ("agent", "Bye")], one


def test_actions_of_one_answer_are_one_turn_of_openhands(write):
    events = [
        event(1, "think", "Hm.", answer="a"), event(2, "run", answer="a"), seen(3, 2, "x"),
        event(4, "read", answer="a"), seen(5, 4, "y"), event(6, "run", answer="b"),
        event(7, "think", "So.", answer="b"), event(8, "run"), event(9, "run"), ASK,
    ]  # fmt: skip
    (run,) = io.read_runs(write("events.json", events))
    assert turns(run) == [
        ("agent", "Hm."), ("agent", ""), ("agent", ""), ("agent", ""), ("user", ASK["content"]),
    ]  # fmt: skip
    assert [[call.name for call in one.tool_calls] for one in run.steps] == [
        ["run", "read"], ["run"], ["run"], ["run"], [],
    ]  # fmt: skip


def test_databases_are_refused(tmp_path):
    with sqlite3.connect(tmp_path / "session.db") as database:
        database.execute("create table t (x)")
    with pytest.raises(ValueError, match=r"session\.db.*SQLite"):
        io.read_runs(tmp_path / "session.db")
