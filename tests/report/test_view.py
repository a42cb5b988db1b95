"""What the parts of the page ask of a report and its log, by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from made_cards import card, data_of
from trajscore import TrajectoryArray, io
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE
from trajscore.report.page.screen import _held_out, _place, _row, _short
from trajscore.report.page.view import View

KEY = "judge", "as_given"
NAN = float("nan")


@pytest.mark.parametrize(
    ("rates", "has_few"),
    [((0.5, 0.5), False), ((0.009, 0.5), False), ((0.009, 0.991), True), ((0.01, 0.009), False)],
)
def test_nothing_is_drawn_where_every_predictor_has_too_few_runs(rates, has_few):
    cards = {f"p{k}": card(TOO_FEW, success_rate=rate) for k, rate in enumerate(rates)}
    data = data_of(cards, traces={("base rate", "constant"): TrajectoryArray([0.5], [1])})
    assert View(data).has_few is has_few


def view_of(n_known, n_runs=10, *, cost=2.0, n_tokens=3):
    """A view of runs of one step, of which some say what they cost."""
    tokens = ["x"] * n_tokens
    known, unknown = io.Step("agent", "Hi", cost=cost, tokens=tokens), io.Step("agent", "Hi")
    log = [io.Run(f"r{k}", [known if k < n_known else unknown]) for k in range(n_runs)]
    X = TrajectoryArray(np.full(n_runs, 0.5), np.ones(n_runs, int), ids=[run.id for run in log])
    table = data_of({"judge": card(USE)}, traces={KEY: X, ("base rate", "constant"): X})
    return View(table, log)


@pytest.mark.parametrize(
    ("n_known", "kinds"), [(10, {"tokens", "money"}), (9, {"tokens", "money"}), (8, set())]
)
def test_nine_of_ten_steps_have_to_say_what_they_cost(n_known, kinds):
    costs = view_of(n_known).costs(KEY)
    assert set(costs) == kinds
    for kind, cost in costs.items():
        expected = {"tokens": 3, "money": 2}[kind]
        assert cost.tolist() == [expected] * n_known + [0] * (10 - n_known)


def test_what_costs_nothing_is_not_shown():
    assert set(view_of(10, cost=0.0).costs(KEY)) == {"tokens"}
    assert set(view_of(10, n_tokens=0).costs(KEY)) == {"money"}


def test_costs_go_by_the_names_of_runs():
    log = [
        io.Run("b", [io.Step("agent", "", cost=1.0), io.Step("agent", "", cost=2.0)]),
        io.Run("a", [io.Step("agent", "", cost=4.0)]),
        io.Run("c", [io.Step("agent", "", cost=8.0)]),  # of two steps in the data
    ]
    X = TrajectoryArray(np.zeros(5), [1, 2, 2], ids=["a", "b", "c"])
    data = data_of({"judge": card(USE)}, traces={KEY: X, ("base rate", "constant"): X})
    assert View(data, log).costs(KEY) == {}
    whole = X[[0, 1]]
    data.traces[KEY] = whole
    assert View(data, log).costs(KEY)["money"].tolist() == [4, 1, 2]


def test_a_predictor_is_called_by_the_form_that_is_acted_on():
    cards = {"a": card(USE), "b": card(RECALIBRATE), "c": card(TOO_FEW)}
    X = TrajectoryArray([0.5], [1])
    data = data_of(cards, traces={("base rate", "constant"): X})
    data.table.loc[:, "TPS log"] = [-0.5, -0.6, NAN]
    data.table.loc[("b", "recalibrated"), "TPS log"] = -0.4
    view = View(data)
    assert [view.called(name) for name in "abc"] == ["a as given", "b, recalibrated", "c"]
    assert [view.forms(name) for name in "abc"] == [
        ["as_given"], ["as_given", "recalibrated"], [],
    ]  # fmt: skip
    assert (view.digits, view.won, view.has_few) == (3, "succeeded", False)
    assert view.names == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("action", "margins", "said"),
    [
        (USE, {"as_given": (0.1, 0.05, 0.15)}, ("+0.100 [+0.050, +0.150]", "", "use")),
        (
            RECALIBRATE,
            {"as_given": (-0.2, -0.3, -0.1), "recalibrated": (0.1, 0.05, 0.15)},
            ("+0.100 [+0.050, +0.150]", "as given -0.200", "recalibrate"),
        ),
        (
            TOO_FEW,
            {"as_given": (NAN,) * 3, "recalibrated": (0.1, NAN, NAN)},
            ("+0.100 [no interval]", "", "few"),
        ),
        (AVOID, {"as_given": (NAN,) * 3, "recalibrated": (NAN,) * 3}, ("", "", "avoid")),
    ],
)
def test_a_row_has_the_margin_of_the_form_to_use(action, margins, said):
    own = card(action, n_needed=7, signal_high=0.0, **margins)
    view = SimpleNamespace(
        data=data_of({"judge": own}), digits=3, screen=SimpleNamespace(drawn=["x", "judge"])
    )
    row = _row(view, "judge")
    assert (row["margin"], row["as_given"], row["style"]) == said
    assert (row["card"], row["place"]) == (action, 1)
    assert row["why"].endswith(".")
    assert _place(view, "y") == -1


def test_a_rule_on_other_runs_is_that_of_the_predictor_that_is_shown():
    index = pd.MultiIndex.from_product([["a", "b"], [0.1, 0.2]], names=["predictor", "alpha"])
    table = pd.DataFrame(
        {"false_alarm_rate": [0.1, NAN, 0.3, 0.4], "steps_saved_overall": [0.5, 0.6, 0.7, 0.8]},
        index=index,
    )

    def held_out(table, shown):
        view = SimpleNamespace(data=SimpleNamespace(monitoring=table))
        view.screen = SimpleNamespace(shown=shown)
        return _held_out(view)

    assert held_out(table, "a") == ([0.1], [0.5])
    assert held_out(table, "b") == ([0.3, 0.4], [0.7, 0.8])
    assert held_out(table, "c") == held_out(None, "a") == ([], [])


def test_numbers_for_the_script_have_fifteen_digits():
    assert _short([1 / 3, 1, 0.1 + 0.2]) == [0.333333333333333, 1.0, 0.3]
