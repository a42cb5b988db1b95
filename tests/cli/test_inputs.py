"""The options that say what to read of a log, and what errors tell people to type."""

import re
import shlex

import pandas as pd
import pytest

from checked_tables import Tables, steps, write_table
from known_dialogue import SAMPLES
from public_data import MADE_LOGS
from trajscore.cli.main import main


@pytest.fixture
def logs(tmp_path, capsys):
    return Tables(tmp_path, capsys)


def chats(*says, **fields):
    """Return four chats in which the agent says this, of which every other one succeeds."""
    talk = [{"role": "assistant", "content": text} for text in says]
    return [
        {"id": f"r{k}", "messages": talk, "success": k % 2}
        | {name: of_run(k) for name, of_run in fields.items()}
        for k in range(4)
    ]


def test_a_log_and_the_confidence_in_it(logs):
    runs = logs.read(chats("Confidence: 60%", "Confidence: 70%"), name="log.jsonl")
    assert (runs.outcomes, runs.lengths) == ([0, 1] * 2, [2] * 4)
    assert runs.predictors == {"verbal": [0.6, 0.7] * 4}
    runs = logs.read(chats("Confidence: 60%", "hm"), name="log.jsonl")
    assert "verbal" not in runs.predictors
    assert "--missing" not in runs.said  # which this command does not have


def test_options_of_logs(logs, tmp_path):
    log = chats("Confidence: 60%", verdict=lambda k: "ok" if k else "bad")
    options = ("--outcome", "verdict", "--map", "ok=1,bad=0", "--format", "openai")
    assert logs.read(log, *options, name="log.jsonl").outcomes == [0, 1, 1, 1]
    table = write_table(tmp_path / "o.csv", pd.DataFrame({"id": ["r0"], "passed": [1]}))
    runs = logs.read(log, "--outcomes", str(table), name="log.jsonl")
    assert (runs.outcomes, "table of outcomes" in runs.said) == ([1, -1, -1, -1], True)
    cut = chats("Confidence: 60%", stop_reason=lambda k: "lost" if k == 3 else "done")
    del cut[3]["success"]
    runs = logs.read(cut, "--stop", "lost=informative,x=excluded", name="log.jsonl")
    assert runs.stop_kind[3] == "informative"
    assert "--stop x=excluded: no run was stopped by 'x'" in runs.said
    team = [{**run, "messages": [{"role": "Surfer", "content": "Confidence: 60%"}]} for run in log]
    runs = logs.read(team, "--role", "Surfer=agent", name="log.jsonl")
    assert runs.predictors == {"verbal": [0.6] * 4}
    tasks = chats("Confidence: 60%", task=lambda k: k // 2, team=lambda k: k % 2)
    assert logs.read(tasks, name="log.jsonl").tasks == ["0", "0", "1", "1"]
    turns = [run | {"messages": [run["messages"][0] | {"judge": 0.25}]} for run in log]
    runs = logs.read(turns, "--confidence", "judge", name="log.jsonl")
    assert runs.predictors == {"judge": [0.25] * 4}


def test_the_parts_of_any_json_are_named(logs):
    log = [{"id": k, "ok": k % 2, "events": [{"say": "Confidence: 60%"}]} for k in range(4)]
    assert "--field steps=events,text=NAME" in logs.refuse(log, name="log.jsonl")
    for fields in (["steps=events,text=say"], ["steps=events", "text=say"]):
        words = [word for field in fields for word in ("--field", field)]
        runs = logs.read(log, *words, "--outcome", "ok", name="log.jsonl")
        assert (runs.outcomes, runs.lengths) == ([0, 1] * 2, [1] * 4)
    for field in ("stap=events", "text="):
        assert "--field" in logs.refuse(log, "--field", field, name="log.jsonl")
    said = logs.refuse(log, "--field", "text=say", "--format", "tau2", name="log.jsonl")
    assert "--field" in said
    assert "tau2" in said


def test_what_cannot_be_used_of_a_log(logs):
    log = chats("Confidence: 60%")
    for options, named in [
        (("--step", "t"), "--step"), (("--first-step", "1"), "--first-step"),
        (("--risk", "verbal"), "--risk"), (("--wide", "p_"), "--wide"),
        (("--score", "verbl"), "--score"), (("--group", "team"), "--group"),
        (("--by", "team"), "--by"), (("--format", "tau3"), "--format"),
        (("--outcome", "won"), "--outcome"), (("--role", "Surfer=boss"), "--role"),
        (("--map", "pass"), "--map"),
    ]:  # fmt: skip
        assert named in logs.refuse(log, *options, name="log.jsonl"), options
    said = logs.refuse([run | {"id": "a", "n": k} for k, run in enumerate(log)], name="log.jsonl")
    assert "4 runs have the id 'a'" in said
    assert "--id" in said
    assert "--role is for logs" in logs.refuse(steps(), "--role", "a=agent")


# What errors tell to type.
_VALUE = r"(?:'[^']*'|[\w.=%-]+(?:,[\w.=%-]+)*)"
_HINT = re.compile(
    rf"(?:may be|such as|pass|with|add|and) ((?:--[a-z-]+[ =]{_VALUE}(?: (?=--))?)+)"
)
# What only a person can mend: more runs, what words mean, or outcomes that the file does not have.
_ASKS = re.compile(
    r"at least 2 runs|needs both outcomes|=\?|give a table of run ids|none of the \d+"
)


def lead_on(path, capsys):
    """Type what errors tell to type; return the last answer."""
    words, said = ["report", str(path), "--resamples", "10", "--calibrator", "none"], set()
    while True:
        code = main(words)
        text = " ".join("".join(capsys.readouterr()).split())
        assert text not in said, f"the hint was followed and nothing changed: {text}"
        said.add(text)
        hints = _HINT.findall(text) if code else []
        if not hints or "=?" in hints[0]:
            break
        words = [*words, *shlex.split(hints[0])]
    assert not code or _ASKS.search(text), text
    return text


def test_hints_of_the_samples_of_formats(capsys):
    for sample in sorted(SAMPLES.iterdir()):
        lead_on(sample, capsys)


def test_hints_of_made_logs(public_file, capsys):
    asks = {"openai_bare.json", "openai_noout.json"}
    for name in [*sorted(asks), "openai_score.jsonl", *MADE_LOGS[:3]]:
        said = lead_on(public_file("made_logs", name), capsys)
        assert ("give a table of run ids" in said) == (name in asks)
