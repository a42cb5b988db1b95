"""What each predictor is worth against the base rate and counting steps: facts of its row."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from trajscore.core.policy import GROUP_ERROR_RATE, MIN_RUNS_PER_OUTCOME
from trajscore.core.score_families import digits_of
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import (
    AS_GIVEN,
    FORMS,
    OVER_ALIVE,
    OVER_ALIVE_END,
    REFERENCES,
    columns_of,
)
from trajscore.evaluation.recommendation import (
    AVOID,
    CARDS,
    GAINED,
    RECALIBRATE,
    USE,
    form_of,
    n_rarer,
    ranked,
    varies,
)
from trajscore.report._numbers import digits_that_show, fixed, interval, with_interval
from trajscore.report._sentences import SENTENCES, say

_MOST_NAMED = 5


def verdicts(data: Evaluation) -> list[str]:
    """Return a sentence for each predictor, in the order of the table."""
    sentences = []
    for name in data.predictors:
        card = data.cards.loc[name]
        reason = "it " * (not varies(card)) + card_reason(card, data)
        parts = [f"{name}: {card['card']}", reason, *against_counting(data, name)]
        by = [] if data.by is None else data.by.index.unique("by")
        groups = [f" By {kind}, {of_groups(data, kind, name)}" for kind in by]
        sentences.append("; ".join(parts) + "." + "".join(groups))
    return sentences


def listed(names: Iterable[str], most: int = _MOST_NAMED) -> str:
    """Join names; beyond the most, the rest are others."""
    known = list(names)
    known[most:] = ["others"] * (len(known) > most)
    return f"{', '.join(known[:-1])} and {known[-1]}" if len(known) > 1 else known[0]


def opening(text: str) -> str:
    """Write the start of a sentence large."""
    return f"{text[:1].upper()}{text[1:]}"


# -------------------------------------------------------------------- cards


def without_variation(value: float) -> str:
    """Say of a predictor that it has one value."""
    digits = f"{value:.2f}" if math.isclose(value, round(value, 2)) else f"{value:.4g}"
    return say("no_variation", {"value": digits})


def card_reason(card: pd.Series, data: Evaluation) -> str:
    """Say by what a card was decided, with the intervals that decided it."""
    if not varies(card):
        return without_variation(card["only_value"])
    action, is_probability = card["card"], not pd.isna(card[AS_GIVEN])
    form = form_of(card)
    how = FORMS[form] + (" (as given it is not a probability)" * (not is_probability))
    low, high = (fixed(card[end], data.digits, "+") for end in columns_of(form)[1:])
    highest = np.nanmax([0, *card[["as_given_high", "recalibrated_high", "signal_high"]]])
    if action == AVOID and is_probability and form != AS_GIVEN:
        how = "recalibrated or not"
    facts = {
        "useful": action in (USE, RECALIBRATE), "avoids": action == AVOID,
        "small": n_rarer(card) < MIN_RUNS_PER_OUTCOME, "tried": not pd.isna(card[GAINED]),
        "known": not pd.isna(card[form]), "how": how, "size": _size(card, form, data),
        "gain": _size(card, GAINED, data), "least": amount(card["matters"], data),
        "most": amount(highest, data), "enough": MIN_RUNS_PER_OUTCOME, "low": low, "high": high,
        "more": f"{card['n_needed']:,}", "rarer": f"{n_rarer(card):.0f}",
        "n": f"{card['n_runs']:,}",
        "outcome": "failed" if card["success_rate"] > 0.5 else "succeeded",
    }  # fmt: skip
    return say("reason", facts)


def _size(card: pd.Series, name: str, data: Evaluation) -> str:
    value, low, high = card[columns_of(name)]
    return f"{amount(value, data)} {interval(low, high, digits_that_show(value, data.digits))}"


def amount(value: float, data: Evaluation) -> str:
    """Write a difference of the leading score, with as many digits as tell it from zero."""
    return f"{fixed(value, digits_that_show(value, data.digits))}{data.options.unit}"


# -------------------------------------------------------------------- counting steps


def against_counting(data: Evaluation, name: str) -> list[str]:
    """Hold the form that is acted on, and the ranking as given, against counting steps."""
    if not varies(data.cards.loc[name]):
        return []
    form = form_of(data.cards.loc[name])
    metrics = [(form, data.score_name, f"{FORMS[form]}, it"), (AS_GIVEN, "AUROC", "its ranking")]
    return [
        _counting(data, (name, form, metric), way, what)
        for form, metric, what in metrics
        if (name, form, metric) in data.intervals.index
        for way in _ways(data, (name, form, metric))
    ]


def not_above_counting(data: Evaluation, name: str) -> str:
    """Say that a useful predictor is not shown to be better than counting steps; "" if it is."""
    key = _acted_on(data, name)
    if data.cards.loc[name, "card"] not in (USE, RECALIBRATE) or key not in data.intervals.index:
        return ""
    row = data.intervals.loc[key]
    way = min(_ways(data, key), key=lambda way: row[way[1]] > 0)
    return "" if row[way[1]] > 0 else _counting(data, key, way, "it")


def is_above_live_counting(data: Evaluation, name: str) -> bool:
    """Whether it is shown to be better than counting steps whose last one nobody knows yet."""
    return bool(data.intervals.loc[_acted_on(data, name), OVER_ALIVE[1]] > 0)


def _acted_on(data: Evaluation, name: str) -> tuple[str, str, str]:
    """Place in the intervals of the leading score, in the form that a card speaks for."""
    return name, form_of(data.cards.loc[name]), data.score_name


def _ways(data: Evaluation, key: tuple[str, str, str]) -> list[list[str]]:
    """Return the ways of counting steps to compare with, by what the predictor knows."""
    knows, row = data.facts.knows_end, data.intervals.loc[key]
    if knows is not None:
        return [OVER_ALIVE_END if knows else OVER_ALIVE]
    is_alike = _side(*row[OVER_ALIVE[1:]]) == _side(*row[OVER_ALIVE_END[1:]])
    return [OVER_ALIVE] if is_alike else [OVER_ALIVE, OVER_ALIVE_END]


def _counting(data: Evaluation, key: tuple[str, str, str], way: list[str], what: str) -> str:
    margin, low, high = data.intervals.loc[key, way]
    digits = digits_of(key[2])
    shown = digits_that_show(margin, digits) if _side(low, high) != "both" else digits
    number = with_interval((margin, low, high), shown, "+")
    number = f"AUROC {number}" if key[2] == "AUROC" else f"{number}{data.options.unit}"
    facts = {"what": what, "side": SENTENCES["sides"][_side(low, high)]}
    facts["end"] = " where it is known which step is the last" * (way == OVER_ALIVE_END)
    return say("counting", facts | {"margin": number})


def _side(low: float, high: float) -> str:
    return "above" if low > 0 else "below" if high < 0 else "both"


# -------------------------------------------------------------------- groups and stopping


def of_groups(data: Evaluation, kind: str, name: str = "") -> str:
    """Say whether groups differ for a predictor, or the best, and how many have which card."""
    assert data.by is not None
    name = name or ranked(data.cards)[0]
    cards = data.by.loc[kind].xs(name, level="predictor")
    p, counts = float(cards["p_value"].iloc[0]), cards["card"].value_counts()
    actions = ", ".join(f"{card} in {counts[card]}" for card in CARDS if card in counts)
    words = (
        ("differs", actions)
        if p < GROUP_ERROR_RATE
        else ("is not shown to differ", "go by all runs")
    )
    facts = {"n": len(cards), "name": name, "p": p, "differs": words[0], "advice": words[1]}
    return say("groups", facts)


def of_stopping(data: Evaluation) -> str:
    """Say what a rule does on other runs, by the predictor with which it does most; or its flag."""
    table = data.monitoring
    facts = {"asked": table is not None, "name": ""}
    facts["ask"] = "--monitor" if data.source.command else "monitoring=True"
    if table is not None and not table.empty:
        own = table.drop(list(REFERENCES), level=0, errors="ignore")
        own = own.dropna(subset="power_before_end")
        levels = own.index.get_level_values("alpha").unique().sort_values()
        if len(own):
            at_level = own.xs(levels[len(levels) // 2], level="alpha", drop_level=False)
            key = at_level["power_before_end"].idxmax()
            power, saved = own.loc[key, ["power_before_end", "steps_saved"]]
            facts |= {"name": key[0], "alpha": f"{100 * key[1]:.3g}%"}
            facts |= {"power": power, "saved": saved}
    return say("stopping", facts)
