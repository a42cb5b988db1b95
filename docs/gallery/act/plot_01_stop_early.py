"""
Stop failing runs early: how many good ones die?
================================================

"Stop below 0.2" stops some runs that would have succeeded, and nobody knows how many. A threshold
that held-out successes set flags at most the share of good runs that you allow.
"""

import numpy as np

from trajscore import DensityRatioEProcess
from trajscore.datasets import fetch_evaluator
from trajscore.monitoring import RawVerifier
from trajscore.plotting import EProcessDisplay, PowerDisplay

X, y = fetch_evaluator("hotpotqa", return_X_y=True)
rows = np.random.default_rng(0).permutation(len(y))
known, new = rows[:3000], rows[3000:]
levels = [0.02, 0.05, 0.1, 0.2]
process = DensityRatioEProcess(alpha=levels).fit(X[known], y[known])
rules = {"e-process": process, "score below alpha": RawVerifier(alpha=levels).fit(X[known])}
PowerDisplay.from_estimator(rules, X[new], y[new])

# %%
# On the left, what was promised: the e-process follows the diagonal, give or take what one set of
# known runs scatters (a cross: more than the new runs alone would explain). "Score below alpha"
# promises nothing: it lies far below, and finds next to no failing run.
shown = ["false_alarm_rate", "power", "power_before_end", "steps_saved"]
process.report(X[new], y[new])[shown].round(3)

# %%
# What happens inside: the evidence against a run grows as scores come in.
EProcessDisplay.from_estimator(process, X[new], y[new], alpha=0.1)

# %%
# **What it decides.** Choose alpha as the share of good runs that you can afford to lose. "Power
# before the end" counts the failing runs that stopping shortens: a flag at the last step saves
# nothing.
