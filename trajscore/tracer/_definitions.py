"""Which texts are compared, and which calls count as repeated: in three definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from trajscore.core.type_aliases import IntArray
from trajscore.io.text import whole_text
from trajscore.tracer._turns import Turns


class TextsOfTurns:
    """Texts to embed, each once; for each turn the place of its texts, -1 where it has none."""

    def __init__(self, turns: Turns, results_of: tuple[str, ...]) -> None:
        steps = turns.steps
        self._known: dict[str, int] = {}
        self.said = self._places(step.text if step.actor == "agent" else "" for step in steps)
        self.whole = self._places(turns.whole_text(turn) for turn in range(len(steps)))
        self.result = self._places(
            # a result without a call says nothing of what was done
            (step.observation or "") if step.actor in results_of and step.tool_calls else ""
            for step in steps
        )

    @property
    def listed(self) -> list[str]:
        return list(self._known) or [""]

    def _places(self, texts: Iterable[str]) -> IntArray:
        known = self._known
        whole = (whole_text(text.strip()) for text in texts)
        places = [known.setdefault(text, len(known)) if text else -1 for text in whole]
        return np.array(places, dtype=np.int64)


class PairsOfTurns(NamedTuple):
    """Pairs of texts, and the turn of which each says something."""

    turn: IntArray
    first: IntArray
    second: IntArray


def _speech_of_last_turns(turns: Turns, texts: TextsOfTurns, window: int) -> PairsOfTurns:
    """Pair what an agent says with what it said in each of its last turns."""
    return _with_earlier(turns, np.flatnonzero(turns.is_agent), texts.said, window)


def _last_speech(turns: Turns, texts: TextsOfTurns, window: int) -> PairsOfTurns:
    """Pair what an agent says with the last things that it said, however long ago."""
    return _with_earlier(turns, np.flatnonzero(texts.said >= 0), texts.said, window)


def _last_steps(turns: Turns, texts: TextsOfTurns, window: int) -> PairsOfTurns:
    """Pair whole turns of an agent with its turns among the last ones of either side."""
    of_agent = np.where(turns.is_agent, texts.whole, -1)
    return _with_earlier(turns, np.arange(len(turns.steps)), of_agent, window)


def _with_earlier(turns: Turns, among: IntArray, text: IntArray, window: int) -> PairsOfTurns:
    """Pair each of some turns with each of the `window` ones before it, where both have a text."""
    run = turns.run_of
    pairs = [np.empty((2, 0), dtype=np.int64)]
    for back in range(1, min(window, len(among) - 1) + 1):
        now, before = among[back:], among[:-back]
        there = (run[now] == run[before]) & (text[now] >= 0) & (text[before] >= 0)
        pairs.append(np.stack([now[there], before[there]]))
    turn, before = np.concatenate(pairs, axis=1)
    return PairsOfTurns(turn, text[turn], text[before])


def calls_and_results(turns: Turns, texts: TextsOfTurns) -> PairsOfTurns:
    """Pair each turn of an agent with the results of its calls."""
    turn = np.flatnonzero(turns.is_agent & (texts.whole >= 0) & (texts.result >= 0))
    return PairsOfTurns(turn, texts.whole[turn], texts.result[turn])


def _answers_to_turn_before(turns: Turns, texts: TextsOfTurns) -> PairsOfTurns:
    """Pair each turn of a user with the agent's turn right before it."""
    turn = np.flatnonzero(~turns.is_agent[1:] & turns.is_agent[:-1]) + 1
    there = (turns.run_of[turn] == turns.run_of[turn - 1]) & (texts.whole[turn] >= 0)
    turn = turn[there & (texts.whole[turn - 1] >= 0)]
    return PairsOfTurns(turn, texts.whole[turn - 1], texts.whole[turn])


def _answers_to_last_turn(turns: Turns, texts: TextsOfTurns) -> PairsOfTurns:
    """Pair each turn of a user with its results, or with the agent's last turn that has a text."""
    place = np.arange(len(turns.steps))
    said = np.maximum.accumulate(np.where(turns.is_agent & (texts.whole >= 0), place, -1))
    calls = texts.result >= 0
    asked = (said >= 0) & (turns.run_of[said] == turns.run_of)
    turn = np.flatnonzero(~turns.is_agent & (texts.whole >= 0) & (calls | asked))
    other = np.where(calls[turn], texts.result[turn], texts.whole[said[turn]])
    return PairsOfTurns(turn, texts.whole[turn], other)


# ------------------------------------------------------------------ repeated calls


def repeats_call(turns: Turns, window: int) -> IntArray:
    """Return the agent turns with a call that one of the last turns, of either side, made, too."""
    return _repeated(turns, np.arange(len(turns.steps)), window)


def _repeats_call_of_calls(turns: Turns, window: int) -> IntArray:
    """Return the agent turns with a call that one of its last turns with calls made, too."""
    calls = np.array([bool(step.tool_calls) for step in turns.steps]) & turns.is_agent
    return _repeated(turns, np.cumsum(calls), window)


def _repeated(turns: Turns, count: IntArray, window: int) -> IntArray:
    """Return the agent turns with a call that an earlier one made, at most `window` counts ago."""
    run = turns.run_of
    number: dict[str, int] = {}
    calls = [
        (number.setdefault(call, len(number)), turn)
        for turn in np.flatnonzero(turns.is_agent)
        for call in turns.call_texts[turn]
    ]
    if not calls:
        return np.empty(0, dtype=np.int64)
    call, turn = np.unique(np.array(calls, dtype=np.int64), axis=0).T  # by call, then by turn
    again = (
        (call[1:] == call[:-1])
        & (run[turn[1:]] == run[turn[:-1]])
        & (count[turn[1:]] - count[turn[:-1]] <= window)
    )
    return turn[1:][again]


def _repeats_no_call(turns: Turns, window: int) -> IntArray:
    """Return no turn: calls are compared as texts."""
    return np.empty(0, dtype=np.int64)


class Rules(NamedTuple):
    """Which texts are compared, which calls are repeated, and whose results are read."""

    speech: Callable[[Turns, TextsOfTurns, int], PairsOfTurns]
    repeated: Callable[[Turns, int], IntArray]
    answers: Callable[[Turns, TextsOfTurns], PairsOfTurns]
    results_of: tuple[str, ...] = ("agent",)


DEFINITIONS = {
    "trajscore": Rules(_speech_of_last_turns, repeats_call, _answers_to_turn_before),
    "paper": Rules(_last_steps, _repeats_no_call, _answers_to_turn_before),
    "agent-tracer": Rules(
        _last_speech, _repeats_call_of_calls, _answers_to_last_turn, ("agent", "user")
    ),
}
