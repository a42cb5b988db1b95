"""What describe and errors tell people to type leads to the right reading."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from public_data import MADE_LOGS
from trajscore.cli.main import main

_VALUE = r"(?:'[^']*'|[\w.=%-]+(?:,[\w.=%-]+)*)"
_HINT = re.compile(
    rf"(?:may be|such as|pass|with|add|and) ((?:--[a-z-]+[ =]{_VALUE}(?: (?=--))?)+)"
)
N_RUNS = 24


def successes(k):
    """Whether a run succeeded: a third did."""
    return int(k % 3 == 0)


@pytest.fixture
def follow(tmp_path, capsys):
    """Describe a file, and do what is said until nothing is refused; return the facts."""

    def describe(path, *options, most=3):
        for _ in range(most):
            code = main(["describe", str(path), "--json", *options])
            out, err = capsys.readouterr()
            facts = {"report": err} if code else json.loads(out)
            if "refused" not in facts["report"] and not code:
                return facts | {"options": options}
            hints = _HINT.findall(facts["report"])
            assert hints, facts["report"]
            options = (*options, *shlex.split(hints[0]))
        raise AssertionError(facts["report"])

    return describe


def long_table(**columns):
    """Make a table of runs with two steps each; columns are functions of the run."""
    rows = [
        {"run_id": f"r{k}", "step": t, "conf": 0.4 + 0.05 * (k % 7) + 0.1 * t}
        | {name: of_run(k) for name, of_run in columns.items()}
        for k in range(N_RUNS)
        for t in (1, 2)
    ]
    return pd.DataFrame(rows)


def check(facts, report=None):
    outcome = facts["outcome"]
    assert (outcome["successes"], outcome["failures"]) == (N_RUNS // 3, N_RUNS - N_RUNS // 3)
    if report is not None:
        assert facts["report"] == f"would judge {report}"


@pytest.mark.parametrize(
    "columns",
    [
        {"hallucination": lambda k: 1 - successes(k)},
        {"failed": lambda k: not successes(k)},
        {"verdict": lambda k: "pass" if successes(k) else "fail"},
        {"solved": lambda k: "Yes" if successes(k) else "No"},
        {"error": lambda k: "no" if successes(k) else "yes"},
    ],
)
def test_outcomes_of_tables(follow, tmp_path, columns):
    path = tmp_path / "t.csv"
    long_table(**columns).to_csv(path, index=False)
    facts = follow(path)
    check(facts, "conf")
    turned = [note for note in facts.get("not_used", ()) if "counts as failure" in note]
    assert len(turned) == (columns.keys() <= {"hallucination", "failed"})


def log(path, **fields):
    """Write a log with fields of its runs."""
    lines = [
        {"id": f"r{k}", "messages": [{"role": "assistant", "content": f"Confidence: {40 + k}%"}]}
        | {name: of_run(k) for name, of_run in fields.items()}
        for k in range(N_RUNS)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    "fields",
    [
        {"scores": lambda k: {"toxicity": 1.0 - successes(k)}},
        {"risk": lambda k: 1.0 - successes(k) * (1 - 1e-9)},
        {"jailbreak": lambda k: not successes(k)},
        {"scores": lambda k: [{"name": "bias", "value": 1 - successes(k)}]},
        {"pii_leak": lambda k: "no" if successes(k) else "yes"},
        {"resolved": lambda k: "true" if successes(k) else "False"},
        {"grade": lambda k: "A" if successes(k) else "B"},
    ],
)
def test_outcomes_of_logs(follow, tmp_path, fields):
    path = log(tmp_path / "l.jsonl", **fields)
    if "grade" in fields:  # only the user knows
        check(follow(path, "--outcome", "grade", "--map", "A=1,B=0"), "verbal")
    else:
        check(follow(path), "verbal")


# ------------------------------------------------------------------ one row a run


def runs_of(k):
    """Return the confidences of a run: two to four of them."""
    return [round(0.4 + 0.05 * (k % 7) + 0.1 * t, 3) for t in range(2 + k % 3)]


def test_missing_values_of_wide_tables(describe_facts, tmp_path):
    rows = [[0.5, None, 0.6], [0.4, 0.3, None], [None, None, None], [0.4, 0.2, 0.1]]
    frame = pd.DataFrame(rows, columns=["p1", "p2", "p3"]).assign(solved=[1, 0, 1, 1])
    frame.to_csv(tmp_path / "t.csv", index=False)
    facts = describe_facts(tmp_path / "t.csv", "--wide", "p")
    assert (facts["n_runs"], facts["steps"]["agent"]) == (3, 8)
    assert facts["not_used"] == [
        "steps: columns p1 to p3",
        "Left out: 1 run without a value in columns p1 to p3",
        "missing: 1 value before the last step of a run",
    ]
    assert facts["left_out"] == {"a value of p is missing": 1}


@pytest.fixture
def describe_facts(capsys):
    """Describe a file, and return the facts."""

    def describe(path, *options):
        assert main(["describe", str(path), "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    return describe


def as_text(cell):
    """Write a list as a cell of a CSV file."""
    if isinstance(cell, np.ndarray):
        cell = cell.astype(float).tolist()
    return json.dumps(cell) if isinstance(cell, list) else cell


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet", "csv"])
@pytest.mark.parametrize(
    "steps",
    [
        lambda k: {"confidences": runs_of(k), "tags": ["a"]},
        lambda k: {"p": np.array(runs_of(k), dtype=np.float32)},
        lambda k: {"steps": [{"confidence": p, "success": True} for p in runs_of(k)]},
        lambda k: {"history": [{"thought": "so", "confidence": p} for p in runs_of(k)]},
    ],
)
def test_lists_of_steps(describe_facts, tmp_path, ending, steps):
    rows = [{"run_id": f"r{k}", "success": successes(k)} | steps(k) for k in range(N_RUNS)]
    path, frame = tmp_path / f"t.{ending}", pd.DataFrame(rows)
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "csv":  # which holds lists as text
        frame.apply(lambda column: column.map(as_text)).to_csv(path)
    else:
        frame.to_json(path, orient="records", lines=ending == "jsonl")
    for more in ([], ["--format", "jsonl"] * ending.startswith("json")):
        facts = describe_facts(path, *more)
        check(facts)
        assert facts["report"].startswith("would judge")
        assert facts["steps"]["agent"] == sum(len(runs_of(k)) for k in range(N_RUNS))


def test_lists_of_different_lengths(follow, tmp_path):
    rows = [
        {"id": k, "solved": successes(k), "judge": runs_of(k), "embedding": [0.1] * 9}
        for k in range(N_RUNS)
    ]
    path = tmp_path / "t.jsonl"
    pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    with pytest.raises(
        AssertionError, match="lists of different lengths; with --score, name those"
    ):
        follow(path)
    check(follow(path, "--score", "judge"), "judge")


def test_nested_steps_that_say_something_are_a_log(describe_facts, tmp_path):
    rows = [
        {"run_id": f"r{k}", "success": successes(k), "steps": [{"text": "so"}, {"action": "look"}]}
        for k in range(N_RUNS)
    ]
    path = tmp_path / "t.jsonl"
    pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    facts = describe_facts(path)
    check(facts)
    assert facts["kind"] == "a log in the format jsonl"
    assert facts["steps"]["agent"] == 2 * N_RUNS


# ------------------------------------------------------------------ crashes


def test_scores_of_runs_that_crashed(describe_facts, tmp_path):
    def run(k):
        reason = "too_many_errors" if k == 1 else "agent_stop"
        turn = {"role": "assistant", "content": "Confidence: 50%"}
        about = {"id": f"r{k}", "task_id": k, "termination_reason": reason}
        return about | {"messages": [turn], "reward_info": {"reward": float(successes(k))}}

    path = tmp_path / "t.json"
    path.write_text(
        json.dumps({"info": {}, "tasks": [], "simulations": [*map(run, range(N_RUNS))]})
    )
    facts = describe_facts(path)
    assert facts["outcome"]["not observed"] == 1
    (note,) = (note for note in facts["not_used"] if "too_many_errors" in note)
    hint = shlex.split(_HINT.search(note)[1])
    assert hint == ["--stop", "too_many_errors=complete"]
    check(describe_facts(path, *hint))


# ------------------------------------------------------------------ records of a log as a table


# ------------------------------------------------------------------ rewards, trials, tests


@pytest.mark.parametrize("name", ["cum_reward", "final_reward", "rewards"])
def test_rewards_are_proposed_before_flags_of_the_end(follow, tmp_path, name):
    reward = [0.0, 0.5] if name == "rewards" else 0
    path = log(
        tmp_path / "l.jsonl",
        truncated=lambda k: k % 2 == 0,
        **{name: lambda k: [*reward, successes(k)] if name == "rewards" else float(successes(k))},
    )
    facts = follow(path)
    check(facts, "verbal")
    assert facts["options"] in (("--outcome", name), ("--outcome", f"{name}.-1"))


def test_a_reward_a_step(follow, tmp_path):
    table = long_table()
    table["reward"] = [successes(k) * t for k in range(N_RUNS) for t in (0, 1)]
    for rows in (table, table[::-1]):  # the last step counts, wherever it stands
        rows.to_csv(tmp_path / "t.csv", index=False)
        check(follow(tmp_path / "t.csv"), "conf")


def test_a_map_of_counts_has_both_outcomes(follow, tmp_path):
    path = log(tmp_path / "l.jsonl", passed=lambda k: 4, failed=lambda k: 2 * (1 - successes(k)))
    facts = follow(path)
    check(facts, "verbal")
    assert facts["options"] == ("--outcome", "failed", "--map", "0=1,1=0,2=0")


@pytest.mark.parametrize("name", ["rating", "stars", "outcome", "reward"])
def test_stars_are_asked_about(describe_facts, tmp_path, name):
    path = log(tmp_path / "l.jsonl", **{name: lambda k: 5 if successes(k) else 1 + k % 3})
    assert "--map '2=?,3=?,5=?'" in describe_facts(path)["report"]
    options = ("--outcome", name, "--map", "2=0,3=0,5=1")
    check(describe_facts(path, *options), "verbal")


# ------------------------------------------------------------------ parts, and other files


def test_rows_with_prose_are_compared(tmp_path, capsys):
    path = tmp_path / "t.jsonl"
    table = long_table(outcome=successes, note=lambda k: f"Run {k} went all right")
    table.drop(columns="conf").to_json(path, orient="records", lines=True)
    assert main(["compare", str(path), str(path)]) == 0


def test_a_named_outcome_that_is_an_object(describe_facts, tmp_path):
    path = log(tmp_path / "l.jsonl", feedback=lambda k: {"up": successes(k), "comment": "Fine"})
    report = describe_facts(path, "--outcome", "feedback")["report"]
    assert "name one of its fields (feedback.up, feedback.comment)" in report
    check(describe_facts(path, "--outcome", "feedback.up"), "verbal")


def test_measures_of_answers_are_no_log(describe_facts, tmp_path):
    path = tmp_path / "ragas.csv"
    rows = [{"question": "Why?", "answer": "So.", "faithfulness": k / N_RUNS} for k in range(9)]
    pd.DataFrame(rows).to_csv(path, index=False)
    assert "records of a log" not in describe_facts(path)["report"]


@pytest.mark.parametrize("name", ["score", "confidence"])
def test_scales_are_said_of_what_is_judged(follow, capsys, tmp_path, name):
    path = tmp_path / "t.csv"
    table = long_table(solved=successes).rename(columns={"conf": name})
    table.assign(**{name: (table[name] * 100).round()}).to_csv(path, index=False)
    (note,) = follow(path)["not_used"]
    assert note.endswith(f"add --scale {name}=100 if 100 means certainty")
    assert main(["report", str(path)]) == 0
    assert f"--scale {name}=100" in capsys.readouterr().out
    assert "not_used" not in follow(path, "--scale", f"{name}=100")


# ------------------------------------------------------------------ every hint of every sample

SAMPLES = sorted((Path(__file__).parents[2] / "docs" / "formats" / "samples").iterdir())
# What only a person can mend: more runs, what words mean, or outcomes that the file does not have.
_ASKS = re.compile(
    r"at least 2 runs|needs both outcomes|=\?|give a table of run ids|none of the \d+"
)


@pytest.fixture
def run_command(capsys):
    """Run a command to the letter; return its exit code and all that it says."""

    def run(words):
        code = main(words)
        out, err = capsys.readouterr()
        return code, out + err

    return run


def lead_on(path, run_command):
    """Follow `next:` of describe, and hints of errors of report; return the last words of each."""
    ends = []
    for command in ("describe", "report"):
        words, said = [command, str(path)], set()
        while True:
            code, text = run_command(words)
            assert text not in said, f"the hint was followed and nothing changed: {text}"
            said.add(text)
            after = re.search(r"^next: trajscore (.*)$", text, re.MULTILINE)
            hints = _HINT.findall(text) if code else []
            if after is not None:
                words = shlex.split(after[1])
            elif hints and "=?" not in hints[0]:
                words = [*words, *shlex.split(hints[0])]
            else:
                break
        assert not code or _ASKS.search(" ".join(text.split())), text
        ends.append(text)
    return ends


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_hints_of_samples(sample, run_command):
    lead_on(sample, run_command)


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE_LOGS)
def test_hints_of_made_logs(public_file, run_command, name):
    _, report = lead_on(public_file("made_logs", name), run_command)
    is_judged = "give a table of run ids" not in report
    asks = ("openai_bare.json", "openai_noout.json", "openai_score.jsonl")
    assert is_judged == (name not in asks)


def test_hints_of_tables(tmp_path, run_command):
    table = long_table(solved=successes)
    table = table.assign(score=table["conf"] * 100).drop(columns="conf")
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    describe, report = lead_on(path, run_command)
    assert "24 runs" in report
    assert "24 runs" in describe
