"""The spans of a trace repeat the conversation; a run holds it once."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import io
from trajscore.io._conversation import Conversation
from trajscore.io._spans import Span, _call_of_span, _Tree, add_spans, moment
from trajscore.io._thread import Thread
from trajscore.io.files import Place


def read(*spans):
    return add_spans(Conversation(Place(Path("x"), 0)), spans, io.Run("a"))


def user(text):
    return {"role": "user", "content": text}


def agent(text, *calls):
    calls = [{"id": name, "function": {"name": "f", "arguments": "{}"}} for name in calls]
    return {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})


def tool(name, text):
    return {"role": "tool", "tool_call_id": name, "content": text}


FIRST = [user("Hi")]
SECOND = [*FIRST, agent("wait", "c"), tool("c", "42")]
THIRD = [*SECOND, agent("so?"), user("Hi")]


def test_in_order_and_once():
    spans = [
        Span("2", "model", start=2, inputs=SECOND, outputs=agent("so?"), tokens={"input": 9}),
        Span("t", "tool", start=1, name="f", call="c", outputs="42", error=False),
        Span("1", "model", start=0, inputs=FIRST, outputs=agent("wait", "c"), tokens={"input": 4}),
        Span("3", "model", start=3, inputs=THIRD, outputs="Bye", cost=0.5),
    ]
    run = read(*spans)
    said = [(step.actor, step.text) for step in run.steps]
    assert said == [
        ("user", "Hi"),
        ("agent", "wait"),
        ("agent", "so?"),
        ("user", "Hi"),  # said twice, as the last call shows
        ("agent", "Bye"),
    ]
    assert run.steps[1].observation == "42"
    assert [call.result for call in run.steps[1].tool_calls] == ["42"]
    assert (run.meta["input_tokens"], run.steps[4].cost) == (13, 0.5)
    assert run.steps == read(*reversed(spans)).steps


def test_a_result_with_an_unknown_id_answers_no_call_with_another_id():
    history = [*FIRST, agent("wait", "c"), tool("lost", "404"), tool("c", "42")]
    run = read(Span("1", "model", inputs=history, outputs="Bye"))
    assert [call.result for call in run.steps[1].tool_calls] == ["42"]


def test_a_model_call_around_another_one_counts_once():
    run = read(
        Span("out", "model", start=0, inputs="What?", outputs=agent("", "c"), scores={"p": 0.25}),
        Span("in", "model", "out", start=1, inputs=[user("What?")], outputs=agent("", "c")),
        Span("t", "tool", "out", start=2, name="f", call="c", inputs="{}", outputs='{"x": 1}'),
    )
    assert [step.actor for step in run.steps] == ["user", "agent"]
    assert run.steps[1].tool_calls[0].result == '{"x": 1}'
    assert run.steps[1].scores == {"p": 0.25}


def test_tools_that_no_message_calls():
    run = read(
        Span("1", "model", inputs=FIRST, outputs="I look."),
        Span("t", "tool", name="search", inputs='{"q": 1}', outputs=None),
        Span("2", "model", inputs=None, outputs="Found."),
    )
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments, call.result) == ("search", {"q": 1}, None)
    assert [step.text for step in run.steps] == ["Hi", "I look.", "Found."]


def test_scores_of_spans_are_those_of_turns_or_of_the_run():
    run = read(
        Span("root", start=0, scores={"all": 1}),
        Span("a", parent="root", start=1, scores={"last": 2}),
        Span("1", "model", "a", start=2, inputs=FIRST, outputs="x", scores={"p": 0.5}),
        Span("2", "model", "a", start=3, outputs="y"),
        Span("alone", start=4, scores={"run": 3}),
    )
    assert run.scores == {"run": 3}
    assert [step.scores for step in run.steps[1:]] == [{"p": 0.5}, {"all": 1, "last": 2}]


def test_only_numbers_of_tokens_are_added_up():
    strange = {"input": True, "output": "9", "cached": None, "reasoning": 2.5}
    run = read(
        Span("1", "model", start=0, inputs=FIRST, outputs="x", tokens={"input": 4, "output": 3}),
        Span("2", "model", start=1, outputs="y", tokens=strange),
        Span("3", "model", start=2, outputs="z", tokens={"input": 1, "reasoning": 1}),
    )
    assert run.meta == {"input_tokens": 5, "output_tokens": 3, "reasoning_tokens": 3.5}


def test_scores_of_an_outermost_span_stay_there():
    run = read(
        Span("root", start=0, scores={"all": 1}),
        Span("1", "model", "root", start=1, inputs=FIRST, outputs="x"),
        Span("no turn", parent="root", start=1),
        Span("other", start=2, scores={"run": 2}),
        Span("2", "model", start=3, outputs="y", scores={"p": 0.5}),
        Span("", start=4, scores={"too": 3}),
    )
    assert run.scores == {"run": 2, "too": 3}
    assert [step.scores for step in run.steps[1:]] == [{"all": 1}, {"p": 0.5}]


@pytest.mark.parametrize("order", [1, -1])
def test_of_spans_that_are_each_others_parents_the_first_is_outermost(order):
    spans = [
        Span("b", parent="a", start=1, inputs="Why?", outputs="So."),
        Span("a", parent="b", start=0, inputs="Hi", outputs="Bye"),
        Span("1", "model", "b", start=2, inputs=None, outputs="x"),
    ]
    run = read(*spans[::order])
    assert (run.extra["input"], run.extra["output"]) == ("Hi", "Bye")
    assert run.extra["parent_rings"] == 1
    assert [step.text for step in run.steps] == ["x"]
    assert "parent_rings" not in read(Span("1", "model", "1", outputs="x")).extra


@pytest.mark.parametrize("around", [lambda name: "not in the log", lambda name: name])
def test_a_span_without_a_known_parent_is_an_outermost_one(around):
    run = read(
        Span("2", "model", around("2"), start=2, inputs=SECOND, outputs=agent("so?")),
        Span("1", "model", around("1"), start=1, inputs=FIRST, outputs=agent("wait", "c")),
        Span("0", parent=around("0"), start=0, error=True),
    )
    assert [step.text for step in run.steps] == ["Hi", "wait", "so?"]
    assert run.stop_reason == "error"


def test_only_an_outermost_span_around_others_stops_a_run():
    inner = Span("in", parent="out", start=1, error=True)
    model = Span("1", "model", start=2, inputs=FIRST, outputs="x", error=True)
    assert read(Span("out", start=0, error=False), inner, model).stop_reason is None
    ended = io.Run("a", stop_reason="max_turns")
    spans = [model, Span("out", start=0, error=True)]
    assert add_spans(Conversation(Place(Path("x"), 0)), spans, ended).stop_reason == "max_turns"


def test_without_all_times_the_order_of_the_log_holds():
    second, first = (
        Span("2", "model", start=2, outputs="B"),
        Span("1", "model", start=1, outputs="A"),
    )
    assert [step.text for step in read(second, first).steps] == ["A", "B"]
    assert [step.text for step in read(second, Span("", start=None), first).steps] == ["A", "B"]
    first.start = None
    assert [step.text for step in read(second, first).steps] == ["B", "A"]


def test_values_of_the_outermost_span_are_kept_where_they_hold_no_messages():
    inner = Span("in", parent="out", inputs={"q": 3}, outputs={"a": 4})
    run = read(Span("out", inputs={"task": "add"}, outputs={"a": 2}), inner)
    assert run.extra == {"input": {"task": "add"}, "output": {"a": 2}}
    assert [(step.actor, step.text) for step in run.steps] == [("agent", '{"a": 2}')]
    empty = read(Span("out"), inner)
    assert empty.extra == {"input": {"q": 3}, "output": {"a": 4}}


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (True, None), (None, None), ("", None), ("soon", None), (float("nan"), None),
        (float("inf"), None), ("9" * 5000, None), (0, 0), ("0", 0), (1.9, 1), ("17", 17),
        ("1970-01-01", 0), ("1970-01-01T01:00:00+01:00", 0), ("1970-01-01T00:00:01.5Z", 1_500_000),
    ],
)  # fmt: skip
def test_times_of_spans_compare(value, time):
    assert moment(value) == time


def test_without_a_call_of_a_model_the_outermost_span_tells_all():
    run = read(
        Span("in", parent="out", inputs={"messages": FIRST}, outputs={"messages": SECOND}),
        Span("out", inputs={"messages": FIRST}, outputs={"messages": [*THIRD, agent("Bye")]}),
    )
    assert [step.text for step in run.steps] == ["Hi", "wait", "so?", "Hi", "Bye"]
    assert run.steps[1].tool_calls[0].result == "42"


@given(st.data())
def test_any_conversation_is_read_once_and_in_order(data):
    # a call is given all that was said so far, in few words that repeat, or the last of it
    whole = data.draw(st.booleans())
    words = st.sampled_from(["yes", "no"]) if whole else st.uuids().map(str)
    talk, spans = [user(data.draw(words))], []
    for k in range(data.draw(st.integers(1, 8))):
        first = 0 if whole else data.draw(st.integers(0, len(talk) - 1))
        with_call = data.draw(st.booleans())
        answer = agent(data.draw(words), *([f"c{k}"] if with_call else []))
        spans.append(Span(f"m{k}", "model", start=2 * k, inputs=talk[first:], outputs=answer))
        talk.append(answer)
        if with_call:
            talk.append(tool(f"c{k}", f"r{k}"))
            spans.append(Span(f"t{k}", "tool", start=2 * k + 1, name="f", outputs=f"r{k}"))
        if data.draw(st.booleans()):
            talk.append(user(data.draw(words)))
    around = Span("all", start=-1, inputs={"messages": talk[:1]}, outputs={"messages": talk})
    spans = data.draw(st.permutations([*spans, around]))
    run = read(*spans)
    turns = [one for one in talk if one["role"] != "tool"]
    assert [step.text for step in run.steps] == [one["content"] for one in turns]
    calls = [call for step in run.steps for call in step.tool_calls]
    assert [call.result for call in calls] == [
        one["content"] for one in talk if "tool_call_id" in one
    ]


# ------------------------------------------------------------------ each rule by itself


@pytest.mark.parametrize(
    ("value", "field"), [(3, "3"), ("", None), (None, None), (0, "0"), ("x", "x")]
)
def test_names_of_a_span_are_texts(value, field):
    span = Span(value, parent=value, call=value, name=value)
    assert (span.id, span.parent, span.call, span.name) == (field,) * 4


def tree(*spans):
    return _Tree(list(spans))


def test_each_span_is_visited_when_it_begins_and_when_all_within_it_has_ended():
    one = tree(Span("a"), Span("b", parent="a"), Span("c", parent="b"), Span("d", parent="a"))
    assert [(span.id, ends) for span, ends in one.visits()] == [
        ("a", False), ("b", False), ("c", False), ("c", True), ("b", True), ("d", False),
        ("d", True), ("a", True),
    ]  # fmt: skip
    assert [span.id for span in one.outermost] == ["a"]
    ring = tree(Span("a", parent="b"), Span("b", parent="a"), Span("c", parent="c"))
    assert sorted(span.id for span, ends in ring.visits() if ends) == ["a", "b", "c"]
    assert [span.id for span in ring.outermost] == ["a", "c"]
    assert ring.is_outermost_with_values(ring.spans[0])


def test_calls_around_others_repeat_them():
    spans = [
        Span("a", "model", outputs="x"), Span("b", "other", parent="a"),
        Span("c", "model", parent="b", outputs="y"), Span("d", "model"),
        Span("e", "model", parent="d"),
    ]  # fmt: skip
    one = tree(*spans)
    assert [span.id for span in spans if one.repeats(span)] == ["a", "b"]
    assert [span.id for span in spans if one.is_answered(span)] == ["a", "c"]
    assert one.has_models
    assert not tree(Span("a", "tool")).has_models


def test_answers_of_spans_around_calls():
    spans = [
        Span("a", outputs="x"), Span("b", parent="a", outputs="y"), Span("c", parent="a"),
        Span("d", "model", outputs="z"),
    ]  # fmt: skip
    one = tree(*spans)
    assert [span.id for span in one.answers()] == ["a", "b"]
    assert [span.id for span in spans if one.is_outermost_with_values(span)] == ["a", "d"]


def test_siblings_are_sorted_by_time_if_all_calls_have_one():
    def order(*starts, kind="model"):
        one = tree(*(Span(str(k), kind, start=start) for k, start in enumerate(starts)))
        return [span.id for span in one.outermost]

    assert order(2, 1, 3) == ["1", "0", "2"]
    assert order(2, None, 1) == ["0", "1", "2"]
    assert order(2, None, 1, kind="other") == ["1", "2", "0"]
    assert order("2026-01-01T00:00:02Z", "2026-01-01T00:00:01") == ["1", "0"]


def called(*calls):
    """A conversation of one turn with calls: name, arguments, result."""
    thread = Thread(Conversation(Place(Path("x"), 0)))
    made = [{"name": name, "arguments": arguments} for name, arguments, _ in calls]
    step = thread.add_turn({"role": "assistant", "content": "", "tool_calls": made}, 0)
    for call, (_, _, result) in zip(step.tool_calls, calls, strict=True):
        call.result = result
    return thread, step.tool_calls


@pytest.mark.parametrize(
    ("name", "arguments", "text", "place"),
    [
        ("f", {"x": 1}, "r", 0), ("f", {"x": 2}, "s", 1), ("f", {"x": 3}, "s", 1),
        ("f", {"x": 3}, "r", 2), ("f", {"input": {"x": 2}}, "s", 1), ("run f", {"x": 1}, "r", 0),
        ("g", {"x": 1}, "r", None), (None, {"x": 1}, "r", None), ("f run", {"x": 1}, "r", None),
        ("run f now", {"x": 1}, "r", None), ("now run f", {"x": 1}, "r", 0),
    ],
)  # fmt: skip
def test_the_call_of_a_span_has_its_name_and_arguments(name, arguments, text, place):
    thread, calls = called(("f", {"x": 1}, "r"), ("f", {"x": 2}, None), ("f", {"x": 4}, "r"))
    if place == 2:  # the first has another span
        thread.ran |= {id(calls[0]), id(calls[1])}
    _, call = _call_of_span(thread, None, name, arguments, text)
    assert call is (None if place is None else calls[place])


def test_an_identifier_goes_before_names():
    thread, calls = called(("f", {}, None))
    step = thread.add_turn(agent("", "c"), 1)
    assert _call_of_span(thread, "c", "f", {}, None) == (step, step.tool_calls[0])
    assert _call_of_span(thread, "?", "f", {}, None)[1] is calls[0]
    thread.ran.add(id(calls[0]))
    assert _call_of_span(thread, "?", "f", {}, None)[1] is step.tool_calls[0]


def test_tokens_of_a_call_without_an_answer_are_those_of_the_run_unless_it_is_around_others():
    spans = [
        Span("1", "model", start=1, inputs=FIRST, tokens={"input": 5}),
        Span("2", "model", parent="1", start=2, inputs=FIRST, outputs="Bye", tokens={"input": 5}),
        Span("3", "model", start=3, inputs=FIRST, tokens={"input": 3}),
    ]
    assert read(*spans).meta["input_tokens"] == 8


def test_a_call_without_an_identifier_takes_that_of_its_span():
    turn = agent("", "c") | {"tool_calls": [{"id": "c", "name": "f"}, {"name": "g"}]}
    spans = [
        Span("1", "model", start=1, outputs=turn),
        Span("2", "tool", start=2, name="f", call="x", outputs="1"),
        Span("3", "tool", start=3, name="g", call="y", outputs="2"),
    ]
    (step,) = read(*spans).steps
    assert [(call.name, call.id, call.result) for call in step.tool_calls] == [
        ("f", "c", "1"), ("g", "y", "2"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("around", "inputs", "n_calls"), [("tool", "x", 1), ("tool", "y", 2), ("chain", "x", 1)]
)
def test_a_tool_within_the_same_call_counts_once(around, inputs, n_calls):
    spans = [
        Span("1", "model", start=1, outputs=agent("wait")),
        Span("2", around, start=2, name="outer", inputs=inputs, outputs="1"),
        Span("3", "tool", parent="2", start=3, name="inner", inputs="x", outputs="1"),
    ]
    (step,) = read(*spans).steps
    assert len(step.tool_calls) == n_calls


# ------------------------------------------------------------------ as frameworks write them


def calls_of(run):
    return [(c.name, c.arguments, c.result) for step in run.steps for c in step.tool_calls]


def said(run):
    return [(step.actor, step.text) for step in run.steps]


def test_a_call_around_another_one_has_its_messages_if_the_inner_one_has_text_only():
    spans = [
        Span("1", "model", start=1, inputs="?", outputs=agent("", "c")),
        Span("2", "model", "1", start=2, inputs="user: Hi", outputs="None"),
        Span("3", "tool", start=3, name="f", outputs="42"),
        Span("4", "model", start=4, inputs="?", outputs=agent("so?")),
        Span(
            "5", "model", "4", start=5, inputs="user: Hi\nassistant: None\ntool: 42", outputs="so?"
        ),
    ]
    run = read(*spans)
    assert said(run) == [("user", "Hi"), ("agent", ""), ("agent", "so?")]
    assert calls_of(run) == [("f", {}, "42")]
    assert "unmatched_results" not in run.extra


def test_records_of_a_begin_and_an_end_are_no_turns():
    spans = [
        Span("1", "model", start=1, inputs=FIRST, tokens={"input": 7}),
        Span("2", "model", start=2),
        Span("3", "model", start=3, inputs=[*FIRST, agent("wait")]),
        Span("4", "model", start=4, error=True),
        Span("5", "model", start=5, outputs="Bye"),
    ]
    run = read(*spans)
    assert said(run) == [("user", "Hi"), ("agent", "wait"), ("agent", ""), ("agent", "Bye")]
    assert run.meta["input_tokens"] == 7


def test_messages_of_one_answer_are_one_turn():
    first, second = agent("one", "a"), agent("two", "b")
    results = [tool("a", "1"), tool("b", "2")]
    spans = [
        Span("1", "model", start=1, inputs=FIRST, outputs=[first, second]),
        Span("2", "model", start=2, inputs=[*FIRST, first, second, *results], outputs="Bye"),
    ]
    run = read(*spans)
    assert said(run) == [("user", "Hi"), ("agent", "one\ntwo"), ("agent", "Bye")]
    assert calls_of(run) == [("f", {}, "1"), ("f", {}, "2")]


def test_results_with_other_ids_than_their_calls_are_in_order():
    calls = agent("", "c1", "c2")
    results = [tool("c0", "1"), tool("c1", "2")]  # c1 is that of the second
    spans = [
        Span("1", "model", start=1, inputs=FIRST, outputs=calls),
        Span("2", "model", start=2, inputs=[*FIRST, calls, *results], outputs="Bye"),
    ]
    run = read(*spans)
    assert calls_of(run) == [("f", {}, "1"), ("f", {}, "2")]
    assert "unmatched_results" not in run.extra


@pytest.mark.parametrize("name", ["f", "tool.f", "execute_tool f"])
def test_a_span_of_a_tool_completes_its_call(name):
    spans = [
        Span("1", "model", start=1, outputs=agent("", "c")),
        Span("2", "tool", start=2, name=name, inputs={"args": [], "kwargs": {"n": 3}}, outputs="9"),
        Span("3", "tool", start=3, name="(merged tools)", inputs="N/A", outputs="?"),
    ]
    assert calls_of(read(*spans)) == [("f", {"n": 3}, "9")]


def test_a_result_may_come_before_its_call():
    spans = [
        Span("1", start=1, inputs=[*FIRST, tool("c", "42")]),
        Span("2", "model", "1", start=2, inputs=FIRST, outputs=agent("", "c")),
        Span("3", start=3, inputs=[tool("other", "43")]),
    ]
    run = read(*spans)
    assert calls_of(run) == [("f", {}, "42")]
    assert [result["content"] for result in run.extra["unmatched_results"]] == ["43"]


def test_a_tool_under_the_name_of_a_function():
    call = {"id": "c", "function": {"name": "f", "arguments": '{"n": 3}'}}
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    spans = [
        Span("1", "model", start=1, inputs=FIRST, outputs=turn),
        Span("2", "tool", start=2, name="Tool.acall", inputs={"n": 3}, outputs="9"),
        Span("3", "tool", "2", start=3, name="f", inputs={"n": 3}, outputs="9"),
        Span("4", "tool", start=4, name="g", inputs={"n": 4}, outputs="10"),
    ]
    assert calls_of(read(*spans)) == [("f", {"n": 3}, "9"), ("g", {"n": 4}, "10")]


def test_a_stream_that_was_not_read_is_no_answer():
    stream = "<async_generator object wrap.<locals>.inner at 0x7f9a3c2db220>"
    spans = [
        Span("1", "model", start=1, inputs=FIRST, outputs=stream),
        Span("2", "model", start=2, inputs=SECOND, outputs="Bye"),
    ]
    assert said(read(*spans)) == [("user", "Hi"), ("agent", "wait"), ("agent", "Bye")]


def test_calls_without_an_answer_and_odd_names_are_counted(write):
    """They are not turns, and not named after what stands where the name should."""
    call = {"id": "c", "function": {"type": "find", "arguments": "{}"}}
    turn = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    ask = {"messages": [{"role": "user", "content": "Where?"}]}
    runs = [
        {"id": str(k), "trace_id": "t", "run_type": "llm", "inputs": ask, "start_time": k}
        | ({"outputs": {"choices": [{"message": turn}]}} if k == 0 else {})
        for k in range(2)
    ]
    read = io.read_runs(write("runs.jsonl", runs, lines=True))
    assert [call.name for call in read[0].steps[1].tool_calls] == [""]
    assert [note for note in read.notes if "without" in note] == [
        "1 call of a tool without a name",
        "1 call of a model without an answer, which is not a turn",
    ]


def test_spans_with_one_id_are_no_ring(write):
    """The last of them may name itself as its parent."""
    ask = {"messages": [{"role": "user", "content": "Where?"}]}
    turn = {"choices": [{"message": {"role": "assistant", "content": "I look."}}]}
    kinds = (("0", None, "chain"), ("1", "0", "llm"), ("0", "0", "tool"))
    runs = [
        {"id": name, "trace_id": "t", "parent_run_id": parent, "run_type": kind, "inputs": ask}
        | ({"outputs": turn} if kind == "llm" else {})
        for name, parent, kind in kinds
    ]
    (run,) = io.read_runs(write("runs.jsonl", runs, lines=True))
    assert [step.text for step in run.steps] == ["Where?", "I look."]


def test_the_answer_of_one_span_around_no_calls_is_a_turn():
    assert said(read(Span("1", outputs="Bye"))) == [("agent", "Bye")]
    two = Span("1", start=1, outputs="Bye"), Span("2", start=2, outputs="So")
    assert said(read(*two)) == [("agent", "Bye")]
    assert said(read(Span("1", "tool", name="f", outputs="9"))) == [("agent", "")]


@pytest.mark.parametrize(
    ("name", "arguments", "is_of_call"),
    [
        ("Tool.run", {"n": 2}, True), ("Tool.run", {"n": 1}, False), ("run", {"n": 2}, False),
        ("Tool.run", {}, False), ("Tool.run", {"n": 3}, False),
    ],
)  # fmt: skip
def test_a_function_around_a_tool_belongs_to_a_call_of_the_last_turn(name, arguments, is_of_call):
    thread, _ = called(("f", {"n": 1}, None))
    calls = [{"name": "g", "arguments": {"n": 2}}, {"name": "h", "arguments": {}}]
    thread.add_turn({"role": "assistant", "content": "", "tool_calls": calls}, 1)
    last = thread.talk.steps[1]
    thread.add_turn(user("Hi"), 2)
    found = _call_of_span(thread, None, name, arguments, None)
    assert found == ((last, last.tool_calls[0]) if is_of_call else (None, None))
    thread.ran.add(id(last.tool_calls[0]))
    assert _call_of_span(thread, None, name, arguments, None) == (None, None)


@pytest.mark.parametrize(
    ("inputs", "arguments"),
    [
        ({"args": [], "kwargs": {"n": 3}}, {"n": 3}),
        ({"kwargs": '{"n": 3}'}, {"n": 3}),
        ({"args": [1], "kwargs": {"n": 3}}, {"args": [1], "kwargs": {"n": 3}}),
        ({"x": 1, "kwargs": {"n": 3}}, {"x": 1, "kwargs": {"n": 3}}),
        ({"args": []}, {"args": []}),
        ('{"n": 3}', {"n": 3}),
        ("n", "n"),
    ],
)
def test_arguments_of_a_tools_span(inputs, arguments):
    run = read(Span("1", "tool", name="f", inputs=inputs, outputs="9"))
    assert calls_of(run) == [("f", arguments, "9")]


def test_what_a_tools_span_knows_of_its_call():
    turn = agent("", "c")
    own = Span("2", "tool", start=2, name="f", call="c", inputs={"n": 3}, outputs="9", error=True)
    run = read(Span("1", "model", start=1, outputs=turn), own)
    (call,) = run.steps[0].tool_calls
    assert (call.arguments, call.result, call.error) == ({"n": 3}, "9", True)
    assert (call.id, call.extra) == ("c", {"result": "span"})
    known = {"id": "c", "function": {"name": "f", "arguments": '{"n": 4}'}}
    history = [{"role": "assistant", "content": "", "tool_calls": [known]}, tool("c", "8")]
    own = Span("2", "tool", start=2, name="f", call="c", inputs={"n": 3}, outputs="9", error=False)
    run = read(Span("1", "model", start=1, inputs=history, outputs="Bye"), own)
    (call,) = run.steps[0].tool_calls
    assert (call.arguments, call.result, call.extra) == ({"n": 4}, "8", {})
    (alone,) = read(Span("7", "tool", outputs="9", call="k")).steps
    assert (alone.span, alone.actor, alone.text) == ("7", "agent", "")
    assert [(c.name, c.id, c.result) for c in alone.tool_calls] == [("", "k", "9")]


def test_nothing_was_recorded_is_told_from_no_spans():
    assert read().steps == []
    with pytest.raises(ValueError, match="its spans have no content: no messages"):
        read(Span("1", "model"), Span("2"))
    for fields in ({"inputs": "x"}, {"outputs": "x"}, {"scores": {"p": 1}}):
        assert read(Span("1", "model"), Span("2", **fields)).id == "a"
    assert read(Span("1", "model", extra={"confidence": 0.5})).steps[0].actor == "agent"


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [(True, None, "error"), (None, True, "error"), (None, False, None), (True, True, "error")],
)
def test_an_error_of_one_outermost_span_is_the_end(first, second, reason):
    spans = [
        Span("1", start=1, inputs="x", error=first), Span("2", start=2, error=second),
        Span("3", "tool", start=3, name="f", error=True),
    ]  # fmt: skip
    assert read(*spans).stop_reason == reason


def test_messages_of_a_call_around_one_with_a_tool_beside():
    spans = [
        Span("1", "model", start=1, inputs="?", outputs=agent("", "c")),
        Span("2", "model", "1", start=2, inputs="user: Hi", outputs="None"),
        Span("3", "tool", "1", start=3, name="f", outputs="42"),
    ]
    tree(*spans)
    assert spans[1].outputs == agent("", "c")
    two = [*spans[:1], Span("2", "model", "1", outputs="x"), Span("4", "model", "1", outputs="y")]
    tree(*two)
    assert [span.outputs for span in two[1:]] == ["x", "y"]
    known = [spans[0], Span("2", "model", "1", outputs=agent("own"))]
    tree(*known)
    assert known[1].outputs == agent("own")
    around = [Span("1", outputs=agent("a")), Span("2", "model", "1", outputs="x")]
    tree(*around)
    assert around[1].outputs == "x"
    nameless = [Span("", "model", outputs=agent("a")), Span("2", "model", outputs="x")]
    tree(*nameless)
    assert nameless[1].outputs == "x"
    silent = [Span("1", "model", outputs=agent("a")), Span("2", "model", "1")]
    tree(*silent)
    assert silent[1].outputs is None


@pytest.mark.parametrize("fields", [{"inputs": "x"}, {"outputs": "x"}])
def test_a_span_within_one_that_has_values_is_not_the_outermost(fields):
    one = tree(Span("a", **fields), Span("b", parent="a"), Span("c", parent="b", inputs="y"))
    assert [one.is_outermost_with_values(span) for span in one.spans] == [True, False, False]


@pytest.mark.parametrize("value", [[1], {"a": 1}, "-5", "1.5", "٣x"])
def test_values_that_are_no_times(value):
    assert moment(value) is None


@pytest.mark.parametrize(
    ("fields", "is_answered"),
    [
        ({"outputs": ""}, True), ({}, False), ({"error": True}, True), ({"error": False}, False),
        ({"scores": {"p": 1}}, True), ({"tokens": {"output": 3}}, True),
        ({"tokens": {"output": 0, "input": 3}}, False), ({"inputs": "x"}, False),
    ],
)  # fmt: skip
def test_calls_of_a_model_that_are_turns(fields, is_answered):
    span = Span("1", "model", **fields)
    assert tree(span, Span("2", "model", outputs="x")).is_answered(span) is is_answered
    if fields.get("error"):
        inner = Span("1", "model", "2", **fields)
        one = tree(inner, Span("2", "model", outputs="x"))
        assert not one.is_answered(inner)  # it is the record of its call
    silent = Span("1", "model")
    assert tree(silent).is_answered(silent)  # no call has a text


def test_a_tool_before_the_first_answer_is_a_turn_of_its_own():
    spans = [
        Span("1", "tool", start=1, name="f", inputs={"n": 3}, outputs="9"),
        Span("2", "model", start=2, inputs=FIRST, outputs="Bye"),
    ]
    run = read(*spans)
    assert calls_of(run) == [("f", {"n": 3}, "9")]
    assert sorted(step.text for step in run.steps) == ["", "Bye", "Hi"]
    assert [step.span for step in run.steps if step.tool_calls] == ["1"]


def test_a_tools_span_without_values_leaves_its_call_as_it_is():
    call = {"id": "c", "function": {"name": "f", "arguments": ""}}
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    spans = [Span("1", "model", start=1, outputs=turn), Span("2", "tool", start=2, call="c")]
    ((call,),) = (step.tool_calls for step in read(*spans).steps)
    assert (call.arguments, call.result, call.extra, call.error) == ("", None, {}, None)


def test_a_call_of_a_model_comes_before_what_is_within_it():
    spans = [
        Span("1", "model", start=1, inputs=FIRST, outputs="I look."),
        Span("2", "tool", "1", start=2, name="f", outputs="9"),
    ]
    run = read(*spans)
    assert said(run) == [("user", "Hi"), ("agent", "I look.")]
    assert calls_of(run) == [("f", {}, "9")]


def test_a_record_within_a_call_is_a_turn_where_it_was_given_something():
    outer = Span("1", "model", inputs=FIRST)
    for inputs, is_answered in ((None, False), ("x", True)):
        inner = Span("2", "model", "1", inputs=inputs, error=True)
        assert tree(outer, inner).is_answered(inner) is is_answered
        around = Span("1", "other", inputs="x")
        assert tree(around, inner).is_answered(inner)


def test_the_span_of_a_ring_that_began_first_is_outermost():
    def outermost(*spans):
        spans = [Span(name, parent=parent, start=start) for name, parent, start in spans]
        one = tree(*spans)
        return [span.id for span in one.outermost], one.n_rings

    ring = ("a", "b", 3), ("b", "c", 1), ("c", "a", 2)
    assert outermost(*ring) == (["b"], 1)
    assert outermost(("a", "b", None), ("b", "a", 5)) == (["b"], 1)
    assert outermost(("a", "b", None), ("b", "a", None)) == (["a"], 1)
    assert outermost(("b", "a", 1), ("a", "b", 1)) == (["a"], 1)
    assert outermost(("a", "a", 1), ("x", "a", 0)) == (["a"], 0)
    assert outermost(*ring, ("d", "e", 1), ("e", "d", 2), ("x", "a", 0)) == (["b", "d"], 2)
    assert outermost(("a", None, 1), ("b", "a", 0), ("c", "?", 0)) == (["c", "a"], 0)
