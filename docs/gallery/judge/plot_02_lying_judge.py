"""
Why does AUROC miss a lying judge?
==================================

Take forecasts that are right, and exaggerate them: 0.7 becomes 0.9, 0.3 becomes 0.1. The order of
runs is the same, so AUROC is the same. But what of someone who stops runs "below 0.1"?
"""

import numpy as np
from scipy.special import expit, logit

from trajscore.datasets import make_trajectories
from trajscore.metrics import tps_score, trajectory_diagnostics

# runs whose chance of success is known at every step
runs = make_trajectories(4000, lengths=8, random_state=0)
y, truth = runs.target, runs.data.with_cells(np.concatenate(runs.q))


def exaggerate(trace, factor):
    return trace.with_cells(expit(factor * logit(trace.cells)))


factors = np.linspace(0.25, 4, 16)
rows = []
for factor in factors:
    lie = exaggerate(truth, factor)
    rows.append(
        {
            "TPS log": tps_score(y, lie),
            "TPS brier": tps_score(y, lie, score="brier"),
            "AUROC": trajectory_diagnostics(y, lie, phi="last")["AUROC"],
        }
    )

# %%
import matplotlib.pyplot as plt

from trajscore.plotting import ReliabilityDisplay

_, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for name in rows[0]:
    values = np.array([row[name] for row in rows])
    shift = values - values[np.argmin(np.abs(factors - 1))]
    left.plot(factors, shift, label=name)
left.axvline(1, color="grey", linestyle=":", label="the truth")
left.set(xlabel="log-odds times", ylabel="change of the metric", title="which number notices?")
left.legend(frameon=False)
for name, factor in (("the truth", 1), ("exaggerated", 3)):
    shown = exaggerate(truth, factor)
    ReliabilityDisplay.from_predictions(y, shown, phi="last", ax=right, name=name)
plt.show()

# %%
# What a stop "below 0.1" does to the runs that would have succeeded:
for name, factor in (("the truth", 1), ("exaggerated", 2.6)):
    shown = exaggerate(truth, factor)
    stopped = np.array([run.min() < 0.1 for run in shown.to_list()])
    print(f"{name}: {stopped[y == 1].mean():.0%} of the good runs are stopped")

# %%
# **What it decides.** AUROC says whether runs are ranked well, and nothing about whether 0.9
# means 0.9: look at it beside a proper score, never alone. Both Trajectory Proper Scores are
# highest for the truth, and the log score minds a sure lie most.
