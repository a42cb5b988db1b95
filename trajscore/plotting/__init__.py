"""Pictures, as scikit-learn's Display objects: data first, drawn on request."""

from trajscore.plotting._costs import (
    CostConfidenceDisplay,
    CostCurveDisplay,
    RiskCoverageDisplay,
    SampledDecisionsDisplay,
)
from trajscore.plotting._profile import LengthDisplay, StepProfileDisplay
from trajscore.plotting._reliability import ReliabilityDisplay
from trajscore.plotting._scores import ScoreDisplay

__all__ = [
    "CostConfidenceDisplay",
    "CostCurveDisplay",
    "LengthDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SampledDecisionsDisplay",
    "ScoreDisplay",
    "StepProfileDisplay",
]
