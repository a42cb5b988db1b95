"""From texts to rows: scikit-learn transformers."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, normalize
from sklearn.utils import murmurhash3_32

from trajscore.core.optional import optional

# A longer text is cut, and its end is kept: what was said last.
MAX_CHARACTERS = 60_000
_INSTEAD = ', or use embedder="char"'
# of the triples: columns that they are hashed to; 21 bits, which hold any code point
_COLUMNS, _POINT = 1 << 18, (1 << 21) - 1
_SPACES = re.compile(r"\s\s+")
_CODE = "utf-32-le"


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
        return FunctionTransformer(_wordllama_rows)
    return FunctionTransformer(_sentence_rows, kw_args={"model_name": embedder})


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


def _wordllama_rows(texts: list[str]) -> NDArray[np.float32]:
    """Embed by static word vectors that ship inside the package; works offline."""
    rows = _wordllama().embed(_ends(texts), batch_size=max(1, len(texts)))
    return np.asarray(rows, dtype=np.float32)


def _sentence_rows(texts: list[str], model_name: str) -> NDArray[np.float32]:
    rows = _sentence_transformer(model_name).encode(_ends(texts), show_progress_bar=False)
    return np.asarray(rows, dtype=np.float32)


def _ends(texts: list[str]) -> list[str]:
    return [text[-MAX_CHARACTERS:] for text in texts]


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
