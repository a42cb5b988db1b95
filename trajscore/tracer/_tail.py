"""The tail functional: the mean of a run's K largest risks, mixed with the largest; its tuning."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.ids import id_order
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.within_runs import running_max
from trajscore.tracer._risk_scorer import Components, components_of, nothing_recorded

# Cells of the prefixes that are sorted at a time.
_CHUNK_CELLS = 1 << 20
# floor(k N) is meant for the number k as written: 0.29 * 100 is 29
_ROUNDING = 1e-9


def tail_size(lengths: ArrayLike, k: float) -> IntArray:
    """Return K = max(1, floor(k N)) for each length N."""
    whole = np.floor(k * np.asarray(lengths, dtype=np.float64) + _ROUNDING)
    return np.maximum(whole, 1).astype(np.int64)


def mixed(mean: FloatArray, largest: FloatArray, w: float | FloatArray) -> FloatArray:
    """Return (1 - w) mean + w largest."""
    return (1 - w) * mean + w * largest


def top_means(
    X: TrajectoryArray, risk: FloatArray, k: float, of_prefixes: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the K largest cells up to each cell, and the largest one.

    Without `of_prefixes` the mean is that of whole runs, at their last cells, and NaN elsewhere.
    """
    mean = np.full(len(risk), np.nan)
    lengths = np.sort(X.lengths)
    starts = X.offsets[np.argsort(X.lengths)]
    wanted = np.unique(lengths)
    if of_prefixes:
        wanted = np.arange(1, lengths[-1] + 1)
    for length in wanted.tolist():  # all prefixes of one length have the same K
        used = lengths == length
        if of_prefixes:
            used = lengths >= length
        for batch in _batches(starts[used], length):
            mean[batch + length - 1] = _mean_of_largest(risk, batch, length, k)
    return mean, running_max(X, risk)


def _mean_of_largest(risk: FloatArray, starts: IntArray, length: int, k: float) -> FloatArray:
    """Return the mean of the K largest of the `length` cells from each start."""
    size = int(tail_size(length, k))
    cells = risk[starts[:, None] + np.arange(length)]
    largest = np.partition(cells, length - size, axis=1)[:, length - size :]
    # added up from the largest on: the same digits in whatever company a run is computed
    return np.cumsum(-np.sort(-largest, axis=1), axis=1)[:, -1] / size


def _batches(runs: IntArray, length: int) -> Iterator[IntArray]:
    """Cut runs into batches of which a bounded number of cells is looked at."""
    n_runs = max(1, _CHUNK_CELLS // length)
    for start in range(0, len(runs), n_runs):
        yield runs[start : start + n_runs]


TUNED = ("alpha", "beta", "gamma", "k", "w")
_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
_TAILS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
_FINE_FACTORS = (0.6, 0.8, 1.0, 1.25, 1.6)
_MIXES = tuple(round(0.1 * step, 1) for step in range(11))
_PAIRS = 1 << 22


def tuned(
    X: TrajectoryArray, codes: IntArray, w: float, tau: float, *, aggregation: str, actors: str
) -> tuple[dict[str, float], float]:
    """Return the best (alpha, beta, gamma, k, w) and its loss: coarse, then fine, then w."""
    rows = np.flatnonzero((codes != CENSORED) & ~nothing_recorded(X))
    if not len(rows):
        raise ValueError(
            "tune needs runs that have an outcome and a recorded component; no run has both"
        )
    rows = rows[id_order(X.ids[rows])]
    sample = X[rows]
    labels = codes[rows]

    def best(**grid: ArrayLike) -> tuple[dict[str, float], float]:
        values = {name: np.atleast_1d(np.asarray(grid[name], dtype=float)) for name in TUNED}
        scores = grid_scores(sample, **values, aggregation=aggregation, actors=actors)
        losses = pairwise_logistic_loss(labels, scores, tau)
        # of settings that are equally good, the first: the one with the smallest weights
        place = np.unravel_index(int(np.argmin(losses.round(12))), losses.shape)
        setting = zip(TUNED, place, strict=True)
        return {name: float(values[name][index]) for name, index in setting}, float(losses[place])

    best_so_far, _ = best(alpha=_WEIGHTS, beta=_WEIGHTS, gamma=_WEIGHTS, k=_TAILS, w=w)
    finer = {
        name: sorted({round(value * factor, 6) for factor in _FINE_FACTORS})  # 0 stays 0
        for name, value in best_so_far.items()
    }
    finer["k"] = sorted({min(k, 1.0) for k in finer["k"]})
    best_so_far, _ = best(**(finer | {"w": w}))
    return best(**(best_so_far | {"w": sorted({*_MIXES, w})}))


def pairwise_logistic_loss(labels: IntArray, risk: FloatArray, tau: float) -> FloatArray:
    """Return the mean of log(1 + exp(-(s_i - s_j) / tau)) over failures i and successes j.

    `risk` has the shape (..., n_runs): several settings at once.
    """
    settings = risk.reshape(-1, risk.shape[-1]) / tau
    # sorted, so that the order of rows cannot change a digit
    failed = np.sort(settings[:, labels == FAILURE], axis=1)
    succeeded = np.sort(settings[:, labels == SUCCESS], axis=1)
    n_pairs = failed.shape[1] * succeeded.shape[1]
    if not n_pairs:
        raise ValueError(
            "tune needs failures and successes, but all observed outcomes are of one class"
        )
    losses = np.empty(len(settings))
    n_rows = max(1, _PAIRS // n_pairs)
    for start in range(0, len(settings), n_rows):
        rows = slice(start, start + n_rows)
        margin = failed[rows][:, :, None] - succeeded[rows][:, None, :]
        losses[rows] = np.logaddexp(0, -margin).reshape(len(margin), -1).mean(axis=1)
    return losses.reshape(risk.shape[:-1])


def grid_scores(
    X: TrajectoryArray,
    *,
    alpha: FloatArray,
    beta: FloatArray,
    gamma: FloatArray,
    k: FloatArray,
    w: FloatArray,
    aggregation: str,
    actors: str,
) -> FloatArray:
    """Return what `TracerScorer.score_samples` gives for every setting of a grid.

    Of shape (n_alpha, n_beta, n_gamma, n_k, n_w, n_runs): steps are sorted once for all k and w.
    Below, risks are of shape (n_gamma, n_runs, n_steps) and means of (n_gamma, n_k, n_runs).
    """
    shape = tuple(len(values) for values in (alpha, beta, gamma, k, w))
    out = np.empty((*shape, len(X)))
    sizes = np.stack([tail_size(X.lengths, float(fraction)) for fraction in k])  # (n_k, n_runs)
    runs = np.arange(len(X))
    largest_size = int(sizes.max())

    def ordered(risk: FloatArray) -> FloatArray:
        # the largest first; components are 0 or more, so that padding with 0 comes last
        return np.sort(risk, axis=-1)[..., : -largest_size - 1 : -1]

    def tail_means(falling: FloatArray) -> FloatArray:
        sums = np.cumsum(falling, axis=-1)
        return sums[:, runs, sizes - 1] / sizes

    cells = vars(components_of(X, actors)).values()
    parts = Components(*(X.with_cells(values).padded(0.0) for values in cells))
    surprisal = tail_means(ordered(parts.surprisal[None]))
    for i, j in np.ndindex(shape[:2]):
        weights = alpha[i], beta[j], gamma[:, None, None]
        if aggregation == "separate":
            mean = surprisal
            other = tail_means(ordered(parts.penalty(*weights)))
        else:
            falling = ordered(parts.risk(*weights, aggregation))
            mean = tail_means(falling)
            other = falling[:, None, :, 0]
        out[i, j] = mixed(mean[:, :, None], other[:, :, None], w[:, None])
    out[..., nothing_recorded(X)] = np.nan
    return out
