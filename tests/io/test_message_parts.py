"""Parts of a message: texts, thoughts, calls and results, as several libraries write them."""

import pytest

from trajscore.io._message_parts import (
    _steps_of_ui,
    _ui_call,
    call_of_part,
    is_special,
    is_text,
    messages_of_parts,
    result_of_part,
    thought_of,
)

CALL = {"type": "tool_use", "id": "c1", "name": "find", "input": {"n": 3}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "in Paris"}
READ_CALL = {"id": "c1", "name": "find", "arguments": {"n": 3}}
READ_RESULT = {"role": "tool", "content": "in Paris", "tool_call_id": "c1"}


def read(*parts, **fields):
    return messages_of_parts({"role": "assistant", "content": list(parts)} | fields, list(parts))


@pytest.mark.parametrize(
    ("part", "special"),
    [
        ("Hi", False),
        ({"type": "text", "text": "Hi"}, False),
        ({"type": "text", "content": "Hi"}, True),
        ({"type": "text", "content": "Hi", "text": "Hi"}, False),
        ({"type": "thinking"}, True),
        ({"type": "user-prompt"}, True),
        (CALL, True),
        ({"name": "f", "arguments": "{}"}, True),
        ({"tool_name": "f", "tool_kwargs": {}}, True),
        ({"name": "f"}, False),
        (RESULT, True),
        ({"call_id": "1", "content": ["x"]}, True),
        ({"call_id": "1"}, False),
        ({"functionCall": {"name": "f"}}, True),
        ({"functionCall": "f"}, False),
        ({"type": "text", "text": "Hi", "logprobs": []}, True),
    ],
)
def test_parts_that_are_more_than_text(part, special):
    assert is_special(part) is special


def test_a_turn_with_a_call_comes_after_results_of_earlier_calls():
    other = {"type": "tool_result", "tool_use_id": "c0", "content": "one"}
    text = {"type": "text", "text": "I look."}
    before, turn, after = read(other, text, CALL, RESULT)
    assert before == {"role": "tool", "content": "one", "tool_call_id": "c0"}
    assert turn == {"role": "assistant", "content": [text], "tool_calls": [READ_CALL]}
    assert after == READ_RESULT


def test_results_and_prompts_alone_are_no_turn():
    prompt = {"part_kind": "user-prompt", "content": "Go on"}
    assert read(RESULT, prompt) == [READ_RESULT, {"role": "user", "content": "Go on"}]
    assert read(RESULT) == [READ_RESULT]
    assert read(prompt) == [{"role": "user", "content": "Go on"}]
    with_text = read(RESULT, "Thanks.")
    assert with_text == [READ_RESULT, {"role": "assistant", "content": ["Thanks."]}]
    with_calls = read(RESULT, tool_calls=[{"id": "c2"}])
    assert [message["role"] for message in with_calls] == ["tool", "assistant"]


def test_calls_of_the_message_go_before_those_of_its_parts():
    own = [{"id": "c1", "function": {"name": "find"}}]
    (turn,) = read(CALL, tool_calls=own)
    assert turn["tool_calls"] == own


def test_a_message_without_parts_is_an_empty_turn():
    assert read() == [{"role": "assistant", "content": ""}]


def test_thoughts_are_joined_in_order():
    (turn,) = read(
        {"type": "thinking", "thinking": "First."}, {"text": "Second.", "thought": True},
        {"text": "Said.", "thought": False}, {"type": "redacted_thinking", "data": "x"},
    )  # fmt: skip
    assert turn["reasoning"] == "First.\nSecond."
    assert turn["content"] == [{"text": "Said.", "thought": False}]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"text": "a"}, "a"),
        ({"thinking": "a"}, "a"),
        ({"summary": [{"text": "a"}, "?", {"text": "b"}]}, "a\nb"),
        ({"summary": [{}]}, ""),
        ({"data": "a"}, ""),
        ({"text": 3}, ""),
    ],
)
def test_texts_of_thoughts(part, text):
    assert thought_of(part) == text


def test_texts_of_parts_are_one_text():
    for name in ("parts", "blocks", "items"):
        (turn,) = messages_of_parts({"role": "model", name: []}, ["a", {"text": "b"}])
        assert turn == {"role": "model", "content": "ab"}
    image = {"inlineData": {"data": "x"}}
    (turn,) = messages_of_parts({"role": "model", "parts": []}, ["a", image])
    assert turn["content"] == ["a", image]


@pytest.mark.parametrize(
    ("part", "alone"),
    [
        ("a", True), ({"text": "a"}, True), ({"type": "text", "text": "a"}, True),
        ({"text": "a", "thought": True}, False), ({"text": 3}, False), ({"type": "text"}, False),
        (3, False), (None, False),
        ({"type": "a", "block_type": "b", "content_type": "c", "text": "a"}, True),
    ],
)  # fmt: skip
def test_parts_that_hold_text_alone(part, alone):
    assert is_text(part) is alone


def test_log_probabilities_of_texts_go_to_the_message():
    first = {"type": "output_text", "text": "a", "logprobs": [{"token": "a", "logprob": -1.0}]}
    second = {"type": "output_text", "text": "b", "logprobs": [{"token": "b", "logprob": -2.0}]}
    (turn,) = read(first, {"type": "output_text", "text": "-", "logprobs": []}, second)
    assert turn["content"] == [{"type": "text", "text": text} for text in "a-b"]
    assert [one["token"] for one in turn["logprobs"]["content"]] == ["a", "b"]
    (turn,) = read({"type": "output_text", "text": "-", "logprobs": []})
    assert "logprobs" not in turn


def test_text_in_another_field_is_text():
    (turn,) = read({"part_kind": "x", "content": "Hi"}, {"kind": "image", "url": "u"})
    assert turn["content"] == [{"type": "text", "text": "Hi"}, {"kind": "image", "url": "u"}]


@pytest.mark.parametrize(
    ("part", "call"),
    [
        (CALL, READ_CALL),
        ({"name": "find", "arguments": '{"n": 3}'}, {"arguments": '{"n": 3}', "id": None}),
        ({"tool_name": "find", "tool_kwargs": {}, "tool_id": "c"}, {"arguments": {}, "id": "c"}),
        ({"toolName": "find", "call_id": ["run", "c"]}, {"id": "c"}),
        ({"name": "find", "id": []}, {"id": []}),
        ({"name": "find", "id": ["a", "b", "c"]}, {"id": "c"}),
        ({"name": "find", "id": ["c"]}, {"id": "c"}),
        ({"arguments": 0}, {"name": "", "arguments": 0, "id": None}),
        ({"name": 7}, {"name": "7", "id": None}),
    ],
)
def test_calls(part, call):
    assert call_of_part(part) == {"name": "find"} | call


@pytest.mark.parametrize(
    ("part", "result"),
    [
        (RESULT, {"content": "in Paris"}),
        (RESULT | {"is_error": True}, {"content": "in Paris", "error": True}),
        (RESULT | {"is_error": False}, {"content": "in Paris"}),
        (RESULT | {"isError": True}, {"content": "in Paris", "error": True}),
        (RESULT | {"status": "error"}, {"content": "in Paris", "error": True}),
        (RESULT | {"status": "success"}, {"content": "in Paris"}),
        (RESULT | {"type": "tool-error"}, {"content": "in Paris", "error": True}),
        (RESULT | {"type": "retry-prompt"}, {"content": "in Paris", "error": True}),
        (RESULT | {"name": "find"}, {"content": "in Paris", "name": "find"}),
        (RESULT | {"name": ""}, {"content": "in Paris"}),
        (RESULT | {"content": {"type": "json", "value": [3]}}, {"content": [3]}),
        (
            RESULT | {"content": {"type": "json", "value": [3], "x": 1}},
            {"content": {"type": "json", "value": [3], "x": 1}},
        ),
        (
            RESULT | {"content": '{"type": "function_result", "result": "9"}'},
            {"content": "9"},
        ),
        (RESULT | {"content": '{"type": "other", "result": "9"}'},
         {"content": '{"type": "other", "result": "9"}'}),
        ({"tool_use_id": "c1", "origin": {"content": "in Paris"}}, {"content": "in Paris"}),
        ({"tool_use_id": "c1", "content": "in Paris", "origin": {"content": "x"}},
         {"content": "in Paris"}),
    ],
)  # fmt: skip
def test_results(part, result):
    assert result_of_part(part) == {"role": "tool", "tool_call_id": "c1"} | result


@pytest.mark.parametrize("name", ["functionCall", "function_call", "toolUse", "tool_call"])
def test_wrapped_calls_and_results(name):
    call = {name: {"name": "find", "args": {"n": 3}, "id": "c1"}}
    response = {"functionResponse": {"name": "find", "response": {"x": 1}, "id": "c1"}}
    turn, answer = read(call, response)
    assert turn["tool_calls"] == [READ_CALL]
    assert answer == {"role": "tool", "name": "find", "content": {"x": 1}, "tool_call_id": "c1"}


# ---------------------------------------------------------- user interfaces of Vercel's AI SDK


def ui_call(k, **more):
    return {"type": "tool-find", "toolCallId": f"c{k}", "input": {"n": k}} | more


def ui(*parts):
    return messages_of_parts({"role": "assistant", "parts": list(parts), "id": "m"}, list(parts))


@pytest.mark.parametrize(
    ("part", "call"),
    [
        ({"toolInvocation": {"a": 1}, "toolCallId": "c", "type": "tool-f"}, {"a": 1}),
        ({"toolInvocation": {}, "type": "tool-f"}, None),
        ({"type": "tool-f"}, None),
        ({"type": "text", "toolCallId": "c"}, None),
        ({"type": "tool-call", "toolCallId": "c"}, None),
        ({"type": "tool-result", "toolCallId": "c"}, None),
        (
            {"type": "tool-f", "toolCallId": "c"},
            {"toolName": "f", "type": "tool-f", "toolCallId": "c"},
        ),
        (
            {"type": "dynamic-tool", "toolName": "f", "toolCallId": "c"},
            {"toolName": "f", "type": "dynamic-tool", "toolCallId": "c"},
        ),
        ("text", None),
    ],
)
def test_calls_of_user_interfaces(part, call):
    assert _ui_call(part) == call


def test_what_is_said_after_calls_is_the_next_step():
    text, call = {"type": "text", "text": "x"}, {"type": "tool-f", "toolCallId": "c"}
    start = {"type": "step-start"}
    assert _steps_of_ui([text, call, call, text, text, start, start, call]) == [
        [text, call, call], [text, text], [call],
    ]  # fmt: skip
    assert _steps_of_ui([start]) == []


def test_results_without_an_id_come_before_the_turn():
    call, result = {"type": "tool_use", "name": "f"}, {"type": "tool_result", "content": "x"}
    before, turn = read("a", call, result)
    assert before == {"role": "tool", "content": "x", "tool_call_id": None}
    assert turn["tool_calls"] == [{"id": None, "name": "f"}]


def test_a_message_of_a_user_interface_is_a_turn_a_step():
    text = {"type": "text", "text": "I look."}
    start = {"type": "step-start"}
    parts = [
        start, text, ui_call(1, output="one"), ui_call(2, output="two"), start,
        ui_call(3, errorText="lost"), {"type": "text", "text": "Done."},
    ]  # fmt: skip
    first, one, two, second, lost, last = ui(*parts)
    assert (first["content"], last["content"]) == ("I look.", "Done.")
    assert [call["id"] for call in first["tool_calls"]] == ["c1", "c2"]
    assert first["tool_calls"][0] == {"id": "c1", "name": "find", "arguments": {"n": 1}}
    assert [one["content"], two["content"]] == ["one", "two"]
    assert [call["id"] for call in second["tool_calls"]] == ["c3"]
    assert (lost["content"], lost["error"], lost["tool_call_id"]) == ("lost", True, "c3")
    assert "error" not in one
    assert "tool_calls" not in last
    assert {message["role"] for message in (first, second, last)} == {"assistant"}


def test_a_call_of_a_user_interface_may_have_no_result_yet():
    (turn,) = ui(ui_call(1, state="input-available"))
    assert turn["tool_calls"][0]["id"] == "c1"


def test_older_messages_of_user_interfaces_nest_their_calls():
    call = {"toolCallId": "c1", "toolName": "find", "args": {"n": 3}, "result": "in Paris"}
    turn, answer = ui({"type": "tool-invocation", "toolInvocation": call})
    assert turn["tool_calls"] == [READ_CALL]
    assert answer == READ_RESULT


def test_a_dynamic_tool_of_a_user_interface_has_its_name_beside():
    turn, answer = ui(
        {"type": "dynamic-tool", "toolName": "look", "toolCallId": "c", "input": {}, "output": 0}
    )
    assert turn["tool_calls"][0]["name"] == "look"
    assert answer["content"] == 0


def test_calls_of_models_are_not_those_of_user_interfaces():
    part = {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"n": 3}}
    (turn,) = ui(part)
    assert turn["tool_calls"] == [READ_CALL]
    (answer,) = ui({"type": "tool-result", "toolCallId": "c1", "output": "in Paris"})
    assert answer == READ_RESULT
