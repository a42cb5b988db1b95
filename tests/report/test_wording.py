"""Each sentence of the answer by itself, with the condition under which it is said."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from trajscore.evaluation.recommendation import Action, Interval, OtherChoice, Recommendation, Shown
from trajscore.evaluation.reliability import Stated
from trajscore.evaluation.runs import Exclusion, ExclusionKind
from trajscore.report import doubts, headline
from trajscore.report.glossary import outcome_of
from trajscore.report.wording import before_rules, next_step

NAN = float("nan")
ENDS = {
    "as_given": Interval(0.1, 0.05, 0.15),
    "recalibrated": Interval(0.12, 0.06, 0.18),
    "gain": Interval(0.02, 0.0, 0.04),
    "overconfidence": Interval(0.2, 0.1, 0.3),
}
SHOWN = Recommendation(
    "judge", Action.USE, Shown.YES, 200, 0.4, 0, NAN, 0.3, **ENDS, matters=0.01,
    confidence_level=0.95, tied=True,
)  # fmt: skip
SMALL = replace(SHOWN, action=Action.TOO_FEW, n_runs=12, success_rate=0.25, n_needed=40)
OPEN = replace(SHOWN, action=Action.TOO_FEW, n_needed=300, at_its_word=Shown.NO)
UNSCORED = replace(SHOWN, action=Action.UNSCORED, as_given=Interval(), recalibrated=Interval())
CONSTANT = replace(SHOWN, action=Action.AVOID, only_value=0.5)
USELESS = replace(SHOWN, action=Action.AVOID)
NOISE = replace(USELESS, predictor="noise")


@pytest.fixture(autouse=True)
def what_is_said(monkeypatch):
    monkeypatch.setattr(headline, "typical", lambda data, name: Stated(0.67, 0.8, 0.74, 0.4, True))


def evaluation(*best, stays=True, n_hidden=0, command="", stops=None, leaks=()):
    """What the sentences read of an evaluation, without one."""
    hidden = OtherChoice(n_hidden, replace(best[0], action=Action.AVOID), stays)
    ends = pd.DataFrame({"y": [-1.0] * n_hidden, "stop_reason": ["max_steps"] * n_hidden})
    return SimpleNamespace(
        recommendations={each.predictor: each for each in best},
        best=best[0],
        singles=best,
        is_small=best[0] is SMALL,
        other_choice=lambda choice: hidden,
        facts=SimpleNamespace(censored="failure", n_censored=n_hidden, n_runs=200, n_counted=250),
        source=SimpleNamespace(outcome="won", command=command),
        runs=SimpleNamespace(stops=stops),
        ends=ends,
        options=SimpleNamespace(unit=" nats"),
        intervals=pd.DataFrame(index=pd.MultiIndex.from_tuples([], names=["a", "b", "c"])),
        score_name="TPS log",
        digits=3,
        groups=[],
        forms_of=lambda name: [] if best[0] is UNSCORED else ["as_given"],
        signals_of=lambda name: (name,),
        remarks=[SimpleNamespace(subject=name, kind="leakage") for name in leaks],
    )


@pytest.mark.parametrize(
    ("best", "word", "worth", "advice"),
    [
        pytest.param(SMALL, "Not known yet: there are too few runs to say anything.",
            "Not known yet: about 40 more runs could settle it.",
            "Collect about 40 more runs. Until then, read these 12 runs.", id="few runs"),
        pytest.param(OPEN, "No: where it says 67% to 80% (74% on average), only 40% succeed, "
            "too far off for chance.",
            "Not known yet: recalibrated, it may be worth nothing, and hardly more than 60% of a "
            "perfect forecast; about 300 more runs could settle it.",
            "Collect about 300", id="open"),
        pytest.param(UNSCORED, "No: as given it is not a probability.",
            "Not known yet: it has no score until it is recalibrated.", "Recalibrate it",
            id="no score"),
        pytest.param(USELESS, "Yes: where it says 67% to 80% (74% on average), 40% succeed.",
            "No: it does not go even 2% of the way from the success rate to a perfect forecast, "
            "the least that matters.", "Try another", id="useless"),
        pytest.param(CONSTANT, "Yes: where it says 67% to 80% (74% on average), 40% succeed.",
            "No: it does not vary.", "Try another", id="constant"),
        pytest.param(SHOWN, "Yes: where it says 67% to 80% (74% on average), 40% succeed.",
            "Yes: it goes 20% (10 to 30) of the way from the success rate to a perfect forecast.",
            "Use judge as it is: accept", id="useful"),
    ],
)  # fmt: skip
def test_two_questions_and_the_next_step(best, word, worth, advice):
    data = evaluation(best)
    first, second = headline.statements(data)
    assert f"{first.question} {first.reply}" == f"Can judge be taken at its word? {word}"
    assert f"{second.question} {second.reply}" == f"Does it know anything? {worth}"
    assert next_step(data).text.startswith(advice)
    assert before_rules(data).startswith("**Do not act on this" * (best is not SHOWN))


def test_what_is_shown_comes_first():
    first, second = headline.statements(evaluation(replace(SHOWN, at_its_word=Shown.OPEN)))
    assert (first.question, first.shown) == ("Does judge know anything?", Shown.YES)
    assert (second.question, second.shown) == ("Can it be taken at its word?", Shown.OPEN)
    assert second.text.endswith("too far off for chance; more runs would tell whether it matters")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        pytest.param(SHOWN, "\u201cthe other\u201d may be as good", id="tied"),
        pytest.param(replace(SHOWN, tied=False), "is useful, but behind", id="behind"),
        pytest.param(USELESS, "knows nothing of use", id="useless"),
        pytest.param(CONSTANT, "does not vary", id="constant"),
        pytest.param(UNSCORED, "has no score until it is recalibrated", id="no score"),
        pytest.param(OPEN, "needs about 300 more runs to show whether it knows anything", id="few"),
    ],
)
def test_each_other_predictor_says_what_it_needs(other, words):
    data = evaluation(SHOWN, replace(other, predictor="the other"))
    assert headline.reason(data).question == "The other one"
    assert headline.reason(data).text.endswith(f"{words}.")
    assert ("use the cheapest of judge and" in next_step(data).text) == (other is SHOWN)
    first, _second = headline.statements(data)
    assert first.question == "Can judge, the best of 2, be taken at its word?"


def test_several_predictors_of_no_use_are_named_together():
    _word, worth = headline.statements(evaluation(USELESS, NOISE))
    assert worth.question == "Does any of these 2 know anything?"
    assert worth.text.startswith("none of them goes even 2%")
    assert headline.reason(evaluation(USELESS, NOISE)) is None is headline.reason(evaluation(SHOWN))


@pytest.mark.parametrize(
    ("stays", "then"), [(True, "both answers stay, at 24%."), (False, "the answer is: use none")]
)
def test_a_budget_is_a_fact(stays, then):
    data = evaluation(SHOWN, stays=stays, n_hidden=12, command="trajscore report x", stops="known")
    budget = "12 runs hit their budget (max_steps) and count as failures; without them (--censored"
    assert doubts.of_budget(data).startswith(f"{budget} drop) {then}")
    assert before_rules(data) == ""
    assert doubts.of_budget(evaluation(SHOWN, n_hidden=12)) == ""


@pytest.mark.parametrize(
    ("command", "remedy"), [("", "censored='drop'."), ("x", "--censored drop.")]
)
def test_an_answer_that_unobserved_runs_decide(command, remedy):
    data = evaluation(SHOWN, stays=False, n_hidden=12, command=command)
    assert headline.statements(data)[1].text.startswith("if the 12 runs without an outcome failed")
    assert headline.reason(data).question == "What would change the answer"
    assert headline.reason(data).text.endswith(remedy)
    alone = headline.reason(evaluation(SHOWN, stays=False, n_hidden=1, command=command)).text
    assert "the 1 run without an outcome, counted as a failure here" in alone
    assert next_step(data).text.startswith("Find out what became of the 12 runs")
    assert before_rules(data) == "**If the 12 runs without an outcome failed:** "
    assert doubts.of_unobserved(data).endswith("the answer depends on what they count as.")


def test_other_choices_are_of_all_runs_that_count():
    data = evaluation(SHOWN, stays=False, n_hidden=3)
    assert doubts.of_choice(data, "observed").startswith("3 of 200 runs have no outcome")
    assert doubts.of_choice(data, "unknown").startswith("3 of 250 runs ended")
    assert doubts.of_choice(data, "lost").startswith("3 of 253 runs were lost")


def test_what_may_leak_the_outcome_is_looked_at_before_it_is_used():
    leaky, sound = (next_step(evaluation(SHOWN, leaks=[of])).text for of in ("judge", "other"))
    assert leaky.startswith("Make sure that no value of judge was made from the outcome. ")
    assert leaky.endswith(f"Then use{sound.removeprefix('Use')}")


def test_how_a_run_ended():
    words = [outcome_of(evaluation(SHOWN), y) for y in (1, 0, -1, 0.5)]
    assert words == ["won", "failed", "not observed", "graded 0.5"]


def test_runs_left_out_that_nobody_asked_for_are_looked_at():
    for n, many in ((22, False), (23, True)):
        exclusions = {Exclusion(kind): n for kind in (ExclusionKind.LOST, ExclusionKind.UNOBSERVED)}
        data = SimpleNamespace(exclusions=exclusions, facts=SimpleNamespace(n_runs=200))
        assert doubts.has_many_left_out(data) == many
