"""From messages to steps: turns, calls, results, completions."""

import math
from pathlib import Path

import pytest

from trajscore import io
from trajscore.io import Run
from trajscore.io._conversation import (
    Conversation,
    as_number,
    read_arguments,
    read_call,
    role_of,
)
from trajscore.io.files import Place

AGENT = {"role": "assistant"}


@pytest.fixture
def conversation():
    return Conversation(Place(Path("log.json"), 0))


def turn(*names, text=""):
    calls = [{"id": f"id {name}", "name": name} for name in names]
    return AGENT | {"content": text, "tool_calls": calls}


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        (" Assistant", "agent"), ("HUMAN", "user"), ("developer", "system"),
        ("observation", "tool"), ("critic", "environment"), (None, "environment"),
    ],
)  # fmt: skip
def test_roles(role, kind):
    assert role_of(role) == kind


@pytest.mark.parametrize(
    ("call", "name", "arguments", "identifier"),
    [
        ({"id": "c", "function": {"name": "f", "arguments": '{"x": 1}'}}, "f", {"x": 1}, "c"),
        ({"tool_call_id": 7, "name": "f", "args": {"x": 1}}, "f", {"x": 1}, "7"),
        ({"id": "", "function_name": "f", "arguments": None}, "f", {}, None),
        ({"function": "f", "arguments": "x = 1"}, "f", "x = 1", None),
        ({"id": 0}, "", {}, "0"),
        ({"function": {"arguments": "{}"}}, "", {}, None),
        ({"name": ["f"], "arguments": {}}, "", {}, None),
        ({"name": "", "function_name": 7}, "7", {}, None),
        ({"id": "a", "tool_call_id": "b", "name": "f"}, "f", {}, "a"),
    ],
)
def test_calls(call, name, arguments, identifier):
    read = read_call(call, 0)
    assert (read.name, read.arguments, read.id, read.extra) == (name, arguments, identifier, {})


def test_other_fields_of_a_call_are_extra():
    call = {"name": "f", "type": "function", "index": 2, "cache": None}
    assert read_call(call, 0).extra == {"index": 2}
    with pytest.raises(ValueError, match="message 3: a tool call is str, not an object"):
        read_call("f", 3)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (None, {}), ({"x": 1}, {"x": 1}), ('{"x": 1}', {"x": 1}), ("[1]", "[1]"), ("3", "3"),
        ("{", "{"), ([1], [1]), ("[" * 100_000, "[" * 100_000),
    ],
)  # fmt: skip
def test_arguments(arguments, value):
    assert read_arguments(arguments) == value


@pytest.mark.parametrize(
    ("value", "number"), [(None, None), (True, None), ("0.5", 0.5), (2, 2.0), (math.nan, None)]
)
def test_numbers(value, number):
    assert as_number(value, "cost", 0) == number


def test_values_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="message 4: its cost is 'x', not a number"):
        as_number("x", "cost", 4)
    with pytest.raises(ValueError, match="message 4: its cost is infinite"):
        as_number(-math.inf, "cost", 4)


def test_a_turn_has_all_that_its_message_has(conversation):
    message = turn("f", text="Hi") | {
        "confidence": "0.5", "cost": 2, "name": "planner", "audio": None,
        "logprobs": {"content": [{"token": "Hi", "logprob": -1.0}]},
    }  # fmt: skip
    step = conversation.add(message, 5)
    assert conversation.steps == [step]
    assert (step.actor, step.text, step.index) == ("agent", "Hi", 5)
    assert (step.confidence, step.cost) == (0.5, 2.0)
    assert (step.tokens, step.logprobs, step.top_logprobs) == (("Hi",), (-1.0,), None)
    assert step.extra == {"name": "planner"}
    assert conversation.call_of_id("id f") == (step, step.tool_calls[0])
    assert conversation.call_of_id("id g") == conversation.call_of_id(None) == (None, None)


def test_parts_that_are_not_text_and_unknown_roles_are_extra(conversation):
    parts = [{"type": "text", "text": "Look"}, {"type": "image", "url": "u"}]
    step = conversation.add({"role": "Critic", "content": parts}, 0)
    assert (step.actor, step.text) == ("environment", "Look")
    assert step.extra == {"parts": parts, "role": "Critic"}
    assert conversation.add({"role": "user", "content": parts[:1]}, 1).extra == {}


def test_the_older_form_of_a_call(conversation):
    call = {"name": "f", "arguments": '{"x": 1}'}
    step = conversation.add(AGENT | {"tool_calls": None, "function_call": call}, 0)
    assert [(one.name, one.arguments) for one in step.tool_calls] == [("f", {"x": 1})]
    both = conversation.add(turn("g") | {"function_call": call}, 1)
    assert [one.name for one in both.tool_calls] == ["g", "f"]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("Hi", "message 2 is str, not an object"),
        ({"content": "Hi"}, "message 2 has no role"),
        (AGENT | {"tool_calls": {"name": "f"}}, "message 2: its tool calls are dict, not a list"),
        ({"choices": [{"text": "Hi"}]}, "message 2: its choice holds no message"),
        ({"role": "tool", "tool_messages": ["x"]}, "message 2: a nested tool result is str, not"),
    ],
)
def test_messages_that_cannot_be_read(conversation, message, problem):
    with pytest.raises(ValueError, match=problem):
        conversation.add(message, 2)


def test_messages_must_be_a_list(conversation):
    with pytest.raises(ValueError, match="its messages are dict, not a list"):
        conversation.add_all({"role": "user"})


def test_instructions_that_are_repeated_at_once_count_once(conversation):
    for text in ("a", "a", "b", "a"):
        conversation.add({"role": "system", "content": text}, 0)
    assert conversation.system == ["a", "b", "a"]


def test_content_of_an_unknown_form_is_kept(conversation):
    step = conversation.add(AGENT | {"content": {"value": "x"}}, 0)
    assert (step.text, step.extra) == ('{"value": "x"}', {"parts": {"value": "x"}})
    assert conversation.add(AGENT | {"content": {"text": "x"}}, 1).extra == {}


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"usage": {"input_tokens": 3}}, {"input": 3, "output": None}),
        ({"usage": {"n": 3}}, None),
        ({"usage": {"input_tokens": 3}, "tokens": 7}, 7),
        ({"n": 3}, None),
    ],
)
def test_tokens_of_a_turn(conversation, fields, tokens):
    assert conversation.add(AGENT | {"content": "Hi"} | fields, 0).extra.get("tokens") == tokens


@pytest.mark.parametrize(
    ("stated", "confidence"),
    [({"value": 0.4}, 0.4), ({"score": "40%"}, 0.4), (0.4, 0.4), (None,) * 2],
)
def test_confidences_may_be_objects(conversation, stated, confidence):
    assert conversation.add(AGENT | {"confidence": stated}, 0).confidence == confidence


def test_several_confidences_of_one_turn_are_refused(conversation):
    with pytest.raises(ValueError, match=r"its confidence is \[0.1\], not a number$"):
        conversation.add(AGENT | {"confidence": [0.1]}, 0)


# ------------------------------------------------------------------ results


def test_results_go_to_the_call_of_their_identifier(conversation):
    step = conversation.add(turn("f", "g"), 0)
    later = conversation.add(turn(text="wait"), 1)
    for index, (key, text) in enumerate([("id g", "2"), ("id f", "1"), ("id g", "3")], 2):
        result = {"role": "tool", "tool_call_id": key, "content": text}
        assert conversation.add(result, index) is None
    assert [call.result for call in step.tool_calls] == ["1", "2\n3"]
    assert (step.observation, later.observation) == ("2\n1\n3", None)
    assert conversation.unmatched == []


def test_results_without_identifiers_follow_the_order_of_the_calls(conversation):
    first = conversation.add(turn("f"), 0)
    second = conversation.add(turn("f", "g", "f"), 1)
    for text, name in [("1", None), ("2", "f"), ("3", None), ("4", None)]:
        conversation.add_result(text, index=2, name=name)
    assert first.tool_calls[0].result is None
    assert [call.result for call in second.tool_calls] == ["1", "3", "2"]
    assert [one["content"] for one in conversation.unmatched] == ["4"]
    assert second.observation == "1\n2\n3\n4"  # the fourth answers no call, but was seen


def test_results_without_identifiers_go_to_the_last_turn_alone(conversation):
    turns = [conversation.add(turn("f"), k) for k in range(3)]
    conversation.add_result("1", index=3)
    assert [step.tool_calls[0].result for step in turns] == [None, None, "1"]


@pytest.mark.parametrize(
    ("actor", "seen_by"), [(None, "critic"), ("tool", "critic"), ("agent", "agent"), ("user", "u")]
)
def test_a_result_without_a_call_is_seen_by_the_turn_before_it(conversation, actor, seen_by):
    for role in ("agent", "critic", "u"):
        conversation.add({"role": "user" if role == "u" else role, "content": role}, 0)
    conversation.add_result("late", index=7, key="?", name="f", error=True, actor=actor)
    assert [step.text for step in conversation.steps if step.observation == "late"] == (
        ["agent"] if actor == "agent" else [seen_by]
    )
    assert conversation.unmatched == [
        {"index": 7, "id": "?", "name": "f", "content": "late", "error": True}
    ]


def test_a_result_before_all_turns_is_kept(conversation):
    conversation.add({"role": "tool", "id": "", "content": "early"}, 0)
    (result,) = conversation.unmatched
    assert (result["id"], result["error"], result["content"]) == (None, None, "early")


@pytest.mark.parametrize(
    ("errors", "error"), [([None, 1], True), ([0, None], False), ([False, True], False)]
)
def test_the_first_error_that_is_marked_counts(conversation, errors, error):
    step = conversation.add(turn("f"), 0)
    for value in errors:
        conversation.add({"role": "tool", "id": "id f", "content": "x", "error": value}, 1)
    assert step.tool_calls[0].error is error


def test_nested_results(conversation):
    step = conversation.add(turn("f", "g"), 0)
    results = [{"id": "id f", "content": "1"}, {"id": "id g", "content": "2"}]
    conversation.add({"role": "tool", "tool_messages": results}, 1)
    assert [call.result for call in step.tool_calls] == ["1", "2"]


def test_requestor_of_a_result(conversation):
    steps = [conversation.add({"role": role, "content": "x"}, 0) for role in ("user", "agent")]
    conversation.add({"role": "tool", "content": "1", "requestor": "user"}, 1)
    conversation.add({"role": "tool", "content": "2", "requestor": "assistant"}, 1)
    assert [step.observation for step in steps] == ["1", "2"]


# ------------------------------------------------------------------ completions


def completion(text="Hi", logprob=-0.5, **choice):
    scores = {"content": [{"token": text, "logprob": logprob}]}
    first = {"message": AGENT | {"content": text}, "logprobs": scores} | choice
    return {"choices": [first], "model": "m"}


def test_a_completion_is_a_turn(conversation):
    step = conversation.add(completion(finish_reason="stop"), 0)
    assert (step.text, step.tokens, step.logprobs) == ("Hi", ("Hi",), (-0.5,))
    assert step.extra == {"model": "m", "finish_reason": "stop"}
    two = completion()
    two["choices"] += [{"message": AGENT | {"content": "Ho"}}]
    assert conversation.add(two, 1).extra["other_choices"] == two["choices"][1:]


def test_other_choices_are_kept_but_the_first_is_the_turn(conversation):
    three = completion(finish_reason="stop")
    three["choices"] += [{"n": 2}, {"n": 3}]
    three["choices"][0]["message"] |= {"finish_reason": "length"}
    step = conversation.add(three, 0)
    assert step.extra == {
        "model": "m", "finish_reason": "length", "other_choices": [{"n": 2}, {"n": 3}],
    }  # fmt: skip


def test_a_message_with_a_role_is_not_its_choice(conversation):
    step = conversation.add(AGENT | {"content": "Well"} | completion("Hi"), 0)
    assert (step.text, step.logprobs, step.extra) == ("Well", (-0.5,), {"model": "m"})
    assert conversation.add(AGENT | {"content": "x", "choices": [3]}, 1).logprobs is None


def test_the_logprobs_of_a_message_go_before_those_around_it(conversation):
    inner = {"content": [{"token": "Hi", "logprob": -2.0}]}
    message = AGENT | {"content": "Hi", "logprobs": inner}
    assert conversation.add(completion(message=message), 0).logprobs == (-2.0,)


def test_logprobs_of_raw_data_are_moved(conversation):
    raw = completion()
    raw["choices"] += ["other"]
    step = conversation.add(AGENT | {"content": "Hi", "raw_data": raw}, 0)
    assert step.logprobs == (-0.5,)
    (first, other), model = step.extra["raw_data"]["choices"], step.extra["raw_data"]["model"]
    assert (set(first), other, model) == ({"message"}, "other", "m")
    flat = {"logprobs": raw["choices"][0]["logprobs"], "id": "r"}
    step = conversation.add(AGENT | {"content": "Hi", "raw_data": flat}, 1)
    assert (step.logprobs, step.extra["raw_data"]) == ((-0.5,), {"id": "r"})
    assert "logprobs" in flat  # the input is left as it was
    own = AGENT | {"content": "Hi", "logprobs": {"content": [{"token": "Hi", "logprob": -3.0}]}}
    step = conversation.add(own | {"raw_data": flat}, 1)
    assert (step.logprobs, step.extra["raw_data"]) == ((-3.0,), flat)
    assert conversation.add(AGENT | {"raw_data": "x"}, 1).extra == {"raw_data": "x"}
    without = conversation.add(AGENT | {"content": "Hi", "raw_data": {"id": "r"}}, 2)
    assert (without.logprobs, without.extra["raw_data"]) == (None, {"id": "r"})


def test_a_completion_of_the_last_turn_adds_its_scores(conversation):
    step = conversation.add(AGENT | {"content": "Hi"}, 3)
    conversation.add_completion(completion(finish_reason="stop"), 4)
    assert conversation.steps == [step]
    assert (step.tokens, step.logprobs, step.extra) == (("Hi",), (-0.5,), {"finish_reason": "stop"})
    conversation.add_completion(completion(logprob=-9.0, finish_reason="length"), 4)
    assert (step.logprobs, step.extra) == ((-0.5,), {"finish_reason": "stop"})


@pytest.mark.parametrize(
    ("last", "index"),
    [
        (AGENT | {"content": "Hi"}, 5),
        (AGENT | {"content": "Ho"}, 4),
        ({"role": "user", "content": "Hi"}, 4),
        (turn("f", text="Hi"), 4),
    ],
)
def test_another_completion_is_a_new_turn(conversation, last, index):
    conversation.add(last, 3)
    conversation.add_completion(completion(), index)
    assert [step.index for step in conversation.steps] == [3, index]
    assert conversation.steps[-1].logprobs == (-0.5,)


def test_a_completion_may_repeat_the_calls_of_the_last_turn(conversation):
    step = conversation.add(turn("f", text="Hi"), 3)
    conversation.add_completion(completion(message=turn("f", text="Hi")), 4)
    assert (conversation.steps, step.logprobs) == ([step], (-0.5,))


def test_a_completion_is_compared_with_the_turn_just_before_it(conversation):
    for index, role in enumerate(("user", "assistant", "user", "assistant")):
        conversation.add({"role": role, "content": "Hi"}, index)
    conversation.add_completion(completion(), 4)
    assert [step.logprobs for step in conversation.steps] == [None, None, None, (-0.5,)]


def test_a_first_completion_is_a_turn(conversation):
    conversation.add_completion(completion(), 0)
    assert [step.text for step in conversation.steps] == ["Hi"]


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, {"input_tokens": 5, "output_tokens": 2.5}),
        ({"input_tokens": 1}, {"input_tokens": 1}),
        ({"output_tokens": 1, "n": 1}, {"output_tokens": 1, "n": 1}),
        ({"n": 1}, {"n": 1, "input_tokens": 5, "output_tokens": 2.5}),
    ],
)
def test_tokens_of_a_run_are_those_of_its_turns(conversation, meta, expected):
    for tokens in ({"input": 3, "output": 2.5}, {"input": 2, "output": True}, 7, {"input": "9"}):
        conversation.add(AGENT | {"content": "Hi", "tokens": tokens}, 0)
    assert conversation.finish(Run("a", meta=dict(meta))).meta == expected


def test_what_a_run_gets_in_the_end(conversation):
    assert conversation.finish(Run("a")).extra == {}
    conversation.add_all([{"role": "system", "content": "Be kind."}, {"role": "tool", "id": "x"}])
    step = conversation.add(turn(text="Hi"), 2)
    run = conversation.finish(Run("a", extra={"n": 1}))
    assert run.steps == [step]
    assert run.extra.pop("unmatched_results")[0]["id"] == "x"
    assert run.extra == {"n": 1, "system": ["Be kind."]}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"content": None, "refusal": "No."}, "No."),
        ({"content": "", "refusal": "No."}, "No."),
        ({"content": "Yes.", "refusal": "No."}, "Yes."),
        ({"content": None, "refusal": False}, ""),
    ],
)
def test_a_refusal_is_what_a_turn_says(conversation, fields, text):
    assert conversation.add({"role": "assistant", **fields}, 0).text == text


def test_a_refusal_is_one_turn_where_a_completion_repeats_it(write):
    refusal = {"role": "assistant", "content": None, "refusal": "I cannot."}
    talk = [{"role": "user", "content": "Do it"}, refusal]
    record = {"id": "a", "messages": talk, "choices": [{"message": refusal}]}
    (run,) = io.read_runs(write("refusal.json", [record]))
    assert [step.text for step in run.steps] == ["Do it", "I cannot."]


def test_confidences_in_per_cent_and_in_words(conversation):
    turn = {"role": "assistant", "content": "So", "confidence": "36%"}
    assert conversation.add(turn, 0).confidence == pytest.approx(0.36)
    with pytest.raises(ValueError, match="'low', not a number; write numbers for words"):
        conversation.add(turn | {"confidence": "low"}, 1)
