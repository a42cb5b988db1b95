import numpy as np
import pytest

from trajscore.metrics import censored_tps_samples, plug_in_regret

FAMILIES = ["log", "brier", ("beta", 2, 4)]


def last(X):
    return X.cells[X.offsets[1:] - 1]


def z_score(samples):
    return samples.mean() / (samples.std() / np.sqrt(len(samples)))


@pytest.mark.parametrize("score", FAMILIES, ids=str)
def test_exact_score_is_proper_and_simple_score_elicits_m(score, coin_budget):
    _, X, y, q, cut = coin_budget(30_000, 1)
    exact = {"q_z": last(q), "score": score}
    step = np.arange(len(q.cells)) - np.repeat(q.offsets[:-1], q.lengths) + 1
    # before the budget one in two of the long runs will be cut, and no one can tell which
    long = np.repeat(X.horizon > 3, X.lengths) & (step <= 3)
    m = q.with_cells(np.where(long, 0.5, 1.0) * q.cells)
    rivals = [q.with_cells(0.8 * q.cells + 0.1), q.with_cells(q.cells**1.5), m]
    truth = censored_tps_samples(y, q, **exact)
    for rival in rivals:
        assert z_score(truth - censored_tps_samples(y, rival, **exact)) > 4
    simple = censored_tps_samples(y, m, score=score)
    for rival in [q, m.with_cells(0.9 * m.cells), m.with_cells(0.8 * m.cells + 0.1)]:
        assert z_score(simple - censored_tps_samples(y, rival, score=score)) > 4
    assert cut.mean() > 0.2


@pytest.mark.parametrize("score", ["brier", ("beta", 2, 4)], ids=str)
def test_plug_in_regret_is_as_remark_c5_says(score, coin_budget):
    _, X, y, q, _ = coin_budget(30_000, 2, sharpness=1.6)
    plug = 0.7 * last(q) + 0.2
    step = np.arange(len(q.cells)) - np.repeat(q.offsets[:-1], q.lengths) + 1
    half = np.where(np.repeat(X.horizon > 3, X.lengths) & (step <= 3), 0.5, 0.0)
    mean = q.with_cells((1 - half) * q.cells + half * (0.7 * q.cells + 0.2))  # q_t is a martingale
    parts = plug_in_regret(q, X, mean, score=score)
    assert (np.abs(parts.bias) <= parts.bound + 1e-15).all()
    found = censored_tps_samples(y, q, q_z=plug, score=score) - censored_tps_samples(
        y, X, q_z=plug, score=score
    )
    assert abs(z_score(found - parts.total)) < 3.5
    assert abs(z_score(found - parts.oracle)) > 5  # the bias is there
