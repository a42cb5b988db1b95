"""The light for the data, and its reasons."""

import numpy as np
import pandas as pd
import pytest

from made_cards import OPEN, card, data_of
from trajscore import TrajectoryArray, evaluate
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._cards import AVOID, USE
from trajscore.report._data import BASE_RATE, CONSTANT, Note
from trajscore.report._data_check import data_check, length_auroc

NO_LENGTH = "Length says little about the outcome (AUROC 0.50)."
QUICK = IntervalOptions(20, method="influence")


def check_of(X, y, **options):
    return data_check(evaluate(X, y, intervals=QUICK, **options))


def test_sound_data():
    X, y = make_trajectories(400, lengths=5, random_state=0, return_X_y=True)
    assert check_of(X, y) == (
        "sound",
        [f"Every run has an outcome. {NO_LENGTH}"],
    )


@pytest.mark.parametrize(("every", "is_said"), [(5, True), (2, False)])
def test_length_that_says_something(every, is_said):
    X = make_trajectories(600, lengths=(2, 9), random_state=0).q
    y = (X.lengths < 6).astype(int)
    y[::every] = 1 - y[::every]
    report = evaluate(X, y, intervals=QUICK)
    area, low, _ = length_auroc(report)
    assert (low > 0.5 and area > 0.6) is is_said
    text = f"the one that succeeded was shorter in {area:.0%} of pairs."
    assert any(text in reason for reason in data_check(report).reasons) is is_said


def test_length_is_judged_on_observed_runs(chess):
    X, y = chess
    seen = y != -1
    areas = [
        length_auroc(evaluate(X["engine"][rows], y[rows], intervals=QUICK))[0]
        for rows in (slice(None), seen)
    ]
    assert areas[0] == areas[1] == pytest.approx(0.562, abs=5e-4)


def test_few_missing_outcomes_change_nothing():
    X, y = make_trajectories(400, lengths=5, random_state=0, return_X_y=True)
    y = np.where(np.arange(400) < 8, -1, y)
    check = check_of(X, y)
    assert check.level == "sound"
    assert check.reasons[0].startswith("8 of 400 runs have no outcome, counted as failures; the")


def test_many_missing_outcomes(chess):
    level, reasons = check_of(*chess)
    assert level == "check this"
    assert reasons[0].startswith(
        "67 of 360 runs have no outcome, all stopped by max_steps; counted as failures. Without "
        "them the choice stays, but its 68% then means 55%; material as given is +0.086 over"
    )


def test_missing_outcomes_that_decide():
    runs = make_trajectories(400, lengths=(2, 6), information=0.5, random_state=0)
    y = runs.target.copy()
    y[np.random.default_rng(0).random(400) < 0.5] = -1
    level, reasons = check_of(runs.q, y)
    assert level == "a problem"
    assert reasons[0].endswith("have no outcome, and the answer depends on what they count as.")
    assert sum("no outcome" in reason for reason in reasons) == 1


def test_leakage_is_a_problem():
    X, y = make_trajectories(200, lengths=4, random_state=0, return_X_y=True)
    leaky = X.with_cells(np.repeat(y, X.lengths).astype(float))
    level, reasons = check_of({"judge": X, "answer": leaky}, y)
    assert level == "a problem"
    assert reasons[0].startswith("answer: ")


@pytest.mark.parametrize(("n_tasks", "level"), [(5, "a problem"), (12, "check this")])
def test_few_tasks(n_tasks, level):
    X, y = make_trajectories(240, lengths=4, random_state=0, return_X_y=True)
    check = check_of(X, y, groups=np.arange(240) % n_tasks)
    assert check.level == level
    assert f"there are {n_tasks} clusters of runs" in check.reasons[0]


@pytest.mark.parametrize(
    ("good", "said"),
    [(9, "Only 9 of 100 runs succeeded."), (91, "Only 9 of 100 runs failed."), (10, None)],
)
def test_few_runs_of_an_outcome(good, said):
    rng = np.random.default_rng(0)
    y = (np.arange(100) < good).astype(int)
    X = TrajectoryArray(rng.random(300), np.full(100, 3))
    assert (said in check_of(X, y).reasons) == (said is not None)


# ------------------------------------------------------------------- by hand


def data_by_hand(lengths, y, cards=None, *, notes=(), n_left_out=0, facts=None, **others):
    """What the check reads: runs with an outcome of 1, 0 or -1, notes, and runs left out."""
    lengths, y = np.array(lengths), np.array(y)
    X = TrajectoryArray(np.full(lengths.sum(), 0.5), lengths, meta=others.pop("meta", None))
    key = BASE_RATE, CONSTANT
    counted = {"n_runs": len(y), "n_observed": int((y != -1).sum())}
    columns = ["predictor", "reason", "n_runs"]
    excluded = pd.DataFrame([("all", "crash", n_left_out)], columns=columns)
    return data_of(
        cards or {"a": card(USE)},
        facts=counted | (facts or {}),
        traces={key: X},
        labels={key: np.maximum(y, 0).astype(float)},
        outcomes={key: y},
        groups=others.pop("groups", {}),
        remarks=[Note("a", kind, facts) for kind, facts in notes],
        excluded=excluded,
        **others,
    )


FLAT = np.full(20, 2), np.arange(20) % 2


def few_clusters(effective):
    return "few clusters", {"n": 12, "effective": effective}


def said_of(effective):
    return (
        f"a: there are 12 clusters of runs, equivalent to {effective} equally large ones. "
        f"Intervals from fewer than 15 may be too narrow: add runs of more tasks."
    )


LEAKED = (
    "a: it is the outcome. If it is the outcome, or was made from it, ignore all results of this "
    "predictor."
)
OUTSIDE = "a: run 1: 2 lies outside [0, 1]; correct it if this is a probability."


@pytest.mark.parametrize(
    ("notes", "n_left_out", "level", "reasons"),
    [
        ([], 0, "sound", [f"Every run has an outcome. {NO_LENGTH}"]),
        ([few_clusters(9.9)], 0, "a problem", [said_of("9.9")]),
        ([few_clusters(10.0)], 0, "check this", [said_of("10.0")]),
        ([("filled", {"share": 0.1})], 0, "sound", None),
        ([("outside", {"place": "run 1", "value": 2.0, "n": 1})], 0, "check this", [OUTSIDE]),
        ([], 2, "sound", None),  # a tenth of the runs
        ([], 3, "check this", ["Left out: 3 runs (crash)."]),
        (
            [few_clusters(9.0), ("leakage", {"how": "it is the outcome"})],
            3,
            "a problem",
            [LEAKED, said_of("9.0"), "Left out: 3 runs (crash)."],
        ),
    ],
)
def test_the_light_and_its_reasons(notes, n_left_out, level, reasons):
    check = data_check(data_by_hand(*FLAT, notes=notes, n_left_out=n_left_out))
    assert check.level == level
    assert reasons is None or check.reasons == reasons


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        # the area is 1, of runs that succeed first
        ([1] * 10 + [3] * 10, "was shorter in 100% of pairs."),
        ([3] * 10 + [1] * 10, "was longer in 100% of pairs."),
        ([2] * 20, None),
        ([1] * 4 + [2] * 16, "was shorter in 70% of pairs."),
        ([2] * 6 + [3] * 4 + [2] * 10, "was longer in 70% of pairs."),
        ([1] * 2 + [2] * 18, None),  # it is 0.6 at least that says something
    ],
)
def test_length_that_is_related_to_the_outcome_by_hand(lengths, said):
    reasons = data_check(data_by_hand(lengths, [1] * 10 + [0] * 10)).reasons
    if said is None:
        assert reasons[0].startswith("Every run has an outcome. Length says little")
    else:
        (reason,) = reasons
        assert reason == (
            f"Length is related to the outcome: of a run that succeeded and one that failed, the "
            f"one that succeeded {said}"
        )


@pytest.mark.parametrize(("n_hidden", "is_looked_at"), [(2, False), (3, True)])
@pytest.mark.parametrize("reasons", [None, ["budget"], ["budget", "time"]])
def test_more_than_a_tenth_without_an_outcome_are_looked_at(n_hidden, is_looked_at, reasons):
    y = np.arange(20) % 2
    y[:n_hidden] = -1
    meta = None
    if reasons:
        meta = pd.DataFrame({"stop_reason": np.resize(reasons, 20)})
        meta.loc[10:, "stop_reason"] = "other"  # of a run that was observed
    data = data_by_hand(np.full(20, 2), y, {"a": card(USE)}, meta=meta)
    data.observed_cards = data.cards
    check = data_check(data)
    why = ", all stopped by budget" if reasons and len(reasons) == 1 else ""
    counted = f"{n_hidden} of 20 runs have no outcome"
    if is_looked_at:
        assert check.level == "check this"
        assert check.reasons == [
            f"{counted}{why}; counted as failures. Without them the choice stays."
        ]
    else:
        assert check.level == "sound"
        assert check.reasons[0].startswith(
            f"{counted}, counted as failures; the choice stays without them. Length says little"
        )


def test_a_margin_that_turns_is_looked_at_however_few_have_no_outcome():
    y = np.arange(20) % 2
    y[0] = -1
    data = data_by_hand(np.full(20, 2), y, {"a": card(USE, recalibrated=OPEN)})
    data.observed_cards = pd.DataFrame({"a": card(USE, recalibrated=(-0.1, -0.2, -0.05))}).T
    (reason,) = data_check(data).reasons
    assert reason == (
        "1 of 20 runs has no outcome; counted as failures. Without them the choice stays, but a "
        "recalibrated is -0.100 over the base rate, not +0.020."
    )


def test_an_answer_that_depends_on_runs_without_an_outcome_is_a_problem():
    y = np.arange(20) % 2
    y[:8] = -1
    data = data_by_hand(np.full(20, 2), y, {"a": card(USE)})
    data.observed_cards = pd.DataFrame({"a": card(AVOID)}).T
    assert data_check(data) == (
        "a problem",
        ["8 of 20 runs have no outcome, and the answer depends on what they count as."],
    )


def test_the_area_of_length_by_pairs():
    rng = np.random.default_rng(0)
    lengths, y = rng.integers(1, 6, 40), rng.integers(-1, 2, 40)
    key = BASE_RATE, CONSTANT
    for clusters in ({}, {key: np.arange(40) // 4}):
        area, low, high = length_auroc(data_by_hand(lengths, y, groups=clusters))
        won, lost = lengths[y == 1][:, None], lengths[y == 0][None]
        assert area == pytest.approx(((won < lost) + 0.5 * (won == lost)).mean())
        assert low < area < high
