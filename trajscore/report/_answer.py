"""Which predictor to use, how, and what would change that: facts of the sentences at the top."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

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
from trajscore.report._numbers import fixed, with_interval
from trajscore.report._reliability import reliability
from trajscore.report._runs import number_of_runs
from trajscore.report._sentences import say
from trajscore.report._verdict import listed, over_counting, side_of_zero

_MOST_NAMED = 5
_FEW_NAMED = 4
_SUCCEEDED = ("won", "solved", "passed", "succeeded")
"""Names of columns of outcomes that say in a sentence what a run did."""


class Answer(NamedTuple):
    """What to do, and what would change that."""

    predictor: str  # to use, or the one that more runs would settle; "" for none
    action: str  # a card
    headline: str
    why: str  # what the reason answers: "What would change it", "What would settle it", "Why"
    reason: str
    advice: str  # the next step


def answer(data: ReportData) -> Answer:
    """Return which predictor to use, and what would change it."""
    facts = _facts(data)
    reason = " ".join(filter(None, [say("changes", facts), say("unobserved", facts)]))
    shown = "" if facts["avoids"] or facts["small"] else facts["name"]
    texts = say("headline", facts), say("asks", facts), reason, say("next", facts)
    return Answer(shown, facts["action"], *texts)


def _facts(data: ReportData) -> dict[str, Any]:
    """Return what the sentences at the top ask for, of the predictor that is ahead."""
    name, cards, facts = ranked(data.cards)[0], data.cards, data.facts
    _, action = decision(cards)
    card, is_as_given = cards.loc[name], action == USE
    useful = [other for other in ranked(cards)[1:] if cards["card"][other] in (USE, RECALIBRATE)]
    tied = [quoted(other) for other in useful if cards.loc[other, "tied"]]
    as_they_are = [other for other in useful if cards["card"][other] == USE]
    other = next(iter([*as_they_are, *useful]), "")
    n = facts.n_censored
    return dict(
        name=name, first=quoted(name), action=action, settled=is_settled(data),
        avoids=action == AVOID, open=action == TOO_FEW, maps=action == RECALIBRATE,
        small=action == TOO_FEW and have_too_few_runs(card), vary=bool(varies(cards).any()),
        n=number_of_runs(int(card["n_runs"])), more=f"{card['n_needed']:,}", enough=FEWEST,
        rate=facts.rate, matters=MATTERS, margin=_margin(cards, name, data),
        how=_how(action), not_in=_not_in(data, name), means=_means(data, name, is_as_given),
        hidden=number_of_runs(n) if data.observed_cards is not None else "",
        have="has" if n == 1 else "have", counted_as=counted_as(data),
        stand_for="failed" if facts.censored == "failure" else "have the q_z of a success",
        drop="--censored drop" if data.source.command else "censored='drop'",
        stays="the choice stays" if data.observed_cards is None else stays(data),
        other_answer=_other_answer(data), alone=len(cards) == 1, ties=cards["tied"].sum() > 1,
        **_counting(data, name), tied=_some(tied), other=other and _named(cards, other),
        behind=_behind(data, name, other) if other else "",
        risk=next((quoted(note.predictor) for note in data.remarks if note.kind == "risk"), ""),
    )  # fmt: skip


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
    """Whether leaving out the runs without an outcome gives the same answer, or a tied one."""
    if data.observed_cards is None:
        return True
    (name, card), (other, _) = ours, theirs = decision(data.cards), decision(data.observed_cards)
    if not (name and other and name != other and data.pairs is not None):
        return ours == theirs
    row, _ = _pair(data.pairs, name, other)
    tied = side_of_zero(row["low"], row["high"]) == 0
    return tied and data.observed_cards["card"].get(name) == card


def counted_as(data: ReportData) -> str:
    """Say what runs without an outcome stand for."""
    return "with their q_z" if data.facts.censored == "q_z" else "as failures"


def quoted(name: str) -> str:
    """Name a predictor in a sentence; quoted, where its name has several words."""
    return f"\u201c{name}\u201d" if " " in name else name


def stays(data: ReportData) -> str:
    """Say that the answer is the same without some runs, or that of a tied predictor."""
    assert data.observed_cards is not None
    (ours, action), (theirs, _) = decision(data.cards), decision(data.observed_cards)
    if action == TOO_FEW:
        return "it is still not known"
    return "the choice stays" if ours == theirs else "a predictor that is tied with it leads"


# -------------------------------------------------------------------- parts of sentences


def _how(action: str) -> str:
    return {USE: " as it is", RECALIBRATE: ", recalibrated"}.get(action, "")


def _named(cards: pd.DataFrame, name: str) -> str:
    comma = "," * (cards["card"][name] == RECALIBRATE)
    return f"{quoted(name)}{_how(cards['card'][name])}{comma}"


def _some(names: list[str]) -> str:
    return (
        "" if not names else listed(names) if len(names) <= _FEW_NAMED else f"{len(names)} others"
    )


def _means(data: ReportData, name: str, is_as_given: bool) -> str:
    """Say what values of a predictor mean, where that is not what they say."""
    if AS_GIVEN not in forms_of(data, name):
        return ": as given it is not a probability"
    bins = reliability(data, (name, AS_GIVEN))
    gaps = [f"its {bins.forecast[k]:.0%} means {bins.rate[k]:.0%}" for k in bins.largest_gaps()]
    if not gaps:
        return ": these runs show no gap between what it says and what happens" * is_as_given
    return f": at worst, {gaps[0]}" if is_as_given else f": {' and '.join(gaps)}"


def _not_in(data: ReportData, name: str) -> str:
    """Say in which groups a predictor is not to be used, where groups differ for it."""
    if data.by is None:
        return ""
    own = data.by.xs(name, level="predictor")
    groups = own.index[(own["card"] == AVOID) & (own["p_value"] < ERROR_RATE)]
    return f", but not in {listed(map(' '.join, groups))}" if len(groups) else ""


def _counting(data: ReportData, best: str) -> dict[str, object]:
    """Say that counting steps does as well as the best predictor; "" where it does not."""
    behind = over_counting(data, best)
    if behind is None:
        return {"counting": "", "at_end": False}
    (value, low, high), at_end = behind
    digits, unit = digits_of(data.score_name), data.options.unit
    how = f"does better, by {with_interval((-value, -high, -low), digits)}{unit}"
    if high >= 0:
        over = with_interval((value, low, high), digits, "+")
        how = f"may do as well: {quoted(best)} is {over}{unit} above it"
    return {"counting": how, "at_end": at_end}


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


def _other_answer(data: ReportData) -> str:
    """Say the answer of the runs with an outcome in a few words."""
    if data.observed_cards is None:
        return ""
    best, action = decision(data.observed_cards)
    if not best:
        return "use none of these" if action == AVOID else "not known yet"
    return f"use {quoted(best)}{_how(action)} ({_margin(data.observed_cards, best, data)})"


def _margin(cards: pd.DataFrame, name: str, data: ReportData) -> str:
    """Write the margin of the form that a card speaks for, with its interval."""
    three = cards.loc[name, columns_of(form_of(cards, name))].tolist()
    if pd.isna(three[0]):
        return "no margin"
    return f"{with_interval(three, digits_of(data.score_name), '+')}{data.options.unit}"


def turned_margins(data: ReportData) -> str:
    """Say which margins have another sign without the runs that have no outcome."""
    cards = data.observed_cards
    if cards is None:
        return ""
    sign = partial(fixed, digits=digits_of(data.score_name), sign="+")
    turned = []
    for name in cards.index.intersection(data.cards.index):
        for form, words in FORMS.items():
            ours, theirs = data.cards.loc[name], cards.loc[name]
            sides = [side_of_zero(*row[columns_of(form)[1:]]) for row in (ours, theirs)]
            if any(sides) and ours[form] * theirs[form] < 0:
                over = f"{sign(theirs[form])} over the base rate, not {sign(ours[form])}"
                turned.append(f"{name} {words} is {over}")
    return "; ".join(turned[:_MOST_NAMED])


def means_without_unobserved(data: ReportData, name: str) -> str:
    """Say what the value that the headline names first means without unobserved runs."""
    key = name, AS_GIVEN
    if AS_GIVEN not in forms_of(data, name):
        return ""
    bins = reliability(data, key)
    gaps = bins.largest_gaps()
    alone = reliability(data, key, which=data.outcomes[key] != CENSORED)
    if not gaps or not (same := np.flatnonzero(alone.place == bins.place[gaps[0]])).size:
        return ""
    ours, theirs = f"{bins.rate[gaps[0]]:.0%}", f"{alone.rate[same[0]]:.0%}"
    return f"its {bins.forecast[gaps[0]]:.0%} then means {theirs}" if ours != theirs else ""
