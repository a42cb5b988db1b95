"""
Recalibrate a judge: what changes?
==================================

16,110 public HotpotQA runs with a judge's probability at every step. A map with two numbers is
fitted on half of the runs and judged on the other half, both ways round.
"""

import matplotlib.pyplot as plt

from trajscore import PlattCrossFitCalibrator
from trajscore.datasets import fetch_evaluator
from trajscore.metrics import step_calibration_error, tps_score, trajectory_diagnostics
from trajscore.plotting import ReliabilityDisplay, StepProfileDisplay

X, y = fetch_evaluator("hotpotqa", return_X_y=True)
recalibrated = PlattCrossFitCalibrator().fit_transform(X, y)  # out of fold

_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for name, trace, color in (("as given", X, "#dd6611"), ("recalibrated", recalibrated, "#0077bb")):
    ReliabilityDisplay.from_predictions(y, trace, phi="last", ax=left, name=name, color=color)
    StepProfileDisplay.from_predictions(y, trace, ax=right, name=name, color=color)
plt.show()

# %%
# The gain grows along the run: late in long runs the judge is sure, and too often wrong.
import pandas as pd

pd.DataFrame(
    {
        name: {
            "TPS log": tps_score(y, trace),
            "S-ECE": step_calibration_error(y, trace),
            "AUROC": trajectory_diagnostics(y, trace)["AUROC"],
        }
        for name, trace in (("as given", X), ("recalibrated", recalibrated))
    }
).round(3)

# %%
# **What it decides.** The ranking hardly moves, so nothing is lost by recalibrating, and
# thresholds mean something afterwards. The map belongs to this agent, these tasks and this judge:
# fit it anew when one of them changes.
