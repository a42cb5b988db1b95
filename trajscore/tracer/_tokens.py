"""Tokens that carry content: for surprisal, and for the lexical side of repetition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

_FUNCTION_WORDS = """
    a about after again all also am an and any are as at be because been before being but by can
    could did do does for from had has have he her here him his how i if in into is it its just
    may me might my no nor not now of off on once only or other our out over please shall she
    should so some such than that the their them then there these they this those through to too
    under until up very was we were what when where which while who whom why will with would you
    your
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Function words that say little of what a turn is about."""

_EDGES = ".,!?;:()[]{}<>\"'`*#-_/|\u2019\u2018\u201c\u201d\u3002\u3001\uff0c\uff01\uff1f"
_NUMERIC = re.compile(r"[\d.,:/%$€£+-]*\d[\d.,:/%$€£+-]*")
# scripts that do not put spaces between words: each character stands for itself
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")


def content_word(token: str, stop_words: frozenset[str]) -> str | None:
    """Return the bare word, or None for a stop word, a number or punctuation."""
    word = token.strip().lower().strip(_EDGES)
    if not word or word in stop_words or _NUMERIC.fullmatch(word):
        return None
    return word


class Words:
    """Content words of texts, with what is known of a token kept for the next time.

    Parameters
    ----------
    stop_words : iterable of str
        Words that carry no content.
    """

    def __init__(self, stop_words: Iterable[str]) -> None:
        self._stop_words = frozenset(stop_words)
        self._known: dict[str, str | None] = {}

    def is_content(self, token: str) -> bool:
        """Tell whether a token carries content."""
        return self._word(token) is not None

    def of(self, text: str) -> set[str]:
        """Return the content words of a text."""
        if not text.isascii():
            text = _UNSPACED.sub(r" \1 ", text)
        found = {self._word(token) for token in set(text.split())}
        found.discard(None)
        return found  # type: ignore[return-value]

    def _word(self, token: str) -> str | None:
        try:
            return self._known[token]
        except KeyError:
            word = self._known[token] = content_word(token, self._stop_words)
            return word

    def table(self, texts: Sequence[str]) -> csr_array:
        """Return a matrix of 0 and 1, a row for each text and a column for each word."""
        column: dict[str, int] = {}
        columns: list[int] = []
        ends = [0]
        for text in texts:
            columns += [column.setdefault(word, len(column)) for word in sorted(self.of(text))]
            ends.append(len(columns))
        ones = np.ones(len(columns))
        shape = (len(texts), max(1, len(column)))
        return csr_array((ones, np.array(columns, dtype=np.int64), np.array(ends)), shape=shape)


def content_mask(
    tokens: Sequence[str] | None, logprobs: NDArray[np.float64], least: float, words: Words
) -> NDArray[np.bool_]:
    """Tell which tokens of a turn count: surprising enough, and with content where known."""
    counted = logprobs <= -least  # False for NaN
    if tokens is not None and counted.any():
        for place in np.flatnonzero(counted).tolist():
            counted[place] = words.is_content(tokens[place])
    return counted
