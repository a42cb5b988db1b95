"""
Calibrated at every step, miscalibrated when averaged?
======================================================

Papers often average a run's confidences and plot the mean against the outcome. Do that with the
*true* chances of success, and it looks underconfident.
"""

import matplotlib.pyplot as plt
import numpy as np

from trajscore.datasets import make_trajectories
from trajscore.plotting import ReliabilityDisplay

runs = make_trajectories(20_000, lengths=12, random_state=0)
y, truth = runs.target, runs.data.with_cells(np.concatenate(runs.q))

_, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", sharey=True)
for ax, steps in zip(axes, (3, 12), strict=False):
    ReliabilityDisplay.from_predictions(y, truth.prefix(steps), phi="last", ax=ax, name="the truth")
    ax.set_title(f"at step {steps}")
ReliabilityDisplay.from_predictions(y, truth, phi="mean", ax=axes[2], name="the same, averaged")
axes[2].set_title("mean over the run")
plt.show()

# %%
# Early forecasts lie near the base rate, because little is known yet; averaged with late ones
# they pull every run towards the middle. Nothing is wrong with any of the forecasts.
from trajscore.metrics import step_calibration_error, trajectory_diagnostics

print(f"calibration error of the steps    {step_calibration_error(y, truth):.3f}")
print(
    f"calibration error of their mean   {trajectory_diagnostics(y, truth, phi='mean')['T-ECE']:.3f}"
)

# %%
# **What it decides.** Judge forecasts step by step (S-ECE, Trajectory Proper Scores). For one
# number at the end, take the last forecast, not the mean.
