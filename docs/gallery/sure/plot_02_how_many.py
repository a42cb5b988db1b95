"""
How many runs do I need?
========================

A pilot shows how much the difference of two judges varies from run to run. That fixes how many
runs show a difference that matters.
"""

import matplotlib.pyplot as plt
import numpy as np

from trajscore import PlattCrossFitCalibrator
from trajscore.datasets import load_chess
from trajscore.inference import runs_needed
from trajscore.metrics import tps_samples

X, y = load_chess(return_X_y=True)
X, y = X[y >= 0], y[y >= 0]
one, other = (
    tps_samples(y, PlattCrossFitCalibrator().fit_transform(X[name], y), score="brier")
    for name in ("shallow", "material")
)
difference = one - other
print(f"the pilot: {len(y)} games, a difference of {difference.mean():+.4f}")

# %%
effects = np.geomspace(0.002, 0.05, 30)
_, ax = plt.subplots(layout="constrained")
for power in (0.8, 0.9):
    paired = [runs_needed(effect, difference, power=power) for effect in effects]
    ax.loglog(effects, paired, label=f"paired, found with chance {power:g}")
unpaired = [runs_needed(effect, sd=np.hypot(one.std(), other.std())) for effect in effects]
ax.loglog(effects, unpaired, "--", color="#777777", label="on different runs, 0.8")
ax.axvline(abs(difference.mean()), color="#777777", linestyle=":", label="as in the pilot")
ax.set(xlabel="difference of Brier scores", ylabel="runs needed")
ax.set_xticks([0.002, 0.005, 0.01, 0.02, 0.05], ["0.002", "0.005", "0.01", "0.02", "0.05"])
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()

# %%
# Trials of one task resemble each other, and count for less:
tasks = np.arange(len(y)) // 4
alike = np.repeat(np.random.default_rng(0).normal(size=tasks.max() + 1), 4)[: len(y)]
times = runs_needed(0.1, alike, groups=tasks) / runs_needed(0.1, alike)
print(f"4 trials a task, wholly alike: {times:.1f} times as many runs")

# %%
# **What it decides.** Judge both on the same runs: that alone saves four in five of them. And
# settle on the smallest difference that would change what you do, before you look.
