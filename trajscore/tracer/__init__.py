"""From runs of steps to confidences, and to the risk that a run fails."""

from trajscore.tracer._risk_scorer import SAUP, ChannelRisk, SemanticEntropy
from trajscore.tracer._tracer_scorer import TracerScorer
from trajscore.tracer._tracer_signals import TracerSignals
from trajscore.tracer.action_signals import ActionSignals
from trajscore.tracer.detection import early_warning
from trajscore.tracer.step_confidence import StepConfidence

__all__ = [
    "SAUP",
    "ActionSignals",
    "ChannelRisk",
    "SemanticEntropy",
    "StepConfidence",
    "TracerScorer",
    "TracerSignals",
    "early_warning",
]
