"""Each text embedded once; similarities of pairs of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils import get_tags

from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.tracer._compared_texts import PairsOfTurns
from trajscore.tracer._turns import Words

# A batch is padded to its longest text: this bounds its size.
_BATCH_TEXTS = 128
_BATCH_CHARACTERS = 1 << 20
_PAIRS = 1 << 15


def compare(
    rows: Any, texts: list[str], pairs: PairsOfTurns, n_lexical: int, words: Words
) -> tuple[FloatArray, FloatArray]:
    """Return the cosine of each pair, and the word overlap of the first `n_lexical`."""
    first, second = pairs.first[:n_lexical], pairs.second[:n_lexical]
    used, place = np.unique(np.stack([first, second]), return_inverse=True)
    a, b = place.reshape(2, -1)
    table = words.table([texts[place] for place in used])
    return cosine_of_pairs(rows, pairs.first, pairs.second), jaccard_of_pairs(table, a, b)


def fit_and_embed(embedder: Any, texts: list[str], fit: bool) -> tuple[Any, Any]:
    """Fit an embedder on texts if asked, and embed them; return both, for a cache to keep."""
    if fit and learns(embedder):
        rows = embedder.fit_transform(texts)
        return embedder, as_rows(rows, len(texts))
    if fit:
        embedder = embedder.fit(texts)
    return embedder, embed(embedder, texts)


def embed(embedder: Any, texts: list[str]) -> Any:
    """Embed texts, batches of similar length at a time; rows of length one, or zero."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    parts = []
    for start, stop in _batches([len(texts[place]) for place in order]):
        part = embedder.transform([texts[place] for place in order[start:stop]])
        parts.append(as_rows(part, stop - start))
    stack = sparse.vstack if sparse.issparse(parts[0]) else np.concatenate
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    rows: Any = stack(parts)
    return (rows.tocsr() if sparse.issparse(rows) else rows)[back]


def learns(embedder: Any) -> bool:
    """Tell whether an embedder takes anything from the texts that it is fitted on."""
    return bool(get_tags(embedder).requires_fit)


def _batches(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for place, length in enumerate(lengths):
        n = place - start + 1
        if n > 1 and (n > _BATCH_TEXTS or n * length > _BATCH_CHARACTERS):
            yield start, place
            start = place
    yield start, len(lengths)


def as_rows(rows: Any, n_texts: int) -> Any:
    """Check what an embedder returned, and bring each row to length one."""
    if not sparse.issparse(rows):
        rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] != n_texts:
        raise ValueError(
            f"the embedder returned an array of shape {rows.shape} for {n_texts} texts; it must "
            f"return one row of numbers for each text"
        )
    values = rows.data if sparse.issparse(rows) else rows
    if not np.isfinite(values).all():
        raise ValueError("the embedder returned a row that is not finite")
    return normalize(rows)  # a zero row stays zero


def cosine_of_pairs(rows: Any, first: IntArray, second: IntArray) -> FloatArray:
    """Return the cosine of each pair of rows; 0 where one of them is zero."""
    out = np.empty(len(first))
    for start in range(0, len(first), _PAIRS):
        here = slice(start, start + _PAIRS)
        a, b = rows[first[here]], rows[second[here]]
        if sparse.issparse(rows):
            out[here] = np.asarray(a.multiply(b).sum(axis=1)).ravel()
        else:
            out[here] = np.einsum("ij,ij->i", a, b)
    out[(first == second) & (out > 0.5)] = 1.0  # the same text, but for rounding
    return np.clip(out, -1.0, 1.0)


def jaccard_of_pairs(words: Any, first: IntArray, second: IntArray) -> FloatArray:
    """Return the overlap of the word sets of each pair; 0 where both are empty."""
    size = np.diff(words.indptr).astype(np.float64)
    shared = np.empty(len(first))
    for start in range(0, len(first), _PAIRS):
        here = slice(start, start + _PAIRS)
        both = words[first[here]].multiply(words[second[here]])
        shared[here] = np.asarray(both.sum(axis=1)).ravel()
    union = size[first] + size[second] - shared
    return np.divide(shared, union, out=np.zeros(len(first)), where=union > 0)
