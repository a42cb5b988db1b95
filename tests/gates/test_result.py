"""What came of gates, in words and for machines, from results made by hand."""

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from trajscore.gates import Gate, RunSet
from trajscore.gates._change import match
from trajscore.gates._gate import Rules
from trajscore.gates._result import CheckResult, GateResult

RUNS = RunSet(None, [1, 0, 1, 1], tasks=list("abab"))
ONE_LOOK = "These bounds are for one look at the runs."


def came(verdict, **fields):
    fields = {"value": 0.5, "reference": 0.75, "change": -0.25, "low": -0.4, "high": -0.1} | fields
    return GateResult(Gate(), verdict, **fields)


PASSED = came("pass")
UNDECIDED = came("undecided", runs_needed=123.0)
ENDLESS = came("undecided", runs_needed=np.inf)
FAILED = came("fail", low=-0.25, high=-0.25)
UNUSABLE = GateResult(Gate("speed"), "unusable", why="no metric named 'speed'")


def check_of(*gates, problems=(), baseline=RUNS, **options):
    matched = None if baseline is None else match(baseline, RUNS)
    rules = Rules((Gate(),), **options)
    return CheckResult(list(gates), list(problems), rules, RUNS, baseline, matched)


@pytest.mark.parametrize(
    ("gates", "options", "verdict", "code"),
    [
        ((), {}, "pass", 0),
        ((PASSED, UNDECIDED), {}, "undecided", 3),
        ((PASSED, UNDECIDED), {"undecided": "pass"}, "pass", 0),
        ((PASSED, UNDECIDED), {"undecided": "fail"}, "fail", 1),
        ((UNDECIDED, FAILED, PASSED), {}, "fail", 1),
        ((FAILED, UNUSABLE), {}, "unusable", 2),
        ((PASSED,), {"problems": ["no data"]}, "unusable", 2),
    ],
)
def test_the_worst_verdict_and_its_exit_code(gates, options, verdict, code):
    result = check_of(*gates, **options)
    assert (result.verdict, result.exit_code) == (verdict, code)
    assert result.passed == (verdict == "pass")


SEEN = "0.75 -> 0.5, change -0.25"
WITH_ENDS = f"{SEEN} [-0.4, -0.1]"
ROSE = came("fail", change=0.12345, low=0.1, high=0.2)


MILLION = "more than a million runs in each set would settle it"


@pytest.mark.parametrize(
    ("gate", "text", "advice"),
    [
        (PASSED, WITH_ENDS, ""),
        (FAILED, SEEN, ""),
        (ROSE, "0.75 -> 0.5, change +0.123 [+0.1, +0.2]", ""),
        (UNUSABLE, "no metric named 'speed'", ""),
        (UNDECIDED, WITH_ENDS, "; about 200 more runs in each set would settle it"),
        (ENDLESS, WITH_ENDS, f"; {MILLION}"),
    ],
)
def test_sentences(gate, text, advice):
    line = f"{gate.verdict:<10} {gate.gate}: {text}{advice}"
    assert line in str(check_of(gate)).splitlines()
    counted = "; counts as fail" if gate.verdict == "undecided" else ""
    assert f"{line}{counted}" in str(check_of(gate, undecided="fail")).splitlines()


CHANCE = "each end of an interval holds with a chance of 95%"
AT_ONCE = "for all gates at once"


@pytest.mark.parametrize(
    ("gates", "summary"),
    [
        ((), "no gates were checked"),
        ((FAILED,), "1 fail"),
        ((FAILED, FAILED), "2 fail"),
        ((PASSED,), f"1 pass; {CHANCE}"),
        (
            (FAILED, PASSED, ENDLESS, UNDECIDED),
            f"1 pass, 2 undecided, 1 fail; {CHANCE}, {AT_ONCE}",
        ),
    ],
)
def test_the_last_line_counts_verdicts_the_best_first(gates, summary):
    lines = str(check_of(*gates)).splitlines()
    assert lines[len(gates) + 1].endswith(f": {summary}")
    assert (ONE_LOOK in str(check_of(*gates))) == any(gate is not FAILED for gate in gates)


def test_the_chance_is_that_of_the_rules():
    assert "with a chance of 90%" in str(check_of(PASSED, level=0.1))


def test_all_lines_of_a_text():
    result = check_of(FAILED, UNUSABLE, problems=["no data", "no runs"])
    head, *lines = str(result).splitlines()
    assert head.endswith("Paired by task: 2 in both, 0 only in the new set, 0 only in the base.")
    assert lines == [
        "unusable   no data",
        "unusable   no runs",
        f"fail       success no worse than the baseline: {SEEN}",
        "unusable   speed no worse than the baseline: no metric named 'speed'",
        "UNUSABLE: no data; no runs",
    ]
    alone = str(check_of(FAILED, baseline=None)).splitlines()[0]
    assert alone == "4 runs of 2 tasks, success 0.750"


def test_only_an_undecided_check_says_how_to_settle_it():
    advice = "To settle this, collect more runs or allow a wider margin."
    for undecided, times in (("undecided", 1), ("fail", 0)):
        assert str(check_of(UNDECIDED, undecided=undecided)).count(advice) == times


def test_junit():
    gates = (PASSED, FAILED, UNDECIDED, UNUSABLE)
    suite = ET.fromstring(check_of(*gates, problems=["no \x00 data"]).to_junit())
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 5, "failures": 1, "errors": 2, "skipped": 1}
    cases = [(case.get("name"), [part.tag for part in case]) for case in suite]
    name = str(Gate())
    assert cases == [
        (name, []), (name, ["failure"]), (name, ["skipped"]),
        (str(Gate("speed")), ["error"]), ("data", ["error"]),
    ]  # fmt: skip
    assert suite[4][0].get("message") == "no ? data"
    assert suite[1][0].get("message") == f"{name}: {SEEN}"


def test_json():
    written = json.loads(check_of(UNDECIDED, UNUSABLE, problems=["p"]).to_json())
    first, second = written["gates"]
    assert (written["verdict"], written["exit_code"], written["level"]) == ("unusable", 2, 0.05)
    assert written["problems"] == ["p"]
    assert written["n_tasks"] == {"common": 2, "new": 0, "removed": 0}
    assert (written["n_runs"], written["n_left_out"], written["n_unobserved"]) == (4, 0, 0)
    assert (written["paired_by"], written["runs"]) == ("task", RUNS.to_json())
    assert (first["metric"], first["verdict"], first["runs_needed"]) == (
        "success",
        "undecided",
        123,
    )
    assert (second["value"], second["why"]) == (None, "no metric named 'speed'")
    alone = json.loads(check_of(baseline=None).to_json())
    assert (alone["paired_by"], alone["n_tasks"]) == (None, None)
