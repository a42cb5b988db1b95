"""Intervals for scores and their differences."""

from trajscore.inference._bootstrap import bootstrap, paired_bootstrap, percentile_interval

__all__ = ["bootstrap", "paired_bootstrap", "percentile_interval"]
