"""The answer, what would change it, and what runs without an outcome do to it."""

import re

import numpy as np
import pandas as pd
import pytest

from made_cards import BETTER, NOTHING, OPEN, card, cards_of, data_of, groups_of
from trajscore import TrajectoryArray, evaluate
from trajscore.core.outcomes import CENSORED
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._answer import (
    _is_another,
    _margin,
    _turns,
    _would_change_by_choice,
    answer,
    counted_as,
    decision,
    means_without_unobserved,
    stays,
    succeeded,
    turned_margins,
)
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE
from trajscore.report._data import Note, Source
from trajscore.report._reliability import reliability
from trajscore.report._verdict import listed

NO_PROBABILITY = ": as given it is not a probability."


def table_of(cards):
    return pd.DataFrame(cards).T.infer_objects()


@pytest.mark.parametrize(
    ("actions", "tied", "headline", "reason"),
    [
        ({"a": USE}, "", "Use a as it is", "A better predictor; this is the only one here."),
        ({"a": RECALIBRATE}, "", "Use a, recalibrated", "A better predictor; this is the only one"),
        ({"a": USE, "b": AVOID}, "", "Use a as it is", "A better predictor; no other here is"),
        (
            {"a": USE, "b": RECALIBRATE, "c": AVOID},
            "",
            "Use a as it is",
            "A cheaper predictor that is good enough. b, recalibrated, is useful.",
        ),
        (
            {"a": RECALIBRATE, "b": RECALIBRATE, "c": USE},
            "",
            "Use a, recalibrated",
            "Nobody to refit it. c needs no recalibration.",
        ),
        (
            {"a": USE, "b": USE, "c": USE},
            "ab",
            "Use a as it is",
            "Cost. a is statistically tied with b: take the cheapest of them.",
        ),
        (dict.fromkeys("abcde", USE), "abcde", "Use a as it is", "tied with b, c, d and e: take"),
        (dict.fromkeys("abcdef", USE), "abcdef", "Use a as it is", "tied with 5 others: take"),
    ],
)
def test_answers(actions, tied, headline, reason):
    cards = cards_of(**actions)
    for name in tied:
        cards[name]["tied"] = True
    found = answer(data_of(cards))
    assert (found.predictor, found.action, found.why) == ("a", actions["a"], "What would change it")
    advice = "Recalibrate a, and act on it" if actions["a"] == RECALIBRATE else "Act on a as below."
    assert found.advice.startswith("Take the cheapest of the tied ones" if tied else advice)
    assert found.headline == f"{headline}{NO_PROBABILITY}"
    assert reason in found.reason


def test_what_ranks_the_wrong_way_round_may_be_a_risk():
    cards, risk = cards_of(a=AVOID, b=AVOID), Note("b", "risk", {"auroc": 0.1})
    found = answer(data_of(cards, remarks=[Note("a", "outside"), risk]))
    assert found.advice == "If high values of b mean failure, give it as a risk (--risk)."


def test_none_is_to_be_used():
    found = answer(data_of(cards_of(a=AVOID, b=AVOID)))
    assert (found.predictor, found.headline) == ("", "Use none of these.")
    assert found.reason == (
        "No predictor, as given or recalibrated, beats always saying 50% by as much as matters, 2% "
        "of its loss."
    )


def test_more_runs_would_settle_it():
    found = answer(data_of(cards_of(a=AVOID, b=TOO_FEW, c=TOO_FEW)))
    assert found.headline == "Not known yet: 1,000 runs are too few. About 200 more could settle b."
    assert found.reason.startswith("200 more runs with an outcome, if b keeps its margin of +0.099")
    cards = cards_of(b=TOO_FEW, c=TOO_FEW)
    cards["c"]["n_needed"] = 30
    found = answer(data_of(cards))
    assert found.predictor == "c"
    assert found.reason.endswith("; b, which is ahead so far, would need 100.")
    assert (
        found.advice == "Collect more runs. Until then, read runs, and do not act on these scores."
    )


def test_the_answer_where_all_have_too_few_runs():
    cards = {name: card(TOO_FEW, n_runs=18, n_needed=n) for name, n in (("a", 2000), ("b", 1500))}
    found = answer(data_of(cards, facts={"n_runs": 18}))
    assert found.headline == (
        "Too few runs to say anything: read these 18 runs, and collect about 1,500 more."
    )
    assert found.reason.startswith("9 succeeded and 9 failed. With fewer than 10 of either")


def test_how_far_another_is_behind():
    columns = ["predictor", "reference", "difference", "low", "high"]
    for pair in (("a", "b", 0.01, 0.005, 0.02), ("b", "a", -0.01, -0.02, -0.005)):
        data = data_of(cards_of(a=USE, b=USE), pairs=pd.DataFrame([pair], columns=columns))
        assert answer(data).reason.endswith("b is useful and is 0.010 [0.005, 0.020] nats behind.")


@pytest.mark.parametrize(("n", "others"), [(0, ""), (1, ""), (5, ""), (6, " and others")])
@pytest.mark.parametrize("p_value", [0.049, 0.05])
def test_the_answer_names_groups_in_which_a_predictor_is_to_be_avoided(n, others, p_value):
    rows = [(f"g{k}", "a", p_value, card(AVOID if k < n else USE)) for k in range(7)]
    headline = answer(data_of(cards_of(a=USE), by=groups_of(rows))).headline
    names = [f"kind g{k}" for k in range(min(n, 5))]
    but_not = f", but not in {listed(names)}{others}" if names and p_value < 0.05 else ""
    assert headline == f"Use a as it is{but_not}{NO_PROBABILITY}"


def test_what_a_successful_run_did():
    for name, word in (("won", "won"), ("Solved", "solved"), ("y", "succeeded"), ("", "succeeded")):
        assert succeeded(data_of({}, source=Source(outcome=name))) == word


# ------------------------------------------------------------------------- what values mean


def test_the_headline_says_what_values_mean():
    runs = make_trajectories(600, lengths=4, random_state=0)
    wrong = runs.q.with_cells(0.2 + 0.2 * runs.q.cells)
    report = evaluate(wrong, runs.target, intervals=IntervalOptions(20))
    bins = reliability(report, ("forecast", "as_given"))
    gaps = bins.largest_gaps()
    means = " and ".join(f"its {bins.forecast[k]:.0%} means {bins.rate[k]:.0%}" for k in gaps)
    assert answer(report).headline == f"Use forecast, recalibrated: {means}."


def test_a_forecast_without_a_gap():
    runs = make_trajectories(600, lengths=4, random_state=0)
    honest = evaluate(runs.q, runs.target, intervals=IntervalOptions(20))
    bins = reliability(honest, ("forecast", "as_given"))
    gaps = bins.largest_gaps()
    said = "these runs show no gap between what it says and what happens."
    if gaps:
        said = f"at worst, its {bins.forecast[gaps[0]]:.0%} means {bins.rate[gaps[0]]:.0%}."
    assert answer(honest).headline == f"Use forecast as it is: {said}"


def test_a_signal_is_not_a_probability(chess):
    X, y = chess
    odds = X["material"].with_cells(10 * X["material"].cells - 5)
    assert answer(evaluate(odds, y, intervals=IntervalOptions(20))).headline == (
        "Use material, recalibrated: as given it is not a probability."
    )


# ------------------------------------------------------------------- runs without an outcome


@pytest.mark.parametrize("censored", ["failure", "q_z"])
def test_the_same_answer_without_unobserved_runs(censored):
    cards = cards_of(a=USE)
    data = data_of(
        cards, facts={"n_observed": 899, "censored": censored}, observed_cards=table_of(cards)
    )
    assert counted_as(data) == ("with their q_z" if censored == "q_z" else "as failures")
    assert answer(data).reason.endswith(
        " Without the 101 runs that have no outcome, the choice stays: use a as it is "
        "(+0.100 [+0.050, +0.150] nats)."
    )


@pytest.mark.parametrize(("command", "drop"), [("", "censored='drop'"), ("x", "--censored drop")])
def test_another_answer_without_unobserved_runs(command, drop):
    data = data_of(
        cards_of(a=RECALIBRATE), facts={"n_observed": 600},
        observed_cards=table_of(cards_of(a=USE)), source=Source(command=command),
    )  # fmt: skip
    assert (
        answer(data).headline == "Use a, recalibrated, if the 400 runs without an outcome failed."
    )
    assert answer(data).reason == (
        f"What became of the 400 runs without an outcome, which count as failures here. **If you "
        f"do not know their outcomes yet, the answer is: use a as it is (+0.100 [+0.050, +0.150] "
        f"nats).** Leave them out then: {drop}."
    )
    for action, said in ((AVOID, "use none of these"), (TOO_FEW, "not known yet")):
        other = data_of(
            cards_of(a=RECALIBRATE), facts={"n_observed": 999},
            observed_cards=table_of(cards_of(a=action)),
        )  # fmt: skip
        assert "of the 1 run without an outcome, which" in answer(other).reason
        assert f"the answer is: {said}.**" in answer(other).reason


@pytest.mark.parametrize(("ours", "turns"), [(OPEN, False), (BETTER, True)])
def test_margins_that_turn_without_unobserved_runs(ours, turns):
    other = (-0.02, -0.14, 0.1)
    data = data_of(
        {"a": card(USE, as_given=ours, recalibrated=NOTHING)},
        facts={"n_observed": 999},
        observed_cards=table_of({"a": card(USE, as_given=other, recalibrated=NOTHING)}),
    )
    words = "a as given is -0.020 over the base rate, not +0.100"
    assert turned_margins(data) == (words if turns else "")


@pytest.mark.parametrize(("pair", "depends"), [((-0.1, 0.1), False), ((0.01, 0.1), True)])
@pytest.mark.parametrize("key", [("a", "b"), ("b", "a")])
def test_another_answer_of_two_that_are_tied(pair, depends, key):
    pairs = pd.DataFrame([[*key, *pair]], columns=["predictor", "reference", "low", "high"])
    observed = table_of(cards_of(b=USE, a=USE))
    data = data_of(cards_of(a=USE, b=USE), pairs=pairs)
    assert _is_another(data, observed) is depends


def test_decisions():
    for actions, decided in (
        ({"a": USE, "b": RECALIBRATE}, ("a", USE)),
        ({"a": AVOID, "b": RECALIBRATE}, ("b", RECALIBRATE)),
        ({"a": AVOID, "b": AVOID}, ("", AVOID)),
        ({"a": AVOID, "b": TOO_FEW}, ("", TOO_FEW)),
    ):
        assert decision(table_of(cards_of(**actions))) == decided


def test_a_tied_predictor_may_lead_without_unobserved_runs():
    columns = ["predictor", "reference", "difference", "low", "high"]
    data = data_of(
        cards_of(a=USE, b=USE),
        facts={"n_observed": 900},
        observed_cards=table_of(cards_of(b=USE, a=USE)),
        pairs=pd.DataFrame([("a", "b", 0.0, -0.1, 0.1)], columns=columns),
    )
    assert answer(data).reason.endswith(
        "Without the 100 runs that have no outcome, a predictor that is tied with it leads: "
        "use b as it is (+0.100 [+0.050, +0.150] nats)."
    )


def test_a_predictor_that_does_not_beat_counting_steps():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 12, 500)
    y = (rng.random(500) < np.where(lengths < 6, 0.9, 0.2)).astype(int)
    step = np.concatenate([np.arange(1, n + 1) for n in lengths])
    X = TrajectoryArray(1 / (1 + step), lengths)
    reason = answer(evaluate(X, y, intervals=IntervalOptions(20))).reason
    assert reason.startswith(
        "Deciding only at the end of a run. There, counting its steps, which is"
    )
    assert re.search(r"free, does better, by 0\.\d+ \[0\.\d+, 0\.\d+\] nats\.", reason)


@pytest.mark.parametrize(
    ("over", "at_end", "words"),
    [
        ((-0.03, -0.04, -0.02), False, "Counting steps, which is free. It does better, by 0.030 ["),
        ((-0.03, -0.04, -0.02), True, "There, counting its steps, which is free, does better, by"),
        ((0.01, -0.04, 0.06), False, "may do as well: a is +0.010 [-0.040, +0.060] nats above it."),
        ((0.03, 0.02, 0.04), False, None),
    ],
)
def test_counting_steps_may_do_as_well(over, at_end, words):
    names = ["over_alive", "over_alive_end"]
    row = {}
    for name in names:
        three = over if (name == "over_alive_end") == at_end else (1.0, 1.0, 1.0)
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), three, strict=True))
    index = pd.MultiIndex.from_tuples([("a", "as_given", "TPS log")])
    knows = {"knows_end": {"a": at_end}}
    data = data_of(cards_of(a=USE), facts=knows, intervals=pd.DataFrame([row], index=index))
    reason = answer(data).reason
    assert (words is None and "ounting" not in reason) or words in reason


def test_runs_without_an_outcome_may_decide_where_nothing_is_to_be_used():
    for action in (AVOID, TOO_FEW):
        data = data_of(
            cards_of(a=action),
            facts={"n_observed": 600},
            observed_cards=table_of(cards_of(a=USE)),
        )
        stated = answer(data)
        assert stated.predictor == ("" if action == AVOID else "a")
        assert "**If you do not know their outcomes yet, the answer is: use a" in stated.reason
        assert stated.advice.startswith("Find out what became of the 400 runs without an outcome")


def test_names_of_several_words_are_quoted():
    cards = cards_of(x=TOO_FEW)
    data = data_of({"tool calls": cards["x"]})
    assert answer(data).headline.endswith("could settle \u201ctool calls\u201d.")


def test_a_single_predictor_is_not_one_of_several(chess):
    X, y = chess
    stated = answer(evaluate(X["material"], y, intervals=IntervalOptions(20)))
    assert stated.advice == "Recalibrate material, and act on it as below."


def test_grades_are_not_counted_as_runs_that_succeeded():
    X = make_trajectories(13, random_state=0).q
    grades = np.append(np.repeat([0.5, 0.0, 0.25], 4), 0.5)
    stated = answer(evaluate(X, grades, intervals=IntervalOptions(20)))
    assert stated.reason.startswith("Outcomes are graded, and add up to 3.5 of 13 successes.")


def observed_of(rates, n_of_each, seen):
    """A report of runs of one step, of forecasts 0.2 and 0.8, and whether outcomes were seen."""
    forecast = np.repeat([0.2, 0.8], n_of_each)
    labels = np.concatenate([np.arange(n_of_each) < rate * n_of_each for rate in rates]).astype(
        float
    )
    key = "judge", "as_given"
    X = TrajectoryArray(forecast, np.ones(2 * n_of_each, dtype=int))
    data = data_of({"judge": card(USE)}, traces={key: X}, labels={key: labels}, groups={})
    data.outcomes = {key: np.where(seen(forecast, labels), labels, CENSORED)}
    data.table.loc[key, "TPS log"] = -0.5
    return data


@pytest.mark.parametrize(
    ("rates", "seen", "said"),
    [
        # of the 100 that said 80%, half succeeded; 20 of those that failed were not seen
        (
            (0.2, 0.5),
            lambda p, y: (y == 1) | (p < 0.5) | (np.arange(200) < 180),
            "its 80% then means 62%",
        ),
        ((0.2, 0.5), lambda p, y: np.full(200, True), ""),  # it means the same
        ((0.2, 0.5), lambda p, y: p < 0.5, ""),  # no run of that bin was seen
        ((0.2, 0.8), lambda p, y: y == 1, ""),  # there is no gap
    ],
)
def test_what_values_mean_without_unobserved_runs(rates, seen, said):
    assert means_without_unobserved(observed_of(rates, 100, seen), "judge") == said


def test_a_signal_means_nothing_without_unobserved_runs():
    data = data_of({"judge": card(USE)})
    assert means_without_unobserved(data, "judge") == ""


@pytest.mark.parametrize(
    ("action", "n_tied", "advice"),
    [
        (USE, 1, "Act on a as below."),
        (RECALIBRATE, 1, "Recalibrate a, and act on it as below."),
        (USE, 2, "Take the cheapest of the tied ones, in the form that its row names."),
    ],
)
def test_the_next_step(action, n_tied, advice):
    cards = cards_of(a=action, b=USE)
    for name in "ab"[:n_tied]:
        cards[name]["tied"] = True
    assert answer(data_of(cards)).advice == advice


def test_one_card_with_enough_runs_is_settled_by_more():
    cards = {"a": card(TOO_FEW, n_runs=18, n_needed=500), "b": card(TOO_FEW, n_needed=70)}
    found = answer(data_of(cards))
    assert (found.predictor, found.why) == ("b", "What would settle it")
    assert found.headline.endswith("About 70 more could settle b.")
    assert found.reason.endswith("; a, which is ahead so far, would need 500.")


def test_the_first_of_those_that_need_as_few_runs_is_named():
    cards = cards_of(a=TOO_FEW, b=TOO_FEW)
    cards["b"]["n_needed"] = 100
    found = answer(data_of(cards))
    assert found.predictor == "a"
    assert found.reason == (
        "100 more runs with an outcome, if a keeps its margin of +0.100 [+0.050, +0.150] nats."
    )


@pytest.mark.parametrize(
    ("n_runs", "rate", "counts"),
    [
        (18, 0.5, "9 solved and 9 failed. With"),
        (18, 7 / 18, "7 solved and 11 failed. With"),
        (18, (7 + 1e-10) / 18, "7 solved and 11 failed. With"),
        (18, 7.001 / 18, "Outcomes are graded, and add up to 7.0 of 18 successes. With"),
        (1018, 3.25 / 1018, "Outcomes are graded, and add up to 3.2 of 1,018 successes. With"),
    ],
)
def test_runs_of_each_outcome_are_counted(n_runs, rate, counts):
    cards = {"a": card(TOO_FEW, n_runs=n_runs, success_rate=rate, n_needed=30)}
    reason = answer(data_of(cards, source=Source(outcome="solved"))).reason
    assert reason == (
        f"{counts} fewer than 10 of either, chance alone makes a predictor look good or bad."
    )


@pytest.mark.parametrize(
    ("actions", "tied", "reason"),
    [
        ((USE, USE, USE), "a", "A cheaper predictor that is good enough. b is useful."),
        ((USE, RECALIBRATE, USE), "", "A cheaper predictor that is good enough. b, recalibrated"),
        ((RECALIBRATE, RECALIBRATE, AVOID), "", "A cheaper predictor that is good enough. b, re"),
        ((RECALIBRATE, USE, USE), "", "Nobody to refit it. b needs no recalibration."),
        ((USE, TOO_FEW, AVOID), "", "A better predictor; no other here is useful."),
    ],
)  # fmt: skip
def test_what_would_change_the_answer(actions, tied, reason):
    cards = cards_of(**dict(zip("abc", actions, strict=True)))
    for name in tied:
        cards[name]["tied"] = True
    data = data_of(cards)
    assert _would_change_by_choice(data, "a", actions[0]).startswith(reason)


def test_margins_of_cards_without_an_interval():
    table = table_of(
        {
            "known": card(USE, as_given=(0.1, float("nan"), float("nan"))),
            "not": card(USE, as_given=(float("nan"),) * 3),
            "mapped": card(RECALIBRATE, as_given=BETTER, recalibrated=OPEN),
        }
    )
    data = data_of(cards_of(a=USE))
    assert [_margin(table, name, data) for name in table.index] == [
        "+0.100 [no interval] nats", "no margin", "+0.020 [-0.100, +0.140] nats",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs", "turns"),
    [
        ((0.1, 0.05, 0.15), (-0.1, -0.2, 0.1), True),
        ((0.1, -0.05, 0.15), (-0.1, -0.2, -0.05), True),
        ((0.1, -0.05, 0.15), (-0.1, -0.2, 0.05), False),  # neither is beyond doubt
        ((0.1, 0.05, 0.15), (0.0, -0.1, 0.1), False),  # zero has no sign
        ((0.1, 0.05, 0.15), (0.2, 0.1, 0.3), False),
        ((-0.1, -0.2, -0.05), (-0.2, -0.3, -0.1), False),
    ],
)
def test_a_margin_turns_if_one_of_both_is_beyond_doubt(ours, theirs, turns):
    one, other = card(USE, as_given=ours), card(USE, as_given=theirs)
    assert _turns(one, other, "as_given") is _turns(other, one, "as_given") is turns


def test_five_margins_that_turn_are_named():
    names = "abcdefg"
    data = data_of(
        {name: card(USE, recalibrated=BETTER) for name in names},
        observed_cards=table_of(
            {name: card(USE, as_given=(-0.1, -0.2, 0.1), recalibrated=(-0.02, -0.1, 0.1))
             for name in ("z", *names)}
        ),
    )  # fmt: skip
    said = turned_margins(data).split("; ")
    assert said == [
        f"{name} {form} is -0.{digits} over the base rate, not +0.100"
        for name, form, digits in [
            ("a", "as given", "100"), ("a", "recalibrated", "020"), ("b", "as given", "100"),
            ("b", "recalibrated", "020"), ("c", "as given", "100"),
        ]
    ]  # fmt: skip
    assert turned_margins(data_of(cards_of(a=USE))) == ""


@pytest.mark.parametrize(
    ("ours", "theirs", "has_pairs", "is_other"),
    [
        ({"a": USE, "b": USE}, {"a": USE, "b": USE}, True, False),
        ({"a": USE, "b": USE}, {"a": RECALIBRATE, "b": AVOID}, True, True),
        ({"a": USE, "b": USE}, {"b": USE, "a": USE}, False, True),  # of other runs each
        ({"a": USE, "b": USE}, {"b": USE, "a": USE}, True, False),
        ({"a": USE, "b": USE}, {"b": USE, "a": RECALIBRATE}, True, True),
        ({"a": USE, "b": USE}, {"b": USE}, True, True),
        ({"a": USE, "b": USE}, {"a": AVOID, "b": AVOID}, True, True),
        ({"a": AVOID, "b": AVOID}, {"a": AVOID, "b": AVOID}, True, False),
        ({"a": AVOID, "b": AVOID}, {"b": USE, "a": USE}, True, True),
    ],
)
def test_whether_the_answer_is_another(ours, theirs, has_pairs, is_other):
    pair = [("a", "b", -0.1, 0.1)]
    pairs = pd.DataFrame(pair, columns=["predictor", "reference", "low", "high"])
    data = data_of(cards_of(**ours), pairs=pairs if has_pairs else None)
    assert _is_another(data, table_of(cards_of(**theirs))) is is_other


def test_nothing_is_known_with_and_without_unobserved_runs():
    cards = cards_of(a=TOO_FEW)
    data = data_of(cards, facts={"n_observed": 999}, observed_cards=table_of(cards))
    assert stays(data) == "it is still not known"
    useful = data_of(cards_of(a=USE), facts={"n_observed": 999})
    useful.observed_cards = useful.cards
    assert " Without the 1 run that has no outcome, the choice stays: use a as" in (
        answer(useful).reason
    )
    graded = data_of(cards_of(a=USE), facts={"n_observed": 600, "censored": "q_z"})
    graded.observed_cards = table_of(cards_of(a=AVOID))
    assert answer(graded).headline == (
        "Use a as it is, if the 400 runs without an outcome have the q_z of a success."
    )
