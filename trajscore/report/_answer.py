"""The answer, what would change it, whether the data are sound: facts of these sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trajscore.calibration.fixed_step import auroc_interval
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
from trajscore.evaluation.options import AS_GIVEN, Note, columns_of
from trajscore.evaluation.recommendation import (
    AVOID,
    RECALIBRATE,
    TOO_FEW,
    UNSCORED,
    USE,
    form_of,
    have_too_few_runs,
    ranked,
    varies,
)
from trajscore.evaluation.reliability import reliability
from trajscore.evaluation.runs import number_of_runs
from trajscore.report._disclosures import left_out
from trajscore.report._numbers import of_hundred, with_interval
from trajscore.report._sentences import SENTENCES, say, sentence
from trajscore.report._verdict import (
    card_reason,
    is_above_live_counting,
    listed,
    not_above_counting,
    opening,
)

SOUND, LOOK, PROBLEM = "sound", "check this", "a problem"
_SUCCEEDED = ("won", "solved", "passed", "succeeded")
"""Names of columns of outcomes that say in a sentence what a run did."""
_FEW_NAMED = 4
_LOOK = ("outside", "risk", "few clusters", "heavy run", "sampled")


class Answer(NamedTuple):
    """What to do, what would change that, and how far to trust it."""

    predictor: str  # to use, or the one that more runs would settle; "" for none
    action: str  # a card
    headline: str
    why: str  # what the reason answers: "Why", "What would settle it" or "change the choice"
    reason: str
    advice: str  # the next step
    light: str  # whether the data are sound, by the worst reason
    doubts: list[str]  # the reasons, worst first
    unobserved: str  # what runs without an outcome count as, where no reason says so
    before: str  # what comes before what to accept and stop, where it may not hold
    notes: list[str]  # what a reader should know of predictors and runs

    @property
    def lines(self) -> list[str]:
        """The answer, what would change it, and the next step, without marks of bold words."""
        reason = f"{self.why}: {self.reason}".replace("**", "")
        return [self.headline, reason, f"Next: {self.advice}"]


def answer(data: Evaluation) -> Answer:
    """Return which predictor to use, what would change that, and how sound the data are."""
    facts = _facts(data)
    by_stops = [_of_choice(data, choice) for choice in data.other_choices if choice != "observed"]
    problems, looks = list(_problems(data, facts)), list(_looks(data, facts, by_stops))
    reasons, of_hidden = problems + looks, say("choice", facts)
    is_left = bool(facts["hidden"] and reasons and of_hidden not in reasons)
    why, _, reason = say("changes", facts).partition(": ")
    return Answer(
        "" if facts["avoids"] or facts["small"] else facts["name"],
        facts["action"],
        say("headline", facts),
        why,
        reason,
        say("next", facts),
        PROBLEM if problems else LOOK if looks else SOUND,
        reasons or [f"{of_hidden} {say('length', facts)}"],
        of_hidden if is_left else "",
        say("doubt", facts),
        [*map(sentence, data.remarks), *(say("choice", choice) for choice in by_stops)],
    )


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
    return names.get(y, f"graded {y:g}")


# -------------------------------------------------------------------- facts


def _facts(data: Evaluation) -> dict[str, Any]:
    """Return what the sentences ask for, of the predictor that is ahead and of the data."""
    name, cards, n = ranked(data.cards)[0], data.cards, data.facts.n_censored
    card, action = cards.loc[name], cards.loc[name, "card"]
    is_known, is_small = action != UNSCORED, action == TOO_FEW and bool(have_too_few_runs(card))
    more, counting = f"{card['n_needed']:,}", not_above_counting(data, name)
    hidden, alone = number_of_runs(n) if n else "", _of_choice(data, "observed")
    stands_for = "failed" if data.facts.censored == "failure" else "have the q_z of a success"
    several = len(cards) > 1
    no_one = "no predictor varies" if several else "it does not vary"
    provided = f", if the {hidden} without an outcome {stands_for}"
    return {
        "name": name, "first": _quoted(name), "action": action,
        "avoids": action == AVOID, "open": action in (TOO_FEW, UNSCORED), "small": is_small,
        "known": is_known, "enough": MIN_RUNS_PER_OUTCOME,
        "avoid": "Use none of these" if several else f"Do not use {_quoted(name)}",
        "unvarying": f": {no_one}" * (not varies(cards).any()),
        "n": number_of_runs(int(card["n_runs"])), "more": more,
        "settling": f"about {more} more runs could settle it" if is_known else "it has no score",
        "collect": "Collect more runs" if is_known else "Recalibrate it", "matters": MATERIAL_SHARE,
        "base": base_rate(data),
        "as_what": " and recalibrate it" if action == RECALIBRATE else _how(action),
        "act": "Recalibrate new runs, then accept and stop them" if action == RECALIBRATE
               else "Accept and stop new runs",
        "no_other": "no other one is useful" if several else "this is the only one here",
        "margin": _margin(cards, name, data), "not_in": _not_in(data, name),
        "means": _means(data, name, action) if alone["settled"] else provided,
        "counting": counting, "outdone": counting and not is_above_live_counting(data, name),
        **_others(data, name), "useful": action in (USE, RECALIBRATE), **alone, "hidden": hidden,
        "counted_as": SENTENCES["counted_as"][data.facts.censored], "stands_for": stands_for,
        "drop": "--censored drop" if data.source.command else "censored='drop'",
        **_of_length(data),
    }  # fmt: skip


def _decision(cards: pd.DataFrame) -> tuple[str, str]:
    """Return the predictor to use and how; no name where there is none to use."""
    best = ranked(cards)[0]
    action = cards["card"][best]
    return best if action in (USE, RECALIBRATE) else "", action


def _difference(pairs: pd.DataFrame, name: str, other: str) -> tuple[float, float, float]:
    """Return what a predictor is above another one, with its interval; NaN where there is none."""
    table = pairs.set_index(["predictor", "reference"])[["difference", "low", "high"]]
    if (name, other) in table.index:
        return tuple(table.loc[name, other])
    value, low, high = -table.reindex([(other, name)]).to_numpy()[0]
    return value, high, low


# -------------------------------------------------------------------- parts of sentences


def _quoted(name: str) -> str:
    """Name a predictor in a sentence; quoted, where its name has several words."""
    return f"\u201c{name}\u201d" if " " in name else name


def _how(action: str) -> str:
    return {USE: " as it is", RECALIBRATE: ", recalibrated"}.get(action, "")


def _margin(cards: pd.DataFrame, name: str, data: Evaluation) -> str:
    """Write the margin of the form that a card speaks for, with its interval."""
    three = cards.loc[name, columns_of(form_of(cards.loc[name]))]
    return f"{with_interval(three, data.digits)}{data.options.unit}"


def _not_in(data: Evaluation, name: str) -> str:
    """Say in which groups a predictor is not to be used, or not by the map of all runs."""
    if data.by is None:
        return ""
    own = data.by.xs(name, level="predictor")
    is_bad = (own["card"] == AVOID) | (own["recalibrated_high"] < 0)
    groups = own.index[is_bad & ~have_too_few_runs(own) & (own["p_value"] < GROUP_ERROR_RATE)]
    return f", but not in {listed(map(' '.join, groups))}" if len(groups) else ""


def _means(data: Evaluation, name: str, action: str) -> str:
    """Say what values of a predictor mean, where that is not what they say."""
    if AS_GIVEN not in data.forms_of(name):
        return ": as given it is not a probability"
    bins = reliability(data, (name, AS_GIVEN))
    gaps = [f"{bins.forecast[k]:.0%}, {bins.rate[k]:.0%} succeed" for k in bins.largest_gaps()]
    if action != USE:
        return f": where it says {' and where it says '.join(gaps)}" if gaps else ""
    none = "these runs show no gap between what it says and what happens"
    return f": at worst, where it says {gaps[0]}" if gaps else f": {none}"


def _others(data: Evaluation, best: str) -> dict[str, Any]:
    """Return which others are tied with the best, and which is cheaper and good enough."""
    cards = data.cards
    useful = [other for other in ranked(cards)[1:] if cards["card"][other] in (USE, RECALIBRATE)]
    tied = [_quoted(other) for other in useful if cards.loc[other, "tied"]]
    other = next((one for one in useful if cards["card"][one] == USE), next(iter(useful), ""))
    behind = ""
    if other and data.pairs is not None:
        text = with_interval(_difference(data.pairs, best, other), data.digits)
        behind = f" and is {text}{data.options.unit} behind"
    comma = "," * bool(other and cards["card"][other] == RECALIBRATE)
    return {
        "tied": listed(tied, _FEW_NAMED) if tied else "",
        "best": listed([_quoted(best), *tied], _FEW_NAMED),
        "other": f"{_quoted(other)}{_how(cards['card'][other])}{comma}" if other else "",
        "behind": behind,
    }  # fmt: skip


# -------------------------------------------------------------------- other choices of runs


def _of_choice(data: Evaluation, choice: str) -> dict[str, Any]:
    """Return which runs could be counted otherwise, and what the answer would be then."""
    n, cards = data.other_choices.get(choice, (0, data.cards))
    have, were = ("has", "was") if n == 1 else ("have", "were")
    counted_as = SENTENCES["counted_as"][data.facts.censored]
    what, counted, otherwise = {
        "observed": (f"{have} no outcome", f"counted {counted_as}", "Without them"),
        "lost": (f"{were} lost by the harness", "left out", "Counted as recorded,"),
        "unknown": ("ended for reasons that are not known", "counted as recorded", "Without them"),
    }[choice]
    name, card = _decision(data.cards)
    other, action = ("", "none") if cards is None else _decision(cards)
    is_same, is_hidden = (name, card) == (other, action), bool(n) and choice == "observed"
    if cards is not None and data.pairs is not None and name and other and name != other:
        _, low, high = _difference(data.pairs, name, other)
        is_same = low <= 0 <= high and cards["card"].get(name) == card  # they are tied
    words = {AVOID: "use none of these", "none": "none, as too few runs are left"}
    text = words.get(action, "not known yet")
    if other:
        text = f"use {_quoted(other)}{_how(action)} ({_margin(cards, other, data)})"
    stays = "the choice stays" if name == other else "a predictor that is tied with it leads"
    stays = "it is still not known" if card in (TOO_FEW, UNSCORED) else stays
    return {
        "hidden": n, "is_hidden": is_hidden, "settled": is_same, "other_answer": text,
        "of": f"{n:,} of {number_of_runs(data.facts.n_runs + n * (choice == 'lost'))}",
        "what": what + _stopped(data) * (is_hidden and is_same), "counted": counted,
        "otherwise": otherwise, "stays": stays if is_same else f"the answer would be: {text}",
    }  # fmt: skip


def _stopped(data: Evaluation) -> str:
    """Say what stopped the runs without an outcome, if all were stopped by one."""
    meta, hidden = data.rows.base.traces.meta, ~data.runs.observed
    reasons = meta["stop_reason"][hidden].dropna().unique() if "stop_reason" in meta else []
    return f", all stopped by {reasons[0]}" if len(reasons) == 1 else ""


# -------------------------------------------------------------------- whether the data are sound


def _problems(data: Evaluation, facts: dict[str, Any]) -> Iterator[str]:
    """Return what makes the answer doubtful."""
    yield from (sentence(note) for note in data.remarks if note.kind == "leakage")
    if not facts["settled"]:
        yield say("choice", facts)
    yield from (sentence(note) for note in data.remarks if _has_few_tasks(note))
    few = data.cards[have_too_few_runs(data.cards) & varies(data.cards)]
    if len(few):
        yield f"{opening(card_reason(few.iloc[0], data))}."


def _looks(
    data: Evaluation, facts: dict[str, Any], by_stops: list[dict[str, Any]]
) -> Iterator[str]:
    """Return what a reader should look at once."""
    if facts["settled"] and data.facts.n_censored > MAX_SHARE_UNCLEAR * data.facts.n_runs:
        yield say("choice", facts)
    yield from (say("choice", choice) for choice in by_stops if not choice["settled"])
    if facts["is_related"]:
        yield say("length", facts)
    for note in data.remarks:
        if note.kind in _LOOK and not _has_few_tasks(note):
            yield sentence(note)
    if data.excluded["n_runs"].sum() > MAX_SHARE_UNCLEAR * data.facts.n_runs:
        yield f"{left_out(data)}."


def _has_few_tasks(note: Note) -> bool:
    return note.kind == "few clusters" and note.facts["effective"] < MIN_EFFECTIVE_TASKS


def _of_length(data: Evaluation) -> dict[str, Any]:
    """Return how the number of steps is related to the outcome, of runs that have one."""
    runs, seen = data.runs, data.runs.observed
    labels, steps = runs.labels[seen], -data.rows.base.traces.lengths[seen].astype(np.float64)
    units = None if runs.groups is None else runs.groups[seen]
    stratum, level = np.zeros(len(labels), dtype=np.int64), data.options.settings.confidence_level
    area, low, high = auroc_interval(steps, labels, stratum, units, level)
    is_related = bool((low > 0.5 or high < 0.5) and abs(area - 0.5) > MIN_LENGTH_EFFECT)
    return {
        "is_related": is_related, "related": "related" if is_related else "hardly related",
        "longer": "shorter" if area > 0.5 else "longer", "share": max(area, 1 - area),
    }  # fmt: skip
