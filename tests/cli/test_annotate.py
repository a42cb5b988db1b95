"""``trajscore annotate``: each platform takes what it writes, and readers leave it out again."""

import json

import numpy as np
import pytest

from scripts import load_script
from trajscore import io
from trajscore.cli.main import main
from trajscore.integrations import Guard
from trajscore.integrations._annotations import scores_of

pytest.importorskip("skops")
live = load_script("live_runs", "tools")
TIMES = [f"2026-01-01T00:00:{second:02}Z" for second in range(60)]


@pytest.fixture(scope="module")
def guard():
    return live.fitted_guard(0, 300)


@pytest.fixture
def folder(tmp_path, monkeypatch, guard):
    monkeypatch.chdir(tmp_path)
    guard.save("guard.skops")
    return tmp_path


@pytest.fixture(scope="module")
def chats():
    """The messages of some conversations, of which the first is flagged in the end."""
    rng = np.random.default_rng(3)
    talks = sorted((live.talk_of(rng) for _ in range(8)), key=lambda talk: talk.good)
    return [live.chat_of(talk) for talk in talks]


def calls_of(chat):
    """The calls of the model: all messages before each answer, and the answer."""
    return [(chat[:n], m) for n, m in enumerate(chat) if m["role"] == "assistant"]


def trace_id(run):
    return f"{run + 1:032x}"


def span_id(run, call):
    return f"{run + 1:08x}{call + 1:08x}"


def langfuse(chats):
    return [
        {
            "id": trace_id(run),
            "timestamp": TIMES[0],
            "scores": [],
            "observations": [
                {
                    "id": span_id(run, n), "traceId": trace_id(run), "type": "GENERATION",
                    "startTime": TIMES[n], "input": given, "output": answer,
                }
                for n, (given, answer) in enumerate(calls_of(chat))
            ],
        }
        for run, chat in enumerate(chats)
    ]  # fmt: skip


def otel(chats):
    def attributes(given, answer):
        own = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(given),
            "gen_ai.output.messages": json.dumps([answer]),
        }
        return [{"key": key, "value": {"stringValue": value}} for key, value in own.items()]

    spans = [
        {
            "traceId": trace_id(run), "spanId": span_id(run, n), "name": "chat",
            "startTimeUnixNano": str(n), "attributes": attributes(*call),
        }
        for run, chat in enumerate(chats)
        for n, call in enumerate(calls_of(chat))
    ]  # fmt: skip
    return [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]


def mlflow(chats):
    return [
        {
            "info": {"trace_id": f"tr-{trace_id(run)}", "assessments": []},
            "data": {
                "spans": [
                    {
                        "span_id": span_id(run, n), "name": "chat", "parent_span_id": None,
                        "start_time_unix_nano": n,
                        "attributes": {
                            "mlflow.spanType": "CHAT_MODEL",
                            "mlflow.spanInputs": given,
                            "mlflow.spanOutputs": answer,
                        },
                    }
                    for n, (given, answer) in enumerate(calls_of(chat))
                ]
            },
        }
        for run, chat in enumerate(chats)
    ]  # fmt: skip


LOGS = {"langfuse": langfuse, "otel": otel, "mlflow": mlflow}


def write_log(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def annotate(capsys, to, *arguments, log="log.jsonl"):
    code = main(["annotate", log, "--model", "guard.skops", "--to", to, *arguments])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def seen(run):
    """Everything that a reader makes of a run but where it stands."""
    return repr(run.steps), run.outcome, run.scores, [step.scores for step in run.steps]


@pytest.mark.parametrize("to", LOGS)
def test_a_score_of_each_turn_and_each_run(folder, capsys, chats, guard, to):
    write_log(folder / "log.jsonl", LOGS[to](chats))
    code, lines, err = annotate(capsys, to)
    runs = io.read_runs("log.jsonl")
    stops = guard.stopping_steps(runs)
    assert code == 0
    assert err == f"8 runs, {(stops > 0).sum()} flagged\n"
    assert 0 < (stops > 0).sum() < 8
    turns = {span_id(run, n) for run, chat in enumerate(chats) for n in range(len(calls_of(chat)))}
    scores = list(map(NORMAL[to], (own for line in lines for own in RECORDS[to](line))))
    of_turns = {span: value for _, span, name, value in scores if name == "trajscore_p_value"}
    assert of_turns.keys() == turns
    looks = guard.looks(runs)
    for run, own in zip(runs, looks, strict=True):
        rows = [step for step in run.steps if step.actor in ("agent", "user")]
        for step, look in zip(rows, own, strict=True):
            if step.actor == "agent":
                assert of_turns[step.span] == pytest.approx(1 - look.suspicion, rel=1e-5)
    flags = {trace: value for trace, span, name, value in scores if name == "trajscore_flag"}
    assert flags == {run.id: bool(stop) for run, stop in zip(runs, stops.tolist(), strict=True)}


RECORDS = {
    "langfuse": lambda line: [line],
    "otel": lambda line: line["resourceLogs"][0]["scopeLogs"][0]["logRecords"],
    "mlflow": lambda line: [line],
}


def _of_otel(record):
    values = {a["key"]: next(iter(a["value"].values())) for a in record["attributes"]}
    name, value = (values[f"gen_ai.evaluation.{key}"] for key in ("name", "score.value"))
    return record["traceId"], record.get("spanId"), name, value


NORMAL = {
    "langfuse": lambda own: (
        own["traceId"], own.get("observationId"), own["name"], own["value"],
    ),
    "otel": _of_otel,
    "mlflow": lambda own: (own["trace_id"], own.get("span_id"), own["name"], own["value"]),
}  # fmt: skip


def test_langfuse_knows_a_score_that_is_sent_twice(folder, capsys, chats):
    write_log(folder / "log.jsonl", langfuse(chats))
    first, again = (annotate(capsys, "langfuse")[1] for _ in range(2))
    assert first == again
    assert len({own["id"] for own in first}) == len(first)
    assert {own["dataType"] for own in first} == {"NUMERIC", "BOOLEAN"}


def with_scores(to, records, lines):
    """The log as the platform exports it with the scores."""
    if to == "otel":
        return records + lines
    if to == "langfuse":
        owners = {record["id"]: record["scores"] for record in records}
        for own in lines:
            owners[own["traceId"]].append(own)
    else:
        owners = {record["info"]["trace_id"]: record["info"] for record in records}
        for own in lines:
            judgement = own | {"assessment_name": own["name"], "feedback": {"value": own["value"]}}
            owners[own["trace_id"]]["assessments"].append(judgement)
    return records


@pytest.mark.parametrize("to", LOGS)
def test_a_log_with_the_scores_reads_as_before(folder, capsys, chats, to):
    records = LOGS[to](chats)
    write_log(folder / "log.jsonl", records)
    before = list(map(seen, io.read_runs("log.jsonl")))
    lines = annotate(capsys, to)[1]
    write_log(folder / "log.jsonl", with_scores(to, records, lines))
    assert list(map(seen, io.read_runs("log.jsonl"))) == before
    again = annotate(capsys, to)[1]
    strip = [
        [NORMAL[to](own) for line in part for own in RECORDS[to](line)] for part in (lines, again)
    ]
    assert strip[0] == strip[1]


def test_traces_of_opentelemetry_go_to_langfuse(folder, capsys, chats):
    write_log(folder / "log.jsonl", otel(chats))
    code, lines, _ = annotate(capsys, "langfuse", "--out", "scores.jsonl")
    assert (code, lines) == (0, [])
    first = json.loads((folder / "scores.jsonl").read_text().splitlines()[0])
    assert (first["traceId"], first["observationId"]) == (trace_id(0), span_id(0, 0))


def test_a_guard_that_can_flag_nothing_says_so(folder, capsys, chats):
    write_log(folder / "log.jsonl", otel(chats))
    live.fitted_guard(0, 20).save("guard.skops")
    err = annotate(capsys, "otel")[2]
    assert "note: this guard flags nothing, as it has too few successes" in err


def test_turns_without_a_span_are_counted(folder, capsys, chats):
    records = otel(chats[:1])
    (span, *_) = records[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    given = calls_of(chats[0])[-1][0]
    span["attributes"][1]["value"]["stringValue"] = json.dumps(given)
    records[0]["resourceSpans"][0]["scopeSpans"][0]["spans"] = [span]
    write_log(folder / "log.jsonl", records)
    err = annotate(capsys, "otel")[2]
    assert f"of {len(calls_of(chats[0]))} turns of agents have no span, so no score" in err


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("otel", "--to otel needs a log of otel, whose runs and turns have the ids"),
        ("inspect", "--to inspect needs a log of inspect"),
    ],
)
def test_another_platform_is_refused(folder, capsys, chats, to, said):
    write_log(folder / "log.jsonl", langfuse(chats[:1]))
    code, _, err = annotate(capsys, to)
    assert code == 2
    assert said in err
    assert "log.jsonl is langfuse" in err


def test_ids_that_are_not_of_opentelemetry_are_refused(folder, capsys, chats):
    records = otel(chats[:1])
    for span in records[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span["traceId"] = "my-trace"
    write_log(folder / "log.jsonl", records)
    code, _, err = annotate(capsys, "otel")
    assert code == 2
    assert "'my-trace': OTLP takes ids of 32 hexadecimal digits" in err


@pytest.mark.filterwarnings("ignore")  # of Inspect itself
def test_a_log_of_inspect_is_copied_with_its_scores(folder, capsys, guard):
    pytest.importorskip("inspect_ai")
    log = evaluated(folder)
    code, _, err = annotate(capsys, "inspect", log=str(log))
    assert code == 2
    assert "name it by --out COPY.eval" in err
    before = list(map(seen, io.read_runs(log)))
    for source, out in ((str(log), "one.eval"), ("one.eval", "two.eval")):
        code, _, err = annotate(capsys, "inspect", "--out", out, log=source)
        assert code == 0, err
        assert list(map(seen, io.read_runs(out))) == before
    from inspect_ai.log import read_eval_log

    looks = guard.looks(io.read_runs(log))
    for sample, own in zip(read_eval_log("two.eval").samples, looks, strict=True):
        score = sample.scores["trajscore_flag"]
        assert score.value == own[-1].stop
        assert [row["step"] for row in score.metadata["steps"]] == [look.step for look in own]


def evaluated(folder):
    from inspect_ai import Task, eval as evaluate  # noqa: I001
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    samples = [Sample(id=k, input=f"Where is order {k}?", target="Oslo") for k in (7, 8)]
    answers = [ModelOutput.from_content("mockllm/model", "It is in Oslo") for _ in range(4)]
    for answer in answers:
        answer.usage = ModelUsage(input_tokens=9, output_tokens=5)  # else they are counted
    (log,) = evaluate(
        Task(dataset=samples, solver=generate(), scorer=match(), epochs=2),
        model=get_model("mockllm/model", custom_outputs=answers), log_dir=str(folder / "logs"),
        display="none",
    )  # fmt: skip
    return log.location


def test_the_log_is_not_overwritten(folder, capsys, chats):
    write_log(folder / "log.jsonl", langfuse(chats[:1]))
    code, _, err = annotate(capsys, "langfuse", "--out", "log.jsonl")
    assert code == 2
    assert "--out: log.jsonl is the log itself; name another file" in err


def test_a_row_of_signals_is_a_turn(chats, guard):
    run = io.as_run(chats[0], "a")
    (looks,) = guard.looks([run])
    for step in run.steps:
        step.span = "s"
    n_agent = sum(step.actor == "agent" for step in run.steps)
    assert len(list(scores_of(run, looks))) == len(looks) + 1
    assert len(list(scores_of(run, looks[:n_agent]))) == n_agent + 1
    with pytest.raises(ValueError, match="run 'a': the guard's signals have 1 rows, but the agent"):
        list(scores_of(run, looks[:1]))


def test_a_guard_is_needed(folder, capsys, chats):
    from trajscore.monitoring._persistence import save_fitted

    write_log(folder / "log.jsonl", langfuse(chats[:1]))
    save_fitted(Guard.load("guard.skops").process_, folder / "guard.skops")
    code, _, err = annotate(capsys, "langfuse")
    assert code == 2
    assert "holds a DensityRatioEProcess, not a Guard" in err
