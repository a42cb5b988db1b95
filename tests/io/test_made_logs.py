"""Logs as engineers have them: right, or refused with what makes the next try right."""

import pandas as pd
import pytest

from public_data import MADE_LOGS
from trajscore import StepConfidence, io
from trajscore.cli.main import main

# What else is to be said, after the first try was refused.
NEXT = {
    "openai_score.jsonl": {"outcome": "score"},
    "openai_bare.json": {"outcomes": "table"},
    "openai_noout.json": {"outcomes": "table"},
}


@pytest.fixture
def table(tmp_path):
    """Write a table of outcomes for the ids that an error names."""

    def write(runs):
        rows = {"run_id": [run.id for run in runs], "ok": ["bad", "good"] * (len(runs) // 2)}
        pd.DataFrame(rows).to_csv(tmp_path / "outcomes.csv", index=False)
        return tmp_path / "outcomes.csv"

    return write


@pytest.mark.parametrize("name", MADE_LOGS)
def test_in_python(public_file, table, name):
    path = public_file("made_logs", name)
    runs = io.read_runs(path)
    assert len(runs) == 40
    wanted = {(0, 21), (1, 19)}
    if name in NEXT:
        with pytest.raises(ValueError, match=r"no run has an outcome.*outcome=.*outcomes="):
            io.outcomes(runs)
        more = dict(NEXT[name])
        if "outcomes" in more:
            more = {"outcomes": table(runs), "outcome": "ok", "outcome_map": "good=1,bad=0"}
            wanted = {(0, 20), (1, 20)}
        runs = io.read_runs(path, **more)
    y = io.outcomes(runs)
    assert {(int(one), int((y == one).sum())) for one in set(y.tolist())} == wanted
    for run in runs:
        assert [step.actor for step in run.steps if step.actor != "user"] == ["agent"] * sum(
            step.actor == "agent" for step in run.steps
        )
        assert run.steps[-1].text.startswith("Your order is on its way.")
        assert sum(step.actor == "user" for step in run.steps) <= 1
    X = StepConfidence(channels=["verbal"]).fit_transform(runs)
    assert (X.lengths >= 2).all()
    assert not pd.isna(X.cells).any()


@pytest.mark.parametrize("name", MADE_LOGS)
def test_on_the_command_line(public_file, table, capsys, name):
    path = public_file("made_logs", name)

    def report(*options):
        code = main(["report", str(path), "--resamples", "10", *options])
        return code, "".join(capsys.readouterr())

    options = []
    if name in NEXT:
        code, sentence = report()
        assert code == 2
        assert "--outcome, or give a table of run ids ('" in sentence
        options = ["--outcome", "score"]
        if "outcomes" in NEXT[name]:
            options = ["--outcomes", str(table(io.read_runs(path)))]
            _, sentence = report(*options)
            assert (
                "no column of outcomes; name one of its columns (run_id, ok) with --out" in sentence
            )
            options += ["--outcome", "ok"]
            assert "--map bad=0,good=1" in report(*options)[1]
            options += ["--map", "bad=0,good=1"]
    code, text = report(*options)
    assert code == 0
    assert "40 runs" in text
    assert "verbal" in text
