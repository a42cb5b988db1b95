"""Pictures, as scikit-learn's Display objects: ``from_...`` computes and draws, `plot` draws again.

The numbers behind a picture are attributes of its display; ``ax=`` says where to draw, and other
arguments go to matplotlib.
"""

from trajscore.plotting._costs import (
    CostConfidenceDisplay,
    CostCurveDisplay,
    SampledDecisionsDisplay,
)
from trajscore.plotting._decomposition import DecompositionDisplay
from trajscore.plotting._monitoring import EProcessDisplay, PowerDisplay, SavingsDisplay
from trajscore.plotting._murphy import MurphyDisplay
from trajscore.plotting._profile import LengthDisplay, StepProfileDisplay
from trajscore.plotting._reliability import ReliabilityDisplay
from trajscore.plotting._risk_coverage import RiskCoverageDisplay
from trajscore.plotting._scores import ScoreDisplay
from trajscore.plotting._termination import TerminationDisplay
from trajscore.plotting._tracer import EarlyWarningDisplay, TracerStripDisplay

__all__ = [
    "CostConfidenceDisplay",
    "CostCurveDisplay",
    "DecompositionDisplay",
    "EProcessDisplay",
    "EarlyWarningDisplay",
    "LengthDisplay",
    "MurphyDisplay",
    "PowerDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SampledDecisionsDisplay",
    "SavingsDisplay",
    "ScoreDisplay",
    "StepProfileDisplay",
    "TerminationDisplay",
    "TracerStripDisplay",
]
