"""From files to exit codes."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from known_agent import runs_of
from trajscore.cli.main import main
from trajscore.gates import RunSet
from trajscore.gates._gate import read_gates

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user_guide" / "gates.rst"


def table(runs, path, **columns):
    X = runs.judged.traces["judge"]
    frame = X.to_frame(id="run_id", step="step")
    of_run = frame["run_id"].to_numpy()
    frame["task"], frame["solved"] = runs.tasks[of_run], runs.labels[of_run]
    for name, values in columns.items():
        frame[name] = values
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, runs in {"base": runs_of(1), "same": runs_of(3), "worse": runs_of(2, 0.2)}.items():
        table(runs, tmp_path / f"{name}.csv")
    return tmp_path


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    return code, out, err


def test_from_a_table_to_a_baseline_to_a_red_and_a_green_gate(files, capsys):
    code, out, _ = run(capsys, "check", "base.csv", "--json", "baseline.json")
    assert code == 0
    assert "\n200 runs of 40 tasks, success 0." in out
    assert out.endswith("with: trajscore check NEW --baseline baseline.json\n")
    code, out, _ = run(capsys, "check", "worse.csv", "--baseline", "baseline.json")
    assert code == 1
    assert "FAIL: 1 fail" in out
    arguments = ("check", "same.csv", "--baseline", "baseline.json")
    assert run(capsys, *arguments)[0] == 3
    assert run(capsys, *arguments, "--margin", "0.2")[0] == 0
    assert run(capsys, *arguments, "--undecided", "pass")[0] == 0
    assert run(capsys, "check", "same.csv", "--baseline", "base.csv")[0] == 3


def test_everything_is_written(files, capsys):
    (files / "gates.toml").write_text('[[gate]]\nmargin = 0.1\n[[gate]]\nmetric = "length"\n')
    code, out, _ = run(
        capsys, "check", "worse.csv", "--baseline", "base.csv", "--gates", "gates.toml",
        "--json", "a.json", "--junit", "a.xml",
    )  # fmt: skip
    assert code == 1
    assert json.loads((files / "a.json").read_text())["verdict"] == "fail"
    assert (files / "a.xml").read_text().startswith("<testsuite")
    assert out.count("wrote") == 2
    same = RunSet.read(files / "a.json")
    assert same.n_runs == 200


def test_options_say_what_to_read(files, capsys):
    frame = pd.read_csv("worse.csv").rename(columns={"task": "about", "judge": "j"})
    frame.assign(cost=0.5, tokens=frame["step"]).to_csv("named.csv", index=False)
    code, out, _ = run(
        capsys, "compare", "named.csv", "named.csv", "--group", "about", "--score", "j"
    )
    assert code == 0
    assert "Paired by task: 40 in both" in out
    shown = re.sub(" +", " ", out)
    assert "cost 0.5 [0.5, 0.5]" in shown  # said of the run at each step
    assert "tokens " in shown
    code, out, _ = run(capsys, "compare", "base.csv", "worse.csv")
    assert "success fell" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "base.csv"], "there is nothing to check: give --baseline or --gates"),
        (["check", "none.csv", "--baseline", "base.csv"], "none.csv does not exist"),
        (["check", "base.csv", "--baseline", "none.json"], "none.json"),
        (["check", "base.csv", "--gates", "none.toml"], "none.toml does not exist"),
        (["check", "base.csv", "--gates", "g.toml"], "no key named 'metrik'"),
        (
            ["check", "base.csv", "--gates", "ok.toml", "--margin", "1"],
            "--margin does not go with --gates",
        ),
        (
            ["check", "base.csv", "--json", "b.json", "--margin", ".1"],
            "--margin says how much lower than the baseline",
        ),
        (["check", "base.csv", "--json", "none/a.json"], "--json: the folder none does not exist"),
        (["compare", "base.csv", "base.csv", "--id", "x"], "--id: no column named 'x'"),
    ],
)
def test_bad_input_ends_with_one_sentence(files, capsys, arguments, said):
    (files / "g.toml").write_text("[[gate]]\nmetrik = 1")
    (files / "ok.toml").write_text("[[gate]]")
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_the_json_of_a_report_has_no_runs(files, capsys):
    assert run(capsys, "report", "base.csv", "--out", "report.json")[0] == 0
    code, _, err = run(capsys, "compare", "base.csv", "report.json")
    assert code == 2
    assert "report.json is a report, which does not hold the runs themselves; give the table" in err


def test_a_gate_that_cannot_be_asked_is_unusable(files, capsys):
    (files / "g.toml").write_text('[[gate]]\nmetric = "TPS log"\npredictor = "none"\nversus = 0')
    code, out, _ = run(capsys, "check", "base.csv", "--gates", "g.toml")
    assert code == 2
    assert "no predictor named 'none'" in out


def blocks(language):
    """Code of a language on the page."""
    found = re.findall(rf"\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", PAGE.read_text())
    return [re.sub("(?m)^    ", "", one) for one in found]


def test_the_fixture_of_the_page_works(files, capsys):
    assert main(["check", "same.csv", "--json", "baseline.json"]) == 0
    pd.read_csv("worse.csv").to_csv("new.csv", index=False)
    (test,) = blocks("python")
    (files / "test_agent.py").write_text(test)
    options = ["-q", "-p", "no:cacheprovider", "-c", "none.ini", "--rootdir", str(files)]
    (files / "none.ini").write_text("[pytest]\n")
    assert pytest.main([*options, str(files / "test_agent.py")]) == 1
    assert "FAIL: 1 fail" in capsys.readouterr().out
    for baseline, came in (("base", "1 skipped"), ("worse", "1 passed")):
        assert main(["check", f"{baseline}.csv", "--json", "baseline.json"]) == 0
        pd.read_csv("same.csv").to_csv("new.csv", index=False)
        pytest.main([*options, str(files / "test_agent.py")])
        assert came in capsys.readouterr().out


def test_the_gates_of_the_page_are_read(files, tmp_path):
    (tmp_path / "gates.toml").write_text(blocks("toml")[0])
    assert len(read_gates(tmp_path / "gates.toml").gates) == 4


def test_the_recipe_of_the_page_has_options_that_exist(files, capsys):
    (recipe,) = blocks("yaml")
    command = re.search(r"trajscore (check [^|>]*)", recipe.replace("\\\n", " "))[1].split()
    (files / "gates.toml").write_text("[[gate]]\nmargin = 0.5")
    np.testing.assert_equal(main(["check", "base.csv", "--json", "baseline.json"]), 0)
    pd.read_csv("same.csv").to_csv("new.csv", index=False)
    assert main(command) == 0
    assert {"gate.xml", "new-baseline.json"} <= {one.name for one in files.iterdir()}


def test_runs_without_a_confidence_can_be_checked(files, capsys):
    for name in ("base", "worse"):
        frame = pd.read_csv(f"{name}.csv").drop(columns="judge")
        frame.to_csv(f"{name}.csv", index=False)
    code, out, _ = run(capsys, "check", "worse.csv", "--baseline", "base.csv", "--json", "b.json")
    assert code == 1
    assert RunSet.read("b.json").predictors == []
    code, out, _ = run(capsys, "compare", "b.json", "base.csv")
    assert code == 0
    assert "success rose" in out
    assert "TPS" not in out
    (files / "g.toml").write_text('[[gate]]\nmetric = "AUROC"\nversus = 0.5')
    code, out, _ = run(capsys, "check", "base.csv", "--gates", "g.toml")
    assert "AUROC is of a predictor; say of which one: there are none" in out
    assert run(capsys, "fit", "base.csv", "--out", "p.skops")[0] == 2


def test_logs_are_checked_without_looking_for_signs_of_trouble(files, capsys, monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr("trajscore.report._inputs._risks", never)
    log = [
        {
            "id": f"r{k}",
            "task": f"t{k % 10}",
            "outcome": int(k % 3 > 0),
            "cost": 0.5 + k,
            "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}],
        }
        for k in range(30)
    ]
    (files / "log.jsonl").write_text("\n".join(map(json.dumps, log)))
    code, out, _ = run(capsys, "compare", "log.jsonl", "log.jsonl")
    assert code == 0
    assert "pass^3" in out
    assert "\ncost" in out


def test_a_table_may_have_a_row_a_run_with_its_task_and_outcome(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, runs in {"old": runs_of(1), "new": runs_of(2, 0.2)}.items():
        frame = pd.DataFrame({"task": runs.tasks, "solved": runs.labels.astype(int)})
        frame.to_csv(f"{name}.csv", index=False)
        frame.assign(run_id=np.arange(200)).to_csv(f"{name}_ids.csv", index=False)
        frame.assign(mine=frame.index).to_csv(f"{name}_mine.csv", index=False)
    code, out, _ = run(capsys, "check", "new.csv", "--baseline", "old.csv")
    assert code == 1
    assert "new.csv: no column has steps, so each row is a run of one step" in out
    assert "200 runs of 40 tasks. Paired by task: 40 in both" in out
    verdict = out[out.index("fail ") :]
    for more, options in (("_ids", ()), ("_mine", ("--id", "mine"))):
        files = f"new{more}.csv", "--baseline", f"old{more}.csv"
        assert run(capsys, "check", *files, *options)[1].endswith(verdict)
    # two rows of one run are steps, and their order must be said
    frame.assign(run_id=frame.index // 2).to_csv("steps.csv", index=False)
    code, _, err = run(capsys, "check", "steps.csv", "--baseline", "old.csv")
    assert code == 2
    assert "no column has a usual name for the step" in err
    frame.assign(step=1).to_csv("no_id.csv", index=False)
    assert "the run id" in run(capsys, "check", "no_id.csv", "--baseline", "old.csv")[2]
    assert run(capsys, "check", "old.csv", "--baseline", "old.csv", "--id", "x")[0] == 2
    # what scores forecasts needs steps
    assert "the step" in run(capsys, "report", "old.csv")[2]


def test_a_baseline_that_is_not_there(files, capsys):
    code, _, err = run(capsys, "check", "worse.csv", "--baseline", "b.json")
    assert code == 2
    assert err == (
        "trajscore: --baseline: b.json does not exist; write it from earlier runs: trajscore check "
        "OLD --json b.json\n"
    )
