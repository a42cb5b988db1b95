"""
Runs that hit the budget: drop them?
====================================

67 of the 360 bundled games were stopped at 60 moves, and nobody knows who would have won. They
are long games, and long games are the even ones. Whatever stands for their outcomes moves every
score.
"""

import numpy as np

from trajscore.censoring import break_even_q, termination_audit
from trajscore.datasets import load_chess
from trajscore.plotting import StepProfileDisplay, TerminationDisplay

X, y = load_chess(return_X_y=True)
TerminationDisplay.from_audit(termination_audit(None, y, X.meta["stop_reason"]))

# %%
# What do forecasts score if the stopped games are dropped, counted as failures, or count as the
# success of one in two?
import pandas as pd

from trajscore import PlattCrossFitCalibrator
from trajscore.metrics import censored_tps_score

material = PlattCrossFitCalibrator().fit_transform(X["material"], y)
counted = {
    "dropped": censored_tps_score(y[y >= 0], material[y >= 0]),
    "as failures": censored_tps_score(y, material),
    "as one in two": censored_tps_score(y, material, q_z=0.5),
}
pd.Series(counted, name="log score").round(3)

# %%
# At which chance of success of the stopped games would the verdict "better than the base rate"
# turn? At none (``q`` is NaN): the difference is above 0 if all of them had failed, and if all of
# them had succeeded.
constant = material.with_cells(np.full(len(material.cells), (y == 1).mean()))
break_even_q(y, material, constant)

# %%
# By step: the dashed line, of observed games alone, climbs at the end because only decided games
# are left in it.
StepProfileDisplay.from_predictions(y, material, name="material, recalibrated")

# %%
# **What it decides.** Say what unobserved runs count as, beside every number. Where the verdict
# turns within the chances that are possible, resume some of the stopped runs
# (:class:`~trajscore.censoring.MonteCarloContinuation`) before you decide.
