"""The recipes of the docs, run with fake models where their frameworks are installed."""

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from trajscore.cli.main import main

RECIPES = Path(__file__).resolve().parents[2] / "tools" / "recipes"
MODULES = {
    "autogen": "autogen_agentchat",
    "smolagents_agent": "smolagents",
    "llama_index_agent": "llama_index",
    "adk": "google.adk",
    "dspy_agent": "dspy",
}


def test_all_recipes_are_here():
    assert {path.stem for path in RECIPES.glob("*.py")} == {*MODULES, "fake", "own_loop"}


def test_a_loop_of_your_own_from_nothing_to_a_run_that_is_stopped(tmp_path, monkeypatch, capsys):
    pytest.importorskip("skops")
    monkeypatch.chdir(tmp_path)
    loop = str(RECIPES / "own_loop.py")
    monkeypatch.setattr("sys.argv", [loop, "collect"])
    runpy.run_path(loop, run_name="__main__")
    fit = ["fit", "runs.json", "--guard", "--alpha", "0.1", "--out", "guard.skops"]
    assert main(fit) == 0
    monkeypatch.setattr("sys.argv", [loop])
    capsys.readouterr()
    runpy.run_path(loop, run_name="__main__")
    assert capsys.readouterr().out.startswith("stopped at step ")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_a_recipe_stops_its_agent(name):
    try:
        is_installed = importlib.util.find_spec(MODULES[name]) is not None
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        pytest.skip(f"{MODULES[name]} is not installed")
    command = [sys.executable, str(RECIPES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "stopped at step 4, after 3 calls" in done.stdout, done.stderr
