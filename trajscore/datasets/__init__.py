"""Data to try things on: bundled, public, and made with a known truth."""

from trajscore.datasets._balrog import fetch_balrog
from trajscore.datasets._chess import load_chess
from trajscore.datasets._evaluator import fetch_evaluator
from trajscore.datasets._expected_cost import fetch_expected_cost
from trajscore.datasets._game24 import fetch_game24
from trajscore.datasets._intercode import fetch_intercode
from trajscore.datasets._logs import fetch_logs
from trajscore.datasets._synthetic import make_trajectories
from trajscore.datasets._win_probability import fetch_win_probability

__all__ = [
    "fetch_balrog",
    "fetch_evaluator",
    "fetch_expected_cost",
    "fetch_game24",
    "fetch_intercode",
    "fetch_logs",
    "fetch_win_probability",
    "load_chess",
    "make_trajectories",
]
