"""A fitted process where agents run: before each call of the model it says whether to go on."""

from trajscore.integrations._guard import Guard
from trajscore.integrations._watch import Look, StopRun

__all__ = ["Guard", "Look", "StopRun"]
