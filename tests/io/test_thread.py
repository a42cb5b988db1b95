"""One conversation out of calls that repeat it."""

from pathlib import Path

import pytest

from trajscore.io._conversation import Conversation
from trajscore.io._thread import (
    Thread,
    _joined,
    _says_nothing,
    _with_known_ids,
    set_result,
    turn_keys,
)
from trajscore.io.files import Place

SYSTEM = {"role": "system", "content": "Be kind."}


def user(text):
    return {"role": "user", "content": text}


def agent(text="", *calls, ids=True):
    made = [{"id": name.upper() if ids else None, "name": name} for name in calls]
    return {"role": "assistant", "content": text, "tool_calls": made}


def result(text, key=None, **more):
    return {"role": "tool", "content": text, "tool_call_id": key} | more


@pytest.fixture
def thread():
    return Thread(Conversation(Place(Path("log.json"), 0)))


def texts(thread):
    assert len(thread.keys) == len(thread.talk.steps)
    return [step.text for step in thread.talk.steps]


def calls_of(thread):
    return [call for step in thread.talk.steps for call in step.tool_calls]


def test_what_is_repeated_is_added_once(thread):
    thread.add_call([SYSTEM, user("a")], [agent("b")], 0)
    thread.add_call([SYSTEM, user("a"), agent("b"), user("c")], [agent("d")], 1)
    assert texts(thread) == ["a", "b", "c", "d"]
    assert thread.talk.system == ["Be kind."]
    assert [step.index for step in thread.talk.steps] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("a"), user("b"), user("c")], ["a", "b", "c"]),
        ([user("a"), user("x"), user("b")], ["a", "x", "b", "c"]),
        ([user("x"), user("y"), user("b")], ["a", "x", "y", "b", "c"]),
        ([user("b"), user("x")], ["a", "b", "c", "x"]),
        ([user("a"), user("x"), user("b"), user("y"), user("c"), user("z")],
         ["a", "x", "b", "y", "c", "z"]),
        ([user("x")], ["a", "b", "c", "x"]),
        ([user("b")], ["a", "b", "c"]),
        ([], ["a", "b", "c"]),
    ],
)  # fmt: skip
def test_new_messages_go_before_the_next_known_one(thread, messages, expected):
    thread.weave([user("a"), user("b"), user("c")], 0)
    woven = thread.weave(messages, 1)
    assert [step.text for step in woven] == [message["content"] for message in messages]
    assert texts(thread) == expected


def test_texts_that_differ_in_spaces_only_are_the_same(thread):
    thread.weave([user("a  b\n")], 0)
    thread.weave([user(" a b"), agent("a b")], 1)
    assert texts(thread) == ["a  b\n", "a b"]


def test_turns_with_identified_calls_are_known_by_them(thread):
    thread.weave([user("q"), agent("think", "f", "g")], 0)
    thread.weave([user("q"), agent("", "g", "f"), user("more")], 1)
    assert texts(thread) == ["q", "think", "more"]
    thread.weave([agent("", "f"), user("end")], 2)  # one of its calls stands for the turn
    assert texts(thread) == ["q", "think", "more", "end"]
    thread.weave([agent("", "f", "h")], 3)
    assert texts(thread)[-1] == ""


def test_messages_that_were_one_turn_are_joined(thread):
    turn = agent("a\nb", "f")
    thread.weave([user("p"), agent("x"), user("q"), turn], 0)
    parts = [agent("a"), agent("b", "f")]
    thread.weave([user("p"), agent("x"), user("q"), *parts, user("r")], 1)
    assert texts(thread) == ["p", "x", "q", "a\nb", "r"]


def test_calls_without_identifiers_are_compared(thread):
    thread.weave([agent("", "f", ids=False)], 0)
    thread.weave([agent("", "f", ids=False)], 1)
    thread.weave([agent("", "g", ids=False)], 2)
    assert [call.name for call in calls_of(thread)] == ["f", "g"]


def test_results_are_added_once(thread):
    start = [user("q"), agent("", "f", "g")]
    thread.weave([*start, result("1", "F"), result("2", "G")], 0)
    thread.weave([*start, result("1", "F"), result("2", "G"), user("end")], 1)
    assert [call.result for call in calls_of(thread)] == ["1", "2"]
    assert thread.talk.steps[1].observation == "1\n2"
    assert thread.talk.unmatched == []


def test_results_in_another_order_than_their_calls_go_by_identifiers(thread):
    thread.weave([user("q"), agent("", "f", "g"), result("2", "G"), result("1", "F")], 0)
    assert [call.result for call in calls_of(thread)] == ["1", "2"]


def test_results_without_identifiers_follow_the_calls_of_their_turn(thread):
    messages = [
        agent("", "f", "g", ids=False), result("2", name="g"), result("1"), user("end"),
        agent("", "h"), result("3"),
    ]  # fmt: skip
    thread.weave(messages, 0)
    assert [call.result for call in calls_of(thread)] == ["1", "2", "3"]


def test_a_result_of_an_unknown_call_is_kept_once(thread):
    other = [agent("", "f"), result("1", "?", name="f"), result("1", "?", name="f")]
    thread.weave(other, 0)
    thread.weave(other, 1)
    assert calls_of(thread)[0].result is None
    assert [one["content"] for one in thread.talk.unmatched] == ["1"]
    thread.weave([result("2", "?", name="f"), result("1", "?", name="g")], 2)
    assert [one["content"] for one in thread.talk.unmatched] == ["1", "2", "1"]


@pytest.mark.parametrize(("error", "marked"), [(True, True), (False, None), (None, None)])
def test_errors_of_results(thread, error, marked):
    thread.weave([agent("", "f"), result("1", "F", error=error)], 0)
    assert calls_of(thread)[0].error is marked


def test_the_result_in_a_message_goes_before_that_of_a_span(thread):
    thread.weave([agent("", "f", "g")], 0)
    step = thread.talk.steps[0]
    for call in step.tool_calls:
        call.extra["result"] = True
        set_result(step, call, "span")
    thread.weave([result("message", "F"), result("span", "G")], 1)
    first, second = step.tool_calls
    assert (first.result, first.extra) == ("message", {"output": "span"})
    assert (second.result, second.extra) == ("span", {})
    assert step.observation == "message\nspan"
    thread.weave([result("again", "F")], 2)  # once a message has told it, it stays
    assert first.result == "message"


# ------------------------------------------------------------------ answers


def test_an_answer_is_new_unless_a_call_repeated_it_before(thread):
    thread.weave([user("q"), agent("yes"), user("sure?")], 0)
    first = thread.add_call([user("q")], [agent("yes")], 1)
    assert first == [thread.talk.steps[1]]
    second = thread.add_call([user("q")], [agent("yes")], 2)  # claimed: said twice
    assert texts(thread) == ["q", "yes", "sure?", "yes"]
    assert second == [thread.talk.steps[3]]


def test_an_answer_is_looked_for_after_what_was_given(thread):
    thread.weave([user("q"), agent("yes"), user("sure?")], 0)
    thread.add_call([user("q"), agent("yes"), user("sure?")], [agent("yes")], 1)
    assert texts(thread) == ["q", "yes", "sure?", "yes"]


def test_a_call_without_an_answer_is_an_empty_turn(thread):
    (step,) = thread.add_call([user("q")], None, 0)
    assert (step.actor, step.text, step.extra) == ("agent", "", {})


def test_instructions_and_results_within_an_answer(thread):
    answer = [agent("", "f"), result("1", "F"), SYSTEM, agent("done")]
    turns = thread.add_call([user("q")], answer, 0)
    assert [step.text for step in turns] == ["", "done"]
    assert turns[0].tool_calls[0].result == "1"
    assert thread.talk.system == ["Be kind."]


@pytest.mark.parametrize(
    ("inputs", "extra"),
    [({"n": 3}, {"input": {"n": 3}}), (None, {}), ([], {}), ("", {}), ({}, {}), ([user("q")], {})],
)
def test_inputs_of_an_unknown_form_are_kept(thread, inputs, extra):
    thread.add_turn(user("before"), 0)
    (turn,) = thread.add_call(inputs, [agent("a"), agent("b")], 1)
    assert (turn.text, turn.extra) == ("a\nb", extra)
    assert texts(thread)[0] == "before"


def test_completions_are_known_by_their_first_choice(thread):
    thread.add_call([user("q")], {"choices": [{"message": agent("yes")}]}, 0)
    thread.weave([user("q"), agent("yes"), user("end")], 1)
    assert texts(thread) == ["q", "yes", "end"]


# ------------------------------------------------------------------ identifiers


def test_results_with_other_ids_go_by_order_where_there_are_as_many(thread):
    thread.weave([agent("", "f", "g"), result("1", "x"), result("2", "y")], 0)
    assert [call.result for call in calls_of(thread)] == ["1", "2"]


def test_results_with_other_ids_go_nowhere_where_there_are_fewer(thread):
    thread.weave([agent("", "f", "g"), result("1", "x")], 0)
    assert [call.result for call in calls_of(thread)] == [None, None]
    assert [one["content"] for one in thread.talk.unmatched] == ["1"]


def test_results_of_a_turn_that_is_not_the_last_keep_their_ids(thread):
    thread.weave([agent("", "f"), user("wait"), result("1", "F")], 0)
    assert [call.result for call in calls_of(thread)] == ["1"]


def test_results_without_calls_before_are_no_results_of_what_follows(thread):
    thread.weave([result("0", "z"), agent("", "f"), result("1")], 0)
    assert [call.result for call in calls_of(thread)] == ["1"]


def test_results_without_identifiers_go_by_the_names_of_calls(thread):
    made = [agent("", "f", "g", ids=False), result("2", name="g"), result("1", name="f")]
    thread.weave([*made, result("3", name="h")], 0)
    assert [call.result for call in calls_of(thread)] == ["1", "2"]
    assert [one["content"] for one in thread.talk.unmatched] == ["3"]


def test_a_result_with_an_unknown_id_is_not_that_of_a_call_with_one(thread):
    thread.weave([agent("", "f", "g", "h"), result("1", "F"), result("2", "?")], 0)
    assert [call.result for call in calls_of(thread)] == ["1", None, None]


def test_results_whose_calls_come_later(thread):
    thread.weave([agent("", "f")], 0)
    messages = [
        result("1", "F"), result("2", "G"), result("3", "H"), result("4"), result("5", ""),
        agent("", "g"), user("end"),
    ]  # fmt: skip
    early, others = thread.without_calls(messages)
    assert early == [messages[2]]
    assert others == [*messages[:2], *messages[3:]]


@pytest.mark.parametrize("ids", [True, False])
def test_turns_are_told_apart_by_roles_texts_and_calls(thread, ids):
    call = {"id": "F" if ids else None, "name": "f", "arguments": {"n": 1}}
    other = call | {"arguments": {"n": 2}, "id": "G" if ids else None}
    turns = [
        {"role": "assistant", "content": "a", "tool_calls": [one]} for one in (call, other)
    ]  # fmt: skip
    messages = [*turns, agent("a"), user("a"), agent("b")]
    thread.weave(messages, 0)
    thread.weave(messages, 1)
    assert texts(thread) == ["a", "a", "a", "a", "b"]
    thread.weave([turns[0] | {"content": "c"}], 2)
    assert len(thread.keys) == (5 if ids else 6)


def test_a_turn_of_which_one_call_is_unknown_is_new(thread):
    thread.weave([agent("", "f"), user("end")], 0)
    thread.weave([agent("", "f", "g")], 1)
    assert len(thread.keys) == 3
    mixed = agent("", "f")
    mixed["tool_calls"].append({"id": None, "name": "g"})
    thread.weave([mixed], 2)
    assert len(thread.keys) == 4


def test_known_turns_that_moved_are_found_after_those_that_are_new(thread):
    thread.weave([user("a"), agent("b"), user("c"), agent("d")], 0)
    woven = thread.weave([user("x"), agent("b"), user("y"), user("z"), agent("d"), user("e")], 1)
    assert [step.text for step in woven] == ["x", "b", "y", "z", "d", "e"]
    assert texts(thread) == ["a", "x", "b", "c", "y", "z", "d", "e"]


def test_messages_of_the_agent_without_text_or_call_are_skipped(thread):
    woven = thread.weave([user("a"), agent(""), {"role": "user", "content": ""}], 0)
    assert len(woven) == 2
    old = {"role": "assistant", "content": "", "function_call": {"name": "f"}}
    assert len(thread.weave([old], 1)) == 1


def test_known_messages_are_not_joined(thread):
    thread.weave([user("q"), agent("a"), agent("b"), agent("a\nb")], 0)
    thread.weave([user("q"), agent("a"), agent("b")], 1)
    assert texts(thread) == ["q", "a", "b", "a\nb"]


def test_an_instruction_is_added_once(thread):
    other = {"role": "system", "content": "Be brief."}
    thread.weave([SYSTEM, user("a"), other], 0)
    thread.weave([other, user("a"), SYSTEM], 1)
    assert thread.talk.system == ["Be kind.", "Be brief."]


def test_a_result_that_a_call_has_is_not_added_without_its_id(thread):
    thread.weave([agent("", "f"), result("1", "F")], 0)
    thread.weave([result("1", "?"), result("2", "?")], 1)
    assert [one["content"] for one in thread.talk.unmatched] == ["2"]


def test_an_error_stays_when_a_result_comes_again(thread):
    thread.weave([agent("", "f", "g"), result("1", "F", error=True)], 0)
    thread.weave([agent("", "f", "g"), result("1", "F"), result("2", "G")], 1)
    assert [call.error for call in calls_of(thread)] == [True, None]


# ------------------------------------------------------------------ asked the same again


def test_an_answer_that_no_later_call_repeats_is_no_turn(thread):
    thread.add_call([user("q")], [agent("bad")], 0)
    thread.add_call([user("q")], [agent("good")], 1)
    thread.add_call([user("q"), agent("good"), user("more")], [agent("end")], 2)
    assert texts(thread) == ["q", "good", "more", "end"]
    assert [step.text for step in thread.unused] == ["bad"]


def test_answers_to_other_questions_stay(thread):
    thread.add_call([SYSTEM, user("q")], [agent("one")], 0)
    thread.add_call([user("q")], [agent("two")], 1)  # without the instruction
    thread.add_call([user("q"), agent("two"), user("more")], [agent("end")], 2)
    assert set(texts(thread)) == {"q", "one", "two", "more", "end"}
    assert thread.unused == []


def test_an_empty_answer_is_replaced_by_the_next_one(thread):
    thread.add_call([user("q")], [agent(" ")], 0)
    thread.add_call([user("q")], [agent("yes")], 1)
    assert texts(thread) == ["q", "yes"]
    assert [step.text for step in thread.unused] == [" "]
    thread.add_call([user("q")], [agent("", "f")], 2)
    thread.add_call([user("q")], [agent("no")], 3)
    assert len(texts(thread)) == 4


def test_answers_of_calls_without_messages_are_turns_each(thread):
    for k in range(2):
        thread.add_call({"n": 3}, [agent("yes")], k)
    assert texts(thread) == ["yes", "yes"]


def test_turns_are_added_at_the_end(thread):
    thread.weave([user("a"), user("b")], 0)
    step = thread.add_turn(agent("a"), 7)
    assert (step.text, step.index) == ("a", 7)
    assert texts(thread) == ["a", "b", "a"]


def test_messages_of_one_answer_are_one_turn(thread):
    answer = [agent("a", "f"), agent(""), agent("b", "g"), user("c"), agent("d")]
    turns = thread.add_call([user("q")], answer, 0)
    assert [(step.actor, step.text) for step in turns] == [
        ("agent", "a\nb"), ("user", "c"), ("agent", "d")
    ]  # fmt: skip
    assert [call.name for call in turns[0].tool_calls] == ["f", "g"]


def test_what_identifies_messages():
    choice = {"choices": [{"message": {"content": "yes"}}]}
    answer = {"role": "assistant", "content": " yes "}
    keys = turn_keys([SYSTEM, user("q"), answer, result("1"), choice, "x", {"content": "y"}])
    assert [role for role, _ in keys] == ["user", "agent", "agent"]
    assert keys[1] == keys[2] != keys[0]
    both = turn_keys([{"role": "assistant", "content": "no", "choices": choice["choices"]}])
    assert both[0] != keys[1]


def test_only_messages_of_the_agent_are_joined_as_known(thread):
    for role, is_joined in (("user", False), ("assistant", True)):
        thread.weave([{"role": role, "content": f"{role} says"}], 0)
        parts = [{"role": role, "content": word} for word in (role, "says")]
        joined = thread._joined_as_known(parts)
        assert len(joined) == (1 if is_joined else 2)
        assert [message["content"] for message in joined] == (
            ["assistant\nsays"] if is_joined else ["user", "says"]
        )
    thread.weave([agent("assistant")], 0)  # known as it stands
    assert len(thread._joined_as_known([agent("assistant"), agent("says")])) == 2
    assert thread._joined_as_known([]) == []


def test_only_the_first_turn_of_an_answer_has_inputs_of_an_unknown_form(thread):
    turns = thread.add_call({"n": 3}, [agent("a"), user("b"), agent("c")], 0)
    assert [turn.extra.get("input") for turn in turns] == [{"n": 3}, None, None]
    (turn,) = thread.add_call([user("q")], [agent("d")], 1)
    assert "input" not in turn.extra


def test_messages_of_known_parts_are_joined_up_to_the_whole_turn(thread):
    thread.weave([user("q"), agent("a\nb")], 0)
    parts = [agent("a"), agent("b"), agent("c"), user("r")]
    joined = thread._joined_as_known(parts)
    assert [message["content"] for message in joined] == ["a\nb", "c", "r"]
    assert [m["content"] for m in thread._joined_as_known(parts[1:])] == ["b", "c", "r"]


def test_where_turns_belong(thread):
    thread.weave([user("a"), agent("b"), user("c")], 0)
    assert thread._align([user("a"), agent("b"), user("c")]) == [(0, 0), (1, 1), (2, 2)]
    assert thread._align([user("a"), user("x"), user("c")]) == [(0, 0), (None, 2), (2, 2)]
    assert thread._align([user("x"), agent("b"), user("y")]) == [(None, 1), (1, 1), (None, None)]
    assert thread._align([user("c"), user("a")]) == [(2, 2), (None, None)]
    assert thread._align([]) == []


def test_results_go_to_the_next_call_that_waits(thread):
    thread.weave([agent("", "f", "g"), result("1"), result("2"), result("3")], 0)
    assert [call.result for call in calls_of(thread)] == ["1", "2"]
    assert [one["content"] for one in thread.talk.unmatched] == ["3"]


def test_results_of_several_turns_each(thread):
    messages = [agent("", "f", ids=False), result("1"), agent("x", "f", ids=False), result("2")]
    thread.weave(messages, 0)
    thread.weave(messages, 1)
    assert [call.result for call in calls_of(thread)] == ["1", "2"]
    assert thread.talk.unmatched == []


def test_what_a_turn_observes_are_the_results_of_its_calls(thread):
    (step,) = thread.weave([agent("", "f", "g", "h")], 0)
    set_result(step, step.tool_calls[2], "3")
    set_result(step, step.tool_calls[0], "")
    assert (step.observation, step.tool_calls[1].result) == ("\n3", None)


def test_ids_of_results_that_are_dropped(thread):
    def ids(messages):
        return [m.get("tool_call_id") for m in _with_known_ids(messages) if m["role"] == "tool"]

    two = agent("", "f", "g")
    assert ids([two, result("1", "x"), result("2", "y")]) == [None, None]
    assert ids([two, result("1", "F"), result("2", "y")]) == [None, None]
    assert ids([two, result("1", "F"), result("2", "G")]) == ["F", "G"]
    assert ids([two, result("1", "x")]) == ["x"]
    assert ids([result("1", "x")]) == ["x"]
    assert ids([two, user("a"), result("1", "x"), result("2", "y")]) == ["x", "y"]


def test_one_turn_of_several_messages():
    assert _joined([agent("a", "f")]) == agent("a", "f")
    joined = _joined([agent("a", "f") | {"x": 1}, agent("", "g") | {"x": 2}, agent("b")])
    assert joined == agent("a\nb", "f", "g") | {"x": 2}
    plain = [{"role": "assistant", "content": text} for text in "ab"]
    assert _joined(plain) == {"role": "assistant", "content": "a\nb"}


@pytest.mark.parametrize(
    ("message", "says_nothing"),
    [
        (agent(""), True), (agent("a"), False), (agent("", "f"), False), (user(""), False),
        ({"role": "assistant"}, True), ({"role": "assistant", "function_call": {"x": 1}}, False),
        ({"role": "assistant", "content": []}, True), (result(""), False),
    ],
)  # fmt: skip
def test_messages_that_say_nothing(message, says_nothing):
    assert _says_nothing(message) is says_nothing


def test_a_result_belongs_to_the_turn_of_its_call(thread):
    messages = [agent("x"), agent("", "f", ids=False), result("1"), agent("y", "g"), result("2")]
    thread.weave(messages, 0)
    assert [step.observation for step in thread.talk.steps] == [None, "1", "2"]


@pytest.mark.parametrize(
    ("message", "place"),
    [
        (result("1"), 0), (result("1", ""), 0), (result("1", name="g"), 1), (result("1", "?"), 1),
        (result("1", "?", name="f"), None), (result("1", name="h"), None), (result("1", "F"), 0),
    ],
)  # fmt: skip
def test_which_of_the_waiting_calls_a_result_answers(thread, message, place):
    turn = agent("", "f", "g")
    turn["tool_calls"][1]["id"] = None
    (step,) = thread.weave([turn], 0)
    waiting = [(step, call) for call in step.tool_calls]
    found = thread._call_of_result(message, list(waiting))
    assert found == (None, None) if place is None else found == waiting[place]


def test_results_of_a_known_turn_go_to_its_calls(thread):
    start = [agent("", "f", ids=False), user("a"), agent("", "g", ids=False)]
    thread.weave(start, 0)
    thread.weave([start[0], result("1"), user("a")], 1)
    assert [call.result for call in calls_of(thread)] == ["1", None]
    assert [step.observation for step in thread.talk.steps] == ["1", None, None]


def test_results_of_a_part_of_a_turn_go_to_the_calls_of_that_part(thread):
    thread.weave([agent("", "f", "g"), user("a")], 0)
    thread.weave([agent("", "g"), result("2"), user("a")], 1)
    assert [call.result for call in calls_of(thread)] == [None, "2"]


def test_several_known_turns_after_a_new_one_keep_their_places(thread):
    thread.weave([user("a"), agent("b"), user("c"), agent("d")], 0)
    turns = [user("x"), agent("b"), user("c"), agent("d")]
    assert thread._align(turns) == [(None, 1), (1, 1), (2, 2), (3, 3)]
    turns = [user("a"), user("x"), user("y"), user("c"), agent("d")]
    assert thread._align(turns) == [(0, 0), (None, 2), (None, 2), (2, 2), (3, 3)]
    assert thread._align([user("a"), user("c"), agent("d")]) == [(0, 0), (2, 2), (3, 3)]


def test_calls_that_were_given_only_an_instruction(thread):
    thread.weave([user("a")], 0)
    (turn,) = thread.add_call([SYSTEM], [agent("x")], 1)
    assert (turn.text, texts(thread)) == ("x", ["a", "x"])


def test_the_first_turn_may_be_the_answer_to_an_instruction(thread):
    thread.weave([agent("x"), user("a")], 0)
    (turn,) = thread.add_call([SYSTEM], [agent("x")], 1)
    assert turn is thread.talk.steps[0]
    assert texts(thread) == ["x", "a"]


def test_a_result_that_one_of_several_calls_has_is_not_added(thread):
    thread.weave([agent("", "f", "g"), result("1", "F"), result("2", "G")], 0)
    thread.weave([result("1", "?"), result("2", "?"), result("3", "?")], 1)
    assert [one["content"] for one in thread.talk.unmatched] == ["3"]


def test_turns_of_which_one_call_has_no_id_are_told_apart_by_their_texts():
    first, second = agent("a", "f", "g"), agent("b", "f", "g")
    same = turn_keys([first, second])
    assert same[0] == same[1]
    for turn in (first, second):
        turn["tool_calls"][1]["id"] = None
    other = turn_keys([first, second])
    assert other[0] != other[1]


def test_messages_without_a_role(thread):
    with pytest.raises(ValueError, match="message 0 has no role"):
        thread.weave([{"content": "x"}], 0)


def test_ids_of_other_messages_than_results_stay():
    messages = [agent("", "f"), user("a") | {"tool_call_id": "x"}]
    assert _with_known_ids(messages) == messages
