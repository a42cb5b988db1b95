import pytest

from trajscore import evaluate
from trajscore.datasets import load_chess
from trajscore.report import IntervalOptions


@pytest.fixture(scope="session")
def chess():
    return load_chess(return_X_y=True)


@pytest.fixture(scope="session")
def report(chess):
    return evaluate(*chess, intervals=IntervalOptions(200))
