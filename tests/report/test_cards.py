"""What to do with a predictor, and how often that is wrong."""

from collections import Counter

import numpy as np
import pytest

from trajscore import evaluate
from trajscore.calibration._maker import calibrator_maker
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._cards import (
    AVOID,
    RECALIBRATE,
    TOO_FEW,
    USE,
    Evidence,
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
    found = Evidence(as_given, recalibrated, gain, matters=0.014, n_rarer=50)
    assert decide(found) == card
    assert decide(Evidence(as_given, recalibrated, gain, 0.014, n_rarer=9)) == TOO_FEW


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
    assert "more runs would settle this" in " ".join(str(report).split())
    more = evaluate(*made("true", 8 + int(card["n_needed"]), 3), intervals=QUICK)
    assert more.cards["card"].iloc[0] != AVOID
