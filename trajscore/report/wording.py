"""The answer of a report, and its next step: sentences that are functions of an `Evaluation`.

What is shown, and why: `headline.py`. How far to trust it: `doubts.py`. Single predictors:
`verdicts.py`.
"""

from typing import NamedTuple

from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.recommendation import Action
from trajscore.evaluation.runs import number_of_runs
from trajscore.report.doubts import (
    UNOBSERVED,
    Doubt,
    Light,
    is_settled,
    notes,
    number_hidden,
    of_budget,
    of_length,
    of_unobserved,
    points_to_check,
    problems,
    stands_for,
)
from trajscore.report.glossary import Instruction, listed, quoted
from trajscore.report.headline import (
    MOST_NAMED,
    Reason,
    Statement,
    reason,
    statements,
    sufficient_signals,
    tied_predictors,
)
from trajscore.report.verdicts import leakage_check, may_count_steps

_FAR = 5  # times the runs that there are: who needs more is not worth waiting for


class Answer(NamedTuple):
    """What these runs show of the predictor that is ahead, what to do, and how far to trust it."""

    predictor: str  # to use, or the one that more runs would settle; "" for none
    action: str  # a card
    statements: list[Statement]  # can it be taken at its word, does it inform? what is shown first
    reason: Reason | None
    next_step: Instruction
    budget: str  # what runs count as that a budget stopped; "" where there are none
    light: Light
    doubts: list[Doubt]  # worst first; of sound data, why they are
    unobserved: str  # what runs without an outcome count as, where nothing else says so
    before: str  # what comes before what to accept and stop, where it may not hold
    notes: list[Doubt]  # what a reader should know of predictors and runs, doubtful or not

    @property
    def headline(self) -> str:
        """What is shown, or else what is not known yet, in one line."""
        first = self.statements[0]
        return f"{first.question} {first.reply}"

    @property
    def lines(self) -> list[str]:
        """The answer, the next step and what may change it, without marks of bold words."""
        answers = [f"{each.question} {each.reply}" for each in self.statements]
        why = self.reason and self.reason.line
        return [*answers, f"Next: {self.next_step.text}", *filter(None, [why, self.budget])]


def answer(data: Evaluation) -> Answer:
    """Return what is shown of the predictor that is ahead, and how sound the data are."""
    best = data.best
    noted = list(notes(data))
    of_problems = list(problems(data, noted))
    doubts = [*of_problems, *points_to_check(data, noted)]
    light = Light.PROBLEM if of_problems else Light.LOOK
    budget = of_budget(data)
    hidden = "" if budget else of_unobserved(data)
    if not doubts:
        light = Light.SOUND
        doubts = [Doubt(UNOBSERVED, f"{hidden} {of_length(data)}".lstrip())]
    is_unsaid = data.facts.n_censored and UNOBSERVED not in [doubt.kind for doubt in doubts]
    return Answer(
        predictor="" if best.action == Action.AVOID or data.is_small else best.predictor,
        action=str(best.action),
        statements=statements(data),
        reason=reason(data),
        next_step=next_step(data),
        budget=budget,
        light=light,
        doubts=doubts,
        unobserved=hidden if is_unsaid else "",
        before=before_rules(data),
        notes=noted,
    )


# -------------------------------------------------------------------- what comes next


def next_step(data: Evaluation) -> Instruction:
    """Say what to do next."""
    best = data.best
    if not is_settled(data):
        text = (
            f"Find out what became of the {number_hidden(data)} without an outcome, before you act "
            f"on these scores."
        )
    elif data.is_small:
        n = number_of_runs(best.n_runs)
        text = f"Collect about {best.n_needed:,} more runs. Until then, read these {n}."
    elif best.action == Action.AVOID:
        text = (
            "Try another predictor, or ask the model another way: the user guide's page \u201cGet "
            "confidences\u201d says how."
        )
    elif best.action == Action.UNSCORED:
        text = "Recalibrate it. Until then, read runs, and do not act on these scores."
    elif best.action == Action.TOO_FEW:
        collect = f"Collect about {best.n_needed:,} more runs."
        if best.n_needed > _FAR * best.n_runs:
            these = "these" if len(data.singles) > 1 else "this one"
            collect = f"Try a score other than {these}, or {collect[0].lower()}{collect[1:]}"
        text = f"{collect} Until then, read runs, and do not act on these scores."
    else:
        return _act(data)
    return Instruction(text)


def _act(data: Evaluation) -> Instruction:
    """Say how to act by what is of use: as it is, or by a map; where it may leak, after a check."""
    best = data.best
    name = best.predictor
    who = quoted(name)
    use = f"Use {who} as it is:"
    how = ""
    then = ""
    if best.action != Action.USE:
        use = f"Recalibrate {who} ("
        if best.best_alone:
            n = len(data.signals_of(best.predictor))
            together = {1: who, 2: "both signals together"}
            use = f"Use {together.get(n, f'all {n} signals together')} ("
        how = f"report.forecaster({name!r})"
        if data.source.command:
            how = "--code shows how"
        then = "), then"
        if few := sufficient_signals(data):
            are = "is" if len(few) == 1 else "are"
            then = f"), or only {listed(map(quoted, few))}, which {are} enough, then"
    if check := leakage_check(data):
        use = f"{check} Then {use[0].lower()}{use[1:]}"
    then += " accept and stop new runs by the thresholds below"
    if may_count_steps(data, name):
        then += (
            f", if {who} costs you nothing; if it does, forecast by the success rate of the runs "
            f"that get as far (calibration.AliveRate)"
        )
    elif tied := tied_predictors(data):
        names = listed(map(quoted, [name, *tied]), MOST_NAMED)
        then += f", or use the cheapest of {names}"
    return Instruction(use, how, f"{then}.")


def before_rules(data: Evaluation) -> str:
    """Say what comes before thresholds to accept and stop by, where they may not hold."""
    if not data.best.is_useful:
        return (
            "**Do not act on this yet: no predictor is shown to beat the base rate.** The rule "
            "would be: "
        )
    if not is_settled(data):
        return f"**If the {number_hidden(data)} without an outcome {stands_for(data)}:** "
    return ""
