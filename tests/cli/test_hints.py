"""What errors tell people to type leads to a report."""

import re
import shlex
from pathlib import Path

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


def long_table(**columns):
    """Make a table of runs with two steps each; columns are functions of the run."""
    rows = [
        {"run_id": f"r{k}", "step": t, "conf": 0.4 + 0.05 * (k % 7) + 0.1 * t}
        | {name: of_run(k) for name, of_run in columns.items()}
        for k in range(N_RUNS)
        for t in (1, 2)
    ]
    return pd.DataFrame(rows)


def test_rows_with_prose_are_compared(tmp_path):
    path = tmp_path / "t.jsonl"
    table = long_table(outcome=successes, note=lambda k: f"Run {k} went all right")
    table.drop(columns="conf").to_json(path, orient="records", lines=True)
    assert main(["compare", str(path), str(path)]) == 0


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
    """Follow the hints of errors; return the last words."""
    words, said = ["report", str(path)], set()
    while True:
        code, text = run_command(words)
        assert text not in said, f"the hint was followed and nothing changed: {text}"
        said.add(text)
        hints = _HINT.findall(text) if code else []
        if not hints or "=?" in hints[0]:
            break
        words = [*words, *shlex.split(hints[0])]
    assert not code or _ASKS.search(" ".join(text.split())), text
    return text


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_hints_of_samples(sample, run_command):
    lead_on(sample, run_command)


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE_LOGS)
def test_hints_of_made_logs(public_file, run_command, name):
    report = lead_on(public_file("made_logs", name), run_command)
    is_judged = "give a table of run ids" not in report
    asks = ("openai_bare.json", "openai_noout.json", "openai_score.jsonl")
    assert is_judged == (name not in asks)


def test_hints_of_tables(tmp_path, run_command):
    table = long_table(solved=successes)
    table = table.assign(score=table["conf"] * 100).drop(columns="conf")
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    assert "24 runs" in lead_on(path, run_command)
