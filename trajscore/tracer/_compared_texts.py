"""Which texts of a dialogue are compared, and which calls are repeated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from trajscore.core.type_aliases import IntArray
from trajscore.io.text import whole_text
from trajscore.tracer._turns import Turns


class TextsOfTurns:
    """Texts to embed, each once; for each turn the places of its texts, -1 where it has none.

    `speech` is what the agent says, `whole` a turn with its calls as text, `result` what the calls
    of an agent's turn returned.
    """

    def __init__(self, turns: Turns) -> None:
        steps = turns.steps
        self._place: dict[str, int] = {}
        self.speech = self.places(step.text if step.actor == "agent" else "" for step in steps)
        self.whole = self.places(turns.text_with_calls(turn) for turn in range(len(steps)))
        self.result = self.places(
            (step.observation or "") if step.actor == "agent" and step.tool_calls else ""
            for step in steps
        )

    @property
    def listed(self) -> list[str]:
        """The texts by place; one at least, as embedders take no empty list."""
        return list(self._place) or [""]

    def places(self, texts: Iterable[str]) -> IntArray:
        """Return the place of each text, -1 for an empty one."""
        known = self._place
        encodable = (whole_text(text.strip()) for text in texts)
        places = [known.setdefault(text, len(known)) if text else -1 for text in encodable]
        return np.array(places, dtype=np.int64)


class PairsOfTurns(NamedTuple):
    """Pairs of texts, and the turn that each says something about."""

    turn: IntArray
    first: IntArray
    second: IntArray


def pairs_with_earlier(turns: Turns, among: IntArray, text: IntArray, window: int) -> PairsOfTurns:
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


def repeated_calls(turns: Turns, window: int) -> IntArray:
    """Return the agent turns with a call that an earlier one made, at most `window` turns ago."""
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
        & (turn[1:] - turn[:-1] <= window)
    )
    return turn[1:][again]
