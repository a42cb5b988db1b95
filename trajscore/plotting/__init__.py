"""Pictures, as scikit-learn's Display objects: data first, drawn on request."""

from trajscore.plotting._costs import (
    CostConfidenceDisplay,
    CostCurveDisplay,
    RiskCoverageDisplay,
    SampledDecisionsDisplay,
)
from trajscore.plotting._decomposition import DecompositionDisplay
from trajscore.plotting._murphy import MurphyDisplay
from trajscore.plotting._profile import LengthDisplay, StepProfileDisplay
from trajscore.plotting._reliability import ReliabilityDisplay
from trajscore.plotting._scores import ScoreDisplay
from trajscore.plotting._tracer import EarlyWarningDisplay, TracerStripDisplay

__all__ = [
    "CostConfidenceDisplay",
    "CostCurveDisplay",
    "DecompositionDisplay",
    "EarlyWarningDisplay",
    "LengthDisplay",
    "MurphyDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SampledDecisionsDisplay",
    "ScoreDisplay",
    "StepProfileDisplay",
    "TracerStripDisplay",
]
