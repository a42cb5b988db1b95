"""One dialogue in the forms of many libraries is one run."""

import json

import pytest

from trajscore import io

CALL = {"order": 7}
SERVED = '{"status": "shipped"}'

FORMS = {
    "anthropic": [
        {"role": "user", "content": "Where is it?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thought": "hm", "thinking": "Look it up."},
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "c", "name": "lookup", "input": CALL},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": SERVED}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "On its way."}]},
    ],
    "responses": [
        {"role": "user", "content": "Where is it?"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look it up."}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "One moment."}],
        },
        {"type": "function_call", "call_id": "c", "name": "lookup", "arguments": '{"order": 7}'},
        {"type": "function_call_output", "call_id": "c", "output": SERVED},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "On its way."}],
        },
    ],
    "langchain": [
        {"type": "human", "content": "Where is it?"},
        {
            "type": "ai",
            "content": "One moment.",
            "tool_calls": [{"name": "lookup", "args": CALL, "id": "c", "type": "tool_call"}],
            "response_metadata": {"finish_reason": "tool_calls"},
        },
        {"type": "tool", "content": SERVED, "tool_call_id": "c", "name": "lookup"},
        {"type": "AIMessageChunk", "content": "On its way."},
    ],
    "langchain, serialised": [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", name],
            "kwargs": kwargs,
        }
        for name, kwargs in [
            ("HumanMessage", {"content": "Where is it?"}),
            (
                "AIMessage",
                {
                    "content": "One moment.",
                    "additional_kwargs": {
                        "tool_calls": [
                            {"id": "c", "function": {"name": "lookup", "arguments": '{"order": 7}'}}
                        ]
                    },
                },
            ),
            ("ToolMessage", {"content": SERVED, "tool_call_id": "c"}),
            ("AIMessage", {"content": "On its way."}),
        ]
    ],
    "genai": [
        {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "One moment."},
                {"type": "tool_call", "id": "c", "name": "lookup", "arguments": CALL},
            ],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c", "response": SERVED}],
        },
        {"role": "assistant", "parts": [{"type": "text", "content": "On its way."}]},
    ],
    "google": [
        {"role": "user", "parts": [{"text": "Where is it?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "One moment."},
                {"functionCall": {"id": "c", "name": "lookup", "args": CALL}},
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c", "name": "lookup", "response": SERVED}}],
        },
        {"role": "model", "parts": [{"text": "On its way."}]},
    ],
    "vercel": [
        {"role": "user", "content": [{"type": "text", "text": "Where is it?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "One moment."},
                {"type": "tool-call", "toolCallId": "c", "toolName": "lookup", "input": CALL},
            ],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c",
                    "toolName": "lookup",
                    "output": {"type": "text", "value": SERVED},
                }
            ],
        },
        {"role": "assistant", "content": "On its way."},
    ],
    "pydantic_ai": [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "Be kind."},
                {"part_kind": "user-prompt", "content": "Where is it?"},
            ],
        },
        {
            "kind": "response",
            "parts": [
                {"part_kind": "text", "content": "One moment."},
                {
                    "part_kind": "tool-call",
                    "tool_name": "lookup",
                    "args": '{"order": 7}',
                    "tool_call_id": "c",
                },
            ],
        },
        {
            "kind": "request",
            "parts": [
                {
                    "part_kind": "tool-return",
                    "tool_name": "lookup",
                    "content": SERVED,
                    "tool_call_id": "c",
                }
            ],
        },
        {"kind": "response", "parts": [{"part_kind": "text", "content": "On its way."}]},
    ],
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("within", ["messages", "values", "output"])
def test_a_dialogue_in_any_form(write, name, within):
    messages = FORMS[name]
    run = {"messages": messages} if within != "output" else messages
    record = run if within == "messages" else {within: run}
    (read,) = io.read_runs(write("a.jsonl", [{"id": "r", "success": True} | record], lines=True))
    assert (read.id, read.outcome) == ("r", 1)
    assert [(step.actor, step.text) for step in read.steps] == [
        ("user", "Where is it?"),
        ("agent", "One moment."),
        ("agent", "On its way."),
    ]
    (call,) = read.steps[1].tool_calls
    assert (call.name, call.arguments, call.id, call.result) == ("lookup", CALL, "c", SERVED)
    assert "unmatched_results" not in read.extra
    assert read.extra.get("system") == (["Be kind."] if name == "pydantic_ai" else None)


def test_pairs_of_sharegpt(write):
    pairs = [("system", "Be kind."), ("human", "Hi"), ("gpt", "Hello"), ("tool", "x")]
    talk = [{"from": who, "value": text} for who, text in pairs]
    (run,) = io.read_runs(write("a.json", [{"id": 0, "conversations": talk, "success": False}]))
    assert [(step.actor, step.text) for step in run.steps] == [("user", "Hi"), ("agent", "Hello")]
    assert (run.steps[1].observation, run.outcome) == ("x", 0)


def test_log_probabilities_of_responses_and_langchain(write):
    scores = [{"token": "Yes", "logprob": -0.5, "top_logprobs": []}]
    said = {"type": "output_text", "text": "Yes", "logprobs": scores}
    item = {"type": "message", "role": "assistant", "content": [said]}
    (run,) = io.read_runs(write("a.json", [{"id": "a", "output": [item]}]))
    assert run.steps[0].logprobs == (-0.5,)
    message = {"type": "ai", "content": "Yes"}
    message["response_metadata"] = {"logprobs": {"content": scores}}
    (run,) = io.read_runs(write("b.json", [{"id": "a", "messages": [message]}]))
    assert run.steps[0].logprobs == (-0.5,)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, None),
        ({"status": "success"}, None),
        ({"status": "error"}, True),
        ({"status": "error", "error": False}, False),
        ({"error": "lost"}, True),
    ],
)
def test_whether_a_tool_of_langchain_failed(write, fields, error):
    result = {"type": "tool", "content": SERVED, "tool_call_id": "c", **fields}
    messages = [*FORMS["langchain"][:2], result]
    (run,) = io.read_runs(write("log.json", [{"id": "a", "messages": messages}]))
    (call,) = run.steps[1].tool_calls
    assert (call.result, call.error) == (SERVED, error)


@pytest.mark.parametrize(
    ("beside", "reason", "calls"),
    [
        ({}, None, []),
        ({"response_metadata": {"finish_reason": "length"}}, "length", []),
        ({"response_metadata": {"finish_reason": "length"}, "finish_reason": "stop"}, "stop", []),
        ({"additional_kwargs": {"function_call": {"name": "g", "arguments": "{}"}}}, None, ["g"]),
        ({"additional_kwargs": {"tool_calls": [{"name": "g", "args": {}}]}}, None, ["g"]),
        (
            {
                "tool_calls": [{"name": "f", "args": {}}],
                "additional_kwargs": {"tool_calls": [{"name": "g", "args": {}}]},
            },
            None,
            ["f"],  # the message's own calls count
        ),
    ],
)
def test_what_langchain_keeps_beside_a_message(write, beside, reason, calls):
    messages = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Yes?", **beside}]
    (run,) = io.read_runs(write("log.json", [{"id": "a", "messages": messages}]))
    assert run.steps[1].extra.get("finish_reason") == reason
    assert [call.name for call in run.steps[1].tool_calls] == calls


def test_the_outputs_of_a_call_may_repeat_its_inputs(write):
    asked, answer = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
    whole = {"id": "a", "inputs": {"messages": [asked]}, "outputs": {"messages": [asked, answer]}}
    new = {"id": "b", "input": [asked], "output": [answer]}
    for run in io.read_runs(write("a.jsonl", [whole, new], lines=True)):
        assert [step.text for step in run.steps] == ["Hi", "Hello"]


def test_calls_and_results_of_one_message_come_in_order(write):
    blocks = [
        {"type": "text", "text": "and then?"},
        {"type": "tool_result", "tool_use_id": "c", "content": "late", "is_error": True},
    ]
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    talk = [{"role": "assistant", "content": [call]}, {"role": "user", "content": blocks}]
    (run,) = io.read_runs(write("a.json", [{"messages": talk}]))
    assert [(step.actor, step.text) for step in run.steps] == [("agent", ""), ("user", "and then?")]
    assert (run.steps[0].tool_calls[0].result, run.steps[0].tool_calls[0].error) == ("late", True)


# ------------------------------------------------------------------ where messages are


SAID = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


@pytest.mark.parametrize("name", ["history", "turns", "contents", "transcript", "steps", "x"])
def test_messages_under_any_name(write, name):
    record = {"id": "a", name: SAID, "tags": ["x"], "success": True}
    for value, lines in (([record], True), ([record], False), (record, False)):
        (run,) = io.read_runs(write(f"a{lines}.json" + "l" * lines, value, lines=lines))
        assert (run.id, run.outcome, len(run.steps)) == ("a", 1, 2)


@pytest.mark.parametrize("name", ["runs", "data", "samples", "items", "traces", "x"])
def test_runs_within_an_object(write, name):
    runs = [{"id": one, "messages": SAID, "success": one == "a"} for one in "ab"]
    read = io.read_runs(write("a.json", {"version": 1, name: runs}))
    assert [(run.id, run.outcome) for run in read] == [("a", 1), ("b", 0)]


def test_runs_by_their_ids(write):
    keyed = {name: {"messages": SAID, "success": name == "a"} for name in "ab"}
    read = io.read_runs(write("a.json", keyed))
    assert [(run.id, run.outcome) for run in read] == [("a", 1), ("b", 0)]
    assert [run.id for run in io.read_runs(write("b.json", {"a": SAID, "b": SAID}))] == ["a", "b"]


@pytest.mark.parametrize(
    "record",
    [
        {"request": {"messages": SAID[:1]}, "response": {"choices": [{"message": SAID[1]}]}},
        {"prompt": "Hi", "completion": "Hello"},
        {"input": SAID[:1], "output": "Hello"},
        {"messages": json.dumps(SAID)},
    ],
)
def test_calls_and_text_of_two_sides(write, record):
    (run,) = io.read_runs(write("a.jsonl", [{"id": "a", "success": 1} | record], lines=True))
    assert [(step.actor, step.text) for step in run.steps] == [("user", "Hi"), ("agent", "Hello")]


def test_calls_that_go_on_are_one_run(write):
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    first = {"role": "assistant", "content": "", "tool_calls": [call]}
    more = [*SAID[:1], first, {"role": "tool", "tool_call_id": "c", "content": "42"}]
    rows = [
        {"session_id": "a", "messages": SAID[:1], "choices": [{"message": first}]},
        {"session_id": "a", "messages": more, "choices": [{"message": SAID[1]}], "success": True},
        {"session_id": "b", "messages": SAID[:1], "choices": [{"message": SAID[1]}]},
    ]
    a, b = io.read_runs(write("a.jsonl", rows, lines=True))
    assert [(step.actor, step.text) for step in a.steps] == [
        ("user", "Hi"),
        ("agent", ""),
        ("agent", "Hello"),
    ]
    assert (a.id, a.outcome, a.steps[1].tool_calls[0].result) == ("a", 1, "42")
    assert (b.id, len(b.steps)) == ("b", 2)
    runs = io.read_runs(write("b.jsonl", [rows[0], rows[0]], lines=True))
    assert [run.id for run in runs] == ["a", "a"]
    assert runs.notes[0].startswith("2 runs have the id 'a'; name the field")
