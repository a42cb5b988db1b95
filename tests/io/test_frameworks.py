"""What users of agent frameworks save."""

import json
import sqlite3

import pytest

from trajscore import StepConfidence, io

ASKED, LOOKS, TOLD = "Where is order 3?", "I look.", "In Paris. Confidence: 80%"
CALL = {"name": "find", "args": {"order": 3}, "id": "c1"}


def check(run, *, user=True, system=None, tokens=None):
    turns = [(step.actor, step.text) for step in run.steps]
    asked = [("user", ASKED)] if user else []
    assert turns == [*asked, ("agent", LOOKS), ("agent", TOLD)]
    (found,) = (found for step in run.steps for found in step.tool_calls)
    assert (found.name, found.arguments, found.result) == ("find", {"order": 3}, "in Paris")
    assert run.extra.get("system") == system
    assert (run.meta.get("input_tokens"), run.meta.get("output_tokens")) == (tokens or (None, None))
    assert StepConfidence().fit_transform([run])["verbal"].cells[-1] == 0.8


# ------------------------------------------------------------------ LangChain and LangGraph


def lc(name, **fields):
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": "", **fields}}


HUMAN = lc("HumanMessage", content=ASKED, id="message-1")
USAGE = {"input_tokens": 5, "output_tokens": 2}
LOOK = lc("AIMessage", content=LOOKS, tool_calls=[CALL], id="message-2", usage_metadata=USAGE)
FOUND = lc("ToolMessage", content="in Paris", tool_call_id="c1", id="message-3")
SAYS = lc("AIMessage", content=TOLD, id="message-4", usage_metadata=USAGE)
TALK = [HUMAN, LOOK, FOUND, SAYS]
TOKENS = (10, 4)


def state(n, thread="t", **more):
    config = {"configurable": {"thread_id": thread, "checkpoint_id": str(n)}}
    values = {"messages": TALK[:n]} if n else {}
    return {"values": values, "next": [], "config": config, "metadata": {"step": n}, **more}


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
def test_history_of_a_thread_is_one_run(write, lines, order):
    path = write("log.jsonl" if lines else "log.json", [state(n) for n in order], lines=lines)
    (run,) = (runs := io.read_runs(path))
    assert (run.id, runs.left_out) == ("t", [])
    check(run, tokens=TOKENS)
    (run,) = io.read_runs(write("lists.jsonl", [[state(n) for n in order]], lines=True))
    check(run, tokens=TOKENS)


def test_ids_of_states(write):
    of_server = {"values": {"messages": TALK}, "checkpoint": {"thread_id": "s"}, "next": []}
    channels = {"channel_values": {"messages": TALK}}
    saved = {"config": state(0)["config"], "checkpoint": channels, "metadata": {}}
    for record, name in ((of_server, "s"), (saved, "t"), (state(4), "t")):
        (run,) = io.read_runs(write("state.json", record))
        check(run, tokens=TOKENS)
        assert run.id == name


def test_states_without_a_thread_are_joined_by_the_ids_of_messages(write):
    (run,) = io.read_runs(write("v.jsonl", [{"messages": TALK[:n]} for n in (1, 2, 3, 4)], lines=1))
    check(run, tokens=TOKENS)


def event(kind, name, path, **data):
    *parents, own = path
    return {"event": kind, "name": name, "run_id": own, "parent_ids": parents, "data": data}


def events(run="r"):
    system = lc("SystemMessage", content="Be kind.")
    asked = {"messages": [[system, HUMAN]]}
    more = {"messages": [[system, HUMAN, LOOK, FOUND]]}
    return [
        event("on_chain_start", "graph", [run], input={"messages": [HUMAN]}),
        event("on_chat_model_stream", "m", [run, "1"], chunk=lc("AIMessageChunk", content="I")),
        event("on_chat_model_end", "m", [run, "1"], input=asked, output=LOOK),
        event("on_tool_end", "find", [run, "2"], input={"order": 3}, output=FOUND),
        event("on_chat_model_end", "m", [run, "3"], input=more, output=SAYS),
        event("on_chain_end", "graph", [run], output={"messages": TALK}),
    ]


def test_events_are_runs(write):
    runs = io.read_runs(write("events.jsonl", events("a") + events("b"), lines=True))
    assert [run.id for run in runs] == ["a", "b"]
    for run in runs:
        check(run, system=["Be kind."], tokens=TOKENS)
    old = event("on_chain_end", "node", ["x"], output=1) | {"metadata": {"langgraph_node": "n"}}
    with pytest.raises(ValueError, match=r"version='v2'"):
        io.read_runs(write("old.json", [old]))


def test_actions_of_an_executor(write):
    action = {"tool": "find", "tool_input": {"order": 3}, "tool_call_id": "c1", "log": "x"}
    steps = [[action | {"message_log": [LOOK]}, "in Paris"]]
    record = {"input": ASKED, "output": TOLD, "intermediate_steps": steps}
    check(io.read_runs(write("a.json", record))[0])


def test_messages_that_python_printed_are_refused(write):
    printed = "content='Hi' additional_kwargs={} response_metadata={}"
    for log in ({"messages": [printed]}, {"values": {"messages": [printed]}, "next": []}):
        with pytest.raises(ValueError, match=r"as Python prints it.*messages_to_dict"):
            io.read_runs(write("p.json", log), format="openai")
    (run,) = io.read_runs(write("a.json", [{"role": "assistant", "content": "content='Hi'"}]))
    assert run.steps[0].text == "content='Hi'"


# ------------------------------------------------------------------ OpenAI's Agents SDK


def message(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "id": text, "content": [part]}


ITEMS = [
    message(LOOKS),
    {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"order": 3}'},
    {"type": "function_call_output", "call_id": "c1", "output": "in Paris"},
    message(TOLD),
]
NEW_ITEMS = [{"type": "item", "raw_item": item, "agent": {"name": "A"}} for item in ITEMS]


@pytest.mark.parametrize("asked", [ASKED, [{"role": "user", "content": ASKED}]])
def test_a_state_of_a_run_is_one_run(write, asked):
    answers = [{"output": ITEMS[:2], "usage": {}}, {"output": ITEMS[3:], "usage": {}}]
    record = {"$schemaVersion": "1.21", "original_input": asked, "model_responses": answers}
    record |= {"generated_items": NEW_ITEMS, "session_items": NEW_ITEMS}
    for path in (write("s.json", record), write("s.jsonl", [record], lines=True)):
        (run,) = io.read_runs(path)
        check(run)


def test_items(write):
    check(io.read_runs(write("i.json", NEW_ITEMS))[0], user=False)
    of_stream = [{"type": "run_item_stream_event", "item": item} for item in NEW_ITEMS]
    check(io.read_runs(write("i.json", of_stream))[0], user=False)


# ------------------------------------------------------------------ Pydantic AI


def part(kind, **fields):
    return {"part_kind": kind, **fields}


def of_pydantic(result="tool-return", **ids):
    call = {"tool_name": "find", "tool_call_id": "c1"}
    asked = [part("user-prompt", content=ASKED)]
    look = [part("text", content=LOOKS), part("tool-call", args={"order": 3}, **call)]
    talk = [
        {"kind": "request", "parts": asked, "instructions": "Be kind."},
        {"kind": "response", "parts": look, "usage": USAGE},
        {"kind": "request", "parts": [part(result, content="in Paris", **call)]},
        {"kind": "response", "parts": [part("text", content=TOLD)], "usage": USAGE},
    ]
    return [message | {"timestamp": "2026-01-01T00:00:00Z", **ids} for message in talk]


@pytest.mark.parametrize("result", ["tool-return", "retry-prompt"])
def test_messages_with_a_run_id_are_a_chat(write, result):
    talk = of_pydantic(result, run_id="r")
    for path in (write("m.json", talk), write("m.jsonl", [talk], lines=True)):
        (run,) = io.read_runs(path)
        check(run, system=["Be kind."], tokens=TOKENS)
    assert run.steps[1].tool_calls[0].error is (True if result == "retry-prompt" else None)


def test_messages_of_several_conversations(write):
    a, b = (of_pydantic(run_id=name, conversation_id=name) for name in "ab")
    for path in (write("m.json", a + b), write("m.jsonl", a + b, lines=True)):
        assert [(run.id, len(run.steps)) for run in io.read_runs(path)] == [("a", 3), ("b", 3)]
    forked = [*a[:1], *(message | {"conversation_id": "c"} for message in a[1:])]
    assert len(io.read_runs(write("m.json", forked))) == 1
    result = {"output": TOLD, "_state": {"message_history": a}, "_new_message_index": 0}
    check(io.read_runs(write("r.json", result))[0], system=["Be kind."], tokens=TOKENS)
    # a conversation of two runs, each with the messages before it
    later = of_pydantic(run_id="r1") + of_pydantic(run_id="r2")
    assert len(io.read_runs(write("m.json", later))) == 1


# ------------------------------------------------------------------ smolagents

CALLED = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": {"order": 3}}}


def step(text, calls=(), **more):
    answer = {"role": "assistant", "content": text, "tool_calls": None}
    fields = {"model_output_message": answer, "model_output": text, "tool_calls": list(calls)}
    usage = USAGE | {"total_tokens": 7}
    return fields | {"observations": None, "error": None, "token_usage": usage} | more


STEPS = [
    {"task": ASKED, "task_images": None},
    step(LOOKS, [CALLED], observations="in Paris"),
    step(TOLD, is_final_answer=True),
]


def test_steps(write):
    result = {"output": TOLD, "state": "max_steps_error", "steps": STEPS, "timing": {}}
    paths = [write("r.json", result), write("r.jsonl", [result], lines=True)]
    for path in paths:
        (run,) = io.read_runs(path)
        assert run.stop_kind == "administrative"
        check(run, tokens=TOKENS)
    check(io.read_runs(write("s.json", STEPS))[0], tokens=TOKENS)


def test_results_of_steps(write):
    two = [CALLED, CALLED | {"id": "c2"}]
    failed = {"type": "AgentExecutionError", "message": "no such order"}

    def results(observations, calls=two, error=None):
        steps = [STEPS[0], step(LOOKS, calls, observations=observations, error=error)]
        (run,) = io.read_runs(write("s.json", steps))
        called = run.steps[1].tool_calls
        return run.steps[1].observation, [(call.result, call.error) for call in called]

    assert results("a\nb") == ("a\nb", [("a", None), ("b", None)])
    # which call a line belongs to is not known
    assert results("a\nb\nc") == ("a\nb\nc", [(None, None)] * 2)
    assert results("a\nb", [CALLED]) == ("a\nb", [("a\nb", None)])
    assert results(None, [CALLED], failed) == ("no such order", [("no such order", True)])
    asked = step(None, model_output_message=None, action_output="It is 4.", error=failed)
    (run,) = io.read_runs(write("s.json", [*STEPS[:2], asked]))
    assert run.steps[-1].text == "It is 4."
    calls = step(None, [CALLED], action_output="in Paris")
    (run,) = io.read_runs(write("s.json", [STEPS[0], calls, STEPS[2]]))
    assert [turn.text for turn in run.steps] == [ASKED, "", TOLD]


@pytest.mark.parametrize("written", [repr, json.dumps])
def test_calls_and_results_as_texts(write, written):
    def text(role, words):
        return {"role": role, "content": [{"type": "text", "text": words}]}

    talk = [
        text("user", ASKED),
        text("assistant", LOOKS),
        text("tool-call", f"Calling tools:\n{written([CALLED])}"),
        text("tool-response", "in Paris"),
        text("assistant", TOLD),
    ]
    check(io.read_runs(write("w.json", talk))[0])
    plain = {"name": "find", "arguments": {"order": 3}}
    talk[1:3] = [text("assistant", LOOKS), {"role": "tool_call", "content": written(plain)}]
    check(io.read_runs(write("w.json", talk))[0])


# ------------------------------------------------------------------ what is refused


def test_databases_are_refused(tmp_path):
    with sqlite3.connect(tmp_path / "session.db") as database:
        database.execute("create table t (x)")
    with pytest.raises(ValueError, match=r"SQLite database.*session\.get_items"):
        io.read_runs(tmp_path / "session.db")
