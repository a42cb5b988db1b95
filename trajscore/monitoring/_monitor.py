"""The live form of an e-process: a decision after every score."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trajscore.core.values import (
    ByName,
    FloatArray,
    as_flag,
    as_path,
    is_number,
    number_of,
    outside_unit,
    run_label,
    to_unit,
)
from trajscore.monitoring._density_ratio import FittedTest
from trajscore.monitoring._state_file import StateFile, in_types
from trajscore.monitoring._stopping_rule import LARGEST_SCORE, longer_than_fitted, range_warning

# runs that have ended whose last decision is given again where their end comes twice
_REMEMBERED = 1000


class Decision(NamedTuple):
    """What a monitor says after a step: where `flagged`, the run should stop.

    Where the process flags successes, the run is shown to succeed. `margin` is the
    threshold minus the largest log M so far, negative once flagged, both weighted where the
    threshold has an `end_worth`.
    """

    id: Hashable  # the run
    step: int  # steps seen
    log_e_value: float  # log M of this step
    log_threshold: float  # the run's, on log M
    flagged: bool  # whether this step or an earlier one was
    margin: float


class EProcessMonitor:
    """Follows any number of runs at once; never differs from the process on the same scores.

    Made by `DensityRatioEProcess.monitor`. All methods may be called from several threads.

    Parameters
    ----------
    test : FittedTest
        What decides: ``test_`` of a fitted process.
    alpha : float, optional
        One of its levels; default: the first.
    state : str or Path, optional
        A SQLite file that has every step before its decision is given, so that a monitor made
        with it later goes on where this one was, whenever it was ended. Ids are text or integers
        then. One monitor at a time has a file; a second one is refused, and so are forks.
    durability : {"normal", "full"}, default="normal"
        What no step is lost in: the end of this process at any moment, or a power cut as well,
        for which every step waits for the disk.

    Raises
    ------
    ValueError
        If the file was written by another process, at another level, or by none, is damaged, or is
        in use by another monitor.
    OSError
        If the file cannot be written.

    Warns
    -----
    UserWarning
        If the file was deleted meanwhile: it is written anew, with all open runs.

    See Also
    --------
    trajscore.DensityRatioEProcess.monitor : Makes one.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.datasets import make_trajectories
    >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
    >>> monitor = DensityRatioEProcess(alpha=0.1).fit(X, y).monitor()
    >>> for score in [0.4, 0.2, 0.1]:
    ...     decision = monitor.update(score)
    >>> decision.step, decision.flagged
    (3, True)
    """

    def __init__(
        self,
        test: FittedTest,
        alpha: float | None = None,
        state: str | Path | None = None,
        durability: str = "normal",
    ) -> None:
        if not isinstance(test, FittedTest):
            raise TypeError(f"test must be test_ of a fitted process, got {type(test).__name__}")
        if alpha is None:
            alpha = test.alphas[0]
        self.test = test
        self.alpha = alpha
        self._lock = threading.RLock()
        self._runs: dict[Hashable, _Run] = {}
        self._ended: dict[Hashable, _Run] = {}  # the last of them, in case their end comes twice
        self._file: StateFile | None = None
        self._start = time.monotonic()
        self._begin = test.live.begin()
        # a forecaster extrapolates in a run that is longer than any in fitting
        self._may_warn_of_length = test.forecaster is not None
        self._may_warn_of_range = True
        if state is not None:
            owner = {"alpha": self.alpha, **_fingerprint(test)}
            self._file = StateFile(as_path(state, "state"), owner, durability)
            runs = []
            for run_id, content in self._file.contents.items():
                new = self._new_run(run_id)
                is_ended, step, log_m, *rest = in_types((False, 0, 0.0, *new[2:]), content)
                runs.append(_Run(new.last, is_ended, *rest).decided(step, log_m))
            self._runs = {run.last.id: run for run in runs if not run.is_ended}
            runs.sort(key=lambda run: run.time)
            self._ended = {run.last.id: run for run in runs if run.is_ended}
            if runs:
                self._start -= runs[-1].time

    def update(
        self,
        score: Any,
        run: Hashable | None = None,
        *,
        step: int | None = None,
        done: bool = False,
    ) -> Decision:
        """Take the next score of a run.

        Parameters
        ----------
        score : float, sequence of one number a channel, or mapping from channel to number
            A verifier's score of the step.
        run : text or number, optional
            The id of the run; without it, the score belongs to the one run "run".
        step : int, optional
            Number of the step, where deliveries may be repeated or lost: that of the last one with
            the same score is answered again and not counted twice, any other but the next refused.
        done : bool, default=False
            Whether this is the last step: then the run has ended, and is forgotten.

        Returns
        -------
        Decision
            What to do.

        Raises
        ------
        ValueError
            If a score is missing, no number or not finite, or its forecast is not; a step is not
            the next one; there is no id where ties or ends are randomised, by the hash of an id;
            or the `state` belongs to another monitor by now. The monitor is then as it was.
        TypeError
            If the id is a truth value or cannot be hashed; with a `state`, if it is neither text
            nor an integer.
        OSError
            If the step cannot be kept in the `state`; the monitor is then as it was.
        """
        if run is None and self.test.threshold.draws:
            raise ValueError(
                "a run's id decides ties and ends that are randomised; give one to each run"
            )
        if step is not None and not is_number(step):
            raise ValueError(f"step must be the number of the step, got {step!r}")
        run_id = _checked_id(run)
        label = run_label(run_id)
        done = as_flag(done, "done")
        with self._lock:
            open_run = self._runs.get(run_id)
            before = open_run or self._new_run(run_id)
            latest = self._ended.get(run_id, before)
            due = before.last.step + 1
            with _naming_step(run_id, due if step is None else step):
                scores = _checked_scores(self.test, score)
            is_last = step == latest.last.step and np.array_equal(scores, latest.scores)
            if is_last and not (done and open_run):  # it was sent again; an end of it would be new
                return latest.last
            if step not in (None, due):
                problem = f"got step {step}, expected step {due}; send the steps of a run in order"
                if run_id in self._ended:
                    problem = (
                        f"step {step} comes after its end; begin a new run of that id with step 1"
                    )
                raise ValueError(f"run {label}: {problem}")
            after = self._after(before, scores, done=done)
            if self._may_warn_of_length and due > self.test.longest:
                self._may_warn_of_length = False
                warnings.warn(
                    longer_than_fitted(f"run {label} is", self.test.longest), stacklevel=2
                )
            if self._may_warn_of_range and (
                message := range_warning(scores, self.test.fitted_range, self.test.channels)
            ):
                self._may_warn_of_range = False
                warnings.warn(f"run {label}, step {due}: {message}", stacklevel=2)
            return self._take(after)

    def finish(self, run: Hashable | None = None, *, step: int | None = None) -> Decision:
        """Say that a run ended with its last score, and forget it; twice is answered again.

        Parameters
        ----------
        run : text or number, optional
            Its id; default: the run of updates without an id.
        step : int, optional
            Number of that step, where deliveries may be lost: any other is refused.

        Returns
        -------
        Decision
            That of the process on the whole run. A forecaster that is to know the end with the last
            step (``end="step"``) decides on that step again: what was said of it before is not part
            of the guarantee. Say the end with the score, by ``update(score, run, done=True)``, or
            fit with ``end="after"``, which looks at the last step both ways.

        Raises
        ------
        KeyError
            If no such run is open, or was among the last.
        """
        run_id = _checked_id(run)
        with self._lock:
            if run_id in self._ended:
                return self._ended[run_id].last
            open_run = self._open_run(run_id)
            if step not in (None, open_run.last.step):
                raise ValueError(
                    f"run {run_label(run_id)}: got its end at step {step}, but the last was step "
                    f"{open_run.last.step}; send the steps of a run in order"
                )
            return self._take(self._after(open_run.before, open_run.scores, done=True))

    def reset(self, run: Hashable | None = None) -> None:
        """Forget one run, or all.

        Parameters
        ----------
        run : text or number, optional
            Its id; default: all.

        Raises
        ------
        KeyError
            If no such run is open.
        """
        with self._lock:
            if run is None:
                self._change(dict.fromkeys(self._runs))
            else:
                self._change({self._open_run(_checked_id(run)).last.id: None})

    def forget(self, seconds: float) -> list[Hashable]:
        """Forget runs that have had no score for so long; they have not ended.

        Parameters
        ----------
        seconds : float
            How long; only time in which a monitor had them counts, whatever the clock says.

        Returns
        -------
        list
            Their ids.
        """
        if not is_number(seconds) or not seconds >= 0:
            raise ValueError(f"seconds must be a number of at least 0, got {seconds!r}")
        with self._lock:
            due = time.monotonic() - self._start - seconds
            old = [run_id for run_id, run in self._runs.items() if run.time < due]
            self._change(dict.fromkeys(old))
            return old

    def close(self) -> None:
        """Let go of the `state`, which takes no more steps then; nothing is left to write."""
        if self._file is not None:
            self._file.close()

    def _take(self, after: _Run) -> Decision:
        """Go on with a run; the end of one that ended long ago is forgotten for that of another."""
        changes: dict[Hashable, _Run | None] = {}
        if after.is_ended and len(self._ended) == _REMEMBERED:
            changes[next(iter(self._ended))] = None
        changes[after.last.id] = after
        self._change(changes)
        return after.last

    def _change(self, changes: Mapping[Hashable, _Run | None]) -> None:
        """Set runs, or forget them (None), once that is kept: what is refused leaves no trace."""
        if self._file is not None:
            for run_id in changes:
                if not isinstance(run_id, (str, int)):
                    raise TypeError(
                        f"run {run_label(run_id)}: only ids that are text or integers can be kept"
                    )
            self._file.write(
                {  # the rest of a run follows from the process
                    run_id: run and (run.is_ended, *run.last[1:3], *run[2:])
                    for run_id, run in changes.items()
                }
            )
        for run_id, run in changes.items():
            self._ended.pop(run_id, None)
            if run is None or run.is_ended:
                self._runs.pop(run_id, None)
            if run is not None:
                place = self._ended if run.is_ended else self._runs
                place[run_id] = run

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run: Hashable) -> bool:
        """Whether a run of that id is open."""
        return _checked_id(run) in self._runs

    def __iter__(self) -> Iterator[Decision]:
        """Go through the last decisions of all open runs."""
        with self._lock:
            return iter([run.last for run in self._runs.values()])

    def __repr__(self) -> str:
        flagged = sum(decision.flagged for decision in self)
        return (
            f"<{type(self).__name__}: alpha {self.alpha:g}, {number_of(len(self), 'open run')}, "
            f"{flagged} flagged>"
        )

    def _new_run(self, run_id: Hashable) -> _Run:
        limit = self.test.threshold.limits([run_id], self.alpha).item()
        last = Decision(run_id, 0, 0.0, limit, False, np.inf)
        return _Run(last, False, -np.inf, self._begin, np.empty(0), 0.0, -np.inf, self._begin)

    def _after(self, run: _Run, scores: FloatArray, *, done: bool = False) -> _Run:
        """Return a run after checked scores; where a forecast fails, nothing has changed."""
        step = run.last.step + 1
        with _naming_step(run.last.id, step):
            progress, log_m, statistic = self.test.advance(
                run.progress, scores, run.last.id, step, done=done
            )
        largest = max(run.largest, statistic)
        now = time.monotonic() - self._start
        after = _Run(run.last, done, largest, progress, scores, now, run.largest, run.progress)
        return after.decided(step, log_m)

    def _open_run(self, run_id: Hashable) -> _Run:
        if run_id not in self._runs:
            raise KeyError(
                f"run {run_label(run_id)} is not open: it has no score yet, or has ended"
            )
        return self._runs[run_id]

    def __getstate__(self) -> ByName:
        if self._file is not None:
            raise TypeError(
                f"a monitor with a state cannot be copied or pickled; make another one with "
                f"{self._file.path}, or without a state"
            )
        return self.__dict__ | {"_lock": None}

    def __setstate__(self, state: ByName) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()


class _Run(NamedTuple):
    """One run after a step."""

    last: Decision
    is_ended: bool
    largest: float
    progress: Any  # state of the forecaster
    scores: FloatArray  # of the last step
    time: float  # of that step, in seconds for which monitors have had the state
    largest_before: float  # that step
    progress_before: Any

    @property
    def before(self) -> _Run:
        """The run without its last step, which `finish` decides on again."""
        last = self.last._replace(step=self.last.step - 1)
        return self._replace(last=last, largest=self.largest_before, progress=self.progress_before)

    def decided(self, step: int, log_m: float) -> _Run:
        """The run with the decision after a step, from its limit and its largest statistic."""
        margin = self.last.log_threshold - self.largest
        last = self.last._replace(step=step, log_e_value=log_m, flagged=margin < 0, margin=margin)
        return self._replace(last=last)


def _checked_id(run: Hashable | None) -> Hashable:
    """Ids out of a container are NumPy's; 7 is 7, but True is not 1."""
    plain = run
    if isinstance(run, np.generic):
        plain = run.item()
    try:
        hash(plain)
        is_id = not isinstance(plain, bool) and bool(plain == plain)  # NaN would be new each time
    except (TypeError, ValueError):
        is_id = False
    if not is_id:
        raise TypeError(f"the id of a run must be text or a number, got {plain!r}")
    return "run" if plain is None else plain


def _fingerprint(test: FittedTest) -> ByName:
    """Return what identifies a fitted process, for JSON."""
    # log M and statistic after each step of a made-up run, which two processes seldom share
    statistics = []
    progress = test.live.begin()
    low, high = np.array(test.fitted_range).T
    for step, share in enumerate((0.5, 0.1, 0.9, 0.3), start=1):
        progress, log_m, statistic = test.advance(
            progress, low + share * (high - low), "trial", step, done=step == 4
        )
        statistics.append(f"{log_m:.4f} {statistic:.4f}")
    return {
        "channels": list(test.channels or ()) or test.n_channels,
        "seed": test.threshold.seed,  # depends on the scores and outcomes of the fit
        "log_odds": f"{test.log_odds:.6g}",
        "threshold": repr(test.threshold),
        "log_thresholds": [f"{test.threshold.log_threshold(a):.6g}" for a in test.alphas],
        "statistics": statistics,
    }


# --------------------------------------------------------------------------- scores


@contextmanager
def _naming_step(run_id: Hashable, step: int) -> Iterator[None]:
    """Put the run and the step before the text of an error."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"run {run_label(run_id)}, step {step}: {error}") from error


def _checked_scores(test: FittedTest, score: Any) -> FloatArray:
    """Return the scores of a step as finite numbers, one a channel."""
    in_order = score
    if isinstance(score, Mapping):
        channels = test.channels or ()
        if set(score) != set(channels):
            wanted = ", ".join(channels) or "channels without names"
            raise ValueError(
                f"scores are named {', '.join(map(str, score)) or 'not at all'}, but the process "
                f"was fitted on {wanted}; send these"
            )
        in_order = [score[name] for name in channels]
    objects = np.array(in_order, dtype=object, ndmin=1)
    # text, truth values and dates are not numbers
    if any(isinstance(part, bool) or not is_number(part) for part in objects.ravel().tolist()):
        raise ValueError(f"the score {run_label(score)} is not a number; send one, such as 0.7")
    values = objects.astype(float)
    if values.shape != (test.n_channels,):
        got: Any = values.size
        if values.ndim > 1:
            got = f"an array of shape {values.shape}"
        raise ValueError(f"expected {number_of(test.n_channels, 'score')}, got {got}")
    if not (abs(values) <= LARGEST_SCORE).all():
        raise ValueError(
            f"the score {run_label(score)} is not a finite number up to {LARGEST_SCORE:g}; "
            f"send one, or finish the run"
        )
    if not test.reads_forecasts:
        return values
    if outside_unit(values[0]):
        raise ValueError(
            f"the forecast {values[0]:g} lies outside [0, 1]; send a probability of success"
        )
    return to_unit(values)
