"""The first screen: what it says at any price, of real and of small data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from made_cards import cards_of, data_of
from trajscore import TrajectoryArray, evaluate, metrics
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._acting import Accepting, Stopping
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE
from trajscore.report._data import Source
from trajscore.report._first_screen import (
    DOUBT,
    _about,
    _counting_does_better,
    _doubt,
    _say_worst,
    acted_on,
    collapsed,
    first_screen,
    of_hundred,
    say_accept,
    say_stop,
    without_marks,
)

QUICK = IntervalOptions(20, method="influence")


def test_shares_of_a_hundred():
    texts = [of_hundred(x) for x in (0, 0.0004, 0.0006, 0.0095, 0.01, 0.125, 0.285, 0.995, 1)]
    assert texts == ["0", "0", "0.1", "1", "1", "13", "29", "100", "100"]


@pytest.fixture
def curve():
    t, a, f = [0.1, 0.4, 0.5, 0.8], [1, 0.6, 0.5, 0.2], [0.5, 0.12, 0.06, 0]
    return Accepting(np.array(t), np.array(a), np.array(f), 2, 200)


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (0.2, "Accept every run. That costs 0.10 reviews a run; reviewing all costs 1, and no"),
        (
            2,
            "Accept runs with a score of 0.50 or more. 50 of 100 runs reach it; 12 of 100 of these",
        ),
        (
            7,
            "Accept runs with a score of 0.80 or more. 20 of 100 runs reach it; none of these 40",
        ),
    ],
)
def test_what_to_accept(curve, price, said):
    assert without_marks(say_accept(curve, price)).startswith(said)
    costs = "That costs **0.62** reviews a run; accepting all costs 1.00, reviewing all 1."
    assert costs in say_accept(curve, 2)


def test_a_range_of_thresholds_that_cost_the_same(curve):
    text = say_accept(curve, 1.6)
    assert text.endswith("Any threshold from 0.40 to 0.50 costs the same within 0.01.")
    assert "Any threshold" not in say_accept(curve, 2)


def test_where_none_should_be_accepted():
    bad = Accepting(np.array([0.1, 0.5]), np.array([1, 0.5]), np.array([0.6, 0.3]), 2, 100)
    assert without_marks(say_accept(bad, 3)) == (
        "Review every run. That costs 1 review a run; accepting all costs 1.80, and no threshold "
        "saves more than 0.02."
    )


def curves_of(**shares):
    """Curves of thresholds .1 and .2, from the good runs that they stop; they save ten times it."""
    return {
        name: Stopping(
            np.array([0.1, 0.2]), np.array(good), np.array([0.5, 0.6]),
            {"steps": np.array(saved), "tokens": np.array(saved) / 2}, 2,
        )
        for name, (good, saved) in shares.items()
    }  # fmt: skip


def test_which_runs_to_stop():
    curves = curves_of(a=([0.02, 0.2], [0.1, 0.3]), b=([0.04, 0.5], [0.2, 0.4]))
    assert without_marks(say_stop(curves, "a", 5)) == (
        "Stop a run once its forecast falls below 0.10. That saves 10% of all steps (5% of the "
        "tokens), and stops 50 of 100 failing runs and 2 of 100 good ones."
    )
    assert "falls below 0.20" in say_stop(curves, "a", 20)
    assert without_marks(say_stop(curves, "b", 2)) == (
        "Stop no run by b. Its lowest threshold, 0.10, already stops 4 of 100 good runs. a would "
        "save 10% of all steps."
    )
    assert say_stop(curves, "b", 1).endswith("already stops 4 of 100 good runs.")
    idle = curves_of(a=([0.0, 0.2], [0.0, 0.3]))
    assert without_marks(say_stop(idle, "a", 5)) == (
        "Stop no run by a. Within this limit, no threshold saves steps."
    )


def test_the_screen_of_chess(report, chess):
    screen = first_screen(report)
    assert screen.shown == screen.drawn[0] == "material"
    assert screen.about.startswith(
        "data given in Python \u00b7 360 runs \u00b7 14,916 steps \u00b7"
    )
    assert "54% succeeded of 293 observed" in screen.about
    key = acted_on(report, "material")
    assert key == ("material", "recalibrated")
    # by the definition: runs that score as much, and how many of them failed
    number, labels = collapsed(report, key), report.labels[key]
    t = float(screen.accept_sentence.split("a recalibrated score of ")[1].split()[0])
    share = (number >= t).mean()
    failed = (1 - labels[number >= t]).mean()
    cost = (2 * (number >= t) * (1 - labels) + (number < t)).mean()
    assert (
        f"{100 * share:.0f} of 100 runs reach it; {100 * failed:.0f} of 100"
        in screen.accept_sentence
    )
    assert f"**{cost:.2f}** reviews a run" in screen.accept_sentence
    assert "Score: average confidence, early steps counting more, rec" in screen.accept_notes[0]
    assert screen.stop_notes == [
        "Chosen on these runs. For a rule judged on other runs: monitoring=True."
    ]


def test_the_run_to_read_first(report):
    screen = first_screen(report)
    worst, key = screen.worst, acted_on(report, "material")
    trace, labels = report.traces[key], report.labels[key]
    observed = np.flatnonzero(report.outcomes[key] >= 0)
    scores = [metrics.tps_score([labels[k]], trace[[k]]) for k in observed]
    row = observed[np.argmin(scores)]
    assert worst["id"] == str(trace.ids[row])
    assert worst["loss"] == pytest.approx(-min(scores))
    cells = trace.cells[trace.offsets[row] : trace.offsets[row + 1]]
    assert worst["flag"] == 1 + np.abs(cells - labels[row]).argmax()
    said = (
        f"At step {worst['flag']} the recalibrated forecast was {worst['value']:.0%}; the run suc"
    )
    assert said in screen.worst_sentence
    assert (
        f"Its average loss is {worst['loss']:.2f}, the largest of 293 runs with an outcome"
        in screen.worst_sentence
    )


def test_few_runs_have_no_actions(chess):
    X, y = chess
    screen = first_screen(evaluate(X[:8], y[:8], intervals=QUICK))
    assert screen.shown == screen.accept_sentence == screen.stop_sentence == ""
    assert screen.worst is None
    assert screen.check.level == "a problem"


def test_no_probability_has_no_actions(chess):
    X, y = chess
    odds = X["material"].with_cells(10 * X["material"].cells - 5)
    screen = first_screen(evaluate(odds, y, calibrator=None, intervals=QUICK))
    assert (screen.shown, screen.drawn, screen.accept) == ("", [], None)


def test_what_is_not_shown_to_be_useful_is_doubted():
    rng = np.random.default_rng(0)
    report = evaluate(rng.random((300, 3)), np.arange(300) % 2, intervals=QUICK)
    screen = first_screen(report)
    doubt = (
        "**Do not act on this yet: no predictor is shown to beat the base rate.** "
        "The rule would be: "
    )
    for rule in (screen.accept_sentence, screen.stop_sentence):
        assert rule.startswith(doubt)
        assert "**" not in rule.removeprefix(doubt)


def test_words_of_the_command_line():
    X, y = make_trajectories(100, random_state=0, return_X_y=True)
    report = evaluate(X, y, intervals=QUICK)
    object.__setattr__(report, "source", Source("runs.csv", "solved", "trajscore report runs.csv"))
    screen = first_screen(report)
    assert screen.about.startswith("runs.csv \u00b7 100 runs")
    assert "% solved" in screen.about
    assert screen.stop_notes[0].endswith("For a rule judged on other runs: --monitor.")


def test_rules_are_said_under_the_condition_that_decides():
    runs = make_trajectories(400, lengths=(2, 6), information=0.5, random_state=0)
    y = runs.target.copy()
    y[np.random.default_rng(0).random(400) < 0.5] = -1
    screen = first_screen(evaluate(runs.q, y, intervals=QUICK))
    n = int((y == -1).sum())
    for rule in (screen.accept_sentence, screen.stop_sentence):
        assert rule.startswith(f"**If the {n} runs without an outcome failed:** ")


def test_a_count_of_steps_that_does_better_is_named_beside_the_threshold(hotpotqa):
    screen = first_screen(evaluate(*hotpotqa, intervals=QUICK))
    assert (
        screen.accept_notes[1]
        == "On finished runs, the number of steps does better than this score."
    )


@pytest.mark.parametrize(
    ("over", "is_named"), [((-0.03, -0.04, -0.02), True), ((0.01, -0.04, 0.06), False)]
)
def test_a_count_of_steps_is_named_only_if_it_does_better(over, is_named):
    row = {}
    for name in ("over_alive", "over_alive_end"):
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), over, strict=True))
    index = pd.MultiIndex.from_tuples([("a", "as_given", "TPS log")])
    data = data_of(cards_of(a=USE), intervals=pd.DataFrame([row], index=index))
    assert bool(_counting_does_better(data, "a")) is is_named


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0"), (0.0004, "0"), (0.0005, "0.1"), (0.0094, "0.9"), (0.00999, "1"), (0.01, "1"),
        (0.0149, "1"), (0.015, "2"), (0.0199, "2"), (0.994, "99"), (0.995, "100"), (1.0, "100"),
    ],
)  # fmt: skip
def test_a_decimal_below_one_of_a_hundred(share, text):
    assert of_hundred(share) == text


def test_what_to_accept_word_by_word(curve):
    assert say_accept(curve, 2, "forecast") == (
        "**Accept runs with a forecast of 0.50 or more.** 50 of 100 runs reach it; 12 of 100 of "
        "these failed. That costs **0.62** reviews a run; accepting all costs 1.00, reviewing all "
        "1."
    )
    assert say_accept(curve, 0) == (
        "**Accept every run.** That costs **0.00** reviews a run; reviewing all costs 1, and no "
        "threshold saves more than 0.02."
    )
    assert "; none of these 40 failed. That costs **0.80**" in say_accept(curve, 7)


@pytest.mark.parametrize(
    ("curves", "shown", "lost", "said"),
    [
        # exactly the limit; of others, the one that saves most
        ({"a": ([0.05, 0.2], [0.1, 0.3])}, "a", 5, "Stop a run once its forecast falls below 0.10"),
        ({"a": ([0.06, 0.2], [0.1, 0.3])}, "a", 5, ("Stop no run by a. Its lowest threshold, 0.10, "
         "already stops 6 of 100 good runs.")),
        ({"a": ([0.06, 0.2], [0.1, 0.3]), "b": ([0.0, 0.05], [0.1, 0.2]),
          "c": ([0.0, 0.2], [0.15, 0.9])}, "a", 5, ("Stop no run by a. Its lowest threshold, 0.10, "
         "already stops 6 of 100 good runs. b would save 20% of all steps.")),
        ({"a": ([0.0, 0.2], [0.0004, 0.3]), "b": ([0.0, 0.3], [0.0005, 0.3])}, "a", 5,
         "Stop no run by a. Within this limit, no threshold saves steps. b would save 0.1% of all"),
        ({"a": ([0.0, 0.2], [0.0004, 0.3]), "b": ([0.0, 0.3], [0.0004, 0.3])}, "a", 5,
         "Stop no run by a. Within this limit, no threshold saves steps."),
        ({"a": ([0.0, 0.2], [0.0, 0.3]), "b": ([0.1, 0.3], [0.5, 0.6])}, "a", 5,
         "Stop no run by a. Within this limit, no threshold saves steps."),
    ],
)  # fmt: skip
def test_which_runs_to_stop_within_a_limit(curves, shown, lost, said):
    text = without_marks(say_stop(curves_of(**curves), shown, lost))
    assert text.startswith(said)
    if said.endswith("."):
        assert text == said


def test_a_predictor_of_one_value_stops_no_run():
    none = np.array([])
    curves = {"a": Stopping(none, none, none, {"steps": none}, 2)}
    assert without_marks(say_stop(curves, "a", 5)) == (
        "Stop no run by a. Within this limit, no threshold saves steps."
    )


@pytest.mark.parametrize(
    ("worst", "facts", "start", "end"),
    [
        ({}, {}, "**r1**. Its average loss is 2.30, the largest of 1,000 runs", "failed"),
        (
            {"task": "t", "loss": 0.0123, "outcome": "lost"},
            {"n_observed": 1},
            "**r1**, task t. Its average loss is 0.01, the largest of 1 run with an outcome",
            "was lost",
        ),
        ({"loss": 0.00123}, {}, "**r1**. Its average loss is 0.001, the largest of 1,0", "failed"),
        ({"loss": 1.23e-6}, {}, "**r1**. Its average loss is 0.0000, the largest of 1,", "failed"),
    ],
)
def test_the_worst_run_in_a_sentence(worst, facts, start, end):
    row = {"id": "r1", "task": "", "loss": 2.3, "flag": 3, "value": 0.9, "outcome": "failed"}
    data = data_of(cards_of(a=USE), facts=facts)
    said = _say_worst(data, pd.Series(row | worst), "forecast")
    assert said.startswith(start)
    assert said.endswith(f". At step 3 the forecast was 90%; the run {end}.")


@pytest.mark.parametrize(
    ("source", "facts", "parts"),
    [
        (Source(), {}, ["data given in Python", "1,000 runs", "6 steps", "50% succeeded"]),
        (
            Source("x/runs.csv", "won"),
            {"n_observed": 900},
            ["runs.csv", "1,000 runs", "6 steps", "50% won of 900 observed"],
        ),
    ],
)
def test_what_was_judged(source, facts, parts):
    X = TrajectoryArray(np.full(6, 0.5), [2, 4])
    dated = replace(source, created="2026-01-02T03:04:05Z", version="1.0")
    key = "base rate", "constant"
    data = data_of(cards_of(a=USE), facts=facts, source=dated, traces={key: X})
    assert _about(data).split(" \u00b7 ") == [*parts, "judged 2026-01-02, trajscore 1.0"]


@pytest.mark.parametrize(
    ("action", "observed", "doubt"),
    [
        (USE, None, ""),
        (RECALIBRATE, None, ""),
        (AVOID, None, DOUBT),
        (TOO_FEW, None, DOUBT),
        (USE, USE, ""),
        (USE, AVOID, "**If the 100 runs without an outcome failed:** "),
    ],
)
def test_what_comes_before_the_rules(action, observed, doubt):
    cards = None if observed is None else pd.DataFrame(cards_of(a=observed)).T
    data = data_of(cards_of(a=action), facts={"n_observed": 900}, observed_cards=cards)
    assert _doubt(data, action) == doubt


def test_a_probability_is_acted_on_in_the_form_of_its_card():
    keys = pd.MultiIndex.from_product([["a"], ["as_given", "recalibrated"]])
    table = pd.DataFrame({"TPS log": [-0.5, -0.4]}, index=keys)
    for action, form in ((USE, "as_given"), (RECALIBRATE, "recalibrated")):
        assert acted_on(data_of(cards_of(a=action), table=table), "a") == ("a", form)
    table.iloc[0] = np.nan  # a signal
    assert acted_on(data_of(cards_of(a=USE), table=table), "a") == ("a", "recalibrated")
