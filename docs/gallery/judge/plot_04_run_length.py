"""
Is it beating run length?
=========================

On many agents long runs fail, so the number of steps so far is itself a predictor, and a free
one. 16,110 public HotpotQA runs, each step with a judge's probability that the run will succeed:
does the judge know more than a step counter?
"""

from trajscore import evaluate
from trajscore.datasets import fetch_evaluator
from trajscore.plotting import LengthDisplay

X, y = fetch_evaluator("hotpotqa", return_X_y=True)
LengthDisplay.from_predictions(y, X)

# %%
# Runs of one step all fail, and those that reach the cap of seven mostly: a counter knows
# much.
report = evaluate({"judge": X}, y)
report.table[
    ["TPS log margin", "TPS log margin_low", "TPS log margin_high", "AUROC", "S-ECE"]
].round(3)

# %%
# ``length`` is the counter. As given, the judge is worth no more than it; its AUROC of .715 alone
# would never have said so. Recalibrated, it is worth five times as much.
from trajscore.plotting import ScoreDisplay

ScoreDisplay.from_intervals(report.intervals, "TPS log")

# %%
# **What it decides.** A judge that costs a call per step is worth paying for here only with the
# map that recalibrates it.
