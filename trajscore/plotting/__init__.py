"""Pictures, as scikit-learn's Display objects: ``from_...`` computes and draws, `plot` draws again.

The numbers behind a picture are attributes of its display; ``ax=`` says where to draw, and other
arguments go to matplotlib.
"""

from trajscore.plotting._answers import CostCurveDisplay, RiskCoverageDisplay
from trajscore.plotting._decomposition import DecompositionDisplay
from trajscore.plotting._early_warning import EarlyWarningDisplay
from trajscore.plotting._eprocess import EProcessDisplay
from trajscore.plotting._fleet import FleetDisplay
from trajscore.plotting._reliability import ReliabilityDisplay
from trajscore.plotting._score import ScoreDisplay
from trajscore.plotting._step_profile import StepProfileDisplay
from trajscore.plotting._stopping_rules import PowerDisplay, SavingsDisplay
from trajscore.plotting._termination import TerminationDisplay
from trajscore.plotting._tracer_strip import TracerStripDisplay

__all__ = [
    "CostCurveDisplay",
    "DecompositionDisplay",
    "EProcessDisplay",
    "EarlyWarningDisplay",
    "FleetDisplay",
    "PowerDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SavingsDisplay",
    "ScoreDisplay",
    "StepProfileDisplay",
    "TerminationDisplay",
    "TracerStripDisplay",
]
