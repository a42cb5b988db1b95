"""What was found in a log: what is left out, and which confidences it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore import io
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import differ
from trajscore.core.values import number_of
from trajscore.io.runs import LeftOut, count_left_out
from trajscore.tracer import StepConfidence
from trajscore.tracer._stated_confidence import StatedConfidence

# What an option of the command line is called that a sentence names.
OPTIONS = {name: f"--{name}" for name in ("outcome", "confidence", "id", "outcomes")}
OPTIONS |= {"rule": "--stop"}
OPTIONS |= {"scores": "--score", "scales": "--scale", "risks": "--risk"}


@dataclass
class FromLog:
    """What was found in a log: what is left out, which confidences or signals there are."""

    n_runs: int
    left_out: list[LeftOut]
    # share of the agent's turns with each confidence; too rare is what too few runs have whole
    coverage: dict[str, float] = field(default_factory=dict)
    too_rare: dict[str, float] = field(default_factory=dict)
    # only where there is no confidence to judge: in how many turns TRACER found which signal
    n_turns: int | None = None
    n_signals: dict[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()  # scores of the log, rows of a table of outcomes
    has_unread: bool = False  # log-probabilities in no known form

    def __str__(self) -> str:
        lines = [count_left_out(self.left_out, self.n_runs)] if self.left_out else []
        turns = "of the agent's turns"
        lines += [f"{name}: in {share:.0%} {turns}" for name, share in self.coverage.items()]
        lines += [
            f"{name}: in {share:.0%} {turns}; too few runs have it at every turn (--missing ffill "
            f"uses the value before)"
            for name, share in self.too_rare.items()
        ]
        if self.n_turns is not None:
            counts = ", ".join(f"{name} {n:,}" for name, n in self.n_signals.items())
            problem = "the log has no confidence (neither token log-probabilities nor stated ones)"
            problem = "no confidence of the log could be read" if self.has_unread else problem
            lines.append(f"{problem}; judging it by minus TRACER's risk")
            turns = number_of(self.n_turns, "turn")
            lines.append(f"TRACER signals present in {turns}: {counts}")
            lines += self.remarks
        lines += [ArgumentError(remark).in_options(OPTIONS) for remark in self.unused]
        return "\n".join(lines)


def find_confidences(
    runs: list[io.Run],
    y: NDArray[Any],
    origin: FromLog,
    missing: str = "same_runs",
    scale: str | float = "auto",
) -> dict[str, TrajectoryArray]:
    """Return the confidences that enough runs have at every turn of the agent."""
    X = StepConfidence(scale=scale).fit_transform(runs)
    there = ~np.isnan(X.cells)
    known = ~np.isnan(X.ffill().cells) if missing == "ffill" else there
    whole = np.logical_and.reduceat(known, X.offsets[:-1], axis=0)
    for column, name in enumerate(X.channels or ()):
        share = float(there[:, column].mean())
        rows = whole[:, column]
        if differ(y[rows]):
            origin.coverage[name] = share
        elif share:
            origin.too_rare[name] = share
    if scale == "auto" and not there[:, 0].all():
        origin.unused += _unknown_scale(runs)
    return {name: X[name] for name in origin.coverage}


def _unknown_scale(runs: list[io.Run]) -> tuple[str, ...]:
    """Say how many stated confidences are missing because their scale is not known."""
    steps = [step for run in runs for step in run.steps if step.actor == "agent"]
    missing = np.flatnonzero(np.isnan(StatedConfidence()(steps)))
    of_ten = 10 * StatedConfidence(scale=10.0)([steps[k] for k in missing])
    unread = of_ten[~np.isnan(of_ten)]
    if not len(unread):
        return ()
    top = next(top for top in (1, 5, 10) if unread.max() <= top)
    values = "of 1" if top == 1 else f"from {unread.min():g} to {unread.max():g}"
    top = 100 if top == 1 else top
    other = "certainty or 1 of 100" if top == 100 else f"per cent or of {top}"
    text = (
        f"{number_of(len(unread), 'stated confidence')} {values} not read, which may be {other}; "
        f"if {top} means certainty, pass {{argument:scales=verbal={top}}}"
    )
    return (text,)
