"""
GridSearchCV with a proper scorer
=================================

Which map, how stiff, on which signal? A search answers that as everywhere in scikit-learn; the
scorer must be proper, or it chooses what looks sharp.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from trajscore import PlattCrossFitCalibrator, tps_scorer
from trajscore.calibration import BetaCrossFitCalibrator, IsotonicCrossFitCalibrator
from trajscore.datasets import load_chess

X, y = load_chess(return_X_y=True)
signal, y = X["material"][y >= 0], y[y >= 0]
search = GridSearchCV(
    Pipeline([("map", PlattCrossFitCalibrator())]),
    [
        {"map": [PlattCrossFitCalibrator()], "map__C": [0.001, 0.01, 0.1, 1, 10]},
        {"map": [BetaCrossFitCalibrator(), IsotonicCrossFitCalibrator()]},
    ],
    scoring=tps_scorer,
    cv=5,
)
search.fit(signal, y)

# %%
found = pd.DataFrame(search.cv_results_)
labels = [
    type(one["map"]).__name__.removesuffix("CrossFitCalibrator")
    + (f", C = {one['map__C']:g}" if "map__C" in one else "")
    for one in found["params"]
]
_, ax = plt.subplots(layout="constrained")
ax.errorbar(
    found["mean_test_score"], labels, xerr=found["std_test_score"] / search.cv**0.5, fmt="o"
)
ax.set(xlabel="log score of held-out games, with standard errors (right is better)")
plt.show()

# %%
search.best_params_

# %%
# **What it decides.** The setting. What it is worth is for other runs to say:
# ``cross_fit_traces(search, X, y)`` runs the search anew within each fold.
from trajscore.calibration import cross_fit_traces
from trajscore.metrics import tps_score

print(f"{tps_score(y, cross_fit_traces(search, signal, y, cv=3)):.3f}")
