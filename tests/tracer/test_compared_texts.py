"""Which texts of a dialogue are paired, and which calls count as repeated."""

import numpy as np
import pytest

from trajscore import io
from trajscore.tracer._compared_texts import (
    TextsOfTurns,
    answers_to_turn_before,
    calls_and_results,
    last_steps,
    repeated_calls,
    speech_of_last_turns,
)
from trajscore.tracer._turns import take_turns


def agent(text, *calls, observation=None):
    made = [io.ToolCall(name, {}) for name in calls]
    return io.Step("agent", text, tool_calls=made, observation=observation)


def user(text):
    return io.Step("user", text)


RUNS = [
    io.Run("a", [
        user("hello"),  # 0
        agent("hi"),  # 1
        user(" "),  # 2
        agent("", "find", observation="nothing"),  # 3
        agent("hi", "find", "book", observation="done"),  # 4
        user("thanks"),  # 5
        user("bye"),  # 6
    ]),
    io.Run("b", [
        user("hello"),  # 7
        agent("ok", observation="no call made this"),  # 8
        agent("hi", "book"),  # 9
        agent("", "find", "find", observation="x"),  # 10
    ]),
    io.Run("c", [agent("")]),  # 11
]  # fmt: skip
TURNS = take_turns(RUNS, ("agent", "user"), "a reader")
TEXTS = TextsOfTurns(TURNS)


def texts_of(pairs):
    listed = TEXTS.listed
    return [
        (int(turn), listed[a].replace("\n", "|"), listed[b].replace("\n", "|"))
        for turn, a, b in zip(*pairs, strict=True)
    ]


def test_texts_are_listed_once():
    assert len(set(TEXTS.listed)) == len(TEXTS.listed)
    hi = TEXTS.listed.index("hi")
    empty = [0, 2, 3, 5, 6, 7, 10, 11]
    assert np.flatnonzero(TEXTS.speech == -1).tolist() == empty
    assert np.flatnonzero(TEXTS.speech == hi).tolist() == [1, 4, 9]
    assert np.flatnonzero(TEXTS.whole == -1).tolist() == [2, 11]
    assert [TEXTS.listed[k] for k in TEXTS.result[[3, 4, 10]]] == ["nothing", "done", "x"]
    assert (np.delete(TEXTS.result, [3, 4, 10]) == -1).all()
    assert (TEXTS.results_of(TURNS, "user") == -1).all()
    nothing = TextsOfTurns(take_turns(RUNS[2:], ("agent",), "a reader"))
    assert nothing.listed == [""]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (1, [(9, "hi", "ok")]),
        (2, [(9, "hi", "ok"), (4, "hi", "hi")]),
        (99, [(9, "hi", "ok"), (4, "hi", "hi")]),
    ],
)
def test_speech_with_that_of_last_turns(window, expected):
    assert texts_of(speech_of_last_turns(TURNS, TEXTS, window)) == expected


@pytest.mark.parametrize(
    ("window", "turns"),
    [(1, [4, 9, 10]), (2, [4, 9, 10, 3, 10]), (3, [4, 9, 10, 3, 10, 4])],
)
def test_whole_turns_with_last_ones(window, turns):
    pairs = last_steps(TURNS, TEXTS, window)
    assert pairs.turn.tolist() == turns
    assert texts_of(pairs)[:2] == [(4, "hi|find {}|book {}", "find {}"), (9, "hi|book {}", "ok")]


def test_calls_with_results():
    assert texts_of(calls_and_results(TURNS, TEXTS)) == [
        (3, "find {}", "nothing"),
        (4, "hi|find {}|book {}", "done"),
        (10, "find {}|find {}", "x"),
    ]


def test_answers_with_the_turn_right_before():
    assert texts_of(answers_to_turn_before(TURNS, TEXTS)) == [
        (5, "hi|find {}|book {}", "thanks")  # not 2, which is empty, 6, 7 of another run
    ]
    silent = take_turns([io.Run("d", [agent(""), user("so?"), agent("x"), user("y")])],
                        ("agent", "user"), "a reader")  # fmt: skip
    assert answers_to_turn_before(silent, TextsOfTurns(silent)).turn.tolist() == [3]


@pytest.mark.parametrize(
    ("names", "window", "count", "expected"),
    [
        ("a.a", 1, None, []),
        ("a.a", 2, None, [2]),
        ("aa.", 1, None, [1]),
        ("aa.", 0, None, []),
        ("aaa", 1, None, [1, 2]),
        ("abb", 1, None, [2]),
        ("abab", 2, None, [2, 3]),
        ("aba", 2, None, [2]),
        ("aba", 2, [0, 1, 3], []),
        ("aba", 3, [0, 1, 3], [2]),
        ("...", 3, None, []),
    ],
)
def test_repeated_calls(names, window, count, expected):
    steps = [agent("", name) if name != "." else user("go on") for name in names]
    turns = take_turns([io.Run("a", steps)], ("agent", "user"), "a reader")
    count = None if count is None else np.array(count)
    assert repeated_calls(turns, window, count).tolist() == expected


def test_calls_are_repeated_within_a_run_and_by_another_turn():
    assert repeated_calls(TURNS, 9).tolist() == [4]


def test_the_first_text_is_a_text():
    steps = [agent("find {}"), agent("", "find", observation="find {}"), user("find {}")]
    turns = take_turns([io.Run("a", steps)], ("agent", "user"), "a reader")
    texts = TextsOfTurns(turns)
    assert texts.listed == ["find {}"]
    assert [part.tolist() for part in calls_and_results(turns, texts)] == [[1], [0], [0]]
    assert [part.tolist() for part in answers_to_turn_before(turns, texts)] == [[2], [0], [0]]
