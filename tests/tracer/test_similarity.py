"""Texts embedded in batches, and similarities of pairs."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from trajscore.tracer import _similarity
from trajscore.tracer._similarity import Pairs, compare, cosine_of_pairs, embed, jaccard_of_pairs
from trajscore.tracer._turns import Words

TEXTS = ["dddd", "a", "ccc", "bb", ""]


class Lengths(BaseEstimator):
    """Embeds a text as its length and one; remembers the batches."""

    def __init__(self, as_sparse=False):
        self.as_sparse = as_sparse

    def fit(self, X, y=None):
        self.batches = []
        return self

    def transform(self, X):
        self.batches.append(list(X))
        rows = np.array([[len(text), 1.0] if text else [0, 0] for text in X])
        return sparse.csr_array(rows) if self.as_sparse else rows

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize(
    ("most_texts", "most_characters", "batches"),
    [
        (2, 99, [["", "a"], ["bb", "ccc"], ["dddd"]]),
        (3, 99, [["", "a", "bb"], ["ccc", "dddd"]]),
        (9, 6, [["", "a", "bb"], ["ccc"], ["dddd"]]),
        (9, 1, [[""], ["a"], ["bb"], ["ccc"], ["dddd"]]),
    ],
)
def test_batches(monkeypatch, as_sparse, most_texts, most_characters, batches):
    monkeypatch.setattr(_similarity, "_BATCH_TEXTS", most_texts)
    monkeypatch.setattr(_similarity, "_BATCH_CHARACTERS", most_characters)
    embedder, seen = Lengths(as_sparse).fit(TEXTS), []
    rows = embed(embedder, TEXTS, lambda bounds: seen.extend(bounds) or bounds)
    assert embedder.batches == batches
    assert seen[0][0] == 0
    assert seen[-1][1] == len(TEXTS)
    dense = rows.toarray() if as_sparse else rows
    root = np.sqrt
    expected = [[4 / root(17), 1 / root(17)], [root(0.5)] * 2, [3 / root(10), 1 / root(10)],
                [2 / root(5), 1 / root(5)], [0, 0]]  # fmt: skip
    np.testing.assert_allclose(dense, expected)


@pytest.mark.parametrize(
    ("lengths", "ends"),
    [
        ([9] * 300, [128, 256, 300]),
        ([9] * 128, [128]),
        ([1 << 18] * 9, [4, 8, 9]),  # a megabyte of characters
        ([1 << 19, 1 << 19, (1 << 20) + 1], [2, 3]),
        ([], [0]),
    ],
)
def test_sizes_of_batches(lengths, ends):
    assert list(_similarity._batches(lengths)) == list(zip([0, *ends[:-1]], ends, strict=True))


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("chunk", [1, 2, 99])
def test_cosines(monkeypatch, as_sparse, chunk):
    monkeypatch.setattr(_similarity, "_PAIRS", chunk)
    rows = np.array([[0.6, 0.8], [-0.6, -0.8], [0.8, 0.6], [0, 0], [1.0 + 1e-9, 0]])
    rows = sparse.csr_array(rows) if as_sparse else rows
    first, second = np.array([[0, 1], [0, 2], [0, 0], [3, 3], [4, 4], [2, 0]]).T
    cosines = cosine_of_pairs(rows, first, second)
    np.testing.assert_allclose(cosines, [-1, 0.96, 1, 0, 1, 0.96], rtol=1e-12)
    assert cosines[[2, 4]].tolist() == [1, 1]
    assert len(cosine_of_pairs(rows, first[:0], second[:0])) == 0


@pytest.mark.parametrize("chunk", [1, 2, 99])
def test_overlaps(monkeypatch, chunk):
    monkeypatch.setattr(_similarity, "_PAIRS", chunk)
    words = Words(["the"]).table(["red bag", "the red car here", "", "the", "blue"])
    first, second = np.array([[0, 1], [0, 0], [2, 3], [2, 0], [1, 4]]).T
    np.testing.assert_allclose(jaccard_of_pairs(words, first, second), [0.25, 1, 0, 0, 0])


def test_words_of_leading_pairs():
    pairs = Pairs(["red bag", "bag", "car"], np.array([0, 2, 0]), np.array([1, 0, 0]), 2)
    embedder, cosines, overlaps = compare(Lengths(), pairs, (), fit=True)
    assert len(embedder.batches) == 1
    far = (7 * 3 + 1) / np.sqrt(50 * 10)
    np.testing.assert_allclose(cosines, [far, far, 1])
    np.testing.assert_allclose(overlaps, [0.5, 0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones(2), r"returned an array of shape \(2,\) for 2 texts"),
        (np.ones((3, 1)), r"returned an array of shape \(3, 1\) for 2 texts"),
        (np.array([[1], [np.inf]]), "returned a row that is not finite"),
        (sparse.csr_array(np.array([[1], [np.nan]])), "returned a row that is not finite"),
    ],
)
def test_what_an_embedder_must_not_return(rows, message):
    with pytest.raises(ValueError, match=message):
        _similarity.as_rows(rows, 2)


def test_remembered_in_a_folder(tmp_path):
    calls = []

    def double(value, progress=None):
        calls.append(value)
        return 2 * value

    assert _similarity.cached(None, double) is double
    remembered = _similarity.cached(tmp_path, double)
    assert [remembered(2, progress=1), remembered(2, progress=2), remembered(3)] == [4, 4, 6]
    assert calls == [2, 3]
