"""What each predictor is worth against the base rate and counting steps, in a few sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from trajscore.core.equal_length import FEWEST
from trajscore.core.score_families import digits_of
from trajscore.core.ties import ROUNDING
from trajscore.report._cards import (
    AVOID,
    CARDS,
    RECALIBRATE,
    TOO_FEW,
    USE,
    form_of,
    forms_of,
    have_too_few_runs,
    margin_of,
    n_rarer,
    ranked,
    varies,
)
from trajscore.report._data import (
    AS_GIVEN,
    FORMS,
    OVER_ALIVE,
    OVER_ALIVE_END,
    REFERENCES,
    VALUE,
    ReportData,
    columns_of,
)
from trajscore.report._disclosures import without_variation
from trajscore.report._equal_length import OVER_LENGTH
from trajscore.report._groups import ERROR_RATE
from trajscore.report._numbers import digits_that_show, fixed, interval, with_interval

_MOST_NAMED = 5
KNOWING_THE_END = "where it is known which step is the last (end= or --end says whether it is)"


def verdicts(data: ReportData) -> list[str]:
    """Return a few sentences for each predictor, in the order of the table."""
    sentences = []
    for name in data.predictors:
        card = data.cards.loc[name]
        if not varies(card):
            sentences.append(f"{name}: {card['card']}; it {card_reason(card, data)}.")
            continue
        parts = [
            *_margins(data, name),
            *_over_counting(data, name),
            *_calibration(data, name),
            f"it {ranking(data, name)}",
            *_of_equals(data, name),
        ]
        texts = [f"{name}: {card['card']}; {'; '.join(parts)}."]
        texts += [*_other_clip(data, name), *_without_unobserved(data, name), *_by(data, name)]
        sentences.append(" ".join(texts))
    return sentences


def side_of_zero(low: float, high: float) -> int:
    """Return on which side of zero an interval lies: 1 above, -1 below, 0 on both."""
    return int(low > 0) - int(high < 0)


# -------------------------------------------------------------------- cards


def of_groups(data: ReportData, kind: str) -> str:
    """Say whether groups differ for the best predictor, its cards there, and what else to try."""
    assert data.by is not None
    best = ranked(data.cards)[0]
    table = data.by.loc[kind]
    cards = table.xs(best, level="predictor")
    p_values = table.groupby(level="predictor")["p_value"].first()
    parts = [_difference_of_groups(best, cards)]
    if others := [name for name in p_values.index[p_values < ERROR_RATE] if name != best]:
        parts.append(f"they differ in how well {listed(others[:_MOST_NAMED])} works")
    few = have_too_few_runs(cards)
    if 2 * (n_few := int(few.sum())) > len(cards):
        parts.append(
            f"{'all' if few.all() else n_few} have fewer than {FEWEST} runs of an outcome, which "
            f"say nothing: group by what has fewer values, such as a model or a kind of task"
        )
    worse = ~few & (cards["recalibrated_high"] < 0) & (cards["p_value"] < ERROR_RATE)
    if len(misfits := cards.index[worse]):
        parts.append(
            f"recalibrated by one map for all runs, it is worse than the base rate in "
            f"{listed(misfits[:_MOST_NAMED])}{' and others' * (len(misfits) > _MOST_NAMED)}: "
            f"report these runs alone, where it may need another map or point the other way"
        )
    return "; ".join(parts) + "."


def _difference_of_groups(name: str, cards: pd.DataFrame) -> str:
    """Say whether groups differ for a predictor, and how many of them have which card."""
    n, p = len(cards), cards["p_value"].iloc[0]
    if not p < ERROR_RATE:
        return (
            f"the {n} groups are not shown to differ in how well {name} works (p = {p:.2g}): read "
            f"the result of all runs"
        )
    counts = cards["card"].value_counts()
    actions = ", ".join(f"{card} in {counts[card]}" for card in CARDS if card in counts)
    return f"how well {name} works differs between groups (p = {p:.2g}): {actions} of {n} groups"


def card_reason(card: pd.Series, data: ReportData) -> str:
    """Say by what a card was decided, with the intervals that decided it."""
    if not varies(card):
        return without_variation(card["only_value"])
    reasons = {USE: _why_use, RECALIBRATE: _why_recalibrate, AVOID: _why_avoid, TOO_FEW: _why_few}
    return reasons[card["card"]](card, data)


def _why_use(card: pd.Series, data: ReportData) -> str:
    text = f"{_size(card, 'as_given', data)} better than the base rate"
    if pd.isna(card["gain"]):
        return f"{text}; recalibration was not tried"
    if card["gain_high"] < card["matters"]:
        return f"{text}; recalibrating it gains no more than {_most(card['gain_high'], data)}"
    if card["gain"] < card["matters"]:
        return (
            f"{text}; recalibrating it gains {_size(card, 'gain', data)}, less than the "
            f"{_most(card['matters'], data)} that matter"
        )
    return f"{text}; recalibrating it may gain something; too few runs to tell"


def _why_recalibrate(card: pd.Series, data: ReportData) -> str:
    text = f"recalibrated, {_size(card, 'recalibrated', data)} better than the base rate"
    if pd.isna(card["as_given"]):
        return f"{text}; as given it is not a probability"
    if card["as_given_high"] < 0:
        return f"{text}; as given it is worse, by {_size(card, 'as_given', data, sign=-1)}"
    if card["gain_low"] > 0:
        return f"{text}; that gains {_size(card, 'gain', data)} over the values as given"
    if card["gain_high"] < card["matters"]:
        return f"{text}; as given it is not shown to be better"
    return f"{text}; recalibration may be unnecessary; too few runs to tell"


def _why_avoid(card: pd.Series, data: ReportData) -> str:
    highest = float(np.nanmax(card[["as_given_high", "recalibrated_high", "signal_high"]]))
    how = "as given" if pd.isna(card["recalibrated"]) else "recalibrated or not"
    if pd.isna(card["as_given"]):
        how = "even recalibrated"
    if highest <= 0:
        return f"{how}, no better than the base rate"
    return (
        f"{how}, better than the base rate by no more than {_most(highest, data)}; less than "
        f"{_most(card['matters'], data)} does not matter"
    )


def _why_few(card: pd.Series, data: ReportData) -> str:
    needed = f"about {card['n_needed']:,} more runs"
    more = f"{needed} would settle this"
    if (rarer := n_rarer(card)) < FEWEST:
        outcome = "failed" if card["success_rate"] > 0.5 else "succeeded"
        return (
            f"only {rarer:.0f} of {card['n_runs']:,} runs {outcome}; at least {FEWEST} successes "
            f"and {FEWEST} failures are needed to draw a conclusion: collect at least {needed}"
        )
    form = "as_given" if pd.isna(card["recalibrated"]) else "recalibrated"
    if pd.isna(card[form]):
        return more
    how = FORMS[form]
    worse = "as given it is worse than the base rate; " * bool(card["as_given_high"] < 0)
    low, high = (fixed(card[end], _digits(data), "+") for end in columns_of(form)[1:])
    return f"{worse}{how}, anywhere from {low} to {high} over the base rate; {more}"


def _size(card: pd.Series, name: str, data: ReportData, sign: int = 1) -> str:
    low, high = sorted(sign * card[end] for end in columns_of(name)[1:])
    digits = digits_that_show(card[name], _digits(data))
    return f"{_most(sign * card[name], data)} {interval(low, high, digits)}"


def _most(value: float, data: ReportData) -> str:
    return f"{fixed(max(value, 0), digits_that_show(value, _digits(data)))}{data.options.unit}"


def of_stopping(data: ReportData) -> str:
    """Say what stopping failing runs early would do, by the predictor with which it does most."""
    assert data.monitoring is not None
    table = data.monitoring
    own = table if table.empty else table.drop(list(REFERENCES), level=0, errors="ignore")
    if not own.empty:
        own = own.dropna(subset="power_before_end")
    if own.empty:
        return "These runs are too few, or too alike, to fit a rule on some and judge it on others."
    levels = own.index.get_level_values("alpha").unique().sort_values()
    at_level = own.xs(levels[len(levels) // 2], level="alpha", drop_level=False)
    (name, alpha) = at_level["power_before_end"].idxmax()
    row = own.loc[(name, alpha)]
    if row["power_before_end"] < 0.005:
        return (
            f"With at most {alpha:.0%} of the good runs flagged, no predictor flags a failing run "
            f"before its last step."
        )
    return (
        f"On {name}, with at most {alpha:.0%} of the good runs flagged, "
        f"{row['power_before_end']:.0%} of the failing runs are flagged before their last step, "
        f"which saves {row['steps_saved']:.0%} of their steps."
    )


# -------------------------------------------------------------------- parts of a verdict


def _margins(data: ReportData, name: str) -> list[str]:
    """Hold the leading score of each form against the base rate."""
    parts = []
    for form, words in FORMS.items():
        if form in forms_of(data, name):
            compared = _compared(margin_of(data, name, form), "the base rate", data)
            parts.append(f"{words} {compared}")
        elif form == AS_GIVEN:
            parts.append("as given it is not a probability")
    return parts


def _compared(three: Iterable[float], reference: str, data: ReportData) -> str:
    """Say on which side of a reference a score lies, and by how much."""
    margin, low, high = three
    side, digits = side_of_zero(low, high), _digits(data)
    span = interval(low, high, digits_that_show(margin, digits) if side else digits, "+")
    return {
        1: f"{_most(abs(margin), data)} better than {reference} {span}",
        -1: f"{_most(abs(margin), data)} worse than {reference} {span}",
        0: f"not distinguishable from {reference} {span}",
    }[side]


def _calibration(data: ReportData, name: str) -> list[str]:
    """Say how far the forecasts of steps are from what happens."""
    parts = []
    for form, words in FORMS.items():
        if (name, form, "S-ECE") in data.intervals.index:
            error = data.intervals.loc[(name, form, "S-ECE"), VALUE]
            parts.append(f"{with_interval(error)} {words}")
    return [f"its forecasts at a step are off by {', '.join(parts)} (S-ECE)"] if parts else []


def ranking(data: ReportData, name: str, *, brief: bool = False) -> str:
    """Hold the ranking against that by counting steps; brief, without numbers."""
    row = data.intervals.loc[(name, AS_GIVEN, "AUROC")]
    parts = []
    for over in _references(data, name, row):
        numbers = "" if brief else f" (AUROC {with_interval(row[over], sign='+')})"
        parts.append(_ranks(row, over, "counting steps does") + numbers)
    return _with_the_end(parts)


def _with_the_end(parts: list[str]) -> str:
    """Join what is said of one or both ways of counting steps."""
    first, *other = parts
    return first + "".join(f", and {part} {KNOWING_THE_END}" for part in other)


def _of_equals(data: ReportData, name: str) -> list[str]:
    """Say whether it ranks runs that a count of steps cannot rank, as they are equally long."""
    row = data.equal_length.loc[(name, AS_GIVEN)]
    if pd.isna(row["AUROC"]):
        return ["too few runs are as long as one with another outcome to compare equally long ones"]
    over = with_interval(row[OVER_LENGTH], sign="+")
    # beyond 10 steps lengths of a pair may differ by a tenth, and may rank it
    exact = math.isclose(row["AUROC"] - row[OVER_LENGTH[0]], 0.5, abs_tol=ROUNDING)
    chance = "chance" if exact else "the small differences in length that are left"
    ranks = f"it {_ranks(row, OVER_LENGTH, chance)} (AUROC {row['AUROC']:.3f}, {over})"
    return [f"among runs of equal length, which counting steps cannot rank, {ranks}"]


def _ranks(row: pd.Series, over: list[str], reference: str) -> str:
    """Say whether a signal is shown to rank better than something else."""
    side = side_of_zero(*row[over[1:]])
    how = {1: "ranks better", -1: "ranks worse", 0: "is not shown to rank better"}[side]
    return f"{how} than {reference}"


def _references(data: ReportData, name: str, row: pd.Series) -> list[list[str]]:
    """Return the ways of counting steps to compare with, by what the predictor knows."""
    knows = data.facts.knows_end.get(name)
    if knows is not None:
        return [OVER_ALIVE_END if knows else OVER_ALIVE]
    sides = [side_of_zero(*row[over[1:]]) for over in (OVER_ALIVE, OVER_ALIVE_END)]
    return [OVER_ALIVE] if sides[0] == sides[1] else [OVER_ALIVE, OVER_ALIVE_END]


def _over_counting(data: ReportData, name: str) -> list[str]:
    """Hold the leading score of the form that is acted on against that of counting steps."""
    form = form_of(data.cards, name)
    key = (name, form, data.score_name)
    if key not in data.intervals.index:
        return []
    row = data.intervals.loc[key]
    ways = _references(data, name, row)
    parts = [_compared(row[over], "counting steps", data) for over in ways]
    return [f"{FORMS[form]} {_with_the_end(parts)}"]


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
    behind = over_counting(data, name)
    if behind is None:
        return ""
    reference = "counting steps" + " where the last step is known" * behind[1]
    return f"{name} beats a constant, but is {_compared(behind[0], reference, data)}."


def _other_clip(data: ReportData, name: str) -> list[str]:
    """Say where the clip of the log score decides on which side of the base rate a form lies."""
    if "clip_1e-6" not in data.sensitivity:
        return []
    sentences = []
    for form, words in FORMS.items():
        if (name, form) in data.sensitivity.index:
            small, large = data.sensitivity.loc[(name, form), ["clip_1e-6", "clip_1e-2"]]
            if small * large < 0 and abs(small) > ROUNDING:
                sentences.append(
                    f"The clip of the log score decides: {words} the margin is {small:+.3f} with "
                    f"a clip of 1e-6 and {large:+.3f} with 1e-2."
                )
    return sentences


def _without_unobserved(data: ReportData, name: str) -> list[str]:
    """Say what dropping the runs without an outcome would make of the margins."""
    if "observed_only" not in data.sensitivity:
        return []
    parts = []
    for form, words in FORMS.items():
        if (name, form) in data.sensitivity.index:
            margin, other = data.sensitivity.loc[(name, form), ["margin", "observed_only"]]
            if pd.isna(other):  # the observed runs are too few to calibrate on
                continue
            _, low, high = margin_of(data, name, form)
            flips = ", the other sign" if side_of_zero(low, high) * other < 0 else ""
            digits = _digits(data)
            parts.append(f"{other:+.{digits}f} {words} (by {other - margin:+.{digits}f}{flips})")
    runs = f"{data.facts.n_censored:,} unobserved run{'s' * (data.facts.n_censored > 1)}"
    return [f"Without the {runs} these margins would be {', '.join(parts)}."] if parts else []


def _by(data: ReportData, name: str) -> list[str]:
    """Say of each kind of groups whether they differ for a predictor."""
    if data.by is None:
        return []
    own = data.by.xs(name, level="predictor")
    kinds = own.index.unique("by")
    return [f"By {kind}, {_difference_of_groups(name, own.loc[kind])}." for kind in kinds]


def _digits(data: ReportData) -> int:
    return digits_of(data.score_name)


def listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
