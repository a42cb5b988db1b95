"""What each predictor is worth against the base rate and counting steps: facts of its row."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from trajscore.core.equal_length import FEWEST
from trajscore.core.score_families import digits_of
from trajscore.report._cards import (
    AVOID,
    CARDS,
    ESTIMATES,
    RECALIBRATE,
    USE,
    form_of,
    have_too_few_runs,
    n_rarer,
    ranked,
    varies,
)
from trajscore.report._data import (
    AS_GIVEN,
    FORMS,
    OVER_ALIVE,
    OVER_ALIVE_END,
    RECALIBRATED,
    REFERENCES,
    ReportData,
    columns_of,
)
from trajscore.report._groups import ERROR_RATE
from trajscore.report._numbers import digits_that_show, fixed, interval, with_interval
from trajscore.report._sentences import say

_MOST_NAMED = 5


def verdicts(data: ReportData) -> list[str]:
    """Return a sentence for each predictor, in the order of the table."""
    sentences = []
    for name in data.predictors:
        card = data.cards.loc[name]
        parts = [f"{name}: {card['card']}", "it " * (not varies(card)) + card_reason(card, data)]
        if varies(card):
            form = form_of(data.cards, name)
            if (name, form, data.score_name) in data.intervals.index:
                parts.append(f"{FORMS[form]}, it is {_over_counting(data, name, form)}")
            parts.append(f"it {ranking(data, name)}")
        by = [] if data.by is None else data.by.index.unique("by")
        groups = [f" By {kind}, {_groups_differ(name, data.by, kind)}." for kind in by]
        sentences.append("; ".join(parts) + "." + "".join(groups))
    return sentences


def side_of_zero(low: float, high: float) -> int:
    """Return on which side of zero an interval lies: 1 above, -1 below, 0 on both."""
    return int(low > 0) - int(high < 0)


def listed(names: Iterable[str], most: int = _MOST_NAMED) -> str:
    """Join names; beyond the most, the rest are others."""
    known = list(names)
    known[most:] = ["others"] * (len(known) > most)
    return f"{', '.join(known[:-1])} and {known[-1]}" if len(known) > 1 else known[0]


# -------------------------------------------------------------------- cards


def without_variation(value: float) -> str:
    """Say of a predictor that it has one value."""
    digits = f"{value:.2f}" if math.isclose(value, round(value, 2)) else f"{value:.4g}"
    return say("no_variation", {"value": digits})


def card_reason(card: pd.Series, data: ReportData) -> str:
    """Say by what a card was decided, with the intervals that decided it."""
    if not varies(card):
        return without_variation(card["only_value"])
    form = AS_GIVEN if pd.isna(card[RECALIBRATED]) else RECALIBRATED
    low, high = (fixed(card[end], digits_of(data.score_name), "+") for end in columns_of(form)[1:])
    highest = float(np.nanmax([0, *card[["as_given_high", "recalibrated_high", "signal_high"]]]))
    how = "as given" if form == AS_GIVEN else "recalibrated or not"
    facts = {
        "uses": card["card"] == USE, "maps": card["card"] == RECALIBRATE,
        "avoids": card["card"] == AVOID, "small": n_rarer(card) < FEWEST,
        "tried": not pd.isna(card["gain"]), "known": not pd.isna(card[form]),
        "probability": not pd.isna(card[AS_GIVEN]), "loses": card["as_given_high"] < 0,
        "gains": card["gain_low"] > 0, "gains_little": card["gain"] < card["matters"],
        "better": highest > 0, "most": _most(highest, data), "enough": FEWEST,
        "worth": {name: _size(card, name, data) for name in ESTIMATES},
        "loss": _size(card, AS_GIVEN, data, sign=-1), "least": _most(card["matters"], data),
        "how": "even recalibrated" if pd.isna(card[AS_GIVEN]) else how,
        "form": FORMS[form], "low": low, "high": high, "more": f"{card['n_needed']:,}",
        "rarer": f"{n_rarer(card):.0f}", "n": f"{card['n_runs']:,}",
        "outcome": "failed" if card["success_rate"] > 0.5 else "succeeded",
    }  # fmt: skip
    return say("reason", facts)


def _size(card: pd.Series, name: str, data: ReportData, sign: int = 1) -> str:
    low, high = sorted(sign * card[end] for end in columns_of(name)[1:])
    digits = digits_that_show(card[name], digits_of(data.score_name))
    return f"{_most(sign * card[name], data)} {interval(low, high, digits)}"


def _most(value: float, data: ReportData) -> str:
    digits = digits_that_show(value, digits_of(data.score_name))
    return f"{fixed(max(value, 0), digits)}{data.options.unit}"


# -------------------------------------------------------------------- counting steps


def _references(data: ReportData, name: str, row: pd.Series) -> list[list[str]]:
    """Return the ways of counting steps to compare with, by what the predictor knows."""
    knows = data.facts.knows_end.get(name)
    if knows is not None:
        return [OVER_ALIVE_END if knows else OVER_ALIVE]
    sides = [side_of_zero(*row[over[1:]]) for over in (OVER_ALIVE, OVER_ALIVE_END)]
    return [OVER_ALIVE] if sides[0] == sides[1] else [OVER_ALIVE, OVER_ALIVE_END]


def _over_counting(data: ReportData, name: str, form: str) -> str:
    """Hold the leading score of the form that is acted on against that of counting steps."""
    row = data.intervals.loc[(name, form, data.score_name)]
    return _with_the_end([_compared(row[way], data) for way in _references(data, name, row)])


def ranking(data: ReportData, name: str, *, brief: bool = False) -> str:
    """Hold the ranking against that by counting steps; brief, without numbers."""
    row = data.intervals.loc[(name, AS_GIVEN, "AUROC")]
    parts = []
    for over in _references(data, name, row):
        numbers = "" if brief else f" (AUROC {with_interval(row[over], sign='+')})"
        parts.append(say("ranked", _sides(*row[over[1:]])) + numbers)
    return _with_the_end(parts)


def _with_the_end(parts: list[str]) -> str:
    """Join what is said of one or both ways of counting steps."""
    return parts[0] + "".join(f", and {part}{say('end_known', {})}" for part in parts[1:])


def _compared(three: Iterable[float], data: ReportData, at_end: bool = False) -> str:
    """Say on which side of counting steps a score lies, and by how much."""
    margin, low, high = three
    digits = digits_of(data.score_name)
    shown = digits_that_show(margin, digits) if side_of_zero(low, high) else digits
    facts = {"size": _most(abs(margin), data), "span": interval(low, high, shown, "+")}
    facts["reference"] = "counting steps" + " where the last step is known" * at_end
    return say("compared", _sides(low, high) | facts)


def _sides(low: float, high: float) -> dict[str, bool]:
    return {"above": low > 0, "below": high < 0}


def over_counting(data: ReportData, name: str) -> tuple[tuple[float, ...], bool] | None:
    """Return what a useful predictor is above counting steps, where it is not shown to be better.

    And whether that counting knows which step is the last.
    """
    key = (name, form_of(data.cards, name), data.score_name)
    if data.cards.loc[name, "card"] not in (USE, RECALIBRATE) or key not in data.intervals.index:
        return None
    row = data.intervals.loc[key]
    over = min(_references(data, name, row), key=lambda way: side_of_zero(*row[way[1:]]))
    if side_of_zero(*row[over[1:]]) > 0:
        return None
    return tuple(map(float, row[over])), over == OVER_ALIVE_END


def behind_counting(data: ReportData, name: str) -> str:
    """Say that a predictor beats a constant and not counting steps; "" where it beats both."""
    if (behind := over_counting(data, name)) is None:
        return ""
    margin, at_end = behind
    return say("behind", {"name": name, "compared": _compared(margin, data, at_end)})


# -------------------------------------------------------------------- groups and stopping


def of_groups(data: ReportData, kind: str) -> str:
    """Say whether groups differ for the best predictor, its cards there, and what else to try."""
    assert data.by is not None
    best, table = ranked(data.cards)[0], data.by.loc[kind]
    cards = table.xs(best, level="predictor")
    p_values = table.groupby(level="predictor")["p_value"].first()
    others = [name for name in p_values.index[p_values < ERROR_RATE] if name != best]
    few = have_too_few_runs(cards)
    worse = ~few & (cards["recalibrated_high"] < 0) & (cards["p_value"] < ERROR_RATE)
    n_few = "all" if few.all() else int(few.sum())
    parts = [_groups_differ(best, data.by, kind)]
    if others:
        parts.append(say("others_differ", {"others": listed(others)}))
    if 2 * few.sum() > len(cards):
        parts.append(say("small_groups", {"n_few": n_few, "enough": FEWEST}))
    if worse.any():
        parts.append(say("misfits", {"misfits": listed(cards.index[worse])}))
    return "; ".join(parts) + "."


def _groups_differ(name: str, by: pd.DataFrame, kind: str) -> str:
    """Say whether groups differ for a predictor, and how many of them have which card."""
    cards = by.loc[kind].xs(name, level="predictor")
    p, counts = float(cards["p_value"].iloc[0]), cards["card"].value_counts()
    actions = ", ".join(f"{card} in {counts[card]}" for card in CARDS if card in counts)
    facts = {"differ": p < ERROR_RATE, "n": len(cards), "name": name, "p": p, "actions": actions}
    return say("groups", facts)


def of_stopping(data: ReportData) -> str:
    """Say what stopping failing runs early would do, by the predictor with which it does most."""
    table = data.monitoring
    assert table is not None
    own = table if table.empty else table.drop(list(REFERENCES), level=0, errors="ignore")
    own = own if own.empty else own.dropna(subset="power_before_end")
    if own.empty:
        return say("stopping", {"name": ""})
    levels = own.index.get_level_values("alpha").unique().sort_values()
    at_level = own.xs(levels[len(levels) // 2], level="alpha", drop_level=False)
    name, alpha = at_level["power_before_end"].idxmax()
    power, saved = own.loc[(name, alpha), ["power_before_end", "steps_saved"]]
    facts = {"name": name, "alpha": alpha, "power": power, "flags": power >= 0.005, "saved": saved}
    return say("stopping", facts)
