"""The answer of a report in words: each sentence is a function, with its condition.

All take an `Evaluation`. They say what to do, why, what comes next, and what makes it doubtful.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from trajscore.core.errors import visible
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.policy import (
    GROUP_ERROR_RATE,
    MATERIAL_SHARE,
    MAX_SHARE_UNCLEAR,
    MIN_EFFECTIVE_TASKS,
    MIN_LENGTH_EFFECT,
    MIN_RUNS_PER_OUTCOME,
)
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import AS_GIVEN, Note
from trajscore.evaluation.recommendation import (
    Action,
    OtherChoice,
    Recommendation,
    difference,
    have_too_few_runs,
)
from trajscore.evaluation.reliability import reliability
from trajscore.evaluation.runs import number_of_runs
from trajscore.report._disclosures import COUNTED_AS, left_out
from trajscore.report.numbers import of_hundred, with_interval
from trajscore.report.verdicts import (
    card_reason,
    is_above_live_counting,
    listed,
    not_above_counting,
    note_text,
    opening,
)

_SUCCEEDED = ("won", "solved", "passed", "succeeded")
"""Names of columns of outcomes that say in a sentence what a run did."""
_FEW_NAMED = 4
_LOOK = ("outside", "risk", "few clusters", "heavy run", "sampled")


class Light(StrEnum):
    """Whether the data are sound, by the worst reason against it."""

    SOUND = "sound"
    LOOK = "check this"
    PROBLEM = "a problem"


class Reason(NamedTuple):
    """The answer to a question: "Why", "What would settle it", "What would change the choice"."""

    question: str
    text: str


class Answer(NamedTuple):
    """What to do, what would change that, and how far to trust it."""

    predictor: str  # to use, or the one that more runs would settle; "" for none
    action: str  # a card
    headline: str
    reason: Reason
    advice: str  # the next step
    light: Light
    doubts: list[str]  # the reasons, worst first
    unobserved: str  # what runs without an outcome count as, where no reason says so
    before: str  # what comes before what to accept and stop, where it may not hold
    notes: list[str]  # what a reader should know of predictors and runs

    @property
    def lines(self) -> list[str]:
        """The answer, what would change it, and the next step, without marks of bold words."""
        return [self.headline, ": ".join(self.reason).replace("**", ""), f"Next: {self.advice}"]


def answer(data: Evaluation) -> Answer:
    """Return which predictor to use, what would change that, and how sound the data are."""
    best = _best(data)
    problems = [visible(text) for text in _problems(data)]
    looks = [visible(text) for text in _looks(data)]
    light = Light.SOUND
    if problems or looks:
        light = Light.PROBLEM if problems else Light.LOOK
    doubts = problems + looks
    hidden = visible(of_unobserved(data))
    is_unsaid = bool(data.facts.n_censored and doubts and hidden not in doubts)
    question, text = reason(data)
    by_stops = [of_choice(data, choice) for choice in _by_stops(data)]
    return Answer(
        predictor="" if best.action == Action.AVOID or _is_small(best) else best.predictor,
        action=str(best.action),
        headline=visible(headline(data)),
        reason=Reason(question, visible(text)),
        advice=visible(next_step(data)),
        light=light,
        doubts=doubts or [f"{hidden} {of_length(data)}"],
        unobserved=hidden if is_unsaid else "",
        before=before_rules(data),
        notes=[*map(note_text, data.remarks), *map(visible, by_stops)],
    )


# -------------------------------------------------------------------- what to do


def headline(data: Evaluation) -> str:
    """Say what to do with the predictor that is ahead."""
    best = _best(data)
    name = _quoted(best.predictor)
    more = f"{best.n_needed:,}"
    if best.action == Action.AVOID:
        return _use_none(data, name)
    if _is_small(best):
        n = number_of_runs(best.n_runs)
        return f"Too few runs to say anything: read these {n}, and collect about {more} more."
    if best.action == Action.UNSCORED:
        return f"Not known yet whether to use {name}: it has no score."
    if best.action == Action.TOO_FEW:
        return f"Not known yet whether to use {name}: about {more} more runs could settle it."
    how = " as it is" if best.action == Action.USE else " and recalibrate it"
    return f"Use {name}{how}{_not_in(data, best.predictor)}{_proviso(data, best)}."


def _use_none(data: Evaluation, name: str) -> str:
    """Say that no predictor is to be used, and whether that is because none varies."""
    varies = any(each.varies for each in data.recommendations.values())
    if len(data.recommendations) == 1:
        return f"Do not use {name}." if varies else f"Do not use {name}: it does not vary."
    return "Use none of these." if varies else "Use none of these: no predictor varies."


def _not_in(data: Evaluation, name: str) -> str:
    """Say in which groups a predictor is not to be used, or not by the map of all runs."""
    if data.by is None:
        return ""
    cards = data.by.xs(name, level="predictor")
    is_bad = (cards["card"] == Action.AVOID) | (cards["recalibrated_high"] < 0)
    is_shown = ~have_too_few_runs(cards) & (cards["p_value"] < GROUP_ERROR_RATE)
    groups = cards.index[is_bad & is_shown]
    return f", but not in {listed(map(' '.join, groups))}" if len(groups) else ""


def _proviso(data: Evaluation, best: Recommendation) -> str:
    """Say what the answer depends on; else what values mean, where that is not what they say."""
    if not _is_settled(data):
        return f", if the {_hidden(data)} without an outcome {_stands_for(data)}"
    if AS_GIVEN not in data.forms_of(best.predictor):
        return ": as given it is not a probability"
    bins = reliability(data, (best.predictor, AS_GIVEN))
    gaps = [f"{bins.forecast[k]:.0%}, {bins.rate[k]:.0%} succeed" for k in bins.largest_gaps()]
    if best.action != Action.USE:
        return f": where it says {' and where it says '.join(gaps)}" if gaps else ""
    if gaps:
        return f": at worst, where it says {gaps[0]}"
    return ": these runs show no gap between what it says and what happens"


# -------------------------------------------------------------------- why, and what next


def reason(data: Evaluation) -> Reason:
    """Say why, and what would change or settle the answer."""
    best = _best(data)
    base = base_rate(data)
    name = _quoted(best.predictor)
    if not _is_settled(data):
        drop = "--censored drop" if data.source.command else "censored='drop'"
        other = _other_answer(data, data.other_choice("observed"))
        return Reason(
            "What would change the choice",
            f"What became of the {_hidden(data)} without an outcome, which count "
            f"{COUNTED_AS[data.facts.censored]} here. **If you do not know their outcomes yet, the "
            f"answer is: {other}.** Leave them out then: {drop}.",
        )
    if not any(each.varies for each in data.recommendations.values()):
        return Reason("Why", "A number that never changes cannot tell good runs from bad.")
    if best.action == Action.AVOID:
        return Reason(
            "Why",
            f"No predictor, even recalibrated, cuts the loss of always saying {base} by "
            f"{MATERIAL_SHARE:.0%}, the least that matters.",
        )
    if _is_small(best):
        enough = MIN_RUNS_PER_OUTCOME
        return Reason(
            "Why",
            f"With fewer than {enough} successes or {enough} failures, chance alone makes a "
            f"predictor look good or bad.",
        )
    if best.action == Action.UNSCORED:
        text = f"Only a probability has a score: {name} is none until it is recalibrated."
        return Reason("Why", text)
    margin = _margin(best, data)
    if best.action == Action.TOO_FEW:
        return Reason(
            "What would settle it",
            f"{best.n_needed:,} more runs with an outcome, if {name} keeps its margin of {margin}.",
        )
    better = f"It is {margin} better than always saying {base}"
    if counting := not_above_counting(data, best.predictor):
        return Reason("Why", f"{better}, but {counting}, which costs nothing.")
    return Reason("Why", f"{better}. What would change the choice: {_what_would_change(data)}.")


def _what_would_change(data: Evaluation) -> str:
    """Say what would make another predictor the better choice: a better one, or what it costs."""
    best, *others = data.recommendations.values()
    useful = [each for each in others if each.is_useful]
    if not others:
        return "A better predictor; this is the only one here"
    if not useful:
        return "A better predictor; no other one is useful"
    if tied := _tied(data):
        return f"Cost, as {listed(tied, _FEW_NAMED)} may be as good"
    other = next((each for each in useful if each.action == Action.USE), useful[0])
    how = " as it is" if other.action == Action.USE else ", recalibrated,"
    behind = ""
    if data.pairs is not None:
        lead = difference(data.pairs, best.predictor, other.predictor)
        behind = f" and is {with_interval(lead, data.digits)}{data.options.unit} behind"
    return f"Cost, as {_quoted(other.predictor)}{how} is useful{behind}"


def next_step(data: Evaluation) -> str:
    """Say what to do next."""
    best = _best(data)
    name = best.predictor
    if not _is_settled(data):
        return (
            f"Find out what became of the {_hidden(data)} without an outcome, before you act on "
            f"these scores."
        )
    if best.action == Action.AVOID:
        return (
            "Try another predictor, or ask the model another way: the user guide's page \u201cGet "
            "confidences\u201d says how."
        )
    if best.is_open:
        collect = "Collect more runs" if best.action == Action.TOO_FEW else "Recalibrate it"
        return f"{collect}. Until then, read runs, and do not act on these scores."
    act = "Accept and stop new runs by the thresholds below"
    if best.action == Action.RECALIBRATE:
        act = "Recalibrate new runs, then accept and stop them by the thresholds below"
    if not_above_counting(data, name) and not is_above_live_counting(data, name):
        return (
            f"{act}, if {_quoted(name)} costs you nothing; if it does, forecast by the success "
            f"rate of the runs that get as far (calibration.AliveRate)."
        )
    if tied := _tied(data):
        names = listed([_quoted(name), *tied], _FEW_NAMED)
        return f"{act}, or use another of {names} if it costs you less."
    return f"{act}."


def before_rules(data: Evaluation) -> str:
    """Say what comes before thresholds to accept and stop by, where they may not hold."""
    if not _best(data).is_useful:
        return (
            "**Do not act on this yet: no predictor is shown to beat the base rate.** The rule "
            "would be: "
        )
    if not _is_settled(data):
        return f"**If the {_hidden(data)} without an outcome {_stands_for(data)}:** "
    return ""


# -------------------------------------------------------------------- other choices of runs


def of_choice(data: Evaluation, choice: str) -> str:
    """Say how many runs could be counted otherwise, and what the answer would be then."""
    other = data.other_choice(choice)
    n = other.n_runs
    n_all = data.facts.n_counted
    alone = other.n_runs == 1
    counted = "counted as recorded"
    otherwise = "Without them"
    if choice == "observed":
        n_all = data.facts.n_runs
        status = "has no outcome" if alone else "have no outcome"
        counted = f"counted {COUNTED_AS[data.facts.censored]}"
        if other.stays:
            status += _stopped_by(data)
    elif choice == "lost":
        status = "was lost by the harness" if alone else "were lost by the harness"
        counted = "left out"
        otherwise = "Counted as recorded,"
        n_all += n
    else:
        status = "ended for reasons that are not known"
    runs = f"{n:,} of {number_of_runs(n_all)} {status}"
    if choice == "observed" and not other.stays:
        return f"{runs}, and the answer depends on what they count as."
    return f"{runs}; {counted}. {otherwise} {_what_stays(data, other)}."


def of_unobserved(data: Evaluation) -> str:
    """Say how many runs have no outcome, and whether the answer depends on them."""
    return of_choice(data, "observed") if _n_hidden(data) else "Every run has an outcome."


def _what_stays(data: Evaluation, other: OtherChoice) -> str:
    """Say whether the answer stays under another choice of runs, or what it would be."""
    if not other.stays:
        return f"the answer would be: {_other_answer(data, other)}"
    best = _best(data)
    if best.is_open:
        return "it is still not known"
    if other.best is None or best.predictor == other.best.predictor or not best.is_useful:
        return "the choice stays"
    return "a predictor that is tied with it leads"


def _other_answer(data: Evaluation, other: OtherChoice) -> str:
    """Say what the answer would be under another choice of runs."""
    best = other.best
    if best is None:
        return "none, as too few runs are left"
    if best.action == Action.AVOID:
        return "use none of these"
    if best.is_open:
        return "not known yet"
    how = " as it is" if best.action == Action.USE else ", recalibrated"
    return f"use {_quoted(best.predictor)}{how} ({_margin(best, data)})"


def _stopped_by(data: Evaluation) -> str:
    """Say what stopped the runs without an outcome, if all were stopped by one reason."""
    meta = data.rows.base.traces.meta
    if "stop_reason" not in meta:
        return ""
    reasons = meta["stop_reason"][~data.runs.observed].dropna().unique()
    return f", all stopped by {reasons[0]}" if len(reasons) == 1 else ""


def _by_stops(data: Evaluation) -> list[str]:
    return [choice for choice in data.other_choices if choice != "observed"]


# -------------------------------------------------------------------- whether the data are sound


def _problems(data: Evaluation) -> Iterator[str]:
    """Return what makes the answer doubtful."""
    yield from (note_text(note) for note in data.remarks if note.kind == "leakage")
    if not _is_settled(data):
        yield of_unobserved(data)
    yield from (note_text(note) for note in data.remarks if _has_few_tasks(note))
    few = [data.recommendations[name] for name in data.cards.index]
    few = [each for each in few if each.has_too_few_runs and each.varies]
    if few:
        yield f"{opening(card_reason(few[0], data))}."


def _looks(data: Evaluation) -> Iterator[str]:
    """Return what a reader should look at once."""
    limit = MAX_SHARE_UNCLEAR * data.facts.n_runs
    if _is_settled(data) and data.facts.n_censored > limit:
        yield of_unobserved(data)
    for choice in _by_stops(data):
        if not data.other_choice(choice).stays:
            yield of_choice(data, choice)
    if _is_length_related(data):
        yield of_length(data)
    for note in data.remarks:
        if note.kind in _LOOK and not _has_few_tasks(note):
            yield note_text(note)
    if sum(data.exclusions.values()) > limit:
        yield f"{left_out(data)}."


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


def base_rate(data: Evaluation) -> str:
    """Write the best constant, the success rate of steps: "41%"."""
    return f"{of_hundred(data.facts.rate)}%"


def succeeded(data: Evaluation) -> str:
    """Say what a successful run did: "won", as its column is named, or "succeeded"."""
    name = data.source.outcome.lower()
    return name if name in _SUCCEEDED else "succeeded"


def outcome_of(data: Evaluation, y: float) -> str:
    """Say how a run ended: "won", "failed", "not observed" or "graded 0.5"."""
    names = {SUCCESS: succeeded(data), FAILURE: "failed", CENSORED: "not observed"}
    return next((name for code, name in names.items() if code == y), f"graded {y:g}")


def _best(data: Evaluation) -> Recommendation:
    """Return what to do with the predictor that is ahead."""
    return next(iter(data.recommendations.values()))


def _is_small(best: Recommendation) -> bool:
    """Whether there are too few runs of an outcome to say anything."""
    return best.action == Action.TOO_FEW and best.has_too_few_runs


def _is_settled(data: Evaluation) -> bool:
    """Whether the answer stays without the runs that have no outcome."""
    return data.other_choice("observed").stays


def _n_hidden(data: Evaluation) -> int:
    return data.other_choice("observed").n_runs


def _hidden(data: Evaluation) -> str:
    """Write how many runs have no outcome: "12 runs"."""
    return number_of_runs(data.facts.n_censored)


def _stands_for(data: Evaluation) -> str:
    """Say what runs without an outcome are taken to have done."""
    return "failed" if data.facts.censored == "failure" else "have the q_z of a success"


def _tied(data: Evaluation) -> list[str]:
    """Return the other useful predictors that these runs do not tell from the best."""
    _, *others = data.recommendations.values()
    return [_quoted(each.predictor) for each in others if each.is_useful and each.tied]


def _quoted(name: str) -> str:
    """Name a predictor in a sentence; quoted, where its name has several words."""
    return f"\u201c{name}\u201d" if " " in name else name


def _margin(best: Recommendation, data: Evaluation) -> str:
    """Write the margin of the form that is spoken of, with its interval."""
    return f"{with_interval(best.margin, data.digits)}{data.options.unit}"
