"""What came of gates: numbers, words for a terminal, and JSON, Markdown and JUnit for machines."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from trajscore.core.plain import plain
from trajscore.core.version import __version__
from trajscore.gates._change import Matching
from trajscore.gates._compare import interval, more_runs, pairing
from trajscore.gates._gate import FAIL, PASS, UNDECIDED, UNUSABLE, Gate, Rules
from trajscore.gates._run_set import FORMAT, VERSION, RunSet
from trajscore.report.render.as_markdown import escaped, table

EXIT_CODES = {PASS: 0, FAIL: 1, UNUSABLE: 2, UNDECIDED: 3}
WORST_FIRST = (UNUSABLE, FAIL, UNDECIDED, PASS)
_HEAD = ("", "gate", "reference", "new", "change", "")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TO_DECIDE = "To settle this, collect more runs or allow a wider margin."
_ONE_LOOK = (
    "These bounds are for one look at the runs. To look again as runs arrive, use "
    "gates.check_sequential (trajscore check --sequential)."
)


def worst(verdicts: Iterable[str], problems: Sequence[str]) -> str:
    """Return the worst verdict; where the data have problems, it is "unusable"."""
    known = {*verdicts, *[UNUSABLE] * bool(problems)}
    return next((verdict for verdict in WORST_FIRST if verdict in known), PASS)


@dataclass(frozen=True)
class GateResult:
    """What came of one gate."""

    gate: Gate
    verdict: str  # "pass", "fail", "undecided" or "unusable", as the bounds say
    counts_as: str  # the verdict, but for undecided gates that are to pass or to fail
    value: float = np.nan  # of the new set
    reference: float = np.nan  # what it is held against
    change: float = np.nan
    # bounds of the change; each holds for all gates at once with a chance of 1 - level
    low: float = np.nan
    high: float = np.nan
    # in each set, in total, to decide the gate with a chance of 0.8 if the change is what was seen;
    # inf for more than a million, NaN where it is decided or cannot be said
    runs_needed: float = np.nan
    why: str = ""  # a gate is unusable


@dataclass(frozen=True)
class CheckResult:
    """What `check` found.

    Attributes
    ----------
    verdict : {"pass", "fail", "undecided", "unusable"}
        The worst of all gates; "unusable" where the data are not what the rules ask for.
    passed, exit_code : bool, int
        Whether it is "pass"; 0 pass, 1 fail, 2 unusable, 3 undecided.
    gates : list of GateResult
        What came of each gate.
    problems : list of str
        What is wrong with the data.
    rules : Rules
        What was asked for.
    new, baseline : RunSet
        The sets; the baseline may be None.
    matched : Matching or None
        How they are paired.
    """

    verdict: str
    gates: list[GateResult]
    problems: list[str]
    rules: Rules
    new: RunSet = field(repr=False)
    baseline: RunSet | None = field(repr=False)
    matched: Matching | None = field(repr=False)

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
        lines += [f"unusable   {problem}" for problem in self.problems]
        lines += [f"{gate.verdict:<10} {sentence(gate, self.new)}" for gate in self.gates]
        lines.append(f"{self.verdict.upper()}: {self._summary()}")
        if self.verdict == UNDECIDED:
            lines.append(_TO_DECIDE)
        return "\n".join([*lines, *self._looks()])

    def to_json(self) -> str:
        """Return everything, the runs too, so that the text serves as the next baseline."""
        matched = self.matched
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "trajscore": __version__,
                "verdict": self.verdict,
                "exit_code": self.exit_code,
                "level": self.rules.level,
                "problems": self.problems,
                "gates": plain([_fields(gate) for gate in self.gates]),
                "paired_by": matched.by if matched else None,
                "n_tasks": {
                    "common": matched.n_common, "new": matched.n_new, "removed": matched.n_gone,
                } if matched else None,
                "n_runs": self.new.n_runs,
                "n_left_out": self.new.n_left_out,
                "n_unobserved": self.new.n_unobserved,
                "runs": self.new.to_json(),
            },
            allow_nan=False,
        )  # fmt: skip

    def to_markdown(self) -> str:
        """Return a table of the gates, as for the summary of a job."""
        lines = [f"## {self.verdict.capitalize()}: {self._summary()}", "", self._about(), ""]
        lines += [_TO_DECIDE, ""] if self.verdict == UNDECIDED else []
        lines += [f"- **unusable**: {escaped(problem)}" for problem in self.problems]
        rows = []
        for gate in self.gates:
            cells = ["", "", gate.why, ""]
            if gate.verdict != UNUSABLE:
                more = more_runs(gate.runs_needed, self.new) if gate.verdict == UNDECIDED else ""
                cells = [f"{gate.reference:.4g}", f"{gate.value:.4g}", _change(gate), more]
            rows.append([gate.verdict, str(gate.gate), *cells])
        lines += [table(_HEAD, rows)] if rows else []
        return "\n".join([*lines, *(f"\n{item}" for item in self._looks())]) + "\n"

    def to_junit(self) -> str:
        """Return a test a gate: failed, skipped where undecided, an error where unusable."""
        suite = ET.Element("testsuite", name="trajscore check")
        kinds = {FAIL: "failure", UNDECIDED: "skipped", UNUSABLE: "error"}
        tests = [(str(gate.gate), gate.counts_as, sentence(gate, self.new)) for gate in self.gates]
        tests += [("data", UNUSABLE, problem) for problem in self.problems]
        for name, verdict, text in tests:
            case = ET.SubElement(
                suite, "testcase", classname="trajscore.check", name=_NOT_IN_XML.sub("?", name)
            )
            if verdict != PASS:
                ET.SubElement(case, kinds[verdict], message=_NOT_IN_XML.sub("?", text))
        counts = Counter(verdict for _, verdict, _ in tests)
        suite.attrib |= {
            "tests": str(len(tests)),
            "failures": str(counts[FAIL]),
            "errors": str(counts[UNUSABLE]),
            "skipped": str(counts[UNDECIDED]),
        }
        ET.indent(suite)
        return ET.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"

    def _looks(self) -> list[str]:
        return [_ONE_LOOK] if any(gate.low < gate.high for gate in self.gates) else []

    def _about(self) -> str:
        if self.baseline is None or self.matched is None:
            return f"{self.new.counted}, success {self.new.success_rate:.3f}"
        return pairing(self.baseline, self.new, self.matched)

    def _summary(self) -> str:
        if self.problems:
            return "; ".join(self.problems)
        if not self.gates:
            return "no gates were checked"
        best_first = sorted(self.gates, key=lambda gate: -WORST_FIRST.index(gate.verdict))
        counts = Counter(gate.verdict + _counted_as(gate, ", counted") for gate in best_first)
        came = ", ".join(f"{n} {words}" for words, n in counts.items())
        at_once = ", for all gates at once" if len(self.gates) > 1 else ""
        if not self._looks():
            return came
        chance = f"{1 - self.rules.level:.0%}"
        return f"{came}; each end of an interval holds with a chance of {chance}{at_once}"


def sentence(result: GateResult, new: RunSet) -> str:
    """Say what came of a gate, and by what numbers."""
    text = f"{result.gate}: {numbers(result)}"
    if result.verdict == UNDECIDED:
        text += f"; {more_runs(result.runs_needed, new)}{_counted_as(result, '; counts')}"
    return text


def numbers(result: GateResult) -> str:
    """Write the numbers of a gate, or why there are none."""
    if result.why:
        return result.why
    return f"{result.reference:.4g} -> {result.value:.4g}, change {_change(result)}"


def _change(result: GateResult) -> str:
    ends = f" {interval(result.low, result.high)}" if result.low < result.high else ""
    return f"{result.change:+.3g}{ends}"


def _counted_as(result: GateResult, words: str) -> str:
    return "" if result.counts_as == result.verdict else f"{words} as {result.counts_as}"


def _fields(result: GateResult) -> dict[str, Any]:
    """All fields of a gate and of what came of it, but for what undecided gates count as."""
    fields = asdict(result)
    gate = fields.pop("gate")
    del gate["undecided"]
    return gate | fields
