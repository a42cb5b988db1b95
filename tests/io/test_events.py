"""Events of one run, an object each."""

import pytest

from trajscore import io
from trajscore.io._events import ends_run, is_beside_calls, is_event, spans_of_events
from trajscore.io._requests import Calls


def message(role, text, **call):
    blocks = [{"block_type": "text", "text": text}] if text else []
    blocks += [{"block_type": "tool_call", **call}] if call else []
    return {"role": role, "additional_kwargs": {}, "blocks": blocks}


def events(order):
    """Return the events of a run of LlamaIndex's agent."""
    call = {"tool_name": "find", "tool_kwargs": {"order": order}, "tool_id": "c1"}
    user, name = message("user", f"Where is order {order}?"), {"current_agent_name": "Agent"}
    turn = message(
        "assistant", "I look.", tool_call_id="c1", **{k: call[k] for k in list(call)[:2]}
    )
    output = {"blocks": [{"block_type": "text", "text": "in Paris"}], "is_error": order == 13}
    last = message("assistant", "In Paris.")
    return [
        {"input": [user], **name},
        {"delta": "look.", "response": "I look.", "tool_calls": [], **name},
        {"response": turn, "tool_calls": [call], **name},
        call,
        call | {"tool_output": output},
        {"input": [user, turn, message("tool", "in Paris")], **name},
        {"response": last, **name},
        {"result": {"response": last, **name}},
    ]


EVENT = {"current_agent_name": "Agent", "input": []}
NAMED = [{"run_id": f"r{k}", **event} for k in (3, 13) for event in events(k)]
MIXED = [event for pair in zip(NAMED[:8], NAMED[8:], strict=True) for event in pair]


@pytest.mark.parametrize(
    "lines",
    [
        NAMED,
        MIXED,
        [{"run_id": e["run_id"], "type": "x", "data": e} for e in NAMED],
        [*events(3), *events(13)],
    ],
    ids=["named", "mixed", "wrapped", "one after the other"],
)
def test_events_of_one_run_are_one_run(write, lines):
    runs = io.read_runs(write("events.jsonl", lines, lines=True))
    assert len(runs) == 2
    for run, order in zip(runs, (3, 13), strict=True):
        turns = [(step.actor, step.text) for step in run.steps]
        assert turns == [
            ("user", f"Where is order {order}?"), ("agent", "I look."), ("agent", "In Paris."),
        ]  # fmt: skip
        (call,) = run.steps[1].tool_calls
        assert (call.name, call.arguments, call.result) == ("find", {"order": order}, "in Paris")
        assert call.error is (True if order == 13 else None)
        assert "unmatched_results" not in run.extra


def test_the_outcome_of_events_is_in_a_record_of_its_own(write):
    lines = [*NAMED, {"run_id": "r3", "success": True}, {"run_id": "r13", "success": False}]
    runs = io.read_runs(write("events.jsonl", lines, lines=True))
    assert [(run.id, run.outcome) for run in runs] == [("r3", 1), ("r13", 0)]
    assert [step.text for step in runs[0].steps][-1] == "In Paris."
    assert "tool_name" not in runs[0].extra


def test_what_an_event_is():
    assert list(map(is_event, events(3))) == [True] * 8
    assert list(map(ends_run, events(3))) == [False] * 7 + [True]
    assert ends_run({"data": events(3)[-1]})
    assert is_event({"data": {}, "result": EVENT})
    assert is_event({"data": EVENT, "result": {}})
    others = [{"messages": []}, {"result": "3"}, {"data": [1]}, {"data": {"x": 1}}, [], None]
    assert is_event({"current_agent_name": "Agent"})
    assert is_event({"tool_name": "f", "tool_kwargs": {}})
    beside = ("tool_name arguments result agent_id", "payload sender kind", "payload sender kind x")
    assert all(is_beside_calls(dict.fromkeys(names.split())) for names in beside)
    assert not any(map(is_event, others))
    assert not any(map(is_beside_calls, others))


def test_a_log_of_autogen_is_the_calls_of_the_model(write):
    system, user = ({"role": r, "content": r} for r in ("system", "user"))
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "content": "9", "tool_call_id": "1"}
    last = {"role": "assistant", "content": "Bye"}

    def model(messages, answer):
        return {
            "type": "LLMCall",
            "messages": messages,
            "response": {"choices": [{"message": answer}]},
        }

    beside = [
        {"type": "ToolCall", "tool_name": "f", "arguments": {}, "result": "9", "agent_id": None},
        {"type": "Message", "payload": "{}", "sender": "a", "receiver": "b", "kind": "k"},
    ]
    first = model([system, user], turn)
    lines = [beside[1], first, *beside, model([system, user, turn, result], last)]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert [(s.actor, s.text) for s in run.steps] == [
        ("user", "user"),
        ("agent", ""),
        ("agent", "Bye"),
    ]
    assert run.steps[1].tool_calls[0].result == "9"
    with pytest.raises(ValueError, match="events of AutoGen without the calls of a model"):
        io.read_runs(write("beside.jsonl", beside, lines=True))


@pytest.mark.parametrize("answer", ["Hello", {"role": "assistant", "content": "Hello"}])
def test_the_answer_to_messages_beside_them(write, answer):
    (run,) = io.read_runs(
        write("log.json", [{"messages": [{"role": "user", "content": "Hi"}], "response": answer}])
    )
    assert [(s.actor, s.text) for s in run.steps] == [("user", "Hi"), ("agent", "Hello")]


def test_an_answer_that_the_messages_hold_is_not_read_again(write):
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    (run,) = io.read_runs(write("log.json", [{"messages": chat, "response": "Hello"}]))
    assert len(run.steps) == 2


def test_the_fields_of_a_run_are_those_of_its_first_and_its_last_event():
    first, last = {"task": "t", "outcome": 0, **EVENT}, {"outcome": 1, "trial": 2, **EVENT}
    assert Calls([first, EVENT, last]).fields() == {"outcome": 1}
    assert Calls([first]).fields() == {"task": "t", "outcome": 0}
    assert Calls([first, {"note": "x", "task": "u"}, last]).fields() == {"note": "x", "outcome": 1}


def test_other_records_of_a_run_are_beside_its_events():
    call = {"tool_name": "f", "tool_kwargs": {"n": 3}, "tool_id": "c", "tool_output": "1"}
    assert next(iter(Calls([call, EVENT]).spans())).kind == "tool"
    spans = list(Calls([call, {"note": "x"}]).spans())
    assert (spans[0].kind, spans[0].name, spans[0].outputs) == ("tool", "f", "1")


# ------------------------------------------------------------------ starts and ends


def moments(run, *, payload="data", success=1):
    """Return the events of a run, whose two calls of a tool overlap."""
    said = [
        ("run_start", {"input": "Where are they?"}),
        ("llm_start", {}),
        ("llm_end", {"output": "I look.", "usage": {"input_tokens": 3, "output_tokens": 2}}),
        ("tool_start", {"name": "find", "call_id": "a", "input": {"n": 1}}),
        ("tool_start", {"name": "find", "call_id": "b", "input": {"n": 2}}),
        ("tool_end", {"name": "find", "call_id": "a", "output": "in Rome"}),
        ("tool_error", {"name": "find", "call_id": "b", "output": "nowhere"}),
        ("llm_end", {"text": "One is in Rome."}),
        ("run_end", {"success": success}),
    ]
    own = [{"run_id": run, "event": name} for name, _ in said]
    return [
        record | ({payload: fields} if payload else fields)
        for record, (_, fields) in zip(own, said, strict=True)
    ]


@pytest.mark.parametrize("payload", ["data", "payload", ""])
def test_starts_and_ends_of_one_run_are_one_run(write, payload):
    lines = [line for k in range(2) for line in moments(f"r{k}", payload=payload, success=k)]
    runs = io.read_runs(write("log.jsonl", lines, lines=True))
    assert [(run.id, run.outcome) for run in runs] == [("r0", 0), ("r1", 1)]
    for run in runs:
        assert [(step.actor, step.text) for step in run.steps] == [
            ("user", "Where are they?"), ("agent", "I look."), ("agent", "One is in Rome."),
        ]  # fmt: skip
        calls = [(call.arguments, call.result, call.error) for call in run.steps[1].tool_calls]
        assert calls == [({"n": 1}, "in Rome", None), ({"n": 2}, "nowhere", True)]
        assert run.meta["output_tokens"] == 2
    assert runs.notes[:-1] == []
    other = {"run_id": "r0", "event": "saved"}
    notes = io.read_runs(write("other.jsonl", [*lines, other], lines=True)).notes
    assert notes[0] == "1 event that starts or ends nothing known, not used"


def test_an_answer_with_calls_has_both():
    calls = [{"id": "c", "name": "find", "arguments": {"n": 1}}]
    start = {"run_id": 7, "event": "llm_start", "messages": [{"role": "user", "content": "Hi"}]}
    end = {"run_id": 7, "event": "llm_end", "content": "I look.", "tool_calls": calls}
    for answer, outputs in (
        (end, {"content": "I look.", "tool_calls": calls}),
        (end | {"tool_calls": []}, "I look."),
    ):
        began, asked = spans_of_events([start, answer]), start["messages"]
        (span,) = began
        assert (span.kind, span.inputs, span.outputs, span.error) == ("model", asked, outputs, None)


def test_what_starts_and_ends():
    def run(event, **fields):
        return {"run_id": 7, "event": event, **fields}

    spans = list(
        spans_of_events(
            [
                run("run_start", input="Go"),
                run("tool_start", name="f", input={"a": 1}),
                run("tool_started", name="g", input={"b": 2}, call_id="x"),
                run("tool_end", name="g", output="2", call_id="x"),
                run("tool_error", name="f", output="no"),
                run("on_llm_end", text="Done", usage={"input_tokens": 3}),
                run("run_ended"),
            ]
        )
    )
    tools = [(s.name, s.inputs, s.outputs, s.call, s.error) for s in spans if s.kind == "tool"]
    assert tools == [("g", {"b": 2}, "2", "x", None), ("f", {"a": 1}, "no", None, True)]
    (model,) = (span for span in spans if span.kind == "model")
    assert (model.outputs, model.tokens) == ("Done", {"input": 3, "output": None})
    others = [span.inputs for span in spans if span.kind == "other"]
    assert others == [[{"role": "user", "content": "Go"}], None]  # the end says nothing


GO = [{"role": "user", "content": "Go"}]


def spans_of(*events):
    records = [{"run_id": 7, "event": name, **fields} for name, fields in events]
    return [(s.kind, s.name, s.inputs, s.outputs, s.error) for s in spans_of_events(records)]


def test_calls_of_tools_without_ids_are_told_by_their_names():
    spans = spans_of(
        ("tool_start", {"name": "f", "input": 1}), ("tool_start", {"name": "g", "input": 2}),
        ("tool_end", {"name": "f", "output": 3}), ("tool_end", {"name": "g", "output": 4}),
        ("tool_end", {"name": "g", "output": 5}),
    )  # fmt: skip
    assert spans == [
        ("tool", "f", 1, 3, None), ("tool", "g", 2, 4, None), ("tool", "g", None, 5, None),
    ]  # fmt: skip


def test_calls_in_the_event_of_a_tool_are_not_an_answer():
    ((*_, outputs, error),) = spans_of(
        ("tool_error", {"name": "f", "output": 3, "tool_calls": [1]})
    )
    assert (outputs, error) == (3, True)


@pytest.mark.parametrize(
    ("events", "inputs"),
    [
        ([("run_start", {"input": "Go"})], [GO]),
        ([("run_start", {"input": {"a": 1}})], [None]),
        ([("run_end", {"input": "Go"})], [None]),
        ([("run_start", {"input": "Go"}), ("llm_start", {"messages": []})], [GO]),
        ([("run_start", {"input": "Go"}), ("llm_start", {"messages": [1]})], [None]),
        ([("run_start", {"input": "Go"}), ("llm_start", {}), ("llm_start", {"prompt": 1})], [None]),
    ],
)
def test_the_start_of_a_run_is_a_request_where_the_model_gets_none(events, inputs):
    assert [given for kind, _, given, _, _ in spans_of(*events) if kind == "other"] == inputs


def test_events_of_a_workflow():
    name = {"current_agent_name": "A"}
    call = {"tool_name": "f", "tool_kwargs": {"a": 1}, "tool_id": "c"}
    answer = {"response": {"role": "assistant", "content": "Hi"}} | name
    records = [
        name | {"input": []}, name | {"delta": "H", "response": {}}, answer, {"data": answer}, call,
        call | {"tool_output": {"is_error": True}}, call | {"tool_output": "x"},
        name | {"response": "Hi"},
    ]  # fmt: skip
    spans = [(s.id, s.kind, s.name, s.inputs, s.outputs, s.call, s.error)
             for s in spans_of_events(records)]  # fmt: skip
    assert spans == [
        ("0", "other", None, records[0], None, None, None),
        ("2", "model", None, None, answer["response"], None, None),
        ("3", "model", None, None, answer["response"], None, None),
        ("5", "tool", "f", {"a": 1}, {"is_error": True}, "c", True),
        ("6", "tool", "f", {"a": 1}, "x", "c", None),
        ("7", "other", None, records[7], None, None, None),
    ]
