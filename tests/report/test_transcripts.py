"""Turns of a log beside the steps of a trace, by hand."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from trajscore import TrajectoryArray, io
from trajscore.report.page import transcripts as module
from trajscore.report.page.transcripts import quote, transcripts
from trajscore.report.page.view import View

KEY = "judge", "as_given"
CALL = io.ToolCall("search", '{"q": 1}')


def view_of(runs, lengths, cells=None):
    cells = np.linspace(0, 1, sum(lengths)) if cells is None else cells
    X = TrajectoryArray(np.array(cells), lengths, ids=[run.id for run in runs])
    view = SimpleNamespace(log={run.id: run for run in runs}, data=SimpleNamespace(traces={KEY: X}))
    view.places = partial(View.places, view)
    return view


@pytest.fixture
def talk():
    return [
        io.Step("user", " Where is it? "), io.Step("agent", "", tool_calls=[CALL]),
        io.Step("environment", "", observation="Here"), io.Step("agent", "  Here\n it  is ** "),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("n_steps", "places"), [(2, [1, 3]), (3, [0, 1, 3]), (1, []), (4, []), (0, [])]
)
def test_steps_are_turns_of_the_agent_or_of_agent_and_user(talk, n_steps, places):
    assert View.places(None, io.Run("a", talk), n_steps) == places


def test_transcripts_name_step_forecast_and_flag_of_each_turn(talk):
    view = view_of([io.Run("a", talk, task=7), io.Run("b", talk)], [2, 3], [0.1, 0.2, 0.3, 0.4, 1])
    shown = transcripts(view, KEY, {"b": 2, "a": 2, "lost": 1})
    assert list(shown) == ["b", "a"]
    columns = {
        name: [[turn[name] for turn in shown[run]["turns"]] for run in "ab"]
        for name in ("step", "said", "flag")
    }
    assert columns["step"] == [[None, 1, None, 2], [1, 2, None, 3]]
    assert columns["said"] == [["", "10%", "", "20%"], ["30%", "40%", "", "100%"]]
    assert columns["flag"] == [[False, False, False, True], [False, True, False, False]]
    first = shown["a"]["turns"]
    assert [turn["text"] for turn in first] == ["Where is it?", "", "", "Here\n it  is **"]
    assert [turn["calls"] for turn in first] == ["", 'search({"q": 1})', "", ""]
    assert [turn["result"] for turn in first] == ["", "", "Here", ""]
    assert (shown["a"]["task"], shown["b"]["task"], shown["a"]["n_more"]) == ("7", "", 0)


def test_turns_without_a_step_have_no_forecast(talk):
    shown = transcripts(view_of([io.Run("a", talk)], [9]), KEY, {"a": 1})
    assert {turn["said"] for turn in shown["a"]["turns"]} == {""}
    assert not any(turn["flag"] for turn in shown["a"]["turns"])


@pytest.mark.parametrize(("n_turns", "n_more"), [(80, 0), (81, 1), (200, 120)])
def test_eighty_turns_of_a_run_are_shown(n_turns, n_more):
    run = io.Run("a", [io.Step("agent", "Hi")] * n_turns)
    shown = transcripts(view_of([run], [n_turns]), KEY, {"a": 1})["a"]
    assert (len(shown["turns"]), shown["n_more"]) == (n_turns - n_more, n_more)


@pytest.mark.parametrize(
    ("n", "end"), [(1200, "x"), (1201, "(1 characters more)"), (5200, "(4,000 characters more)")]
)
def test_long_texts_are_cut_and_that_is_said(n, end):
    step = io.Step("agent", "x" * n, observation="x" * n)
    (turn,) = transcripts(view_of([io.Run("a", [step])], [1]), KEY, {"a": 1})["a"]["turns"]
    for text in (turn["text"], turn["result"]):
        assert text.startswith("x" * 1200)
        assert text.endswith(end)
        assert text.count("x") == 1200


def test_transcripts_end_where_there_is_no_more_room(monkeypatch):
    runs = [io.Run(name, [io.Step("agent", "12", observation="345")]) for name in "abcd"]
    view, flags = view_of(runs, [1] * 4), dict.fromkeys("abcd", 1)
    for room, names in ((15, "abc"), (14, "ab"), (4, "")):
        monkeypatch.setattr(module, "_MOST_CHARACTERS", room)
        assert "".join(transcripts(view, KEY, flags)) == names


def test_what_was_said_at_a_step(talk):
    view = view_of([io.Run("a", talk), io.Run("b", talk)], [2, 3])
    assert quote(view, "a", KEY, 1) == 'Step 1, agent: \u201csearch({"q": 1})\u201d'
    assert quote(view, "a", KEY, 2) == "Step 2, agent: \u201cHere it is **\u201d"
    assert quote(view, "b", KEY, 1) == "Step 1, user: \u201cWhere is it?\u201d"
    assert quote(view, "c", KEY, 1) == ""
    assert quote(view_of([io.Run("a", talk)], [4]), "a", KEY, 1) == ""
    empty = view_of([io.Run("a", [io.Step("agent", " ")])], [1])
    assert quote(empty, "a", KEY, 1) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x" * 160, "x" * 160),
        ("abc " * 40 + "d", "abc " * 39 + "abc ..."),  # 161 characters, of which 160 end a word
        ("abc " + "x" * 200, "abc ..."),
    ],
)
def test_a_quote_ends_with_a_word(text, said):
    view = view_of([io.Run("a", [io.Step("agent", text)])], [1])
    assert quote(view, "a", KEY, 1) == f"Step 1, agent: \u201c{said}\u201d"
