"""What to do with a predictor, and how often that is wrong."""

from collections import Counter

import numpy as np
import pytest

from trajscore import TrajectoryArray, evaluate
from trajscore.calibration.calibrators import calibrator_maker
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._cards import (
    AVOID,
    RECALIBRATE,
    TOO_FEW,
    USE,
    card_table,
    decide,
    ranked,
)
from trajscore.report._data import Options
from trajscore.report._rows import predictor_rows
from trajscore.report._runs import check_predictors, choose_runs

QUICK = IntervalOptions(50, method="influence")
CLEAR, UNCLEAR, NOTHING = (0.1, 0.05, 0.15), (0.02, -0.1, 0.14), (0, -0.01, 0.01)
SMALL, WIDE, NARROW = (0.01, -0.05, 0.07), (0.01, 0.001, 0.019), (0.01, 0.008, 0.012)
TINY, WORSE = (0.005, 0.004, 0.006), (-1, -2, 0)


def made(kind, n, seed):
    """Predictors of which one knows whether they are worth anything."""
    runs = make_trajectories(n, lengths=(3, 8), information=0.35, random_state=seed)
    rng = np.random.default_rng(seed)
    cells = {
        "noise": rng.random(len(runs.q.cells)),
        "base rate": np.full(len(runs.q.cells), 0.5),
        "true": runs.q.cells,
    }[kind]
    return runs.q.with_cells(cells), runs.target


def card_of(X, y):
    """Decide as `evaluate` does, without the rest of a report."""
    judged = choose_runs(check_predictors(X, y, None, None), None, "failure")
    weights = as_step_weights()
    rows = predictor_rows(judged, calibrator_maker("platt", weights), Work(), [])
    options = Options(("log",), weights, "weighted")
    return card_table(rows, options, QUICK, Work())["card"].iloc[0]


@pytest.mark.parametrize(
    ("as_given", "recalibrated", "gain", "card"),
    [
        (CLEAR, CLEAR, NOTHING, USE),
        (CLEAR, CLEAR, UNCLEAR, RECALIBRATE),  # estimated to gain something that matters
        (CLEAR, CLEAR, SMALL, USE),  # estimated to gain too little, however wide
        (CLEAR, None, None, USE),
        (WORSE, CLEAR, CLEAR, RECALIBRATE),
        (None, CLEAR, None, RECALIBRATE),
        (NOTHING, NOTHING, NOTHING, AVOID),
        (WORSE, NOTHING, CLEAR, AVOID),
        (None, NOTHING, None, AVOID),
        (None, TINY, None, AVOID),  # shown to be better, by nothing that matters
        (TINY, TINY, NOTHING, AVOID),
        (WORSE, UNCLEAR, CLEAR, TOO_FEW),
        (UNCLEAR, NOTHING, NOTHING, TOO_FEW),
        (CLEAR, UNCLEAR, UNCLEAR, USE),  # the one that is shown to be better
        (WIDE, WIDE, NOTHING, TOO_FEW),  # around what does not matter, as NARROW is
        (NARROW, NARROW, NOTHING, AVOID),
        (None, None, None, TOO_FEW),
    ],
)
def test_the_rule(as_given, recalibrated, gain, card):
    row = {"matters": 0.014, "signal_high": np.nan, "n_runs": 100, "success_rate": 0.5}
    estimates = {"as_given": as_given, "recalibrated": recalibrated, "gain": gain}
    for name, three in estimates.items():
        ends = zip(("", "_low", "_high"), three or [np.nan] * 3, strict=True)
        row |= {f"{name}{end}": value for end, value in ends}
    assert decide(row) == card
    assert decide(row | {"success_rate": 0.09}) == TOO_FEW


@pytest.mark.parametrize(
    ("kind", "n", "wrong"), [("noise", 100, USE), ("base rate", 100, USE), ("true", 60, AVOID)]
)
def test_a_card_is_rarely_wrong(kind, n, wrong):
    # benchmarks/cards.py does this a thousand times; of 12 at a rate of 5% four come once in 400
    found = Counter()
    for seed in range(12):
        found[card_of(*made(kind, n, seed))] += 1
    assert found[wrong] < 4


def test_cards_of_what_is_known():
    X, y = made("true", 1000, 0)
    predictors = {
        "noise": made("noise", 1000, 0)[0],
        "constant": X.with_cells(np.full(len(X.cells), 0.5)),
        "true": X,
        "sharp": X.with_cells(X.cells**4 / (X.cells**4 + (1 - X.cells) ** 4)),
        "signal": X.with_cells(7 * X.cells),
    }
    report = evaluate(predictors, y, intervals=QUICK)
    cards = report.cards["card"].to_dict()
    assert cards == {
        "noise": AVOID, "constant": AVOID, "true": USE, "sharp": RECALIBRATE,
        "signal": RECALIBRATE,
    }  # fmt: skip
    assert set(ranked(report.cards)[:3]) == {"true", "sharp", "signal"}
    assert report.cards["confidence_level"].iloc[0] == pytest.approx(1 - 0.05 / 5)
    for name, verdict in zip(predictors, report.verdicts(), strict=True):
        assert verdict.startswith(f"{name}: {cards[name]}; ")
    apart = report.pairs.set_index(["predictor", "reference"])
    assert len(apart) == 10
    best = ranked(report.cards)[0]
    assert (apart.xs("noise", level="reference").loc[best, "low"] > 0).all()


def test_few_runs_say_how_many_are_needed():
    X, y = made("true", 8, 3)
    report = evaluate(X, y, intervals=QUICK)
    card = report.cards.iloc[0]
    assert card["card"] == TOO_FEW
    assert card["n_needed"] >= 12  # 10 of each outcome
    assert float(f"{card['n_needed']:.0e}") == card["n_needed"]  # a guess has one digit
    assert "Too few runs to say anything: read these 8 runs, and collect" in " ".join(
        str(report).split()
    )
    more = evaluate(*made("true", 8 + int(card["n_needed"]), 3), intervals=QUICK)
    assert more.cards["card"].iloc[0] != AVOID


def test_few_runs_of_noise_need_only_as_many_more_as_show_it_to_be_worthless():
    card = evaluate(*made("noise", 40, 4), intervals=QUICK).cards.iloc[0]
    assert card["card"] == TOO_FEW
    assert 40 <= card["n_needed"] <= 400
    more = evaluate(*made("noise", 40 + int(card["n_needed"]), 4), intervals=QUICK)
    assert more.cards["card"].iloc[0] == AVOID


def test_of_those_tied_with_the_best_one_usable_as_it_is_comes_first():
    X, y = made("true", 1000, 0)
    slightly = X.with_cells(np.clip(X.cells**1.15, 0, 1))
    sharp = X.with_cells(X.cells**4 / (X.cells**4 + (1 - X.cells) ** 4))
    noise = made("noise", 1000, 0)[0]
    report = evaluate({"sharp": sharp, "plain": slightly, "noise": noise}, y, intervals=QUICK)
    assert report.cards["card"].to_dict() == {"sharp": RECALIBRATE, "plain": USE, "noise": AVOID}
    assert report.cards["recalibrated"]["sharp"] > report.cards["as_given"]["plain"]
    assert report.cards["tied"].to_dict() == {"sharp": True, "plain": True, "noise": False}
    assert ranked(report.cards) == ["plain", "sharp", "noise"]
    said = " ".join(str(report).split())
    assert "Use plain as it is: " in said
    assert "Cost. plain is statistically tied with sharp: take the cheapest of them." in said


def test_a_weak_signal_is_not_blamed_for_its_map():
    # worth 1.5 times what matters: a map of 40 runs loses it again
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=80)
        y = (rng.random(80) < 1 / (1 + np.exp(-0.41 * x))).astype(int)
        wrong += card_of(TrajectoryArray.from_padded(5 * x[:, None]), y) == AVOID
    assert wrong <= 3  # it was 1 in 10


def test_sure_forecasts_that_were_lucky_are_not_to_be_used():
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sure = rng.random(200) < 0.6
        truth = np.where(sure, 0.985, 0.7725)
        X = TrajectoryArray.from_padded(np.where(sure, 1 - 1e-6, truth)[:, None])
        wrong += card_of(X, (rng.random(200) < truth).astype(int)) == USE
    assert wrong == 0  # it was 1 in 8


def test_runs_needed_allow_for_losses_that_were_not_seen():
    # 20 runs at 0.999 succeeded: one failure would cost them more than all gained
    forecasts = np.r_[np.full(20, 0.999), np.linspace(0.55, 0.8, 12)]
    y = np.r_[np.ones(20), np.zeros(12)]
    card = evaluate(forecasts[:, None], y, calibrator=None, intervals=QUICK).cards.iloc[0]
    assert (card["card"], card["as_given_low"] < 0 < card["as_given"]) == (TOO_FEW, True)
    assert 40 <= card["n_needed"] <= 100
    by_then = 1 + int(np.ceil(card["n_needed"] / 32))
    more = evaluate(
        np.tile(forecasts, by_then)[:, None], np.tile(y, by_then), calibrator=None, intervals=QUICK
    )
    assert more.cards["card"].iloc[0] == USE


class ShiftedBrier:
    """A Brier score to which a constant is added: no forecast is worth more for that."""

    name = "shifted"

    def success(self, p):
        return 5 - (1 - p) ** 2

    def failure(self, p):
        return 5 - p**2


def test_what_matters_does_not_depend_on_a_constant_in_the_score():
    X, y = make_trajectories(300, random_state=0, return_X_y=True)
    brier, shifted = (
        evaluate(X, y, scores=[score], intervals=QUICK).cards for score in ("brier", ShiftedBrier())
    )
    assert shifted["matters"].to_numpy() == pytest.approx(brier["matters"].to_numpy())
    assert shifted["card"].tolist() == brier["card"].tolist()
