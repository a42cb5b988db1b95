"""What was found in a log, and which confidences it holds."""

import numpy as np
import pytest

from trajscore import io
from trajscore.report._from_log import FromLog, find_confidences


def said(*texts, actor="agent", run_id="a"):
    return io.Run(run_id, [io.Step(actor, text) for text in texts])


def stated(*numbers):
    """A run that states confidences; of None nothing."""
    return said(*("x" if number is None else f"Confidence: {number}" for number in numbers))


def test_what_was_found_is_said_line_by_line():
    assert str(FromLog(3, [])) == ""
    found = FromLog(3, [], {"verbal": 0.256, "logprob": 1.0}, {"field": 0.5})
    assert str(found).split("\n") == [
        "verbal: in 26% of the agent's turns",
        "logprob: in 100% of the agent's turns",
        (
            "field: in 50% of the agent's turns; too few runs have it at every turn "
            "(--missing ffill uses the value before)"
        ),
    ]
    signals = {"loop": 1200, "tail": 0}
    found = FromLog(3, [], n_turns=1, n_signals=signals, remarks=("One.", "Two."))
    assert str(found).split("\n") == [
        (
            "the log has no confidence (neither token log-probabilities nor stated ones); "
            "judging it by minus TRACER's risk"
        ),
        "TRACER signals present in 1 turn: loop 1,200, tail 0",
        "One.",
        "Two.",
    ]
    unused = FromLog(3, [], remarks=("One.",), unused=("pass {argument:scales=verbal=10}",))
    assert str(unused) == "pass --scale verbal=10"
    assert "in 0 turns: " in str(FromLog(3, [], n_turns=0))


@pytest.mark.parametrize(
    ("runs", "y", "missing", "coverage", "too_rare"),
    [
        ([(0.5, 0.6), (0.7,)], [1, 0], "same_runs", 1.0, None),
        ([(0.5, 0.6), (0.7,)], [1, 1], "same_runs", None, 1.0),  # of one outcome
        ([(0.5, None), (0.7,), (0.2,)], [1, 0, 0], "same_runs", None, 0.75),
        ([(0.5, None), (0.7,), (0.2,)], [1, 0, 0], "ffill", 0.75, None),
        ([(None, 0.5), (0.7,), (0.2,)], [1, 0, 0], "ffill", None, 0.75),
        ([(0.5, None), (0.7,), (0.2,)], [0, 1, 0], "same_runs", 0.75, None),
        ([(0.5,), (0.7,), (None,)], [1, 1, -1], "same_runs", None, 2 / 3),
        ([(None, None), (None,)], [1, 0], "same_runs", None, None),
    ],
)
def test_a_confidence_is_used_if_runs_of_both_outcomes_have_it_whole(
    runs, y, missing, coverage, too_rare
):
    origin = FromLog(len(runs), [])
    logged = [
        io.Run(str(k), [io.Step("agent", "x", confidence=one) for one in run])
        for k, run in enumerate(runs)
    ]
    found = find_confidences(logged, np.array(y), origin, missing)
    assert list(origin.coverage.values()) == ([] if coverage is None else [pytest.approx(coverage)])
    assert list(origin.too_rare.values()) == ([] if too_rare is None else [pytest.approx(too_rare)])
    assert list(found) == list(origin.coverage)
    for trace in found.values():
        cells = [np.nan if one is None else one for run in runs for one in run]
        np.testing.assert_array_equal(trace.cells, cells)
    assert origin.unused == ()


@pytest.mark.parametrize(
    ("runs", "counted", "other", "top"),
    [
        ([(5, "80%"), ("90%",)], "1 stated confidence from 5 to 5", "per cent or of 5", 5),
        ([("80%", 3), (4.5,)], "2 stated confidences from 3 to 4.5", "per cent or of 5", 5),
        ([("9%", "80%"), (5.5,)], "1 stated confidence from 5.5 to 5.5", "per cent or of 10", 10),
        ([(2, 10), ("90%", None)], "2 stated confidences from 2 to 10", "per cent or of 10", 10),
        ([(1, 50), (80, 1)], "2 stated confidences of 1", "certainty or 1 of 100", 100),
        ([("80%", None), ("90%",)], "", "", 0),  # missing, but nothing is stated there
        ([("80%", "150%"), ("90%",)], "", "", 0),  # no scale makes it a confidence
    ],
)
def test_confidences_whose_scale_is_not_known_are_counted(runs, counted, other, top):
    logged = [stated(*run) for run in runs]
    logged[0].steps.insert(1, io.Step("user", "Confidence: 7"))  # not the agent's
    origin, known = FromLog(2, []), FromLog(2, [])
    find_confidences(logged, np.array([1, 0]), origin)
    assert list(origin.unused) == [
        (
            f"{counted} not read, which may be {other}; if {top} means certainty, pass "
            f"{{argument:scales=verbal={top}}}"
        )
    ] * bool(counted)
    find_confidences(logged, np.array([1, 0]), known, scale=100.0)
    assert known.unused == ()
