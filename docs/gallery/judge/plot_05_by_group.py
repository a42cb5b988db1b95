"""
Good on the whole, bad on a part?
=================================

One judge watches two kinds of tasks: public HotpotQA and GSM8K runs, 3,000 each. Judged together
it deserves recalibration and use. Does it on each?
"""

import numpy as np

from trajscore import TrajectoryArray, evaluate
from trajscore.datasets import fetch_evaluator

hotpot, solved_hotpot = fetch_evaluator("hotpotqa", return_X_y=True)
gsm, solved_gsm = fetch_evaluator("gsm8k", return_X_y=True)
X = TrajectoryArray.concat([hotpot[:3000], gsm[:3000]])
y = np.r_[solved_hotpot[:3000], solved_gsm[:3000]]
benchmark = np.repeat(["HotpotQA", "GSM8K"], 3000)

report = evaluate({"judge": X}, y, by={"benchmark": benchmark})
report.cards[["card"]]

# %%
report.by[["card", "p_value"]]

# %%
# The success rates differ (half, and five in six), so a forecast that is good on the whole may
# only distinguish the benchmarks. Each group is held against its own base rate:
import matplotlib.pyplot as plt

from trajscore.plotting import ReliabilityDisplay

_, ax = plt.subplots(figsize=(5, 5), layout="constrained")
for name in ("HotpotQA", "GSM8K"):
    here = benchmark == name
    ReliabilityDisplay.from_predictions(y[here], X[here], phi="last", ax=ax, name=name)
plt.show()

# %%
# One map for both is right for neither. With a map of its own, fitted to all of its runs, the judge
# is still not shown to be better on GSM8K than a constant:
evaluate({"judge": gsm}, solved_gsm).cards[["card"]]

# %%
# **What it decides.** A report first tests whether the groups differ (``p_value``). Where they do
# not, read the whole. Where they do, fit a map for each group, and report each.
