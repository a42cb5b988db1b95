"""The answer of a report in words: each sentence is a function, with its condition.

All take an `Evaluation`. They say whether the predictor that is ahead can be taken at its word and
whether it informs, what comes next, what others need, and what makes all this doubtful.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.policy import (
    MATERIAL_SHARE,
    MAX_SHARE_UNCLEAR,
    MIN_EFFECTIVE_TASKS,
    MIN_LENGTH_EFFECT,
    MIN_RUNS_PER_OUTCOME,
)
from trajscore.evaluation.acting import LOST
from trajscore.evaluation.combined import LOSS
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import ALIVE, AS_GIVEN, MARGIN, Note, columns_of
from trajscore.evaluation.recommendation import Action, Recommendation, Shown
from trajscore.evaluation.reliability import typical
from trajscore.evaluation.runs import number_of_runs
from trajscore.report._disclosures import (
    are_stopped_by_budget,
    how_to_drop,
    is_settled,
    left_out,
    number_hidden,
    of_budget,
    of_choice,
    of_unobserved,
    other_answer,
    stands_for,
)
from trajscore.report.glossary import COUNTED_AS, of_hundred
from trajscore.report.verdicts import (
    card_reason,
    is_above_live_counting,
    leakage_check,
    listed,
    not_above_counting,
    note_text,
    opening,
    quoted,
    way_gone,
)

_SUCCEEDED = ("won", "solved", "passed", "succeeded")
"""Names of columns of outcomes that say in a sentence what a run did."""
_FEW_NAMED = 4
_FAR = 5  # times the runs that there are: who needs more is not worth waiting for
_LOOK = ("outside", "risk", "few clusters", "heavy run", "sampled")


class Light(StrEnum):
    """Whether the data are sound, by the worst reason against it."""

    SOUND = "sound"
    LOOK = "check this"
    PROBLEM = "a problem"


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


class Answer(NamedTuple):
    """What these runs show of the predictor that is ahead, what to do, and how far to trust it."""

    predictor: str  # to use, or the one that more runs would settle; "" for none
    action: str  # a card
    statements: list[Statement]  # can it be taken at its word, does it inform? what is shown first
    reason: Reason | None
    advice: str  # the next step
    budget: str  # what runs count as that a budget stopped; "" where there are none
    light: Light
    doubts: list[str]  # the reasons, worst first
    unobserved: str  # what runs without an outcome count as, where nothing else says so
    before: str  # what comes before what to accept and stop, where it may not hold
    notes: list[str]  # what a reader should know of predictors and runs

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
        return [*answers, f"Next: {self.advice}", *filter(None, [why, self.budget])]


def answer(data: Evaluation) -> Answer:
    """Return what is shown of the predictor that is ahead, and how sound the data are."""
    best = data.best
    problems = list(_problems(data))
    looks = list(_looks(data))
    light = Light.SOUND
    if problems or looks:
        light = Light.PROBLEM if problems else Light.LOOK
    doubts = problems + looks
    budget = of_budget(data)
    hidden = "" if budget else of_unobserved(data)
    is_unsaid = bool(data.facts.n_censored and doubts and hidden not in doubts)
    return Answer(
        predictor="" if best.action == Action.AVOID or data.is_small else best.predictor,
        action=str(best.action),
        statements=statements(data),
        reason=reason(data),
        advice=next_step(data),
        budget=budget,
        light=light,
        doubts=doubts or [f"{hidden} {of_length(data)}".lstrip()],
        unobserved=hidden if is_unsaid else "",
        before=before_rules(data),
        notes=[*map(note_text, data.remarks), *(of_choice(data, each) for each in _by_stops(data))],
    )


# -------------------------------------------------------------------- two questions


def statements(data: Evaluation) -> list[Statement]:
    """Answer both questions: in this order, unless only the second one is settled.

    Of signals together, the word is that of the best one alone.
    """
    best = data.best
    parts = [of_its_word, of_its_worth]
    if best.informs != Shown.OPEN and best.at_its_word in (Shown.OPEN, Shown.UNASKED):
        parts = [of_its_worth, of_its_word]
    both = [part(data, who) for part, who in zip(parts, _subjects(data), strict=True)]
    if is_settled(data):
        return both
    proviso = f"if the {number_hidden(data)} without an outcome {stands_for(data)}"
    return [each._replace(text=f"{proviso}, {each.text}") for each in both]


def _subjects(data: Evaluation) -> tuple[str, str]:
    """Name the predictor that is ahead, or alone would be, as the first and second question do."""
    best = data.best
    n = len(data.singles)
    name = quoted(best.best_alone or best.predictor)
    if best.best_alone:
        return name, f"{name}, the best alone," if n > 1 else name
    return f"{name}, the best of {n}," if best.is_useful and n > 1 else name, "it"


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
    counting = not_above_counting(data, best.predictor)
    if counting and not (best.best_alone and _of_clock(data, best)):
        worth += f"; but {counting}, which costs nothing"
    return Statement(question, Shown.YES, worth + _not_in(data))


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
        f"Counting steps alone goes {100 * best.share(counted):.0f}%, as runs without an outcome "
        f"count as failures."
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


# -------------------------------------------------------------------- the others, and what next


def reason(data: Evaluation) -> Reason | None:
    """Say what would change the answer, or what the other predictors need to be ahead."""
    best = data.best
    if not is_settled(data):
        other = other_answer(data.other_choice("observed"))
        return Reason(
            "What would change the answer",
            f"What became of the {number_hidden(data)} without an outcome, which count "
            f"{COUNTED_AS[data.facts.censored]} here. **If you do not know their outcomes yet, the "
            f"answer is: {other}.** Leave them out then: {how_to_drop(data)}.",
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
    tied = _tied(data)
    rest = [each for each in others if each.predictor not in tied]
    shown = [f"{listed(map(quoted, tied), _FEW_NAMED)} may be as good"] if tied else []
    shown += [of_other(data, each) for each in rest[:_FEW_NAMED]]
    if len(rest) > _FEW_NAMED:
        shown.append(f"{len(rest) - _FEW_NAMED} more are behind these")
    question = "The other one" if len(others) == 1 else "The others"
    return Reason(question if others else "With its history", f"{'; '.join(shown + together)}.")


def of_signals(data: Evaluation) -> str:
    """Say which few signals suffice, and without which one something is lost; "" of one."""
    table = data.signals
    best = data.best
    if table is None:
        return ""
    parts = []
    if few := _enough(data):
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
        f"Forecasts cost {bought.cost:.3g} a run. With {names} {of_hundred(bought.found)} of 100 "
        f"failing runs are stopped early, and at most {LOST:g} of 100 good ones; without, "
        f"{of_hundred(bought.found_without)}."
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


def next_step(data: Evaluation) -> str:
    """Say what to do next."""
    best = data.best
    name = best.predictor
    if not is_settled(data):
        return (
            f"Find out what became of the {number_hidden(data)} without an outcome, before you act "
            f"on these scores."
        )
    if data.is_small:
        n = number_of_runs(best.n_runs)
        return f"Collect about {best.n_needed:,} more runs. Until then, read these {n}."
    if best.action == Action.AVOID:
        return (
            "Try another predictor, or ask the model another way: the user guide's page \u201cGet "
            "confidences\u201d says how."
        )
    if best.action == Action.UNSCORED:
        return "Recalibrate it. Until then, read runs, and do not act on these scores."
    if best.action == Action.TOO_FEW:
        collect = f"Collect about {best.n_needed:,} more runs."
        if best.n_needed > _FAR * best.n_runs:
            these = "these" if len(data.singles) > 1 else "this one"
            collect = f"Try a score other than {these}, or {collect[0].lower()}{collect[1:]}"
        return f"{collect} Until then, read runs, and do not act on these scores."
    act = _act(data)
    if not_above_counting(data, name) and not is_above_live_counting(data, name):
        return (
            f"{act}, if {quoted(name)} costs you nothing; if it does, forecast by the success "
            f"rate of the runs that get as far (calibration.AliveRate)."
        )
    if tied := _tied(data):
        names = listed(map(quoted, [name, *tied]), _FEW_NAMED)
        return f"{act}, or use the cheapest of {names}."
    return f"{act}."


def _act(data: Evaluation) -> str:
    """Say how to act by what is of use: as it is, or by a map; where it may leak, after a check."""
    best = data.best
    name = quoted(best.predictor)
    use = f"Use {name} as it is:"
    if best.action != Action.USE:
        use = f"Recalibrate {name}"
        if best.best_alone:
            n = len(data.signals_of(best.predictor))
            use = f"Use all {n} signals together" if n > 1 else f"Use {name}"
        call = f"report.forecaster({best.predictor!r})"
        use += f" ({'--code shows how' if data.source.command else call})"
        if few := _enough(data):
            are = "is" if len(few) == 1 else "are"
            use += f", or only {listed(map(quoted, few))}, which {are} enough"
        use += ", then"
    act = f"{use} accept and stop new runs by the thresholds below"
    if check := leakage_check(data):
        return f"{check} Then {act[0].lower()}{act[1:]}"
    return act


def _enough(data: Evaluation) -> list[str]:
    """Return the fewest signals that suffice, where these are not all and are to be combined."""
    table = data.signals
    if table is None or not data.best.best_alone:
        return []
    few = table.index[table["order"] > 0]
    return sorted(few, key=table["order"].get) if len(few) < len(table) else []


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


# -------------------------------------------------------------------- whether the data are sound


def _problems(data: Evaluation) -> Iterator[str]:
    """Return what makes the answer doubtful."""
    yield from (note_text(note) for note in data.remarks if note.kind == "leakage")
    if not is_settled(data):
        yield of_unobserved(data)
    yield from (note_text(note) for note in data.remarks if _has_few_tasks(note))
    if data.is_small:
        yield f"{opening(card_reason(data.best, data))}."


def _looks(data: Evaluation) -> Iterator[str]:
    """Return what a reader should look at once."""
    are_many = data.facts.n_censored > MAX_SHARE_UNCLEAR * data.facts.n_runs
    if are_many and is_settled(data) and not are_stopped_by_budget(data):
        yield of_unobserved(data)
    for choice in _by_stops(data):
        if not data.other_choice(choice).stays:
            yield of_choice(data, choice)
    if _is_length_related(data):
        yield of_length(data)
    for note in data.remarks:
        if note.kind in _LOOK and not _has_few_tasks(note):
            yield note_text(note)
    if has_many_left_out(data):
        yield f"{left_out(data)}."


def has_many_left_out(data: Evaluation) -> bool:
    """Whether more runs are left out than a reader may overlook."""
    return sum(data.exclusions.values()) > MAX_SHARE_UNCLEAR * data.facts.n_runs


def _has_few_tasks(note: Note) -> bool:
    return note.kind == "few clusters" and note.facts["effective"] < MIN_EFFECTIVE_TASKS


def of_length(data: Evaluation) -> str:
    """Say how the number of steps is related to the outcome."""
    area = data.length_ranking.estimate
    related = "related" if _is_length_related(data) else "hardly related"
    longer = "shorter" if area > 0.5 else "longer"
    return (
        f"Length is {related} to the outcome: the run that succeeded was {longer} in "
        f"{max(area, 1 - area):.0%} of pairs with one that failed."
    )


def _is_length_related(data: Evaluation) -> bool:
    area, low, high = data.length_ranking
    return (low > 0.5 or high < 0.5) and abs(area - 0.5) > MIN_LENGTH_EFFECT


# -------------------------------------------------------------------- parts of sentences


def without_marks(text: str) -> str:
    """Take the marks of bold words off a sentence."""
    return text.replace("**", "")


def succeeded(data: Evaluation) -> str:
    """Say what a successful run did: "won", as its column is named, or "succeeded"."""
    name = data.source.outcome.lower()
    return name if name in _SUCCEEDED else "succeeded"


def outcome_of(data: Evaluation, y: float) -> str:
    """Say how a run ended: "won", "failed", "not observed" or "graded 0.5"."""
    names: dict[float, str] = {
        SUCCESS: succeeded(data),
        FAILURE: "failed",
        CENSORED: "not observed",
    }
    return names.get(y, f"graded {y:g}")


def _tied(data: Evaluation) -> list[str]:
    """Return the other useful predictors that these runs do not tell from the best."""
    _, *others = data.recommendations.values()
    return [each.predictor for each in others if each.is_useful and each.tied]


def _by_stops(data: Evaluation) -> list[str]:
    return [choice for choice in data.otherwise if choice != "observed"]
