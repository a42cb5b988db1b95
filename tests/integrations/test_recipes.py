"""The recipes of the docs, run with fake models where their frameworks are installed."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "tools" / "recipes"
MODULES = {
    "autogen": "autogen_agentchat",
    "smolagents_agent": "smolagents",
    "llama_index_agent": "llama_index",
    "adk": "google.adk",
    "dspy_agent": "dspy",
}


def test_all_recipes_are_here():
    assert {path.stem for path in RECIPES.glob("*.py")} == {*MODULES, "fake"}


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
