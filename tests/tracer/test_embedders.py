"""From texts to rows: triples of characters, and models that are trained already."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from trajscore.tracer import _embedders
from trajscore.tracer._embedders import (
    SentenceTransformerEmbedder,
    WordLlamaEmbedder,
    _triples,
    make_embedder,
)

TEXTS = ["Where is my bag?", "", "ab", "abc", "aaaaaa", "WHERE  is\n\nmy bag?", "где мой 🧳 багаж"]


def test_triples_are_those_of_scikit_learn():
    expected = HashingVectorizer(analyzer="char", ngram_range=(3, 3), n_features=1 << 18)
    found = _triples(TEXTS)
    np.testing.assert_allclose((found - expected.transform(TEXTS)).toarray(), 0, atol=1e-12)
    assert found.shape == (7, 1 << 18)
    assert found.has_canonical_format
    lengths = np.asarray(found.multiply(found).sum(axis=1)).ravel()
    np.testing.assert_allclose(lengths, [1, 0, 0, 1, 1, 1, 1])
    # of one text alone as among others
    for k, text in enumerate(TEXTS):
        assert abs(_triples([text]) - found[[k]]).sum() < 1e-12


def test_texts_without_triples():
    assert _triples(["", "ab"]).nnz == 0


def test_embedders_by_name():
    rows = make_embedder("char").fit_transform(TEXTS)
    cosine = (rows @ rows.T).toarray()
    assert cosine[0, 5] == pytest.approx(1)  # but for case and repeated space
    assert cosine[0, 6] == pytest.approx(0, abs=0.1)
    assert isinstance(make_embedder("wordllama"), WordLlamaEmbedder)
    assert make_embedder("all-MiniLM").model_name == "all-MiniLM"
    own = CountVectorizer()
    assert make_embedder(own) is own
    with pytest.raises(ValueError, match="embedder must be 'char', .*, got 3"):
        make_embedder(3)


@pytest.fixture
def library(monkeypatch, tmp_path):
    """Stand in for both libraries; the rows that they return are lengths of texts."""
    seen = []

    def lengths(texts, **options):
        seen.append(options)
        return [[len(text), 1] for text in texts]

    model = SimpleNamespace(embed=lengths, encode=lengths)
    llama = SimpleNamespace(
        WordLlama=SimpleNamespace(load=lambda **options: seen.append(options) or model),
        __file__=str(tmp_path / "wordllama" / "__init__.py"),
    )
    transformers = SimpleNamespace(SentenceTransformer=lambda name: seen.append(name) or model)
    monkeypatch.setitem(sys.modules, "wordllama", llama)
    monkeypatch.setitem(sys.modules, "sentence_transformers", transformers)
    for cached in (_embedders._wordllama, _embedders._sentence_transformer):
        cached.cache_clear()
    yield seen
    for cached in (_embedders._wordllama, _embedders._sentence_transformer):
        cached.cache_clear()


@pytest.mark.parametrize("embedder", [WordLlamaEmbedder(), SentenceTransformerEmbedder("m")])
def test_models_that_are_trained_already(library, embedder):
    rows = embedder.transform(["a", "bcd"])
    assert (rows.tolist(), rows.dtype) == ([[1, 1], [3, 1]], np.float32)
    long = "x" * 60_000
    assert embedder.transform([long, "y" + long])[:, 0].tolist() == [60_000, 60_000]
    assert embedder.fit(["a"]) is embedder
    for bad in ([3], 3):
        with pytest.raises(ValueError, match="X must be texts, got 3"):
            embedder.transform(bad)
    tags = embedder.__sklearn_tags__()
    assert (tags.requires_fit, tags.input_tags.string, tags.input_tags.two_d_array) == (
        False, True, False,
    )  # fmt: skip


def test_a_model_is_loaded_once_and_offline(library, tmp_path):
    embedder = WordLlamaEmbedder()
    for texts in (["a"], ["a", "b", "c"], []):
        embedder.transform(texts)
    load, *calls = library
    assert load == {"cache_dir": tmp_path / "wordllama", "disable_download": True}
    assert [call["batch_size"] for call in calls] == [1, 3, 1]


def test_models_are_kept_by_name(library):
    for name in ("m", "n", "m"):
        SentenceTransformerEmbedder(name).transform(["a"])
    assert [one for one in library if isinstance(one, str)] == ["m", "n"]


def test_missing_libraries_are_named(monkeypatch):
    for package, embedder in (
        ("wordllama", WordLlamaEmbedder()),
        ("sentence_transformers", SentenceTransformerEmbedder("m")),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        _embedders._wordllama.cache_clear()
        _embedders._sentence_transformer.cache_clear()
        with pytest.raises(ImportError, match='or use embedder="char"'):
            embedder.transform(["a"])
