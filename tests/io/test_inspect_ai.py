"""Inspect AI: events to turns, scores to outcomes, limits to stops; mostly by a stand-in."""

import math
import sys
from types import SimpleNamespace

import pytest

from known_dialogue import said
from trajscore import io


class Record(SimpleNamespace):
    """A record to which fields can be added."""

    def __or__(self, fields):
        return Record(**vars(self) | fields)

    def model_dump(self, exclude_none=True):
        return {name: dumped(value) for name, value in vars(self).items() if value is not None}


def dumped(value):
    if isinstance(value, (list, tuple)):
        return list(map(dumped, value))
    if isinstance(value, dict):
        return {name: dumped(own) for name, own in value.items()}
    return value.model_dump() if isinstance(value, Record) else value


ASKED = Record(role="user", content="Hi", id="u")


def answer(text="", *calls):
    made = [Record(id=key, function=key, arguments={"x": 1}, type="function") for key in calls]
    return Record(role="assistant", content=text, id=text, tool_calls=made or None)


def model(text, *calls, given=(ASKED,), **fields):
    names = ("stop_reason", "logprobs")
    of_choice = {name: fields.pop(name) for name in names if name in fields}
    choice = Record(message=answer(text, *calls), **of_choice)
    return Record(event="model", input=list(given), output=Record(choices=[choice])) | fields


def begin(key, parent=None, kind=None):
    return Record(event="span_begin", id=key, parent_id=parent, type=kind)


def tool(key, result="ok", **fields):
    own = Record(event="tool", id=key, function=fields.pop("function", key), result=result)
    return own | fields


def rated(value, **fields):
    return Record(event="score", intermediate=True, score=Record(value=value)) | fields


@pytest.fixture
def read_all(monkeypatch, tmp_path):
    """Read samples; without sample ids, the log is an old one without a list of them."""

    def read_samples(*samples, sample_ids=(1,), **options):
        about = Record(task="t", dataset=Record(sample_ids=sample_ids))
        head = Record(status="success", eval=about)
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


def sample(*events, **fields):
    return Record(id=7, epoch=2, events=list(events or [model("Yes")])) | fields


@pytest.fixture
def read(read_all):
    """Read one sample of some events or fields."""

    def read_one(*events, options=None, **fields):
        (run,) = read_all(sample(*events, **fields), **options or {})
        return run

    return read_one


def texts(run):
    return [step.text for step in run.steps]


def test_a_sample_with_all_its_fields(read_all):
    system = Record(role="system", content="Be brief", id="y")
    token = Record(token="2", logprob=-0.25, top_logprobs=[Record(token="2", logprob=-0.25)])
    events = [
        model("", "add", given=[system, ASKED]), tool("add", 2, error=None), rated(0.8),
        model("2", given=[ASKED, answer("", "add")], logprobs=Record(content=[token]),
         stop_reason="stop"),
    ]  # fmt: skip
    scores = {"match": Record(value="C"), "trajscore_flag": Record(value=False)}  # one is ours
    runs = read_all(sample(*events, uuid="run", scores=scores, target="2", limit=None))
    (run,) = runs
    assert (run.id, run.task, run.trial, run.outcome) == ("run", "7", 2, 1)
    assert said(run) == [
        ("system", "Be brief"), ("user", "Hi"), ("add", {"x": 1}, "2"), ("agent", "2"),
    ]  # fmt: skip
    assert [step.confidence for step in run.steps] == [None, 0.8, None]
    last = run.steps[-1]
    assert (last.tokens, last.logprobs, last.top_logprobs) == (("2",), (-0.25,), ((("2", -0.25),),))
    assert last.extra["finish_reason"] == "stop"
    assert "finish_reason" not in run.steps[1].extra
    assert (run.meta["reward"], run.extra["target"], run.extra["scores"]) == (1, "2", {"match": 1})
    (info,) = runs.info.values()
    assert (info["status"], info["eval"]["task"]) == ("success", "t")
    # old logs are read as a whole
    old = read_all(*(sample(id=k) for k in range(2)), sample_ids=None)
    assert [run.id for run in old] == ["0-2", "1-2"]


def test_scores(read):
    for value, outcome in (
        ("C", 1), ("I", 0), ("P", 0), ("N", 0), (1, 1), (0.5, 0), (True, 1), (math.nan, -1),
    ):  # fmt: skip
        assert read(scores={"match": Record(value=value)}).outcome == outcome, value
    two = {"a": Record(value={"x": 1, "y": "I"}), "b": Record(value="C")}
    for name, outcome in (("a.x", 1), ("a.y", 0), ("b", 1)):
        assert read(scores=two, options={"outcome": f"scores.{name}"}).outcome == outcome, name
    assert read(scores={}).outcome == -1
    two = {"includes": Record(value="C"), "toxicity": Record(value=0.25)}
    for outcome, value in (("includes", 1), ("not toxicity", 0.75)):
        assert read(scores=two, options={"outcome": outcome}).outcome == value


def test_scores_that_cannot_be_read(read, read_all):
    two = {"a": Record(value={"x": 1}), "b": Record(value="C")}
    for scores, options, words in (
        (two, {"outcome": "c"}, r"scores\.a\.x, scores\.b"),
        (two, {"outcome": "scores.a"}, r"scores\.a\.x"),
        ({"includes": Record(value="I")}, {"outcome": "include"}, "'scores.includes'"),
    ):
        with pytest.raises(ValueError, match=words):
            read(scores=scores, options=options)
    for scores in (two, {"a": Record(value={"x": 1})}):
        with pytest.raises(ValueError, match=r"no run has an outcome .*scores\.a\.x"):
            io.outcomes(read_all(sample(scores=scores), sample(scores=scores, id=8)))
    bad = read_all(*(sample(scores={"toxicity": Record(value=k)}, id=k) for k in (1, 0)))
    assert [run.outcome for run in bad] == [-1, -1]  # whether high is good, only the user knows
    with pytest.raises(ValueError, match=r"the runs have .*scores\.toxicity"):
        io.outcomes(bad)
    with pytest.raises(ValueError, match="no turn of the agent"):
        read(events=None, messages=None)


def test_stops(read):
    for kind, means in (
        ("message", "administrative"), ("token", "administrative"), ("time", "administrative"),
        ("context", "informative"), ("operator", "informative"),
    ):  # fmt: skip
        fields = {"limit": Record(type=kind), "error": "oops"}
        for value in (0, 1):
            run = read(**fields, scores={"a": Record(value=value)})
            hidden = value == 0 and means == "administrative"
            ended = (-1, kind, means) if hidden else (value, kind, "complete")
            assert (run.outcome, run.stop_reason, run.stop_kind) == ended
            assert run.meta["reward"] == value
    run = read(error=Record(message="oops"), scores={"a": Record(value=1)})
    assert (run.outcome, run.stop_reason, run.stop_kind) == (1, "error", "complete")


BEGIN, END = (Record(event="step", type="scorer", action=name) for name in ("begin", "end"))
NEXT = model("x", given=(ASKED, answer("Yes")))
SCORERS = [
    ([BEGIN, NEXT], False), ([BEGIN, END, NEXT], True), ([BEGIN, BEGIN, END, NEXT], False),
    ([NEXT, BEGIN], True), ([BEGIN | {"type": "solver"}, NEXT], True),
    ([BEGIN | {"event": "other"}, NEXT], True), ([NEXT | {"role": "grader"}], False),
    ([NEXT | {"role": "other"}], True),
    ([begin("s", None, "scorer"), NEXT | {"span_id": "s"}], False),
    ([begin("o", None, "scorers"), begin("s", "o"), NEXT | {"span_id": "s"}], False),
    ([begin("s", None, "solver"), NEXT | {"span_id": "s"}], True),
    ([NEXT | {"span_id": "?"}], True),
]  # fmt: skip


def test_what_a_scorer_asks_is_no_turn(read):
    for events, is_turn in SCORERS:
        assert texts(read(model("Yes"), *events)) == ["Hi", "Yes", *["x"] * is_turn], events


def test_messages_are_read_only_where_the_model_was_not_called(read):
    messages = [ASKED, answer("from messages")]
    assert texts(read(model("Yes"), messages=messages)) == ["Hi", "Yes"]
    failed = model("No", error="refused")
    empty = Record(event="model", input=[], output=Record(choices=[]))
    assert texts(read(failed, empty, messages=messages)) == ["Hi", "from messages"]
    assert texts(read(model("One"), failed, messages=messages)) == ["Hi", "One"]
    assert texts(read(model("Yes") | {"input": None})) == ["Yes"]
    assert texts(read(events=None, messages=messages)) == ["Hi", "from messages"]


def test_results_of_tools_and_intermediate_scores(read):
    run = read(
        model("", "c", "d", "e"), tool("d", "of d"), tool(None, 3, function="e"),
        tool("c", "", error=Record(message="no c")),
    )  # fmt: skip
    calls = [(call.result, call.error) for call in run.steps[1].tool_calls]
    assert calls == [("no c", True), ("of d", False), ("3", False)]
    run = read(
        rated(0.1), model("One"), rated("high"), rated(0.25),
        model("Two", given=[ASKED, answer("One")]), rated(1, intermediate=False), rated(0.5),
        rated(1), model("Three", given=[ASKED, answer("One"), answer("Two")]),
    )  # fmt: skip
    assert [step.confidence for step in run.steps] == [None, 0.25, 1.0, None]


def test_inspect_needs_its_extra(monkeypatch, tmp_path, write):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(ImportError, match=r"scikit-trajscore\[inspect\]"):
        io.read_runs(write("log.json", {"eval": 1, "version": []}))
    with pytest.raises(ValueError, match=r"log\.json"):
        io.read_runs(write("log.json", {"eval": 1}))


def test_logs_that_inspect_writes(tmp_path):
    log = pytest.importorskip("inspect_ai.log")
    from inspect_ai import event, model, scorer

    user = model.ChatMessageUser(content="1 + 1?", id="u")
    output = model.ModelOutput.from_content("m", "2")
    token = model.Logprob(token="2", logprob=-0.25)
    output.choices[0].logprobs = model.Logprobs(content=[token])
    config = model.GenerateConfig()
    asked = {"model": "m", "input": [user], "tools": [], "tool_choice": "auto", "config": config}
    one = log.EvalSample(
        id="s", epoch=1, uuid="run", input="1 + 1?", target="2", messages=[user, output.message],
        events=[event.ModelEvent(output=output, **asked)],
        scores={"match": scorer.Score(value="C")},
    )  # fmt: skip
    for name, listed in (("a.eval", ["s"]), ("b.json", ["s"]), ("c.eval", None)):
        spec = log.EvalSpec(
            created="2026-01-01T00:00:00+00:00", task="t", model="m", config=log.EvalConfig(),
            dataset=log.EvalDataset(sample_ids=listed),
        )  # fmt: skip
        whole = log.EvalLog(eval=spec, samples=[one], status="success")
        log.write_eval_log(whole, str(tmp_path / name))
        (run,) = io.read_runs(tmp_path / name)
        assert (run.id, run.task, run.outcome) == ("run", "s", 1)
        assert [step.text for step in run.steps] == ["1 + 1?", "2"]
        assert run.steps[1].logprobs == (-0.25,)
