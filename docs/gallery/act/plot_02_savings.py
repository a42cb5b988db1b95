"""
What does stopping early save, and what does it lose?
=====================================================

A stopped run costs nothing more; a stopped *good* run costs a success. The level alpha trades one
for the other, so try several before you choose.
"""

import matplotlib.pyplot as plt
import numpy as np

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories
from trajscore.monitoring import Conformal

X, y = make_trajectories(4000, lengths=(6, 20), information=0.8, random_state=1, return_X_y=True)
train, new = slice(0, 2000), slice(2000, None)
levels = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4]

_, ax = plt.subplots(layout="constrained")
for name, threshold in (("default", "conformal"), ("end_worth=0.3", Conformal(end_worth=0.3))):
    process = DensityRatioEProcess(threshold=threshold, alpha=levels).fit(X[train], y[train])
    table = process.report(X[new], y[new])
    ax.plot(table["false_alarm_rate"], table["steps_saved_overall"], marker="o", label=name)
for alpha in (0.05, 0.1, 0.2, 0.4):
    point = table.loc[alpha, ["false_alarm_rate", "steps_saved_overall"]]
    ax.annotate(f"alpha = {alpha}", point, (-8, 4), textcoords="offset points", ha="right")
ax.set(xlabel="share of successes lost", ylabel="share of all steps saved", xlim=(-0.08, None))
ax.legend(loc="lower right")
plt.show()

# %%
# Steps need not cost the same. Here every turn is paid with all turns before it in its prompt, so
# late steps cost most, and a flag saves more than its share of the steps:
turn = np.concatenate([np.arange(1, n + 1) for n in X.lengths])
tokens = X.with_cells(500.0 + 300.0 * turn)
table = process.report(X[new], y[new], cost=tokens[new])
table[["false_alarm_rate", "steps_saved_overall", "cost_saved_overall"]].round(3)

# %%
# **What it decides.** Move right while the cost that you save is worth more to you than the
# successes that you lose, and take the alpha of that point. Report its rates on other runs than
# those you chose it on: the best of many points looks better than it is.

# %%
# Live, the same process says after each score whether to go on. Six runs arrive; ``done=True`` says
# that a run has ended, which is information too. Beside an agent in another language,
# ``trajscore monitor`` reads JSON lines and answers each at once.
monitor = DensityRatioEProcess(alpha=0.1).fit(X[train], y[train]).monitor()
for k in range(2000, 2006):
    for step, score in enumerate(X[k], start=1):
        decision = monitor.update(score, X.ids[k], done=step == X.lengths[k])
        if decision.flagged:
            break  # the agent is stopped here
    word = "stopped" if decision.flagged else "ran to its end"
    would = "succeeded" if y[k] else "failed"
    print(f"run {X.ids[k]}: {word} at step {step} of {X.lengths[k]}; would have {would}")
