"""benchmarks/board.py: what looks ahead is refused, what knows wins, and noise gains nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from scripts import load_script
from trajscore import PlattCrossFitCalibrator, TrajectoryArray, io

board, entries, sets = (load_script(name) for name in ("board", "board_entries", "board_sets"))


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


class LastStep(Read):
    """Cheats: what the last step holds."""

    def transform(self, X):
        return self.container(X, [run.steps[-1].scores[self.name] for run in X for _ in run.steps])


class Id(Read):
    """Cheats: what the name of the run is."""

    def transform(self, X):
        return self.container(X, [int(run.id) % 97 for run in X for _ in run.steps])


class OddRows(Read):
    """Cheats by mistake: rows of every other step alone."""

    def transform(self, X):
        cells = [[step.scores[self.name] for step in run.steps[::2]] for run in X]
        return TrajectoryArray.from_list(cells, ids=[run.id for run in X])


class Horizon(TransformerMixin, BaseEstimator):
    """Cheats: the horizon of stated values."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        horizon = X.lengths if X.horizon is None else X.horizon
        return X.with_cells(np.repeat(1 / (1.0 + horizon), X.lengths), channels=["p"])


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
    return sets.make_set("synthetic", logs, y, [run.task for run in logs])


@pytest.fixture(scope="module")
def values(runs):
    cells = [
        1 / (1 + np.exp(1 - 2 * step.scores["outcome"])) for run in runs.X for step in run.steps
    ]
    X = TrajectoryArray(cells, [len(run) for run in runs.X])
    return sets.make_set("values", X, runs.y, runs.group)


@pytest.fixture(scope="module")
def judged(runs):
    own = {
        "length": entries.Entry(make_pipeline(entries.Turns(), entries.AliveRate())),
        "base rate": entries.Entry(make_pipeline(entries.Turns(), entries.BaseRate())),
        "outcome": entries.over_length(Read("outcome")),
        "noise": entries.over_length(Read("noise")),
        "noise, Platt": entries.Entry(make_pipeline(Read("noise"), Squash(), PLATT)),
        "its length": entries.over_length(Length(None)),
        "its last step": entries.over_length(LastStep("noise")),
        "its id": entries.over_length(Id(None)),
        "odd rows": entries.over_length(OddRows("noise")),
        "nothing": entries.over_length(entries.Turns()),
        "broken": replace(entries.over_length(Read("typo")), is_own=True),
    }
    return board.judge(runs, own, n_repeats=1)


class Squash(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X.with_cells(1 / (1 + np.exp(-X.cells)))


PLATT = PlattCrossFitCalibrator()


def test_what_looks_ahead_is_refused(judged):
    assert set(judged["refused"]) == {
        "its length", "its last step", "its id", "odd rows", "broken"
    }  # fmt: skip
    for name in ("its length", "its last step"):
        assert "The value depends on later steps" in judged["refused"][name]
    assert "The value depends on the ids" in judged["refused"]["its id"]


def test_rows_that_are_no_steps_are_refused(judged, runs):
    n = len(runs.X[0])
    message = f"run 0 has {n} steps, but the entry gives {-(-n // 2)} rows; give a row for each"
    assert message in judged["refused"]["odd rows"]


def test_an_entry_that_fails_is_refused_with_its_error(judged):
    assert judged["refused"]["broken"] == "KeyError: 'typo'"


def test_the_forecast_from_length_is_exactly_as_good_as_itself(judged):
    row = judged["rows"]["nothing"]
    assert [row["margin"], row["low"], row["high"]] == [0, 0, 0]


def test_your_entry_stands_beside_the_identity(runs):
    with_identity = replace(runs, identity=runs.group)
    names = entries.entries_of(with_identity, {"mine": Read("noise")})
    assert names["identity and mine"].reference == "identity"
    assert names["mine"].is_own
    assert names["mine"].is_checked


def test_the_command_names_what_is_wrong(tmp_path, monkeypatch, capsys):
    file = tmp_path / "mine.py"
    file.write_text("ENTRY = 3")
    for words, message in (
        (["--only", "nosuch"], "no set is named nosuch; the sets: tau-bench airline, "),
        (["--entry", str(file)], "mine.py has no ENTRY = a transformer"),
        (["--entry", str(tmp_path / "none.py")], "No such file"),
    ):
        monkeypatch.setattr("sys.argv", ["board.py", *words])
        with pytest.raises(SystemExit, match="2"):
            board.main()
        assert message in capsys.readouterr().err


def test_a_forecast_that_reads_the_horizon_is_refused(values):
    rows = board.judge(values, {**entries.of_values(), "cheat": entries.Entry(Horizon())}, 1)
    assert list(rows["refused"]) == ["cheat"]
    assert "cheat" not in rows["rows"]


def test_a_noisy_copy_of_the_outcome_wins(judged):
    rows = judged["rows"]
    assert max(rows, key=lambda name: rows[name]["score"]) == "outcome"
    assert rows["outcome"]["low"] > 0
    assert rows["outcome"]["p_holm"] < 0.01


def test_noise_gains_nothing(judged):
    rows = judged["rows"]
    assert abs(rows["noise"]["margin"]) < 0.005
    assert rows["noise, Platt"]["score"] == pytest.approx(rows["base rate"]["score"], abs=0.01)
    assert rows["base rate"]["high"] < 0  # length tells the outcome here


def test_nothing_is_known_of_a_run_but_its_steps(runs):
    assert {run.outcome for run in runs.X} == {-1}
    assert {run.task for run in runs.X} == {None}
    assert runs.X[7].id == "7"


def test_the_same_numbers_come_out_twice(runs, judged):
    length = entries.Entry(make_pipeline(entries.Turns(), entries.AliveRate()))
    again = board.judge(runs, {"noise": entries.over_length(Read("noise")), "length": length}, 1)[
        "rows"
    ]
    assert again["noise"]["score"] == judged["rows"]["noise"]["score"]


def test_few_runs_of_each_group_are_drawn_where_there_are_many(monkeypatch):
    monkeypatch.setattr(sets, "MOST_RUNS", 6)
    group = np.array(["a"] * 20 + ["b"] * 3 + ["c"])
    rows = sets.evenly(np.arange(24), group)
    assert sorted(group[rows]) == ["a", "a", "a", "b", "b", "c"] or len(rows) == 6
    assert np.bincount(rows >= 20)[1] >= 3


def test_entries_within_the_critical_difference_are_tied():
    scores = dict(zip(board.RANKED, (0.5, 0.4, 0.3, 0.2, 0.1, 0.6), strict=True))
    of_set = {"rows": {name: {"score": value} for name, value in scores.items()}}
    ranks = board.rank([of_set] * 12)
    assert ranks["mean_rank"]["text classifier"] == 1
    assert ranks["friedman_p"] < 0.001
    assert ranks["tied"][0][:2] == ["text classifier", "length"]
    assert "agent-tracer" not in ranks["tied"][0]
    assert board.rank([of_set]) == {}


def test_sets_that_are_absent_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.retrieve", lambda *args, **kwargs: (tmp_path / "none").stat())
    for name in sets.SOURCES:
        why, _ = board.of_set(name, tmp_path, None)
        assert why.startswith(f"{name}: ")


def test_sql_is_grouped_by_database(monkeypatch):
    turn = {"turn_history": {"actions": ["execute[SELECT 1]", "submit"]}}
    runs = [
        sets.public_sets.intercode_run(
            task, turn | {"summary": {"max_reward": won}}, environment
        )
        for task, won, environment in zip("abc", (0, 1, 1), ("cars", "cars", "poker"), strict=True)
    ]  # fmt: skip
    monkeypatch.setattr(sets.public_sets, "intercode", lambda which, data_home: runs)
    of_set = sets.intercode("sql_react", "SQL", None, None)
    assert of_set.group.tolist() == ["cars", "cars", "poker"]
    assert [call.name for step in of_set.X[0].steps for call in step.tool_calls] == [
        "execute", "submit",
    ]  # fmt: skip
    of_bash = sets.intercode("bash_react", "Bash", None, None)
    assert of_bash.group.tolist() == ["cars/a", "cars/b", "poker/c"]


def test_the_page_is_built_from_the_stored_numbers(tmp_path):
    page = load_script("board_page", "docs")
    page.write_board(tmp_path)
    stored = json.loads(page.STORED.read_text())
    n_logs = sum(of_set["kind"] == "log" for of_set in stored["sets"])
    assert f"On {n_logs} public logs" in (tmp_path / "board_answer.inc").read_text()
    rows = (tmp_path / "board_logs.inc").read_text().count("   * - ")
    assert rows == n_logs + 1
    assert (tmp_path / "board.svg").exists()
    text = (page.STORED.parents[1] / "board.rst").read_text()
    assert [file.name for file in tmp_path.glob("board*.inc") if file.stem not in text] == []
    assert [of_set["refused"] for of_set in stored["sets"]] == [{}] * len(stored["sets"])
