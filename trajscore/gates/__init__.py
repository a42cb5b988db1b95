"""Gates for agents: is this version worse than the last one, or is it chance?"""

from trajscore.gates._check import check
from trajscore.gates._compare import compare
from trajscore.gates._gate import Gate
from trajscore.gates._run_set import RunSet

__all__ = ["Gate", "RunSet", "check", "compare"]
