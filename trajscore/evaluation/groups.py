"""Whether a predictor works in groups of runs as in all of them, and what to do in each.

One test comes first. Where it sees no difference, each group gets the card of all runs; where it
does, cards are decided by estimates that are shrunken towards what the groups have in common.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from trajscore.core.policy import GROUP_ERROR_RATE, MIN_UNITS_PER_GROUP
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.values import AnyArray, ByName, FloatArray, FloatPair, IntArray
from trajscore.core.weights import run_sums
from trajscore.evaluation.options import Options
from trajscore.evaluation.recommendation import (
    MARGINS,
    Action,
    Interval,
    Recommendation,
    decide,
    recommend_each,
)
from trajscore.evaluation.rows import Row, Rows
from trajscore.inference.intervals import Units

_PRIOR = 4  # units that the variance of all groups counts as in that of each
_PRIOR_RUNS = 5  # runs at the rate of all that count in the loss of each group's base rate
_MOST_SHUFFLES = 999
_FEWEST_SHUFFLES = 199
_MOST_LABELS = 20_000_000
_MOST_SHOWN = 40  # groups
_MOST_FEW = 5  # groups that have too few runs for a conclusion


class InGroup(NamedTuple):
    """What to do with a predictor in a group of runs."""

    by: str  # the kind of the group
    group: str
    best: Recommendation
    margin: float  # of the group as it is, in the form that is spoken of in all runs
    p_value: float  # of groups of this kind being alike

    @property
    def differs(self) -> bool:
        """Whether groups of this kind are shown to differ for the predictor."""
        return self.p_value < GROUP_ERROR_RATE


def recommend_in_groups(
    rows: Rows, by: Mapping[str, AnyArray], whole: Iterable[Recommendation], options: Options
) -> list[InGroup]:
    """Return what to do with each predictor in each group, and whether groups differ.

    `whole` is what to do with them in all runs. Labels are those of all runs given, whether they
    count or not.
    """
    by = {kind: labels[rows.runs.source_rows] for kind, labels in by.items()}
    n_groups = sum(len(set(labels)) for labels in by.values())
    of_all = {each.predictor: each for each in whole}
    chosen = [row for row in rows.predictors if row.form == of_all[row.predictor].form]
    in_groups: list[InGroup] = []
    for kind, labels in by.items():
        groups = sorted(set(labels))
        alone: list[dict[str, Recommendation]] = []  # what to do in each group by its runs alone
        units = []  # of each group
        for group in options.work.track(groups):
            inside = rows.within(np.flatnonzero(labels == group))
            units.append(inside.runs.units)
            in_group = recommend_each(inside, options.quiet, n_tables=n_groups)
            alone.append({each.predictor: each for each in in_group})
        by_predictor = []
        for row, p in zip(chosen, group_p_values(chosen, labels, options), strict=True):
            best = of_all[row.predictor]
            in_each = [of_group[row.predictor] for of_group in alone]
            p_value = min(1.0, len(by) * p) if best.varies else 1.0  # a constant is one everywhere
            decided = [_as_all(each, best) for each in in_each]
            if p_value < GROUP_ERROR_RATE:
                decided = _shrunken(in_each, units)
            margins = [each.interval(row.form).estimate for each in in_each]
            of_groups = zip(groups, decided, margins, strict=True)
            by_predictor.append([InGroup(kind, *each, p_value) for each in of_groups])
        in_groups += chain.from_iterable(zip(*by_predictor, strict=True))
    return in_groups


def shown_groups(of_kind: Iterable[InGroup]) -> tuple[list[InGroup], int]:
    """Return the largest groups, few of those too small, and how many are left out."""
    by_group: dict[str, list[InGroup]] = {}
    for each in of_kind:
        by_group.setdefault(each.group, []).append(each)
    largest = sorted(by_group.values(), key=lambda group: group[0].best.n_runs)[::-1]
    has_few = [group[0].best.has_too_few_runs for group in largest]
    shown = largest
    if sum(has_few) > _MOST_FEW:
        shown = [group for group, few in zip(largest, has_few, strict=True) if not few]
    shown = shown[:_MOST_SHOWN]
    return [each for group in shown for each in group], len(largest) - len(shown)


# -------------------------------------------------------------------- do groups differ?


def group_p_values(rows: list[Row], labels: AnyArray, options: Options) -> FloatArray:
    """Return p-values of a row saving another share of the base rate's loss in groups than in all.

    Squared differences, over their variances, are added up. Labels are shuffled over clusters (over
    runs where there are none), and within clusters that hold several groups: that is exact for
    groups drawn at random, and holds for many runs where variances differ (Pauly, Brunner and
    Konietschke 2015). P-values are adjusted for all rows (Westfall and Young 1993).
    """
    code = np.unique(labels, return_inverse=True)[1]
    cluster = rows[0].runs.units.of_runs
    pairs, item = np.unique(np.stack([cluster, code]), axis=1, return_inverse=True)
    is_tested = np.bincount(pairs[1]) >= MIN_UNITS_PER_GROUP
    if is_tested.sum() < 2:
        return np.ones(len(rows))
    # whole clusters of one group change places, and runs of others within their cluster
    is_torn = np.bincount(pairs[0])[cluster] > 1
    item = np.where(is_torn, len(pairs[0]) + np.arange(len(code)), item.ravel())
    block = np.where(is_torn, 1 + cluster, 0)
    runs = np.flatnonzero(is_tested[code])
    _, first, item = np.unique(item[runs], return_index=True, return_inverse=True)
    shuffled = _shuffles(code[runs][first], block[runs][first], options.settings.random_state)
    distances = [_distances(row, runs, item, shuffled, options) for row in rows]
    # share of the labellings that are as far apart
    shares = rankdata(-np.round(distances, 9), "max", axis=1) / len(shuffled)
    return np.asarray((shares.min(axis=0) <= shares[:, :1]).mean(axis=1))


def _shuffles(code: IntArray, block: IntArray, random_state: Any) -> IntArray:
    """Return labels as they are, then shuffled within blocks, one shuffle a row."""
    n_rows = int(np.clip(_MOST_LABELS // len(code), _FEWEST_SHUFFLES, _MOST_SHUFFLES))
    keys = block + check_random_state(random_state).random_sample((n_rows, len(code)))
    shuffled = np.empty((n_rows + 1, len(code)), dtype=np.int64)
    shuffled[0] = code
    np.put_along_axis(
        shuffled[1:], np.argsort(keys, axis=1), code[None, np.argsort(block, kind="stable")], axis=1
    )
    return shuffled


def _distances(
    row: Row, runs: IntArray, item: IntArray, shuffled: IntArray, options: Options
) -> FloatArray:
    """Return how far groups are from all under each labelling of the items of these runs."""
    labels = row.runs.labels
    sums = run_sums(labels, row.traces, options.scores[0], options.weights)
    mass = options.weights.of(row.traces).total
    of_runs = np.stack([sums.total, mass * labels, mass * (1 - labels), sums.divisor])
    of_items = np.stack([np.bincount(item, values) for values in of_runs[:, runs]])
    of_items = np.vstack([of_items, of_items[3:] > 0])
    n_groups = shuffled.max() + 1
    cell = shuffled + n_groups * np.arange(len(shuffled))[:, None]

    def add(of_item: FloatArray) -> FloatArray:
        """Add up values of items, the same under each labelling or not, by group."""
        values = np.broadcast_to(of_item, shuffled.shape).ravel()
        sums = np.bincount(cell.ravel(), values, len(shuffled) * n_groups)
        return np.asarray(sums.reshape(-1, n_groups), dtype=float)

    whole = of_items.sum(axis=1)
    totals = np.stack([add(values) for values in of_items])
    share, slope = _share_saved(totals, whole, options)
    # how far an item moves the share of its group
    moved = sum(
        values * of_groups.ravel()[cell] for values, of_groups in zip(of_items, slope, strict=False)
    )
    n = totals[4]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = add(np.square(moved)) * n
        common = np.nansum(n * spread, axis=1, keepdims=True) / n.sum(axis=1, keepdims=True)
        variance = (n * spread + _PRIOR * common) / (n + _PRIOR) / n
        gaps = share - _share_saved(whole, whole, options)[0]
        return np.nansum(gaps**2 / variance, axis=1)


def _share_saved(totals: FloatArray, of_all: FloatArray, options: Options) -> FloatPair:
    """Return the saved share of the base rate's loss, and its derivative in the sums."""
    family = options.scores[0]
    score, success, failure, divisor = totals[:4]
    runs = success + failure
    prior = _PRIOR_RUNS * of_all[1:3] / of_all[4]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = success / runs
        gain = family.success(rate)
        loss = family.failure(rate)
        margin = (score - success * gain - failure * loss) / divisor
        # a group of one outcome has no loss to save: some runs of all have to count
        rate = (success + prior[0]) / (runs + prior.sum())
        of_rate = rate * family.success(rate) + (1 - rate) * family.failure(rate)
        scale = (family.perfect(rate) - of_rate) * divisor
        slope = np.stack([np.ones_like(score), -gain, -loss, -margin]) / scale
        return margin * divisor / scale, slope


# -------------------------------------------------------------------- cards of groups


def _as_all(group: Recommendation, whole: Recommendation) -> Recommendation:
    """Do as in all runs; their margins are shares of the base rate's loss, here that of a group."""
    if group.has_too_few_runs:
        return group
    scale = group.matters / (whole.matters or 1.0)
    ends: ByName = {
        name: Interval(*(scale * end for end in whole.interval(name))) for name in MARGINS
    }
    return replace(
        group,
        action=whole.action,
        at_its_word=whole.at_its_word,
        overconfidence=whole.overconfidence,
        n_needed=whole.n_needed,
        confidence_level=whole.confidence_level,
        signal_high=scale * whole.signal_high,
        **ends,
    )


def _shrunken(groups: Sequence[Recommendation], units: list[Units]) -> list[Recommendation]:
    """Decide about groups by shrunken shares of their base rates' losses."""
    out = list(groups)
    of_groups = zip(groups, units, strict=True)
    t = np.array([unit.t_quantile(each.confidence_level) for each, unit in of_groups])
    matters = np.array([each.matters for each in groups])
    is_decided = np.array([not each.has_too_few_runs for each in groups])
    for name in MARGINS:
        with np.errstate(divide="ignore", invalid="ignore"):  # of a group with one outcome
            value, low, high = np.transpose([each.interval(name) for each in groups]) / matters
        used = np.flatnonzero(is_decided & np.isfinite(high - low))
        if len(used) < 2:
            continue
        half = (high - low)[used] / 2 / t[used]
        centre, widened = shrink(value[used], half**2)
        below = (value - low)[used] * widened
        above = (high - value)[used] * widened
        ends = np.stack([centre, centre - below, centre + above]) * matters[used]
        for place, three in zip(used, ends.T.tolist(), strict=True):
            shrunken: ByName = {name: Interval(*three)}
            out[place] = replace(out[place], **shrunken)
    for place in np.flatnonzero(is_decided):
        group = out[place]
        action = decide(group)
        n_needed = group.n_needed or group.n_runs * (action == Action.TOO_FEW)
        out[place] = replace(group, action=action, n_needed=n_needed)
    return out


def shrink(value: FloatArray, variance: FloatArray) -> FloatPair:
    """Return estimates shrunken towards their mean, and by what factor errors become smaller.

    The variance between groups is that of Paule and Mandel (1982); that it is not known, and that
    the mean is not, widens intervals (Morris 1983).

    >>> centre, factor = shrink(np.array([0.0, 1.0, 2.0, 9.0]), np.ones(4))
    >>> centre.round(2), factor.round(2)
    (array([0.18, 1.12, 2.06, 8.64]), array([1.  , 0.99, 0.98, 1.  ]))
    """
    n = len(value)
    variance = np.maximum(variance, SUM_ROUNDING * max(float(np.abs(value).max()), 1.0) ** 2)

    def about_mean(between: float) -> tuple[float, float]:
        weight = 1 / (variance + between)
        mean = float((weight * value).sum() / weight.sum())
        return mean, float((weight * (value - mean) ** 2).sum()) - (n - 1)

    between = 0.0
    if about_mean(between)[1] > 0:
        largest = float(np.var(value, ddof=1))
        between = float(brentq(lambda guess: about_mean(guess)[1], 0.0, largest))
    mean = about_mean(between)[0]
    share = between / (between + variance)
    of_mean = 1 / (1 / (variance + between)).sum()
    unknown = 2 / max(n - 3, 1) * (1 - share) ** 2 * (value - mean) ** 2
    error = share * variance + (1 - share) ** 2 * of_mean + unknown
    return mean + share * (value - mean), np.minimum(np.sqrt(error / variance), 1.0)
