"""What came of gates: numbers, words for a terminal, and JSON for machines."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from trajscore.core.plain import plain
from trajscore.core.version import __version__
from trajscore.core.visible import visible
from trajscore.gates._change import Matching
from trajscore.gates._compare import WITHOUT_TASKS, interval, more_runs, pairing
from trajscore.gates._gate import FAIL, PASS, UNDECIDED, UNUSABLE, Gate, Rules
from trajscore.gates._run_set import RunSet

EXIT_CODES = {UNUSABLE: 2, FAIL: 1, UNDECIDED: 3, PASS: 0}  # the worst first
_TO_DECIDE = "To settle this, collect more runs or allow a wider margin."
_ONE_LOOK = (
    "These bounds are for one look at the runs. To look again as runs arrive, use "
    "inference.SequentialComparison."
)


@dataclass(frozen=True)
class GateResult:
    """What came of one gate."""

    gate: Gate
    verdict: str  # "pass", "fail", "undecided" or "unusable", as the bounds say
    value: float = np.nan  # of the new set
    reference: float = np.nan  # what it is held against
    change: float = np.nan
    # bounds of the change; each holds for all gates at once with a chance of 1 - level
    low: float = np.nan
    high: float = np.nan
    # in each set, in total, to decide the gate with a chance of 0.8 if the change is what was seen;
    # inf for more than a million, NaN where it is decided or cannot be said
    runs_needed: float = np.nan
    why: str = ""  # a gate is unusable, or undecided whatever the number of runs


@dataclass(frozen=True)
class CheckResult:
    """What `check` found.

    Attributes
    ----------
    verdict : {"pass", "fail", "undecided", "unusable"}
        The worst of all gates, where undecided ones count as the rules say.
    passed, exit_code : bool, int
        Whether it is "pass"; 0 pass, 1 fail, 2 unusable, 3 undecided.
    gates : list of GateResult
        What came of each gate.
    rules : Rules
        What was asked for.
    new, baseline : RunSet
        The sets; the baseline may be None.
    matched : Matching or None
        How they are paired.
    """

    gates: list[GateResult]
    rules: Rules
    new: RunSet = field(repr=False)
    baseline: RunSet | None = field(repr=False)
    matched: Matching | None = field(repr=False)

    @property
    def verdict(self) -> str:
        """The worst verdict of all gates."""
        verdicts = {self._counts_as(gate) for gate in self.gates}
        return next((verdict for verdict in EXIT_CODES if verdict in verdicts), PASS)

    @property
    def passed(self) -> bool:
        """Whether all gates count as passed."""
        return self.verdict == PASS

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 2 unusable, 3 undecided."""
        return EXIT_CODES[self.verdict]

    def __str__(self) -> str:
        lines = [self._about()]
        lines += [f"{gate.verdict:<10} {self._sentence(gate)}" for gate in self.gates]
        lines.append(f"{self.verdict.upper()}: {self._summary()}")
        if self.verdict == UNDECIDED:
            lines.append(_TO_DECIDE)
        lines += [_ONE_LOOK] if self._has_intervals() else []
        return visible("\n".join(lines))

    def to_json(self) -> str:
        """Return the verdict, each gate with its numbers, and how the sets are paired."""
        matched = self.matched
        return json.dumps(
            {
                "format": "trajscore check",
                "version": 1,
                "trajscore": __version__,
                "verdict": self.verdict,
                "exit_code": self.exit_code,
                "level": self.rules.level,
                "gates": plain([_fields(gate) for gate in self.gates]),
                "paired_by": matched and matched.by,
                "n_paired": matched and matched.n_common,
                "n_runs": self.new.n_runs,
                "n_left_out": self.new.n_left_out,
                "n_unobserved": self.new.n_unobserved,
            },
            allow_nan=False,
        )

    def _has_intervals(self) -> bool:
        return any(gate.low < gate.high for gate in self.gates)

    def _counts_as(self, gate: GateResult) -> str:
        return self.rules.undecided if gate.verdict == UNDECIDED else gate.verdict

    def _sentence(self, gate: GateResult) -> str:
        """Say what came of a gate, and by what numbers."""
        text = f"{gate.gate}: {_numbers(gate)}"
        if gate.verdict == UNDECIDED:
            text += f"; {gate.why or more_runs(gate.runs_needed, self.new)}"
            if self.rules.undecided != UNDECIDED:
                text += f"; counts as {self.rules.undecided}"
        return text

    def _about(self) -> str:
        if self.baseline is None or self.matched is None:
            aside = "" if self.new.tasks is not None else f"; {WITHOUT_TASKS}"
            return f"{self.new.counted}, success {self.new.success_rate:.3f}{aside}"
        return pairing(self.baseline, self.new, self.matched)

    def _summary(self) -> str:
        counts = Counter(gate.verdict for gate in self.gates)
        came = ", ".join(
            f"{counts[verdict]} {verdict}" for verdict in reversed(EXIT_CODES) if counts[verdict]
        )
        at_once = ", for all gates at once" if len(self.gates) > 1 else ""
        if not self._has_intervals():
            return came
        chance = f"{100 * (1 - self.rules.level):.4g}%"
        return f"{came}; each end of an interval holds with a chance of {chance}{at_once}"


def _numbers(result: GateResult) -> str:
    """Write the numbers of a gate, or why there are none."""
    if result.verdict == UNUSABLE:
        return result.why
    ends = f" {interval(result.low, result.high)}" if result.low < result.high else ""
    return f"{result.reference:.4g} -> {result.value:.4g}, change {result.change:+.3g}{ends}"


def _fields(result: GateResult) -> dict[str, Any]:
    """All fields of a gate and of what came of it."""
    fields = asdict(result)
    return fields.pop("gate") | fields
