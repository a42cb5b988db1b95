"""Which predictor to use, how, and what would change that: the sentences at the top."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from trajscore.core.equal_length import FEWEST
from trajscore.core.outcomes import CENSORED
from trajscore.core.score_families import digits_of
from trajscore.report._cards import (
    AVOID,
    MATTERS,
    RECALIBRATE,
    TOO_FEW,
    USE,
    form_of,
    forms_of,
    have_too_few_runs,
    ranked,
    varies,
)
from trajscore.report._data import AS_GIVEN, FORMS, ReportData, columns_of
from trajscore.report._groups import ERROR_RATE
from trajscore.report._left_out import number_of_runs
from trajscore.report._numbers import fixed, with_interval
from trajscore.report._reliability import reliability
from trajscore.report._verdict import listed, over_counting, side_of_zero

_MOST_NAMED = 5
_FEW_NAMED = 4
_SUCCEEDED = ("won", "solved", "passed", "succeeded")
"""Names of columns of outcomes that say in a sentence what a run did."""


@dataclass(frozen=True)
class Answer:
    """What to do, and what would change that."""

    predictor: str  # to use, or the one that more runs would settle; "" for none
    action: str  # a card
    headline: str
    why: str  # what the reason answers: "What would change it", "What would settle it", "Why"
    reason: str
    advice: str  # the next step


def answer(data: ReportData) -> Answer:
    """Return which predictor to use, and what would change it."""
    best, action = decision(data.cards)
    if action == AVOID:
        stated = _none(data)
    elif action == TOO_FEW:
        stated = _not_known(data)
    else:
        headline = f"Use {quoted(best)}{_how(action)}{_not_in(data, best)}"
        headline += _means(data, best, action) if is_settled(data) else _if_failed(data)
        reason, advice = _would_change(data, best), _advice(data, best, action)
        return Answer(best, action, f"{headline}.", "What would change it", reason, advice)
    if is_settled(data):
        return stated
    reason, advice = f"{stated.reason} {_without_unobserved(data)}", _find_out(data)
    return replace(stated, reason=reason, advice=advice)


def _advice(data: ReportData, best: str, action: str) -> str:
    """Say the next step with a predictor to use."""
    if not is_settled(data):
        return _find_out(data)
    if data.cards["tied"].sum() > 1:
        return "Take the cheapest of the tied ones, in the form that its row names."
    if action == RECALIBRATE:
        return f"Recalibrate {quoted(best)}, and act on it as below."
    return f"Act on {quoted(best)} as below."


def _find_out(data: ReportData) -> str:
    runs = number_of_runs(data.facts.n_censored)
    return f"Find out what became of the {runs} without an outcome, before you act on these scores."


def succeeded(data: ReportData) -> str:
    """Say what a successful run did: by the name of its outcomes, else that it succeeded."""
    name = data.source.outcome.lower()
    return name if name in _SUCCEEDED else _SUCCEEDED[-1]


def decision(cards: pd.DataFrame) -> tuple[str, str]:
    """Return the predictor to use and how; no name where there is none to use."""
    best, actions = ranked(cards)[0], cards["card"]
    if actions[best] in (USE, RECALIBRATE):
        return best, actions[best]
    return "", AVOID if (actions == AVOID).all() else TOO_FEW


def is_settled(data: ReportData) -> bool:
    """Whether leaving out the runs without an outcome gives the same answer."""
    return data.observed_cards is None or not _is_another(data, data.observed_cards)


def counted_as(data: ReportData) -> str:
    """Say what runs without an outcome stand for."""
    return "with their q_z" if data.facts.censored == "q_z" else "as failures"


# -------------------------------------------------------------------- headlines


def _how(action: str) -> str:
    return " as it is" if action == USE else ", recalibrated"


def _if_failed(data: ReportData) -> str:
    """Say on what the answer depends where runs have no outcome."""
    stand_for = "failed" if data.facts.censored == "failure" else "have the q_z of a success"
    return f", if the {number_of_runs(data.facts.n_censored)} without an outcome {stand_for}"


def quoted(name: str) -> str:
    """Name a predictor in a sentence; quoted, where its name has several words."""
    return f"\u201c{name}\u201d" if " " in name else name


def _means(data: ReportData, name: str, action: str) -> str:
    """Say what values of a predictor mean, where that is not what they say."""
    key = name, AS_GIVEN
    if AS_GIVEN not in forms_of(data, name):
        return ": as given it is not a probability"
    bins = reliability(data, key)
    gaps = [f"its {bins.forecast[k]:.0%} means {bins.rate[k]:.0%}" for k in bins.largest_gaps()]
    if not gaps:
        return ": these runs show no gap between what it says and what happens" * (action == USE)
    return f": at worst, {gaps[0]}" if action == USE else f": {' and '.join(gaps)}"


def _not_in(data: ReportData, name: str) -> str:
    """Say in which groups a predictor is not to be used, where groups differ for it."""
    if data.by is None:
        return ""
    own = data.by.xs(name, level="predictor")
    groups = own.index[(own["card"] == AVOID) & (own["p_value"] < ERROR_RATE)]
    if not len(groups):
        return ""
    named = listed([f"{kind} {group}" for kind, group in groups[:_MOST_NAMED]])
    return f", but not in {named}{' and others' * (len(groups) > _MOST_NAMED)}"


def _none(data: ReportData) -> Answer:
    """Say why none is to be used, and where to get one that is."""
    if not varies(data.cards).any():
        why = "A value that is the same at every step cannot tell which runs fail."
        advice = "Get one that varies: the user guide's page \u201cGet confidences\u201d says how."
        return Answer("", AVOID, "Use none of these: no predictor varies.", "Why", why, advice)
    why = (
        f"No predictor, as given or recalibrated, beats always saying {data.facts.rate:.0%} by as "
        f"much as matters, {MATTERS:.0%} of its loss."
    )
    risks = [quoted(note.predictor) for note in data.remarks if note.kind == "risk"]
    advice = "Try another predictor, or ask the same one otherwise."
    if risks:
        advice = f"If high values of {risks[0]} mean failure, give it as a risk (--risk)."
    return Answer("", AVOID, "Use none of these.", "Why", why, advice)


def _not_known(data: ReportData) -> Answer:
    """Say how many runs would settle whether to use the predictor that is ahead."""
    first = ranked(data.cards)[0]
    card = data.cards.loc[first]
    more = f"{card['n_needed']:,}"
    if have_too_few_runs(card):
        n = number_of_runs(int(card["n_runs"]))
        headline = f"Too few runs to say anything: read these {n}, and collect about {more} more."
        reason = (
            f"With fewer than {FEWEST} successes or {FEWEST} failures, chance alone makes a "
            f"predictor look good or bad."
        )
        return Answer("", TOO_FEW, headline, "Why", reason, "Read the runs, and collect more.")
    headline = (
        f"Not known yet whether to use {quoted(first)}: about {more} more runs could settle it."
    )
    margin = _margin(data.cards, first, data)
    reason = f"{more} more runs with an outcome, if {quoted(first)} keeps its margin of {margin}."
    advice = "Collect more runs. Until then, read runs, and do not act on these scores."
    return Answer(first, TOO_FEW, headline, "What would settle it", reason, advice)


# -------------------------------------------------------------------- what would change it


def _would_change(data: ReportData, best: str) -> str:
    """Return the first thing that would change the answer, and what unknown outcomes do to it."""
    if not is_settled(data):
        return _without_unobserved(data)
    return f"{_would_change_by_choice(data, best)}{_with_unobserved(data)}"


def _would_change_by_choice(data: ReportData, best: str) -> str:
    if counting := _counting(data, best):
        return counting
    actions = data.cards["card"]
    others = [name for name in ranked(data.cards)[1:] if actions[name] in (USE, RECALIBRATE)]
    if not others:
        only = "this is the only one here" if len(data.cards) == 1 else "no other here is useful"
        return f"A better predictor; {only}."
    tied = [name for name in others if data.cards.loc[name, "tied"]]
    if tied:
        some = listed(map(quoted, tied)) if len(tied) <= _FEW_NAMED else f"{len(tied)} others"
        return f"Cost. {quoted(best)} is statistically tied with {some}: take the cheapest of them."
    other = next((name for name in others if actions[name] == USE), others[0])
    how = " as it is" if actions[other] == USE else ", recalibrated,"
    behind = _behind(data, best, other)
    return f"A cheaper predictor that is good enough. {quoted(other)}{how} is useful{behind}."


def _counting(data: ReportData, best: str) -> str:
    """Say that counting steps does as well as the best predictor; "" where it does not."""
    behind = over_counting(data, best)
    if behind is None:
        return ""
    (value, low, high), at_end = behind
    digits, unit = digits_of(data.score_name), data.options.unit
    how = f"does better, by {with_interval((-value, -high, -low), digits)}{unit}"
    if high >= 0:
        over = with_interval((value, low, high), digits, "+")
        how = f"may do as well: {quoted(best)} is {over}{unit} above it"
    if at_end:
        return (
            f"Deciding only at the end of a run. There, counting its steps, which is free, {how}."
        )
    return f"Counting steps, which is free. It {how}."


def _behind(data: ReportData, best: str, other: str) -> str:
    """Say by how much a predictor is behind the best, with the interval."""
    if data.pairs is None:
        return ""
    row, sign = _pair(data.pairs, best, other)
    value, *ends = (sign * row[name] for name in ("difference", "low", "high"))
    text = with_interval((value, *sorted(ends)), digits_of(data.score_name))
    return f" and is {text}{data.options.unit} behind"


def _pair(pairs: pd.DataFrame, name: str, other: str) -> tuple[pd.Series, int]:
    """Return the row of two predictors, and -1 where it holds them the other way round."""
    table = pairs.set_index(["predictor", "reference"])
    is_same = (name, other) in table.index
    return table.loc[(name, other) if is_same else (other, name)], 1 if is_same else -1


def _without_unobserved(data: ReportData) -> str:
    """Say what the answer becomes without the runs that have no outcome."""
    n, drop = data.facts.n_censored, "--censored drop" if data.source.command else "censored='drop'"
    return (
        f"What became of the {number_of_runs(n)} without an outcome, which count "
        f"{counted_as(data)} here. **If you do not know their outcomes yet, the answer is: "
        f"{_other_answer(data)}.** Leave them out then: {drop}."
    )


def _with_unobserved(data: ReportData) -> str:
    """Say that the answer stays without the runs that have no outcome."""
    if data.observed_cards is None:
        return ""
    n = data.facts.n_censored
    runs = f"{number_of_runs(n)} that {'has' if n == 1 else 'have'} no outcome"
    return f" Without the {runs}, {stays(data)}: {_other_answer(data)}."


def stays(data: ReportData) -> str:
    """Say that the answer is the same without some runs, or that of a tied predictor."""
    assert data.observed_cards is not None
    (ours, action), (theirs, _) = decision(data.cards), decision(data.observed_cards)
    if action == TOO_FEW:
        return "it is still not known"
    return "the choice stays" if ours == theirs else "a predictor that is tied with it leads"


def _other_answer(data: ReportData) -> str:
    """Say the answer of the runs with an outcome in a few words."""
    cards = data.observed_cards
    assert cards is not None
    best, action = decision(cards)
    if action == AVOID:
        return "use none of these"
    if action == TOO_FEW:
        return "not known yet"
    return f"use {quoted(best)}{_how(action)} ({_margin(cards, best, data)})"


def _margin(cards: pd.DataFrame, name: str, data: ReportData) -> str:
    """Write the margin of the form that a card speaks for, with its interval."""
    form = form_of(cards, name)
    three = cards.loc[name, columns_of(form)].tolist()
    if pd.isna(three[0]):
        return "no margin"
    return f"{with_interval(three, digits_of(data.score_name), '+')}{data.options.unit}"


def turned_margins(data: ReportData) -> str:
    """Say which margins have another sign without the runs that have no outcome."""
    cards, digits = data.observed_cards, digits_of(data.score_name)
    if cards is None:
        return ""
    turned = [
        f"{name} {FORMS[form]} is {fixed(cards.loc[name, form], digits, '+')} over the base rate, "
        f"not {fixed(data.cards.loc[name, form], digits, '+')}"
        for name in cards.index.intersection(data.cards.index)
        for form in FORMS
        if _turns(data.cards.loc[name], cards.loc[name], form)
    ]
    return "; ".join(turned[:_MOST_NAMED])


def _is_another(data: ReportData, cards: pd.DataFrame) -> bool:
    """Whether the answer by other cards is another; not where it is one of two that are tied."""
    (name, card), (other, _) = ours, theirs = decision(data.cards), decision(cards)
    if not (name and other and name != other and data.pairs is not None):
        return ours != theirs
    row, _ = _pair(data.pairs, name, other)
    tied = side_of_zero(row["low"], row["high"]) == 0
    return not (tied and cards["card"].get(name) == card)


def _turns(card: pd.Series, other: pd.Series, margin: str) -> bool:
    """Whether a margin has another sign on another card, one of the two beyond doubt."""
    sides = [side_of_zero(*row[columns_of(margin)[1:]]) for row in (card, other)]
    return bool(any(sides) and card[margin] * other[margin] < 0)


def means_without_unobserved(data: ReportData, name: str) -> str:
    """Say what the value that the headline names first means without unobserved runs."""
    key = name, AS_GIVEN
    if AS_GIVEN not in forms_of(data, name):
        return ""
    bins = reliability(data, key)
    gaps = bins.largest_gaps()
    if not gaps:
        return ""
    seen = data.outcomes[key] != CENSORED
    alone = reliability(data, key, which=seen)
    same = np.flatnonzero(alone.place == bins.place[gaps[0]])
    if not len(same):
        return ""
    ours, theirs = f"{bins.rate[gaps[0]]:.0%}", f"{alone.rate[same[0]]:.0%}"
    return f"its {bins.forecast[gaps[0]]:.0%} then means {theirs}" if ours != theirs else ""
