"""The first screen: what it says at any price, of real and of small data."""

import numpy as np
import pandas as pd
import pytest

from made_cards import cards_of, data_of
from trajscore import evaluate, metrics
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._acting import Accepting, Stopping
from trajscore.report._cards import USE
from trajscore.report._data import Source
from trajscore.report._first_screen import (
    _counting_does_better,
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
