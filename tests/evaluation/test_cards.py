"""What to do with a predictor, and how often that is wrong."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from judged import drawn, evaluate
from known_scores import ShiftedBrier
from trajscore import TrajectoryArray, metrics
from trajscore.datasets import make_trajectories

USE, RECALIBRATE = "use as it is", "recalibrate"
AVOID, TOO_FEW = "do not use", "too few runs"
FAST = {"calibrator": None, "families": "log"}


def made(n, seed, *, noise=False):
    """True forecasts, or values that tell nothing."""
    runs = make_trajectories(n, lengths=(3, 8), information=0.35, random_state=seed)
    cells = np.random.default_rng(seed).random(len(runs.q.cells)) if noise else runs.q.cells
    return runs.q.with_cells(cells), runs.target


def card_of(X, y, quick, calibrator="platt"):
    report = evaluate(X, y, calibrator=calibrator, families="log", intervals=quick)
    return report.cards.iloc[0]


def test_cards_of_what_is_known(useful):
    report = useful.report
    actions = [AVOID, AVOID, USE, RECALIBRATE, RECALIBRATE]
    names = ["noise", "constant", "true", "sharp", "signal"]
    assert report.cards["card"].to_dict() == dict(zip(names, actions, strict=True))
    assert (report.cards["n_needed"] == 0).all()
    for name, verdict in zip(useful.X, report.verdicts(), strict=True):
        assert verdict.startswith(f"{name}: {report.cards['card'][name]}; ")


def test_the_numbers_of_a_card(useful):
    y, report = useful.y, useful.report
    card = report.cards.loc["sharp"]
    given, mapped, base = (
        metrics.tps_score(y[order(useful)], report.traces[key])
        for key in (("sharp", "as_given"), ("sharp", "recalibrated"), ("base rate", "constant"))
    )
    assert card["as_given"] == pytest.approx(given - base)
    assert card["recalibrated"] == pytest.approx(mapped - base)
    assert card["gain"] == pytest.approx(mapped - given)
    assert card["matters"] == pytest.approx(-0.02 * base, rel=1e-5)  # of the base rate's own loss
    assert card["confidence_level"] == pytest.approx(1 - 0.05 / 5)  # for all five at once
    assert (card["n_runs"], card["success_rate"]) == (1000, y.mean())
    for name in ("as_given", "recalibrated", "gain"):
        assert card[f"{name}_low"] < card[name] < card[f"{name}_high"]


def order(useful):
    return np.argsort(next(iter(useful.X.values())).ids)


# benchmarks/cards.py does this a thousand times; of 10 at a rate of 5% four come once in 1000
DRAWN = {
    "noise": (100, lambda rng, y: rng.uniform(0.2, 0.8, 100), (USE, RECALIBRATE)),
    "true": (60, lambda rng, y: 1 / (1 + np.exp(-rng.normal(y - 0.5, 1))), (AVOID,)),
    # worth 1.5 times what matters; a map of 40 runs loses that again
    "weak signal": (80, lambda rng, y: 5 * rng.normal(0.41 * (y - 0.5), 1), (AVOID,)),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_cards_are_rarely_wrong(rng, kind):
    """Of 10 predictors that see the same runs, each at the level of one alone."""
    n, draw, wrong = DRAWN[kind]
    y, draws = np.arange(n) % 2, drawn(method="influence", confidence_level=1 - 0.05 * 10)
    X = {f"p{k}": TrajectoryArray(draw(rng, y), np.ones(n, dtype=int)) for k in range(10)}
    cards = evaluate(X, y, calibrator="platt", families="log", intervals=draws).cards
    assert cards["confidence_level"].to_numpy() == pytest.approx(0.95)
    found = Counter(cards["card"])
    assert sum(found[card] for card in wrong) < 4
    assert found[AVOID] > 0 or kind != "noise"


@pytest.mark.parametrize(("kind", "is_clustered"), [("probability", False), ("signal", True)])
def test_the_most_that_a_signal_may_be_worth(quick, kind, is_clustered):
    """Half the curvature of the score times the upper bound of the slope, squared."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 0.5, 60)
    y = (rng.random(60) < 1 / (1 + np.exp(-x))).astype(int)
    cells = x if kind == "signal" else 1 / (1 + np.exp(-x))
    groups = np.arange(60) // 3
    X = TrajectoryArray(cells, np.ones(60, dtype=int))
    options = {"calibrator": "platt", "families": "log", "intervals": quick}
    card = evaluate(X, y, groups=groups if is_clustered else None, **options).cards.iloc[0]
    p, x = y.mean(), x - x.mean()
    information = p * (1 - p) * (x**2).mean()
    parts = (y - p) * x / 60
    slope = parts.sum() / information
    parts = np.bincount(groups, parts) if is_clustered else parts
    error = np.sqrt((parts**2).sum()) / information
    by_slope = information / 2 * max(slope + norm.ppf(0.95) * error, 0) ** 2
    by_map = card["recalibrated_high"] + 4 * information * error**2
    assert card["signal_high"] == pytest.approx(min(by_slope, by_map))
    if not is_clustered:  # the derivative of the Brier score is 2 p (1 - p) times that of the log
        brier = evaluate(X, y, **(options | {"families": "brier"})).cards.iloc[0]
        curved = 2 * p * (1 - p)
        by_map = brier["recalibrated_high"] + 4 * curved * information * error**2
        assert brier["signal_high"] == pytest.approx(min(curved * by_slope, by_map))


# ------------------------------------------------------------------ the rule, at its edges


def forecasts_of_margin(y, margin, spread):
    """Forecasts whose log score is above that of the base rate by a margin, give or take."""
    rate = y.mean()
    above = margin + spread * np.resize([1.0, 1.0, -1.0, -1.0], len(y))
    p = np.exp(np.where(y == 1, np.log(rate), np.log(1 - rate)) + above)
    return TrajectoryArray(np.where(y == 1, p, 1 - p), np.ones(len(y), dtype=int))


def test_the_rule_without_a_map():
    rows = [
        (0.05, 0.1, USE),
        (0.05, 0.4, TOO_FEW),  # may be below the base rate
        (0.012, 0.02, TOO_FEW),  # better, by less than matters, and may be by more
        (0.012, 0.002, AVOID),  # better, by nothing that matters
        (0.015, 0.002, USE),  # just what matters
        (-0.05, 0.1, AVOID),
        (-0.05, 0.6, TOO_FEW),
    ]
    y = np.arange(200) % 2  # 2% of the base rate's loss are 0.0139
    found = cards_of_margins([row[:2] for row in rows], y)
    assert found["matters"].to_numpy() == pytest.approx(0.01386, abs=1e-4)
    assert found["as_given"].to_numpy() == pytest.approx([row[0] for row in rows])
    assert found["card"].tolist() == [row[2] for row in rows]


def cards_of_margins(margins, y):
    """Cards of predictors as given, each at the level of one alone."""
    draws = drawn(method="influence", confidence_level=1 - 0.05 * len(margins))
    X = {f"p{k}": forecasts_of_margin(y, *own) for k, own in enumerate(margins)}
    return evaluate(X, y, **FAST, intervals=draws).cards


@pytest.mark.parametrize(("n_rarer", "card"), [(9, TOO_FEW), (10, USE)])
def test_ten_runs_of_each_outcome_are_needed(quick, n_rarer, card):
    y = (np.arange(200) >= n_rarer).astype(int)
    X = TrajectoryArray(np.where(y, 0.9, 0.1) + 0.0005 * np.resize([1, -1], 200), [1] * 200)
    found = card_of(X, y, quick, None)
    assert found["card"] == card
    assert (found["n_needed"] > 0) == (card == TOO_FEW)


def test_what_matters_does_not_depend_on_a_constant_in_the_score(short_wins, quick):
    brier, shifted = (
        evaluate(*short_wins, families=[score], calibrator="platt", intervals=quick)
        for score in ("brier", ShiftedBrier())
    )
    for name in ("matters", "as_given", "recalibrated_low", "signal_high"):
        assert shifted.cards[name].iloc[0] == pytest.approx(brier.cards[name].iloc[0])
    assert shifted.cards["card"].tolist() == brier.cards["card"].tolist()


# ------------------------------------------------------------------ what does not vary


def answer_of(report):
    return json.loads(report.to_json())["answer"]


@pytest.mark.parametrize("n", [12, 60, 300])  # too few to say anything, to say enough, enough
def test_what_does_not_vary_leads_nothing_and_asks_for_no_runs(useful, quick, n):
    weak = useful.X["true"][:n]
    noise = np.random.default_rng(0).random(len(weak.cells))
    weak = weak.with_cells(0.3 * weak.cells + 0.7 * noise)
    X = {"stated percent": weak.with_cells(np.ones(len(weak.cells))), "weak": weak}
    X["agent gap"] = weak.with_cells(np.resize([-0.3, -(0.1 + 0.2)], len(weak.cells)))  # rounded
    by = {"half": np.arange(n) % 2}
    report = evaluate(X, useful.y[:n], by=by, families="log", intervals=quick)
    stated, page = answer_of(report), report.to_html()
    assert stated["predictor"] in ("weak", None)
    for name, value in (("stated percent", "1.00"), ("agent gap", "-0.30")):
        card = report.cards.loc[name]
        assert (card["card"], card["n_needed"]) == (AVOID, 0)
        assert card["only_value"] == pytest.approx(float(value))
        for part in (stated["headline"], stated["next"], stated["accept"] or ""):
            assert name not in part
        said = f"does not vary: it is {value} at every step"
        for text in (str(report), report.to_markdown(), " ".join(report.verdicts())):
            assert said in " ".join(text.split())
        assert said in page or n == 12  # whose page is small
        assert not any(note.startswith(name) for note in report.notes)
        assert (report.by.xs(name, level="predictor")["p_value"] == 1).all()
    assert report.pairs.iloc[-1]["reference"] != "weak"


def test_a_report_of_nothing_that_varies_says_where_to_get_more(useful, quick):
    for n in (8, 300):
        X = useful.X["true"][:n]
        X = {name: X.with_cells(0 * X.cells + value) for name, value in (("a", 1), ("b", -7))}
        report = evaluate(X, useful.y[:n], families="log", intervals=quick, monitoring=n > 8)
        stated = answer_of(report)
        assert (stated["predictor"], stated["action"], stated["accept"]) == (None, AVOID, None)
        assert "no predictor varies" in [each["text"] for each in stated["statements"]]
        assert "Get confidences" in stated["next"]
        assert "more runs" not in str(report)
        assert "no predictor varies" in report.to_html()
        alone = evaluate(X["a"], useful.y[:n], families="log", intervals=quick)
        assert "it does not vary" in str(alone)


def test_what_varies_by_step_or_by_little_does_vary(useful, fast):
    X, y = useful.X["true"], useful.y
    steps = np.concatenate([np.arange(1, n + 1) for n in X.lengths])
    X = {"steps": X.with_cells(1 / steps), "nearly": X.with_cells(0.5 + 1e-9 * X.cells)}
    X["tiny"] = X["nearly"].with_cells(1e-40 * useful.X["true"].cells)
    assert evaluate(X, y, **fast).cards["only_value"].isna().all()


# ------------------------------------------------------------------ runs still needed


def test_the_answer_leads_with_what_is_ahead_not_with_what_is_settled_soonest(fast):
    y = np.arange(100) % 2
    X = {"p0": forecasts_of_margin(y, -0.05, 0.45), "p1": forecasts_of_margin(y, 0.03, 0.55)}
    report = evaluate(X, y, **fast)
    needed = report.cards["n_needed"]
    assert (report.cards["card"] == TOO_FEW).all()
    assert 0 < needed["p0"] < needed["p1"]
    stated = answer_of(report)
    assert stated["predictor"] == "p1"
    assert "p1" in stated["headline"]
    assert f"{needed['p1']:,} more runs" in stated["statements"][1]["text"]
    assert f"p0 needs about {needed['p0']:,} more runs" in stated["reason"]


def test_few_runs_say_how_many_are_needed(quick):
    card = card_of(*made(8, 3), quick, "auto")
    assert card["card"] == TOO_FEW
    assert card["n_needed"] >= 12  # 10 of each outcome
    assert float(f"{card['n_needed']:.0e}") == card["n_needed"]  # a guess has one digit
    noise = card_of(*made(40, 4, noise=True), quick, "auto")
    assert 40 <= noise["n_needed"] <= 400
    more = card_of(*made(40 + int(noise["n_needed"]), 4, noise=True), quick, "auto")
    assert more["card"] == AVOID


def test_more_runs_are_needed_the_closer_a_margin_is_to_what_decides(fast):
    y = np.arange(100) % 2
    margins = [(0.08, 0.55), (0.05, 0.55), (0.03, 0.55), (-0.02, 0.45), (0.0, 0.45)]
    needed = dict(zip(margins, cards_of_margins(margins, y)["n_needed"], strict=True))
    assert 0 < needed[0.08, 0.55] <= needed[0.05, 0.55] < needed[0.03, 0.55] <= 10_000
    assert 0 < needed[-0.02, 0.45] < needed[0.0, 0.45]
    twice = TrajectoryArray(np.repeat(forecasts_of_margin(y, 0.05, 0.55).cells, 2), [1] * 200)
    groups = np.repeat(np.arange(100), 2)
    pairs = evaluate(twice, np.repeat(y, 2), groups=groups, **fast).cards.iloc[0]
    assert pairs["n_needed"] == pytest.approx(2 * needed[0.05, 0.55], rel=0.35)


def test_runs_needed_allow_for_losses_that_were_not_seen(quick):
    # 20 runs at 0.999 succeeded: one failure would cost them more than all gained
    forecasts = np.r_[np.full(20, 0.999), np.linspace(0.55, 0.8, 12)]
    y = np.r_[np.ones(20), np.zeros(12)]
    card = card_of(forecasts[:, None], y, quick, None)
    assert (card["card"], card["as_given_low"] < 0 < card["as_given"]) == (TOO_FEW, True)
    assert 40 <= card["n_needed"] <= 100
    times = 1 + int(np.ceil(card["n_needed"] / 32))
    more = card_of(np.tile(forecasts, times)[:, None], np.tile(y, times), quick, None)
    assert more["card"] == USE


def test_a_signal_without_a_map_needs_ten_runs_of_each_outcome_and_then_the_map(fast):
    X = TrajectoryArray(np.linspace(-5, 5, 30), np.ones(30, dtype=int))
    for n_won, said in ((2, (TOO_FEW, 6)), (15, ("recalibrate first", 0))):
        report = evaluate(X, np.arange(30) < n_won, **fast)
        assert tuple(report.cards.iloc[0][["card", "n_needed"]]) == said
    stated = answer_of(report)
    assert [each["answer"] for each in stated["statements"]] == ["no", "not known yet"]
    assert stated["next"].startswith("Recalibrate it.")
    assert "more runs" not in f"{stated}{report}"


# ------------------------------------------------------------------ pairs


def test_pairs_are_differences_of_the_forms_to_use_best_first(useful):
    report, own = useful.report, order(useful)
    pairs = report.pairs
    assert len(pairs) == 10
    found = zip(pairs["predictor"], pairs["reference"], strict=True)
    assert set(map(frozenset, found)) == set(map(frozenset, combinations(useful.X, 2)))
    for row in pairs.itertuples():
        expected = metrics.tps_score(useful.y[own], report.traces[key(report, row.predictor)])
        expected -= metrics.tps_score(useful.y[own], report.traces[key(report, row.reference)])
        assert row.difference == pytest.approx(expected)
        assert row.low <= row.difference <= row.high
    assert set(pairs.iloc[-1][["predictor", "reference"]]) == {"noise", "constant"}
    best = pairs["predictor"].iloc[0]
    assert (pairs.query(f"predictor == '{best}' and reference == 'noise'")["low"] > 0).all()


def key(report, name):
    return name, "as_given" if report.cards.loc[name, "card"] == USE else "recalibrated"


def test_pairs_share_the_level(useful):
    X, y = {name: useful.X[name] for name in ("true", "sharp", "noise")}, useful.y
    apart = evaluate(X, y, **FAST, intervals=drawn(method="influence")).pairs
    level = 1 - 0.05 / 3
    two = {name: X[name] for name in ("true", "sharp")}
    draws = drawn(method="influence", confidence_level=level)
    alone = evaluate(two, y, **FAST, intervals=draws).pairs
    of_both = apart[apart["predictor"].isin(two) & apart["reference"].isin(two)]
    np.testing.assert_allclose(of_both.iloc[0, 2:].astype(float), alone.iloc[0, 2:].astype(float))


def test_of_those_tied_with_the_best_one_usable_as_it_is_comes_first(useful, quick):
    true, noise = useful.X["true"], useful.X["noise"]
    plain = true.with_cells(np.clip(true.cells**1.15, 0, 1))
    X = {"sharp": useful.X["sharp"], "plain": plain, "noise": noise}
    report = evaluate(X, useful.y, families="log", intervals=quick)
    cards = report.cards
    assert cards["card"].to_dict() == {"sharp": RECALIBRATE, "plain": USE, "noise": AVOID}
    assert cards["recalibrated"]["sharp"] > cards["as_given"]["plain"]
    assert cards["tied"].to_dict() == {"sharp": True, "plain": True, "noise": False}
    said = " ".join(str(report).split())
    assert "Next: Use plain as it is" in said
    assert "The others: sharp may be as good; noise knows nothing of use." in said


def test_who_is_tied_with_the_best(useful, fast):
    p = useful.X["true"].cells
    X = {
        "best": useful.X["true"],
        "close": useful.X["true"].with_cells(0.97 * p + 0.015),  # behind by less than matters
        "behind": useful.X["true"].with_cells(0.25 * p + 0.375),
    }
    report = evaluate(X, useful.y, **fast)
    pairs = report.pairs.set_index(["predictor", "reference"])
    assert pairs.loc[("best", "behind"), "low"] > 0
    assert report.cards["tied"].to_dict() == {"best": True, "close": True, "behind": False}
