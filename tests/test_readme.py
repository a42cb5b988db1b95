"""What the README promises, tried."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from trajscore import evaluate
from trajscore.cli.main import main
from trajscore.datasets import load_chess, load_real_runs, make_trajectories

README = Path(__file__).parents[1] / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.split("\n")[0])
def test_python_blocks_run(code, tmp_path, monkeypatch):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    frame = X.to_frame(id="run_id", value="verbal")
    frame["judge"] = frame["verbal"] ** 2
    frame["solved"] = np.repeat(y, X.lengths)
    frame.to_csv(tmp_path / "runs.csv", index=False)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})


def test_there_are_two_commands_that_set_up_from_nothing():
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    fresh = [line for line in commands if line.startswith("python3 -m venv")]
    assert len(fresh) == 2
    assert "trajscore report" in fresh[0]
    assert "pytest" in fresh[1]


def test_what_it_found_in_real_runs_is_what_its_command_prints(capsys):
    """The first answer and the table of predictors; STORE=1 stores what is printed now."""
    main(["report", load_real_runs().filename])
    parts = re.compile(r"(Do these.*?\n)Can .*\n( +what to do.*?\n)\nAccept", re.DOTALL)
    now = "\n".join(parts.search(capsys.readouterr().out).groups())
    if "STORE" in os.environ:
        README.write_text(README.read_text().replace(blocks("text")[0], now))
    assert blocks("text")[0] == now


def test_pages_that_it_links_to_are_there():
    links = re.findall(r"\]\((docs/[^)]+)\)", README.read_text())
    assert len(links) > 10
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_pages_show_what_the_report_says():
    """The picture is of the bundled data: its text must say what a report of them says today."""
    headline = str(evaluate(*load_chess(return_X_y=True))).partition("\n")[0]
    for page in (README, README.parent / "docs" / "index.rst"):
        assert headline in " ".join(page.read_text().split())
