"""``trajscore check --sequential``: exit codes and refusals from look to look."""

import json

import numpy as np
import pandas as pd
import pytest

from trajscore.cli.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    for name, rate in (("base", 0.8), ("new", 0.5)):
        solved = (rng.random(120) < rate).astype(int)
        frame = pd.DataFrame({"run_id": [f"r{k}" for k in range(120)], "step": 1, "judge": 0.5})
        frame["task"] = [f"task {k}" for k in range(120)]
        frame["solved"] = solved
        frame.to_csv(f"{name}.csv", index=False)
        for n in (10, 60):
            frame[:n].to_csv(f"{name}{n}.csv", index=False)
    return tmp_path


def look(capsys, *arguments):
    code = main(["check", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_look_by_look_to_a_verdict_that_stays(folder, capsys):
    options = ("--baseline", "base.csv", "--sequential", "gate.json")
    code, out, _ = look(capsys, "new10.csv", *options)
    assert code == 3
    assert "look 1: 10 new tasks, 10 so far" in out
    assert "UNDECIDED: look again when more runs have arrived" in out
    code, out, _ = look(capsys, "new60.csv", *options)
    assert code == 1
    assert "look 2: 50 new tasks, 60 so far" in out
    assert "FAIL: success is worse than allowed; this stays so" in out
    code, out, _ = look(capsys, "new.csv", *options, "--json", "all.json", "--junit", "all.xml")
    assert code == 1
    assert "decided at look 2" in out
    assert "However often you look" in out
    assert json.loads((folder / "all.json").read_text())["verdict"] == "fail"
    code, out, _ = look(capsys, "base.csv", "--baseline", "new.csv", "--sequential", "other.json")
    assert code == 0
    (folder / "gates.toml").write_text("level = 0.1\n[[gate]]\nversus = 0.9\n")
    code, out, _ = look(capsys, "new60.csv", "--gates", "gates.toml", "--sequential", "third.json")
    assert code == 1
    assert "with a chance of at most 10%" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new60.csv", "--margin", "0.1"], "gate.json was begun with another rule"),
        (["new10.csv"], "was taken at look 1 and is missing now. Give all runs so far"),
        (["base60.csv"], "had outcome"),
    ],
)
def test_what_may_not_change_is_refused_with_one_sentence(folder, capsys, arguments, message):
    options = ("--baseline", "base.csv", "--sequential", "gate.json")
    assert look(capsys, "new60.csv", *options)[0] in (1, 3)
    code, _, err = look(capsys, *arguments, *options)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_it_needs_a_gate_and_a_folder(folder, capsys):
    code, _, err = look(capsys, "new.csv", "--sequential", "gate.json", "--json", "a.json")
    assert (code, "there is nothing to check" in err) == (2, True)
    code, _, err = look(capsys, "new.csv", "--baseline", "base.csv", "--sequential", "no/gate.json")
    assert (code, "--sequential: the folder no does not exist" in err) == (2, True)


@pytest.fixture
def numbered(folder):
    """Write two tables of runs numbered from 0: the new one lost 5% of the base's successes."""
    for name in ("base", "new"):
        frame = pd.read_csv("base.csv").drop(columns="task").assign(run_id=np.arange(120))
        if name == "new":
            frame.loc[frame.index[frame["solved"] == 1][:5], "solved"] = 0
        frame.to_csv(f"numbered_{name}.csv", index=False)
    return "numbered_new.csv", "--baseline", "numbered_base.csv"


def test_runs_are_paired_by_a_column_of_ids_that_numbers_them(numbered, folder, capsys):
    code, out, _ = look(capsys, *numbered, "--json", "all.json", "--margin", "0.1")
    assert "Paired by run: 120 in both" in out
    assert code == 0
    assert "Paired by run" in look(capsys, "numbered_new.csv", "--baseline", "all.json")[1]
    frame = pd.read_csv("numbered_new.csv").drop(columns=["run_id", "step"])
    frame.to_csv("unnamed.csv", index=False)
    options = ("--baseline", "unnamed.csv")
    assert "neither tasks nor ids of runs" in look(capsys, "unnamed.csv", *options)[1]


def test_a_margin_may_be_a_share_of_the_baseline(numbered, capsys):
    code, out, _ = look(capsys, *numbered, "--margin", "20%")
    assert "no worse than the baseline by more than 20%" in out
    assert code == 0
    with pytest.raises(SystemExit):
        look(capsys, *numbered, "--margin", "much")
    assert "'much' is not a margin; give a number such as 0.05" in capsys.readouterr()[1]


def test_an_error_names_the_file_of_two_that_it_is_about(numbered, capsys):
    code, _, err = look(capsys, *numbered, "--outcome", "solvd")
    assert code == 2
    assert "numbered_base.csv: --outcome: no column named 'solvd'" in err
