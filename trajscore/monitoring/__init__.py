"""Stop failing runs early, with a promise to those that would succeed."""

from trajscore.monitoring._eprocess import DensityRatioEProcess
from trajscore.monitoring._monitor import Decision, EProcessMonitor
from trajscore.monitoring._stopping import StoppingRule, clopper_pearson

__all__ = [
    "Decision",
    "DensityRatioEProcess",
    "EProcessMonitor",
    "StoppingRule",
    "clopper_pearson",
]
