"""Inspect AI: events to turns, scores to outcomes, limits to stops; its library is a stand-in."""

import math
import sys
from types import SimpleNamespace

import pytest

from trajscore import io
from trajscore.io.formats.inspect_ai import Inspect, _dump, _plain
from trajscore.io.registry import Head


class Record(SimpleNamespace):
    """A record to which fields can be added."""

    def __or__(self, fields):
        return Record(**vars(self) | fields)


ASKED = Record(role="user", content="Hi", id="u")


def answer(text="", *calls):
    made = [Record(id=key, function=key, arguments={}) for key in calls]
    return Record(role="assistant", content=text, id=text, tool_calls=made or None)


def model(text, *calls, given=(ASKED,), **fields):
    choice = Record(message=answer(text, *calls), stop_reason=fields.pop("stop_reason", None))
    return Record(event="model", input=list(given), output=Record(choices=[choice])) | fields


def begin(key, parent=None, kind=None):
    return Record(event="span_begin", id=key, parent_id=parent, type=kind)


def tool(key, result="ok", **fields):
    return (
        Record(event="tool", id=key, function=fields.pop("function", key), result=result) | fields
    )


def rated(value, **fields):
    return Record(event="score", intermediate=True, score=Record(value=value)) | fields


@pytest.fixture
def read_all(monkeypatch, tmp_path):
    """Read samples; what is not a sample id stands for an old log without a list of them."""

    def read_samples(*samples, sample_ids=(1,), **options):
        head = Record(
            status="success", eval=Record(task="t", dataset=Record(sample_ids=sample_ids))
        )
        library = Record(
            read_eval_log=lambda path, header_only=False, **_: (
                head if header_only else Record(samples=list(samples))
            ),
            read_eval_log_samples=lambda path, **_: iter(samples),
        )
        monkeypatch.setitem(sys.modules, "inspect_ai", Record(log=library))
        monkeypatch.setitem(sys.modules, "inspect_ai.log", library)
        (tmp_path / "log.eval").touch()
        return io.read_runs(tmp_path / "log.eval", **options)

    return read_samples


@pytest.fixture
def read(read_all):
    """Read one sample of some events or fields."""

    def read_one(*events, options=None, **fields):
        sample = Record(id=7, epoch=2, events=list(events or [model("Yes")])) | fields
        (run,) = read_all(sample, **options or {})
        return run

    return read_one


def texts(run):
    return [step.text for step in run.steps]


@pytest.mark.parametrize(
    ("fields", "listed", "recognised"),
    [
        ({"eval": 1, "version": 2}, False, True),
        ({"eval": 1, "samples": []}, False, True),
        ({"eval": 1}, False, False),
        ({"version": 2, "samples": []}, False, False),
        ({"eval": 1, "version": 2}, True, False),
    ],
)
def test_files_of_the_format(fields, listed, recognised):
    assert Inspect().recognise(Head(fields, listed=listed)) == recognised


# ------------------------------------------------------------------ of the run


def test_what_a_run_holds(read):
    run = read(scores={"match": Record(value="C")}, target="x", error=None, events=None, messages=[
        ASKED, answer("Yes"),
    ])  # fmt: skip
    assert (run.id, run.task, run.trial, run.outcome, run.stop_reason) == ("7-2", "7", 2, 1, None)
    assert run.meta["reward"] == 1.0
    assert texts(run) == ["Hi", "Yes"]
    assert set(run.extra) == {"id", "epoch", "scores", "target"}
    assert read(uuid="u").id == "u"


@pytest.mark.parametrize("sample_ids", [(1,), None])
def test_old_logs_are_read_as_a_whole(read_all, sample_ids):
    samples = [Record(id=k, epoch=1, events=[model("Yes")]) for k in range(2)]
    runs = read_all(*samples, sample_ids=sample_ids)
    assert [run.id for run in runs] == ["0-1", "1-1"]
    (info,) = runs.info.values()
    assert info["status"] == "success"
    assert info["eval"]["task"] == "t"


@pytest.mark.parametrize(
    ("value", "outcome", "reward"),
    [
        ("C", 1, 1.0), ("I", 0, 0.0), ("P", 0, 0.5), ("N", 0, 0.0), (1, 1, 1), (0.5, 0, 0.5),
        (True, 1, True), (math.nan, -1, None),
    ],
)  # fmt: skip
def test_scores(read, value, outcome, reward):
    run = read(scores={"match": Record(value=value)})
    assert run.outcome == outcome
    assert run.meta["reward"] == reward or reward is None


def test_scores_of_a_guard_are_left_out(read):
    run = read(scores={"match": Record(value="C"), "trajscore_flag": Record(value=False)})
    assert (run.outcome, run.extra["scores"]) == (1, {"match": 1.0})


def test_a_part_of_a_score(read):
    two = {"a": Record(value={"x": 1, "y": "I"}), "b": Record(value="C")}
    chosen = [("a/x", 1), ("a/y", 0), ("a/z", -1), ("b", 1), ("b/x", -1)]
    for scorer, outcome in chosen:
        assert read(scores=two, options={"scorer": scorer}).outcome == outcome, scorer
    with pytest.raises(ValueError, match=r"reward is \{.*, C or I; choose a part of it by scorer="):
        read(scores=two, options={"scorer": "a"})
    for scores in (None, {}):
        assert read(scores=scores, options={"scorer": "a"}).outcome == -1


@pytest.mark.parametrize(
    ("limit", "error", "reason", "outcome"),
    [
        (None, None, None, 1),
        (None, "oops", "error", -1),
        (Record(type="token"), None, "token", -1),
        (Record(type="token"), "oops", "token", -1),
    ],
)
def test_stops(read, limit, error, reason, outcome):
    run = read(limit=limit, error=error, scores={"a": Record(value=1)})
    assert (run.stop_reason, run.outcome) == (reason, outcome)


# ------------------------------------------------------------------ events


def test_messages_are_read_only_where_the_model_was_not_called(read):
    messages = [ASKED, answer("from messages")]
    assert texts(read(model("Yes"), messages=messages)) == ["Hi", "Yes"]
    failed = model("No", error="refused")
    empty = Record(event="model", input=[], output=Record(choices=[]))
    assert texts(read(failed, empty, messages=messages)) == ["Hi", "from messages"]
    assert texts(read(model("One"), failed, messages=messages)) == ["Hi", "One"]


def test_all_fields_of_a_turn(read):
    token = Record(token="Yes", logprob=-0.5, top_logprobs=None)
    event = model("Yes", stop_reason="stop")
    event.output.choices[0].logprobs = Record(content=[token])
    _, turn = read(event).steps
    assert (turn.tokens, turn.logprobs) == (("Yes",), (-0.5,))
    assert turn.extra["finish_reason"] == "stop"
    assert "finish_reason" not in read(model("Yes")).steps[1].extra


def test_calls_of_scorers_and_graders_are_no_turns(read):
    run = read(
        begin("outer", None, "scorers"), begin("inner", "outer"), begin("other"),
        model("in span", span_id="outer"), model("deep in span", span_id="inner"),
        model("grader", role="grader"), model("Yes", span_id="other"),
        Record(event="step", type="scorer", action="begin"),
        Record(event="step", type="scorer", action="begin"), model("in step"),
        Record(event="step", type="scorer", action="end"), model("still in step"),
        Record(event="step", type="scorer", action="end"),
        Record(event="step", type="solver", action="begin"),
        model("End", given=[ASKED, answer("Yes")], span_id="unknown"),
    )  # fmt: skip
    assert texts(run) == ["Hi", "Yes", "End"]


BEGIN, END = (Record(event="step", type="scorer", action=name) for name in ("begin", "end"))
LATER = {"given": (ASKED, answer("Yes"))}


@pytest.mark.parametrize(
    ("events", "is_turn"),
    [
        ([BEGIN, model("x", **LATER)], False),
        ([BEGIN, END, model("x", **LATER)], True),
        ([BEGIN, BEGIN, END, model("x", **LATER)], False),
        ([model("x", **LATER), BEGIN], True),
        ([BEGIN | {"type": "solver"}, model("x", **LATER)], True),
        ([BEGIN | {"event": "other"}, model("x", **LATER)], True),
        ([model("x", role="grader", **LATER)], False),
        ([model("x", role="other", **LATER)], True),
        ([begin("s", None, "scorer"), model("x", span_id="s", **LATER)], False),
        ([begin("s", None, "solver"), model("x", span_id="s", **LATER)], True),
    ],
)
def test_what_a_scorer_asks_is_no_turn(read, events, is_turn):
    assert texts(read(model("Yes"), *events)) == ["Hi", "Yes", *["x"] * is_turn]


def test_events_with_nothing_in_them(read):
    assert texts(read(model("Yes") | {"input": None})) == ["Yes"]
    call = read(model("", "c"), tool("c", "")).steps[1].tool_calls[0]
    assert (call.result, call.error) == ("", False)
    assert read(model("Yes"), rated(0.5, intermediate=False)).steps[1].confidence is None
    with pytest.raises(ValueError, match="it has no turn of the agent"):
        read(events=None, messages=None)


@pytest.mark.parametrize("kind", ["scorer", "scorers"])
def test_both_names_of_spans_of_scorers(read, kind):
    run = read(begin("s", None, kind), model("x", span_id="s"), model("Yes"))
    assert texts(run) == ["Hi", "Yes"]


def test_results_of_tools(read):
    run = read(
        model("", "c", "d", "e"),
        tool("d", "of d"),
        tool(None, 3, function="e"),
        tool("c", "", error=Record(message="no c")),
        tool("c", "partly", error="E"),
    )
    calls = {call.name: (call.result, call.error) for call in run.steps[1].tool_calls}
    assert calls == {"c": ("no c\npartly", True), "d": ("of d", False), "e": ("3", False)}
    assert read(model("", "c"), tool("c", "", error="E")).steps[1].tool_calls[0].result == "E"


def test_intermediate_scores_are_the_confidence_of_the_turn_before(read):
    run = read(
        rated(0.1), model("One"), rated("high"), rated(0.25),
        model("Two", given=[ASKED, answer("One")]), rated(1, intermediate=False), rated(0.5),
        rated(1),
        model("Three", given=[ASKED, answer("One"), answer("Two")]),
    )  # fmt: skip
    assert [step.confidence for step in run.steps] == [None, 0.25, 1.0, None]


# ------------------------------------------------------------------ records


def test_records_become_plain_values():
    class Model:
        def model_dump(self, exclude, exclude_none):
            return {"exclude": exclude, "none": exclude_none}

    class Slim:
        __slots__ = ()

        def model_dump(self, exclude, exclude_none):
            return {"a": 1}

    assert _plain(Slim()) == {"a": 1}
    assert _plain({"a": [1]}) == {"a": [1]}
    assert _dump(None) == {}
    assert _dump(Model(), {"a"}) == {"exclude": {"a"}, "none": True}
    record = Record(a=1, b=None, c=(Record(d=2), 3), e={"f": Record(g=None)})
    assert _dump(record) == {"a": 1, "c": [{"d": 2}, 3], "e": {"f": {}}}
    assert _dump(record, {"a", "e"}) == {"c": [{"d": 2}, 3]}
    assert _dump({"a": 1, "b": None}) == {"a": 1}
    assert _plain([Model()]) == [{"exclude": None, "none": True}]
    assert (_plain("x"), _plain(3)) == ("x", 3)
