"""
Is it beating run length?
=========================

With many agents long runs fail, so the number of steps so far is itself a predictor, and a free
one. 16,110 public HotpotQA runs, each step with a judge's probability that the run will succeed:
does the judge know more than a step counter?
"""

from trajscore import evaluate
from trajscore.datasets import fetch_evaluator
from trajscore.report import EvaluationOptions

X, y = fetch_evaluator("hotpotqa", return_X_y=True)

# %%
# Of runs of one step 0.1% succeed, of those of two to six steps 72% to 83%, of those that reach the
# cap of seven 13%: a counter knows much.
report = evaluate({"judge": X}, y)
report.table[
    ["TPS log margin", "TPS log margin_low", "TPS log margin_high", "AUROC", "S-ECE"]
].round(3)

# %%
# The *alive rate* is the counter: the success rate of the runs that are still going. As given, the
# judge is worth less than a constant; its AUROC alone would never have said so. Recalibrated, it is
# worth more than counting.
from trajscore.plotting import ScoreDisplay

ScoreDisplay.from_intervals(report.intervals, "TPS log")

# %%
# The last row is a counter that also knows which step of a run is the last. It is ahead of the
# judge: what it knows of runs of one step, the judge does not say. Whoever acts while runs are
# under way cannot know that, so here the first counter counts:
report = evaluate({"judge": X}, y, options=EvaluationOptions(end=False))
print(report.verdicts()[0])

# %%
# **What it decides.** A judge that costs a call per step is worth paying for here only with the
# map that recalibrates it. If you judge runs that are over, count steps first: it is free.
