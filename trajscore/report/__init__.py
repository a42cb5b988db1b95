"""One call from traces to a verdict."""

from trajscore.evaluation.options import EvaluationOptions, MonitoringOptions
from trajscore.report._evaluate import evaluate
from trajscore.report._report import Report

__all__ = ["EvaluationOptions", "MonitoringOptions", "Report", "evaluate"]
