"""From texts to rows: scikit-learn transformers."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, normalize
from sklearn.utils import murmurhash3_32

from trajscore.core.optional import optional
from trajscore.core.values import is_iterable

# A longer text is cut, and its end is kept: what was said last.
MAX_CHARACTERS = 60_000
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
        return make_pipeline(FunctionTransformer(_triples), TfidfTransformer())
    if embedder == "wordllama":
        return WordLlamaEmbedder()
    return SentenceTransformerEmbedder(embedder)


def _triples(texts: list[str]) -> csr_matrix:
    """Count triples of characters, hashed as by HashingVectorizer, but each different one once."""
    lowered = [_SPACES.sub(" ", text.lower()) for text in texts]
    points = np.frombuffer("".join(lowered).encode(_CODE), dtype=np.uint32).astype(np.int64)
    sizes = np.array([len(text) for text in lowered])
    number = np.maximum(sizes - 2, 0)
    ends = np.concatenate([[0], np.cumsum(number)])
    # the triples of a text start at all of its characters but the last two
    starts = np.arange(ends[-1]) + np.repeat(np.cumsum(sizes) - sizes - ends[:-1], number)
    keys = (points[starts] << 42) | (points[starts + 1] << 21) | points[starts + 2]
    distinct, place = np.unique(keys, return_inverse=True)
    letters = np.stack([distinct >> 42, distinct >> 21 & _POINT, distinct & _POINT], axis=1)
    written = letters.astype("<u4").tobytes().decode(_CODE)
    hashed = np.array(
        [murmurhash3_32(written[k : k + 3].encode()) for k in range(0, len(written), 3)],
        dtype=np.int64,
    )
    column, sign = np.abs(hashed) % _COLUMNS, np.where(hashed < 0, -1.0, 1.0)
    table = csr_matrix((sign[place], column[place], ends), shape=(len(texts), _COLUMNS))
    table.sum_duplicates()
    return normalize(table, copy=False)


_COLUMNS, _POINT = 1 << 18, (1 << 21) - 1
_SPACES = re.compile(r"\s\s+")
_CODE = "utf-32-le"


class _Pretrained(TransformerMixin, BaseEstimator):
    """A model that learns nothing from the texts that it is given."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: the model is trained already."""
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed texts, one row each; those of similar length are embedded fastest."""
        texts = list(X) if is_iterable(X) else [X]
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"X must be texts, got {text!r}")
        return np.asarray(self._embed([text[-MAX_CHARACTERS:] for text in texts]), dtype=np.float32)

    def _embed(self, texts: list[str]) -> Any:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class WordLlamaEmbedder(_Pretrained):
    """Static word vectors that ship inside the package ``wordllama``; works offline."""

    def _embed(self, texts: list[str]) -> Any:
        return _wordllama().embed(texts, batch_size=max(1, len(texts)))


class SentenceTransformerEmbedder(_Pretrained):
    """A model of the package ``sentence-transformers``, by its name or folder."""

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name

    def _embed(self, texts: list[str]) -> Any:
        return _sentence_transformer(self.model_name).encode(texts, show_progress_bar=False)


@lru_cache(maxsize=1)
def _wordllama() -> Any:
    need = 'embedder="wordllama" needs the package wordllama'
    wordllama = optional("wordllama", need, "embed", _INSTEAD)
    return wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )


@lru_cache(maxsize=2)
def _sentence_transformer(name: str) -> Any:
    need = f"embedder={name!r} is taken for a model of sentence-transformers, not installed here"
    package = optional("sentence_transformers", need, "sentence-transformers", _INSTEAD)
    return package.SentenceTransformer(name)
