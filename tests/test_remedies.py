"""What errors, notes and pages tell people to type: it is typed, and it works."""

import io as streams
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import trajscore
from checked_tables import Tables, write_table
from known_dialogue import SAMPLES
from trajscore import TrajectoryArray, calibration, gates, io, metrics, report, tracer
from trajscore.cli.main import main
from trajscore.datasets import make_trajectories

PROJECT = Path(__file__).resolve().parents[1]
QUICK = ("--resamples", "10", "--calibrator", "none")
N_RUNS = 24


@pytest.fixture
def run(capsys):
    """Run a command; return its exit code, and all that it said."""

    def command(*words):
        code = main([str(word) for word in words])
        return code, " ".join("".join(capsys.readouterr()).split())

    return command


def typed(words, remedy):
    """Return a command with what was said to be typed, in place of the same options."""
    new = shlex.split(remedy)
    kept, names = list(words), {word for word in new if word in ("--outcome", "--confidence")}
    for name in names & {*kept}:
        del kept[kept.index(name) : kept.index(name) + 2]
    return [*kept, *new]


def steps(**columns):
    """Return a table of runs of two steps; a function makes a column of run and step."""
    usual = {
        "run": lambda k, t: f"r{k}", "step": lambda k, t: t,
        "p": lambda k, t: round(0.1 + 0.02 * k + 0.1 * t, 2), "solved": lambda k, t: k % 2,
    }  # fmt: skip
    made = {name: of for name, of in (usual | columns).items() if of is not None}
    cells = [(k, t) for k in range(N_RUNS) for t in (1, 2)]
    return pd.DataFrame({name: [of(k, t) for k, t in cells] for name, of in made.items()})


def chats(*messages, **fields):
    """Return chats of these messages, in which %d is the number of the run."""
    usual = {"id": lambda k: f"r{k}", "success": lambda k: k % 2}
    named = {name: of for name, of in (usual | fields).items() if of is not None}

    def filled(message, k):
        return {name: text % k if "%d" in str(text) else text for name, text in message.items()}

    return [
        {"messages": [filled(message, k) for message in messages]}
        | {name: of(k) for name, of in named.items()}
        for k in range(N_RUNS)
    ]


def records(**fields):
    return [{name: of(k) for name, of in fields.items()} for k in range(N_RUNS)]


SURE = {"role": "assistant", "content": "I look. Confidence: 4%d"}
SAY = "I look around. Confidence: 40%"
HM = {"role": "assistant", "content": "hm"}


def traces(k):
    """Yield two traces of a session, of which the second repeats the first."""
    said = ["Hm?", "Hello to you.", "Hm?", "Here."]
    talk = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
    for n in (1, 2):
        trace = {"traceId": f"t{k}-{n}", "type": "GENERATION"}
        calls = [
            {**trace, "id": f"o{m}", "startTime": m, "input": talk[:m], "output": talk[m]}
            for m in (1, 3)[:n]
        ]
        score = {"name": "success", "value": k % 2, "traceId": f"t{k}-{n}"}
        yield {"id": f"t{k}-{n}", "sessionId": f"s{k}", "scores": [score], "observations": calls}


MIXED = {"step": lambda k, t: f"2026-01-01T0{3 - t}:00" + "+02:00" * (t == 1)}
FAILED = steps(solved=None, failed=lambda k, t: k % 2)
OPEN = records(name=str, events=lambda k: [{"n": 1, "say": SAY}], ok=lambda k: k % 2)
TEXTS = records(id=str, steps=lambda k: [SAY, SAY], correct=lambda k: k % 2)
SCORES = records(id=str, step_scores=lambda k: [0.5, k / 30], correct=lambda k: k % 2)
TEAM = chats({**SURE, "role": "llm"}, {"role": "tool", "content": "1"})
REWARDS = chats(SURE, success=None, rewards=lambda k: [0, k % 2])
PERCENT = {**SURE, "content": "Confidence: 4%d%%"}
COMMANDS = {  # what is read, the options, and what is to be typed
    "percent": (steps(p=lambda k, t: f"{k + t}%"), "", r"pass (--scale p=100)"),
    "failures": (FAILED, "--outcome failed", r"pass (--outcome 'not failed')"),
    "successes": (FAILED, "--outcome failed", r"with (--map 1=1,0=0)"),
    "turned": (FAILED, "--outcome 'not failed' --map 1=1,0=0", r"or pass (--outcome failed)"),
    "words": (steps(solved=lambda k, t: ["fail", "pass"][k % 2]), "", r"with (--map \S+)"),
    "models": (
        steps(run=lambda k, t: k // 2, solved=lambda k, t: k // 4 % 2, model=lambda k, t: k % 2),
        "", r"pass (--id run --id model)",
    ),
    "one id": (steps(model=lambda k, t: "xy"[t - 1]), "", r"if not, pass (--id run)"),
    "repeated steps": (steps(step=lambda k, t: 1), "", r"pass (--step rows)"),
    "mixed zones": (steps(**MIXED), "", r"pass (--step rows)"),
    "a first step": (steps(step=lambda k, t: t + 6), "", r"pass (--first-step 7)"),
    "a scale": (steps(p=lambda k, t: 2 * k + t), "", r"pass (--scale p=100)"),
    "a stop": (
        steps(stop_reason=lambda k, t: "done" if k % 4 else "odd"), "", r"as (--stop odd=complete)"
    ),
    "not used": (steps(other=lambda k, t: k % 7), "", r"pass (--score other)"),
    "lists of scores": (SCORES, "", r"pass (--score step_scores)"),
    "gaps": (steps(p=lambda k, t: k / 30 if t == 1 else None), "", r"; (--missing ffill) repeats"),
    "a horizon": (steps(), "--weights linear_front", r"give (--horizon 30)"),
    "own horizon": (steps(), "--weights linear_front", r"or (--horizon own)"),
    "known share": (steps(), "--known-share 0.5", r"need (--monitor)"),
    "an agent": (TEAM, "", r"such as (--role llm=agent)"),
    "another agent": (chats(SURE, {**SURE, "role": "B"}), "", r"pass (--role B=agent)"),
    "a risk": (chats({**HM, "risk": "0.4%d"}), "--confidence risk", r"(--confidence 'not risk')"),
    "out of ten": (chats({**HM, "content": "Confidence: 7"}), "", r"pass (--scale verbal=10)"),
    "rewards": (REWARDS, "", r"pass (--outcome rewards.-1)"),
    "gaps of turns": (chats(PERCENT, HM), "", r"(--missing ffill)"),
    "parts": (OPEN, "--outcome ok", r"parts, (--field steps=events,text=say)"),
    "texts": (TEXTS, "", r"parts, (--field steps=steps)"),
    "lines": (records(inner=lambda k: {"a": 1}, said=lambda k: SAY), "", r"(--field text=said)"),
    "a session": ([one for k in range(N_RUNS) for one in traces(k)], "", r"(--id session)"),
}  # fmt: skip
# the next question, which only a person can answer
ASKS = r"no run has an outcome|needs both outcomes"


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_says_to_type_is_typed(name, tmp_path, run):
    table, options, remedy = COMMANDS[name]
    ending = ".csv" if isinstance(table, pd.DataFrame) else ".jsonl"
    path = write_table(tmp_path / f"input{ending}", table)
    words = ["report", path, *QUICK, *shlex.split(options)]
    _, said = run(*words)
    found = re.search(remedy, said)
    assert found, said
    code, answer = run(*typed(words, found[1]))
    assert code == 0 or re.search(ASKS, answer), answer
    assert not re.search(remedy, answer), answer


def test_a_remedy_is_not_named_again_where_it_does_not_help(tmp_path, run):
    late = write_table(tmp_path / "a.csv", steps(p=lambda k, t: k / 30 if t == 2 else None))
    talk = write_table(tmp_path / "a.jsonl", chats(HM, PERCENT))
    turns = write_table(tmp_path / "b.jsonl", chats(HM, {**HM, "content": "Confidence: 60%"}))
    for path in (late, talk, turns):
        for options in ((), ("--missing", "ffill")):
            assert "--missing" not in run("report", path, *QUICK, *options)[1], path
    starts = write_table(tmp_path / "b.csv", steps(step=lambda k, t: k + t))
    assert "--first-step" not in run("report", starts, *QUICK)[1]


@pytest.mark.filterwarnings("ignore:too few held-out successes")
def test_a_model_is_read_by_the_command_that_fit_prints(tmp_path, run, monkeypatch):
    pytest.importorskip("skops")
    table = write_table(tmp_path / "a.csv", steps())
    _, said = run("fit", table, "--out", tmp_path / "my model.skops")
    line = b'{"id": "run 1", "step": 1, "score": 0.5}\n'
    monkeypatch.setattr(sys, "stdin", streams.TextIOWrapper(streams.BytesIO(line)))
    words = shlex.split(re.search(r"use it with: trajscore (.*?\.skops'?)", said)[1])
    code, answer = run(*words)
    assert code == 0
    assert '"id": "run 1"' in answer


def test_all_roles_of_a_chat_may_be_named(tmp_path, run):
    words = ("report", write_table(tmp_path / "a.jsonl", TEAM), *QUICK, "--role")
    assert run(*words, "llm=agent,tool=environment")[0] == 0
    assert "'tool'" in run(*words, "llm=agent,tool=agent")[1]


def test_the_documented_fields_name_a_row_that_failed_and_its_retry(public_file, tmp_path, run):
    lost = {"inst": "a", "log": [], "error": "pod was evicted"}
    rows = [lost, *({"inst": k, "log": [{"say": SAY}], "ok": k in "ac"} for k in "abcd")]
    fields = "id=inst,steps=log,text=say,outcome=ok"
    path = write_table(tmp_path / "a.jsonl", rows)
    code, said = run("report", path, *QUICK, "--field", fields)
    assert (code, "1 of 5 runs is left out" in said) == (0, True), said
    assert run("report", path, *QUICK, "--field", fields, "--id", "inst")[0] == 2
    path = public_file("field", "oh.jsonl")
    fields = "id=instance_id,steps=history,text=thought,outcome=test_result.final_score.result"
    with pytest.warns(UserWarning, match="6 of 36 runs are left out.*run again"):
        runs = io.read_runs(path, fields=fields)
    assert (len({one.id for one in runs}), sum(one.outcome for one in runs)) == (30, 15)
    assert run("report", path, *QUICK, "--field", fields)[0] == 0


def test_unobserved_rows_of_a_table_of_outcomes_are_in_it(tmp_path, run):
    log = write_table(tmp_path / "a.jsonl", chats(SURE, success=None))
    outcomes = pd.DataFrame({"id": [f"r{k}" for k in range(N_RUNS)]})
    outcomes["passed"] = [k % 2 if k < 20 else None for k in range(N_RUNS)]
    table = write_table(tmp_path / "a.csv", outcomes)
    code, said = run("report", log, *QUICK, "--outcomes", table)
    assert (code, "not in the" in said) == (0, False), said
    scored = [one | {"scores": {"correctness": 0.5}} for one in chats(SURE, success=None)]
    runs = io.read_runs(write_table(tmp_path / "b.jsonl", scored), outcomes=table)
    assert [one.outcome for one in runs] == [k % 2 if k < 20 else -1 for k in range(N_RUNS)]
    assert "outcome=" not in " ".join(runs.notes)  # which would name a column of the table
    without = write_table(tmp_path / "c.csv", steps(step=None, solved=None, num=lambda k, t: t))
    code, said = run("report", without, "--outcomes", table)
    assert (code, said.endswith("there are: run, p, num")) == (2, True), said


@pytest.mark.parametrize("unit", [1, 1000, 10**9])
def test_seconds_since_1970_give_the_order_of_steps(tmp_path, capsys, unit):
    table = steps(step=lambda k, t: (1_700_000_007 + k - 5 * t) * unit)
    in_order = table.sort_values(["run", "step"])["p"].tolist()
    assert Tables(tmp_path, capsys).read(table).predictors["p"] == in_order
    X = TrajectoryArray.from_frame(table, id="run", step="step", value="p")
    assert X[np.argsort(X.ids)].cells.tolist() == in_order


def test_mixed_zones_of_public_shapes(public_file, run):
    path = public_file("field", "mixed_zones.csv")
    assert "row 1 at 2026-02-03T10:00:02 has none" in run("report", path, *QUICK)[1]
    names = ["--id", "context.trace_id", "--outcome", "eval.correct.label"]
    names += ["--map", "correct=1,incorrect=0", "--score", "eval.confidence.score"]
    path = public_file("field", "phx_mixed.csv")
    assert "row 1 at 2026-02-03 10:00:01 has none" in run("report", path, *QUICK, *names)[1]


LINES = [{"run_id": "a", "timestamp": f"2026-01-01T00:00:0{k}Z", "text": str(k)} for k in range(3)]
LOGS = {name: (SAMPLES / name).read_text("utf-8") for name in ("langfuse.json", "langsmith.jsonl")}
LOGS["lines.jsonl"] = "".join(json.dumps(line) + "\n" for line in LINES)


@pytest.mark.parametrize("name", LOGS)
def test_zones_of_logs_are_not_mixed(name, tmp_path):
    bare = re.sub(r'"(2026-01-01T[\d:.]+)[^"]*"', r'"\1"', LOGS[name])
    path = write_table(tmp_path / name, re.sub(r"(2026-01-01T[\d:.]+)", r"\1Z", bare, count=1))
    with pytest.raises(ValueError, match="has a zone, .* has none; write the zone behind every"):
        io.read_runs(path)
    whole = write_table(path, re.sub(r"(2026-01-01T[\d:.]+)", r"\1Z", bare))
    assert len(io.read_runs(whole)) == len(io.read_runs(write_table(path, bare))) == 1


# ------------------------------------------------------------------ Python

X, Y = make_trajectories(40, random_state=0, return_X_y=True)
NAMED = TrajectoryArray(X.cells, X.lengths, ids=[f"r{k}" for k in range(40)])
FIRST = X.with_cells(np.where(np.isin(np.arange(len(X.cells)), X.offsets), X.cells, np.nan))
FRAME = steps()
ROOMS = (trajscore, calibration, gates, metrics, report, tracer)
WORLD = {name: getattr(room, name) for room in ROOMS for name in room.__all__}
WORLD |= {"pandas": pd, "LogisticRegression": LogisticRegression, "make_pipeline": make_pipeline}
WORLD |= {"runs": [io.Run(f"r{k}", [io.Step("agent", "Hm")], outcome=k % 2) for k in range(40)]}
TPS = "tps_score(y, X, weights='linear_front'"
FROM = "TrajectoryArray.from_frame(df, id='run', step='step', value='p'"
PYTHON = [  # a call, what is to be written, the call with it, and what else there is
    ("evaluate(X, y, weights='linear_front')", r"give (Eval\S+\)),",
     "evaluate(X, y, weights='linear_front', options={})", {}),
    ("evaluate(X, y)", r"; (options=Eval\S+\)) repeats", "evaluate(X, y, {})", {"X": FIRST}),
    (TPS + ")", r"give (horizon=30)", TPS + ", {})", {}),
    ("tps_score(y, X)", r"with (X.ffill\(\))", "tps_score(y, {})", {"X": FIRST}),
    ("tps_score(y, X)", r"with (censored_tps_score)", "{}(y, X)", {"y": np.where(Y == 0, -1, Y)}),
    ("tps_score(y, X)", r"words by (pandas.*\}\))", "tps_score({}, X)",
     {"y": np.where(Y == 1, "pass", "fail")}),
    ("tps_score(y, X)", r"order of X: (\S+)$", "tps_score({}, X)",
     {"X": NAMED, "y": pd.Series(Y, index=NAMED.ids)[::-1]}),
    ("cross_fit_traces(PrefixForecaster, X, y)", r"write (.*)$", "cross_fit_traces({}, X, y)", {}),
    ("cross_fit_traces(LogisticRegression(), X, y)", r"wrap a classifier as (.*)$",
     "cross_fit_traces({}, X, y)", {}),
    ("evaluate(runs, y)", r"signals of them with (.*?), or", "{}", {}),
    ("TracerScorer().fit(runs)", r"pass (.*)$", "TracerScorer().fit({})", {}),
    (FROM + ")", r"in pandas: (df.*)$", "{}\n" + FROM + ")",
     {"df": FRAME.assign(run=FRAME["run"].where(FRAME["step"] == 1))}),
    (FROM + ")", r"fractions: (df.*)$", "df['p'] = {}\n" + FROM + ")",
     {"df": FRAME.assign(p="5%")}),
    (FROM + ")", r"give (df.*)$", "df = {}\n" + FROM + ")", {"df": FRAME.set_index("run")}),
    (FROM + ")", r"pass (step=None)", FROM.replace("step='step'", "{}") + ")",
     {"df": steps(**MIXED)}),
    (FROM + ")", r"pass (first_step=7)", FROM + ", {})", {"df": COMMANDS["a first step"][0]}),
    (FROM + ", outcome='solved')", r"with (outcome_map=.*)$", FROM + ", outcome='solved', {})",
     {"df": COMMANDS["words"][0]}),
    (FROM + ", outcome='failed')", r"pass (outcome='not failed')", FROM + ", {})", {"df": FAILED}),
    (FROM + ", outcome='solved')", r"such as (rule='odd=complete')",
     FROM + ", outcome='solved', {})", {"df": COMMANDS["a stop"][0]}),
]  # fmt: skip


def called(code, names):
    """Run lines of Python, the last of which has a value."""
    *before, last = code.split("\n")
    exec("\n".join(before), names)
    return eval(last, names)


@pytest.mark.parametrize("row", PYTHON, ids=lambda row: f"{row[0][:40]} {row[1][:30]}")
@pytest.mark.filterwarnings("default::UserWarning")
def test_what_python_says_to_write_is_written(row, recwarn):
    code, remedy, mended, changed = row
    names = WORLD | {"X": X, "y": Y} | changed
    try:
        called(code, names)
        said = str(recwarn[0].message)
    except ValueError as error:
        said = str(error)
    found = re.search(remedy, said)
    assert found, said
    assert called(mended.replace("{}", found[1]), names) is not None


@pytest.mark.parametrize("name", ["an agent", "another agent", "rewards", "parts", "texts"])
def test_what_read_runs_says_to_pass_is_passed(name, tmp_path):
    path = write_table(tmp_path / "log.jsonl", COMMANDS[name][0])
    try:
        said = " ".join(io.read_runs(path).notes)
    except ValueError as error:
        said = str(error)
    (option,) = re.findall(r"(?:pass|such as|its parts,) (\w+='[^']*')", said)
    runs = called(f"io.read_runs(path, {option})", {"io": io, "path": path})
    assert len(runs) == N_RUNS
    assert {one.actor for one in runs[0].steps} == {"agent"}


PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.rst"))]
PAGES = [page for page in PAGES if not {"generated", "auto_gallery", "_build"} & {*page.parts}]
OF_SCRIPTS = ("--data", "--data-home", "--only", "--write")
ANY = [
    "report a.csv", "check a.csv", "fit a.csv --out m.skops", "watch a.csv b.csv",
    "monitor --model m.skops", "judge a.jsonl --model m --out o.csv",
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_and_options_of_pages_are_known(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where no file is that they name
    text = page.read_text("utf-8")
    lines = re.findall(r"(?m)^[ $]*trajscore (.*)$|``trajscore ([^`]*)``", text)
    shown = [re.split(r" [|<>&]|\\$|  #", "".join(line))[0] for line in lines]
    named = [f" {options}" for options in re.findall(r"``(?:\S+ )?(--[a-z][^`]*)``", text)]
    named = [words for words in named if words.split()[0] not in OF_SCRIPTS]

    def is_known(words):
        try:
            return main(shlex.split(words)) in (0, 2)
        except SystemExit as end:  # of the parser, which may ask for a value
            return end.code == 0 or "expected one argument" in capsys.readouterr().err

    assert [words for words in shown if " --" in words and not is_known(words)] == []
    assert [words for words in named if not any(is_known(call + words) for call in ANY)] == []
