"""What each metric refuses, and what its error names."""

import numpy as np
import pandas as pd
import pytest

from refused import not_refused
from trajscore import TrajectoryArray, metrics
from trajscore.metrics import Answers

NAN, INF = np.nan, np.inf
Y, F = [1, 0], [[0.5], [0.5]]
NAMED = TrajectoryArray([0.5, 0.5], [1, 1], ids=["a", "b"])
NOTHING = TrajectoryArray([], [])
OBSERVED = ([-1, 0], NAMED, {}, "run 'a': the outcome is not observed")
LENGTHS = ([1], NAMED, {}, "1 outcome for 2 runs")
EMPTY = ([], NOTHING, {}, "no runs")
INSIDE = (Y, NAMED.with_cells([0.5, 1.5]), {}, r"1.5 lies outside \[0, 1\]")
SIMPSON = "rule .* got 'simpson'"
OF_ANSWERS = [
    ([1, 0], [NAN, 1], {}, "row 0: confidence is nan"),
    ([1, 0.5], [0, 7], {}, "row 1: correct is 0.5; it must be 0 or 1"),
    ([1, 0, 1], [0, 1], {}, r"correct has shape \(3,\) and confidence \(2,\)"),
    ([], [], {}, "at least one value"),
    (["yes"], [1], {}, "correct must be numbers"),
    ([1, 0], [1, 0], {"sample_weight": [1]}, "sample_weight"),
]
CODES, PASSED = [1, -1], {"u_max": 1}
ASK, BOTH = ["q", "q"], ["a", "b"]
FOUR = [[0.9, 0.8, 0.7], [0.4, 0.2, NAN], [0.5, 0.6, NAN], [0.3, NAN, NAN]]
HALVES = Answers.from_proba([0, 1], [[0.5, 0.5], [0.9, 0.1]])
SURE = Answers.from_confidence([1, 0], [0.9, 0.5])
BAD = [
    (metrics.tps_score, [
        OBSERVED, LENGTHS, EMPTY, INSIDE,
        (Y, F, {"score": "logg"}, "score 'logg'"),
        (Y, F, {"weights": "linear_front"}, "horizon='own'"),
        (Y, F, {"normalize": "no"}, "normalize .* got 'no'"),
    ]),
    (metrics.tps_samples, [(Y, F, {"normalize": "no"}, "normalize .* got 'no'")]),
    (metrics.tps_decomposition, [
        OBSERVED, LENGTHS, EMPTY, INSIDE,
        (Y, F, {"by": "run"}, "by must be .* got 'run'"),
        (Y, F, {"sample_weight": [1, -1]}, "row 1: sample_weight is -1"),
        (Y, F, {"weights": lambda step: [0, 1]}, "weights for steps 1 to 1"),
    ]),
    (metrics.trajectory_diagnostics, [
        OBSERVED, LENGTHS, EMPTY,
        (Y, F, {"phi": "max"}, "phi .* got 'max'"),
        (Y, F, {"strategy": "equal"}, "strategy .* got 'equal'"),
        *((Y, F, {"n_bins": n}, "n_bins") for n in (0, 1.5, True, None, "ten")),
    ]),
    (metrics.step_calibration_error, [
        OBSERVED, LENGTHS, EMPTY, INSIDE,
        (Y, F, {"part": "first"}, "part must be .*, got 'first'"),
        (Y, F, {"strategy": "kmeans"}, "strategy must be .*, got 'kmeans'"),
        (Y, F, {"n_bins": 0}, "n_bins"),
        (Y, F, {"weights": "front"}, "weights 'front'"),
    ]),
    (metrics.tps_sensitivity, [
        OBSERVED, LENGTHS, EMPTY,
        (Y, {"base rate": F}, {}, "'base rate' .* rename the predictor"),
        (Y, {"a": [[0.5], [1.5]]}, {}, "predictor 'a': .* lies outside"),
        (Y, {"a": F, "b": [[0.5], [0.5, 0.5]]}, {}, "1 and 2 steps in row 1"),
    ]),
    (metrics.step_profile, [
        LENGTHS, INSIDE,
        ([1, 0, -1, 0], FOUR, {"q_z": 2}, "row 2: .*q_z is 2"),
        (Y, F, {"score": "bier"}, "score 'bier'"),
    ]),
    (metrics.censored_tps_score, [
        LENGTHS, EMPTY, INSIDE,
        (CODES, F, {"q_z": [0.5, NAN]}, "row 1: .*q_z is nan"),
        (CODES, F, {"q_z": [0.5, 1.2]}, r"row 1: .*q_z is 1\.2"),
        (CODES, F, {"q_z": pd.Series([0.5, None], dtype="Float64")}, "row 1: .*q_z is nan"),
        (CODES, F, {"q_z": [0.5]}, "q_z.* one for each run"),
        *((CODES, F, {"q_z": q_z}, "q_z must be numbers") for q_z in ("a", [0.5, {}])),
        (CODES, F, {"normalize": 1.5}, "normalize .* got 1.5"),
    ]),
    (metrics.regret, [
        ([[0.5, 0.5]], [[0.5]], {}, "q_true and traces have 2 and 1 steps in row 0"),
        (NAMED, NAMED[::-1], {}, "row 0 is run 'a' in q_true, but run 'b' in traces"),
    ]),
    (metrics.aurc, [*OF_ANSWERS, ([1, 0], [1, 0], {"rule": "simpson"}, SIMPSON)]),
    (metrics.risk_coverage_curve, OF_ANSWERS),
    (metrics.class_confidence, [
        (["q", None], BOTH, {}, "row 1: question is missing"),
        ([ASK], BOTH, {}, r"question .*\(1, 2\)"),
        (ASK, ["a", None], {}, "row 1: answer is missing"),
        (ASK, ["a"], {}, "answer must be 2 labels"),
        (["q"], ["a"], {"count": [1], "proba": [1]}, "count or proba"),
        (ASK, BOTH, {"count": [1]}, r"count must be 2 numbers.*\(1,\)"),
        (ASK, BOTH, {"count": [1, -1]}, "row 1: count is -1"),
        (ASK, BOTH, {"proba": [0.5, NAN]}, "row 1: proba is nan"),
        (["p", "q"], BOTH, {"count": [1, 0]}, "question q: .* counts are zero"),
        ([1, 2, 2, 3], list("aaba"), {"proba": [0.9, 0.7, 0.7, 1]}, "question 2: .* 1.4"),
        ([1, 1], BOTH, {"proba": [0.5, 0.5003]}, "question 1: .* 1.0003"),
        ([], [], {}, "no answers"),
    ]),
    (HALVES.cost, [(gamma, {}, "gamma must be") for gamma in (-0.1, [0.3, INF], [-0.1, 0.3])]),
    (HALVES.integrated, [
        ({0.3: -1}, {}, "gamma = 0.3 is -1"),
        ({-0.3: 1}, {}, "gamma must be"),
        (3, {}, "weight .* got 3"),
        (lambda g: -g, {}, "weight at gamma = "),
        (lambda g: INF * g, {}, "weight at gamma = "),
        (lambda g: g, {"breaks": "a"}, "breaks"),
    ]),
    (SURE.metrics, [
        *(({"recall": r}, "recall must be a number") for r in (1.5, 0, -1, NAN, "a")),
        *(({"n_bins": n}, "n_bins") for n in (0, -1, 2.5, "a")),
        ({"n": [1, -1]}, "n must be .* -1"), ({"n": INF}, "n must be .* inf"),
        ({"rule": "simpson"}, SIMPSON),
    ]),
    (SURE.ecuas, [({"normalize": True}, "from_proba")]),
    *((answers.metrics, [({}, "Answers.from_confidence")]) for answers in (
        Answers.from_decisions([1, 0], [0.5, 0.4], u_max=1),
        Answers.from_proba([0, 1], [[0.9, 0.1], [0.2, 0.8]], cost="log"),
    )),
    (Answers.from_decisions, [
        ([1, -1], [0, 0], PASSED, "row 1: paid is -1"),
        ([1, 1], [INF, 0], PASSED, "row 0: u is inf"),
        ([1, 1], [0], PASSED, r"paid has shape \(2,\) and u \(1,\)"),
        ([1], [0], {"u_max": 1, "eps": 1}, "eps"),
        *(([1], [0], {"u_max": top}, "u_max") for top in (0, INF, [1, 2], [[0, 1], [0, 2]])),
    ]),
    (metrics.ecuas_from_confidence, [
        ([1, 0], [0.5, NAN], {}, "row 1: confidence is nan"),
        ([1, 0], [-0.01, 1.5], {}, r"row 0: confidence is -0.01"),
        ([1, 0], pd.Series([0.5, pd.NA], dtype="Float64"), {}, "row 1: confidence is nan"),
        ([1, 2], [0.5, 0.5], {}, "row 1: correct is 2"),
        *(([1], [1], {"n_classes": n}, "n_classes") for n in ("a", None, 1, NAN)),
        ([1], [NAN], {"log_odds": True}, "row 0: confidence is nan"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "rows"), BAD, ids=[function.__qualname__ for function, _ in BAD]
)
def test_bad_input(function, rows):
    assert not not_refused(function, rows)
