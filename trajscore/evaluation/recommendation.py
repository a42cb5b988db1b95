"""What to do with a predictor: use it as it is, recalibrate it, do not use it, or find out more.

A recommendation is a statement with an error rate. It is decided by intervals of the leading
score's means, paired by run, at a level that is shared out over all predictors (Bonferroni), so
that at most 5% of all evaluations hold a wrong one: benchmarks/cards.py counts.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pandas as pd

from trajscore.core.policy import (
    COMBINED_ERROR_SHARE,
    MATERIAL_SHARE,
    MIN_RUNS_FOR_DIFFERENCE,
    MIN_RUNS_PER_OUTCOME,
)
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.values import ByName
from trajscore.evaluation.assurance import Slope, runs_needed, slope_of, spread_of
from trajscore.evaluation.options import (
    AS_GIVEN,
    FORMS,
    RECALIBRATED,
    EvaluationOptions,
    Options,
    RowKey,
    columns_of,
)
from trajscore.evaluation.rows import Row, Rows
from trajscore.inference.intervals import Units
from trajscore.inference.mean_intervals import intervals_of_means, n_of_rarer_outcome

GAINED = "gain"
OVERCONFIDENT = "overconfidence"
MARGINS = (*FORMS, GAINED)  # of the leading score
ESTIMATES = (*MARGINS, OVERCONFIDENT)
"""What recommendations are decided by: columns of the cards, with an interval each."""


class Action(StrEnum):
    """What to do with a predictor."""

    USE = "use as it is"
    RECALIBRATE = "recalibrate"
    COMBINE = "combine"
    NO_GAIN = "no gain shown"
    AVOID = "do not use"
    TOO_FEW = "too few runs"
    UNSCORED = "recalibrate first"


class Shown(StrEnum):
    """What these runs show: the answer to a question about a predictor."""

    YES = "yes"
    NO = "no"
    OPEN = "not known yet"
    UNASKED = ""  # of forecasts that are learnt from these outcomes


_ORDER = {Action.TOO_FEW: 1, Action.UNSCORED: 1, Action.AVOID: 2}


class Interval(NamedTuple):
    """An estimate with the ends of its interval; NaN where there is none."""

    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def is_known(self) -> bool:
        """Whether there is an estimate."""
        return not math.isnan(self.estimate)


@dataclass(frozen=True)
class Recommendation:
    """What to do with a predictor, and the numbers that decided it.

    Attributes
    ----------
    predictor : str
        Its name.
    action : Action
        What to do with it.
    at_its_word : Shown
        Whether what it says is what happens: no recalibration gains what matters.
    n_runs, success_rate
        Runs that it is judged on, and how many of them succeed.
    n_needed : int
        About how many more runs would settle it; 0 where they would not, or need not.
    only_value : float
        The value of a predictor that does not vary; else NaN.
    signal_high : float
        The most that an increasing map of many runs may gain over the base rate.
    as_given, recalibrated, gain : Interval
        Margins of the leading score over the base rate, and what recalibration gains; of all
        signals together, what they are above the best single one, in its best form, if that is of
        use, else above the base rate.
    overconfidence : Interval
        How much more success it states, on average over steps, than happens.
    matters : float
        The smallest margin that matters.
    confidence_level : float
        Level of each interval, so that all of an evaluation hold at once.
    best_alone : str
        Of signals together, the best single one; else "".
    tied : bool
        Whether these runs do not distinguish it from the best, or it is behind by less than
        matters.
    """

    predictor: str
    action: Action
    at_its_word: Shown
    n_runs: int
    success_rate: float
    n_needed: int
    only_value: float
    signal_high: float
    as_given: Interval
    recalibrated: Interval
    gain: Interval
    overconfidence: Interval
    matters: float
    confidence_level: float
    best_alone: str = ""
    tied: bool = False

    def card(self) -> ByName:
        """Return it as a row of a table, in which an interval is three columns."""
        card: ByName = {"card": str(self.action)}
        for name in (field.name for field in fields(self)[2:]):
            value = getattr(self, name)
            if isinstance(value, Interval):
                card |= zip(columns_of(name), value, strict=True)
            else:
                card[name] = str(value) if isinstance(value, Shown) else value
        return card

    def interval(self, estimate: str) -> Interval:
        """Return one of the estimates that decided it, with its interval."""
        interval: Interval = getattr(self, estimate)
        return interval

    @property
    def varies(self) -> bool:
        """Whether the predictor has more than one value."""
        return math.isnan(self.only_value)

    @property
    def n_rarer(self) -> float:
        """Runs of the rarer outcome."""
        return float(n_of_rarer_outcome(self.success_rate * self.n_runs, self.n_runs))

    @property
    def has_too_few_runs(self) -> bool:
        """Whether an outcome is so rare that no interval is believed."""
        return self.n_rarer < MIN_RUNS_PER_OUTCOME

    @property
    def is_wrong(self) -> bool:
        """Whether it is a probability, and shown to be wrong as it is given."""
        return self.at_its_word == Shown.NO and self.as_given.is_known

    @property
    def most(self) -> float:
        """The most that it may gain over the base rate, in any form, by these runs."""
        ends = [self.as_given.high, self.recalibrated.high, self.signal_high]
        return float(np.nanmax([0.0, *ends]))

    @property
    def is_useful(self) -> bool:
        """Whether the predictor is shown to be worth using, as it is or recalibrated."""
        return self.action in (Action.USE, Action.RECALIBRATE, Action.COMBINE)

    @property
    def is_open(self) -> bool:
        """Whether it is not known yet what to do."""
        return self.action in (Action.TOO_FEW, Action.UNSCORED)

    @property
    def informs(self) -> Shown:
        """Whether it knows more, by anything that matters, than the success rate does."""
        if self.is_open:
            return Shown.OPEN
        return Shown.YES if self.is_useful else Shown.NO

    def share(self, margin: float) -> float:
        """Return how far a margin leads from the success rate, 0, to certainty, 1."""
        return margin * MATERIAL_SHARE / self.matters

    @property
    def form(self) -> str:
        """The form that is spoken of: recalibrated if there is one, unless used as it is."""
        if self.action == Action.USE or not self.recalibrated.is_known:
            return AS_GIVEN
        return RECALIBRATED

    @property
    def key(self) -> RowKey:
        """The row that is spoken of."""
        return self.predictor, self.form

    @property
    def margin(self) -> Interval:
        """The margin over the base rate of the form that is spoken of."""
        return self.interval(self.form)


def decide(numbers: Recommendation) -> Action:
    """Choose what to do by the numbers of a recommendation, whatever its action is.

    Do not use: it does not vary, or neither form is better than the base rate by anything that
    matters, nor would be with a map of many runs. Use as it is: shown to be better than the base
    rate, worth what matters, and recalibration gains less than that. Recalibrate: the same of the
    recalibrated form. Combine: the same of signals together, if they are shown to be better than
    the best alone by what matters, too; else no gain is shown. Recalibrate first: it has no score,
    however many runs there are. Too few runs: none of these.
    """
    if not numbers.varies:
        return Action.AVOID
    if numbers.has_too_few_runs:
        return Action.TOO_FEW
    margins = [each for each in map(numbers.interval, FORMS) if each.is_known]
    if not margins:
        return Action.UNSCORED
    matters = numbers.matters
    if np.nanmax([*(margin.high for margin in margins), numbers.signal_high]) < matters:
        return Action.AVOID
    if all(margin.estimate < matters for margin in margins):
        # a wide interval must not earn more than a narrow one around the same value
        return Action.TOO_FEW
    # NaN where there is no such form, or recalibration was not asked for: never above anything
    may_recalibrate = numbers.recalibrated.low > 0
    gains = may_recalibrate and numbers.gain.estimate >= matters
    if numbers.best_alone and may_recalibrate:
        return Action.COMBINE if gains and numbers.gain.low > 0 else Action.NO_GAIN
    if numbers.as_given.low > 0 and not gains:
        return Action.USE
    return Action.RECALIBRATE if may_recalibrate else Action.TOO_FEW


def at_its_word(numbers: Recommendation, noise: float) -> Shown:
    """Decide whether what a predictor says is what happens.

    No: it is not a probability, or something that matters would be gained and it is shown to be
    worse than the base rate, recalibrated better, or over- or underconfident. Yes: a map of many
    runs gains less than matters, although one fitted to few loses `noise`.
    """
    if numbers.best_alone:
        return Shown.UNASKED
    if not numbers.as_given.is_known:
        return Shown.NO
    if numbers.has_too_few_runs:
        return Shown.OPEN
    gain = numbers.gain
    is_wrong = gain.low > 0 or numbers.overconfidence.low > 0 or numbers.overconfidence.high < 0
    if numbers.as_given.high < 0 and numbers.as_given.estimate <= -numbers.matters:
        return Shown.NO
    if is_wrong and gain.estimate >= numbers.matters:
        return Shown.NO
    return Shown.YES if gain.high + noise < numbers.matters else Shown.OPEN


# -------------------------------------------------------------------- from rows to cards


def recommend_each(rows: Rows, options: Options, n_tables: int = 1) -> list[Recommendation]:
    """Decide about each predictor, at a level shared out over all and over as many tables."""
    singles: dict[str, dict[str, Row]] = {}
    combined: dict[str, dict[str, Row]] = {}
    for row in rows.predictors:
        of_kind = combined if row.signals else singles
        of_kind.setdefault(row.predictor, {})[row.form] = row
    n = len(singles) * n_tables
    level = _shared_level(rows, options, n)
    # of the word of a combination nobody asks: a second way to be wrong has half the error rate
    of_word = 1 - (1 - options.settings.confidence_level) / (2 * max(n, 1))
    shared = options.work.share(
        lambda of: recommend(of, rows.base, options, level, of_word), list(singles.values())
    )
    recommended = list(shared)
    for forms in combined.values():  # against the best single one, if it is of use
        best = ranked(recommended)[0]
        decided = recommend(
            forms,
            rows.base,
            options,
            level=_shared_level(rows, options, n_tables, of_combined=True),
            of_word=of_word,
            rival=singles[best.predictor][best.form] if best.is_useful else rows.base,
            # with many runs it gains at least what the best does
            signal_high=max(each.most for each in recommended),
            best_alone=best.predictor,
        )
        recommended.append(decided)
    return recommended


def _shared_level(rows: Rows, options: Options, n: int, *, of_combined: bool = False) -> float:
    """Return the level of each of n intervals, so that all hold at once.

    Those of single predictors have most of the error rate, and those of the combination the rest.
    """
    error_rate = 1 - options.settings.confidence_level
    if any(row.signals for row in rows.predictors):
        error_rate *= COMBINED_ERROR_SHARE if of_combined else 1 - COMBINED_ERROR_SHARE
    return 1 - error_rate / max(n, 1)


def recommend_all(rows: Rows, options: Options) -> tuple[list[Recommendation], pd.DataFrame | None]:
    """Decide about each predictor and which are tied with the best; return all pairs, too."""
    recommended = recommend_each(rows, options)
    pairs = pair_table(rows, recommended, options)
    tied = tied_with_best(recommended, pairs)
    return [replace(each, tied=each.predictor in tied) for each in recommended], pairs


def recommend(
    forms: dict[str, Row],
    base: Row,
    options: Options,
    level: float,
    of_word: float,
    rival: Row | None = None,
    signal_high: float = math.nan,
    best_alone: str = "",
) -> Recommendation:
    """Decide about one predictor, by its rows in each form; or a combination, by its rival, too.

    `of_word` is the level of its overconfidence, `signal_high` the most that single ones may gain.
    """
    differences, matters = _differences(forms, base, options, rival)
    first = next(iter(forms.values()))
    n, n_success, units = len(base.runs), float(base.runs.labels.sum()), base.runs.units
    intervals = intervals_of(differences, units, options.settings, level)
    if AS_GIVEN in differences:
        stated = {OVERCONFIDENT: first.overconfidence(options.weights)}
        intervals |= intervals_of(stated, units, options.settings, of_word)
    if n_of_rarer_outcome(n_success, n) < MIN_RUNS_FOR_DIFFERENCE:
        intervals = {name: Interval(each.estimate) for name, each in intervals.items()}
    ends: ByName = {name: intervals.get(name, Interval()) for name in ESTIMATES}
    slope = None
    noise = math.nan
    if len(forms) == 2:
        slope = slope_of(first, *options.leading)
        signal_high = slope.most(level, ends[RECALIBRATED].high)
        noise = slope.noise
    numbers = Recommendation(
        predictor=first.predictor,
        action=Action.TOO_FEW,
        at_its_word=Shown.OPEN,
        n_runs=n,
        success_rate=n_success / n,
        n_needed=0,
        only_value=first.only_value,
        signal_high=signal_high,
        matters=matters,
        confidence_level=level,
        best_alone=best_alone,
        **ends,
    )
    decided = replace(numbers, action=decide(numbers), at_its_word=at_its_word(numbers, noise))
    if decided.action != Action.TOO_FEW:
        return decided
    return replace(decided, n_needed=_n_needed(decided, differences, slope, units))


def _n_needed(
    card: Recommendation,
    differences: dict[str, MeanOfRuns],
    slope: Slope | None,
    units: Units,
) -> int:
    """Return about how many more runs decide about a predictor, by its best form."""
    forms = [form for form in FORMS if card.interval(form).is_known]
    n = card.n_runs if differences else 0  # none tell anything of a signal without a map
    if not forms:
        return runs_needed(n, card.n_rarer)
    best = max(forms, key=lambda form: card.interval(form).estimate)
    return runs_needed(
        n,
        card.n_rarer,
        margin=card.interval(best),
        spread=spread_of(differences[best], units),
        matters=card.matters,
        level=card.confidence_level,
        slope=slope,
        learns=best == RECALIBRATED,
    )


def _differences(
    forms: dict[str, Row], base: Row, options: Options, rival: Row | None
) -> tuple[dict[str, MeanOfRuns], float]:
    """Return differences of the leading score, and the smallest that matters."""
    reference = base.score(*options.leading)
    scores = {
        form: row.score(*options.leading) for form, row in forms.items() if row.is_probability
    }
    differences = {form: score - reference for form, score in scores.items()}
    if rival is not None:
        differences[GAINED] = scores[RECALIBRATED] - rival.score(*options.leading)
    elif len(scores) == 2:
        differences[GAINED] = scores[RECALIBRATED] - scores[AS_GIVEN]
    perfect = options.scores[0].perfect(base.traces.cells[:1])
    return differences, MATERIAL_SHARE * float(perfect[0] - reference.mean)


def intervals_of(
    differences: dict[str, MeanOfRuns], units: Units, settings: EvaluationOptions, level: float
) -> dict[str, Interval]:
    """Return value and interval of each difference."""
    if not differences or units.n_units < 2:
        return {}
    threes = intervals_of_means(
        list(differences.values()),
        units,
        level,
        n_resamples=settings.n_resamples,
        random_state=settings.random_state,
    )
    return {name: Interval(*three) for name, three in zip(differences, threes, strict=True)}


# -------------------------------------------------------------------- pairs and ranks


def pair_table(
    rows: Rows, recommended: list[Recommendation], options: Options
) -> pd.DataFrame | None:
    """Return all pairs of predictors, in their best forms; None where none is a probability."""
    by_key = {row.key: row for row in rows.predictors}
    chosen = [by_key[each.key] for each in ranked(recommended)]
    chosen = [row for row in chosen if row.is_probability]
    if not chosen:
        return None
    chosen.sort(key=lambda row: not row.signals)
    n_singles = sum(not row.signals for row in chosen)
    scores = {row.predictor: row.score(*options.leading) for row in chosen}
    table = []
    for row in chosen:
        score = scores.pop(row.predictor)
        differences = {other: score - behind for other, behind in scores.items()}
        n_pairs = n_singles if row.signals else n_singles * (n_singles - 1) // 2
        level = _shared_level(rows, options, n_pairs, of_combined=bool(row.signals))
        ends = intervals_of(differences, rows.runs.units, options.settings, level)
        table += [(row.predictor, other, *three) for other, three in ends.items()]
    return pd.DataFrame(table, columns=["predictor", "reference", "difference", "low", "high"])


def ranked(recommended: Iterable[Recommendation]) -> list[Recommendation]:
    """Put the best first, by action, then by margin, and those that do not vary last.

    Signals together come first where they are to be combined, else after all single ones. Of ties
    those usable as they are come first, of open ones those that are shown to be wrong as stated.
    """

    def place(each: Recommendation) -> tuple[bool, int, bool, bool, bool, bool, float]:
        follows = bool(each.best_alone) and each.action != Action.COMBINE
        needs_map = each.tied and each.action != Action.USE
        behind = -each.margin.estimate if each.margin.is_known else math.inf
        says_nothing = each.is_open and not each.is_wrong  # nothing is shown of it
        order = _ORDER.get(each.action, 0)
        return follows, order, not each.varies, not each.tied, needs_map, says_nothing, behind

    return sorted(recommended, key=place)


def tied_with_best(recommended: list[Recommendation], pairs: pd.DataFrame | None) -> set[str]:
    """Return the predictors not distinguished from the best, or behind by less than matters."""
    useful = [each for each in ranked(recommended) if each.is_useful]
    if pairs is None or not useful:
        return set()
    best = useful[0]
    if best.best_alone:  # which is behind, and so are all
        return {best.predictor}
    names = [each.predictor for each in useful]
    behind = pairs[(pairs["predictor"] == best.predictor) & pairs["reference"].isin(names)]
    close = ~(behind["low"] > 0) | (behind["difference"] < best.matters)
    return {best.predictor, *behind["reference"][close]}


# -------------------------------------------------------------------- other choices of runs


@dataclass(frozen=True)
class OtherChoice:
    """What would be recommended if some runs were counted otherwise."""

    n_runs: int  # that would be counted otherwise
    best: Recommendation | None  # of the predictor that is ahead then; None: too few runs are left
    stays: bool  # whether the recommendation is the same
