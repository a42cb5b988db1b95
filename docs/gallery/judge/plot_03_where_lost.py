"""
Where is the score lost?
========================

Two predictors may be equally bad for opposite reasons: one ranks runs well and states the
wrong chances, the other is honest and sees nothing. The first needs a recalibration, the second a
better signal.
"""

from trajscore import PlattCrossFitCalibrator
from trajscore.datasets import load_chess
from trajscore.plotting import DecompositionDisplay

X, y = load_chess(return_X_y=True)
X, y = X[y >= 0], y[y >= 0]  # games that came to their end
judges = {
    "engine": X["engine"],
    "engine, recalibrated": PlattCrossFitCalibrator().fit_transform(X["engine"], y),
    "material": X["material"],
    "material, recalibrated": PlattCrossFitCalibrator().fit_transform(X["material"], y),
}
display = DecompositionDisplay.from_predictions(y, judges, score="brier")

# %%
display.table.round(4)

# %%
# The same step by step: early on there is little to know, and the engine loses by claiming to
# know it.
DecompositionDisplay.from_predictions(y, X["engine"], score="brier", by="step", name="engine")

# %%
# **What it decides.** Blue is what a predictor knows, orange what it throws away. Where orange is
# large, recalibrate; where blue is small, no recalibration helps: look for another signal.
