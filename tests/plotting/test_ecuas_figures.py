"""What benchmarks/ecuas_figures.py draws."""

import numpy as np
import pytest

from scripts import load_script
from trajscore.metrics import ecuas_score


@pytest.fixture(scope="module")
def figures():
    return load_script("ecuas_figures")


@pytest.mark.parametrize("n_classes", [2, 4, np.inf])
@pytest.mark.parametrize("n", [0, 1, 4, 128])
def test_cost_against_confidence(figures, n, n_classes):
    confidence, right, wrong = figures.cost_of_answers(n, n_classes)
    assert confidence[0] == 1 / n_classes
    # both start at 1; right answers fall to 0, wrong ones rise
    assert right[0] == pytest.approx(1)
    assert wrong[0] == pytest.approx(1)
    assert right[-1] == pytest.approx(0, abs=1e-6)
    assert (np.diff(wrong) >= -1e-12).all()


def test_sampled_decisions(figures, rng):
    log_p = np.log(rng.dirichlet(np.ones(3), 400))
    y = (np.cumsum(np.exp(log_p), axis=1) < rng.random((400, 1))).sum(axis=1)
    for n in (0, 1, 128):
        cost = [figures.cost_of_sampling(y, log_p, n, t) for t in np.geomspace(0.05, 10, 7)]
        assert cost[0] == pytest.approx(ecuas_score(y, np.exp(log_p), n=n), abs=0.03)
        assert (np.diff(cost) > 0).all()
    cold = figures.cost_of_sampling(y, log_p, 1, 1e-4)
    assert cold == pytest.approx(ecuas_score(y, np.exp(log_p), n=1), abs=1e-6)


@pytest.mark.parametrize("n", [0, 1])
def test_certain_answers_are_scored_without_a_cap(figures, n):
    margin = np.array([[0.0, -50.0]] * 2)
    exact = ecuas_score([1, 1], margin, n=n, log_proba=True, labels=[0, 1])
    found = figures.cost_of_sampling(np.array([1, 1]), margin, n, 0.05)
    assert found == pytest.approx(exact)


def test_pictures(figures, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ecuas_figures.py", str(tmp_path)])
    figures.main()
    assert len(list(tmp_path.glob("*.png"))) == 2
