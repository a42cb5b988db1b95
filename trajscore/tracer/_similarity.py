"""Texts of a dialogue: which are compared, embedded once, and how similar they are."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pandas.util import hash_array
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import FunctionTransformer, normalize

from trajscore.core.errors import optional
from trajscore.core.values import BoolArray, FloatArray, IntArray
from trajscore.io.vocabulary import whole_text
from trajscore.tracer.turns import Turns, content_words

# A longer text is cut, and its end is kept: what was said last.
MAX_CHARACTERS = 60_000
_BATCH_TEXTS = 16  # padded to the longest of them
_INSTEAD = ', or use embedder="char"'


def make_embedder(embedder: Any) -> Any:
    """Return a transformer from texts to rows, by name or as given."""
    if hasattr(embedder, "transform"):
        return embedder
    if not isinstance(embedder, str):
        raise ValueError(
            f"embedder must be 'char', 'wordllama', the name of a sentence-transformers model or "
            f"a transformer from texts to rows, got {embedder!r}"
        )
    if embedder == "char":
        return CharacterTriples()
    return FunctionTransformer(_pretrained_rows, kw_args={"name": embedder})


def _pretrained_rows(texts: list[str], name: str) -> NDArray[np.float32]:
    rows = _pretrained(name)([text[-MAX_CHARACTERS:] for text in texts])
    return np.asarray(rows, dtype=np.float32)


@lru_cache(maxsize=2)
def _pretrained(name: str) -> Callable[[list[str]], Any]:
    """Load a pretrained model; return its function from texts to rows."""
    if name == "wordllama":  # static word vectors that ship inside the package: works offline
        need = 'embedder="wordllama" needs the package wordllama'
        wordllama = optional("wordllama", need, "embed", _INSTEAD)
        folder = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        return lambda texts: model.embed(texts, batch_size=_BATCH_TEXTS)
    need = f"embedder={name!r} is taken for a model of sentence-transformers, not installed here"
    package = optional("sentence_transformers", need, "sentence-transformers", _INSTEAD)
    return partial(package.SentenceTransformer(name).encode, show_progress_bar=False)


_TRIPLES = HashingVectorizer(analyzer="char", ngram_range=(3, 3), n_features=1 << 18)


class CharacterTriples(BaseEstimator):
    """TF-IDF of hashed triples of characters, as by TfidfTransformer, which learns in one go."""

    def partial_fit(self, texts: list[str], y: Any = None) -> Self:
        """Count the texts that have a triple, beside those of earlier calls."""
        triples = _TRIPLES.transform(texts or [""]).indices
        having = np.bincount(triples, minlength=_TRIPLES.n_features)
        self.n_texts_ = getattr(self, "n_texts_", 0) + len(texts)
        self.n_having_ = getattr(self, "n_having_", 0) + having
        return self

    def transform(self, texts: list[str]) -> Any:
        """Return a sparse row of length one for each text."""
        rows = _TRIPLES.transform(texts)
        rows.data *= np.log((1 + self.n_texts_) / (1.0 + self.n_having_[rows.indices])) + 1
        return normalize(rows)


class TextsOfTurns:
    """Texts to embed, each once; for each turn the places of its texts, -1 where it has none.

    `speech` is what the agent says, `whole` a turn with its calls as text, `result` what the calls
    of an agent's turn returned.
    """

    def __init__(self, turns: Turns) -> None:
        steps = turns.steps
        self._place: dict[str, int] = {}
        self.speech = self.places(step.text if step.actor == "agent" else "" for step in steps)
        self.whole = self.places(turns.text_with_calls(turn) for turn in range(len(steps)))
        self.result = self.places(
            "\n".join(step.results) if step.actor == "agent" and step.tool_calls else ""
            for step in steps
        )

    @property
    def listed(self) -> list[str]:
        """The texts by place."""
        return list(self._place)

    def places(self, texts: Iterable[str]) -> IntArray:
        """Return the place of each text, -1 for an empty one."""
        place_of = self._place
        encodable = (whole_text(text.strip()) for text in texts)
        places = [place_of.setdefault(text, len(place_of)) if text else -1 for text in encodable]
        return np.array(places, dtype=np.int64)


class PairsOfTurns(NamedTuple):
    """Pairs of texts, and the turn that each says something about."""

    turn: IntArray
    first: IntArray
    second: IntArray


def pairs_with_earlier(turns: Turns, among: IntArray, text: IntArray, window: int) -> PairsOfTurns:
    """Pair each of some turns with each of the `window` ones before it, where both have a text."""
    run = turns.run_of
    pairs = [np.empty((2, 0), dtype=np.int64)]
    for back in range(1, min(window, len(among) - 1) + 1):
        now = among[back:]
        before = among[:-back]
        there = (run[now] == run[before]) & (text[now] >= 0) & (text[before] >= 0)
        pairs.append(np.stack([now[there], before[there]]))
    turn, before = np.concatenate(pairs, axis=1)
    return PairsOfTurns(turn, text[turn], text[before])


Calls = dict[tuple[int, str], int]
"""The last turn of each call of each run."""


def repeated_calls(turns: Turns, window: float, last: Calls) -> BoolArray:
    """Whether the agent makes a call in a turn that it made at most `window` turns before."""
    again = np.zeros(len(turns.steps), dtype=bool)
    for turn in np.flatnonzero(turns.is_agent).tolist():
        for call in {*turns.call_texts[turn]}:
            key = turns.run_of[turn], call
            if key in last and turn - last[key] <= window:
                again[turn] = True
            last[key] = turn
    return again


_PAIRS = 1 << 12


def word_overlaps(texts: list[str], pairs: PairsOfTurns) -> FloatArray:
    """Return the Jaccard overlap of the words of each pair of texts; 0 where both have none."""
    words_of = cache(lambda place: content_words(texts[place]))

    def overlap(first: int, second: int) -> float:
        union = words_of(first) | words_of(second)
        return len(words_of(first) & words_of(second)) / max(len(union), 1)

    return np.fromiter(map(overlap, pairs.first, pairs.second), dtype=float)


def new_texts(batches: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the texts of each batch that none before it has; hashes of all before are kept."""
    seen = np.zeros(1, dtype=np.uint64)
    for texts in batches:
        hashes = hash_array(np.array(texts, dtype=object), categorize=False)
        hashes, first = np.unique(hashes, return_index=True)
        place = np.searchsorted(seen, hashes)
        is_new = seen.take(place, mode="clip") != hashes
        seen = np.insert(seen, place[is_new], hashes[is_new])
        yield [texts[k] for k in first[is_new]]


def fit_embedder(embedder: Any, texts: list[str]) -> Any:
    """Fit an embedder on texts, for a cache to keep."""
    return embedder.fit(texts)


def embed(embedder: Any, texts: list[str]) -> Any:
    """Embed texts; rows of length one, or zero."""
    rows = embedder.transform(texts)
    # a product of sparse arrays is that of their cells, as of arrays
    rows = sparse.csr_array(rows) if sparse.issparse(rows) else np.asarray(rows, dtype=float)
    if rows.ndim != 2 or rows.shape[0] != len(texts):
        raise ValueError(
            f"the embedder returned an array of shape {rows.shape} for {len(texts)} texts; it must "
            f"return one row of numbers for each text"
        )
    if not np.isfinite(rows.sum()):
        raise ValueError("the embedder returned a row that is not finite")
    return normalize(rows)  # a zero row stays zero


def cosines(rows: Any, pairs: PairsOfTurns) -> FloatArray:
    """Return the cosine of each pair of rows, a limited number at a time; 0 where one is zero."""
    out = np.empty(len(pairs.turn))
    for start in range(0, len(out), _PAIRS):
        here = slice(start, start + _PAIRS)
        out[here] = (rows[pairs.first[here]] * rows[pairs.second[here]]).sum(axis=1)
    out[(pairs.first == pairs.second) & (out > 0.5)] = 1.0  # the same text, but for rounding
    return np.clip(out, -1.0, 1.0)
