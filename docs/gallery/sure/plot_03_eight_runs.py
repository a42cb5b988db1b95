"""
Eight runs: what can be said?
=============================

A demonstration has eight runs. The table looks as for eight thousand, but for its intervals.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from trajscore.datasets import make_trajectories
from trajscore.inference import paired_bootstrap, runs_needed
from trajscore.metrics import tps_samples

X, y = make_trajectories(4000, lengths=8, random_state=0, return_X_y=True)
gain = tps_samples(y, X, score="brier") - tps_samples(
    y, X.with_cells(np.full(len(X.cells), y.mean())), score="brier"
)
print(f"in truth these forecasts are {gain.mean():.3f} better than the base rate")

# %%
# Twenty demonstrations of eight runs each, and of 200:
_, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, layout="constrained")
rng = np.random.default_rng(1)
for ax, n in zip(axes, (8, 200), strict=True):
    for k in range(20):
        some = gain[rng.permutation(len(gain))[:n]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are few runs is the point
            found = paired_bootstrap(
                pd.DataFrame({"gain": some}), n_resamples=500, random_state=k
            ).loc["gain"]
        ax.plot(found[["low", "high"]], [k, k], color="#0077bb")
        ax.plot(some.mean(), k, "o", color="#0077bb", markersize=4)
    ax.axvline(0, color="#777777", linestyle="--")
    ax.axvline(gain.mean(), color="#777777", linestyle=":")
    ax.set(title=f"{n} runs each", xlabel="gain over the base rate", yticks=[])
plt.show()

# %%
print(f"to show this gain takes {runs_needed(gain.mean(), gain)} runs")

# %%
# **What it decides.** With eight runs the sign is open: report them as stories, one by one, not
# as a rate. The number above is what a comparison takes.
