"""Messages within what a model was given and answered, in the forms that libraries have."""

import json

import pytest

from trajscore import io
from trajscore.io import _payloads
from trajscore.io._payloads import messages_in, result_in

ASK = {"role": "user", "content": "Hi"}


def told(value, role):
    return [(one.get("role"), one.get("content")) for one in messages_in(value, role)]


@pytest.mark.parametrize(
    "value",
    [
        "Hi",
        '"Hi"',
        [ASK],
        [[ASK]],
        ASK,
        {"messages": [ASK]},
        {"messages": json.dumps([ASK])},
        json.dumps(json.dumps({"messages": [ASK]})),
        {"messages": [["user", "Hi"]]},
        {"input": "Hi", "model": "m"},
        {"prompt": [ASK]},
        {"contents": "Hi"},
        {"contents": [{"role": "user", "parts": [{"text": "H"}, {"text": "i"}]}]},
        {"new_message": {"parts": [{"text": "Hi"}]}, "user_id": "u", "session_id": "s"},
        {"args": ["Hi"], "kwargs": {}},
        {"args": [], "kwargs": {"messages": [ASK]}},
        [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
        [{"role": "user", "gen_ai.event.content": json.dumps(ASK), "gen_ai.system": "openai"}],
        "user: Hi",
    ],
)
def test_what_a_model_is_given(value):
    assert told(value, "user") == [("user", "Hi")]


@pytest.mark.parametrize(
    "value",
    [
        "Hi",
        {"role": "assistant", "content": "Hi"},
        {"text": "Hi", "finish_reason": "stop"},
        {"content": "Hi"},
        {"message": {"role": "Assistant", "content": "Hi"}, "index": 0},
        {"output": [{"type": "message", "role": "assistant", "content": "Hi"}]},
        {"generations": [[{"text": "Hi", "message": None}]]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}, {"index": 1}]},
        {"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finish_reason": "STOP"},
        {"choices": [{"text": "Hi", "finish_reason": "stop"}]},
        {"messages": [{"role": "assistant", "content": "Hi"}]},
    ],
)
def test_what_a_model_answers(value):
    assert [(who.lower(), what) for who, what in told(value, "assistant")] in (
        [("assistant", "Hi")],
        [("model", "Hi")],
    )


def test_instructions_and_calls():
    google = {
        "config": {"system_instruction": "Be kind."},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"y": 2}}}]},
        ],
    }
    system, user, call, result = messages_in(google, "user")
    assert (system["role"], system["content"], user["content"]) == ("system", "Be kind.", "Hi")
    assert call["tool_calls"] == [{"id": None, "name": "f", "arguments": {"x": 1}}]
    assert (result["role"], result["name"], result["content"]) == ("tool", "f", {"y": 2})
    assert told({"system": "Be kind.", "prompt": "Hi"}, "user")[0] == ("system", "Be kind.")
    (bare,) = messages_in([{"toolCallId": "c", "toolName": "f", "input": "{}"}], "assistant")
    assert bare["tool_calls"][0]["name"] == "f"
    microsoft = {"type": "tool_call", "id": ["run", "call_1"], "name": "f", "arguments": {}}
    (one,) = messages_in({"role": "assistant", "parts": [microsoft]}, "assistant")
    assert one["tool_calls"][0]["id"] == "call_1"


CALL = {"id": "c", "name": "f", "arguments": '{"x": 1}'}
LLAMA = [
    {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Hi"}]},
    {
        "role": "assistant",
        "additional_kwargs": {"tool_calls": [{"id": "c", "function": CALL}]},
        "blocks": [],
    },
    {
        "role": "tool",
        "additional_kwargs": {"tool_call_id": "c"},
        "blocks": [{"block_type": "text", "text": "42"}],
    },
    {
        "role": "assistant",
        "additional_kwargs": {},
        "blocks": [{"block_type": "text", "text": "Ha"}],
    },
]
BEDROCK = [
    {"role": "user", "content": [{"text": "Hi"}]},
    {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {"x": 1}}}],
    },
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "42"}]}}]},
    {"role": "assistant", "content": [{"text": "Ha"}]},
]
HAYSTACK = [
    {"role": "user", "meta": {}, "content": [{"text": "Hi"}]},
    {
        "role": "assistant",
        "content": [{"tool_call": {"id": "c", "tool_name": "f", "arguments": {"x": 1}}}],
    },
    {"role": "tool", "content": [{"tool_call_result": {"result": "42", "origin": {"id": "c"}}}]},
    {"role": "assistant", "content": [{"text": "Ha"}]},
]
AUTOGEN = [
    {"type": "TextMessage", "source": "user", "content": "Hi"},
    {"type": "ToolCallRequestEvent", "source": "helper", "content": [CALL]},
    {
        "type": "ToolCallExecutionEvent",
        "source": "helper",
        "content": [{"call_id": "c", "content": "42", "name": "f", "is_error": False}],
    },
    {"type": "TextMessage", "source": "helper", "content": "Ha"},
]
AUTOGEN_MODEL = [
    {"type": "UserMessage", "source": "user", "content": "Hi"},
    {"type": "AssistantMessage", "source": "helper", "content": [CALL]},
    {
        "type": "FunctionExecutionResultMessage",
        "content": [{"call_id": "c", "content": "42", "is_error": False}],
    },
    {"type": "AssistantMessage", "source": "helper", "content": "Ha"},
]


@pytest.mark.parametrize("messages", [LLAMA, BEDROCK, HAYSTACK, AUTOGEN, AUTOGEN_MODEL])
def test_messages_of_more_libraries(write, messages):
    (run,) = io.read_runs(write("log.json", {"id": "a", "messages": messages}))
    assert [(step.actor, step.text) for step in run.steps] == [
        ("user", "Hi"),
        ("agent", ""),
        ("agent", "Ha"),
    ]
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments, call.result) == ("f", {"x": 1}, "42")
    assert "unmatched_results" not in run.extra


def test_only_what_is_surely_a_message_counts_around_calls():
    for value in ("continue", {"content": "role"}, {"joke": "x"}, {"prompt": "Hi"}, ["a"], 3, None):
        assert messages_in(value, None) == []
    assert told({"messages": [ASK]}, None) == [("user", "Hi")]
    # an object without a role is no message that a model was given, but may be its answer
    assert messages_in({"content": "role"}, "user") == []
    assert told({"city": "Paris"}, "assistant") == [("assistant", {"city": "Paris"})]
    definition = {"role": "tool", "content": {"type": "function", "function": {"name": "f"}}}
    assert told([ASK, definition], "user") == [("user", "Hi")]


def test_a_dialogue_in_one_text_is_cut_at_its_speakers():
    text = "System: Be kind.\nUser: Hi\nthere\nAssistant: Yes?"
    assert told(text, "user") == [
        ("system", "Be kind."),
        ("user", "Hi\nthere"),
        ("assistant", "Yes?"),
    ]


def test_what_a_tool_returns():
    assert result_in("in Paris") == ("in Paris", None)
    assert result_in('{"a": 1}') == ('{"a": 1}', None)  # as it is written
    assert result_in({"content": [{"type": "text", "text": "x"}]})[0][0]["text"] == "x"
    mixed = {"content": [{"type": "text", "text": "x"}, 5]}  # a result of its own form, kept whole
    assert result_in(mixed) == (mixed, None)
    answer = {"type": "tool", "content": "x", "tool_call_id": "c1"}
    assert result_in(answer) == result_in(json.dumps(answer)) == ("x", "c1")


def test_results_without_identifiers_belong_to_the_turn_before_them(write):
    def call(answer):
        return {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}, {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"r": answer}}}],
        }

    ask = {"role": "user", "parts": [{"text": "Hi"}]}
    one, two, three = call(1), call(1), call(2)
    spans = [
        {"id": "0", "given": [ask], "answer": one[0]},
        {"id": "1", "given": [ask, *one], "answer": two[0]},
        {"id": "2", "given": [ask, *one, *two], "answer": three[0]},
        {"id": "3", "given": [ask, *one, *two, *three], "answer": {"role": "model", "parts": []}},
    ]
    rows = [
        {
            "traceId": "t",
            "type": "GENERATION",
            "id": span["id"],
            "startTime": f"2026-01-01T00:00:0{span['id']}Z",
            "input": {"contents": span["given"]},
            "output": {"candidates": [{"content": span["answer"]}]},
        }
        for span in spans
    ]
    (run,) = io.read_runs(write("log.jsonl", rows, lines=True))
    results = [call.result for step in run.steps for call in step.tool_calls]
    assert results == ['{"r": 1}', '{"r": 1}', '{"r": 2}']
    assert [step.actor for step in run.steps] == ["user", *["agent"] * 4]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("Be kind.", "Be kind."), ('"Be kind."', "Be kind."), ("", None), (3, None), ([], None),
        ({"parts": [{"text": "a"}]}, [{"text": "a"}]), ({"text": "a"}, "a"), ({"x": 1}, None),
        ([{"text": "a"}, {"text": "b"}], [{"text": "a"}, {"text": "b"}]),
        ([{"text": "a"}, 3], [{"text": "a"}]), ([3], None),
        ([{"type": "text", "text": "a"}, 3], [{"type": "text", "text": "a"}]),
    ],
)  # fmt: skip
def test_instructions(value, content):
    expected = [] if content is None else [{"role": "system", "content": content}]
    assert _payloads._instruction(value) == expected


@pytest.mark.parametrize(
    ("fields", "role", "expected"),
    [
        ({"role": "user"}, "assistant", [{"role": "user"}]),
        ({"content": "x"}, None, [{"content": "x"}]),
        ({"parts": []}, "user", [{"parts": [], "role": "user"}]),
        ({"role": None}, "user", [{"role": "user"}]),
        ({"parts": []}, None, []),
    ],
)
def test_roles_of_a_side(fields, role, expected):
    assert _payloads._with_role(fields, role) == expected


@pytest.mark.parametrize(
    ("name", "role", "expected"),
    [("prompt", "assistant", "user"), ("prompt", None, None), ("output", "assistant", "assistant"),
     ("output", None, None), ("history", "user", None)],
)  # fmt: skip
def test_roles_of_bare_text(name, role, expected):
    assert _payloads._role_in(name, role) == expected


def test_answers_without_a_message():
    answer = _payloads._bare_answer
    assert answer({}) == []
    assert answer({"city": "x"}) == [
        {"role": "assistant", "content": {"city": "x"}, "tool_calls": []}
    ]
    (said,) = answer({"text": "a", "finishReason": "stop"})
    assert (said["content"], said["finish_reason"]) == ("a", "stop")
    call = {"toolName": "f", "args": {}}
    (vercel,) = answer({"text": "a", "toolCalls": [call, 3]})
    assert vercel["content"] == [{"type": "text", "text": "a"}, {"type": "tool-call", **call}]
    (alone,) = answer({"toolCalls": [call]})
    assert alone["content"] == [{"type": "tool-call", **call}]
    (parts,) = answer({"text": [{"type": "text", "text": "a"}], "toolCalls": [call]})
    assert parts["content"] == [{"type": "text", "text": "a"}, {"type": "tool-call", **call}]
    (thinking,) = answer({"text": "a", "thought": "hm", "finish_reason": "stop"})
    assert (thinking["thought"], thinking["finish_reason"]) == ("hm", "stop")
    (plain,) = answer({"tool_calls": [{"name": "f"}]})
    assert (plain["content"], plain["tool_calls"]) == (None, [{"name": "f"}])


def test_choices_without_a_message():
    choices = _payloads._from_choices
    whole = {"choices": [{"message": {"content": "a"}}]}
    assert choices(whole) == [whole]
    assert [one["content"] for one in choices({"choices": [{"text": "a"}]})] == ["a"]
    for nothing in ([], [3], [{}], None):
        assert choices({"choices": nothing}) == []


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"output": "x"}, ("x", None)),
        ({"output": {"a": 1}}, ({"a": 1}, None)),
        ({"output": "x", "more": 1}, ({"output": "x", "more": 1}, None)),
        ({"role": "tool", "content": "x", "tool_call_id": ""}, ("x", None)),
        ({"role": "tool", "content": "x", "tool_call_id": 3}, ("x", "3")),
        ({"content": []}, ({"content": []}, None)),
        ({"name": "f", "response": 3}, (3, None)),
        ({"name": "f", "response": "x", "id": "c"}, ("x", None)),
        ('"x"', ("x", None)),
        ({"content": [{"text": "x"}], "id": 1}, ([{"text": "x"}], None)),
        ({"content": "", "blocks": [{"text": "x"}]}, ([{"text": "x"}], None)),
        ({"content": [3]}, ({"content": [3]}, None)),
        ({"output": '{"a": 1}'}, ('{"a": 1}', None)),
        (3, (3, None)),
    ],
)
def test_results_in_wrappers(value, result):
    assert result_in(value) == result


def test_pairs_of_role_and_text():
    pairs = [["user", "Hi"], ["assistant", "Yes"]]
    assert told(pairs, "user") == [("user", "Hi"), ("assistant", "Yes")]
    mixed = told([["user", "Hi"], {"role": "assistant", "content": "Yes"}], "user")
    assert mixed[-1] == ("assistant", "Yes")
    batch = [[ASK, {"role": "assistant", "content": "Yes"}], [ASK]]
    assert told(batch, "user") == [("user", "Hi"), ("assistant", "Yes")]


@pytest.mark.parametrize(
    ("value", "is_pair"),
    [
        (["user", "Hi"], True), (["user", 3], False), ([3, "Hi"], False), (["user"], False),
        (["user", "Hi", "x"], False), (["critic", "Hi"], False), (("user", "Hi"), False),
    ],
)  # fmt: skip
def test_a_pair_is_a_known_role_and_a_text(value, is_pair):
    assert _payloads._is_pair(value) is is_pair


@pytest.mark.parametrize(
    ("value", "is_part"),
    [
        ({"text": "a"}, True), ({"text": "a", "x": 1}, False), ({"type": "text", "x": 1}, True),
        ({"block_type": "thinking"}, True), ({"type": "x", "block_type": "text"}, False),
        ({"type": "text", "role": "user"}, False), ({"functionCall": 1}, True),
        ({"toolResult": 1}, True), ({"functionCall": 1, "x": 1}, False), ({"x": 1}, False),
        ("text", False), (["role"], False),
    ],
)  # fmt: skip
def test_a_part_has_no_role_and_a_known_form(value, is_part):
    assert _payloads._is_part(value) is is_part


@pytest.mark.parametrize(
    ("value", "role", "expected"),
    [
        (None, "user", []), (3, "user", [("user", "3")]), (3, None, []), (" ", "user", []),
        ("Hi", None, []), ([], "user", []), ([3], "user", [("user", "3")]), ([[]], "user", []),
        (["content='x'", "content='y'"], "user", []),
        (["content='x'", "y"], "user", [("user", "content='x'"), ("user", "y")]),
        ([{"text": "a"}], "user", [("user", [{"text": "a"}])]), ([{"text": "a"}], None, []),
        (["user: Hi"], "assistant", [("assistant", "user: Hi")]),
        ([["user", "Hi"], ["user", 3]], "user", [("user", "user"), ("user", "Hi")]),
    ],
)  # fmt: skip
def test_bare_values(value, role, expected):
    assert told(value, role) == expected


@pytest.mark.parametrize("name", ["output", "kwargs", "content", "gen_ai.event.content"])
def test_messages_within_at_most_five_wrappers(name):
    inner = {"message": ASK} if name == "content" else ASK
    for n_wrappers, found in ((1, True), (5, True), (6, False), (7, False)):
        value = inner
        for _ in range(n_wrappers - (name == "content")):
            value = {name: value}
        assert messages_in(value, None) == ([ASK] if found else [])


def test_messages_within_lists_and_objects_by_turns():
    for n_pairs, found in ((1, True), (2, True), (3, False)):
        value = ASK
        for _ in range(n_pairs):
            value = {"output": [3, value]}
        assert messages_in(value, None) == ([ASK] if found else [])


def test_of_candidates_the_first_counts():
    answers = [{"content": {"parts": [{"text": text}], "role": "model"}} for text in "ab"]
    assert told({"candidates": answers}, "assistant") == [("model", "a")]
    assert told({"candidates": answers[1]}, "assistant") == [("model", "b")]
    assert told({"generations": answers}, "assistant") == [("model", "a"), ("model", "b")]


def test_the_piece_of_a_choice():
    def choice(delta):
        return told({"choices": [{"delta": delta, "text": ""}]}, None)

    assert choice({"content": "Hi"}) == [("assistant", "Hi")]
    assert choice({"message": ASK}) == [("user", "Hi")]
    assert choice({"message": {"message": ASK}}) == [("assistant", {"message": ASK})]


def test_instructions_of_a_request_and_of_its_configuration():
    both = {"system": "a", "config": {"instructions": "b"}, "prompt": "Hi"}
    assert told(both, "user") == [("system", "a"), ("system", "b"), ("user", "Hi")]
    assert told({"system": "a", "n": 1}, "user") == [("system", "a")]
    assert told({"n": 1}, "user") == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('[{"text": "a"}]', [{"text": "a"}]), ("[]", "[]"), ("[3]", "[3]"), ("a", "a"),
        ('{"text": "a"}', '{"text": "a"}'), ('[{"text": "a"}, 3]', '[{"text": "a"}, 3]'),
        (None, None),
    ],
)  # fmt: skip
def test_parts_that_are_json_text(content, expected):
    message = {"role": "user", "content": content}
    assert _payloads.with_parts(message) == message | {"content": expected}


def test_objects_that_hold_an_answer():
    """Text within an event or a choice, before anything else that the object holds."""
    event = {"gen_ai.event.content": json.dumps({"content": "Yes"}), "message": ASK}
    assert told(event, "assistant") == [("assistant", "Yes")]
    choice = {"choices": [{"text": "Yes"}], "role": "user", "content": "Hi"}
    assert told(choice, None) == [("assistant", "Yes")]
    assert told({"role": None, "content": "Yes"}, "assistant") == [("assistant", "Yes")]


def test_an_answer_within_its_content():
    answer = {"content": {"parts": [{"text": "Yes"}], "role": "model"}}
    wrapped = {"content": {"message": {"role": "assistant", "content": "Yes"}}, "usage": {}}
    for value in (answer, wrapped, {"system": "Be kind."} | wrapped):
        assert messages_in(value, "assistant")[-1]["content"] == "Yes"
    assert [m["role"] for m in messages_in({"system": "Be kind."} | wrapped, None)] == [
        "system", "assistant",
    ]  # fmt: skip
