"""benchmarks/board.py: what looks ahead is refused, what knows wins, and noise gains nothing."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from scripts import load_script
from trajscore import TrajectoryArray, io

board, entries, sets = (load_script(name) for name in ("board", "board_entries", "public_sets"))


class Read(TransformerMixin, BaseEstimator):
    """A number that each step holds."""

    def __init__(self, name):
        self.name = name

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        cells = [step.scores[self.name] for run in X for step in run.steps]
        return self.container(X, cells)

    def container(self, X, cells):
        return TrajectoryArray(cells, [len(run) for run in X], ids=[run.id for run in X])


class Length(Read):
    """Cheats: how long the run will be."""

    def transform(self, X):
        return self.container(X, [len(run) for run in X for _ in run.steps])


class OddRows(Read):
    """Cheats by mistake: rows of every other step alone."""

    def transform(self, X):
        cells = [[step.scores[self.name] for step in run.steps[::2]] for run in X]
        return TrajectoryArray.from_list(cells, ids=[run.id for run in X])


@pytest.fixture(scope="module")
def runs():
    """Runs of which those that fail are longer, in groups of four."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    logs = []
    for k, won in enumerate(y):
        steps = [
            io.Step("agent", scores={"outcome": won + rng.normal(), "noise": rng.normal()})
            for _ in range(rng.integers(2, 8 if won else 14))
        ]
        logs.append(io.Run(f"run {k}", steps, outcome=won, task=f"task {k // 4}"))
    return sets.make_set(sets.Found(logs, y, [run.task for run in logs]))


@pytest.fixture(scope="module")
def judged(runs):
    nothing = FunctionTransformer(entries.turns)
    own = {
        "length": entries.Entry(make_pipeline(nothing, entries.AliveRate())),
        "base rate": entries.Entry(make_pipeline(nothing, entries.BaseRate())),
        "outcome": entries.over_length(Read("outcome")),
        "noise": entries.over_length(Read("noise")),
        "its length": entries.over_length(Length(None)),
        "odd rows": entries.over_length(OddRows("noise")),
        "nothing": entries.over_length(nothing),
        "broken": replace(entries.over_length(Read("typo")), is_own=True),
    }
    return board.judge("made", runs, own, n_repeats=1)


def test_what_looks_ahead_is_refused(judged, runs):
    refused = judged["refused"]
    assert set(refused) == {"its length", "odd rows", "broken"}
    assert "later steps" in refused["its length"]
    n = len(runs.X[0])
    assert f"run 0 has {n} steps, but the entry gives {-(-n // 2)} rows" in refused["odd rows"]
    assert refused["broken"] == "KeyError: 'typo'"


def test_nothing_is_known_of_a_run_but_its_steps(runs):
    assert {(run.outcome, run.task) for run in runs.X} == {(-1, None)}
    assert runs.X[7].id == "7"


def test_the_signals_of_agent_tracer_count_turns_with_calls_alone():
    call = io.ToolCall("book", {"to": "Rome"})
    steps = [io.Step("agent", tool_calls=[call]), *[io.Step("user", "go on")] * 9] * 2
    runs = [io.Run("a", steps), io.Run("b", [io.Step("agent", "No.")])]
    theirs = entries.AgentTracerSignals(tool_window=1).fit_transform(runs)["repetition"]
    ours = entries.TracerSignals(tool_window=1).fit_transform(runs)["repetition"]
    assert (theirs.cells[10], ours.cells[10]) == (1, 0)


def test_a_noisy_copy_of_the_outcome_wins_and_noise_gains_nothing(judged):
    rows = judged["rows"]
    assert max(rows, key=lambda name: rows[name]["score"]) == "outcome"
    assert rows["outcome"]["low"] > 0
    assert rows["outcome"]["p_holm"] < 0.01
    assert [rows["nothing"][name] for name in ("margin", "low", "high")] == [0, 0, 0]
    assert abs(rows["noise"]["margin"]) < 0.005
    assert rows["base rate"]["high"] < 0  # length tells the outcome here


def test_the_command_names_what_is_wrong(tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text("ENTRY = 3")
    for words, message in (
        (["--only", "nosuch"], "nosuch; the sets: tau-bench airline, "),
        (["--entry", str(file)], "mine.py has no ENTRY"),
        (["--entry", str(tmp_path / "none.py")], "none.py"),
    ):
        monkeypatch.setattr("sys.argv", ["board.py", *words])
        with pytest.raises(SystemExit, match=message):
            board.main()
