import pytest

from trajscore.datasets import make_trajectories


@pytest.fixture
def runs():
    return make_trajectories(120, random_state=0, return_X_y=True)
