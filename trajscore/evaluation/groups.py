"""Whether a predictor works in groups of runs as in all of them, and what to do in each.

One test comes first. Where it sees no difference, each group gets the card of all runs; where it
does, cards are decided by estimates that are shrunken towards what the groups have in common.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from trajscore.core.policy import GROUP_ERROR_RATE, MIN_UNITS_PER_GROUP
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.type_aliases import AnyArray, ByName, FloatArray, FloatPair, IntArray
from trajscore.core.weights import run_sums
from trajscore.evaluation.options import Options, columns_of
from trajscore.evaluation.recommendation import (
    ESTIMATES,
    Action,
    Recommendation,
    card_table,
    decide,
    have_too_few_runs,
)
from trajscore.evaluation.rows import Row, Rows

_PRIOR = 4  # units that the variance of all groups counts as in that of each
_PRIOR_RUNS = 5  # runs at the rate of all that count in the loss of each group's base rate
_MOST_SHUFFLES = 999
_FEWEST_SHUFFLES = 199
_MOST_LABELS = 20_000_000
_MOST_SHOWN = 40  # groups
_MOST_FEW = 5  # groups that have too few runs for a conclusion


def group_table(
    rows: Rows,
    by: Mapping[str, AnyArray],
    best: Mapping[str, Recommendation],
    options: Options,
) -> pd.DataFrame:
    """Return the cards of all predictors in all groups, and whether groups differ.

    `best` is what to do with each predictor in all runs. Labels are those of all runs given,
    whether they count or not.
    """
    by = {kind: labels[rows.runs.source_rows] for kind, labels in by.items()}
    chosen = [row for row in rows.predictors if row.form == best[row.predictor].form]
    p_values = {kind: group_p_values(chosen, labels, options) for kind, labels in by.items()}
    parts = [(kind, group) for kind, labels in by.items() for group in sorted(set(labels))]
    tables = {}
    for kind, group in options.work.track(parts):
        inside = rows.within(np.flatnonzero(by[kind] == group))
        of_group = card_table(inside, options.quiet, n_tables=len(parts))
        quantiles = map(inside.runs.units.t_quantile, of_group["confidence_level"])
        tables[kind, group] = of_group.assign(t=list(quantiles))
    table = pd.concat(tables, names=["by", "group", "predictor"])
    decided = []
    for kind in by:
        of_kind = table.loc[[kind]]
        for row, p in zip(chosen, np.minimum(1, len(by) * p_values[kind]), strict=True):
            groups = of_kind[of_kind.index.get_level_values("predictor") == row.predictor]
            p_value = p if best[row.predictor].varies else 1.0  # a constant is one in every group
            settle = _shrunken if p_value < GROUP_ERROR_RATE else _as_all
            settled = settle(groups, best[row.predictor].card())
            decided.append(settled.assign(own=groups[row.form], p_value=p_value))
    return pd.concat(decided).drop(columns="t").loc[table.index]


def shown_groups(of_kind: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the cards of the largest groups, few of those too small, and how many are left out."""
    by_group = of_kind.assign(few=have_too_few_runs(of_kind)).groupby(level="group")
    groups = by_group.agg({"n_runs": "max", "few": "all"}).sort_values("n_runs")[::-1]
    shown = groups.index[~groups["few"] | (groups["few"].sum() <= _MOST_FEW)][:_MOST_SHOWN]
    rows = [of_kind.xs(group, level="group", drop_level=False) for group in shown]
    return pd.concat([of_kind[:0], *rows]), len(groups) - len(shown)


# -------------------------------------------------------------------- do groups differ?


def group_p_values(rows: list[Row], labels: AnyArray, options: Options) -> FloatArray:
    """Return p-values of a row saving another share of the base rate's loss in groups than in all.

    Squared differences, over their variances, are added up. Labels are shuffled over clusters (over
    runs where there are none), and within clusters that hold several groups: that is exact for
    groups drawn at random, and holds for many runs where variances differ (Pauly, Brunner and
    Konietschke 2015). P-values are adjusted for all rows (Westfall and Young 1993).
    """
    _, code = np.unique(labels, return_inverse=True)
    cluster = rows[0].runs.groups
    if cluster is None:
        cluster = np.arange(len(code))
    pairs, item = np.unique(np.stack([cluster, code]), axis=1, return_inverse=True)
    n_labels = pd.Series(pairs[0]).groupby(pairs[0]).transform("size").to_numpy()
    tested = np.bincount(pairs[1]) >= MIN_UNITS_PER_GROUP
    item = item.ravel()
    is_torn = n_labels[item] > 1
    # whole clusters of one group change places, and runs of others within their cluster
    item = np.where(is_torn, len(pairs[0]) + np.arange(len(code)), item)
    block = np.where(is_torn, 1 + np.unique(cluster, return_inverse=True)[1], 0)
    is_tested = tested[code]
    if tested.sum() < 2:
        return np.ones(len(rows))
    _, first, item = np.unique(item[is_tested], return_index=True, return_inverse=True)
    places = np.full(len(code), -1)
    places[is_tested] = item
    seed = options.settings.random_state
    shuffled = _shuffles(code[is_tested][first], block[is_tested][first], seed)
    distances = [_distances(row, places, shuffled, len(tested), options) for row in rows]
    n = len(shuffled)
    statistics = np.round(np.stack(distances), 9)
    least = np.stack([n - np.searchsorted(np.sort(values), values) for values in statistics]) / n
    return np.asarray([(least.min(axis=0) <= share).mean() for share in least[:, 0]])


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
    row: Row, places: IntArray, shuffled: IntArray, n_groups: int, options: Options
) -> FloatArray:
    """Return how far groups are from all runs under each labelling; places of -1 do not count."""
    used = places >= 0
    n_items = shuffled.shape[1]
    labels = row.runs.labels
    sums = run_sums(labels, row.traces, options.scores[0], options.weights)
    mass = options.weights.of(row.traces).total
    of_runs = np.stack([sums.total, mass * labels, mass * (1 - labels), sums.divisor])
    of_items = np.stack([np.bincount(places[used], values[used], n_items) for values in of_runs])
    products = of_items[:, None] * of_items[None]
    of_items = np.vstack([of_items, (of_items[3] > 0)[None]])
    cell = (shuffled + n_groups * np.arange(len(shuffled))[:, None]).ravel()

    def add(of_item: FloatArray) -> FloatArray:
        tiled = np.broadcast_to(of_item, shuffled.shape).ravel()
        sums = np.bincount(cell, tiled, len(shuffled) * n_groups)
        return np.asarray(sums.reshape(-1, n_groups), dtype=float)

    totals = np.stack([add(values) for values in of_items])
    squares = np.empty((4, 4, *totals.shape[1:]))
    for i, k in zip(*np.triu_indices(4), strict=True):
        squares[i, k] = squares[k, i] = add(products[i, k])
    share, slope = _share_saved(totals, of_items.sum(axis=1), options)
    whole, _ = _share_saved(of_items.sum(axis=1), of_items.sum(axis=1), options)
    n = totals[4]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.einsum("i...,ik...,k...->...", slope, squares, slope) * n
        common = np.nansum(n * spread, axis=1, keepdims=True) / n.sum(axis=1, keepdims=True)
        variance = (n * spread + _PRIOR * common) / (n + _PRIOR) / n
        return np.nansum((share - whole) ** 2 / variance, axis=1)


def _share_saved(totals: FloatArray, of_all: FloatArray, options: Options) -> FloatPair:
    """Return the saved share of the base rate's loss, and its derivative in the sums."""
    family = options.scores[0]
    score, success, failure, divisor = totals[:4]
    prior = _PRIOR_RUNS * (of_all[1:3] / of_all[4]).reshape(2, *[1] * score.ndim)

    def branches(good: FloatArray, bad: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        rate = np.asarray(good / (good + bad))
        return family.success(rate), family.failure(rate), rate

    with np.errstate(divide="ignore", invalid="ignore"):
        gain, loss, _ = branches(success, failure)
        margin = (score - success * gain - failure * loss) / divisor
        smooth_gain, smooth_loss, rate = branches(success + prior[0], failure + prior[1])
        # a group of one outcome has no loss to save: some runs of all have to count
        best = family.success(np.ones(1)), family.failure(np.zeros(1))
        scale = (rate * (best[0] - smooth_gain) + (1 - rate) * (best[1] - smooth_loss)) * divisor
        slope = np.stack([np.ones_like(score), -gain, -loss, -margin]) / scale
        return margin * divisor / scale, slope


# -------------------------------------------------------------------- cards of groups


def _as_all(groups: pd.DataFrame, card: ByName) -> pd.DataFrame:
    """Give groups the card of all runs, with its numbers as shares of their base rates' losses."""
    out = groups.copy()
    is_decided = ~have_too_few_runs(groups)
    columns = [*(column for name in ESTIMATES for column in columns_of(name)), "signal_high"]
    scale = groups["matters"] / (card["matters"] or 1.0)
    for column in columns:
        out.loc[is_decided, column] = card[column] * scale
    for column in ("card", "n_needed", "confidence_level"):
        out.loc[is_decided, column] = card[column]
    return out


def _shrunken(groups: pd.DataFrame, card: ByName) -> pd.DataFrame:
    """Decide the cards of groups by shrunken shares of their base rates' losses."""
    out = groups.copy()
    is_decided = ~have_too_few_runs(groups)
    for name in ESTIMATES:
        columns = columns_of(name)
        value, low, high = (groups[column] / groups["matters"] for column in columns)
        used = is_decided & np.isfinite(high - low)
        if used.sum() < 2:
            continue
        half = (high - low)[used] / 2 / groups["t"][used]
        centre, widened = shrink(value[used].to_numpy(), half.to_numpy() ** 2)
        matters = groups["matters"][used]
        below = (value - low)[used] * widened
        above = (high - value)[used] * widened
        for column, end in zip(columns, (centre, centre - below, centre + above), strict=True):
            out.loc[used, column] = end * matters
    for key in out.index[is_decided]:
        row = out.loc[key]
        decided = decide(Recommendation.of_card(key[-1], row))
        out.loc[key, "card"] = str(decided)
        if decided == Action.TOO_FEW:
            out.loc[key, "n_needed"] = row["n_needed"] or row["n_runs"]
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
