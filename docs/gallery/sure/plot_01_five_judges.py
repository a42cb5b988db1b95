"""
Which of five judges is better?
===============================

Two intervals that overlap prove nothing, and among ten pairs of judges one looks better by
chance. Compare run by run, and let the intervals hold together.
"""

from trajscore import PlattCrossFitCalibrator
from trajscore.datasets import load_chess
from trajscore.inference import compare_predictors
from trajscore.metrics import tps_samples

X, y = load_chess(return_X_y=True)
X, y = X[y >= 0], y[y >= 0]
platt = PlattCrossFitCalibrator()
judges = {
    "engine, as given": X["engine"],
    "engine, recalibrated": platt.fit_transform(X["engine"], y),
    "shallow, recalibrated": platt.fit_transform(X["shallow"], y),
    "material, as given": X["material"],
    "material, recalibrated": platt.fit_transform(X["material"], y),
}
scores = {name: tps_samples(y, trace, score="brier") for name, trace in judges.items()}
table = compare_predictors(scores, random_state=0)
table[["predictor", "reference", "difference", "low", "high", "p_holm"]].round(4)

# %%
import matplotlib.pyplot as plt
import numpy as np

_, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
place = np.arange(len(table))[::-1]
spread = [table["difference"] - table["low"], table["high"] - table["difference"]]
ax.errorbar(table["difference"], place, xerr=spread, fmt="o", color="#0077bb")
ax.axvline(0, color="#777777", linestyle="--")
ax.set_yticks(place, table["predictor"] + " - " + table["reference"])
ax.set(xlabel="difference of Brier scores (right: the first is better)")
plt.show()

# %%
# **What it decides.** Every recalibrated judge beats the engine as given. Among the recalibrated
# ones, no interval excludes zero: take the cheapest, or collect more runs.
