"""What a check found, in words for a terminal, and as JSON, Markdown and JUnit for machines."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any
from xml.etree import ElementTree as ET

from trajscore.core.plain import plain
from trajscore.core.version import __version__
from trajscore.gates._compare import in_runs, interval, pairing
from trajscore.gates._gate import FAIL, PASS, UNDECIDED, UNUSABLE
from trajscore.gates._result import WORST_FIRST, CheckData, GateResult
from trajscore.gates._run_set import FORMAT, VERSION
from trajscore.report.render.as_markdown import escaped, table

_HEAD = ("", "gate", "reference", "new", "change", "")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TO_DECIDE = "To settle this, collect more runs or allow a wider margin."
_ONE_LOOK = (
    "These bounds are for one look at the runs. To look again as runs arrive, use "
    "gates.check_sequential (trajscore check --sequential)."
)


def to_text(result: CheckData) -> str:
    """Return one line a gate, and the verdict."""
    lines = [_about(result)]
    lines += [f"unusable   {item}" for item in result.problems]
    lines += [f"{item.verdict:<10} {sentence(item)}" for item in result.gates]
    lines.append(f"{result.verdict.upper()}: {_summary(result)}")
    if result.verdict == UNDECIDED:
        lines.append(_TO_DECIDE)
    return "\n".join(lines + _looks(result))


def sentence(result: GateResult) -> str:
    """Say what came of a gate, and by what numbers."""
    if result.verdict == UNUSABLE:
        return f"{result.gate}: {result.why}"
    text = (
        f"{result.gate}: {result.reference:.4g} -> {result.value:.4g}, change {result.change:+.3g}"
    )
    if result.low < result.high:
        text += f" {interval(result.low, result.high)}"
    if result.verdict == UNDECIDED:
        text += f"; {in_runs(result.runs_needed)}"
        if result.counts_as != UNDECIDED:
            text += f"; counts as {result.counts_as}"
    return text


def to_json(result: CheckData) -> str:
    """Return everything, the runs too, so that the file serves as the next baseline."""
    matched = result.matched
    return json.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "trajscore": __version__,
            "verdict": result.verdict,
            "exit_code": result.exit_code,
            "level": result.rules.level,
            "problems": result.problems,
            "gates": plain([_fields(gate) for gate in result.gates]),
            "paired_by": matched.by if matched else None,
            "n_tasks": {
                "common": matched.n_common, "new": matched.n_new, "removed": matched.n_gone,
            } if matched else None,
            "n_runs": result.new.n_runs,
            "n_left_out": result.new.n_left_out,
            "n_unobserved": result.new.n_unobserved,
            "runs": result.new.to_json(),
        },
        allow_nan=False,
    )  # fmt: skip


def to_markdown(result: CheckData) -> str:
    """Return a table of the gates, as for the summary of a job."""
    lines = [f"## {result.verdict.capitalize()}: {_summary(result)}", "", _about(result), ""]
    lines += [_TO_DECIDE, ""] if result.verdict == UNDECIDED else []
    lines += [f"- **unusable**: {escaped(item)}" for item in result.problems]
    rows = []
    for item in result.gates:
        cells = ["", "", item.why, ""]
        if item.verdict != UNUSABLE:
            ends = f" {interval(item.low, item.high)}" if item.low < item.high else ""
            needed = in_runs(item.runs_needed) if item.verdict == UNDECIDED else ""
            cells = [
                f"{item.reference:.4g}",
                f"{item.value:.4g}",
                f"{item.change:+.3g}{ends}",
                needed,
            ]
        rows.append([item.verdict, str(item.gate), *cells])
    lines += [table(_HEAD, rows)] if rows else []
    return "\n".join([*lines, *(f"\n{item}" for item in _looks(result))]) + "\n"


def to_junit(result: CheckData) -> str:
    """Return a test a gate: failed, skipped where undecided, an error where unusable."""
    suite = ET.Element("testsuite", name="trajscore check")
    counts = dict.fromkeys((FAIL, UNDECIDED, UNUSABLE), 0)
    kinds = {FAIL: "failure", UNDECIDED: "skipped", UNUSABLE: "error"}
    tests = [(str(item.gate), item.counts_as, sentence(item)) for item in result.gates]
    tests += [("data", UNUSABLE, item) for item in result.problems]
    for name, verdict, text in tests:
        case = ET.SubElement(
            suite, "testcase", classname="trajscore.check", name=_NOT_IN_XML.sub("?", name)
        )
        if verdict == PASS:
            continue
        counts[verdict] += 1
        ET.SubElement(case, kinds[verdict], message=_NOT_IN_XML.sub("?", text))
    suite.attrib |= {
        "tests": str(len(tests)),
        "failures": str(counts[FAIL]),
        "errors": str(counts[UNUSABLE]),
        "skipped": str(counts[UNDECIDED]),
    }
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def _looks(result: CheckData) -> list[str]:
    return [_ONE_LOOK] if any(gate.low < gate.high for gate in result.gates) else []


def _about(result: CheckData) -> str:
    if result.baseline is None or result.matched is None:
        return f"{result.new.counted}, success {result.new.labels.mean():.3f}"
    return pairing(result.baseline, result.new, result.matched)


def _summary(result: CheckData) -> str:
    if result.problems:
        return "; ".join(result.problems)
    if not result.gates:
        return "no gates were checked"
    best_first = sorted(result.gates, key=lambda gate: -WORST_FIRST.index(gate.verdict))
    counts = Counter(_verdict_in_words(gate) for gate in best_first)
    came = ", ".join(f"{n} {words}" for words, n in counts.items())
    at_once = ", for all gates at once" if len(result.gates) > 1 else ""
    if not _looks(result):
        return came
    chance = f"{1 - result.rules.level:.0%}"
    return f"{came}; each end of an interval holds with a chance of {chance}{at_once}"


def _verdict_in_words(result: GateResult) -> str:
    return result.verdict + f", counted as {result.counts_as}" * (
        result.counts_as != result.verdict
    )


def _fields(result: GateResult) -> dict[str, Any]:
    gate = result.gate
    numbers = ("value", "reference", "change", "low", "high", "runs_needed")
    return {
        "metric": gate.metric,
        "predictor": gate.predictor,
        "form": gate.form,
        "versus": gate.versus,
        "margin": gate.margin,
        "use": gate.use,
        "verdict": result.verdict,
        "counts_as": result.counts_as,
        **{name: getattr(result, name) for name in numbers},
        "why": result.why,
    }
