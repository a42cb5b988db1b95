"""What a report shows of two questions, and why: each sentence is a function, with its condition.

Can the predictor that is ahead be taken at its word, and does it know anything? What would change
the answer, or what do the others need? All take an `Evaluation`.
"""

from typing import NamedTuple

from trajscore.core.policy import MATERIAL_SHARE, MIN_RUNS_PER_OUTCOME
from trajscore.evaluation.acting import LOST
from trajscore.evaluation.combined import LOSS
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import ALIVE, AS_GIVEN, MARGIN, columns_of
from trajscore.evaluation.recommendation import Action, Recommendation, Shown
from trajscore.evaluation.reliability import typical
from trajscore.report.doubts import (
    how_to_drop,
    is_settled,
    number_hidden,
    other_answer,
    stands_for,
)
from trajscore.report.glossary import (
    counted_as,
    listed,
    of_hundred,
    opening,
    quoted,
    without_marks,
)
from trajscore.report.verdicts import may_count_steps, not_above_counting, way_gone

MOST_NAMED = 4
"""How many predictors a sentence names; the others are "others"."""


class Reason(NamedTuple):
    """The answer to a question: "The others", "What would change the answer"."""

    question: str
    text: str

    @property
    def line(self) -> str:
        """Both, without marks of bold words."""
        return without_marks(f"{self.question}: {self.text}")


class Statement(NamedTuple):
    """What these runs show of a question: "Can judge be taken at its word? No: ..."."""

    question: str
    shown: Shown
    text: str

    @property
    def reply(self) -> str:
        """The answer without the question."""
        return f"{opening(self.shown)}: {self.text}."


# -------------------------------------------------------------------- two questions


def statements(data: Evaluation) -> list[Statement]:
    """Answer both questions: in this order, unless only the second one is settled.

    Of signals together, the word is that of the best one alone.
    """
    best = data.best
    is_word_open = best.at_its_word in (Shown.OPEN, Shown.UNASKED)
    worth_leads = is_word_open and best.informs != Shown.OPEN and not only_counts_steps(data)
    parts = [of_its_word, of_its_worth]
    if worth_leads:
        parts.reverse()
    subjects = _subjects(data, worth_leads)
    both = [part(data, who) for part, who in zip(parts, subjects, strict=True)]
    if is_settled(data):
        return both
    proviso = f"if the {number_hidden(data)} without an outcome {stands_for(data)}"
    return [each._replace(text=f"{proviso}, {each.text}") for each in both]


def _subjects(data: Evaluation, worth_leads: bool) -> list[str]:
    """Name the predictor that is ahead, or alone would be, as the first and second question do."""
    best = data.best
    n = len(data.singles)
    name = quoted(best.best_alone or best.predictor)
    if not best.best_alone:
        return [f"{name}, the best of {n}," if best.is_useful and n > 1 else name, "it"]
    alone = f"{name}, the best alone," if n > 1 else name  # whose word it is
    return [name, alone] if worth_leads else [alone, name]


def only_counts_steps(data: Evaluation) -> bool:
    """Whether a combination is of use, and nothing shows that it knows more than the step."""
    best = data.best
    if not best.best_alone or data.recommendations[best.best_alone].is_useful:
        return False
    return may_count_steps(data, best.predictor)


def of_its_word(data: Evaluation, subject: str) -> Statement:
    """Say whether the predictor that is ahead, or alone would be, can be taken at its word."""
    best = data.best
    best = data.recommendations.get(best.best_alone, best)
    question = f"Can {subject} be taken at its word?"
    if AS_GIVEN not in data.forms_of(best.predictor):
        return Statement(question, Shown.NO, "as given it is not a probability")
    if best.has_too_few_runs:
        return Statement(question, Shown.OPEN, "there are too few runs to say anything")
    return Statement(question, best.at_its_word, _forecast_and_rate(data, best))


def _forecast_and_rate(data: Evaluation, best: Recommendation) -> str:
    """Say what happens where a predictor says what it mostly says."""
    stated = typical(data, best.predictor)
    forecast, low, high = (f"{value:.0%}" for value in (stated.forecast, stated.low, stated.high))
    if low != high:
        forecast = f"{low} to {high} ({forecast} on average)"
    only = "only " * (best.at_its_word == Shown.NO and stated.rate < stated.forecast)
    happened = f"where it says {forecast}, {only * stated.is_off}{stated.rate:.0%} succeed"
    if best.at_its_word == Shown.YES:
        return happened
    chance = "too far off for chance" if stated.is_off else "which may be chance"
    if best.at_its_word == Shown.OPEN:
        return f"{happened}, {chance}; more runs would tell{' whether it matters' * stated.is_off}"
    if stated.is_off:
        return f"{happened}, {chance}"
    if best.gain.low > 0:
        return f"{happened}, {chance}, but recalibrated it is shown to be better"
    if best.as_given.high < 0:
        return f"{happened}, {chance}, but always saying the success rate is shown to be better"
    return f"{happened}; over all steps it is too far off for chance"


def of_its_worth(data: Evaluation, subject: str) -> Statement:
    """Say whether the predictor that is ahead, or all together, know more than the success rate."""
    best = data.best
    question = f"Does {subject} know anything?"
    how = "" if best.form == AS_GIVEN else "recalibrated, "
    if best.informs == Shown.NO:
        if len(data.singles) > 1:
            question = f"Does any of these {len(data.singles)} know anything?"
        return Statement(question, Shown.NO, _worth_nothing(data))
    more = f"about {best.n_needed:,} more runs could settle it"
    if data.is_small:
        return Statement(question, Shown.OPEN, more)
    if best.action == Action.UNSCORED:
        return Statement(question, Shown.OPEN, "it has no score until it is recalibrated")
    if best.action == Action.TOO_FEW:
        most = f"hardly more than {100 * best.share(best.most):.0f}% of a perfect forecast"
        return Statement(question, Shown.OPEN, f"{how}it may be worth nothing, and {most}; {more}")
    way = f"{way_gone(best)} of the way from the success rate to a perfect forecast"
    worth = f"{how}it goes {way}"
    if best.best_alone:
        n = len(data.signals_of(best.predictor))
        if n > 1:
            question = f"Do these {n} signals know anything?"
        worth = _worth_together(data, way, n)
    if counting := not_above_counting(data, best.predictor):
        worth += f"; but {counting}, which costs nothing"
    shown = Shown.OPEN if only_counts_steps(data) else Shown.YES
    return Statement(question, shown, worth + _not_in(data))


def _worth_together(data: Evaluation, way: str, n: int) -> str:
    """Say how far n signals go together, or one with its history, and how far the best alone."""
    best = data.best
    value = "is not shown to be worth anything"
    if (alone := data.recommendations[best.best_alone]).is_useful:
        value = f"goes {100 * best.share(alone.margin.estimate):.0f}%"
    if n == 1:
        return f"with its history and the step it goes {way}; its value alone {value}"
    return (
        f"together, with their history, they go {way}; the best alone, "
        f"{quoted(best.best_alone)}, {value}"
    )


def _of_clock(data: Evaluation, best: Recommendation) -> str:
    """Say how much of it is counting steps, where runs without an outcome count as failures."""
    counted = float(data.intervals.loc[(ALIVE, AS_GIVEN, data.score_name), MARGIN[0]])
    if data.observed is None or data.facts.censored != "failure" or counted < best.matters:
        return ""
    return (
        f"Counting steps alone goes {100 * best.share(counted):.0f}%; that counts "
        f"{number_hidden(data)} without an outcome as failed."
    )


def _worth_nothing(data: Evaluation) -> str:
    """Say of predictors that none is to be used, and whether that is because none varies."""
    several = len(data.singles) > 1
    if not any(each.varies for each in data.recommendations.values()):
        return "no predictor varies" if several else "it does not vary"
    least = f"{MATERIAL_SHARE:.0%} of the way from the success rate to a perfect forecast"
    who = "none of them goes" if several else "it does not go"
    return f"{who} even {least}, the least that matters"


def _not_in(data: Evaluation) -> str:
    """Say in which groups the best predictor is not to be used, or not by the map of all runs."""
    name = data.best.predictor
    groups = [
        f"{each.by} {each.group}"
        for each in data.groups
        if each.best.predictor == name and each.differs and not each.best.has_too_few_runs
        if each.best.action == Action.AVOID or each.best.recalibrated.high < 0
    ]
    return f", but do not use it in {listed(groups)}" if groups else ""


# -------------------------------------------------------------------- why, and the others


def reason(data: Evaluation) -> Reason | None:
    """Say what would change the answer, or what the other predictors need to be ahead."""
    best = data.best
    if not is_settled(data):
        other = other_answer(data.other_choice("observed"))
        return Reason(
            "What would change the answer",
            f"What became of the {number_hidden(data)} without an outcome, counted "
            f"{counted_as(data.facts.censored, data.facts.n_censored)} here. **If you do not know "
            f"their outcomes yet, the answer is: {other}.** Leave them out then: "
            f"{how_to_drop(data)}.",
        )
    if data.is_small:
        enough = MIN_RUNS_PER_OUTCOME
        return Reason(
            "Why",
            f"With fewer than {enough} successes or {enough} failures, chance alone makes a "
            f"predictor look good or bad.",
        )
    if best.best_alone:
        parts = [*filter(None, [of_signals(data), of_purchase(data), _of_clock(data, best)])]
        return Reason("What each part adds", " ".join(parts)) if parts else None
    _, *others = data.singles
    together = [of_other(data, each) for each in data.recommendations.values() if each.best_alone]
    if best.action == Action.AVOID or not (others or together):
        return None
    tied = tied_predictors(data)
    rest = [each for each in others if each.predictor not in tied]
    shown = [f"{listed(map(quoted, tied), MOST_NAMED)} may be as good"] if tied else []
    shown += [of_other(data, each) for each in rest[:MOST_NAMED]]
    if len(rest) > MOST_NAMED:
        shown.append(f"{len(rest) - MOST_NAMED} more are behind these")
    question = "The other one" if len(others) == 1 else "The others"
    return Reason(question if others else "With its history", f"{'; '.join(shown + together)}.")


def of_signals(data: Evaluation) -> str:
    """Say which few signals suffice, and without which one something is lost; "" of one."""
    table = data.signals
    best = data.best
    if table is None:
        return ""
    parts = []
    if few := sufficient_signals(data):
        names = listed(map(quoted, few))
        reached = f"{100 * best.share(table.loc[few[-1], 'reached']):.0f}%"
        parts.append(f"with their history, {names} reach {reached}: that is enough")
        if len(few) == 1:
            parts = [f"with its history, {names} reaches {reached}: that is enough"]
    lost = table[table[columns_of(LOSS)[1]] > 0].sort_values(LOSS, ascending=False)
    parts += [
        f"without {quoted(str(name))} it is {100 * best.share(best.margin.estimate - loss):.0f}%"
        for name, loss in lost[LOSS].items()
    ]
    return f"{opening('; '.join(parts))}." if parts else ""


def of_purchase(data: Evaluation) -> str:
    """Say what the forecasts of a run cost, and how many failures they find; "" without a price."""
    if (bought := data.purchase) is None:
        return ""
    names = listed(map(quoted, bought.signals))
    return (
        f"Forecasts cost {bought.cost:.3g} a run. With {names} {of_hundred(bought.stopped)} of 100 "
        f"failing runs are stopped early, and at most {LOST:g} of 100 good ones; without, "
        f"{of_hundred(bought.stopped_without)}."
    )


def of_other(data: Evaluation, each: Recommendation) -> str:
    """Say of a predictor that is behind what it needs, or why it is."""
    name = quoted(each.predictor)
    if each.best_alone:
        several = len(data.singles) > 1
        over = quoted(each.best_alone) if several else "its value"
        return (
            f"{'together they are ' * several}not shown to gain anything that matters over {over}"
        )
    if each.is_useful:
        return f"{name} is useful, but behind"
    if each.action == Action.AVOID:
        return f"{name} {'knows nothing of use' if each.varies else 'does not vary'}"
    if each.action == Action.UNSCORED:
        return f"{name} has no score until it is recalibrated"
    needs = f"needs about {each.n_needed:,} more runs to show whether it knows anything"
    if each.is_wrong:
        return f"{name} cannot be taken at its word, and {needs}"
    return f"{name} {needs}"


def sufficient_signals(data: Evaluation) -> list[str]:
    """Return the fewest signals that suffice, where these are not all and are to be combined."""
    table = data.signals
    if table is None or not data.best.best_alone:
        return []
    few = table.index[table["order"] > 0]
    return sorted(few, key=table["order"].get) if len(few) < len(table) else []


def tied_predictors(data: Evaluation) -> list[str]:
    """Return the other useful predictors that these runs do not tell from the best."""
    _, *others = data.recommendations.values()
    return [each.predictor for each in others if each.is_useful and each.tied]
