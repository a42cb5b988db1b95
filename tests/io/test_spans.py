"""The spans of a trace repeat the conversation; a run holds it once. As Langfuse has them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from known_dialogue import agent, said, tool, turns, user
from trajscore import io

KINDS = {"model": "GENERATION", "tool": "TOOL", "other": "SPAN"}
FIELDS = {"start": "startTime", "parent": "parentObservationId", "tokens": "usageDetails",
          "cost": "totalCost"}  # fmt: skip


def span(key, kind="other", parent=None, *, call=None, error=None, scores=None, **fields):
    """Return an observation of Langfuse."""
    own = {FIELDS.get(name, name): value for name, value in fields.items()}
    own |= {"metadata": {"tool.id": call}} if call else {}
    own |= {"level": "ERROR"} if error else {}
    own |= {"scores": scores} if scores else {}
    return {"id": key, "type": KINDS[kind], "parentObservationId": parent} | own


SYSTEM = {"role": "system", "content": "Be kind."}


def read(write, *spans):
    scores = [
        {"observationId": span["id"], "name": name, "value": value}
        for span in spans
        for name, value in span.get("scores", {}).items()
    ]
    log = {"id": "t", "observations": spans, "scores": scores}
    return io.read_runs(write("log.json", log), format="langfuse")[0]


def check(write, table, of=said):
    """Read the spans of each row of a table to what is said in its run."""
    for spans, expected in table:
        assert of(read(write, *spans)) == expected, spans


FIRST = [user("Hi")]
SECOND = [*FIRST, agent("wait", "c"), tool("42", "C")]
THIRD = [*SECOND, agent("so?"), user("Hi")]


def test_in_order_and_once(write):
    spans = [
        span("2", "model", start=2, input=SECOND, output=agent("so?"), tokens={"input": 9}),
        span("t", "tool", start=1, name="c", call="C", output="42"),
        span("1", "model", start=0, input=FIRST, output=agent("wait", "c"), tokens={"input": 4}),
        span("3", "model", start=3, input=THIRD, output="Bye", cost=0.5),
    ]
    for order in (spans, spans[::-1]):
        run = read(write, *order)
        assert said(run) == [
            ("user", "Hi"), ("agent", "wait"), ("c", {}, "42"), ("agent", "so?"),
            ("user", "Hi"), ("agent", "Bye"),  # "Hi" is said twice, as the last call shows
        ]  # fmt: skip
        assert run.steps[1].observation == "42"
        assert (run.meta["input_tokens"], run.steps[4].cost) == (13, 0.5)
        assert [step.span for step in run.steps] == [None, "1", "2", None, "3"]


@given(st.data())
def test_any_conversation_is_read_once_and_in_order(tmp_path_factory, data):
    # a call is given all that was said so far, in few words that repeat, or the last of it
    whole = data.draw(st.booleans())
    words = st.sampled_from(["yes", "no"]) if whole else st.uuids().map(str)
    talk, spans = [user(data.draw(words))], []
    for k in range(data.draw(st.integers(1, 8))):
        first = 0 if whole else data.draw(st.integers(0, len(talk) - 1))
        with_call = data.draw(st.booleans())
        answer = agent(data.draw(words), *([f"c{k}"] if with_call else []))
        spans.append(span(f"m{k}", "model", start=2 * k + 1, input=talk[first:], output=answer))
        talk = [*talk, answer]
        if with_call:
            talk = [*talk, tool(f"r{k}", f"C{k}")]
            spans.append(span(f"t{k}", "tool", start=2 * k + 2, name=f"c{k}", output=f"r{k}"))
        if data.draw(st.booleans()):
            talk = [*talk, user(data.draw(words))]
    around = span("all", start=0, input={"messages": talk[:1]}, output={"messages": talk})
    spans = data.draw(st.permutations([*spans, around]))
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({"id": "t", "observations": spans, "scores": []}))
    (run,) = io.read_runs(path, format="langfuse")
    assert [step.text for step in run.steps] == [m["content"] for m in talk if m["role"] != "tool"]
    results = [call.result for step in run.steps for call in step.tool_calls]
    assert results == [m["content"] for m in talk if m["role"] == "tool"]


def model(k, given, answer, **fields):
    return span(str(k), "model", start=k, input=given, output=answer, **fields)


def ran(k, name, up=None, **fields):
    return span(str(k), "tool", up, start=k, name=name, **fields)


A, B, C, X, Y = (user(name) for name in "abcxy")
END = model(9, None, "end")


def known(*messages, then):
    """Return spans that hold some messages, and then others, before a last answer."""
    return [span("1", start=1, input=list(messages)), span("2", start=2, input=then), END]


WOVEN = [
    # new messages go before the next one that is known
    (known(A, B, C, then=[A, B, C]), "a b c"), (known(A, B, C, then=[A, X, B]), "a x b c"),
    (known(A, B, C, then=[X, Y, B]), "a x y b c"), (known(A, B, C, then=[B, X]), "a b c x"),
    (known(A, B, C, then=[A, X, B, Y, C, user("z")]), "a x b y c z"),
    (known(A, B, C, then=[X]), "a b c x"), (known(A, B, C, then=[B]), "a b c"),
    (known(A, B, C, then=[C, A]), "a b c a"),
    (known(A, agent("b"), C, agent("d"), then=[X, agent("b"), Y, agent("d"), user("e")]),
     "a x b c y d e"),
    # what is the same
    (known(user("a  b\n"), then=[user(" a b"), agent("a b")]), "a  b\n a b"),
    (known(A, agent("b", "f", "g"), then=[A, agent("", "g", "f"), C]), "a b c"),
    (known(A, agent("b", "f", "g"), then=[agent("", "f"), C]), "a b c"),
    (known(A, agent("b", "f"), then=[agent("x", "f", "h")]), "a b x"),
    (known(agent("a", "f", ids=False), then=[agent("a", "f", ids=False)]), "a"),
    (known(agent("a", "f", ids=False), then=[agent("a", "g", ids=False)]), "a a"),
    (known(A, agent("b"), agent("x"), agent("b\nx"), then=[A, agent("b"), agent("x")]),
     "a b x b\nx"),
    (known(user("a\nb"), then=[A, B]), "a\nb a b"),
    (known(A, agent(""), {"role": "assistant"}, then=[A]), "a"),
]  # fmt: skip


def test_messages_that_are_woven_into_a_conversation(write):
    def texts(run):
        return " ".join(step.text for step in run.steps)

    check(write, [(spans, f"{expected} end") for spans, expected in WOVEN], texts)


F, G, H = ({"id": name.upper(), "name": name} for name in "fgh")
RESULTS = [  # the results of the calls of a history of messages, and those of none
    ([agent("", "f", "g"), tool("1", "F"), tool("2", "G")], ["1", "2"], []),
    ([agent("", "f", "g"), tool("2", "G"), tool("1", "F")], ["1", "2"], []),
    ([agent("", "f", "g", ids=False), tool("2", name="g"), tool("1"), B, agent("", "h"),
      tool("3")], ["1", "2", "3"], []),
    ([agent("", "f", "g", ids=False), tool("2", name="g"), tool("3", name="h")],
     [None, "2"], ["3"]),
    ([agent("", "f", "g"), tool("1", "x")], [None, None], ["1"]),
    ([agent("", "f", "g", "h"), tool("1", "F"), tool("2", "?")], ["1", None, None], ["2"]),
    ([agent("", "f"), user("wait"), tool("1", "F")], ["1"], []),
    ([agent("", "f"), A, tool("1")], [None], ["1"]),
    ([tool("0", "z"), agent("", "f"), tool("1")], ["1"], ["0"]),
    ([agent("", "f", "g"), tool("1"), tool("2"), tool("3")], ["1", "2"], ["3"]),
    ([agent("a", "f", ids=False), tool("1"), agent("b", "f", ids=False), tool("2")],
     ["1", "2"], []),
    ([agent("", "f"), tool("1", "?", name="f"), B, tool("1", "?", name="f")], [None], ["1"]),
    ([agent("", "f"), tool("1", "F"), B, tool("1", "?"), tool("2", "?")], ["1"], ["2"]),
]  # fmt: skip


def test_results_of_a_history_go_to_their_calls_once(write):
    for messages, results, unmatched in RESULTS:
        run = read(write, model(1, messages, "end"), model(2, messages, "end"))
        calls = [call.result for step in run.steps for call in step.tool_calls]
        others = [one["content"] for one in run.extra.get("unmatched_results", ())]
        assert (calls, others) == (results, unmatched), messages
    marked = [agent("", "f", "g"), tool("1", "F", error=True)]
    (turn, *_) = read(
        write, model(1, marked, "end"), model(2, [*marked, tool("2", "G")], "x")
    ).steps
    assert [call.error for call in turn.tool_calls] == [True, None]


ANSWERS = [
    # an answer is new unless a call repeated it before
    ([model(1, [A], agent("b")), model(2, [A, agent("b"), C], agent("d"))], "a b c d"),
    ([span("0", start=0, input=[A, agent("b"), C]), model(1, [A], agent("b")),
     model(2, [A], agent("b"))], "a b c b"),
    ([span("0", start=0, input=[A, agent("b"), C]), model(1, [A, agent("b"), C], agent("b"))],
     "a b c b"),
    ([model(1, [SYSTEM], agent("x"))], "x"),
    ([span("0", start=0, input=[agent("x"), A]), model(1, [SYSTEM], agent("x"))], "x a"),
    # completions, and several messages of one answer
    ([model(1, [A], {"choices": [{"message": agent("b")}]}), model(2, [A, agent("b"), C], "d")],
     "a b c d"),
    ([model(1, [A], [agent("b", "f"), agent(""), agent("c", "g"), X, agent("d")])], "a b c x d"),
    ([model(1, [A], [agent("b"), agent("c")]), model(2, [A, agent("b"), agent("c"), X], "d")],
     "a b c x d"),
    ([model(k, {"n": 3}, "yes") for k in (1, 2)], "yes yes"),
]  # fmt: skip


def test_the_answers_of_calls(write):
    check(write, ANSWERS, lambda run: " ".join(step.text for step in run.steps))
    turn = read(write, model(1, {"n": 3}, [agent("a"), B, agent("c")])).steps
    assert [one.extra.get("input") for one in turn] == [{"n": 3}, None, None]
    answer = [agent("", "f"), tool("1", "F"), SYSTEM, agent("done")]
    run = read(write, model(1, [A], answer))
    assert said(run) == [
        ("system", "Be kind."), ("user", "a"), ("f", {}, "1"), ("agent", "done"),
    ]  # fmt: skip


LOOK = agent("look", "f")
TRACES = [
    # a call of a model around another one counts once, with its messages
    ([model(0, "What?", agent("", "c")), model(1, FIRST, agent("", "c"), parent="0"),
     ran(2, "c", "0", call="C", input="{}", output='{"x": 1}')],
     [("user", "Hi"), ("c", {}, '{"x": 1}')]),
    # tools: what their span knows of a call
    ([model(1, FIRST, "I look."), ran(2, "search", input='{"q": 1}'), model(3, None, "Found.")],
     [("user", "Hi"), ("agent", "I look."), ("search", {"q": 1}, None), ("agent", "Found.")]),
    ([model(1, None, LOOK), ran(2, "run f", input={"n": 3}, output="9")],
     [("agent", "look"), ("f", {"n": 3}, "9")]),
    ([model(1, None, LOOK), ran(2, "tool.f", output="9"),
     ran(3, "(merged tools)", input="N/A", output="?")], [("agent", "look"), ("f", {}, "9")]),
    ([model(1, None, LOOK), span("2", "tool", start=2, call="F")],
     [("agent", "look"), ("f", {}, None)]),
    ([model(1, None, agent("", "f", "g")), ran(2, "g", call="F", output="1")],
     [("f", {}, "1"), ("g", {}, None)]),
    ([ran(1, "f", input={"n": 3}, output="9"), model(2, FIRST, "Bye")],
     [("f", {"n": 3}, "9"), ("user", "Hi"), ("agent", "Bye")]),
    # the same call again, within a span of the same input
    ([model(1, None, "a"), ran(2, "f", input="x", output="1"),
     ran(3, "g", "2", input="x", output="1")], [("agent", "a"), ("f", "x", "1")]),
    ([model(1, None, "a"), ran(2, "f", input="y", output="1"),
     ran(3, "g", "2", input="x", output="1")], [("agent", "a"), ("f", "y", "1"), ("g", "x", "1")]),
    # by arguments and results
    ([model(1, None, {"role": "assistant", "content": "", "tool_calls":
     [{"name": "f", "arguments": {"n": k}} for k in (1, 2)]}),
     ran(2, "f", input={"n": 2}, output="2"), ran(3, "f", input={"input": {"n": 1}}, output="1")],
     [("f", {"n": 1}, "1"), ("f", {"n": 2}, "2")]),
    ([model(1, None, {"role": "assistant", "content": "", "tool_calls":
     [{"name": "f", "arguments": {"n": 1}}, {"name": "g", "arguments": {"n": 2}}]}),
     ran(2, "Tool.run", input={"n": 2}, output="2")],
     [("f", {"n": 1}, None), ("g", {"n": 2}, "2")]),
    ([model(1, None, agent("", "f")), model(2, None, agent("", "f", ids=False)),
     ran(3, "f", call="F", output="1"), ran(4, "f", call="?", output="2")],
     [("f", {}, "1"), ("f", {}, "2")]),
    # the message's result goes before that of a span
    ([model(1, FIRST, LOOK), ran(2, "f", output="span"),
     model(3, [*FIRST, LOOK, tool("message", "F")], "Bye")],
     [("user", "Hi"), ("agent", "look"), ("f", {}, "message"), ("agent", "Bye")]),
    # without a call of a model, the outermost span tells all
    ([span("in", parent="out", input={"messages": FIRST}, output={"messages": SECOND}),
     span("out", input={"messages": FIRST}, output={"messages": [*THIRD, agent("Bye")]})],
     [("user", "Hi"), ("agent", "wait"), ("c", {}, "42"), ("agent", "so?"), ("user", "Hi"),
     ("agent", "Bye")]),
    ([span("1", start=1, output="Bye"), span("2", start=2, output="So")], [("agent", "Bye")]),
    ([span("out", input={"task": "add"}, output={"a": 2}), span("in", parent="out", output="x")],
     [("agent", '{"a": 2}')]),
]  # fmt: skip


def test_traces_of_models_and_tools(write):
    check(write, TRACES)
    table = [("n", "n"), ({"n": 3}, {"n": 3}), ('{"n": 3}', {"n": 3})]
    check(write, [([ran(1, "f", input=given, output="9")], [("f", n, "9")]) for given, n in table])
    table = [  # what a tool returned
        ({"output": "x"}, "x"), ({"output": "x", "n": 1}, '{"output": "x", "n": 1}'), ('"x"', "x"),
        ({"name": "f", "response": 3}, "3"), ('{"a": 1}', '{"a": 1}'), (3, "3"),
        ({"content": [{"type": "text", "text": "x"}]}, "x"), ({"output": '{"a": 1}'}, '{"a": 1}'),
        ({"content": "", "blocks": [{"text": "x"}]}, "x"),
        ({"role": "tool", "content": "x", "tool_call_id": "F"}, "x"),
    ]  # fmt: skip
    for output, text in table:
        spans = [model(1, None, LOOK), ran(2, "f", output=output)]
        assert said(read(write, *spans)) == [("agent", "look"), ("f", {}, text)], output


def test_the_order_of_spans(write):
    def texts(*starts):
        spans = [model(k, None, "abc"[k]) | {"startTime": start} for k, start in enumerate(starts)]
        return "".join(step.text for step in read(write, *spans).steps)

    for starts, order in (
        ((2, 1, 3), "bac"), ((2, None, 1), "abc"), ((2, True, 1), "abc"), ((2, "soon", 1), "abc"),
        ((2, "", 1), "abc"), (("9", "10", "8"), "cab"), ((1.9, 1.2, 2), "abc"),
        (("9" * 5000, 1, 0), "abc"), (("2026-01-01T00:00:02", "2026-01-01T00:00:01"), "ba"),
        (("2026-01-01T00:00:01.5Z", "2026-01-01T00:00:01Z"), "ba"),
        (("2026-01-01T01:00:00+01:00", "2025-12-31T23:59:59Z"), "ba"), (([1], 1, 0), "abc"),
    ):  # fmt: skip
        assert texts(*starts) == order, starts
    # spans around calls need no time, and a call comes before what is within it
    assert texts(2, 1) == "ba"
    run = read(write, span("0"), model(2, None, "B"), model(1, None, "A"))
    assert turns(run) == [("agent", "A"), ("agent", "B")]


def test_spans_that_are_each_others_parents(write):
    def ring(*spans):
        last = model(9, None, "x", parent="b")
        made = (span(key, parent=up, start=at, input=key) for key, up, at in spans)
        return read(write, *made, last)

    for spans in (
        [("a", "b", 3), ("b", "c", 1), ("c", "a", 2)], [("a", "b", None), ("b", "a", 5)],
        [("b", "b", 1)], [("b", None, 1), ("a", "b", 0)],
    ):  # fmt: skip
        assert turns(ring(*spans)) == [("agent", "x")], spans
    for up in ("2", "not in the log"):
        lost = model(2, SECOND, agent("so?"), parent=up)
        run = read(write, lost, model(1, FIRST, agent("wait", "c")), span("0", error=True))
        assert [step.text for step in run.steps] == ["Hi", "wait", "so?"]
        assert run.stop_reason == "error"


def test_scores_of_spans_are_those_of_turns_or_of_the_run(write):
    run = read(
        write,
        span("root", start=0, scores={"all": 1}),
        span("a", parent="root", start=1, scores={"last": 2}),
        model(2, FIRST, "x", parent="a", scores={"q": 0.5}),
        model(3, None, "y", parent="a"),
        span("none", parent="root", start=4),
        span("alone", start=4, scores={"run": 3}),
    )
    assert run.scores == {"run": 3}
    assert [step.scores for step in run.steps[1:]] == [{"q": 0.5}, {"all": 1, "last": 2}]


def test_numbers_and_ends(write):
    strange = {"input": True, "output": "9"}
    run = read(write,
        model(1, FIRST, "x", tokens={"input": 4, "output": 3}), model(2, None, "y", tokens=strange),
        model(3, None, "z", tokens={"input": 1}),
    )  # fmt: skip
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (5, 3)
    # a record that one began is no turn, but its tokens count, unless it is around others
    inner = model(2, FIRST, "Bye", parent="1", tokens={"input": 5})
    begun = model(1, FIRST, None, tokens={"input": 5}), model(3, FIRST, None, tokens={"input": 3})
    run = read(write, *begun, inner)
    assert (run.meta["input_tokens"], turns(run)) == (8, [("user", "Hi"), ("agent", "Bye")])
    assert run.extra["unanswered"] == 1
    for fields, is_turn in (
        ({"scores": {"q": 1}}, True), ({"tokens": {"output": 3}}, True), ({"error": True}, True),
        ({"tokens": {"output": 0, "input": 3}}, False), ({}, False), ({"input": "x"}, False),
    ):  # fmt: skip
        steps = read(write, span("1", "model", start=1, **fields), model(2, None, "x")).steps
        assert sum(step.actor == "agent" for step in steps) == 1 + is_turn, fields
    # only an outermost span around others stops a run
    bad = model(2, FIRST, "x", error=True)
    for around, reason in ((None, None), (True, "error")):
        out = span("out", start=0, error=around, input="x")
        run = read(write, out, span("in", parent="out", start=1, error=True), bad)
        assert run.stop_reason == reason


def test_a_tools_span_and_its_call(write):
    own = span("2", "tool", start=2, name="f", call="F", input={"n": 3}, output="9", error=True)
    (call,) = read(write, model(1, None, LOOK), own).steps[0].tool_calls
    assert (call.arguments, call.result, call.error, call.id) == ({"n": 3}, "9", True, "F")
    known = {"id": "F", "function": {"name": "f", "arguments": '{"n": 4}'}}
    history = [{"role": "assistant", "content": "", "tool_calls": [known]}, tool("8", "F")]
    (call,) = read(write, model(1, history, "Bye"), own).steps[0].tool_calls
    assert (call.arguments, call.result, call.extra) == ({"n": 4}, "8", {})
    history = [*FIRST, LOOK, tool("message", "F")]
    run = read(write, model(1, FIRST, LOOK), own, model(3, history, "Bye"))
    assert run.steps[1].observation == "message"


def test_spans_that_were_sent_again_count_once(write):
    calls = [span("1", "model", "a", start=1, endTime=2, input=FIRST, output="Yes"),
             span("a", start=0, endTime=3, input="q", output="Yes")]  # fmt: skip
    again = [calls[0] | {"id": "2", "parentObservationId": "b", "scores": {"sure": 0.4}},
             calls[1] | {"id": "b"}]  # fmt: skip
    for spans, n_turns, n_repeated in (
        ([*calls, *again], 1, 2), ([*calls, again[0] | {"endTime": 9}, again[1]], 2, 1),
        ([one | {"startTime": None} for one in (calls[0], again[0])], 2, 0),
    ):  # fmt: skip
        run = read(write, *spans)
        agents = [step for step in run.steps if step.actor == "agent"]
        assert (len(agents), run.extra.get("repeated", 0)) == (n_turns, n_repeated), spans
        assert agents[-1].scores == {"sure": 0.4}
