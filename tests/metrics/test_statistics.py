from functools import partial

import numpy as np
import pytest

from trajscore.metrics import _ranking
from trajscore.metrics._statistics import MeanOfRuns, OfSums, OfTies, all_at_once

N_RUNS = 60


@pytest.fixture
def counts(rng):
    return rng.integers(0, 4, (5, N_RUNS)).astype(float)


def ratio(sums):
    with np.errstate(invalid="ignore"):
        return sums[..., 0] / sums[..., -1]


@pytest.fixture
def table(rng):
    """Means, ratios and rank metrics of all runs, and the same of every third."""
    rows = np.arange(0, N_RUNS, 3)
    made = {}
    for name, here in (("all", None), ("third", rows)):
        n = N_RUNS if here is None else len(here)
        ties = _ranking.TieGroups(rng.integers(0, 5, n) / 4, rng.integers(0, 2, n).astype(float))
        ece = partial(_ranking.ece, confidence=ties.confidence)
        made |= {
            f"{name} auroc": OfTies(ties, _ranking.auroc, here),
            f"{name} mean": MeanOfRuns(rng.normal(size=n), here),
            f"{name} ece": OfTies(ties, ece, here),
            f"{name} ratio": OfSums(rng.random((n, 2)), ratio, here),
            f"{name} other": MeanOfRuns(rng.normal(size=n), here),
            f"{name} share": OfSums(rng.random((n, 3)), ratio, here),
        }
    return made


def test_a_count_is_that_many_runs(rng, counts):
    samples, c, y = rng.normal(size=N_RUNS), rng.integers(0, 9, N_RUNS) / 8, np.arange(N_RUNS) % 2.0
    found = MeanOfRuns(samples)(counts)
    ranked = OfTies(_ranking.TieGroups(c, y), _ranking.aurc)(counts)
    divided = OfSums(np.stack([samples, c], axis=1), ratio)(counts)
    for k, row in enumerate(counts):
        repeated = np.repeat(np.arange(N_RUNS), row.astype(int))
        once = np.ones(len(repeated))
        assert found[k] == pytest.approx(samples[repeated].mean())
        assert divided[k] == pytest.approx(samples[repeated].sum() / c[repeated].sum())
        alone = OfTies(_ranking.TieGroups(c[repeated], y[repeated]), _ranking.aurc)
        assert ranked[k] == pytest.approx(float(alone(once)), abs=1e-12)


def test_rows_are_the_runs_that_count(table, counts):
    for one in table.values():
        if one.rows is not None:
            others = counts.copy()
            others[:, np.setdiff1d(np.arange(N_RUNS), one.rows)] += 7
            np.testing.assert_array_equal(one(others), one(counts))


def test_a_table_is_its_metrics_one_by_one(table, counts):
    values = all_at_once(table)
    assert values(counts).shape == (5, 12)
    for column, one in enumerate(table.values()):
        np.testing.assert_allclose(values(counts)[:, column], one(counts), 1e-14, 1e-15)
        np.testing.assert_allclose(values(counts[2])[column], one(counts[2]), 1e-14, 1e-15)


def test_runs_are_added_up_once(table, counts):
    seen = []

    class Watched(_ranking.TieGroups):
        def sums(self, weights):
            seen.append(weights.shape)
            return super().sums(weights)

    ties = Watched(np.arange(N_RUNS) / 9, np.arange(N_RUNS) % 2.0)
    names = ("auroc", "auprc", "aurc")
    all_at_once({name: OfTies(ties, getattr(_ranking, name)) for name in names})(counts)
    assert seen == [(5, N_RUNS)]


def test_no_runs_have_no_metrics(table):
    assert np.isnan(all_at_once(table)(np.zeros((2, N_RUNS)))).all()
