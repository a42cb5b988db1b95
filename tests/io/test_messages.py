"""One dialogue in the forms of many libraries is one run."""

import json
import re

import pytest

from trajscore import io
from trajscore.io import _message_parts as _parts
from trajscore.io import _messages

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


# ------------------------------------------------------------------ each rule by itself


@pytest.mark.parametrize(
    ("part", "call", "result"),
    [
        ({"type": "tool_use"}, True, False),
        ({"name": "f", "arguments": {}}, True, False),
        ({"name": "f"}, False, False),
        ({"type": "tool_result"}, False, True),
        ({"call_id": "c", "content": "x"}, False, True),
        ({"call_id": "c", "content": "x", "name": "f"}, False, True),
        ({"call_id": "c"}, False, False),
        ({"type": "text", "text": "x"}, False, False),
    ],
)
def test_calls_and_results_among_parts(part, call, result):
    assert (_parts.is_call(part), _parts.is_result(part)) == (call, result)
    assert _parts.is_special(part) == (call or result or _parts.has_other_text(part))


@pytest.mark.parametrize(
    ("part", "special"),
    [
        ("x", False), ({"type": "thinking"}, True), ({"type": "system-prompt"}, True),
        ({"functionCall": {}}, True), ({"functionCall": "x"}, False), ({"logprobs": []}, True),
        ({"content": "x"}, True), ({"content": "x", "text": "x"}, False), ({"content": [1]}, False),
        ({"type": "image"}, False),
    ],
)  # fmt: skip
def test_parts_that_are_more_than_text(part, special):
    assert _parts.is_special(part) == special


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("x", False), ({"role": "user", "content": "x"}, True), ({"role": "user"}, False),
        ({"content": "x"}, False), ({"from": "human", "value": "x"}, True), ({"choices": []}, True),
        ({"type": "human", "content": "x"}, True), ({"type": "other", "content": "x"}, False),
        ({"parts": []}, True), ({"type": "reasoning"}, True),
        ({"lc": 1, "id": ["a", "HumanMessageChunk"], "kwargs": {}}, True),
        ({"lc": 1, "id": ["a", "Prompt"], "kwargs": {}}, False),
        ({"lc": 1, "id": ["a", "HumanMessage"], "kwargs": "x"}, False),
        ({"role": "user", "content": "x", "kwargs": {}}, True),
    ],
)  # fmt: skip
def test_messages_and_other_objects(value, is_one):
    assert _messages.is_message(value) == is_one
    assert _messages.is_chat_list([value]) == is_one
    assert not _messages.is_chat_list([])


@pytest.mark.parametrize(
    ("item", "is_one"),
    [
        ({"type": "message", "role": "user", "content": []}, True),
        ({"type": "message", "content": []}, False),
        ({"type": "message", "role": "user", "content": "x"}, False),
        ({"type": "reasoning"}, True), ({"type": "reasoning", "role": "user"}, False),
        ({"type": "function_call"}, True), ({"type": "function_call_output"}, True),
        ({"type": "tool_call", "function": {}}, False), ({"type": "x_call", "function": {}}, True),
        ({"toolName": "f"}, True), ({"tool.name": "f"}, True), ({"name": "f"}, False),
    ],
)  # fmt: skip
def test_items_of_responses(item, is_one):
    assert _messages._is_item(item) == is_one


USER, AGENT = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}


@pytest.mark.parametrize(
    ("record", "messages", "names"),
    [
        ({"messages": []}, [], {"messages"}),
        ({"messages": [3]}, [3], {"messages"}),
        ({"conversation": [3]}, None, set()),
        ({"conversation": [USER]}, [USER], {"conversation"}),
        ({"messages": "x", "state": {"messages": [USER]}}, [USER], {"state"}),
        ({"state": {"messages": []}}, None, set()),
        ({"input": [USER], "output": [AGENT]}, [USER, AGENT], {"input", "output"}),
        ({"input": [USER], "output": [USER, AGENT]}, [USER, AGENT], {"input", "output"}),
        ({"input": "Hi", "output": AGENT}, [USER, AGENT], {"input", "output"}),
        ({"input": " ", "output": AGENT}, [AGENT], {"output"}),
        ({"body": [USER]}, [USER], {"body"}),
        ({"other": [USER], "n": 3}, [USER], {"other"}),
        ({"other": [USER], "more": [AGENT]}, None, set()),
        ({"n": 3}, None, set()),
    ],
)
def test_where_the_messages_of_a_record_are(record, messages, names):
    assert _messages.find_messages(record) == (messages, names)


@pytest.mark.parametrize(
    ("fields", "runs"),
    [
        ({"n": [1], "runs": [{"messages": [USER]}, 3]}, [{"messages": [USER]}, 3]),
        ({"a": {"messages": [USER]}, "b": [AGENT]}, [
            {"id": "a", "messages": [USER]}, {"id": "b", "messages": [AGENT]},
        ]),
        ({"a": {"messages": [USER]}, "n": 1}, None),
        ({"a": []}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_runs_that_an_object_holds(fields, runs):
    assert _messages.find_records(fields) == runs


def chat(*messages):
    return list(_messages.as_chat(messages))


def test_items_of_one_turn_are_joined():
    thought = {"type": "reasoning", "summary": [{"text": "hm"}, {"text": "so"}, "x"]}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "42"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Yes"}]}
    turns = chat(thought, said, call, call, output, said, said, thought)
    assert [index for index, _ in turns] == [0, 4, 5, 6]
    first, result, *others = (turn for _, turn in turns)
    assert first["reasoning"] == "hm\nso"
    assert first["content"] == [{"type": "text", "text": "Yes"}]
    assert [one["name"] for one in first["tool_calls"]] == ["f", "f"]
    assert (result["role"], result["content"], result["tool_call_id"]) == ("tool", "42", "c")
    assert [other.get("tool_calls") for other in others] == [None, None]
    # words after a call are the next turn
    assert [index for index, _ in chat(call, said)] == [0, 1]
    assert chat(thought) == []


def test_an_item_with_its_result():
    item = {"type": "web_search_call", "id": "w", "query": "q", "results": ["r"]}
    turn, result = _messages.chat_messages(item)
    assert turn["tool_calls"] == [{"id": "w", "name": "web_search", "arguments": "q"}]
    assert (result["content"], result["tool_call_id"]) == (["r"], "w")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"output": "x", "id": "c"}, {"content": "x", "tool_call_id": "c"}),
        ({"output": {"type": "json", "value": 3}}, {"content": 3, "tool_call_id": None}),
        ({"output": {"type": "json"}}, {"content": {"type": "json"}, "tool_call_id": None}),
        ({"result": "", "output": None}, {"content": "", "tool_call_id": None}),
        ({"id": ["run", "c"], "isError": True}, {"tool_call_id": "c", "error": True}),
        ({"status": "error"}, {"error": True}),
        ({"is_error": False, "name": "f"}, {"name": "f"}),
        ({"origin": {"id": "c", "name": "f"}, "result": 1}, {"tool_call_id": "c", "name": "f"}),
    ],
)
def test_fields_of_results(part, expected):
    result = _parts.result_of_part(part)
    assert {name: result.get(name) for name in expected} == expected
    assert ("error" in result) == ("error" in expected)
    assert ("name" in result) == ("name" in expected)


def test_parts_in_their_order():
    parts = [
        "a", {"type": "text", "text": "b"}, {"type": "tool_result", "content": "r"},
        {"type": "user-prompt", "content": "p"}, {"thought": True, "text": "t"},
        {"type": "thinking", "thinking": "u"}, {"type": "tool_use", "name": "f", "input": {"x": 1}},
        {"type": "text", "text": "c", "logprobs": [1]}, {"text": "d", "logprobs": [2]},
    ]  # fmt: skip
    result, prompt, turn = _parts.messages_of_parts({"role": "assistant", "parts": parts}, parts)
    assert (result["content"], prompt) == ("r", {"role": "user", "content": "p"})
    assert turn["reasoning"] == "t\nu"
    assert turn["logprobs"] == {"content": [1, 2]}
    assert turn["tool_calls"] == [{"id": None, "name": "f", "arguments": {"x": 1}}]
    assert "parts" not in turn
    (plain,) = _parts.messages_of_parts({"role": "user", "parts": parts[:2]}, parts[:2])
    assert plain["content"] == "ab"
    (listed,) = _parts.messages_of_parts({"role": "user"}, parts[:2])
    assert listed["content"] == parts[:2]
    assert _parts.messages_of_parts({"role": "user", "parts": []}, parts[2:3]) == [result]


@pytest.mark.parametrize(
    ("path", "name"),
    [(["a", "AIMessageChunk"], "aimessage"), ([], ""), (None, ""), ("AIMessage", ""), ([3], "3")],
)
def test_classes_of_langchain(path, name):
    assert _messages._class_of({"id": path}) == name


@pytest.mark.parametrize(
    ("part", "is_text"),
    [
        ("a", True), (3, False), ({"text": "a"}, True), ({"text": 3}, False),
        ({"type": "x"}, False), ({"type": "text", "block_type": "text", "text": "a"}, True),
        ({"text": "a", "x": 1}, False),
    ],
)  # fmt: skip
def test_parts_of_nothing_but_text(part, is_text):
    assert _parts.is_text(part) == is_text


def test_a_role_that_is_the_name_of_a_tool_is_its_result():
    call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "get_weather"}}]}
    chat = [
        {"role": "get_weather", "content": "?"},
        call,
        {"role": "get_weather", "content": "sunny"},
    ]
    assert [message["role"] for _, message in _messages.as_chat(chat)] == [
        "get_weather",
        "assistant",
        "tool",
    ]


def test_calls_written_as_text():
    text = '[{"function":{"name":"f","arguments":"{}"},"id":"1","type":"function"}]'
    ((_, message),) = _messages.as_chat([{"role": "tool", "content": text}])
    assert message["role"] == "assistant"
    assert [call["id"] for call in message["tool_calls"]] == ["1"]
    others = ['[{"function": "f"}]', '[{"function"', '[{"id": 1, "name": "f"}]']
    assert [
        m["content"] for _, m in _messages.as_chat([{"role": "tool", "content": t} for t in others])
    ] == others


def test_the_text_of_a_message_may_be_its_content():
    assert _messages.chat_messages({"role": "user", "text": "Hi"}) == [
        {"role": "user", "content": "Hi"}
    ]
    result = {"type": "tool-result", "result": '{"type": "function_result", "result": "9"}'}
    assert _messages.chat_messages({"role": "tool", "content": [result]})[0]["content"] == "9"


def test_a_thought_is_open_until_words_or_calls_come():
    assert _messages._is_open({"thought": "x", "content": ""})
    for more in ({"content": "Hi"}, {"tool_calls": [{"name": "f"}]}):
        assert not _messages._is_open({"thought": "x", **more})
    assert not _messages._is_open({"content": ""})


def test_a_thought_of_autogen_is_what_a_turn_of_calls_says():
    def own(kind, content, **more):
        return {"type": kind, "source": "helper", "content": content} | more

    call = {"id": "1", "name": "f", "arguments": "{}"}
    result = {"call_id": "1", "name": "f", "content": "9", "is_error": False}
    chat = [
        {"type": "TextMessage", "source": "user", "content": "Hi"},
        own("ModelClientStreamingChunkEvent", "I l"),
        own("ThoughtEvent", "I look."),
        own("ToolCallRequestEvent", [call]),
        own("ToolCallExecutionEvent", [result]),
        own("ThoughtEvent", "So it is."),
        own("TextMessage", "Bye"),
        own("AssistantMessage", [call], thought="Again."),
        own("ToolCallSummaryMessage", "9", tool_calls=[call]),
    ]
    messages = [message for _, message in _messages.as_chat(chat)]
    turns = [(m["role"], m["content"], len(m.get("tool_calls") or ())) for m in messages]
    assert turns == [
        ("user", "Hi", 0), ("assistant", "I look.", 1), ("tool", "9", 0), ("assistant", "Bye", 0),
        ("assistant", "Again.", 1), ("assistant", "9", 0),
    ]  # fmt: skip
    assert messages[3]["reasoning"] == "So it is."
    assert _messages.is_nested(chat[0])
    assert not _messages.is_nested({"role": "user", "source": "user", "content": "Hi"})


def test_events_of_googles_adk(write):
    def event(author, role, *parts, **more):
        return {
            "author": author,
            "actions": {},
            "content": {"role": role, "parts": list(parts)},
        } | more

    call = {"functionCall": {"id": "1", "name": "f", "args": {"n": 3}}}
    result = {"functionResponse": {"id": "1", "name": "f", "response": {"result": "9"}}}
    events = [
        event("user", "user", {"text": "Hi"}),
        event("helper", "model", {"text": "I l"}, partial=True),
        event("helper", "model", {"text": "I look."}, call, usageMetadata={"promptTokenCount": 5}),
        event("helper", "user", result),
        {"author": "helper", "actions": {"stateDelta": {}}, "content": None},
        event("helper", "model", {"text": "Nine."}),
    ]
    session = {"id": "s", "appName": "a", "userId": "u", "state": {}, "events": events}
    lines = [{"session_id": name, **event} for name in "st" for event in events]
    for path in (
        write("session.json", session), write("sessions.jsonl", [session], lines=True),
        write("events.json", events), write("lines.jsonl", lines, lines=True),
    ):  # fmt: skip
        for run in io.read_runs(path):
            said = [(step.actor, step.text) for step in run.steps]
            assert said == [("user", "Hi"), ("agent", "I look."), ("agent", "Nine.")]
            assert run.steps[1].tool_calls[0].result == '{"result": "9"}'
            assert run.meta["input_tokens"] == 5
    assert len(io.read_runs(path)) == 2


def test_the_longest_list_of_messages_in_a_state():
    long, short = (
        [{"role": "user", "content": str(k)} for k in range(3)],
        [{"role": "user", "text": ""}],
    )
    agents = {"helper": {"agent_state": {"llm_context": {"messages": short}}}}
    team = {"manager": {"message_thread": long}, "other": {"messages": [1, 2, 3, 4]}}
    state = {"type": "TeamState", "agent_states": agents | team, "version": "1"}
    assert _messages.find_messages(state) == (long, {"agent_states"})
    assert _messages.find_messages({"type": "x", "few_shots": {"examples": long}}) == (None, set())


UI_CALL = {"toolCallId": "c1", "toolName": "weather", "args": {"city": "Bern"}}
WORDS, SUNNY = {"type": "text", "text": "I look."}, {"type": "text", "text": "Sunny."}
OF_UI = {
    "4": [
        WORDS,
        {
            "type": "tool-invocation",
            "toolInvocation": UI_CALL | {"state": "result", "result": "sun"},
        },
        {"type": "step-start"},
        SUNNY,
    ],
    "5": [
        {"type": "step-start"},
        WORDS,
        {"type": "tool-weather", "toolCallId": "c1", "input": {"city": "Bern"}, "output": "sun"},
        SUNNY,
    ],
    "error": [
        WORDS,
        {"type": "dynamic-tool", "toolName": "weather", "toolCallId": "c1", "errorText": "sun"}
        | {"input": {"city": "Bern"}},
        SUNNY,
    ],
}


@pytest.mark.parametrize("name", OF_UI)
@pytest.mark.parametrize("wrapped", [False, True])
def test_messages_of_user_interfaces(write, name, wrapped):
    parts = {"parts": OF_UI[name]}
    answer = {"content": {"format": 2, **parts}} if wrapped else {"content": "Sunny.", **parts}
    chat = [{"id": "a", "role": "user", "content": "Weather?"}, {"role": "assistant"} | answer]
    (run,) = io.read_runs(write("log.json", {"messages": chat}))
    assert [(s.actor, s.text) for s in run.steps] == [
        ("user", "Weather?"), ("agent", "I look."), ("agent", "Sunny."),
    ]  # fmt: skip
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments, call.result) == ("weather", {"city": "Bern"}, "sun")
    assert call.error is (True if name == "error" else None)


def test_items_of_semantic_kernel():
    call = {"content_type": "function_call", "id": "1", "name": "f", "arguments": "{}"}
    words = {"content_type": "text", "text": "I look."}
    turn = {"content_type": "message", "role": "assistant", "items": [words, call]}
    (message,) = _messages.chat_messages(turn)
    assert (message["content"], message["tool_calls"][0]["name"]) == ("I look.", "f")
    result = {"content_type": "function_result", "id": "1", "result": "9"}
    assert _messages.chat_messages({"role": "tool", "items": [result]})[0]["content"] == "9"


def test_steps_of_vercels_ai_sdk(write):
    ids = {"toolCallId": "c1", "toolName": "weather"}
    words = {"type": "text", "text": "I look."}
    call = {"type": "tool-call", "input": {"city": "Bern"}} | ids
    ends = ({"type": "tool-result", "output": "sun"}, {"type": "tool-error", "error": "sun"})
    for end, error in zip(ends, (None, True), strict=True):
        usage = {"inputTokens": 5, "outputTokens": 2}
        first = {"content": [words, call, end | ids], "finishReason": "tool-calls", "usage": usage}
        last = {"content": [{"type": "text", "text": "Sunny."}], "finishReason": "stop"}
        last |= {"response": {"messages": [{"role": "assistant", "content": "Sunny."}]}}
        for log in (
            {"prompt": "Weather?", "text": "Sunny.", "steps": [first, last]},
            [first, last],
        ):
            (run,) = io.read_runs(write("log.json", log))
            said = [(step.actor, step.text) for step in run.steps]
            assert said[-2:] == [("agent", "I look."), ("agent", "Sunny.")]
            assert said[:-2] == ([("user", "Weather?")] if isinstance(log, dict) else [])
            (call_,) = run.steps[-2].tool_calls
            assert (call_.result, call_.error) == ("sun", error)
            assert run.meta["input_tokens"] == 5
            assert "unmatched_results" not in run.extra


def test_lists_that_python_printed_are_refused(write):
    text = "[{'role': 'user', 'content': 'Hi'}]"
    assert _messages.is_printed(text)
    assert not _messages.is_printed(f"{text} is what I was asked")
    log = write("log.json", [{"messages": [{"role": "assistant", "content": text}]}])
    with pytest.raises(ValueError, match="message 0 is a message as Python prints it"):
        io.read_runs(log)


def test_the_two_sides_of_a_call_are_one_run(write):
    ask, answer = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}
    (run,) = io.read_runs(write("log.json", {"input": [ask], "output": [answer]}))
    assert [step.text for step in run.steps] == ["Hi", "Ho"]
    files = {"input": "a.json", "output": "b.json", "results": [{"messages": [ask, answer]}] * 2}
    assert len(io.read_runs(write("log.json", files))) == 2


@pytest.mark.parametrize("kind", ["request", "response"])
def test_requests_without_parts_are_no_messages(kind):
    assert not _messages.is_message({"kind": kind, "text": "GET https://example.org"})
    assert _messages.is_message({"kind": kind, "parts": []})


@pytest.mark.parametrize("depth", [2, 3])
def test_runs_by_the_keys_that_lead_to_them(write, depth):
    """Each model, each domain, each task: no run is lost, and no two share an id."""
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    runs = {f"task{k}": {"messages": talk, "success": k} for k in range(2)}
    nested = {model: runs if depth == 2 else {"air": runs} for model in ("a", "b")}
    read = io.read_runs(write("nested.json", nested))
    middle = "" if depth == 2 else "air-"
    assert [(run.id, run.outcome) for run in read] == [
        (f"{model}-{middle}task{k}", k) for model in ("a", "b") for k in range(2)
    ]


def test_several_lists_of_runs_are_all_read(write):
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    runs = [{"id": "x", "messages": talk}, {"messages": talk}]
    read = io.read_runs(write("lists.json", {"a": runs, "b": runs, "n": 2}))
    assert [run.id for run in read] == ["a-x", "a-1", "b-x", "b-1"]


@pytest.mark.parametrize("name", ["transcript", "conversation_text"])
def test_a_dialogue_in_one_text(write, name):
    text = "User: Where is it?\nAssistant: I look.\nIt takes long.\nUser: Well?\nAssistant: Rome."
    (run,) = io.read_runs(write("t.jsonl", [{"id": "a", name: text, "success": 1}], lines=True))
    assert [(step.actor, step.text) for step in run.steps] == [
        ("user", "Where is it?"), ("agent", "I look.\nIt takes long."), ("user", "Well?"),
        ("agent", "Rome."),
    ]  # fmt: skip
    for form in ("## {}", "**{}:**", "**{}**:", "{}:"):
        marked = re.sub(r"(?m)^(User|Assistant):", form.format(r"\1") + "\n", text)
        (other,) = io.read_runs(write("t.jsonl", [{"id": "a", name: marked}], lines=True))
        assert [s.text.strip() for s in other.steps] == [s.text for s in run.steps]
    listed = {"id": "a", name: "user: Hi\nassistant: Look:\n## User\nNo."}  # no turn of its own
    assert len(_messages.find_messages(listed)[0]) == 2
    one_sided = {"id": "a", name: "User: Where is it?\nUser: Well?"}
    assert _messages.find_messages(one_sided) == (None, set())


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("user: Hi\nassistant: Yes", [("user", "Hi"), ("assistant", "Yes")]),
        ("  User:  Hi\n\nthere\nASSISTANT:\tYes\n", [("user", "Hi\n\nthere"),
        ("assistant", "Yes")]),
        ("## Human\nHi\n### AI:\nYes", [("human", "Hi"), ("ai", "Yes")]),
        ("**user:** Hi\n**assistant**: Yes", [("user", "Hi"), ("assistant", "Yes")]),
        ("user: None\nassistant: Yes", [("user", ""), ("assistant", "Yes")]),
        ("user: Hi user: there", [("user", "Hi user: there")]),
        ("Hi\nuser: there", []), ("####### user\nHi", []), ("bot: Hi", []), ("", []),
    ],
)  # fmt: skip
def test_turns_of_a_dialogue_in_one_text(text, turns):
    found = _messages.turns_of_transcript(text)
    assert [(turn["role"], turn["content"]) for turn in found] == turns


def test_the_dialogue_of_a_record_has_a_user_and_an_agent():
    both, one = "user: Hi\nassistant: Yes", "user: Hi\nuser: There"
    find = _messages._find_transcript
    assert find({"log": one, "chatText": both, "text": both}) == (
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}],
        {"chatText"},
    )
    of_tools = "system: Be kind\nuser: Hi\nassistant: Yes"  # others may speak, too
    assert [turn["role"] for turn in find({"transcript": of_tools})[0]] == [
        "system", "user", "assistant",
    ]  # fmt: skip
    for record in ({"log": one}, {"other": both}, {"text": [both]}, {"text": "words"}, {}):
        assert find(record) == ([], set())


@pytest.mark.parametrize(
    ("value", "is_nested"),
    [
        ({"role": "user", "content": "Hi"}, False), ({"role": "user", "parts": ["Hi"]}, True),
        ({"role": "user", "parts": "Hi"}, False),
        ({"role": "user", "blocks": [], "content": 1}, True),
        ({"type": "TextMessage", "source": "a", "content": "Hi"}, True),
        ({"type": "TextMessage", "source": 3, "role": "user", "content": "Hi"}, False),
        ({"content": {"parts": []}}, True), ({"parts": ["Hi"], "x": 1}, True),
        ({"item": {"raw_item": {"role": "user", "content": "x"}}}, True), ({"x": {}}, False),
        ("x", False),
    ],
)  # fmt: skip
def test_messages_that_no_table_has_for_a_row(value, is_nested):
    assert _messages.is_nested(value) is is_nested


@pytest.mark.parametrize(
    ("turn", "item", "goes_on"),
    [
        ({}, {}, True), ({}, {"content": "x"}, True), ({"content": "x"}, {"content": "y"}, False),
        ({"tool_calls": [1]}, {"content": "y"}, False),
        ({"tool_calls": []}, {"content": "y"}, True),
        ({"content": "x", "tool_calls": [1]}, {"tool_calls": [2]}, True),
        ({"tool_calls": "x"}, {}, False), ({}, {"tool_calls": {}}, True),
        ({}, {"tool_calls": "x"}, False),
    ],
)  # fmt: skip
def test_words_come_before_calls(turn, item, goes_on):
    assert _messages._goes_on(turn, item) is goes_on


def test_a_turn_that_goes_on_has_all_calls_and_the_first_words():
    turn = {"role": "assistant", "content": "x", "tool_calls": [1], "a": 1, "b": 1}
    joined = _messages._joined(turn, {"tool_calls": [2], "content": "", "b": 2})
    assert joined == {"role": "assistant", "content": "x", "tool_calls": [1, 2], "a": 1, "b": 2}
    assert _messages._joined({}, {"content": "y"}) == {"content": "y"}
    assert _messages._joined({"content": None}, {}) == {"content": ""}


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('[{"name": "f", "arguments": {"a": 1}}]', [("f", {"a": 1})]),
        ("[{'name': 'f', 'arguments': {}}, {'tool_name': 'g'}]", [("f", {}), ("g", None)]),
        ('I call {"name": "f", "args": 3}', [("f", 3)]),
        ('[{"name": "f"}, 3]', None), ("no call", None), ("[1, 2]", None), ("{broken", None),
        ("", None),
    ],
)  # fmt: skip
def test_calls_of_a_role_of_calls(text, calls):
    (message,) = _messages.chat_messages({"role": "tool-call", "content": text, "x": 1})
    assert (message["role"], message["x"]) == ("assistant", 1)
    if calls is None:
        assert message == {"role": "assistant", "content": text, "x": 1}
    else:
        read = [(call["name"], call.get("arguments")) for call in message["tool_calls"]]
        assert (read, message["content"]) == (calls, "")
    function = {"function": {"name": "f"}}
    (kept,) = _messages.chat_messages({"role": "tool_call", "content": str([function])})
    assert kept["tool_calls"] == [function]


def test_what_code_printed_is_a_result_of_autogen():
    event = {
        "type": "CodeExecutionEvent",
        "source": "e",
        "result": {"output": "42", "exit_code": 0},
    }
    (message,) = _messages.chat_messages(event | {"content": "x"})
    assert (message["role"], message["content"]) == ("tool", "42")
    (bare,) = _messages.chat_messages(event | {"content": "x", "result": None})
    assert bare["content"] is None


@pytest.mark.parametrize(
    ("message", "is_plain"),
    [
        (AGENT, True), (AGENT | {"content": None}, True), (AGENT | {"name": "a", "id": 3}, True),
        ({"role": "assistant"}, True), (AGENT | {"x": 1}, False), (AGENT | {"role": "ai"}, False),
        (AGENT | {"content": ["x"]}, False), (AGENT | {"content": '[{"id": 1}]'}, False),
        (
            {
                "role": "tool", "content": "", "tool_calls": [], "tool_call_id": "", "name": "",
                "id": "", "confidence": 1, "refusal": "",
            },
            True,
        ),
        ("x", False),
    ],
)  # fmt: skip
def test_messages_that_need_no_other_reading(message, is_plain):
    assert _messages._is_plain(message) is is_plain


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("content='x' additional_kwargs={}", True), ("content='x' tool_call_id='1'", True),
        ("content='x' name='a'", False), ("tool='f' tool_input={}", True),
        ("[{'role': 'user', 'content': 'x'}]", True), ("[{'message.role': 'user'}] ", True),
        ("[{'role': 'user'}] and more", False), ("ModelRequest(parts=[])", True),
        ("ModelReply(parts=[])", False), ("AIMessageChunk(content='x')", True),
        ("ChatCompletionMessage(role='a')", True), ("ResponseOutputMessage(id='x')", True),
        ("say content='x' additional_kwargs={}", False), ("AIMessage", False), (3, False),
        (None, False),
    ],
)  # fmt: skip
def test_messages_as_python_prints_them(text, printed):
    assert _messages.is_printed(text) is printed


# ------------------------------------------------------------------ one message, in any form


def of(role, content, **more):
    return {"role": role, "content": content} | more


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (of("user", None, author="a"), [of("user", None, author="a")]),
        (of("user", "x", actions={}, partial=True), [of("user", "x", actions={}, partial=True)]),
        (of("user", "x", author="a", actions={}, partial=True), []),
        (of("user", None, author="a", actions={}), []),
        (of("user", "x", author="a", actions={}), [of("user", "x", author="a", actions={})]),
        ({"type": "x_call_output", "call_id": "c", "output": 3}, [of("tool", 3, tool_call_id="c")]),
        (
            {"toolName": "f", "type": "tool-result", "toolCallId": "c", "output": 3},
            [of("tool", 3, tool_call_id="c", name="f")],
        ),
        (
            {"toolName": "f", "toolCallId": "c", "input": 3},
            [of("assistant", "", tool_calls=[{"id": "c", "name": "f", "arguments": 3}])],
        ),
        ({"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "x"}}, [of("assistant", "x")]),
        ({"lc": 1, "id": ["Other"], "kwargs": {"content": "x"}}, [of("other", "x")]),
        ({"lc": 1, "kwargs": "x", "role": "user"}, [{"lc": 1, "kwargs": "x", "role": "user"}]),
        ({"kwargs": {"a": 1}, "role": "user"}, [{"kwargs": {"a": 1}, "role": "user"}]),
        ({"type": "human", "data": {"content": "x"}}, [of("human", "x")]),
        ({"type": "human", "data": "x"}, [{"type": "human", "data": "x", "role": "human"}]),
        ({"type": "x", "data": {"content": "x"}}, [{"type": "x", "data": {"content": "x"}}]),
        ({"content": {"parts": ["x"], "role": "model"}}, [of("model", "x")]),
        (of("user", {"x": ["x"]}), [of("user", {"x": ["x"]})]),
        ({"from": "human", "value": "x"}, [of("human", "x")]),
        ({"from": "", "type": "ai", "text": "x"}, [of("ai", "x", type="ai")]),
        ({"role": "user", "value": "x", "text": "y"}, [of("user", "x", text="y")]),
        (of("user", "c", text="y"), [of("user", "c", text="y")]),
        (of("user", None, parts=["a"], text="y"), [of("user", "a", text="y")]),
        (
            {"kind": "request", "parts": ["x"], "instructions": "Be kind."},
            [of("system", "Be kind."), of("user", "x", kind="request", instructions="Be kind.")],
        ),
        (
            {"kind": "response", "parts": ["x"], "instructions": ""},
            [of("assistant", "x", kind="response", instructions="")],
        ),
        (
            {"kind": "request", "parts": ["x"], "instructions": ["x"]},
            [of("user", "x", kind="request", instructions=["x"])],
        ),
        ({"type": "TextMessage", "content": "x"}, [{"type": "TextMessage", "content": "x"}]),
        (
            {"type": "TextMessage", "source": "user", "content": "x"},
            [of("user", "x", type="TextMessage", source="user")],
        ),
        (
            {"type": "TextMessage", "source": "h", "content": "x"},
            [of("assistant", "x", type="TextMessage", source="h")],
        ),
        (of("user", "c", items=["a", {"text": "b"}]), [of("user", "ab")]),
        (of("user", "c", x=1), [of("user", "c", x=1)]),
        (
            of("user", [{"type": "text", "text": "a"}]),
            [of("user", [{"type": "text", "text": "a"}])],
        ),
        (of("user", [{"text": "a", "n": 1}]), [of("user", [{"text": "a", "n": 1}])]),
        (of("user", []), [of("user", [])]),
        (of("tool", "x", status="error"), [of("tool", "x", status="error", error=True)]),
        (
            of("tool", "x", status="error", error=None),
            [of("tool", "x", status="error", error=None)],
        ),
        (of("tool", "x", status="done"), [of("tool", "x", status="done")]),
        (
            of("ai", "x", additional_kwargs={"refusal": "no", "tool_calls": [], "n": 1}),
            [
                of("ai", "x", additional_kwargs={"refusal": "no", "tool_calls": [], "n": 1})
                | {"refusal": "no"}
            ],
        ),
        (
            of("ai", "x", response_metadata={"logprobs": {}, "finish_reason": None, "n": 1}),
            [
                of("ai", "x", response_metadata={"logprobs": {}, "finish_reason": None, "n": 1})
                | {"logprobs": {}}
            ],
        ),
        (
            of("ai", "x", finish_reason=None, response_metadata={"finish_reason": "stop"}),
            [of("ai", "x", finish_reason="stop", response_metadata={"finish_reason": "stop"})],
        ),
    ],
)
def test_one_message_as_chats_have_it(message, expected):
    assert _messages.chat_messages(message) == expected


def calls(*names):
    return {
        "role": "assistant",
        "tool_calls": [{"id": f"id {name}", "name": name} for name in names],
    }


def thinks(text):
    return {"type": "ThoughtEvent", "source": "h", "content": text}


WITHOUT_WORDS = of("assistant", "", reasoning="hm")
THOUGHT = {"type": "reasoning", "summary": [{"text": "hm"}]}
A_CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
READ_CALL = of("assistant", "", tool_calls=[{"id": "c", "name": "f", "arguments": "{}"}])
OF_HELPER = {"type": "ThoughtEvent", "source": "h"}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([WITHOUT_WORDS], [(0, WITHOUT_WORDS)]),
        ([THOUGHT], []),
        ([THOUGHT, AGENT], [(1, AGENT)]),
        ([THOUGHT, A_CALL], [(0, READ_CALL | {"reasoning": "hm"})]),
        ([AGENT, A_CALL], [(0, AGENT), (1, READ_CALL)]),
        ([THOUGHT, WITHOUT_WORDS | {"x": 1}], [(1, WITHOUT_WORDS | {"x": 1})]),
        ([A_CALL, USER, A_CALL], [(0, READ_CALL), (1, USER), (2, READ_CALL)]),
        ([AGENT, USER, AGENT], [(0, AGENT), (1, USER), (2, AGENT)]),
        ([AGENT | {"x": 1}, AGENT | {"x": 2}], [(0, AGENT | {"x": 1}), (1, AGENT | {"x": 2})]),
        ([calls("user"), USER], [(0, calls("user")), (1, USER)]),
        ([calls("User"), of("User", "x")], [(0, calls("User")), (1, of("User", "x"))]),
        ([calls("f"), of("f", "x")], [(0, calls("f")), (1, of("tool", "x", name="f"))]),
        ([calls("f"), of(["f"], "x")], [(0, calls("f")), (1, of(["f"], "x"))]),
        ([of("f", "x"), calls("f")], [(0, of("f", "x")), (1, calls("f"))]),
        (
            [calls("f"), of("tool-response", "x")],
            [(0, calls("f")), (1, of("tool", "x", tool_call_id="id f"))],
        ),
        ([of("tool-response", "x")], [(0, of("tool-response", "x"))]),
        ([calls("f"), "x", 3], [(0, calls("f")), (1, "x"), (2, 3)]),
        ([thinks("hm")], [(0, OF_HELPER | of("assistant", "hm"))]),
        ([thinks("hm"), AGENT], [(0, OF_HELPER | AGENT | {"reasoning": "hm"})]),
        ([thinks("hm"), USER], [(0, OF_HELPER | of("assistant", "hm")), (1, USER)]),
        ([{"item": {"raw_item": AGENT}}, {"raw_item": USER}], [(0, AGENT), (1, USER)]),
        ([{"item": {"x": 1}, "raw_item": USER}], [(0, {"item": {"x": 1}, "raw_item": USER})]),
        ([{"item": "x", "raw_item": USER}], [(0, USER)]),
        ([of("user", "x", raw_item={})], [(0, of("user", "x", raw_item={}))]),
    ],
)
def test_messages_one_after_the_other(messages, expected):
    assert chat(*messages) == expected


@pytest.mark.parametrize(
    ("content", "lists_calls"),
    [
        ('[{"id": 1, "function": {"name": "f"}}]', True),
        ('[{"id": 1, "function": {"x": "f"}}]', False),
        ('[{"function": {"name": "f"}}]', False),
        ('[{"id": 1, "function": {"name": "f"}}, {"id": 2}]', False),
        ('[ {"id": 1, "function": {"name": "f"}}]', False),
        ('[{"id": 1, "function": {"name": "f"}', False),
        ([{"id": 1, "function": {"name": "f"}}], False),
    ],
)
def test_text_that_lists_calls(content, lists_calls):
    assert _messages._lists_calls(content) is lists_calls


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ([], False), ({"a": USER}, False), ("x", False), ([USER, 3], True), ([3, USER], False),
        (["content='x' additional_kwargs={}"], True), (["x"], False), ([[USER]], False),
        ([[{"id": 1, "source": "user", "observation": "run", "content": "x"}, 3]], True),
    ],
)  # fmt: skip
def test_lists_of_messages(value, is_one):
    assert _messages.is_chat_list(value) is is_one


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"messages": [USER]}, True), (USER | {"messages": [USER]}, False), ([USER], True),
        ({"messages": []}, True), ({"x": 1}, False), (USER, False), ("x", False), ([3], False),
        ([], False),
    ],
)  # fmt: skip
def test_a_run_holds_messages_and_is_not_one(value, is_one):
    assert _messages.is_record(value) is is_one


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"content": {"parts": []}}, True), ({"content": {"x": []}}, False),
        ({"raw_item": USER}, True), ({"item": {"raw_item": USER}}, True),
        ({"raw_item": {"x": 1}}, False), ({"tool_calls": [], "role": "x"}, True),
        ({"tool_calls": []}, False), ({"data": {}, "type": "human"}, True),
    ],
)  # fmt: skip
def test_messages_in_wrappers(value, is_one):
    assert _messages.is_message(value) is is_one


ANSWERS = [USER, AGENT]
LONG = [{"role": "user", "content": str(k)} for k in range(3)]
OLD_STEPS = [{"tool": "f", "tool_input": {}, "log": "x"}]


@pytest.mark.parametrize(
    ("record", "messages", "names"),
    [
        ({"conversation": []}, [], {"conversation"}),
        ({"conversation": "[]"}, [], {"conversation"}),
        ({"conversation": [3], "chat": [USER]}, [USER], {"chat"}),
        ({"input": ANSWERS, "output": [*ANSWERS, USER]}, [*ANSWERS, USER], {"input", "output"}),
        ({"input": ANSWERS, "output": [USER, USER]}, [*ANSWERS, USER, USER], {"input", "output"}),
        ({"input": "x", "output": " "}, None, set()),
        ({"input": "x"}, None, set()),
        ({"output": {"channel_values": {"messages": [USER]}}}, [USER], {"output"}),
        ({"output": {"messages": [3], "output": [USER]}}, [USER], {"output"}),
        ({"output": {"messages": [3]}}, None, set()),
        ({"values": [AGENT], "state": [USER]}, [AGENT], {"values"}),
        ({"my_state": {"messages": [USER]}, "memory": {"history": LONG}}, LONG, {"memory"}),
        ({"other": {"messages": [USER]}}, None, set()),
        ({"tree": {"a": {"message": USER, "parent": None}}, "current_node": "b"}, None, set()),
        ({"chat": "user: Hi\nassistant: Yes", "x": 1}, ANSWERS, {"chat"}),
    ],
)
def test_the_first_place_with_messages_counts(record, messages, names):
    assert _messages.find_messages(record) == (messages, names)


def test_messages_in_a_state_are_at_most_five_levels_deep():
    for n_levels, found in ((1, [USER]), (5, [USER]), (6, [])):
        value = {"messages": [USER]}
        for _ in range(n_levels - 1):
            value = {"inner": value}
        assert _messages._in_state(value) == found
