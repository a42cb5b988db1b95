"""How far to trust the answer: each doubt is a sentence with its condition, worst first.

A note that is made with the numbers (`evaluation/notes.py`) is a doubt by its kind.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from trajscore.core.outcomes import CENSORED
from trajscore.core.policy import MAX_SHARE_UNCLEAR, MIN_EFFECTIVE_TASKS, MIN_LENGTH_EFFECT
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.recommendation import Action, OtherChoice
from trajscore.evaluation.runs import number_of_runs
from trajscore.report._disclosures import left_out
from trajscore.report.glossary import counted_as, listed, opening, quoted
from trajscore.report.verdicts import card_reason, note_text, way_gone

UNOBSERVED = "unobserved"
LEFT_OUT = "left out"
_FEW_TASKS = "few tasks"
_TO_CHECK = ("outside", "risk", "few clusters", "heavy run", "sampled")


class Light(StrEnum):
    """Whether the data are sound, by the worst reason against it."""

    SOUND = "sound"
    LOOK = "check this"
    PROBLEM = "a problem"


class Doubt(NamedTuple):
    """What makes the answer doubtful, or what a reader should know all the same."""

    kind: str  # that of a `Note`, an `OtherChoice`, or what is doubted here
    text: str


def problems(data: Evaluation, noted: Sequence[Doubt]) -> Iterator[Doubt]:
    """Return what makes the answer doubtful, worst first; some of it is noted."""
    yield from (note for note in noted if note.kind == "leakage")
    if not is_settled(data):
        yield Doubt(UNOBSERVED, of_unobserved(data))
    yield from (note for note in noted if note.kind == _FEW_TASKS)
    if data.is_small:
        yield Doubt("few runs", f"{opening(card_reason(data.best, data))}.")


def points_to_check(data: Evaluation, noted: Sequence[Doubt]) -> Iterator[Doubt]:
    """Return what a reader should look at once; some of it is noted."""
    most = MAX_SHARE_UNCLEAR * data.facts.n_runs
    if data.facts.n_censored > most and is_settled(data) and not are_stopped_by_budget(data):
        yield Doubt(UNOBSERVED, of_unobserved(data))
    choices = [each for each in data.otherwise if not data.other_choice(each).stays]
    yield from (note for note in noted if note.kind in choices)
    if _is_length_related(data):
        yield Doubt("length", of_length(data))
    yield from (note for note in noted if note.kind in _TO_CHECK)
    if has_many_left_out(data):
        yield Doubt(LEFT_OUT, f"{left_out(data)}.")


def has_many_left_out(data: Evaluation) -> bool:
    """Whether more runs are left out, unasked, than a reader may overlook."""
    n = sum(n for reason, n in data.exclusions.items() if not reason.kind.value.is_chosen)
    return n > MAX_SHARE_UNCLEAR * (data.facts.n_runs + n)


def notes(data: Evaluation) -> Iterator[Doubt]:
    """Return what a reader should know of predictors and runs, doubtful or not."""
    for note in data.remarks:
        kind = note.kind
        if kind == "few clusters" and note.facts["effective"] < MIN_EFFECTIVE_TASKS:
            kind = _FEW_TASKS
        yield Doubt(kind, note_text(note))
    for choice in data.otherwise:
        if choice != "observed":
            yield Doubt(choice, of_choice(data, choice))


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


# -------------------------------------------------------------------- other choices of runs


def of_choice(data: Evaluation, choice: str) -> str:
    """Say how many runs could be counted otherwise, and what the answer would be then."""
    other = data.other_choice(choice)
    n = other.n_runs
    n_all = data.facts.n_counted
    alone = n == 1
    counted = "counted as recorded"
    otherwise = "Without them"
    if choice == "observed":
        n_all = data.facts.n_runs
        status = "has no outcome" if alone else "have no outcome"
        counted = f"counted {counted_as(data.facts.censored, n)}"
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
    return of_choice(data, "observed") if data.facts.n_censored else "Every run has an outcome."


def of_budget(data: Evaluation) -> str:
    """Say what the runs count as that a budget stopped, and what the answer is without them."""
    if not are_stopped_by_budget(data):
        return ""
    meta = data.ends[data.ends["y"] == CENSORED]
    names = listed(meta["stop_reason"].dropna().unique()) if "stop_reason" in meta else ""
    budget = "their budget"
    count = "count"
    them = "them"
    counted = counted_as(data.facts.censored, data.facts.n_censored)
    if data.facts.n_censored == 1:
        budget = "its budget"
        count = "counts"
        them = "it"
    runs = f"{number_hidden(data)} hit {budget}{f' ({names})' * (names not in ('', 'budget'))}"
    other = data.other_choice("observed")
    then = f"the answer is: {other_answer(other)}"
    if other.stays:
        then = f"both answers stay{_other_share(data, other)}"
    return f"{runs} and {count} {counted}; without {them} ({how_to_drop(data)}) {then}."


def _what_stays(data: Evaluation, other: OtherChoice) -> str:
    """Say whether the answer stays under another choice of runs, or what it would be."""
    if not other.stays:
        return f"the answer would be: {other_answer(other)}"
    best = data.best
    if best.is_open:
        return "it is still not known"
    if other.best is None or best.predictor == other.best.predictor or not best.is_useful:
        return f"the choice stays{_other_share(data, other)}"
    return "a predictor that is tied with it leads"


def _other_share(data: Evaluation, other: OtherChoice) -> str:
    """Say how far what is of use goes under another choice of runs."""
    best = other.best
    if best is None or not data.best.is_useful:
        return ""
    return f", at {100 * best.share(best.margin.estimate):.0f}%"


def other_answer(other: OtherChoice) -> str:
    """Say what the answer would be under another choice of runs."""
    best = other.best
    if best is None:
        return "none, as too few runs are left"
    if best.action == Action.AVOID:
        return "use none of these"
    word = f"at its word: {best.at_its_word}"
    if best.is_open:
        return f"not known yet ({word})"
    how = " as it is" if best.action == Action.USE else ", recalibrated"
    worth = f"{way_gone(best)} of the way to a perfect forecast"
    if best.best_alone:
        return f"use {quoted(best.predictor)} ({worth})"
    return f"use {quoted(best.predictor)}{how} ({worth}; {word})"


def are_stopped_by_budget(data: Evaluation) -> bool:
    """Whether it is known of all runs without an outcome that a budget stopped them.

    Where stop reasons are known, `select_runs` leaves out the others.
    """
    return data.facts.n_censored > 0 and data.runs.stops is not None


def how_to_drop(data: Evaluation) -> str:
    """Write what leaves runs without an outcome out."""
    return "--censored drop" if data.source.command else "censored='drop'"


def is_settled(data: Evaluation) -> bool:
    """Whether the answer stays without the runs that have no outcome, or a budget stopped them."""
    return are_stopped_by_budget(data) or data.other_choice("observed").stays


def number_hidden(data: Evaluation) -> str:
    """Write how many runs have no outcome: "12 runs"."""
    return number_of_runs(data.facts.n_censored)


def stands_for(data: Evaluation) -> str:
    """Say what runs without an outcome are taken to have done."""
    return "failed" if data.facts.censored == "failure" else "have the q_z of a success"
