"""Sentences about predictors, of cards made by hand."""

from types import SimpleNamespace

import pandas as pd
import pytest

from trajscore.core.weights import as_step_weights
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE
from trajscore.report._data import Facts, IntervalOptions, Options
from trajscore.report._verdict import (
    _is_another,
    answer,
    behind_counting,
    card_reason,
    counted_as,
    listed,
    of_groups,
    of_stopping,
    ranking,
    side_of_zero,
)

NAN = float("nan")
NOTHING = (NAN, NAN, NAN)
BETTER, WORSE, OPEN = (0.1, 0.05, 0.15), (-0.1, -0.15, -0.05), (0.02, -0.1, 0.14)


def card(action, *, as_given=BETTER, recalibrated=BETTER, gain=NOTHING, **others):
    ends = ("", "_low", "_high")
    estimates = {
        "as_given": as_given,
        "recalibrated": recalibrated,
        "gain": gain,
        "signal": NOTHING,
    }
    numbers = {
        f"{name}{end}": value
        for name, three in estimates.items()
        for end, value in zip(ends, three, strict=True)
    }
    rest = {"n_runs": 1000, "success_rate": 0.5, "n_needed": 0, "matters": 0.0125, "tied": False}
    return pd.Series({"card": action} | numbers | rest | others, dtype=object)


def data_of(cards, *, facts=None, **others):
    table = pd.DataFrame(cards).T.infer_objects() if cards else pd.DataFrame()
    told = {
        "n_runs": 1000, "n_observed": 1000, "success_rate": 0.5, "censored": "failure",
        "rate": 0.5, "n_beyond": 0, "n_unscored": 0, "knows_end": {}, "is_clustered": False,
        "intervals": IntervalOptions(), "calibrators": None, "monitoring": None,
    }  # fmt: skip
    options = Options(("log",), as_step_weights(), "weighted")
    rest = {"by": None, "pairs": None, "observed_cards": None, "monitoring": None}
    return SimpleNamespace(
        cards=table,
        options=options,
        score_name="TPS log",
        facts=Facts(**(told | (facts or {}))),
        **(rest | others),
    )


def test_side_of_zero():
    found = [side_of_zero(*ends) for ends in ((0.1, 0.2), (-0.2, -0.1), (0, 0.1), (-0.1, 0))]
    assert found == [1, -1, 0, 0]


def test_lists():
    assert [listed("a"), listed("ab"), listed("abc")] == ["a", "a and b", "a, b and c"]


GIVEN = "0.100 nats [0.050, 0.150] better than the base rate"


@pytest.mark.parametrize(
    ("estimates", "words"),
    [
        ({}, f"{GIVEN}; recalibration was not tried"),
        ({"gain": (-0.1, -0.2, 0)}, f"{GIVEN}; recalibrating it gains nothing"),
        (
            {"gain": (0.003, -0.01, 0.013)},
            f"{GIVEN}; recalibrating it gains no more than 0.013 nats",
        ),
        (
            {"gain": (0.013, -0.01, 0.014)},
            (
                f"{GIVEN}; recalibrating it gains 0.013 nats [-0.010, 0.014], less than the 0.014 "
                f"nats that matter"
            ),
        ),
        (
            {"gain": (0.014, -0.01, 0.014)},
            f"{GIVEN}; recalibrating it may gain something; too few runs to tell",
        ),
        (
            {"as_given": (0.0004, 0.0002, 0.0006)},
            "0.0004 nats [0.0002, 0.0006] better than the base rate; recalibration was not tried",
        ),
    ],
)
def test_why_use(estimates, words):
    assert card_reason(card(USE, matters=0.014, **estimates), data_of({})) == words


RECALIBRATED = "recalibrated, 0.100 nats [0.050, 0.150] better than the base rate"


@pytest.mark.parametrize(
    ("estimates", "words"),
    [
        ({"as_given": NOTHING}, "as given it is not a probability"),
        ({"as_given": WORSE}, "as given it is worse, by 0.100 nats [0.050, 0.150]"),
        (
            {"gain": (0.02, 0.001, 0.04)},
            "that gains 0.020 nats [0.001, 0.040] over the values as given",
        ),
        (
            {"gain": (0.005, 0, 0.012), "as_given": (-0.1, -0.2, 0)},
            "as given it is not shown to be better",
        ),
        (
            {"gain": (0.005, 0, 0.0125)},
            "recalibration may be unnecessary; too few runs to tell",
        ),
    ],
)
def test_why_recalibrate(estimates, words):
    found = card_reason(card(RECALIBRATE, **estimates), data_of({}))
    assert found == f"{RECALIBRATED}; {words}"


@pytest.mark.parametrize(
    ("as_given", "recalibrated", "words"),
    [
        (WORSE, (-0.1, -0.2, 0), "recalibrated or not, no better than the base rate"),
        (WORSE, NOTHING, "as given, no better than the base rate"),
        (NOTHING, WORSE, "even recalibrated, no better than the base rate"),
        (
            WORSE,
            (0, -0.01, 0.004),
            (
                "recalibrated or not, better than the base rate by no more than 0.004 nats; less "
                "than 0.020 nats does not matter"
            ),
        ),
    ],
)
def test_why_avoid(as_given, recalibrated, words):
    own = card(AVOID, as_given=as_given, recalibrated=recalibrated, matters=0.02)
    assert card_reason(own, data_of({})) == words


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            {"success_rate": 0.991, "n_needed": 1200},
            (
                "only 9 of 1,000 runs failed; at least 10 successes and 10 failures are needed to "
                "draw a conclusion: collect at least about 1,200 more runs"
            ),
        ),
        (
            {"success_rate": 0.5, "n_runs": 18, "n_needed": 2},
            (
                "only 9 of 18 runs succeeded; at least 10 successes and 10 failures are needed to "
                "draw a conclusion: collect at least about 2 more runs"
            ),
        ),
        (
            {"recalibrated": OPEN},
            "recalibrated, anywhere from -0.100 to +0.140 over the base rate",
        ),
        (
            {"recalibrated": (0.02, 0, 0.1)},
            "recalibrated, anywhere from +0.000 to +0.100 over the base rate",
        ),
        (
            {"recalibrated": OPEN, "as_given": WORSE},
            (
                "as given it is worse than the base rate; recalibrated, anywhere from -0.100 to "
                "+0.140 over the base rate"
            ),
        ),
        (
            {"recalibrated": OPEN, "as_given": (-0.1, -0.2, 0)},
            "recalibrated, anywhere from -0.100 to +0.140 over the base rate",
        ),
        (
            {"recalibrated": NOTHING, "as_given": OPEN},
            "as given, anywhere from -0.100 to +0.140 over the base rate",
        ),
        (
            {"recalibrated": (0.011, 0.001, 0.021), "matters": 0.02},
            (
                "recalibrated, 0.011 nats [0.001, 0.021] better than the base rate, less than the "
                "0.020 nats that matter"
            ),
        ),
        ({"recalibrated": NOTHING, "as_given": NOTHING}, ""),
    ],
)
def test_why_too_few(facts, words):
    found = card_reason(card(TOO_FEW, **({"n_needed": 1500} | facts)), data_of({}))
    if not words.startswith("only"):
        more = "about 1,500 more runs would settle this"
        words = f"{words}; {more}" if words else more
    assert found == words


def cards_of(**actions):
    """Cards with margins that fall in the order of the names."""
    return {
        name: card(
            action,
            as_given=tuple(x - 0.001 * k for x in BETTER),
            recalibrated=tuple(x - 0.001 * k for x in BETTER),
            n_needed=100 * (k + 1),
        )
        for k, (name, action) in enumerate(actions.items())
    }


@pytest.mark.parametrize(
    ("actions", "tied", "words"),
    [
        ({"a": USE}, "", "Use a, as it is."),
        ({"a": RECALIBRATE}, "", "Use a, recalibrated."),
        (
            {"a": USE, "b": RECALIBRATE, "c": AVOID},
            "",
            "Use a, as it is, the best of 2 that beat the base rate.",
        ),
        (
            {"a": USE, "b": USE, "c": USE},
            "ab",
            (
                "Use a, as it is. About as good, each used as its card says: b. Take the one that "
                "costs least."
            ),
        ),
        (
            dict.fromkeys("abcde", USE),
            "abcde",
            (
                "Use a, as it is. About as good, each used as its card says: b, c, d and e. Take "
                "the one that costs least."
            ),
        ),
        (
            dict.fromkeys("abcdef", USE),
            "abcdef",
            (
                "Use a, as it is. About as good, each used as its card says: 5 others. Take the "
                "one that costs least."
            ),
        ),
        (
            {"a": AVOID, "b": AVOID},
            "",
            (
                "None: no predictor beats a constant forecast of the base rate by as much as "
                "matters, 2% of its loss."
            ),
        ),
        ({"a": AVOID, "b": TOO_FEW, "c": TOO_FEW}, "", "Not known yet: about 200 more runs would"),
    ],
)
def test_answers(actions, tied, words):
    cards = cards_of(**actions)
    for name in tied:
        cards[name]["tied"] = True
    headline, unobserved = answer(data_of(cards))
    assert headline.startswith(words)
    assert unobserved == ""


def test_the_answer_where_all_have_too_few_runs():
    cards = {name: card(TOO_FEW, n_runs=18, n_needed=n) for name, n in (("a", 2000), ("b", 1500))}
    found = answer(data_of(cards))[0]
    assert found == "Not known yet: collect at least about 1,500 more runs."


def groups_of(rows):
    """Cards of groups, rows being (group, predictor, p_value, card)."""
    index = pd.MultiIndex.from_tuples(
        [("kind", group, name) for group, name, _, _ in rows], names=["by", "group", "predictor"]
    )
    table = pd.DataFrame([own for *_, own in rows], index=index).infer_objects()
    return table.assign(p_value=[p for _, _, p, _ in rows])


@pytest.mark.parametrize(("n", "others"), [(0, ""), (1, ""), (5, ""), (6, " and others")])
@pytest.mark.parametrize("p_value", [0.049, 0.05])
def test_the_answer_names_groups_in_which_a_predictor_is_to_be_avoided(n, others, p_value):
    rows = [(f"g{k}", "a", p_value, card(AVOID if k < n else USE)) for k in range(7)]
    found = answer(data_of(cards_of(a=USE), by=groups_of(rows)))[0]
    names = [f"kind g{k}" for k in range(min(n, 5))]
    but_not = f", but not in {listed(names)}{others}" if names and p_value < 0.05 else ""
    assert found == f"Use a, as it is{but_not}."


def test_groups_that_are_not_shown_to_differ():
    rows = [(group, "a", 0.05, card(USE)) for group in "xyz"]
    assert of_groups(data_of(cards_of(a=USE), by=groups_of(rows)), "kind") == (
        "the 3 groups are not shown to differ in how well a works (p = 0.05): read the result of "
        "all runs."
    )


def test_groups_that_differ():
    few = card(TOO_FEW, n_runs=18)
    bad = card(AVOID, recalibrated=(-0.1, -0.2, -0.01))
    rows = [
        (group, name, p, own)
        for group, own in (("x", few), ("y", few), ("z", few), ("v", bad), ("w", card(USE)))
        for name, p in (("a", 0.0123), ("b", 0.05), ("c", 0.04))
    ]
    data = data_of(cards_of(a=USE, b=USE, c=USE), by=groups_of(rows))
    assert of_groups(data, "kind") == (
        f"how well a works differs between groups (p = 0.012): {USE} in 1, {AVOID} in 1, {TOO_FEW} "
        f"in 3 of 5 groups; they differ in how well c works; 3 have fewer than 10 runs of "
        "an outcome, which say nothing: group by what has fewer values, such as a model or a kind "
        "of task; recalibrated by one map for all runs, it is worse than the base rate in v: "
        "report these runs alone, where it may need another map or point the other way."
    )


@pytest.mark.parametrize(("n_few", "words"), [(2, None), (3, "; 3 have fewer"), (4, "; all have")])
def test_most_groups_are_small(n_few, words):
    rows = [(f"g{k}", "a", 0.5, card(TOO_FEW, n_runs=18 if k < n_few else 20)) for k in range(4)]
    found = of_groups(data_of(cards_of(a=USE), by=groups_of(rows)), "kind")
    assert (words in found) if words else ("fewer than 10" not in found)


@pytest.mark.parametrize(("n", "others"), [(5, ""), (6, " and others")])
def test_groups_in_which_recalibration_makes_worse(n, others):
    bad = card(AVOID, recalibrated=(-0.1, -0.2, -0.01))
    rows = [(f"g{k}", "a", 0.01, bad) for k in range(n)]
    rows.append(("zero", "a", 0.01, card(AVOID, recalibrated=(-0.1, -0.2, 0.0))))
    found = of_groups(data_of(cards_of(a=USE), by=groups_of(rows)), "kind")
    assert f"worse than the base rate in g0, g1, g2, g3 and g4{others}: report" in found
    calm = [(group, name, 0.05, own) for group, name, _, own in rows]
    assert "worse" not in of_groups(data_of(cards_of(a=USE), by=groups_of(calm)), "kind")


# --------------------------------------------------------------- runs without an outcome


@pytest.mark.parametrize(("n_observed", "is_named"), [(900, False), (899, True)])
@pytest.mark.parametrize("censored", ["failure", "q_z"])
def test_the_same_answer_without_unobserved_runs(n_observed, is_named, censored):
    cards = cards_of(a=USE)
    data = data_of(
        cards,
        facts={"n_observed": n_observed, "censored": censored},
        observed_cards=pd.DataFrame(cards).T.infer_objects(),
    )
    assert counted_as(data) == ("with their q_z" if censored == "q_z" else "as failures")
    headline, unobserved = answer(data)
    assert headline == "Use a, as it is."
    budget = (
        ", which is right where such a run did not succeed, as when a budget stopped it"
        if censored == "failure"
        else ""
    )
    assert unobserved == is_named * (
        f"101 of 1,000 runs (10%) have no outcome and count {counted_as(data)}{budget}. Without "
        f"these runs the answer is the same. Leave these runs out, censored='drop' (--censored "
        f"drop), only if whether an outcome is missing has nothing to do with how the run ends."
    )


@pytest.mark.parametrize(("ours", "turns"), [(OPEN, False), (BETTER, True)])
def test_margins_that_turn_without_unobserved_runs(ours, turns):
    other = (-0.02, -0.14, 0.1)
    data = data_of(
        {"a": card(USE, as_given=ours, recalibrated=NOTHING)},
        facts={"n_observed": 999},
        observed_cards=pd.DataFrame({"a": card(USE, as_given=other, recalibrated=NOTHING)}).T,
    )
    words = "Without these runs the answer is the same, but a as given is -0.020 over the base rate"
    assert (f"{words}, not +0.100." in answer(data)[1]) is turns


@pytest.mark.parametrize(("pair", "depends"), [((-0.1, 0.1), False), ((0.01, 0.1), True)])
@pytest.mark.parametrize("key", [("a", "b"), ("b", "a")])
def test_another_answer_of_two_that_are_tied(pair, depends, key):
    pairs = pd.DataFrame([[*key, *pair]], columns=["predictor", "reference", "low", "high"])
    observed = pd.DataFrame(cards_of(b=USE, a=USE)).T.infer_objects()
    data = data_of(cards_of(a=USE, b=USE), pairs=pairs)
    assert _is_another(data, observed) is depends


# ------------------------------------------------------------------------------ stopping


def stopping(rows):
    index = pd.MultiIndex.from_tuples([key for key, _ in rows], names=["predictor", "alpha"])
    columns = ["power_before_end", "steps_saved"]
    return data_of({}, monitoring=pd.DataFrame([own for _, own in rows], index, columns))


def test_stopping():
    rows = [(("a", alpha), (alpha, 0.1)) for alpha in (0.05, 0.1, 0.2)]
    rows += [(("b", alpha), (alpha / 2, 0.3)) for alpha in (0.05, 0.1, 0.2)]
    rows += [(("base rate", alpha), (0.9, 0.9)) for alpha in (0.05, 0.1, 0.2)]
    assert of_stopping(stopping(rows)) == (
        "On a, with at most 10% of the good runs flagged, 10% of the failing runs are flagged "
        "before their last step, which saves 10% of their steps."
    )
    assert of_stopping(stopping([(("a", 0.05), (0.005, 0.0))])).startswith("On a, with at most 5%")
    assert of_stopping(stopping([(("a", 0.05), (0.0049, 0.0))])) == (
        "With at most 5% of the good runs flagged, no predictor flags a failing run before its "
        "last step."
    )
    for rows in ([(("a", 0.1), (NAN, NAN))], [(("base rate", 0.1), (0.5, 0.5))]):
        assert of_stopping(stopping(rows)) == (
            "These runs are too few, or too alike, to fit a rule on some and judge it on others."
        )


# ------------------------------------------------------------------------- counting steps


def against_counting(unknown, known, *, knows=None, metric="AUROC"):
    columns = [f"over_alive{end}{part}" for end in ("", "_end") for part in ("", "_low", "_high")]
    index = pd.MultiIndex.from_tuples([("a", "as_given", metric)])
    table = pd.DataFrame([[*unknown, *known]], index, columns)
    knows_end = {} if knows is None else {"a": knows}
    cards = {"a": card(USE)}
    return data_of(cards, facts={"knows_end": knows_end}, intervals=table)


END = "where it is known which step is the last (end= or --end says whether it is)"
BETTER_RANK, NO_RANK = "ranks better than counting steps does", "is not shown to rank better than"


@pytest.mark.parametrize(
    ("unknown", "known", "knows", "words"),
    [
        (BETTER, BETTER, None, BETTER_RANK),
        (BETTER, OPEN, False, BETTER_RANK),
        (BETTER, OPEN, True, f"{NO_RANK} counting steps does"),
        (BETTER, OPEN, None, f"{BETTER_RANK}, and {NO_RANK} counting steps does {END}"),
        (WORSE, WORSE, None, "ranks worse than counting steps does"),
    ],
)
def test_ranking_against_counting_steps(unknown, known, knows, words):
    data = against_counting(unknown, known, knows=knows)
    assert ranking(data, "a", brief=True) == words
    if " and " not in words:
        three = known if knows else unknown
        value, low, high = (f"{x:+.3f}" for x in three)
        assert ranking(data, "a") == f"{words} (AUROC {value} [{low}, {high}])"


@pytest.mark.parametrize(
    ("unknown", "known", "words"),
    [
        (BETTER, BETTER, ""),
        ((0.1, 0, 0.2), (0.1, 0, 0.2), "not distinguishable from counting steps [+0.000, +0.200]"),
        (WORSE, WORSE, "0.100 nats worse than counting steps [-0.150, -0.050]"),
        (
            BETTER,
            OPEN,
            "not distinguishable from counting steps where the last step is known [-0.100, +0.140]",
        ),
    ],
)
def test_behind_counting_steps(unknown, known, words):
    data = against_counting(unknown, known, metric="TPS log")
    words = f"a beats a constant, but is {words}." if words else ""
    assert behind_counting(data, "a") == words
    data.cards["card"] = TOO_FEW
    assert behind_counting(data, "a") == ""
