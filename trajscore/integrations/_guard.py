"""Signals of a conversation and the process that was fitted on them, in one."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.convert import as_table
from trajscore.core.outcomes import CENSORED
from trajscore.core.values import IntArray, number_of, refuse_first, run_label
from trajscore.integrations._watch import SEEN, Look, OnFlag, Watch, answered
from trajscore.io import Run, Step, as_run, outcomes
from trajscore.monitoring import DensityRatioEProcess
from trajscore.monitoring.persistence import load_fitted, save_fitted
from trajscore.tracer import ActionSignals
from trajscore.tracer.action_signals import Smoothness
from trajscore.tracer.turns import check_runs

_CHECKED = 5  # runs whose signals are looked at again, cut at every turn


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
    first_actors_ : list of str
        Who began the runs of the fit: "agent", "user" or both.

    See Also
    --------
    trajscore.monitoring.EProcessMonitor : Takes scores, and keeps them through a restart.

    Notes
    -----
    Ask before a call of the model, when all tools have answered. Where the last turn has calls
    without a result, the guard speaks of the turns before it. The messages must be all that were
    said: summing up a history, or cutting it, doubles the false alarms. `follow` notices.
    The promise holds for runs like those of the fit. So one that the user begins, where the agent
    began all of these, is not followed and never stopped, and a warning says so.

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

    first_actors_: Sequence[str] = SEEN  # of files that an earlier release wrote

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
            if self.signals is None and process.flags == "success":
                raise ValueError(
                    "no outcome of these runs is known, and the absence of trouble shows no "
                    "success; give y, or signals that are higher where success is likelier"
                )
        if self.signals is not None:
            signals = clone(self.signals)
        X = signals.fit_transform(runs)
        self._check_signals(signals, runs, X)
        self.signals_ = signals
        self.process_ = clone(process).fit(X, labels if has_outcomes else None, groups=groups)
        self.process_._warn_if_idle(X)
        self.first_actors_ = sorted({_first_actor(run.steps) for run in runs} - {""})
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
        if steps and not _first_actor(steps):
            roles = ", ".join(dict.fromkeys(repr(step.extra.get("role")) for step in steps))
            warnings.warn(
                f"no message is of the agent or the user, so that nothing is seen; the roles are "
                f"{roles}: name them assistant and user",
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
            For each run a look after each turn of agent or user; none of a run that begins with
            another actor than all runs of the fit, of which a warning is given.
        """
        check_is_fitted(self)
        all_runs = check_runs(runs, "looks", may_be_empty=True)
        level = self.process_._level(alpha)
        begun = [run for run in all_runs if _first_actor(run.steps)]
        followed = [run for run in begun if _first_actor(run.steps) in self.first_actors_]
        if n := len(begun) - len(followed):
            warnings.warn(
                f"{number_of(n, 'run')} cannot be followed, and will not be stopped: all runs of "
                f"the fit begin with the {self.first_actors_[0]}. Give all messages from the "
                f"first, such as the agent's greeting, or fit the guard on runs that begin so",
                stacklevel=2,
            )
        if not followed:
            return [[] for _ in all_runs]
        X = self.signals_.transform(followed)
        X = self.process_._check(X.with_ended(outcomes(followed) != CENSORED))
        *evidence, stops = self.process_.test_.decide(X, level)
        of_runs = np.split(np.column_stack(evidence), X.offsets[1:-1])
        looks = {
            id(run): [
                self._look_at(run.id, step, stop, log_m, p_value, level)
                for step, (log_m, p_value) in enumerate(of_run.tolist(), start=1)
            ]
            for run, of_run, stop in zip(followed, of_runs, stops.tolist(), strict=True)
        }
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
            callable is given that look, and returns one of the two, or is asked again, up to three
            times. Later looks have the answer.
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
                if is_done(messages):
                    break

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
        looks = self.looks(runs, alpha)
        return np.array([next((look.step for look in of if look.stop), 0) for of in looks], int)

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
        refuse_first(
            np.isnan(as_table(X.cells)).any(axis=1),
            lambda cell: (
                f"{X.place(cell)}: a signal has no value here, and a guard needs one at every "
                f"step; leave the signal out, or fill it within the pipeline of signals"
            ),
        )
        for row in np.linspace(0, len(runs) - 1, min(len(runs), _CHECKED)).astype(int):
            run = runs[row]
            for n in range(1, len(run.steps)):
                steps = answered(run.steps[:n])
                if not _first_actor(steps):
                    continue
                early = signals.transform([Run(run.id, list(steps), task=run.task)]).cells
                if not np.allclose(early, X.cells[X.offsets[row] :][: len(early)]):
                    raise ValueError(
                        f"run {run_label(run.id)}: the signals of its first {len(early)} steps "
                        f"change when later turns follow; a guard needs signals that depend on "
                        f"the turns so far alone"
                    )


def _first_actor(steps: Sequence[Step]) -> str:
    """Whose turn is the first of the agent or the user; "" where there is none."""
    return next((step.actor for step in steps if step.actor in SEEN), "")
