"""Strips of margins on the first screen, by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from made_cards import card, data_of, groups_of
from trajscore import TrajectoryArray
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE, ranked
from trajscore.report._reliability import Bins
from trajscore.report.page.charts import Axis
from trajscore.report.page.screen import (
    _costs,
    _groups,
    _saves,
    _stretches,
    _strips,
    _title,
    run_line,
    said_against_happened,
)

NAN = float("nan")
LOW = (0.001, -0.01, 0.01)


def view_of(cards, **data):
    table = data_of(cards, **data)
    return SimpleNamespace(
        data=table, names=ranked(table.cards), digits=3, won="won", screen=SimpleNamespace(drawn=[])
    )


def avoided(margin=LOW):
    return card(AVOID, as_given=margin, recalibrated=(NAN,) * 3, signal_high=0.01)


def test_strips_lie_on_an_axis_of_what_is_not_folded():
    wide = avoided((-3.0, -4.0, -2.0))
    parts = _strips(view_of({"a": card(USE, recalibrated=(NAN,) * 3), "b": wide}))
    room = 0.06 * 0.1625  # of -0.0125, below which nothing matters, to 0.15
    low, width = -0.0125 - room, 0.1625 + 2 * room
    row = parts["rows"]["a"]
    places = [100 * (x - low) / width for x in (0.1, 0.05, 0.15)]
    assert row["places"] == pytest.approx(places)
    assert row["known"] == [True] * 3
    assert parts["rows"]["b"]["places"] == [0, 0, 0]
    assert parts["zero"] == pytest.approx(-100 * low / width)
    assert parts["band"] == pytest.approx([100 * room / width, 100 * 0.025 / width])
    assert (parts["tied"], parts["single"], parts["n_tied"]) == ([], ["a"], 0)
    assert parts["folds"] == [{"title": "1 not to use:", "names": "b", "rows": ["b"]}]
    assert parts["has_worse"] is False


@pytest.mark.parametrize(("low", "has_worse"), [(-0.026, False), (-0.03, True)])
def test_worse_is_named_where_there_is_room_for_it(low, has_worse):
    # 0.15 above; with the room below, the axis begins at -0.0366 and at -0.0408
    own = card(USE, as_given=(0.1, low, 0.15), recalibrated=(NAN,) * 3)
    assert _strips(view_of({"a": own}))["has_worse"] is has_worse


def test_margins_without_an_interval_have_none():
    own = card(TOO_FEW, as_given=(0.1, NAN, NAN), recalibrated=(NAN,) * 3)
    assert _strips(view_of({"a": own}))["rows"]["a"]["known"] == [True, False, False]


def test_where_none_is_useful_all_are_shown():
    parts = _strips(view_of({name: avoided() for name in "abc"}))
    assert (parts["single"], parts["folds"]) == (list("abc"), [])


@pytest.mark.parametrize(
    ("tied", "bracketed", "single"), [("", "", "abc"), ("a", "", "abc"), ("ab", "ab", "c")]
)
def test_two_that_are_tied_are_bracketed(tied, bracketed, single):
    cards = {name: card(USE, tied=name in tied) for name in "abc"}
    parts = _strips(view_of(cards))
    assert (parts["tied"], parts["single"]) == (list(bracketed), list(single))
    assert parts["n_tied"] == len(tied)


@pytest.mark.parametrize(
    ("last", "title"),
    [(USE, "2 more that beat the base rate by less"), (TOO_FEW, "2 more that rank lower")],
)
def test_rows_after_the_ninth_are_folded(last, title):
    cards = {
        f"p{k:02d}": card(last if k == 10 else USE, as_given=(0.2 - k / 100, 0.01, 0.3))
        for k in range(11)
    }
    cards |= {f"q{k}": avoided() for k in range(6)}
    parts = _strips(view_of(cards))
    assert parts["single"] == [f"p{k:02d}" for k in range(9)]
    more, rest = parts["folds"]
    assert more == {"title": title, "names": "", "rows": ["p09", "p10"]}
    assert rest["title"] == "6 not to use:"
    assert rest["names"] == "q0, q1, q2, q3, q4 and 1 more"
    assert len(rest["rows"]) == 6
    five = _strips(view_of({"p": card(USE)} | {f"q{k}": avoided() for k in range(5)}))
    assert five["folds"][0]["names"] == "q0, q1, q2, q3, q4"


@pytest.mark.parametrize(
    ("action", "won", "title"),
    [
        (USE, "won", "judge: what it said, and how many won"),
        (USE, "solved", "judge: what it said, and how many were solved"),
        (TOO_FEW, "won", "judge, ahead so far: what it said, and how many won"),
    ],
)
def test_titles_of_the_picture(action, won, title):
    screen = SimpleNamespace(shown="judge", answer=SimpleNamespace(action=action))
    assert _title(SimpleNamespace(screen=screen, won=won)) == title


def test_strips_of_groups_lie_on_an_axis_of_their_own():
    a = card(USE, as_given=(0.3, 0.2, 0.4), n_runs=1200, success_rate=0.25)
    b = card(AVOID, as_given=(-0.1, -0.2, 0.0), matters=0.01)
    few = card(TOO_FEW, as_given=(0.9, NAN, NAN), n_needed=2000, n_runs=30)
    cards = {"a": a, "b": b, "c": few}
    table = groups_of([(name, "judge", 0.01, own) for name, own in cards.items()])
    view = view_of({"judge": card(USE)}, by=table)
    (kind,) = _groups(view)
    assert kind["title"] == "Groups by kind differ"
    assert [row["name"] for row in kind["rows"]] == ["c", "a", "b"]
    room = 0.06 * 0.6  # of -0.2 to 0.4: a group without an interval does not stretch it
    low, width = -0.2 - room, 0.6 + 2 * room

    def at(*values):
        return pytest.approx([100 * (x - low) / width for x in values])

    _, first, second = kind["rows"]
    assert first["places"] == at(0.3, 0.2, 0.4)
    assert second["places"] == at(-0.1, -0.2, 0)
    assert [kind["zero"], kind["whole"]] == at(0, 0.1)
    assert second["band"] == pytest.approx([(0.19 + room) * 100 / width, 2 / width])
    assert [row["known"] for row in kind["rows"]] == [[False] * 3, [True] * 3, [True] * 3]
    assert [row["card"] for row in kind["rows"]] == ["about 2,000 more runs", USE, AVOID]
    assert [row["style"] for row in kind["rows"]] == ["few", "use", "avoid"]
    assert first["about"] == "1,200 runs, 25% won"
    assert first["margin"] == "+0.300 [+0.200, +0.400]"
    assert (kind["more"], kind["name"]) == (0, "judge")
    assert kind["sentence"].startswith("How well judge works differs")
    (kind,) = _groups(view_of({"judge": card(USE)}, by=table.assign(p_value=0.05)))
    assert kind["title"] == "No sign of a difference between groups by kind"
    assert _groups(view_of({"judge": card(RECALIBRATE)})) == []
    assert np.isfinite(kind["zero"])


def test_groups_differ_where_any_of_them_is_shown_to():
    rows = [(name, "judge", p, card(USE)) for name, p in (("a", 0.01), ("b", 0.3))]
    (kind,) = _groups(view_of({"judge": card(USE)}, by=groups_of(rows)))
    assert kind["title"] == "Groups by kind differ"


def bins_of(forecast, rate=None):
    forecast = np.array(forecast)
    rate = forecast if rate is None else np.array(rate)
    n = len(forecast)
    return Bins(forecast, rate, rate - 0.05, rate + 0.05, np.full(n, 1 / max(n, 1)), np.arange(n))


@pytest.mark.parametrize(
    ("forecast", "joined"),
    [
        ([0.1, 0.13, 0.2, 0.3, 0.31], [(1, 4)]),
        ([0.1, 0.2, 0.21, 0.3], [(0, 2), (2, 4)]),
        ([0.0, 0.035], [(0, 2)]),
        ([0.0, 0.034], []),
        ([0.5], []),
    ],
)
def test_dots_are_joined_where_none_stands_above_the_other(forecast, joined):
    assert _stretches(bins_of(forecast)) == joined


def test_said_against_happened_is_drawn_for_each_form(monkeypatch):
    bins = {
        "as_given": bins_of([0.2, 0.5, 0.9], [0.4, 0.5, 0.8]),
        "recalibrated": bins_of([0.4, 0.6]),
    }
    asked = []

    def reliability(data, key, part):
        asked.append((data, key, part))
        return bins[key[1]]

    monkeypatch.setattr("trajscore.report.page.screen.reliability", reliability)
    view = SimpleNamespace(data="data", won="won", forms=lambda name: list(bins))
    plot = said_against_happened(view, "judge", "late", height=170)
    assert asked == [("data", ("judge", form), "late") for form in bins]
    assert (plot.height, plot.labels) == (170, [])
    assert plot.about == (
        "judge, share of runs that won by forecast: "
        "as given off by 10% on average, recalibrated off by 0% on average"
    )
    assert plot.paths == [
        ("M0.00 100.00L100.00 0.00", "line reference"),
        ("M20.00 60.00L50.00 50.00L90.00 20.00", "line as_given"),
        ("M40.00 60.00L60.00 40.00", "line recalibrated"),
    ]
    assert np.round([dot[:2] for dot in plot.dots], 9).tolist() == [
        [20, 60], [50, 50], [90, 20], [40, 60], [60, 40],
    ]  # fmt: skip
    assert np.round([span[:3] for span in plot.whiskers], 9).tolist() == [
        [20, 65, 55], [50, 55, 45], [90, 25, 15], [40, 65, 55], [60, 45, 35],
    ]  # fmt: skip
    notes = said_against_happened(view, "judge", notes=True)
    assert (notes.height, asked[-1][2]) == (300, None)
    assert [(label.text, label.style) for label in notes.labels] == [
        ("said 20%, 40% won", "strong as_given"),
        ("said 90%, 80% won", "strong as_given"),
        ("as given", "as_given"),
        ("recalibrated", "recalibrated"),
        ("said = happened", "muted"),
    ]
    bins["as_given"] = bins["recalibrated"] = bins_of([])
    assert said_against_happened(view, "judge") is None


def test_the_line_of_a_run():
    key = "judge", "recalibrated"
    X = TrajectoryArray([0.9, 0.2, 1.3, -0.5, 0.25], [1, 3, 1])
    view = SimpleNamespace(data=SimpleNamespace(traces={key: X}))
    line = run_line(view, key, 1, 2)
    plot = line["plot"]
    assert line["steps"] == 3
    assert (plot.x, plot.y) == (Axis(1, 3, 1), Axis(0, 1, 1))
    assert (plot.about, plot.height, plot.width) == ("Step 2 of 3 said 100%", 90, 170)
    assert plot.paths == [("M0.00 80.00L50.00 0.00L100.00 100.00", "line recalibrated")]
    assert plot.dots == [(50, 0, "flag")]
    assert [(label.text, label.style) for label in plot.labels] == [
        ("step 2: said 100%", "flagged")
    ]
    assert plot.labels[0][:2] == (50, 0)
    alone = run_line(view, key, 2, 1)["plot"]
    assert alone.x == Axis(1, 2, 1)
    assert alone.paths == [("M0.00 75.00L100.00 75.00", "line recalibrated")]
    assert alone.dots == [(0, 75, "flag")]


def cost_curve(best):
    return SimpleNamespace(
        accepted=np.array([1.0, 0.5, 0.25]), threshold=np.array([0.1, 0.55, 0.9]), digits=2,
        cost=lambda price: np.array([0.4, 0.2, 0.3, 0.6]), cheapest=lambda price: best,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("best", "x", "y", "at"), [(0, 100, 48, ""), (1, 50, 88, "from 0.55: "), (3, 0, 8, "")]
)
def test_costs_of_thresholds(best, x, y, at):
    view = SimpleNamespace(screen=SimpleNamespace(accept=cost_curve(best)))
    costs = _costs(view)
    assert costs["path"] == "M0.00 8.00L25.00 68.00L50.00 88.00L100.00 48.00"
    assert (costs["x"], costs["y"]) == pytest.approx((x, y))
    assert costs["text"].startswith(at)
    assert costs["text"].startswith("from") == bool(at)


def test_costs_that_are_all_alike_lie_at_the_foot():
    curve = cost_curve(0)
    curve.cost = lambda price: np.full(4, 0.3)
    costs = _costs(SimpleNamespace(screen=SimpleNamespace(accept=curve)))
    assert costs["path"] == "M0.00 88.00L25.00 88.00L50.00 88.00L100.00 88.00"


@pytest.mark.parametrize(
    ("best", "x", "steps", "text"), [(None, 0, 0, ""), (0, 10, 0.2, "20%"), (1, 40, 0.4, "40%")]
)
def test_what_thresholds_save(best, x, steps, text):
    asked = []
    curve = SimpleNamespace(
        good=np.array([0.1, 0.4]),
        saved={"steps": np.array([0.2, 0.4]), "money": np.array([0.1, 0.8])},
        highest=lambda share: (asked.append(share), best)[1],
    )
    view = SimpleNamespace(
        screen=SimpleNamespace(stops={"judge": curve}, shown="judge"),
        data=SimpleNamespace(monitoring=None),
    )
    saves = _saves(view)
    assert saves["path"] == "M0.00 100.00L10.00 77.00L40.00 54.00"
    assert saves["others"] == {"money": "M0.00 100.00L10.00 88.50L40.00 8.00"}
    assert (saves["top"], saves["held_out"], saves["text"]) == (0.8, [], text)
    assert (saves["x"], saves["y"]) == pytest.approx((x, 100 - 92 * steps / 0.8))
    assert asked == [0.05]
    table = pd.DataFrame(
        {"false_alarm_rate": [0.1], "steps_saved_overall": [1.6]},
        pd.MultiIndex.from_tuples([("judge", 0.1)], names=["predictor", "level"]),
    )
    view.data.monitoring = table
    other = _saves(view)
    assert (other["top"], other["held_out"]) == (1.6, [(10, 8)])
    assert other["path"] == "M0.00 100.00L10.00 88.50L40.00 77.00"
