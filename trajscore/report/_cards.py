"""What to do with a predictor: use it as it is, recalibrate it, do not use it, or get more runs.

A card is a statement with an error rate. It is decided by intervals of the leading score's means,
paired by run, at a level that is shared out over all cards of a table (Bonferroni), so that at most
5% of all tables hold a wrong one: benchmarks/cards.py counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaincinv

from trajscore.core.parallel import Work
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.inference._bootstrap import bootstrap_units
from trajscore.inference._choice import by_bootstrap, by_influence
from trajscore.inference._sample_size import runs_needed
from trajscore.inference._units import Units, any_units
from trajscore.metrics._equal_length import FEWEST
from trajscore.metrics._tps import run_sums
from trajscore.report._data import CALIBRATED, RAW, REFERENCES, IntervalOptions, Options
from trajscore.report._rows import Row, base_rate

USE, RECALIBRATE, AVOID, TOO_FEW = CARDS = (
    "use as it is",
    "recalibrate",
    "do not use",
    "too few runs",
)
MATTERS = 0.02
"""Share of the base rate's own loss below which a difference of scores does not matter."""

# Expected number with which a Poisson number is at least FEWEST with a chance of 0.8.
_WANTED = float(gammaincinv(FEWEST, 0.8))
# Differences below this share of a score are rounding errors of zero.
_ROUNDING = 1e-9
_MOST_DRAWS = 4000

MARGINS = {RAW: "as_given", CALIBRATED: "recalibrated"}
GAINED = "gain"
ENDS = ("", "_low", "_high")
"""What the columns of an estimate and its interval end in."""


@dataclass(frozen=True)
class Evidence:
    """Intervals of what a predictor is worth over the base rate, and of what recalibration gains.

    Each is (estimate, low, high), or None where there is no such form.
    """

    as_given: tuple[float, float, float] | None
    recalibrated: tuple[float, float, float] | None
    gain: tuple[float, float, float] | None
    matters: float  # the smallest difference that does
    n_rarer: float  # runs of the rarer outcome


def decide(found: Evidence) -> str:
    """Choose the card.

    Do not use: neither form is better than the base rate by anything that matters. Use as it is:
    better than the base rate, and recalibration is shown to gain nothing that matters. Recalibrate:
    better than the base rate once recalibrated. Too few runs: none of these is shown.
    """
    forms = [form for form in (found.as_given, found.recalibrated) if form]
    given, made, gain = found.as_given, found.recalibrated, found.gain
    if found.n_rarer < FEWEST or not forms:
        return TOO_FEW
    if all(form[2] < found.matters for form in forms):
        return AVOID
    # where recalibration was not asked for, nothing is said of what it would gain
    if given and given[1] > 0 and (gain is None or gain[2] < found.matters):
        return USE
    if made and made[1] > 0:
        return RECALIBRATE
    return TOO_FEW


# -------------------------------------------------------------------- from rows to cards


def card_table(
    rows: list[Row], options: Options, draws: IntervalOptions, work: Work, n_tables: int = 1
) -> pd.DataFrame:
    """Return the card of each predictor, and what it was decided by.

    The error rate is shared out over all predictors, and over as many tables.
    """
    forms: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.predictor not in REFERENCES:
            forms.setdefault(row.predictor, {})[row.form] = row
    shared = 1 - (1 - draws.confidence_level) / (len(forms) * n_tables)
    level = replace(draws, confidence_level=shared)
    cards = work.share(lambda one: _card(one, options, level), list(forms.values()))
    return pd.DataFrame(list(cards), index=list(forms)).rename_axis("predictor")


def say_nothing(cards: pd.DataFrame) -> pd.Series:
    """Tell cards of so few runs of an outcome that no interval is believed."""
    return n_rarer(cards) < FEWEST


def n_rarer(cards: Any) -> Any:
    """Return the runs of the rarer outcome, of cards or of one."""
    rate = cards["success_rate"]
    return np.minimum(rate, 1 - rate) * cards["n_runs"]


def _card(forms: dict[str, Row], options: Options, draws: IntervalOptions) -> dict[str, object]:
    """Decide about one predictor, at the level of `draws`."""
    runs = forms[RAW].runs
    n, n_success = len(runs), float(runs.labels.sum())
    differences, matters = _differences(forms, options)
    ends = _intervals(differences, any_units(runs.groups, n), draws) if n > 1 else {}
    rarer = min(n_success, n - n_success)
    found = Evidence(
        as_given=ends.get(MARGINS[RAW]),
        recalibrated=ends.get(MARGINS[CALIBRATED]),
        gain=ends.get(GAINED),
        matters=matters,
        n_rarer=rarer,
    )
    card = decide(found)
    row: dict[str, object] = {"card": card, "n_runs": n, "success_rate": n_success / max(n, 1)}
    row["n_needed"] = (
        _n_needed(found, differences, runs.groups, 1 - draws.confidence_level)
        if card == TOO_FEW
        else 0
    )
    for name in (*MARGINS.values(), GAINED):
        three = ends.get(name, (np.nan,) * 3)
        row |= {f"{name}{end}": value for end, value in zip(ENDS, three, strict=True)}
    return row | {"matters": matters, "confidence_level": draws.confidence_level}


def _differences(forms: dict[str, Row], options: Options) -> tuple[dict[str, FloatArray], float]:
    """Return each run's differences of the leading score, and the smallest that matters."""
    score, weights, runs = options.scores[0], options.weights, forms[RAW].runs
    if not len(runs):
        return {}, 0.0
    constant = base_rate(forms[RAW].traces, runs, weights)
    reference = run_sums(runs.labels, constant.traces, score, weights)
    scores = {
        form: run_sums(runs.labels, row.traces, score, weights)
        for form, row in forms.items()
        if row.is_probability
    }
    sums = {MARGINS[form]: own - reference for form, own in scores.items()}
    if len(scores) == 2:
        sums[GAINED] = scores[CALIBRATED] - scores[RAW]
    largest = np.abs(reference.total).max()
    for own in sums.values():  # a constant is not better than the same one by a rounding error
        own.total[np.abs(own.total) <= _ROUNDING * largest] = 0.0
    found = {name: own.samples() for name, own in sums.items()}
    return found, MATTERS * abs(reference.mean(np.ones(len(runs))))


def _intervals(
    differences: dict[str, FloatArray], units: Units, draws: IntervalOptions
) -> dict[str, tuple[float, float, float]]:
    """Return mean and interval of each difference: by influences where these hold, or bootstrap."""
    if not differences or units.n_units < 2:
        return {}
    values = np.stack(list(differences.values()), axis=1)
    mean, level = values.mean(axis=0), draws.confidence_level
    made = by_influence(mean, values - mean, units, level)
    low, high = made.low, made.high
    if not made.holds.all():
        sums, sizes = units.sums(values), units.sizes(len(values))
        drawn = bootstrap_units(
            lambda counts: counts @ sums / (counts @ sizes)[:, None],
            units,
            # a tail of the level has to hold some replicates
            n_resamples=max(draws.n_resamples, min(_MOST_DRAWS, math.ceil(40 / (1 - level)))),
            random_state=draws.random_state,
        )
        expanded = units.expanded_level(len(values), level)
        ends = by_bootstrap(drawn, mean, made.skewness, expanded)
        # never shorter than by influences: few runs hide what is rare
        low = np.where(made.holds, low, np.minimum(low, ends[0]))
        high = np.where(made.holds, high, np.maximum(high, ends[1]))
    return {
        name: (float(mean[k]), float(low[k]), float(high[k])) for k, name in enumerate(differences)
    }


def _n_needed(
    found: Evidence,
    differences: dict[str, FloatArray],
    groups: IntArray | None,
    alpha: float,
) -> int:
    """Return about how many more runs it takes, if the better form is worth its estimate."""
    n = len(next(iter(differences.values()), ()))
    least = _WANTED * (n + 1) / (found.n_rarer + 0.5)
    forms = zip(MARGINS.values(), (found.as_given, found.recalibrated), strict=True)
    margin, best = max(((three[0], name) for name, three in forms if three), default=(0.0, ""))
    values = differences[best] if best else np.zeros(1)
    if np.ptp(values) > _ROUNDING * np.abs(values).max():
        # either that it is above zero is to be seen, or that it is below what matters
        size = max(margin, found.matters - margin)
        several = groups is not None and len(np.unique(groups)) < len(groups)
        of_tasks = groups if several else None
        least = max(least, runs_needed(size, values, groups=of_tasks, alpha=alpha))
    more = max(math.ceil(least) - n, math.ceil(n / 10))
    unit: int = 10 ** max(0, len(str(more)) - 2)  # a guess: two digits of it
    return -(-more // unit) * unit


# -------------------------------------------------------------------- pairs


def pair_table(
    rows: list[Row], cards: pd.DataFrame, options: Options, draws: IntervalOptions
) -> pd.DataFrame | None:
    """Return what each predictor's leading score is above that of each other one, best form each.

    The level is shared out over all pairs. None where predictors are judged on different runs.
    """
    by_key = {row.key: row for row in rows}
    chosen = [by_key[name, form_of(cards, name)] for name in ranked(cards)]
    chosen = [row for row in chosen if row.is_probability]
    if len({id(row.runs) for row in chosen}) != 1:
        return None
    runs, names = chosen[0].runs, [row.predictor for row in chosen]
    score, weights = options.scores[0], options.weights
    scores = [run_sums(runs.labels, row.traces, score, weights) for row in chosen]
    n_pairs = max(1, len(chosen) * (len(chosen) - 1) // 2)
    level = replace(draws, confidence_level=1 - (1 - draws.confidence_level) / n_pairs)
    units = any_units(runs.groups, len(runs))
    table = []
    for place, name in enumerate(names[:-1]):
        others = {
            other: (scores[place] - one).samples() for other, one in zip(names, scores, strict=True)
        }
        ends = _intervals({other: others[other] for other in names[place + 1 :]}, units, level)
        table += [(name, other, *three) for other, three in ends.items()]
    return pd.DataFrame(table, columns=["predictor", "reference", "difference", "low", "high"])


# -------------------------------------------------------------------- reading cards


def form_of(cards: pd.DataFrame, name: str) -> str:
    """Return the form that a card speaks for: recalibrated if there is one, unless as it is."""
    card = cards.loc[name]
    return RAW if card["card"] == USE or pd.isna(card["recalibrated"]) else CALIBRATED


def ranked(cards: pd.DataFrame) -> list[str]:
    """Return the predictors, best first: by what to do, then by margin over the base rate."""
    order = {USE: 0, RECALIBRATE: 0, TOO_FEW: 1, AVOID: 2}

    def place(name: str) -> tuple[int, float]:
        margin = cards.loc[name, MARGINS[form_of(cards, name)]]
        return order[cards.loc[name, "card"]], math.inf if pd.isna(margin) else -margin

    return sorted(cards.index, key=place)
