"""The search of weights: its grids, its loss, and scores of a grid as the scorer gives them."""

import itertools

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.tracer import TracerScorer, _tuning
from trajscore.tracer._tuning import grid_scores, pairwise_logistic_loss, tuned

LABELS = np.array([0, 1, 1, 0, -1])
GRID = {
    "alpha": [0.0, 0.5], "beta": [1.0, 2.0, 3.0], "gamma": [0.3, 1.5], "k": [0.2, 0.5, 1.0],
    "w": [0.0, 0.4, 1.0],
}  # fmt: skip


@pytest.mark.parametrize("pairs", [1, 9, 1 << 22])
def test_loss_is_the_mean_over_pairs(rng, monkeypatch, pairs):
    monkeypatch.setattr(_tuning, "_PAIRS", pairs)
    risk = rng.random((3, 2, 5))
    losses = pairwise_logistic_loss(LABELS, risk, 0.5)
    assert losses.shape == (3, 2)
    for i, j in np.ndindex(3, 2):
        margins = [(risk[i, j, a] - risk[i, j, b]) / 0.5 for a in (0, 3) for b in (1, 2)]
        assert losses[i, j] == pytest.approx(np.mean(np.log1p(np.exp(-np.array(margins)))))


@pytest.mark.parametrize("labels", [[0, 0, -1], [1, 1, -1]])
def test_loss_needs_both_classes(labels):
    with pytest.raises(ValueError, match="tune needs failures and successes"):
        pairwise_logistic_loss(np.array(labels), np.zeros((1, 3)), 1.0)


@pytest.mark.parametrize("aggregation", ["max", "additive", "separate", "multiplicative"])
@pytest.mark.parametrize("actors", ["both", "agent"])
def test_grid_is_that_of_the_scorer(signals_of, aggregation, actors):
    X = signals_of(np.random.default_rng(1), n_runs=8, absent=0.1)
    X = X[X.lengths > 2]
    arrays = {name: np.array(values) for name, values in GRID.items()}
    scores = grid_scores(X, **arrays, aggregation=aggregation, actors=actors)
    assert scores.shape == (2, 3, 2, 3, 3, len(X))
    for place in [(0, 0, 0, 0, 0), (1, 2, 1, 2, 2), (1, 1, 0, 1, 1), (0, 2, 1, 0, 1)]:
        setting = {name: GRID[name][at] for name, at in zip(GRID, place, strict=True)}
        scorer = TracerScorer(**setting, aggregation=aggregation, actors=actors).fit(X)
        np.testing.assert_allclose(scores[place], scorer.score_samples(X), rtol=1e-12)


def search(monkeypatch, target, w=0.25, tau=1.0):
    """Tune where one setting is best; return the grids that were asked for, and the answer."""
    grids = []

    def recorded(X, *, aggregation, actors, **grid):
        grids.append({name: values.tolist() for name, values in grid.items()})
        off = np.array([
            sum(abs(value - aim) for value, aim in zip(setting, target, strict=True))
            for setting in itertools.product(*grid.values())
        ]).reshape([len(values) for values in grid.values()])  # fmt: skip
        return np.stack([-off if label == 0 else 0 * off for label in (0, 1)], axis=-1)

    monkeypatch.setattr(_tuning, "grid_scores", recorded)
    X = TrajectoryArray(np.ones((3, 1)), [1, 1, 1], channels=("surprisal",))
    options = {"aggregation": "max", "actors": "both"}
    # the last run has no outcome
    return grids, tuned(X, np.array([0, 1, -1]), w, tau, **options)


def test_coarse_then_fine_then_mix(monkeypatch):
    grids, (best, loss) = search(monkeypatch, (0.0, 0.61, 4.9, 0.9, 0.7))
    weights = [0, 0.25, 0.5, 1, 2, 4]
    coarse = {"alpha": weights, "beta": weights, "gamma": weights, "w": [0.25]}
    assert grids[0] == {**coarse, "k": [0.05, 0.1, 0.2, 0.3, 0.5, 1]}
    assert grids[1] == {
        "alpha": [0],
        "beta": [0.3, 0.4, 0.5, 0.625, 0.8],
        "gamma": [2.4, 3.2, 4, 5, 6.4],
        "k": [0.6, 0.8, 1],
        "w": [0.25],
    }
    mixes = [0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    fine = {"alpha": [0], "beta": [0.625], "gamma": [5], "w": mixes}
    assert [grids[2] | {"k": []}, len(grids)] == [fine | {"k": []}, 3]
    assert best == {"alpha": 0, "beta": 0.625, "gamma": 5, "k": grids[2]["k"][0], "w": 0.7}
    off = 0.015 + 0.1 + 0.1
    assert loss == pytest.approx(np.log1p(np.exp(off)))


def test_the_smallest_of_settings_that_are_equally_good(monkeypatch):
    _, (best, loss) = search(monkeypatch, (0.375, 0.0, 0.0, 0.05, 0.1), tau=0.5)
    assert best["alpha"] == pytest.approx(0.4)  # 0.25 and 0.5 are equally near; then finer
    assert loss == pytest.approx(np.log1p(np.exp(0.025 / 0.5)))


@pytest.mark.parametrize(
    ("cells", "codes"), [([1.0, 1.0], [-1, -1]), ([np.nan, np.nan], [0, 1]), ([1, np.nan], [-1, 1])]
)
def test_needs_outcomes_and_components(cells, codes):
    X = TrajectoryArray(np.array(cells)[:, None], [1, 1], channels=("surprisal",), missing="allow")
    with pytest.raises(ValueError, match="tune needs runs that have an outcome and a recorded"):
        tuned(X, np.array(codes), 0.5, 1.0, aggregation="max", actors="both")
