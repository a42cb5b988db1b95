"""The recipes of the docs, run with fake models where their frameworks are installed."""

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from scripts import load_script
from trajscore import ActionSignals, io
from trajscore.cli.main import main
from trajscore.integrations import Guard

RECIPES = Path(__file__).resolve().parents[2] / "tools" / "recipes"
MODULES = {
    "autogen": "autogen_agentchat",
    "smolagents_agent": "smolagents",
    "llama_index_agent": "llama_index",
    "adk": "google.adk",
    "dspy_agent": "dspy",
}


def test_all_recipes_are_here():
    others = {"fake", "own_loop", "langfuse_scores", "otel_scores"}
    assert {path.stem for path in RECIPES.glob("*.py")} == {*MODULES, *others}


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


@pytest.fixture
def guard_and_runs():
    turns = [io.Step("user", "Cancel it."), io.Step("agent", "I cannot do that.", span="b7")]
    runs = [
        io.Run(f"{k:032x}", [*turns, *[turns[1]] * (k % 2 * 4)], outcome=1 - k % 2)
        for k in range(200)
    ]
    return Guard(ActionSignals(["refusals"])).fit(runs), runs[:2]


def test_scores_go_back_into_langfuse(guard_and_runs):
    guard, runs = guard_and_runs
    client = Mock()
    load_script("langfuse_scores", "tools/recipes").write_scores(client, runs, guard)
    scores = [call.kwargs for call in client.create_score.call_args_list]
    flags = [own["value"] for own in scores if own["name"] == "trajscore_flag"]
    assert flags == (guard.stopping_steps(runs) > 0).tolist() == [0, 1]
    assert {own.get("observation_id") for own in scores} == {None, "b7"}
    client.flush.assert_called_once_with()


def test_scores_go_back_as_events_of_opentelemetry(guard_and_runs):
    trace = pytest.importorskip("opentelemetry.trace")
    guard, runs = guard_and_runs
    logger = Mock()
    load_script("otel_scores", "tools/recipes").write_scores(logger, runs, guard)
    for call, look in zip(logger.emit.call_args_list[1:], guard.looks(runs)[1][1:], strict=True):
        ids = trace.get_current_span(call.kwargs["context"]).get_span_context()
        assert (ids.trace_id, ids.span_id) == (1, 0xB7)
        value = call.kwargs["attributes"]["gen_ai.evaluation.score.value"]
        assert value == pytest.approx(1 - look.suspicion)


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
