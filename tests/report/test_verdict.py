"""Sentences about predictors, of cards made by hand."""

import pandas as pd
import pytest

from made_cards import BETTER, NAN, NOTHING, OPEN, WORSE, card, cards_of, data_of, groups_of
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE
from trajscore.report._verdict import (
    _margins,
    _other_clip,
    _without_unobserved,
    behind_counting,
    card_reason,
    listed,
    of_groups,
    of_stopping,
    ranking,
    side_of_zero,
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


@pytest.mark.parametrize(
    ("small", "large", "decides"),
    [(0.1, -0.2, True), (-0.1, 0.2, True), (0.1, 0.2, False), (1e-14, -0.2, False)],
)
def test_the_clip_of_the_log_score_may_decide(small, large, decides):
    index = pd.MultiIndex.from_tuples([("a", "as_given")])
    table = pd.DataFrame({"clip_1e-6": [small], "clip_1e-2": [large]}, index=index)
    sentences = _other_clip(data_of(cards_of(a=USE), sensitivity=table), "a")
    words = f"as given the margin is {small:+.3f} with a clip of 1e-6 and {large:+.3f} with 1e-2."
    assert sentences == ([f"The clip of the log score decides: {words}"] if decides else [])


@pytest.mark.parametrize(
    ("other", "words"),
    [(0.02, "+0.020 as given (by -0.080)"), (-0.02, "-0.020 as given (by -0.120, the other sign)")],
)
def test_margins_without_unobserved_runs(other, words):
    index = pd.MultiIndex.from_tuples([("a", "as_given")])
    table = pd.DataFrame({"margin": [0.1], "observed_only": [other]}, index=index)
    full = pd.MultiIndex.from_tuples([("a", "as_given", "TPS log")])
    columns = ["margin", "margin_low", "margin_high"]
    intervals = pd.DataFrame([BETTER], index=full, columns=columns)
    data = data_of(
        cards_of(a=USE), facts={"n_observed": 998}, sensitivity=table, intervals=intervals
    )
    said = f"Without the 2 unobserved runs these margins would be {words}."
    assert _without_unobserved(data, "a") == [said]


@pytest.mark.parametrize(
    ("margin", "value", "words"),
    [
        ((0.1, 0.05, 0.15), -0.5, "as given 0.100 nats better than the base rate [+0.050, +0.150]"),
        ((0.0004, -0.0004, 0.00049), -0.5, "as given the same as the base rate to 3 decimals"),
        ((-0.0004, -0.0006, 0.0001), -0.5, "not distinguishable from the base rate"),
        ((0.0, 0.0, 0.0), -0.5, "as given the same as the base rate"),
    ],
)
def test_margins_that_round_to_nothing_are_the_same(margin, value, words):
    index = pd.MultiIndex.from_tuples(
        [("judge", "as_given", "TPS log")], names=["predictor", "form", "metric"]
    )
    intervals = pd.DataFrame(
        [[value, *margin]], index, ["value", "margin", "margin_low", "margin_high"]
    )
    (said,) = _margins(data_of(cards_of(other=USE), intervals=intervals), "judge")
    assert words in said
    assert ("the same as" in said) == ("the same as" in words)
    assert ("decimals" in said) == ("decimals" in words)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (0.009, "only 9 of 1,000 runs succeeded; at least 10 successes and 10 failures"),
        (0.991, "only 9 of 1,000 runs failed; at least 10 successes and 10 failures"),
    ],
)
def test_nine_runs_of_an_outcome_are_too_few(rate, words):
    own = card(TOO_FEW, success_rate=rate, n_needed=300, signal_high=0.1)
    assert words in card_reason(own, data_of({"a": own}))


def test_ten_runs_of_an_outcome_are_enough():
    own = card(TOO_FEW, success_rate=0.01, n_needed=300, signal_high=0.1)
    said = card_reason(own, data_of({"a": own}))
    assert "at least 10 successes" not in said
    assert "about 300 more" in said


def test_groups_of_few_runs_are_not_named_as_worse():
    worse = {"recalibrated": WORSE, "n_runs": 100}
    rows = [
        ("x", "a", 0.01, card(AVOID, **worse)),
        ("y", "a", 0.01, card(AVOID, success_rate=0.05, **worse)),
        ("z", "a", 0.01, card(USE, n_runs=100)),
    ]
    said = of_groups(data_of(cards_of(a=USE), by=groups_of(rows)), "kind")
    assert "it is worse than the base rate in x: report these runs alone" in said
    same = [(group, name, 0.2, own) for group, name, _, own in rows]
    assert "worse than the base rate in" not in of_groups(
        data_of(cards_of(a=USE), by=groups_of(same)), "kind"
    )
