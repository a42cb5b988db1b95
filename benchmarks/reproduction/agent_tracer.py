"""TRACER as the package of its authors computes it, which differs from the paper and from ours.

https://github.com/sinatayebati/agent-tracer
"""

import numpy as np
from numpy.typing import NDArray

from trajscore import TracerSignals
from trajscore.tracer._similarity import (
    PairsOfTurns,
    TextsOfTurns,
    pairs_with_earlier,
    repeated_calls,
)
from trajscore.tracer.turns import Turns


class AgentTracerSignals(TracerSignals):
    """The signals of agent-tracer, where they are not ours.

    A repeated call is 1 within `tool_window` turns of the agent that have calls, text is compared
    with the last `window` texts that are not empty, and a turn of the user with the results of its
    calls, or else with the last turn of the agent that has a text.
    """

    def _repetition(
        self, turns: Turns, texts: TextsOfTurns
    ) -> tuple[PairsOfTurns, NDArray[np.int64]]:
        speech = pairs_with_earlier(
            turns, np.flatnonzero(texts.speech >= 0), texts.speech, self.window
        )
        has_calls = np.array([bool(step.tool_calls) for step in turns.steps]) & turns.is_agent
        rows = np.flatnonzero(has_calls)
        n_calling = np.bincount(turns.run_of[rows], minlength=len(turns.lengths))
        calling = Turns(turns.runs, [turns.steps[row] for row in rows], n_calling)
        return speech, rows[repeated_calls(calling, self.tool_window, {})]

    def _answers(self, turns: Turns, texts: TextsOfTurns) -> PairsOfTurns:
        place = np.arange(len(turns.steps))
        said = np.maximum.accumulate(np.where(turns.is_agent & (texts.whole >= 0), place, -1))
        result = texts.places(
            (step.observation or "") if step.actor == "user" and step.tool_calls else ""
            for step in turns.steps
        )
        asked = (said >= 0) & (turns.run_of[said] == turns.run_of)
        turn = np.flatnonzero(~turns.is_agent & (texts.whole >= 0) & ((result >= 0) | asked))
        other = np.where(result[turn] >= 0, result[turn], texts.whole[said[turn]])
        return PairsOfTurns(turn, texts.whole[turn], other)
