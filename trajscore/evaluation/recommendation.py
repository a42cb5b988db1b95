"""What to do with a predictor: use it as it is, recalibrate it, do not use it, or find out more.

A card is a statement with an error rate. It is decided by intervals of the leading score's means,
paired by run, at a level that is shared out over all cards of a table (Bonferroni), so that at most
5% of all tables hold a wrong one: benchmarks/cards.py counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import gammaincinv, logit, ndtr, ndtri

from trajscore.core.policy import (
    MATERIAL_SHARE,
    MIN_ASSURANCE,
    MIN_RUNS_FOR_DIFFERENCE,
    MIN_RUNS_PER_OUTCOME,
)
from trajscore.core.score_families import get_family
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.weights import StepWeights
from trajscore.evaluation.options import (
    AS_GIVEN,
    FORMS,
    RECALIBRATED,
    EvaluationOptions,
    Options,
    columns_of,
)
from trajscore.evaluation.rows import Row, Rows
from trajscore.inference._sample_size import ONE_DIGIT
from trajscore.inference.influence import Spread
from trajscore.inference.mean_intervals import (
    intervals_of_means,
    n_of_rarer_outcome,
)
from trajscore.inference.units import Units

USE, RECALIBRATE, AVOID, TOO_FEW, UNSCORED = CARDS = (
    "use as it is",
    "recalibrate",
    "do not use",
    "too few runs",
    "recalibrate first",
)

# Expected number with which a Poisson number is at least MIN_RUNS_PER_OUTCOME with a chance of 0.8.
_WANTED = float(gammaincinv(MIN_RUNS_PER_OUTCOME, 0.8))
# Log-odds of forecasts closer to 0 or 1 would drown those of others.
_LEAST = 0.01
# More than so many times the runs that there are is no advice.
_MOST_TIMES = 100

GAINED = "gain"
ESTIMATES = (*FORMS, GAINED)
"""What cards are decided by: columns of their table, with an interval each."""


def decide(card: Any) -> str:
    """Choose what to do by the numbers of a card, a row of `card_table`.

    Do not use: it does not vary, or neither form is better than the base rate by anything that
    matters, nor would be with a map of many runs. Use as it is: shown to be better than the base
    rate, worth what matters, and recalibration gains less than that. Recalibrate: the same of the
    recalibrated form. Recalibrate first: it has no score, however many runs there are. Too few
    runs: none of these.
    """
    if not varies(card):
        return AVOID
    forms = [form for form in FORMS if not math.isnan(card[form])]
    if n_rarer(card) < MIN_RUNS_PER_OUTCOME:
        return TOO_FEW
    if not forms:
        return UNSCORED
    matters = card["matters"]
    if np.nanmax([*(card[f"{form}_high"] for form in forms), card["signal_high"]]) < matters:
        return AVOID
    if all(card[form] < matters for form in forms):
        return TOO_FEW  # a wide interval must not earn more than a narrow one around the same value
    # NaN where there is no such form, or recalibration was not asked for: never above anything
    may_recalibrate = card["recalibrated_low"] > 0
    if card["as_given_low"] > 0 and not (may_recalibrate and card["gain"] >= matters):
        return USE
    return RECALIBRATE if may_recalibrate else TOO_FEW


# -------------------------------------------------------------------- from rows to cards


def card_table(rows: Rows, options: Options, n_tables: int = 1) -> pd.DataFrame:
    """Return the cards, at a level shared out over all predictors and over as many tables."""
    forms: dict[str, dict[str, Row]] = {}
    for row in rows.predictors:
        forms.setdefault(row.predictor, {})[row.form] = row
    level = 1 - (1 - options.settings.confidence_level) / (len(forms) * n_tables)
    jobs = list(forms.values())
    cards = options.work.share(lambda own: _card(own, rows.base, options, level), jobs)
    return pd.DataFrame(list(cards), index=list(forms)).rename_axis("predictor")


def cards_and_pairs(rows: Rows, options: Options) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the cards, which predictors are tied with the best, and all pairs of them."""
    cards = card_table(rows, options)
    pairs = pair_table(rows, cards, options)
    return cards.assign(tied=tied_with_best(cards, pairs)), pairs


def have_too_few_runs(cards: pd.DataFrame) -> pd.Series:
    """Tell cards of so few runs of an outcome that no interval is believed."""
    return n_rarer(cards) < MIN_RUNS_PER_OUTCOME


def varies(cards: Any) -> Any:
    """Whether predictors of cards, or of one, have more than one value."""
    return np.isnan(cards["only_value"])


def n_rarer(cards: Any) -> Any:
    """Return the runs of the rarer outcome, of cards or of one."""
    return n_of_rarer_outcome(cards["success_rate"] * cards["n_runs"], cards["n_runs"])


def _card(forms: dict[str, Row], base: Row, options: Options, level: float) -> dict[str, Any]:
    """Decide about one predictor."""
    differences, matters = _differences(forms, base, options)
    n, n_success, units = len(base.runs), float(base.runs.labels.sum()), base.runs.units
    ends = _intervals(differences, units, options.settings, level) if n > 1 else {}
    if n_of_rarer_outcome(n_success, n) < MIN_RUNS_FOR_DIFFERENCE:
        ends = {name: (three[0], np.nan, np.nan) for name, three in ends.items()}
    slope, signal_high = None, np.nan
    if RECALIBRATED in forms:
        slope = slope_of(forms[AS_GIVEN], options.scores[0], options.weights)
        signal_high = slope.most(level, ends.get(RECALIBRATED))
    card: dict[str, Any] = {"card": "", "n_runs": n, "success_rate": n_success / n}
    card |= {"n_needed": 0, "only_value": forms[AS_GIVEN].only_value, "signal_high": signal_high}
    for name in ESTIMATES:
        card |= zip(columns_of(name), ends.get(name, (np.nan,) * 3), strict=True)
    card |= {"matters": matters, "confidence_level": level}
    card["card"] = decide(card)
    if card["card"] == TOO_FEW:
        card["n_needed"] = _n_needed(card, differences, slope, units)
    return card


def _differences(
    forms: dict[str, Row], base: Row, options: Options
) -> tuple[dict[str, MeanOfRuns], float]:
    """Return differences of the leading score, and the smallest that matters."""
    leading = options.scores[0], options.weights
    reference = base.score(*leading)
    scores = {form: row.score(*leading) for form, row in forms.items() if row.is_probability}
    differences = {form: own - reference for form, own in scores.items()}
    if len(scores) == 2:
        differences[GAINED] = scores[RECALIBRATED] - scores[AS_GIVEN]
    of_constant = reference(np.ones(len(base.runs)))
    family, rate = get_family(options.scores[0]), float(base.traces.cells[0])
    perfect = rate * family.success(np.ones(1)) + (1 - rate) * family.failure(np.zeros(1))
    return differences, MATERIAL_SHARE * float(perfect[0] - of_constant)


def _intervals(
    differences: dict[str, MeanOfRuns], units: Units, settings: EvaluationOptions, level: float
) -> dict[str, tuple[float, float, float]]:
    """Return value and interval of each difference."""
    if not differences or units.n_units < 2:
        return {}
    values = np.stack([difference.pseudo_values() for difference in differences.values()], axis=1)
    mean, low, high = intervals_of_means(
        values,
        [difference.change(len(values)) for difference in differences.values()],
        units,
        level,
        n_resamples=settings.n_resamples,
        random_state=settings.random_state,
    )
    return {
        name: (float(mean[k]), float(low[k]), float(high[k])) for k, name in enumerate(differences)
    }


def _n_needed(
    card: dict[str, Any], differences: dict[str, MeanOfRuns], slope: Slope | None, units: Units
) -> int:
    """Return about how many more runs decide the card with a chance of 0.8, in one digit."""
    n = card["n_runs"] if differences else 0  # none tell anything of a signal without a map
    matters, level = card["matters"], card["confidence_level"]
    least = max(_WANTED * (n + 1) / (n_rarer(card) + 0.5) - n, n / 10)
    more = ONE_DIGIT[least <= ONE_DIGIT]
    more = more[: 1 + np.searchsorted(more, _MOST_TIMES * n)]
    known = [form for form in FORMS if not math.isnan(card[form])]
    best = max(known, key=lambda form: card[form], default="")
    margin, low, high = (card[name] for name in columns_of(best)) if best else (0.0, 0.0, 0.0)
    spread = _spread(differences[best], units) if best else 0.0
    if spread <= SUM_ROUNDING * matters:
        return int(more[0])
    # with a flat prior, estimates from all runs by then vary around those of these
    share = more / (n + more)
    expected = np.full(len(more), margin)
    if slope is not None and best == RECALIBRATED:  # whose map then has more runs
        expected = expected + share * max(slope.worth - margin, 0.0)
    error, reach = spread / np.sqrt(n) * np.sqrt(share), spread / np.sqrt(n + more)
    reach *= float(ndtri((1 + level) / 2))
    # what is wider, by skewness or by losses not seen yet, narrows with the number of runs
    below, above = (np.fmax(reach, (1 - share) * width) for width in (margin - low, high - margin))
    beats = ndtr((expected - np.maximum(below, matters)) / error)
    avoids = ndtr((matters - above - expected) / error)
    if slope is not None and slope.curvature > 0:
        largest = np.sqrt(2 * matters / slope.curvature)
        highest = slope.value + float(ndtri(level)) * slope.error * np.sqrt(1 - share)
        avoids = np.minimum(avoids, ndtr((largest - highest) / (slope.error * np.sqrt(share))))
    decided = np.maximum.accumulate(beats + avoids) >= MIN_ASSURANCE
    return int(more[np.flatnonzero(decided)[0]] if decided.any() else more[-1])


def _spread(mean: MeanOfRuns, units: Units) -> float:
    """Return the standard deviation of runs that counts: of clusters, what they add to it."""
    values = mean.pseudo_values()
    influence = (values - values.mean())[:, None]
    return float(Spread(influence, units).half_width(1.0)[0] * np.sqrt(len(values)))


@dataclass(frozen=True)
class Slope:
    """Slope of the log-odds of success in a signal, to first order, and what it is worth.

    A map fitted to few runs loses more than the signal is worth to a map of many, so that the
    recalibrated form alone says too little of the signal.
    """

    value: float
    error: float  # standard error, over runs or clusters
    curvature: float  # of the score in the slope

    @property
    def worth(self) -> float:
        """Estimate of what an increasing map of many runs gains over the base rate."""
        unbiased = self.value * abs(self.value) - self.error**2
        return self.curvature / 2 * max(unbiased, 0.0)

    def most(self, level: float, recalibrated: tuple[float, float, float] | None = None) -> float:
        """Upper bound of what an increasing map of many runs gains over the base rate."""
        highest = self.value + float(ndtri(level)) * self.error
        by_slope = self.curvature / 2 * max(highest, 0.0) ** 2
        # what maps fitted to one half each lose by the noise of their slopes and intercepts
        noise = 2 * self.curvature * self.error**2
        return by_slope if recalibrated is None else min(by_slope, recalibrated[2] + 2 * noise)


def slope_of(row: Row, score: Any, weights: StepWeights) -> Slope:
    """Return the slope of a row as given: that of one Newton step from the best constant."""
    X, family, of_runs = row.traces, get_family(score), weights.of(row.traces)
    cells = logit(X.cells.clip(_LEAST, 1 - _LEAST)) if row.is_probability else X.cells
    w = of_runs.cells() / of_runs.divisor().sum()
    x = cells - np.average(cells, weights=w)
    p = of_runs.rate(row.runs.labels)
    information = p * (1 - p) * float(w @ x**2)
    if not information > 0:
        return Slope(0.0, 0.0, 0.0)
    step = 1e-4 * p * (1 - p)
    success = family.success(np.array([p - step, p + step]))
    relative = float(np.diff(success)[0]) / (2 * step) * p  # to that of the log score
    moved = np.add.reduceat(w * x, X.offsets[:-1])  # by a run's gap
    totals = (moved * (row.runs.labels - p))[:, None]
    of_units = row.runs.units.sums(totals)
    error = float(np.sqrt((of_units**2).sum())) / information
    return Slope(float(totals.sum()) / information, error, relative * information)


# -------------------------------------------------------------------- pairs


def pair_table(rows: Rows, cards: pd.DataFrame, options: Options) -> pd.DataFrame | None:
    """Return all pairs of predictors, in their best forms; None where none is a probability."""
    by_key = {row.key: row for row in rows.predictors}
    chosen = [by_key[name, form_of(cards.loc[name])] for name in ranked(cards)]
    chosen = [row for row in chosen if row.is_probability]
    if not chosen:
        return None
    names = [row.predictor for row in chosen]
    n_pairs = max(1, len(chosen) * (len(chosen) - 1) // 2)
    level = 1 - (1 - options.settings.confidence_level) / n_pairs
    scores = [row.score(options.scores[0], options.weights) for row in chosen]
    table = []
    for place, name in enumerate(names):
        after = zip(names[place + 1 :], scores[place + 1 :], strict=True)
        differences = {other: scores[place] - its for other, its in after}
        ends = _intervals(differences, rows.runs.units, options.settings, level)
        table += [(name, other, *three) for other, three in ends.items()]
    return pd.DataFrame(table, columns=["predictor", "reference", "difference", "low", "high"])


# -------------------------------------------------------------------- reading cards


def form_of(card: pd.Series) -> str:
    """Return the form that a card speaks for: recalibrated if there is one, unless as it is."""
    return AS_GIVEN if card["card"] == USE or pd.isna(card["recalibrated"]) else RECALIBRATED


def tied_with_best(cards: pd.DataFrame, pairs: pd.DataFrame | None) -> pd.Series:
    """Whether each predictor is not distinguished from the best, or behind by less than matters."""
    tied = pd.Series(False, index=cards.index)
    useful = [name for name in ranked(cards) if cards.loc[name, "card"] in (USE, RECALIBRATE)]
    if pairs is None or not useful:
        return tied
    best = useful[0]
    behind = pairs[(pairs["predictor"] == best) & pairs["reference"].isin(useful)]
    close = ~(behind["low"] > 0) | (behind["difference"] < cards.loc[best, "matters"])
    tied[[best, *behind["reference"][close]]] = True
    return tied


def ranked(cards: pd.DataFrame) -> list[str]:
    """Return predictors, best first: by card, then by margin; those that do not vary are last."""
    order = {USE: 0, RECALIBRATE: 0, TOO_FEW: 1, UNSCORED: 1, AVOID: 2}
    tied = cards.get("tied", pd.Series(False, index=cards.index))

    def place(name: str) -> tuple[int, bool, bool, bool, float]:
        card = cards.loc[name]
        action, margin = card["card"], card[form_of(card)]
        # of ties, those usable as they are come first
        needs_map = bool(tied[name]) and action != USE
        least = math.inf if pd.isna(margin) else -margin
        return order[action], not varies(card), not tied[name], needs_map, least

    return sorted(cards.index, key=place)


class Interval(NamedTuple):
    """An estimate with the ends of its interval; NaN where there is none."""

    estimate: float
    low: float
    high: float


def difference(pairs: pd.DataFrame, name: str, other: str) -> Interval:
    """Return what a predictor is above another one."""
    table = pairs.set_index(["predictor", "reference"])[["difference", "low", "high"]]
    if (name, other) in table.index:
        return Interval(*table.loc[name, other])
    value, low, high = -table.reindex([(other, name)]).to_numpy()[0]
    return Interval(value, high, low)


def recommended(cards: pd.DataFrame) -> tuple[str, str]:
    """Return the predictor to use, "" where there is none, and what to do with the best one."""
    best = ranked(cards)[0]
    action = cards["card"][best]
    return best if action in (USE, RECALIBRATE) else "", action


@dataclass(frozen=True)
class OtherChoice:
    """What would be recommended if some runs were counted otherwise."""

    n_runs: int  # that would be counted otherwise
    cards: pd.DataFrame | None  # None where too few runs are left
    predictor: str  # to use then; "" for none
    action: str  # "" where too few runs are left
    stays: bool  # whether the recommendation is the same


def other_choice(
    n_runs: int, cards: pd.DataFrame | None, today: pd.DataFrame, pairs: pd.DataFrame | None
) -> OtherChoice:
    """Hold the cards under another choice of runs against those of today."""
    if cards is None:
        return OtherChoice(n_runs, None, "", "", stays=False)
    name, action = recommended(today)
    other, other_action = recommended(cards)
    stays = (name, action) == (other, other_action)
    if pairs is not None and name and other and name != other:  # the same if they are tied
        _, low, high = difference(pairs, name, other)
        stays = low <= 0 <= high and cards["card"].get(name) == action
    return OtherChoice(n_runs, cards, other, other_action, bool(stays))
