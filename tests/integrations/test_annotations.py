"""What ``trajscore annotate`` writes of finished runs, in the words of each platform."""

import json

import numpy as np
import pytest

from scripts import load_script
from trajscore import io
from trajscore.cli.main import main

pytest.importorskip("skops")
live = load_script("live_runs", "tools")
TRACE, SPAN = "0AF7651916CD43DD8448EB211C80319", "b7ad6b716920333"


@pytest.fixture(scope="module")
def guard():
    return live.fitted_guard(0, 200)


@pytest.fixture
def annotated(guard, tmp_path, monkeypatch, capsys):
    """Exit code, records and messages of two conversations, and the guard's looks at them."""
    monkeypatch.chdir(tmp_path)
    guard.save("guard.skops")
    rng = np.random.default_rng(3)
    talks = sorted((live.talk_of(rng) for _ in range(6)), key=lambda talk: talk.good)
    chats = [live.chat_of(talk) for talk in (talks[0], talks[-1])]
    calls = [
        (run, n, chat[:n], message)
        for run, chat in enumerate(chats)
        for n, message in enumerate(chat)
        if message["role"] == "assistant"
    ]

    def annotate(to, log, trace=TRACE, span=SPAN):
        make = otel if log == "otel" else mlflow
        (tmp_path / "log.jsonl").write_text(make(calls, trace, span))
        code = main(["annotate", "log.jsonl", "--model", "guard.skops", "--to", to])
        out, err = capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err

    return annotate, lambda: guard.looks(io.read_runs("log.jsonl"))


def otel(calls, trace, span):
    spans = []
    for run, n, given, answer in calls:
        own = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(given),
               "gen_ai.output.messages": json.dumps([answer])}  # fmt: skip
        attributes = [{"key": key, "value": {"stringValue": own[key]}} for key in own]
        spans.append({"traceId": f"{trace}{run}", "spanId": f"{span[:-1]}{n:02}", "name": "chat",
                      "startTimeUnixNano": str(n), "attributes": attributes})  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n"


def mlflow(calls, trace, span):
    traces = {}
    for run, n, given, answer in calls:
        own = {"mlflow.spanType": "CHAT_MODEL", "mlflow.spanInputs": given,
               "mlflow.spanOutputs": answer}  # fmt: skip
        info = {"trace_id": f"tr-{trace}{run}", "assessments": []}
        record = traces.setdefault(run, {"info": info, "data": {"spans": []}})
        record["data"]["spans"].append(
            {"span_id": f"{span[:-1]}{n:02}", "name": "chat", "parent_span_id": None,
             "start_time_unix_nano": n, "attributes": own})  # fmt: skip
    return "".join(json.dumps(record) + "\n" for record in traces.values())


def split(records):
    """Flags and p-values, in the order of runs and turns."""
    flags = [own for own in records if own["name"] == "trajscore_flag"]
    return flags, [own for own in records if own["name"] == "trajscore_p_value"]


@pytest.mark.parametrize(("to", "log"), [("langfuse", "otel"), ("mlflow", "mlflow")])
def test_a_score_for_each_turn_with_a_span_and_one_for_the_run(annotated, to, log):
    annotate, looks_of = annotated
    code, records, err = annotate(to, log)
    looks, (flags, turns) = looks_of(), split(records)
    stops = [own[-1].flagged_step for own in looks]
    assert code == 0
    assert err.startswith(f"2 runs, {sum(stop is not None for stop in stops)} flagged")
    assert [bool(own["value"]) for own in flags] == [stop is not None for stop in stops]
    assert any(stops)
    found = [own["value"] for own in turns]
    every = [float(f"{1 - look.suspicion:.6g}") for own in looks for look in own]
    assert set(found) <= set(every)
    assert len(found) > 2
    for own, stop in zip(flags, stops, strict=True):
        text = own.get("comment") or own["rationale"]
        assert (f"flagged at step {stop}" if stop else "not flagged") in text
    if to == "langfuse":
        assert {own["dataType"] for own in flags} == {"BOOLEAN"}
        assert {own["dataType"] for own in turns} == {"NUMERIC"}
        assert all("observationId" in own for own in turns)
        assert len({own["id"] for own in records}) == len(records)
        assert annotate(to, log)[1] == records  # with the same ids, so that none is there twice
    else:
        assert all("span_id" in own for own in turns)
        assert not any("span_id" in own for own in flags)
        assert {own["source"]["source_type"] for own in records} == {"CODE"}


def test_otel(annotated):
    annotate, looks_of = annotated
    lines = annotate("otel", "otel")[1]
    scopes = [line["resourceLogs"][0]["scopeLogs"][0] for line in lines]
    records = [record for scope in scopes for record in scope["logRecords"]]
    name, flagged = "gen_ai.evaluation.", []
    for record in records:
        values = {own["key"].removeprefix(name): own["value"] for own in record["attributes"]}
        assert record["eventName"] == f"{name}result"
        assert record["traceId"].startswith(TRACE.lower())
        is_flag = values["name"] == {"stringValue": "trajscore_flag"}
        assert is_flag == ("spanId" not in record) == ("score.label" in values)
        if is_flag:
            value = values["score.value"]["doubleValue"]
            assert values["score.label"]["stringValue"] == ("flagged" if value else "not flagged")
            flagged.append(bool(value))
    assert flagged == [own[-1].stop for own in looks_of()]


def test_otlp_takes_no_other_ids(annotated):
    annotate, _ = annotated
    for trace, span, digits in [
        (TRACE[1:], SPAN, 32),
        ("g" * 31, SPAN, 32),
        (TRACE, SPAN + "0", 16),
    ]:
        code, records, err = annotate("otel", "otel", trace, span)
        assert (code, records) == (2, [])
        assert f"ids of {digits} hexadecimal digits" in err
