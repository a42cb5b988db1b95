import pytest

from trajscore import evaluate
from trajscore.datasets import load_chess


@pytest.fixture(scope="session")
def chess():
    return load_chess(return_X_y=True)


@pytest.fixture(scope="session")
def report(chess):
    return evaluate(*chess, bootstrap=200)
