import numpy as np
import pytest

from trajscore.core import ranking
from trajscore.core.statistics import (
    CalibrationError,
    MeanOfRuns,
    OfTies,
    all_at_once,
)

N_RUNS = 60


@pytest.fixture
def counts(rng):
    return rng.integers(0, 4, (5, N_RUNS)).astype(float)


@pytest.fixture
def table(rng):
    """Means, calibration errors and rank metrics of all runs, and the same of every third."""
    rows = np.arange(0, N_RUNS, 3)
    made = {}
    for name, here in (("all", None), ("third", rows)):
        n = N_RUNS if here is None else len(here)
        ties = ranking.TieGroups(rng.integers(0, 5, n) / 4, rng.integers(0, 2, n).astype(float))
        made |= {
            f"{name} auroc": OfTies(ties, ranking.auroc, here),
            f"{name} mean": MeanOfRuns(rng.normal(size=n), here),
            f"{name} error": CalibrationError(rng.normal(size=(n, 3)), rng.random(n), here),
            f"{name} other": MeanOfRuns(rng.normal(size=n), here),
            f"{name} gap": CalibrationError(rng.normal(size=(n, 1)), rng.random(n), here),
        }
        steps = rng.uniform(0.5, 3, n)  # what a run adds to the divisor of two scores
        made |= {
            f"{name} score": MeanOfRuns(rng.normal(size=n), here, divisor=steps),
            f"{name} rival": MeanOfRuns(rng.normal(size=n), here, divisor=steps),
            f"{name} ratio": MeanOfRuns(rng.normal(size=n), here, divisor=rng.random(n)),
        }
    return made


def test_a_count_is_that_many_runs(rng, counts):
    samples, c, y = rng.normal(size=N_RUNS), rng.integers(0, 9, N_RUNS) / 8, np.arange(N_RUNS) % 2.0
    found = MeanOfRuns(samples)(counts)
    steps = rng.uniform(0.5, 3, N_RUNS)
    ratio = MeanOfRuns(samples, divisor=steps)(counts)
    ranked = OfTies(ranking.TieGroups(c, y), ranking.aurc)(counts)
    gap = CalibrationError(samples[:, None], c)(counts)
    for k, row in enumerate(counts):
        repeated = np.repeat(np.arange(N_RUNS), row.astype(int))
        once = np.ones(len(repeated))
        assert found[k] == pytest.approx(samples[repeated].mean())
        assert ratio[k] == pytest.approx(samples[repeated].sum() / steps[repeated].sum())
        assert gap[k] == pytest.approx(abs(samples[repeated].sum() / c[repeated].sum()))
        alone = OfTies(ranking.TieGroups(c[repeated], y[repeated]), ranking.aurc)
        assert ranked[k] == pytest.approx(float(alone(once)), abs=1e-12)


def test_rows_are_the_runs_that_count(table, counts):
    for one in table.values():
        if one.rows is not None:
            others = counts.copy()
            others[:, np.setdiff1d(np.arange(N_RUNS), one.rows)] += 7
            np.testing.assert_array_equal(one(others), one(counts))


def test_a_table_is_its_metrics_one_by_one(table, counts):
    values = all_at_once(table)
    assert values(counts).shape == (5, 16)
    for column, one in enumerate(table.values()):
        np.testing.assert_allclose(values(counts)[:, column], one(counts), 1e-14, 1e-15)
        np.testing.assert_allclose(values(counts[2])[column], one(counts[2]), 1e-14, 1e-15)


def test_runs_are_added_up_once(table, counts):
    seen = []

    class Watched(ranking.TieGroups):
        def sums(self, weights):
            seen.append(weights.shape)
            return super().sums(weights)

    ties = Watched(np.arange(N_RUNS) / 9, np.arange(N_RUNS) % 2.0)
    names = ("auroc", "auprc", "aurc")
    all_at_once({name: OfTies(ties, getattr(ranking, name)) for name in names})(counts)
    assert seen == [(5, N_RUNS)]


def test_no_runs_have_no_metrics(table):
    assert np.isnan(all_at_once(table)(np.zeros((2, N_RUNS)))).all()


@pytest.mark.parametrize("grades", [2, 5])
def test_influences_are_derivatives_in_the_weights_of_runs(rng, grades):
    n_runs, rows = 40, np.arange(1, 40, 2)
    confidence, success = rng.integers(0, 6, 20) / 7, rng.integers(0, grades, 20) / (grades - 1)
    ties = ranking.TieGroups(confidence, success)
    functions = (ranking.auroc, ranking.auprc, ranking.aurc)
    statistics = [OfTies(ties, function, rows) for function in functions]
    statistics.append(CalibrationError(rng.normal(size=(20, 3)), rng.random(20), rows))
    step = 1e-6 * np.eye(n_runs)
    statistics.append(MeanOfRuns(rng.normal(size=20), rows))
    statistics.append(MeanOfRuns(rng.normal(size=20), rows, divisor=rng.uniform(0.5, 3, 20)))
    weight = rng.uniform(0.5, 2, n_runs)
    for one in statistics:
        numeric = n_runs * (one(1 + step) - one(1 - step)) / 2e-6
        np.testing.assert_allclose(one.influence(n_runs), numeric, atol=1e-7)
        assert (one.influence(n_runs)[::2] == 0).all()
        # in the logarithm of other weights
        moved = weight * np.exp(np.stack([step, -step]))
        numeric = n_runs * np.subtract(*one(moved)) / 2e-6
        np.testing.assert_allclose(one.influence(n_runs, weight), numeric, atol=1e-7)


def test_pseudo_values_have_the_mean_and_the_influences_of_a_ratio(rng):
    samples, steps = rng.normal(size=N_RUNS), rng.uniform(0.5, 3, N_RUNS)
    ratio = MeanOfRuns(samples, divisor=steps)
    values = ratio.pseudo_values()
    assert values.mean() == pytest.approx(samples.sum() / steps.sum(), abs=1e-14)
    np.testing.assert_allclose(values - values.mean(), ratio.influence(N_RUNS), atol=1e-13)
    np.testing.assert_array_equal(MeanOfRuns(samples).pseudo_values(), samples)


def test_what_a_run_adds_had_it_ended_the_other_way():
    mean = MeanOfRuns(np.array([1.0, 2, 3]), other=np.array([0.0, 4, 3]))
    np.testing.assert_allclose(mean.change(3), [-1 / 3, 2 / 3, 0])
    np.testing.assert_allclose(mean.change(3, np.array([2.0, 1, 1])), [-2 / 4, 2 / 4, 0])
    assert MeanOfRuns(np.array([1.0, 2])).change(2).tolist() == [0, 0]
    ratio = MeanOfRuns(np.array([1.0, 2]), np.array([3, 1]), np.array([5.0, 0]), np.array([2.0, 4]))
    np.testing.assert_allclose(ratio.change(5), [0, -2 / 6, 0, 4 / 6, 0])
    weight = np.array([1.0, 2, 3, 4, 5])
    np.testing.assert_allclose(ratio.change(5, weight), [0, 2 * -2 / 16, 0, 4 * 4 / 16, 0])
    flipped = MeanOfRuns(np.array([5.0, 2]), ratio.rows, divisor=ratio.divisor)
    assert flipped(weight) - ratio(weight) == pytest.approx(ratio.change(5, weight)[3])


def test_differences_of_means():
    rows, steps = np.array([2, 0]), np.array([1.0, 3])
    first = MeanOfRuns(np.array([1.0, 2]), rows, np.array([3.0, 5]), steps)
    second = MeanOfRuns(np.array([4.0, 1]), rows, np.array([1.0, 1]), steps)
    difference = first - second
    assert difference.samples.tolist() == [-3, 1]
    assert difference.other.tolist() == [2, 4]
    assert (difference.rows is rows, difference.divisor is steps) == (True, True)
    unknown = MeanOfRuns(np.array([4.0, 1]), rows, None, steps)
    assert (first - unknown).other is None
    assert (unknown - first).other is None
