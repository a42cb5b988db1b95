"""Pictures, as scikit-learn's Display objects: ``from_...`` computes and draws, `plot` draws again.

The numbers behind a picture are attributes of its display; ``ax=`` says where to draw, and other
arguments go to matplotlib.
"""

from trajscore.plotting._answers import CostCurveDisplay, ReliabilityDisplay, RiskCoverageDisplay
from trajscore.plotting._monitors import EProcessDisplay, FleetDisplay, PowerDisplay, SavingsDisplay
from trajscore.plotting._score import (
    DecompositionDisplay,
    ScoreDisplay,
    StepProfileDisplay,
    TerminationDisplay,
)
from trajscore.plotting._tracer import EarlyWarningDisplay, FirstErrorDisplay, TracerStripDisplay

__all__ = [
    "CostCurveDisplay",
    "DecompositionDisplay",
    "EProcessDisplay",
    "EarlyWarningDisplay",
    "FirstErrorDisplay",
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
