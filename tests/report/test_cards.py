"""What to do with a predictor, and how often that is wrong."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaincinv, ndtr, ndtri
from scipy.stats import norm

from trajscore import TrajectoryArray, evaluate
from trajscore.calibration.calibrators import calibrator_maker
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.inference.units import any_units
from trajscore.report import IntervalOptions
from trajscore.report._cards import (
    AVOID,
    RECALIBRATE,
    TOO_FEW,
    USE,
    Slope,
    _differences,
    _n_needed,
    _spread,
    card_table,
    decide,
    form_of,
    forms_of,
    gain_of,
    have_too_few_runs,
    margin_of,
    n_rarer,
    pair_table,
    ranked,
    slope_of,
    tied_with_best,
)
from trajscore.report._data import AS_GIVEN, MARGIN, RECALIBRATED, Options, columns_of
from trajscore.report._margins import score_of
from trajscore.report._rows import Row, predictor_rows
from trajscore.report._runs import Coverage, check_predictors, choose_runs

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
        ((0.1, 0, 0.2), UNCLEAR, NOTHING, TOO_FEW),  # an interval that ends at 0 shows nothing
        (None, (0.1, 0, 0.2), None, TOO_FEW),
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


@pytest.mark.parametrize(("n_failed", "has_interval"), [(4, False), (5, True)])
def test_margins_have_intervals_from_five_runs_of_each_outcome_on(n_failed, has_interval):
    X, _ = made("true", 40, 0)
    y = (np.arange(40) >= n_failed).astype(int)
    for labels in (y, 1 - y):
        card = evaluate(X, labels, calibrator=None, intervals=QUICK).cards.iloc[0]
        assert np.isfinite(card["as_given"])
        assert np.isfinite([card["as_given_low"], card["as_given_high"]]).all() == has_interval


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


# ------------------------------------------------------------------ slopes


@pytest.mark.parametrize(
    ("value", "error", "worth"), [(0.5, 0.1, 0.24), (0.5, 0.6, 0), (-0.5, 0.1, 0), (0.2, 0.0, 0.04)]
)
def test_what_a_signal_is_worth_without_the_noise_of_its_slope(value, error, worth):
    assert Slope(value, error, 3.0).worth == pytest.approx(3 / 2 * worth)


@pytest.mark.parametrize(
    ("value", "recalibrated_high", "most"),
    [
        (0.5, None, 2 * 0.7**2),  # half of 4, times the squared upper bound of the slope
        (0.5, 10.0, 2 * 0.7**2),
        (0.5, 0.3, 0.3 + 4 * 4 * 0.1**2),
        (-0.3, None, 0.0),
    ],
)
def test_the_most_that_a_signal_may_be_worth(value, recalibrated_high, most):
    level = norm.cdf(2.0)
    recalibrated = None if recalibrated_high is None else (0.0, -1.0, recalibrated_high)
    assert Slope(value, 0.1, 4.0).most(level, recalibrated) == pytest.approx(most)


def row_of(X, y, groups=None, is_probability=True):
    runs = Coverage(np.asarray(y), np.asarray(y, dtype=float), groups, np.arange(len(y)))
    return Row("a", AS_GIVEN, X, runs, is_probability)


@pytest.mark.parametrize("is_probability", [True, False])
def test_slope_by_hand(is_probability):
    y = np.array([1, 0, 0, 1, 0])
    cells = np.array([0.8, 0.3, 0.5, 0.6, 0.2])
    x = np.log(cells / (1 - cells)) if is_probability else cells
    x = x - x.mean()
    information = 0.4 * 0.6 * (x**2).mean()
    parts = (y - 0.4) * x / 5
    X = TrajectoryArray(cells, np.ones(5, dtype=int))
    weights = as_step_weights()
    slope = slope_of(row_of(X, y, is_probability=is_probability), "log", weights)
    assert slope.value == pytest.approx(parts.sum() / information)
    assert slope.error == pytest.approx(np.sqrt((parts**2).sum()) / information)
    assert slope.curvature == pytest.approx(information)
    # the derivative of the Brier score is 2 p (1 - p) times that of the log score
    brier = slope_of(row_of(X, y, is_probability=is_probability), "brier", weights)
    assert brier.curvature == pytest.approx(2 * 0.4 * 0.6 * information)
    groups = np.array([0, 0, 1, 2, 2])
    clustered = slope_of(row_of(X, y, groups, is_probability), "log", weights)
    of_groups = np.array([parts[:2].sum(), parts[2], parts[3:].sum()])
    assert clustered.error == pytest.approx(np.sqrt((of_groups**2).sum()) / information)
    assert clustered.value == slope.value


def test_slope_of_several_steps_with_weights():
    y, cells = np.array([1, 0]), np.array([0.9, 0.6, 0.2])
    X = TrajectoryArray(cells, [2, 1])
    w = np.array([1, 1 / np.sqrt(2), 1])
    w = w / w.sum()
    x = np.log(cells / (1 - cells))
    x = x - w @ x
    p = w[:2].sum()
    information = p * (1 - p) * (w @ x**2)
    slope = slope_of(row_of(X, y), "log", as_step_weights())
    gap = np.array([1, 1, 0]) - p
    assert slope.value == pytest.approx((w * gap * x).sum() / information)


def test_a_constant_has_no_slope():
    X = TrajectoryArray(np.full(4, 0.3), np.ones(4, dtype=int))
    assert slope_of(row_of(X, [1, 0, 0, 1]), "log", as_step_weights()) == Slope(0.0, 0.0, 0.0)


# ------------------------------------------------------------------ runs needed


def needed(n, n_successes, margin=0.0, spread=0.0, slope=None, matters=0.01):
    """Runs needed by runs whose differences alternate around a margin."""
    y = (np.arange(n) < n_successes).astype(int)
    X = TrajectoryArray(np.full(n, 0.5), np.ones(n, dtype=int))
    difference = score_of(row_of(X, y), "log", as_step_weights())
    difference.samples[:] = margin + spread * np.resize([1.0, -1.0], n)
    card = dict.fromkeys(("recalibrated", "recalibrated_low", "recalibrated_high"), np.nan)
    card |= {"as_given": margin, "as_given_low": np.nan, "as_given_high": np.nan}
    card |= {"n_runs": n, "success_rate": n_successes / n, "matters": matters}
    card |= {"confidence_level": 0.95}
    return _n_needed(card, {AS_GIVEN: difference}, slope, any_units(None, n))


@pytest.mark.parametrize(
    ("n", "n_successes", "least"),
    [
        (100, 50, 10),  # a tenth of the runs
        (101, 50, 20),  # which is more than 10
        (20, 2, 90),  # 12.5 of the rarer outcome are ten with a chance of 0.8; one in 8.4 is
        (20, 18, 90),
    ],
)
def test_where_nothing_varies_the_least_number_is_enough(n, n_successes, least):
    assert needed(n, n_successes) == least


def test_more_runs_are_needed_the_closer_a_margin_is_to_what_decides():
    clear, near, nearer = (needed(100, 50, margin, 0.5) for margin in (0.4, 0.1, 0.05))
    assert clear == 10
    assert 10 < near < nearer <= 100 * 100
    assert needed(100, 50, 0.1, 1.0) > near
    assert needed(100, 50, -0.1, 0.5) < needed(100, 50, 0.0, 0.5)


# ------------------------------------------------------------------ reading cards


def cards_of(**rows):
    """Cards by name: what to do, margins of both forms, and whether it is tied with the best."""
    names = ["card", "as_given", "recalibrated", "tied"]
    cards = pd.DataFrame.from_dict(rows, orient="index", columns=names)
    return cards.assign(matters=0.01)


def test_the_form_that_a_card_speaks_for():
    cards = cards_of(
        a=(USE, 0.1, 0.2, False),
        b=(RECALIBRATE, 0.1, 0.2, False),
        c=(AVOID, 0.1, np.nan, False),
        d=(TOO_FEW, np.nan, 0.2, False),
    )
    assert [form_of(cards, name) for name in cards.index] == [
        AS_GIVEN, RECALIBRATED, AS_GIVEN, RECALIBRATED,
    ]  # fmt: skip


def test_the_best_comes_first():
    cards = cards_of(
        avoid=(AVOID, 0.9, 0.9, False),
        few=(TOO_FEW, 0.9, 0.9, False),
        unknown=(USE, np.nan, 0.9, False),
        plain=(USE, 0.1, 0.9, False),
        mapped=(RECALIBRATE, 0.9, 0.2, False),
        tied_mapped=(RECALIBRATE, 0.0, 0.15, True),
        tied_plain=(USE, 0.05, 0.0, True),
        tied_better=(USE, 0.07, 0.0, True),
    )
    order = [
        "tied_better",
        "tied_plain",
        "tied_mapped",
        "mapped",
        "plain",
        "unknown",
        "few",
        "avoid",
    ]
    assert ranked(cards) == order
    assert ranked(cards[::-1]) == order
    untied = ["mapped", "tied_mapped", "plain", "tied_better", "tied_plain", "unknown"]
    assert ranked(cards.drop(columns="tied"))[:6] == untied


def pairs_of(*rows):
    return pd.DataFrame(rows, columns=["predictor", "reference", "difference", "low", "high"])


def test_what_is_tied_with_the_best():
    cards = cards_of(
        best=(USE, 0.4, 0.4, False),
        unsure=(USE, 0.3, 0.3, False),
        close=(RECALIBRATE, 0.3, 0.29, False),
        behind=(USE, 0.2, 0.2, False),
        avoid=(AVOID, 0.4, 0.4, False),
    )
    pairs = pairs_of(
        ("best", "unsure", 0.1, 0.0, 0.2),
        ("best", "close", 0.0099, 0.001, 0.02),
        ("best", "behind", 0.01, 0.001, 0.02),
        ("best", "avoid", 0.0, -0.1, 0.1),
        ("unsure", "behind", 0.0, -0.1, 0.1),
    )
    tied = tied_with_best(cards, pairs)
    assert tied[tied].index.tolist() == ["best", "unsure", "close"]
    assert not tied_with_best(cards, None).any()
    assert not tied_with_best(cards.assign(card=AVOID), pairs).any()


def test_an_interval_that_is_not_known_is_tied():
    cards = cards_of(best=(USE, 0.4, 0.4, False), other=(USE, 0.1, 0.1, False))
    assert tied_with_best(cards, pairs_of(("best", "other", 0.3, np.nan, np.nan))).all()


def test_pairs_share_the_level():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    runs = row_of(TrajectoryArray(rng.random(60), np.ones(60, dtype=int)), y).runs

    def pairs(n, level):
        rows = [
            Row(name, AS_GIVEN, TrajectoryArray(forecast, np.ones(60, dtype=int)), runs, True)
            for name, forecast in zip("abcd", np.random.default_rng(1).random((4, 60)), strict=True)
        ][:n]
        cards = cards_of(**{row.predictor: (USE, 0.1, np.nan, False) for row in rows})
        options = Options(("log",), as_step_weights(), "weighted")
        draws = IntervalOptions(50, method="influence", confidence_level=level)
        return pair_table(rows, cards, options, draws).set_index(["predictor", "reference"])

    assert len(pairs(1, 0.95)) == 0
    (alone,) = pairs(2, 1 - 0.05 / 3).to_numpy()
    np.testing.assert_allclose(pairs(3, 0.95).loc[("a", "b")], alone)
    (alone,) = pairs(2, 1 - 0.05 / 6).to_numpy()
    np.testing.assert_allclose(pairs(4, 0.95).loc[("a", "b")], alone)
    assert len(pairs(4, 0.95)) == 6


def test_the_gain_of_the_leading_score_is_that_of_its_card():
    report = evaluate(*made("true", 120, 0), intervals=QUICK)
    (name,) = report.cards.index
    ends = ["gain", "gain_low", "gain_high"]
    assert gain_of(report, name, "TPS log") == tuple(report.cards.loc[name, ends])
    own = report.calibration_gain.loc[(name, "TPS brier"), ends]
    assert gain_of(report, name, "TPS brier") == tuple(own)


# ------------------------------------------------------------------- labels still needed


# 329 labels of these runs give an interval of 0.05 to either side
class Differences:
    """Differences that alternate by `spread` around `margin`; of clusters, pairs are alike."""

    def __init__(self, n, margin, spread):
        self.values = margin + spread * np.resize([1.0, -1.0], n)

    def pseudo_values(self):
        return self.values


def needed_by_definition(card, best, spread, slope):
    """The first number, in one digit, with which forecasts of both ends reach 0.7."""
    n, matters = card["n_runs"], card["matters"]
    margin, low, high = (card[column] for column in columns_of(best))
    rarer = min(card["success_rate"], 1 - card["success_rate"]) * n
    least = max(gammaincinv(10, 0.8) * (n + 1) / (rarer + 0.5) - n, n / 10)
    candidates = [digit * 10**k for k in range(8) for digit in range(1, 10)]
    candidates = [more for more in candidates if more >= least]
    candidates = [more for k, more in enumerate(candidates) if not k or candidates[k - 1] < 100 * n]
    z = ndtri((1 + card["confidence_level"]) / 2)
    likely = 0.0
    for more in candidates:
        share = more / (n + more)
        expected, error = margin, spread / n**0.5 * share**0.5
        if slope is not None and best == RECALIBRATED:
            expected += share * max(slope.worth - margin, 0)
        reach = z * spread / (n + more) ** 0.5
        below, above = (np.fmax(reach, (1 - share) * one) for one in (margin - low, high - margin))
        avoids = ndtr((matters - above - expected) / error)
        if slope is not None and slope.curvature > 0:
            largest = (2 * matters / slope.curvature) ** 0.5
            highest = slope.value + ndtri(card["confidence_level"]) * slope.error * (
                (1 - share) ** 0.5
            )
            avoids = min(avoids, ndtr((largest - highest) / (slope.error * share**0.5)))
        likely = max(likely, ndtr((expected - max(below, matters)) / error) + avoids)
        if likely >= 0.7:
            return more
    return candidates[-1]


@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize("best", [AS_GIVEN, RECALIBRATED])
@pytest.mark.parametrize(
    "slope",
    [None, Slope(0.0, 0.1, 0.0), Slope(0.5, 0.2, 0.3), Slope(0.2, 0.1, 0.2), Slope(-0.1, 0.3, 1.0)],
)
def test_runs_that_decide_a_card_by_definition(level, best, slope):
    found, expected = [], []
    for n, margin, spread, rate in [
        (100, 0.1, 0.5, 0.5), (100, 0.03, 0.3, 0.4), (60, 0.0, 0.1, 0.5), (400, -0.02, 0.6, 0.1),
        (40, 0.01, 0.02, 0.6), (20, 0.05, 0.2, 0.15), (10, 0.3, 0.7, 0.5), (200, 0.04, 0.2, 0.7),
        (30, -0.3, 0.9, 0.3), (100, 0.011, 0.1, 0.5), (500, 0.02, 0.35, 0.5), (10, 0.0, 9.0, 0.0),
    ]:  # fmt: skip
        for below, above in [(np.nan, np.nan), (0.2, 0.01), (0.01, 0.3)]:
            other = RECALIBRATED if best == AS_GIVEN else AS_GIVEN
            ends = margin, margin - below, margin + above
            card = dict(zip(columns_of(best), ends, strict=True))
            card |= dict(zip(columns_of(other), (margin - 0.001, -5.0, 5.0), strict=True))
            card |= {"n_runs": n, "success_rate": rate, "matters": 0.01, "confidence_level": level}
            differences = {best: Differences(n, margin, spread), other: Differences(n, 0.0, 7.0)}
            found.append(_n_needed(card, differences, slope, any_units(None, n)))
            deviation = spread * np.sqrt(n / (n - 1))
            expected.append(needed_by_definition(card, best, deviation, slope))
    assert found == expected


@pytest.mark.parametrize(("n_successes", "least"), [(0, 30), (2, 6), (15, 1)])
def test_runs_of_a_signal_without_a_map_tell_nothing_of_it(n_successes, least):
    # 12.5 over the rarer outcome and 0.5, as if there were no run yet
    card = dict.fromkeys((AS_GIVEN, RECALIBRATED), np.nan)
    card |= {"n_runs": 30, "success_rate": n_successes / 30, "matters": 0.0}
    card |= {"confidence_level": 0.95}
    assert _n_needed(card, {}, None, any_units(None, 30)) == least


def test_pairs_of_equal_runs_need_twice_as_many():
    card = dict(zip(columns_of(AS_GIVEN), (0.1, np.nan, np.nan), strict=True))
    card |= {RECALIBRATED: np.nan, "n_runs": 100, "success_rate": 0.5, "matters": 0.01}
    card |= {"confidence_level": 0.95}
    differences = Differences(50, 0.1, 0.5)
    single = {AS_GIVEN: Differences(100, 0.1, 0.5)}
    assert _spread(single[AS_GIVEN], any_units(None, 100)) == pytest.approx(0.5 * 10 / 99**0.5)
    differences.values = np.repeat(differences.values, 2)
    units = any_units(np.arange(100) // 2, 100)
    # each pair is off by 1, of 50 of which the variance is 1 / 49 each, in units of 1 / 100 runs
    assert _spread(differences, units) == pytest.approx(0.5 * 10 / 49**0.5)
    few = _n_needed(card, single, None, any_units(None, 100))
    assert few < _n_needed(card, {AS_GIVEN: differences}, None, units)


def test_a_card_of_exactly_ten_runs_of_an_outcome_is_decided():
    row = {"matters": 0.01, "signal_high": np.nan, "n_runs": 100, "success_rate": 0.1}
    for name in ("as_given", "recalibrated", "gain"):
        row |= dict(zip(columns_of(name), (0.1, 0.05, 0.15), strict=True))
    row["gain"] = 0.0
    assert decide(row) == decide(row | {"success_rate": 0.9}) == USE
    assert decide(row | {"success_rate": 0.0999}) == TOO_FEW
    assert decide(row | {"gain": 0.01}) == RECALIBRATE  # just what matters
    assert decide(row | {"recalibrated_low": 0.0, "gain": 0.01}) == USE
    low = row | {f"{form}_high": 0.01 for form in ("as_given", "recalibrated")}
    assert decide(low) == USE  # at the bound it may matter
    low = row | {f"{form}_high": 0.0099 for form in ("as_given", "recalibrated")}
    assert decide(low) == AVOID
    assert decide(low | {"signal_high": 0.01}) == USE
    least = row | {"as_given": 0.01, "recalibrated": 0.009}
    assert decide(least) == USE
    assert decide(least | {"as_given": 0.0099}) == TOO_FEW
    rows = pd.DataFrame([row, row | {"success_rate": 0.92}, row | {"success_rate": 0.08}])
    assert have_too_few_runs(rows).tolist() == [False, True, True]
    assert n_rarer(rows).tolist() == [10, 8, 8]


def rows_of_two(n=60, n_success=30, *, mapped=0.2, groups=None):
    """A forecast as given and a sharper one, of one step."""
    rng = np.random.default_rng(5)
    y = (np.arange(n) < n_success).astype(float)
    p = np.clip(0.3 * y + 0.7 * rng.random(n), 0.02, 0.98)
    ones = np.ones(n, dtype=int)
    runs = Coverage(y.astype(int), y, groups, np.arange(n))
    forms = {
        AS_GIVEN: Row("a", AS_GIVEN, TrajectoryArray(p, ones), runs, True),
        RECALIBRATED: Row(
            "a", RECALIBRATED, TrajectoryArray((1 - mapped) * p + mapped * y, ones), runs, True
        ),
    }
    return forms, y


LOG = Options(("log",), as_step_weights(), "weighted")


def test_the_numbers_of_a_card_by_definition():
    forms, y = rows_of_two(60, 24)
    table = card_table(list(forms.values()), LOG, QUICK, Work(), n_tables=2)
    assert table.index.tolist() == ["a"]
    assert table.index.name == "predictor"
    card = table.iloc[0]

    def loss(p):
        return y * np.log(p) + (1 - y) * np.log1p(-p)

    given, mapped = (loss(forms[form].traces.cells) for form in (AS_GIVEN, RECALIBRATED))
    rate = loss(np.full(60, 0.4))
    assert card["as_given"] == pytest.approx((given - rate).mean())
    assert card["recalibrated"] == pytest.approx((mapped - rate).mean())
    assert card["gain"] == pytest.approx((mapped - given).mean())
    assert card["matters"] == pytest.approx(-0.02 * rate.mean(), rel=1e-5)
    assert card["confidence_level"] == pytest.approx(0.975)
    assert (card["n_runs"], card["success_rate"]) == (60, 0.4)
    slope = slope_of(forms[AS_GIVEN], "log", as_step_weights())
    three = tuple(card[columns_of(RECALIBRATED)])
    assert card["signal_high"] == pytest.approx(slope.most(0.975, three))
    alone = card_table([forms[AS_GIVEN]], LOG, QUICK, Work()).iloc[0]
    assert alone["confidence_level"] == pytest.approx(0.95)
    assert np.isnan(alone[["recalibrated", "gain", "signal_high"]].astype(float)).all()
    assert alone["as_given"] == pytest.approx(card["as_given"])


@pytest.mark.parametrize(("off", "is_zero"), [(1e-15, True), (1e-10, True), (1e-7, False)])
def test_a_form_that_is_a_constant_is_no_better_by_rounding(off, is_zero):
    forms, _ = rows_of_two(60, 24)
    constant = forms[AS_GIVEN].traces.with_cells(np.full(60, 0.4 * (1 + off)))
    differences, _ = _differences({AS_GIVEN: replace(forms[AS_GIVEN], traces=constant)}, LOG)
    assert list(differences) == [AS_GIVEN]
    assert (differences[AS_GIVEN].samples == 0).all() == is_zero


@pytest.mark.parametrize(("groups", "n_ends"), [(None, 3), (np.zeros(60, dtype=int), 0)])
def test_one_cluster_has_no_interval(groups, n_ends):
    forms, _ = rows_of_two(60, 24, groups=groups)
    card = card_table(list(forms.values()), LOG, QUICK, Work()).iloc[0]
    assert np.isfinite(card[columns_of(AS_GIVEN)].astype(float)).sum() == n_ends


def test_pairs_are_differences_of_scores_best_first():
    forms, y = rows_of_two(60, 24)
    rows = [
        Row("weak", AS_GIVEN, forms[AS_GIVEN].traces, forms[AS_GIVEN].runs, True),
        Row("strong", AS_GIVEN, forms[RECALIBRATED].traces, forms[AS_GIVEN].runs, True),
        Row("signal", AS_GIVEN, forms[AS_GIVEN].traces, forms[AS_GIVEN].runs, False),
    ]
    cards = cards_of(
        signal=(TOO_FEW, np.nan, np.nan, False),
        weak=(USE, 0.1, np.nan, False),
        strong=(USE, 0.2, np.nan, False),
    )
    (pair,) = pair_table(rows, cards, LOG, QUICK).to_dict("records")
    weak, strong = (
        y * np.log(row.traces.cells) + (1 - y) * np.log1p(-row.traces.cells) for row in rows[:2]
    )
    assert (pair["predictor"], pair["reference"]) == ("strong", "weak")
    assert pair["difference"] == pytest.approx((strong - weak).mean())
    assert pair["low"] < pair["difference"] < pair["high"]
    other = replace(rows[1], runs=replace(rows[1].runs))
    assert pair_table([rows[0], other, rows[2]], cards, LOG, QUICK) is None  # of other runs


@pytest.mark.parametrize(
    ("card", "own", "is_of_card"),
    [
        ((0.1, 0.0, 0.2), (0.1, 0.05, 0.15), True),
        ((0.1, 0.0, 0.2), (0.10001, 0.05, 0.15), False),
        ((0.0, -0.1, 0.2), (1e-10, 0.05, 0.15), True),
        ((0.0, -0.1, 0.2), (1e-7, 0.05, 0.15), False),
    ],
)
def test_a_margin_is_that_of_its_card_where_they_are_the_same(card, own, is_of_card):
    keys = pd.MultiIndex.from_tuples([("a", AS_GIVEN, "TPS log"), ("b", AS_GIVEN, "TPS log")])
    keys = keys.append(pd.MultiIndex.from_tuples([("a", "constant", "TPS log")]))
    data = SimpleNamespace(
        intervals=pd.DataFrame([own] * 3, index=keys, columns=MARGIN),
        cards=pd.DataFrame([card], index=["a"], columns=columns_of(AS_GIVEN)),
        score_name="TPS log",
    )
    assert margin_of(data, "a", AS_GIVEN) == (card if is_of_card else own)
    assert margin_of(data, "b", AS_GIVEN) == own  # without a card
    assert margin_of(data, "a", "constant") == own


def test_the_forms_that_have_a_score():
    keys = pd.MultiIndex.from_tuples([("a", AS_GIVEN), ("a", RECALIBRATED), ("b", AS_GIVEN)])
    table = pd.DataFrame({"TPS log": [-0.6, -0.5, np.nan]}, index=keys)
    data = SimpleNamespace(table=table, score_name="TPS log")
    assert [forms_of(data, name) for name in "ab"] == [[AS_GIVEN, RECALIBRATED], []]
    table.iloc[0] = np.nan
    assert forms_of(data, "a") == [RECALIBRATED]
