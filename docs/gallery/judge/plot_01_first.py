"""
Does your agent's confidence mean what it says?
===============================================

A weak engine plays 360 games of chess. Before each of its moves, a strong engine states the
chance that the game will be won. So there are runs, steps, a confidence at every step, and an
outcome: all that is asked for. Does a stated 0.9 mean nine wins in ten?
"""

from trajscore import evaluate
from trajscore.calibration import EnsembleCrossFitCalibrator
from trajscore.datasets import load_chess

X, y = load_chess(return_X_y=True)
report = evaluate(X, y)

# %%
# One table answers it: a score of the whole trace, less that of a constant at the base rate.
# Above 0, the confidences are worth something.
report.table[["TPS log margin", "TPS log margin_low", "TPS log margin_high", "S-ECE"]].round(3)

# %%
# As given, they are worth less than nothing; recalibrated, more than counting moves. The picture
# shows why: the engine says 0 or 1 long before it knows.
import matplotlib.pyplot as plt

from trajscore.plotting import ReliabilityDisplay, ScoreDisplay

_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
known = y >= 0
recalibrated = EnsembleCrossFitCalibrator().fit_transform(X["engine"], y)
for form, trace, color in (
    ("as given", X["engine"], "#dd6611"),
    ("recalibrated", recalibrated, "#0077bb"),
):
    ReliabilityDisplay.from_predictions(
        y[known], trace[known].prefix(10), phi="last", ax=left, name=form, color=color
    )
left.set_title("the engine's forecast after 10 moves")
ScoreDisplay.from_intervals(report.intervals, "TPS brier", ax=right)
right.set_title("score of the whole game")
plt.show()

# %%
# **What it decides.** Do not act on these numbers as they are. Recalibrate them (it takes one
# line: :class:`~trajscore.calibration.EnsembleCrossFitCalibrator`), and act on the result; which of
# the three predictors, hardly matters then.
