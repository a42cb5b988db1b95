import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.datasets import make_trajectories


@pytest.fixture(scope="session")
def runs():
    return make_trajectories(120, lengths=(2, 14), random_state=0, return_X_y=True)


@pytest.fixture(scope="session")
def signals():
    cells = np.random.default_rng(0).random((50, 5))
    cells[:, 4] = np.arange(50) % 2
    cells[cells[:, 4] == 0, 1] = np.nan
    names = ["surprisal", "repetition", "agent_gap", "user_gap", "is_agent"]
    return TrajectoryArray(cells, [40, 10], channels=names, ids=["a", "b"], missing="allow")
