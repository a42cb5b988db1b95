"""Each sentence of the answer by itself, with the condition under which it is said."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from trajscore.evaluation.recommendation import Action, Interval, OtherChoice, Recommendation
from trajscore.report import wording

NAN = float("nan")
MARGINS = Interval(0.1, 0.05, 0.15), Interval(0.12, 0.06, 0.18), Interval(0.02, 0.0, 0.04)
SHOWN = Recommendation("judge", Action.USE, 200, 0.4, 0, NAN, 0.3, *MARGINS, 0.01, 0.95, tied=True)
SMALL = replace(SHOWN, action=Action.TOO_FEW, n_runs=12, success_rate=0.25, n_needed=40)
OPEN = replace(SHOWN, action=Action.TOO_FEW, n_needed=300)
UNSCORED = replace(SHOWN, action=Action.UNSCORED, as_given=Interval(), recalibrated=Interval())
CONSTANT = replace(SHOWN, action=Action.AVOID, only_value=0.5)
USELESS = replace(SHOWN, action=Action.AVOID)
NOISE = replace(USELESS, predictor="noise")


def evaluation(*best, stays=True, n_hidden=0, command=""):
    """What the sentences read of an evaluation, without one."""
    hidden = OtherChoice(n_hidden, replace(best[0], action=Action.AVOID), stays)
    return SimpleNamespace(
        recommendations={each.predictor: each for each in best},
        other_choice=lambda choice: hidden,
        facts=SimpleNamespace(
            rate=0.41, censored="failure", n_censored=n_hidden, n_runs=200, n_counted=250
        ),
        source=SimpleNamespace(outcome="won", command=command),
        options=SimpleNamespace(unit=" nats"),
        intervals=pd.DataFrame(index=pd.MultiIndex.from_tuples([], names=["a", "b", "c"])),
        score_name="TPS log",
        digits=3,
        by=None,
        pairs=None,
        forms_of=lambda name: [],
    )


@pytest.mark.parametrize(
    ("best", "headline", "question", "advice"),
    [
        pytest.param(SMALL, "Too few runs to say anything", "Why", "Collect more", id="few runs"),
        pytest.param(OPEN, "Not known yet", "What would settle it", "Collect more", id="open"),
        pytest.param(UNSCORED, "Not known yet", "Why", "Recalibrate it.", id="no score"),
        pytest.param(USELESS, "Do not use judge.", "Why", "Try another", id="useless"),
        pytest.param(CONSTANT, "Do not use judge: it does", "Why", "Try another", id="constant"),
        pytest.param(SHOWN, "Use judge as it is", "Why", "Accept and stop", id="useful"),
    ],
)
def test_headline_reason_and_next_step(best, headline, question, advice):
    data = evaluation(best)
    assert wording.headline(data).startswith(headline)
    assert wording.reason(data).question == question
    assert wording.next_step(data).startswith(advice)


def test_several_predictors_are_named_together():
    assert wording.headline(evaluation(USELESS, NOISE)) == "Use none of these."
    other = replace(SHOWN, predictor="the other")
    assert "another of judge and \u201cthe other\u201d" in wording.next_step(
        evaluation(SHOWN, other)
    )
    assert "\u201cthe other\u201d may be as good" in wording.reason(evaluation(SHOWN, other)).text
    assert "no other one is useful" in wording.reason(evaluation(SHOWN, NOISE)).text
    assert "the only one here" in wording.reason(evaluation(SHOWN)).text


@pytest.mark.parametrize(
    ("command", "remedy"), [("", "censored='drop'."), ("trajscore report x", "--censored drop.")]
)
def test_an_answer_that_unobserved_runs_decide(command, remedy):
    data = evaluation(SHOWN, stays=False, n_hidden=12, command=command)
    assert wording.headline(data).endswith(", if the 12 runs without an outcome failed.")
    assert wording.reason(data).question == "What would change the choice"
    assert wording.reason(data).text.endswith(remedy)
    assert wording.next_step(data).startswith("Find out what became of the 12 runs")
    assert wording.before_rules(data) == "**If the 12 runs without an outcome failed:** "
    assert wording.of_unobserved(data).endswith("the answer depends on what they count as.")


def test_other_choices_are_of_all_runs_that_count():
    data = evaluation(SHOWN, stays=False, n_hidden=3)
    assert wording.of_choice(data, "observed").startswith("3 of 200 runs have no outcome")
    assert wording.of_choice(data, "unknown").startswith("3 of 250 runs ended")
    assert wording.of_choice(data, "lost").startswith("3 of 253 runs were lost")


def test_rules_of_what_is_not_shown_are_not_to_be_acted_on():
    assert wording.before_rules(evaluation(OPEN)).startswith("**Do not act on this yet")
    assert wording.before_rules(evaluation(SHOWN)) == ""


@pytest.mark.parametrize(
    ("y", "words"), [(1, "won"), (0, "failed"), (-1, "not observed"), (0.5, "graded 0.5")]
)
def test_how_a_run_ended(y, words):
    assert wording.outcome_of(evaluation(SHOWN), y) == words
