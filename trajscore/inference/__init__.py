"""Intervals for scores and their differences."""

from trajscore.inference._label_design import LabelDesign, labels_needed
from trajscore.inference._labels import label_intervals
from trajscore.inference._sequential import SequentialComparison
from trajscore.inference.comparison import compare_predictors, runs_needed
from trajscore.inference.mean_intervals import bootstrap, paired_bootstrap

__all__ = [
    "LabelDesign",
    "SequentialComparison",
    "bootstrap",
    "compare_predictors",
    "label_intervals",
    "labels_needed",
    "paired_bootstrap",
    "runs_needed",
]
