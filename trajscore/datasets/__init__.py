"""Data to try things on: bundled, public, and made with a known truth."""

from trajscore.datasets._chess import load_chess
from trajscore.datasets._evaluator import fetch_evaluator
from trajscore.datasets._synthetic import make_trajectories

__all__ = ["fetch_evaluator", "load_chess", "make_trajectories"]
