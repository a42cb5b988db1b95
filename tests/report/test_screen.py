"""Strips of margins on the first screen, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from made_cards import card, data_of, groups_of
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE, ranked
from trajscore.report.page.screen import _groups, _strips, _title

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
