"""From texts to rows: scikit-learn transformers."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline

from trajscore.tracer._kept import Store

# The rows of texts, in numbers that are not 0: some 50 MB.
_ROWS = Store(1 << 22)
# A longer text is cut, and its end is kept: what was said last.
MAX_CHARACTERS = 60_000


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
        return make_pipeline(
            _CharacterCounts(analyzer="char", ngram_range=(3, 3), n_features=1 << 18),
            TfidfTransformer(),
        )
    if embedder == "wordllama":
        return WordLlamaEmbedder()
    return SentenceTransformerEmbedder(embedder)


class _CharacterCounts(HashingVectorizer):
    """Counts texts once that come again, as those of other folds do."""

    def transform(self, X: Any) -> csr_matrix:
        """Return one row a text."""
        texts, parameters = list(X), tuple(self.get_params().values())
        rows = {text: _ROWS.get((text, parameters)) for text in texts}
        new = [text for text, row in rows.items() if row is None]
        if new:
            table = super().transform(new)
            for text, start, stop in zip(new, table.indptr, table.indptr[1:], strict=False):
                rows[text] = table.indices[start:stop].copy(), table.data[start:stop].copy()
                _ROWS.put((text, parameters), rows[text], int(stop - start))
        found = [rows[text] for text in texts]
        indices, data = (np.concatenate(part) for part in zip(*found, strict=True))
        ends = np.cumsum([0, *(len(row[0]) for row in found)])
        return csr_matrix((data, indices, ends), shape=(len(texts), self.n_features))


class _Pretrained(TransformerMixin, BaseEstimator):
    """A model that learns nothing from the texts that it is given."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: the model is trained already."""
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed texts, one row each; those of similar length are embedded fastest."""
        return np.asarray(self._embed([text[-MAX_CHARACTERS:] for text in X]), dtype=np.float32)

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
    """Static word vectors that ship inside the package ``wordllama``; works offline.

    Parameters
    ----------
    dim : {64, 128, 256}, default=256
        Number of columns; fewer are the first ones.

    See Also
    --------
    trajscore.TracerSignals : Takes it, or the name "wordllama".

    Examples
    --------
    >>> from trajscore.tracer import WordLlamaEmbedder
    >>> WordLlamaEmbedder().transform(["my flight"]).shape  # doctest: +SKIP
    (1, 256)
    """

    def __init__(self, dim: int = 256) -> None:
        self.dim = dim

    def _embed(self, texts: list[str]) -> Any:
        rows = _wordllama().embed(texts, batch_size=max(1, len(texts)))
        return np.asarray(rows)[:, : self.dim]


class SentenceTransformerEmbedder(_Pretrained):
    """A model of the package ``sentence-transformers``.

    Parameters
    ----------
    model_name : str
        Name or folder of the model.
    device : str, optional
        Where it runs; default: the package's choice.

    See Also
    --------
    trajscore.TracerSignals : Takes it, or the model's name.

    Examples
    --------
    >>> from trajscore.tracer import SentenceTransformerEmbedder
    >>> SentenceTransformerEmbedder("all-MiniLM-L6-v2")
    SentenceTransformerEmbedder(model_name='all-MiniLM-L6-v2')
    """

    def __init__(self, model_name: str, device: str | None = None) -> None:
        self.model_name = model_name
        self.device = device

    def _embed(self, texts: list[str]) -> Any:
        return _sentence_transformer(self.model_name, self.device).encode(
            texts, show_progress_bar=False
        )


@lru_cache(maxsize=1)
def _wordllama() -> Any:
    try:
        import wordllama
    except ImportError as error:
        raise ImportError(
            'embedder="wordllama" needs the package wordllama; run '
            '`pip install "scikit-trajscore[embed]"`, or use embedder="char"'
        ) from error
    return wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )


@lru_cache(maxsize=2)
def _sentence_transformer(name: str, device: str | None) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            f"embedder={name!r} is taken for a model of sentence-transformers, which is not "
            f'installed; run `pip install "scikit-trajscore[sentence-transformers]"`, or use '
            f'embedder="char"'
        ) from error
    return SentenceTransformer(name, device=device)
