"""A few reports, made once, of which many questions are asked."""

from types import SimpleNamespace

import numpy as np
import pytest

from judged import drawn, evaluate
from trajscore import TrajectoryArray
from trajscore.datasets import load_chess, make_trajectories

QUICK = drawn(50, method="influence")


@pytest.fixture(scope="session")
def quick():
    """Intervals without replicates."""
    return QUICK


@pytest.fixture(scope="session")
def fast():
    """Options of `evaluate` that take little time: one score, no maps, no replicates."""
    return {"calibrator": None, "families": "log", "intervals": QUICK}


@pytest.fixture(scope="session")
def chess():
    return load_chess(return_X_y=True)


@pytest.fixture(scope="session")
def report(chess):
    """Three predictors of 360 games, of which 67 have no outcome."""
    return evaluate(*chess, intervals=drawn(200))


@pytest.fixture(scope="session")
def page(report):
    return report.to_html()


@pytest.fixture(scope="session")
def short_wins():
    """Runs of which short ones succeed, and what sees each outcome dimly."""
    rng = np.random.default_rng(3)
    y = (rng.random(300) < 0.4).astype(int)
    lengths = np.where(y == 1, rng.integers(1, 9, 300), rng.integers(3, 15, 300))
    ids = [f"r{k:03d}" for k in rng.permutation(300)]
    seen = 1.5 * np.repeat(y, lengths) - 0.7 + rng.normal(0, 1, lengths.sum())
    return TrajectoryArray(1 / (1 + np.exp(-seen)), lengths, ids=ids), y


@pytest.fixture(scope="session")
def counted(short_wins):
    """Report of `short_wins`, in which counting steps is worth something."""
    return evaluate(*short_wins, intervals=QUICK)


@pytest.fixture(scope="session")
def budget():
    """Runs of which a budget of six steps leaves some without an outcome."""
    made = make_trajectories(200, lengths=(2, 9), budget=6, random_state=0)
    return made.data, made.target


@pytest.fixture(scope="session")
def useful():
    """Predictors of a thousand runs of which is known what is to be done with them."""
    runs = make_trajectories(1000, lengths=(3, 8), information=0.35, random_state=0)
    p, rng = runs.q.cells, np.random.default_rng(0)
    cells = {
        "noise": rng.random(len(p)),
        "constant": np.full(len(p), 0.5),
        "true": p,
        "sharp": p**4 / (p**4 + (1 - p) ** 4),
        "signal": 7 * p,
    }
    X = {name: runs.q.with_cells(values) for name, values in cells.items()}
    report = evaluate(X, runs.target, intervals=QUICK)
    return SimpleNamespace(X=X, y=runs.target, report=report)


@pytest.fixture(scope="session")
def grouped():
    """Kinds of runs, in one of which what is said is turned round, and groups drawn at random."""
    runs = make_trajectories(600, lengths=(3, 8), information=0.35, random_state=0)
    kind = np.where(np.arange(600) % 7 == 0, "turned", np.tile(["one", "two"], 300))
    turned = np.repeat(kind == "turned", runs.q.lengths)
    X = runs.q.with_cells(np.where(turned, 1 - runs.q.cells, runs.q.cells))
    by = {"kind": kind, "alike": np.random.default_rng(0).integers(0, 4, 600)}
    report = evaluate(X, runs.target, by=by, calibrator=None, intervals=QUICK)
    return SimpleNamespace(X=X, y=runs.target, by=by, report=report)
