"""
Confidence in chat logs
=======================

A small model looked for a ring, in chats with log-probabilities. What did it claim, and does that
hold? :doc:`/user_guide/confidences` says how to log such chats.
"""

from trajscore import PlattCrossFitCalibrator, StepConfidence, io
from trajscore.datasets import load_real_runs

log = load_real_runs().filename  # or your own file
runs = [run for run in io.read_runs(log) if run.extra["family"] == "ring" and run.outcome >= 0]
runs = [run for run in runs if run.extra["model"] == "gemma3_270m"]
runs[0].steps

# %%
X, y = StepConfidence().fit_transform(runs)["token_probability"], io.outcomes(runs)
X.to_frame().head()

# %%
from trajscore.plotting import ReliabilityDisplay

recalibrated = PlattCrossFitCalibrator().fit_transform(X, y)
display = ReliabilityDisplay.from_predictions(y, X, phi="mean", name="as given", color="#dd6611")
ReliabilityDisplay.from_predictions(
    y, recalibrated, phi="mean", ax=display.ax_, name="recalibrated", color="#0077bb"
)

# %%
# **What it decides.** How sure a model is of its words is not how likely the run is to succeed, but
# of use once recalibrated. A confidence that is stated in the text instead (a tag, JSON, a line) is
# an option of :class:`~trajscore.StepConfidence`.
