"""What each predictor is worth against the base rate and counting steps, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from trajscore.metrics._equal_length import FEWEST
from trajscore.report._cards import (
    AVOID,
    CARDS,
    ENDS,
    MATTERS,
    RECALIBRATE,
    TOO_FEW,
    USE,
    form_of,
    n_rarer,
    ranked,
    say_nothing,
)
from trajscore.report._data import (
    FORMS,
    GAIN,
    MARGIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    RAW,
    REFERENCES,
    SCALAR_METRICS,
    STEP_ERRORS,
    VALUE,
    ReportData,
)
from trajscore.report._equal_length import OVER_LENGTH
from trajscore.report.render.cells import digits_of, interval, with_interval

# A difference of two numbers that is smaller than this share of them is rounding.
_ROUNDING = 1e-12
_MOST_NAMED = 5
_FEW_NAMED = 2
KNOWING_THE_END = "where it is known which step is the last (end= or --end says whether it is)"


def verdicts(data: ReportData) -> list[str]:
    """Return a few sentences for each predictor, in the order of the table."""
    sentences = []
    for name in data.predictors:
        parts = [
            *_margins(data, name),
            *_over_counting(data, name),
            *_calibration(data, name),
            f"it {ranking(data, name)}",
            _of_equals(data, name),
        ]
        said = [f"{name}: {data.cards.loc[name, 'card']}; {'; '.join(parts)}."]
        said += [*_other_clip(data, name), *_without_unobserved(data, name)]
        sentences.append(" ".join(said))
    return sentences


def contradictions(data: ReportData) -> list[str]:
    """Say which metrics calibration moves against the leading score, and why they can."""
    found: dict[tuple[bool, str], list[str]] = {}
    scored = data.calibration_gain.index.get_level_values("metric") == data.score_name
    for name in data.calibration_gain.index[scored].get_level_values("predictor"):
        rows = data.calibration_gain.loc[name]
        told_apart = is_told_apart(*rows.loc[data.score_name, list(GAIN[1:])])
        if not told_apart:
            continue
        gain = rows["gain"].mask(rows["gain"].abs() <= _ROUNDING * rows["raw"].abs(), 0)
        helps = told_apart > 0
        for metrics, why in (
            (STEP_ERRORS, "one map serves early and late steps alike"),
            (SCALAR_METRICS, _why_collapsed(data.options.phi)),
        ):
            moved = gain[gain.index.isin(list(metrics))]
            against = moved[(moved < 0) if helps else (moved > 0)].index
            if len(against):
                found.setdefault((helps, why), []).append(f"{_listed(against)} ({name})")
    return [
        f"calibration makes {data.score_name} {'better' if helps else 'worse'}, yet "
        f"{'; '.join(those)} look {'worse' if helps else 'better'}: {why}"
        for (helps, why), those in found.items()
    ]


def is_told_apart(low: float, high: float) -> int:
    """Tell on which side of zero an interval lies: 1 above, -1 below, 0 on both."""
    return int(low > 0) - int(high < 0)


def _why_collapsed(phi: str) -> str:
    if phi in ("mean", "weighted"):
        why = "the mean of a run's calibrated forecasts lies too near the base rate"
    else:
        why = f"the {phi} forecast of a run is not what was calibrated, which is all of them"
    return f"these judge one number a run, and {why}"


# -------------------------------------------------------------------- cards


def answer(data: ReportData) -> str:
    """Say which predictor to use."""
    actions = data.cards["card"]
    useful = [name for name in ranked(data.cards) if actions[name] in (USE, RECALIBRATE)]
    if useful:
        how = "as it is" if actions[useful[0]] == USE else "recalibrated"
        return f"Use {useful[0]}, {how}{_best_of(data, useful)}."
    if (actions == AVOID).all():
        return (
            f"None: no predictor beats a constant forecast of the base rate by as much as matters, "
            f"{MATTERS:.0%} of its loss."
        )
    needed = int(data.cards.loc[actions == TOO_FEW, "n_needed"].min())
    return f"Not known yet: about {needed:,} more runs would settle this."


def _best_of(data: ReportData, useful: list[str]) -> str:
    """Say that others beat the base rate too, and which of them may be as good."""
    best, *others = useful
    if not others:
        return ""
    alike = [name for name in others if data.cards.loc[name, "tied"]]
    if not (alike and data.cards.loc[best, "tied"]):
        return f", the best of {len(useful)} that beat the base rate"
    some = _listed(alike) if len(alike) <= _FEW_NAMED else f"{len(alike)} others"
    return f". Statistically tied with {some}, or better by less than matters: take the cheapest"


def of_groups(data: ReportData, kind: str) -> str:
    """Say which cards the best predictor gets within groups, and what else to try."""
    assert data.by is not None
    best = ranked(data.cards)[0]
    cards = data.by.loc[kind].xs(best, level="predictor")
    counts = cards["card"].value_counts()
    found = [f"{card} in {counts[card]}" for card in CARDS if card in counts]
    parts = [f"{best}: {', '.join(found)} of {len(cards)} groups"]
    few = say_nothing(cards)
    if 2 * (n_few := int(few.sum())) > len(cards):
        parts.append(
            f"{'all' if few.all() else n_few} have fewer than {FEWEST} runs of an outcome, which "
            f"say nothing: group by what has fewer values, such as a model or a kind of task"
        )
    if len(misfits := cards.index[~few & (cards["recalibrated_high"] < 0)]):
        parts.append(
            f"one map is fitted to all runs, and is worse than the base rate of "
            f"{_listed(misfits[:_MOST_NAMED])}{' and others' * (len(misfits) > _MOST_NAMED)}: "
            f"report such runs alone, with a map of their own"
        )
    return "; ".join(parts) + "."


def card_reason(card: pd.Series, data: ReportData) -> str:
    """Say by what a card was decided, with the intervals that decided it."""
    reasons = {USE: _why_use, RECALIBRATE: _why_recalibrate, AVOID: _why_avoid, TOO_FEW: _why_few}
    return reasons[card["card"]](card, data)


def _why_use(card: pd.Series, data: ReportData) -> str:
    said = f"{_size(card, 'as_given', data)} better than the base rate"
    if pd.isna(card["gain"]):
        return f"{said}; recalibration was not tried"
    if card["gain_high"] < card["matters"]:
        return f"{said}; recalibrating it gains no more than {_most(card['gain_high'], data)}"
    if card["gain"] < card["matters"]:
        return (
            f"{said}; recalibrating it gains {_size(card, 'gain', data)}, and less than "
            f"{_most(card['matters'], data)} does not matter"
        )
    return f"{said}; recalibrating it may gain something; too few runs to tell"


def _why_recalibrate(card: pd.Series, data: ReportData) -> str:
    said = f"recalibrated, {_size(card, 'recalibrated', data)} better than the base rate"
    if pd.isna(card["as_given"]):
        return f"{said}; as given it is not a probability"
    if card["as_given_high"] < 0:
        return f"{said}; as given it is worse, by {_size(card, 'as_given', data, sign=-1)}"
    if card["gain_low"] > 0:
        return f"{said}; that gains {_size(card, 'gain', data)} over the values as given"
    if card["gain_high"] < card["matters"]:
        return f"{said}; as given it is not shown to be better"
    return f"{said}; recalibration may be unnecessary; too few runs to tell"


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
    more = f"about {card['n_needed']:,} more runs would settle this"
    if (rarer := n_rarer(card)) < FEWEST:
        outcome = "failed" if card["success_rate"] > 0.5 else "succeeded"
        return (
            f"only {rarer:.0f} of {card['n_runs']} runs {outcome}; at least {FEWEST} are needed to "
            f"draw a conclusion; {more}"
        )
    form = "as_given" if pd.isna(card["recalibrated"]) else "recalibrated"
    if pd.isna(card[form]):
        return more
    how = "recalibrated" if form == "recalibrated" else "as given"
    low, high = (f"{card[f'{form}{end}']:+.{_digits(data)}f}" for end in ENDS[1:])
    said = f"{how}, anywhere from {low} to {high}"
    worse = "as given it is worse than the base rate; " * bool(card["as_given_high"] < 0)
    return f"{worse}{said} over the base rate; {more}"


def _size(card: pd.Series, name: str, data: ReportData, sign: int = 1) -> str:
    low, high = sorted(sign * card[f"{name}{end}"] for end in ENDS[1:])
    return f"{_most(sign * card[name], data)} {interval(low, high, _digits(data))}"


def _most(value: float, data: ReportData) -> str:
    return f"{max(value, 0):.{_digits(data)}f}{data.options.unit}"


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
    margins = data.intervals.xs(data.score_name, level="metric")
    parts = []
    for form, words in FORMS.items():
        if (name, form) in margins.index:
            parts.append(f"{words} {_over_base_rate(margins.loc[(name, form)], data)}")
        elif form == RAW:
            parts.append("as given it is not a probability")
    return parts


def _over_base_rate(row: pd.Series, data: ReportData) -> str:
    margin, low, high = (row[name] for name in MARGIN)
    if max(abs(margin), abs(low), abs(high)) <= _ROUNDING * abs(row["value"]):
        return "the same as the base rate"
    size, span = _most(abs(margin), data), interval(low, high, _digits(data), "+")
    return {
        1: f"{size} better than the base rate {span}",
        -1: f"{size} worse than the base rate {span}",
        0: f"not told apart from the base rate {span}",
    }[is_told_apart(low, high)]


def _calibration(data: ReportData, name: str) -> list[str]:
    """Say how far the forecasts of steps are from what happens."""
    parts = []
    for form, words in FORMS.items():
        if (name, form, "S-ECE") in data.intervals.index:
            error = data.intervals.loc[(name, form, "S-ECE"), list(VALUE)]
            parts.append(f"{with_interval(error)} {words}")
    return [f"its forecasts at a step are off by {', '.join(parts)} (S-ECE)"] if parts else []


def ranking(data: ReportData, name: str, *, brief: bool = False) -> str:
    """Hold the ranking against that by counting steps; brief, without numbers."""
    row = data.intervals.loc[(name, RAW, "AUROC")]
    parts = []
    for over in _references(data, name, row):
        numbers = "" if brief else f" (AUROC {with_interval(row[list(over)], sign='+')})"
        parts.append(f"{_than_counting(row, over)}{numbers}")
    return _with_the_end(parts)


def _with_the_end(parts: list[str]) -> str:
    """Join what is said of one or both ways of counting steps."""
    first, *other = parts
    return first + "".join(f", and {one} {KNOWING_THE_END}" for one in other)


def _of_equals(data: ReportData, name: str) -> str:
    """Say whether length alone makes the ranking."""
    row = data.equal_length.loc[(name, RAW)]
    if pd.isna(row["AUROC"]):
        return "too few runs are as long as one with another outcome to compare equally long ones"
    over = with_interval(row[list(OVER_LENGTH)], sign="+")
    what = {
        1: "ranks better than length does",
        -1: "ranks worse than length does",
        0: "is not shown to rank better than length does",
    }[is_told_apart(*row[list(OVER_LENGTH[1:])])]
    return f"among runs of equal length it {what} (AUROC {row['AUROC']:.3f}, {over})"


def _than_counting(row: pd.Series, over: Sequence[str]) -> str:
    """Say whether a signal is shown to rank better than counting steps does."""
    return {
        1: "ranks better than counting steps does",
        -1: "ranks worse than counting steps does",
        0: "is not shown to rank better than counting steps does",
    }[is_told_apart(*row[list(over[1:])])]


def _references(data: ReportData, name: str, row: pd.Series) -> list[tuple[str, ...]]:
    """Return the ways of counting steps that a row of intervals is held against.

    That with the knowledge that the predictor has; where it is not said, both if they tell another
    side.
    """
    knows = data.facts.knows_end.get(name)
    if knows is not None:
        return [OVER_ALIVE_END if knows else OVER_ALIVE]
    sides = [is_told_apart(*row[list(over[1:])]) for over in (OVER_ALIVE, OVER_ALIVE_END)]
    return [OVER_ALIVE] if sides[0] == sides[1] else [OVER_ALIVE, OVER_ALIVE_END]


def _over_counting(data: ReportData, name: str) -> list[str]:
    """Hold the leading score of the form that is acted on against that of counting steps."""
    form = form_of(data.cards, name)
    key = (name, form, data.score_name)
    if key not in data.intervals.index:
        return []
    row = data.intervals.loc[key]
    parts = []
    for over in _references(data, name, row):
        margin, low, high = (row[one] for one in over)
        size, span = _most(abs(margin), data), interval(low, high, _digits(data), "+")
        parts.append(
            {
                1: f"{size} better than counting steps {span}",
                -1: f"{size} worse than counting steps {span}",
                0: f"not distinguishable from counting steps {span}",
            }[is_told_apart(low, high)]
        )
    return [f"{FORMS[form]} {_with_the_end(parts)}"]


def _other_clip(data: ReportData, name: str) -> list[str]:
    """Say where the clip of the log score decides on which side of the base rate a form lies."""
    if not data.options.is_log:
        return []
    said = []
    for form, words in FORMS.items():
        if (name, form) in data.sensitivity.index:
            small, large = data.sensitivity.loc[(name, form), ["clip_1e-6", "clip_1e-2"]]
            if small * large < 0 and abs(small) > _ROUNDING:
                said.append(
                    f"The clip of the log score decides: {words} the margin is {small:+.3f} with "
                    f"a clip of 1e-6 and {large:+.3f} with 1e-2."
                )
    return said


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
            low, high = data.intervals.loc[(name, form, data.score_name), list(MARGIN[1:])]
            flips = ", the other sign" if is_told_apart(low, high) * other < 0 else ""
            digits = _digits(data)
            parts.append(f"{other:+.{digits}f} {words} (by {other - margin:+.{digits}f}{flips})")
    runs = f"{data.facts.n_censored} unobserved run{'s' * (data.facts.n_censored > 1)}"
    return [f"Without the {runs} these margins would be {', '.join(parts)}."] if parts else []


def _digits(data: ReportData) -> int:
    return digits_of(data.score_name)


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
