"""A conversation that a guard follows: what it says of it, and what a person says to that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from trajscore.core.values import check_choice, run_label
from trajscore.io import Run, Step
from trajscore.io.live import LiveRun
from trajscore.monitoring.thresholds import Promise
from trajscore.tracer import ActionSignals
from trajscore.tracer.turns import Turns, take_turns

SEEN = ("agent", "user")
"""Whose turns are steps of the signals."""
ANSWERS = ("go on", "stop")
_MOST_ASKED = 3  # times, where what is said is neither


class Look(NamedTuple):
    """What a guard says of a conversation so far.

    Parameters
    ----------
    run : str
        Name of the run.
    step : int
        Rows of signals so far; 0 before the first, and where the guard does not follow the run.
    stop : bool
        Whether this step or an earlier one was flagged.
    flagged_step : int or None
        The first that was.
    log_e_value, log_threshold : float
        log M of the last step, and the threshold on it; without outcomes, minus the signal.
    suspicion : float
        1 minus the p-value of the run so far: with a held-out threshold, a run is stopped at
        1 - alpha, and that is so for any alpha.
    promise : Promise, optional
        At most a share `alpha` is stopped `of` the "successes", the "failures" or all "runs", when
        that `holds`.
    ask : bool
        Whether a person is asked if the run is to go on: see `Guard.follow`.
    answer : {"", "go on", "stop"}
        What the person said.
    text : str
        With a question: what was said, called and returned at the flagged step.
    window : sequence of int
        With a question: the steps that are likely to hold the first wrong one, if it is known.

    Examples
    --------
    >>> from trajscore.integrations import Look
    >>> Look("run 1", 3, True, 2, 4.1, 3.5, 0.96).stop
    True
    """

    run: str
    step: int
    stop: bool
    flagged_step: int | None
    log_e_value: float
    log_threshold: float
    suspicion: float
    promise: Promise | None = None
    ask: bool = False
    answer: str = ""
    text: str = ""
    window: Sequence[int] = ()


class StopRun(Exception):  # noqa: N818
    """A guard stops a run, where a framework is stopped by an exception.

    Parameters
    ----------
    look : Look
        What the guard said.

    Examples
    --------
    >>> from trajscore.integrations import Look, StopRun
    >>> print(StopRun(Look("run 1", 3, True, 2, 4.1, 3.5, 0.96)))
    run 'run 1' was stopped at step 2
    """

    def __init__(self, look: Look) -> None:
        self.look = look
        super().__init__(f"run {run_label(look.run)} was stopped at step {look.flagged_step}")


OnFlag = str | Callable[[Look], str]


@dataclass
class Watch:
    """One conversation that a guard follows; made by `Guard.follow`."""

    guard: Any
    run: str
    alpha: float | None
    on_flag: OnFlag
    window: Any
    last_answer: str = ""

    def __post_init__(self) -> None:
        self.first_alpha = self.alpha  # at which it is flagged
        if not callable(self.on_flag):
            check_choice(self.on_flag, "on_flag", ("stop", "ask"))
        if self.on_flag != "stop":
            levels = self.guard.process_.alphas_
            self.first_alpha = max(levels)
            if self.alpha is None:
                self.alpha = min(levels)
        self._live = LiveRun(self.run)
        self._turns: list[Any] = []  # what each said and called, at the last look
        self._monitor = self.guard.process_.monitor(self.first_alpha)
        self._n_monitored = 0  # turns
        self._calls: dict[Any, int] = {}
        self._sums: Any = 0.0  # of what the turns did
        self._stop = 0
        self._last: Any = None  # the last look

    def look(self, messages: Any, *, done: bool = False, approved: Any = None) -> Look:
        """Decide on the conversation so far; refuse one that does not go on from the last look.

        Where a framework asks before it calls tools, `approved` tells the answer to a call, or
        None where nobody was asked.
        """
        live = self._live
        n_same = min(live.read(messages), len(self._turns))
        steps = list(answered(live.talk.steps))
        turns = list(map(_content, steps[n_same:]))
        pairs = zip_longest(turns, self._turns[n_same:])
        for turn, (now, before) in enumerate(pairs, start=n_same + 1):
            if before is not None and now != before:
                live.forget()
                raise ValueError(
                    f"run {run_label(self.run)}: turn {turn} has changed or is missing; give the "
                    f"guard all messages, before they are summed up or cut"
                )
        self._turns[n_same:] = turns
        look = self._look(steps, done)
        if self.on_flag == "stop" or done or not look.stop:
            return look
        run = Run(self.run, steps)
        if self.alpha != self.first_alpha:
            stop = self.guard.look(run, self.run, alpha=self.alpha)
            if stop.stop:
                return stop._replace(answer=self.last_answer)
        if not self.last_answer and (question := self._ask(run, look, approved)) is not None:
            return question
        return look._replace(stop=self.last_answer == "stop", answer=self.last_answer)

    def _look(self, steps: list[Step], done: bool) -> Look:
        """Decide on the turns so far, those that were not seen yet where that is enough."""
        new = [step for step in steps[self._n_monitored :] if step.actor in SEEN]
        begins = new and new[0].actor in self.guard.first_actors_
        can_follow = type(self.guard.signals_) is ActionSignals and (begins or self._last)
        if done or not can_follow:
            whole = Run(self._live.id, self._live.talk.steps)
            return self.guard.look(whole, self.run, done=done, alpha=self.first_alpha)
        self._n_monitored = len(steps)
        if not new:
            return self._last
        turns = Turns([], new, np.array([len(new)]))
        rows, self._sums = self.guard.signals_._next_rows(turns, self._calls, self._sums)
        run = self._live.id
        for row in rows:
            last = self._monitor.update(row, run)
            if last.flagged:
                self._stop = self._stop or last.step
        largest = self._monitor._open_run(run).largest
        (p_value,) = self._monitor.test.threshold.p_values(np.array([largest]))
        self._last = self.guard._look_at(
            run, last.step, self._stop, last.log_e_value, p_value, self.first_alpha
        )
        return self._last

    def answer(self, answer: str) -> None:
        """Keep what a person says, "go on" or "stop"; the next look goes by it."""
        check_choice(answer, "answer", ANSWERS)
        self.last_answer = answer

    def _ask(self, run: Run, look: Look, approved: Any) -> Look | None:
        """Ask about a flag, unless the agent has gone on since; return a question that waits."""
        turns = take_turns([run], SEEN, "look")
        step: Any = look.flagged_step
        since: list[Any] = [turn for turn in turns.steps[step:] if turn.actor == "agent"]
        if approved is not None:
            approvals = [{approved(call) for call in turn.tool_calls} - {None} for turn in since]
            since = list(filter(None, approvals))  # of turns that a person was asked about
        if not since:
            lines = [turns.text_with_calls(step - 1), *filter(None, turns.steps[step - 1].results)]
            question = look._replace(stop=False, ask=True, text="\n".join(lines))
            if self.window is not None:
                inside = np.flatnonzero(self.window.transform([run]).cells) + 1
                question = question._replace(window=inside.tolist())
            if not callable(self.on_flag):
                return question
            reply = ""
            for _ in range(_MOST_ASKED):
                if reply not in ANSWERS:
                    reply = str(self.on_flag(question)).strip().lower()
            self.answer(reply)
        elif approved is not None:
            self.last_answer = "go on"
            if False in since[0]:
                self.last_answer = "stop"
        return None


def _content(step: Step) -> Any:
    calls = [(call.name, call.arguments, call.result, call.error) for call in step.tool_calls]
    return step.actor, step.text, calls


def answered(steps: Sequence[Step]) -> Sequence[Step]:
    """Leave out the last turn while one of its calls has no result."""
    if steps and any(call.result is None for call in steps[-1].tool_calls):
        return steps[:-1]
    return steps
