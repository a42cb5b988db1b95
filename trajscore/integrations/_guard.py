"""Signals of a conversation and the process that was fitted on them, in one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import CENSORED
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import check_choice, run_label
from trajscore.io import Run, Step, as_run, outcomes
from trajscore.io.live import LiveRun
from trajscore.monitoring import DensityRatioEProcess
from trajscore.monitoring.persistence import load_fitted, save_fitted
from trajscore.monitoring.thresholds import Promise
from trajscore.tracer import ActionSignals
from trajscore.tracer.action_signals import Smoothness
from trajscore.tracer.turns import Turns, check_runs, take_turns


class Look(NamedTuple):
    """What a guard says of a conversation so far.

    Parameters
    ----------
    run : str
        Name of the run.
    step : int
        Rows of signals so far; 0 before the first.
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
        With a question: what was said and called at the flagged step.
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


class Guard(BaseEstimator):
    """Follow conversations, and say before each call of the model whether to stop.

    It needs nothing but the messages so far: a decision is that of the process on the finished log,
    up to there.

    Parameters
    ----------
    signals : transformer from runs to channels, optional
        What is seen of a conversation, known at each step from the turns up to it. Default:
        `trajscore.ActionSignals`. Where no outcome is known, one channel that is lower where
        failure is likelier; default: minus the repeated and failed calls and the largest surprisal.
    process : DensityRatioEProcess, optional
        What decides, at which level, such as ``DensityRatioEProcess(alpha=0.1)``. Default: one at
        the level 0.05.

    Attributes
    ----------
    signals_, process_ : estimators
        The fitted ones.

    See Also
    --------
    trajscore.monitoring.EProcessMonitor : Takes scores, and keeps them through a restart.

    Notes
    -----
    Ask before a call of the model, when all tools have answered. Where the last turn has calls
    without a result, the guard speaks of the turns before it. The messages must be all that were
    said: summing up a history, or cutting it, doubles the false alarms. `follow` notices.

    Examples
    --------
    >>> from trajscore import io
    >>> from trajscore.integrations import Guard
    >>> ask, sorry = io.Step("user", "Please cancel it."), io.Step("agent", "I cannot do that.")
    >>> done = io.Step("agent", "It is cancelled.")
    >>> runs = [
    ...     io.Run(f"run {k}", [ask, *[done, sorry][k % 2 : k % 2 + 1] * 3], outcome=1 - k % 2)
    ...     for k in range(200)
    ... ]
    >>> guard = Guard().fit(runs)
    >>> chat = [{"role": "user", "content": "Please cancel it."}]
    >>> guard.look(chat, "new").stop
    False
    >>> chat += [{"role": "assistant", "content": "I cannot do that."}] * 2
    >>> guard.look(chat, "new").stop
    True
    """

    def __init__(self, signals: Any = None, process: Any = None) -> None:
        self.signals = signals
        self.process = process

    def fit(
        self, runs: Iterable[Run], y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Learn from finished runs when others should stop.

        Parameters
        ----------
        runs : iterable of Run
            Runs of a log.
        y : array-like of shape (n_runs,), optional
            Outcomes; default: those of the runs. Where none is known, at most a share alpha of all
            runs is stopped. Once some are, fit again.
        groups : array-like of shape (n_runs,), optional
            Runs of one group (trials of one task) are held out together.

        Returns
        -------
        Guard
            The fitted guard.

        Raises
        ------
        ValueError
            If a signal of a step depends on later turns, or has no value at some steps; and as
            `DensityRatioEProcess.fit` does.
        """
        process = self.process
        if process is None:
            process = DensityRatioEProcess()
        if not isinstance(process, DensityRatioEProcess):
            raise ValueError(f"process must be a DensityRatioEProcess(), got {process!r}")
        runs = check_runs(runs, "Guard")
        if y is None:
            y = outcomes(runs)
        labels = np.asarray(y)
        has_outcomes = (labels != CENSORED).any()
        signals: Any = ActionSignals()
        if not has_outcomes:
            signals = Smoothness()
        if self.signals is not None:
            signals = clone(self.signals)
        X = signals.fit_transform(runs)
        self._check_signals(signals, runs, X)
        self.signals_ = signals
        self.process_ = clone(process).fit(X, labels if has_outcomes else None, groups=groups)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        shown = super().__repr__(N_CHAR_MAX)
        if hasattr(self, "process_"):
            shown += f" that stops {self.process_.promise()}"
        return shown

    def look(
        self,
        messages: Any,
        run: str = "run",
        *,
        done: bool = False,
        alpha: float | None = None,
    ) -> Look:
        """Decide on a conversation so far.

        Parameters
        ----------
        messages : iterable of messages, or Run
            All messages of the conversation, as `trajscore.io.as_run` takes them.
        run : str, default="run"
            Its name, by which random ties are broken.
        done : bool, default=False
            Whether it has ended. A hook before a call of the model says that it has not.
        alpha : float, optional
            One of the fitted levels; default: the first.

        Returns
        -------
        Look
            Whether to stop, and why.
        """
        if not isinstance(messages, Run):
            messages = as_run(messages, run)
        steps = messages.steps
        if steps and not _has_signals(steps):
            roles = ", ".join(dict.fromkeys(repr(step.extra.get("role")) for step in steps))
            warnings.warn(
                f"no message is of the agent or the user, so that nothing is seen; the roles are "
                f"{roles}: name them assistant and user",
                UserWarning,
                stacklevel=2,
            )
        outcome = 1  # of which only that the run has ended is read
        if not done:
            steps = answered(steps)
            outcome = CENSORED
        (looks,) = self.looks([Run(str(run), list(steps), outcome=outcome)], alpha)
        if looks:
            return looks[-1]
        return self._look_at(str(run), 0, 0, 0.0, 1.0, alpha)

    def _look_at(
        self, run: str, step: int, stop: int, log_m: float, p_value: float, alpha: float | None
    ) -> Look:
        """Return the look after a step of a run that is stopped at a step, or at 0: never."""
        promise = self.process_.promise(alpha)
        log_threshold = self.process_.test_.threshold.log_threshold(promise.alpha)
        is_stopped = 0 < stop <= step
        flagged_step = stop if is_stopped else None
        suspicion = 1 - float(p_value)
        return Look(
            run, step, is_stopped, flagged_step, float(log_m), log_threshold, suspicion, promise
        )

    def looks(self, runs: Iterable[Run], alpha: float | None = None) -> list[list[Look]]:
        """Decide after each step of the runs of a log.

        Parameters
        ----------
        runs : iterable of Run
            Runs of a log. Those whose outcome was observed have ended.
        alpha : float, optional
            One of the fitted levels; default: the first.

        Returns
        -------
        list of lists of Look
            For each run a look after each turn of agent or user.
        """
        check_is_fitted(self)
        all_runs = check_runs(runs, "looks", may_be_empty=True)
        level = self.process_._level(alpha)
        followed = [run for run in all_runs if _has_signals(run.steps)]
        if not followed:
            return [[] for _ in all_runs]
        X = self.signals_.transform(followed)
        X = self.process_._check(X.with_ended(outcomes(followed) != CENSORED))
        log_m, p_values, stops = self.process_.test_.decide(X, level)
        looks: dict[int, list[Look]] = {}
        for run, offset, length, stop in zip(
            followed, X.offsets[:-1].tolist(), X.lengths.tolist(), stops.tolist(), strict=True
        ):
            looks[id(run)] = [
                self._look_at(run.id, k + 1, stop, log_m[offset + k], p_values[offset + k], level)
                for k in range(length)
            ]
        return [looks.get(id(run), []) for run in all_runs]

    def follow(
        self,
        run: str = "run",
        alpha: float | None = None,
        *,
        on_flag: OnFlag = "stop",
        window: Any = None,
    ) -> Watch:
        """Return what follows one conversation, and notices where its past has changed.

        Parameters
        ----------
        run : str, default="run"
            Its name.
        alpha : float, optional
            The fitted level at which the run is stopped; default: the first, or the smallest where
            a person is asked.
        on_flag : "stop", "ask" or callable, default="stop"
            Whether the run is stopped without a question, or a person is asked first, once a run,
            as soon as it is flagged at the largest fitted level. So of the runs that would succeed,
            at most that share are asked about, and at most `alpha` are stopped by the guard; with
            one level it stops none of its own accord. "ask" gives a look whose `ask` is True,
            until ``answer("go on")`` or ``answer("stop")``, or until the agent has gone on. A
            callable is given that look, and returns one of the two. Later looks have the answer.
        window : transformer from runs to steps, optional
            What marks the steps of a run that are likely to hold the first wrong one: a pipeline
            of fitted signals, `FirstErrorLocator` and `FirstErrorWindow`.

        Returns
        -------
        Watch
            Its ``look(messages, done=False)`` decides as that of the guard.

        Examples
        --------
        In a loop of your own, with ``call_model`` and ``call_tools``::

            watch = guard.follow("run 7")
            while not watch.look(messages).stop:
                messages += call_model(messages)
                ...

        Asking on a terminal::

            guard.follow("run 7", on_flag=lambda look: input(f"{look.text}: go on, or stop? "))
        """
        check_is_fitted(self)
        return Watch(self, run, alpha, on_flag, window)

    def stopping_steps(self, runs: Iterable[Run], alpha: float | None = None) -> IntArray:
        """Return the step at which each run of a log would be stopped; 0 where it would not.

        Parameters
        ----------
        runs : iterable of Run
            Runs of a log.
        alpha : float, optional
            One of the fitted levels; default: the first.

        Returns
        -------
        ndarray of int of shape (n_runs,)
            Steps, counted from 1 in rows of the signals.
        """
        check_is_fitted(self)
        return self.process_.stopping_steps(self.signals_.transform(list(runs)), alpha)

    def save(self, path: str | Path) -> None:
        """Write the fitted guard to a .skops file, which runs no code when it is read.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        check_is_fitted(self)
        save_fitted(self, Path(path))

    @classmethod
    def load(
        cls, path: str | Path, trusted: Sequence[str] = (), max_size: int | None = None
    ) -> Self:
        """Read a guard that `save`, or ``trajscore fit``, wrote.

        Parameters
        ----------
        path : str or Path
            The file.
        trusted : sequence of str
            Types in it that are not ours, and that you trust.
        max_size : int, optional
            As in `trajscore.TrajectoryArray.load`.

        Returns
        -------
        Guard
            The fitted guard.
        """
        return load_fitted(path, cls, trusted, max_size)

    def _check_signals(self, signals: Any, runs: list[Run], X: TrajectoryArray) -> None:
        """Refuse signals that know the future, and such as have gaps."""
        if np.isnan(X.cells).any():
            cell = int(np.argmax(np.isnan(X.cells).reshape(len(X.cells), -1).any(axis=1)))
            raise ValueError(
                f"{X.place(cell)}: a signal has no value here, and a guard needs one at every "
                f"step; leave the signal out, or fill it within the pipeline of signals"
            )
        for row in np.linspace(0, len(runs) - 1, min(len(runs), _CHECKED)).astype(int):
            run = runs[row]
            for n in range(1, len(run.steps)):
                steps = answered(run.steps[:n])
                if not _has_signals(steps):
                    continue
                early = signals.transform([Run(run.id, list(steps), task=run.task)]).cells
                if not np.allclose(early, X.cells[X.offsets[row] :][: len(early)]):
                    raise ValueError(
                        f"run {run_label(run.id)}: the signals of its first {len(early)} steps "
                        f"change when later turns follow; a guard needs signals that depend on "
                        f"the turns so far alone"
                    )


@dataclass
class Watch:
    """One conversation that a guard follows; made by `Guard.follow`."""

    guard: Guard
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
                self._live = LiveRun(self.run)
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
        return self._by_answer(run, look, approved)

    def _look(self, steps: list[Step], done: bool) -> Look:
        """Decide on the turns so far, those that were not seen yet where that is enough."""
        new = [step for step in steps[self._n_monitored :] if step.actor in SEEN]
        can_follow = type(self.guard.signals_) is ActionSignals and (new or self._last)
        if done or not can_follow:
            run = Run(self._live.id, self._live.talk.steps)
            return self.guard.look(run, self.run, done=done, alpha=self.first_alpha)
        self._n_monitored = len(steps)
        if new:
            self._last = self._look_at(self._live.id, new)
        return self._last

    def answer(self, answer: str) -> None:
        """Keep what a person says, "go on" or "stop"; the next look goes by it."""
        check_choice(answer, "answer", ("go on", "stop"))
        self.last_answer = answer

    def _by_answer(self, run: Run, look: Look, approved: Any) -> Look:
        """Ask about a flag, unless there is an answer, or the agent has gone on since."""
        turns = take_turns([run], SEEN, "look")
        step: Any = look.flagged_step
        since: list[Any] = [turn for turn in turns.steps[step:] if turn.actor == "agent"]
        if approved is not None:
            told = [{approved(call) for call in turn.tool_calls} - {None} for turn in since]
            since = list(filter(None, told))  # answers about turns that a person was asked about
        if not self.last_answer and not since:
            question = look._replace(stop=False, ask=True, text=turns.text_with_calls(step - 1))
            if self.window is not None:
                inside = np.flatnonzero(self.window.transform([run]).cells) + 1
                question = question._replace(window=inside.tolist())
            if not callable(self.on_flag):
                return question
            self.answer(self.on_flag(question))
        elif not self.last_answer and approved is not None:
            self.last_answer = "go on"
            if False in since[0]:
                self.last_answer = "stop"
        return look._replace(stop=self.last_answer == "stop", answer=self.last_answer)

    def _look_at(self, run: str, steps: list[Step]) -> Look:
        """Decide on the next turns, each of which is seen once."""
        turns = Turns([], steps, np.array([len(steps)]))
        rows, self._sums = self.guard.signals_._next_rows(turns, self._calls, self._sums)
        for row in rows:
            last = self._monitor.update(row, run)
            if last.flagged:
                self._stop = self._stop or last.step
        largest = self._monitor._open_run(run).largest
        (p_value,) = self._monitor.test.threshold.p_values(np.array([largest]))
        return self.guard._look_at(
            run, last.step, self._stop, last.log_e_value, p_value, self.first_alpha
        )


def _content(step: Step) -> Any:
    calls = [(call.name, call.arguments, call.result, call.error) for call in step.tool_calls]
    return step.actor, step.text, calls


SEEN = ("agent", "user")  # whose turns are steps of the signals
_CHECKED = 5  # runs whose signals are looked at again, cut at every turn


def _has_signals(steps: Sequence[Step]) -> bool:
    """Whether a turn is of the agent or the user."""
    return any(step.actor in SEEN for step in steps)


def answered(steps: Sequence[Step]) -> Sequence[Step]:
    """Leave out the last turn while one of its calls has no result."""
    if steps and any(call.result is None for call in steps[-1].tool_calls):
        return steps[:-1]
    return steps
