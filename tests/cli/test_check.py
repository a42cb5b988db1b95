"""``trajscore check`` and ``trajscore compare``: from files to a verdict and an exit code."""

import json
import re
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest

from known_agent import runs_of
from trajscore.loading import tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user_guide" / "gates.rst"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, runs in {"base": runs_of(1), "same": runs_of(3), "worse": runs_of(2, 0.2)}.items():
        frame = runs.traces["judge"].to_frame(id="run_id", step="step")
        row = frame["run_id"].to_numpy()
        frame["task"], frame["solved"] = runs.tasks[row], runs.labels[row]
        frame.to_csv(f"{name}.csv", index=False)
    return tmp_path


def test_a_red_and_a_green_gate(files, run):
    code, out, err = run("check worse.csv --baseline base.csv")
    assert code == 1
    # the answer alone; what was recognised in the files is on standard error
    assert out.startswith("base: 200 runs of 40 tasks; new: 200 runs of 40 tasks")
    assert out.endswith("Success fell beyond chance: 59.0% before, 37.5% now\n")
    assert "worse.csv: guessed run id: column 'run_id'" in err
    same = "check same.csv --baseline base.csv"
    for options, code in (
        ("", 3), (" --margin 0.2", 0), (" --margin 50%", 0), (" --undecided pass", 0),
        (" --undecided fail", 1),
    ):  # fmt: skip
        assert run(same + options)[0] == code, options
    assert "same file" in run("check base.csv --baseline base.csv")[2]


def test_what_changed(files, run):
    out = run("compare base.csv worse.csv")[1]
    assert re.search("(?s)Paired by task: 40 in both.*success fell", out)
    frame = pd.read_csv("worse.csv").rename(columns={"task": "about", "judge": "j"})
    frame.assign(cost=frame["run_id"] % 2, tokens=2).to_csv("named.csv", index=False)
    code, out, err = run("compare named.csv named.csv --group about --score j")
    assert (code, "Paired by task: 40 in both" in out) == (0, True)
    n_tokens = 2 * len(frame) / frame["run_id"].nunique()
    assert re.search(r"\ncost +0\.5 ", out)  # said of the run at each step
    assert re.search(rf"\ntokens +{n_tokens:.3g}", out)
    assert "in all runs, added up" in err
    assert "named.csv" in err


def test_bad_input_ends_with_one_sentence(files, run, refuses):
    (files / "ok.toml").write_text("[[gate]]")
    refuses([
        ("check none.csv --baseline base.csv", "none.csv does not exist"),
        ("check base.csv --baseline b.json", "b.json does not exist"),
        ("check base.csv --gates none.toml", "none.toml does not exist"),
        ("check base.csv --gates ok.toml --margin 1", "--margin", "--gates"),
        ("check base.csv --json none/a.json", "--json", "none does not exist"),
        ("compare base.csv base.csv --id x", "--id", "'x'", "base.csv"),
    ])  # fmt: skip
    with pytest.raises(SystemExit):
        run("check base.csv --margin much")


def test_a_table_may_have_a_row_a_run(files, run, refuses):
    for name, runs in {"old": runs_of(1), "new": runs_of(2, 0.2)}.items():
        frame = pd.DataFrame({"task": runs.tasks, "solved": runs.labels.astype(int)})
        frame.to_csv(f"{name}.csv", index=False)
        frame.assign(mine=frame.index).to_csv(f"{name}_mine.csv", index=False)
    with patch.object(tables, "read_table", wraps=tables.read_table) as reads:
        code, out, err = run("check new.csv --baseline old.csv")
    assert (code, reads.call_count) == (1, 2)
    assert "new.csv: no column has steps" in err
    assert "Paired by task: 40 in both" in out
    verdict = out[out.index("fail ") :]
    assert run("check new_mine.csv --baseline old_mine.csv --id mine")[1].endswith(verdict)
    # two rows of one run are steps, and their order must be said
    frame.assign(run_id=frame.index // 2).to_csv("steps.csv", index=False)
    frame.assign(step=1).to_csv("no_id.csv", index=False)
    refuses([
        ("check steps.csv --baseline old.csv", "--step"),
        ("check no_id.csv --baseline old.csv", "--id"),
        ("check old.csv --baseline old.csv --id x", "'x'"),
        ("report old.csv", "--step"),  # what scores forecasts needs steps
    ])  # fmt: skip


def blocks(language):
    """Return the code of a language on the page."""
    found = re.findall(rf"\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", PAGE.read_text())
    return [re.sub("(?m)^    ", "", one) for one in found]


def test_the_gates_and_the_recipe_of_the_page_work(files, run):
    (files / "gates.toml").write_text(blocks("toml")[0])
    out = run("check same.csv --baseline base.csv --gates gates.toml --json a.json")[1]
    assert out.endswith("wrote a.json\n")
    assert len(json.loads((files / "a.json").read_text())["gates"]) == 4
    (files / "gates.toml").write_text("[[gate]]\nmargin = 0.5")
    (recipe,) = blocks("yaml")
    command = re.search(r"trajscore (check [^|>]*)", recipe.replace("\\\n", " "))[1]
    pd.read_csv("same.csv").to_csv("new.csv", index=False)
    pd.read_csv("base.csv").to_csv("baseline.csv", index=False)
    assert run(command)[0] == 0
