"""
Monitor a live agent
====================

The same process, one score at a time: after each step it says go on or stop.
"""

import matplotlib.pyplot as plt
import numpy as np

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories

X, y = make_trajectories(2000, lengths=(4, 14), random_state=0, return_X_y=True)
process = DensityRatioEProcess(alpha=0.1).fit(X[:1500], y[:1500])
monitor = process.monitor()

# %%
# Six runs arrive. Each is followed until it is flagged or ends; ``done=True`` says that it has
# ended, which is information too.
_, ax = plt.subplots(layout="constrained")
for k in range(1500, 1506):
    run, path, flagged = X.ids[k], [], False
    scores = X[k]
    for step, score in enumerate(scores, start=1):
        decision = monitor.update(score, run, done=step == len(scores))
        path.append(decision.log_e_value)
        if decision.flagged:
            flagged = True
            monitor.reset(run)  # the agent is stopped here
            break
    color = "#0077bb" if y[k] else "#dd6611"
    ax.plot(np.arange(1, len(path) + 1), path, color=color)
    ax.plot(len(path), path[-1], marker="X" if flagged else "o", color=color)
    word = "stopped" if flagged else "ran to its end"
    would = "succeeded" if y[k] else "failed"
    print(f"run {run}: {word} at step {len(path)} of {len(scores)}; would have {would}")
ax.axhline(decision.log_threshold, color="#777777", linestyle="--", label="threshold")
ax.set(xlabel="step", ylabel="log of the evidence against the run")
ax.legend(frameon=False)
plt.show()

# %%
# **What it decides.** The monitor is the guarantee of the batch, run by run. Beside an agent in
# another language, ``trajscore monitor`` reads JSON lines and answers each at once.
