"""Intervals for scores and their differences."""

from trajscore.inference._compare import compare_predictors
from trajscore.inference._label_design import LabelDesign, labels_needed
from trajscore.inference._labels import label_intervals
from trajscore.inference._sequential import SequentialComparison
from trajscore.inference.mean_intervals import bootstrap, paired_bootstrap
from trajscore.inference.sample_size import runs_needed

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
