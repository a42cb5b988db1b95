"""
What does stopping early save?
==============================

A stopped run costs nothing more; a stopped *good* run costs a success. Which rule keeps the most
successes for what it spends?
"""

import numpy as np

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories
from trajscore.monitoring import CalibratedVerifier, RandomStop, token_savings
from trajscore.plotting import SavingsDisplay

X, y = make_trajectories(4000, lengths=(6, 20), information=0.8, random_state=1, return_X_y=True)
# every turn is paid with all turns before it in its prompt, so late steps cost most
turn = np.concatenate([np.arange(1, n + 1) for n in X.lengths])
tokens = X.with_cells(500.0 + 300.0 * turn)

train, new = slice(0, 2000), slice(2000, None)
rules = {
    "e-process": DensityRatioEProcess(alpha=[0.05, 0.1, 0.2]),
    "recalibrated score": CalibratedVerifier(alpha=[0.05, 0.1, 0.2]),
    "at random": RandomStop(alpha=[0.05, 0.1, 0.2]),
}
for rule in rules.values():
    rule.fit(X[train], y[train])
SavingsDisplay.from_estimator(rules, X[new], y[new], cost=tokens[new])

# %%
savings = token_savings(rules["e-process"], X[new], y[new], cost=tokens[new])
savings.at_alpha[["cost_share", "accuracy_share"]].round(3)

# %%
# How cheap may it get if 95% of the successes are to be kept?
print(f"{savings.point(0.95).cost_share:.0%} of {savings.total_cost:,.0f} tokens")

# %%
# The two rules that look at scores save equally much; the e-process says beforehand how many good
# runs it will stop.
#
# **What it decides.** Read the curve at the successes that you must keep. A rule below the dashed
# line is worse than stopping a random share of runs before they start.
