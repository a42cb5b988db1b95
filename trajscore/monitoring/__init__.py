"""Stop failing runs early, with a guarantee to those that would succeed."""

from trajscore.monitoring._eprocess import DensityRatioEProcess
from trajscore.monitoring._evaluation import split_report, token_savings
from trajscore.monitoring._fleet import FleetMonitor
from trajscore.monitoring._monitor import EProcessMonitor
from trajscore.monitoring._one_limit import CalibratedVerifier, LearnThenTestStop, RawVerifier
from trajscore.monitoring._stopping_rule import StoppingRule
from trajscore.monitoring.thresholds import Conformal, Pac, PacMarginal

__all__ = [
    "CalibratedVerifier",
    "Conformal",
    "DensityRatioEProcess",
    "EProcessMonitor",
    "FleetMonitor",
    "LearnThenTestStop",
    "Pac",
    "PacMarginal",
    "RawVerifier",
    "StoppingRule",
    "split_report",
    "token_savings",
]
