"""
Write a forecaster, and check it
================================

A forecaster is a transformer from runs to a probability at every step. Here is one that remembers
the lowest score so far, with checks that it keeps to the rules: never to look ahead, above all.
"""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression

from trajscore import check_outcomes, check_trajectories
from trajscore.testing import check_trajectory_estimator


class LowestSoFar(TransformerMixin, BaseEstimator):
    """A logistic curve over the lowest score so far."""

    def fit(self, X, y):
        X = check_trajectories(X, single_channel=True)
        y = check_outcomes(y, X)  # refuses outcomes that it could not distinguish
        known = y >= 0
        lowest, outcome = self._lowest(X[known]), np.repeat(y[known], X[known].lengths)
        self.model_ = LogisticRegression().fit(lowest[:, None], outcome)
        return self

    def transform(self, X):
        X = check_trajectories(X, single_channel=True)
        return X.with_cells(self.model_.predict_proba(self._lowest(X)[:, None])[:, 1])

    @staticmethod
    def _lowest(X):
        return np.concatenate([np.minimum.accumulate(run) for run in X.to_list()])


check_trajectory_estimator(LowestSoFar())

# %%
# Is it better than the maps that are there?
import pandas as pd

from trajscore import PlattCrossFitCalibrator, PrefixForecaster
from trajscore.calibration import cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.plotting import StepProfileDisplay

X, y = make_trajectories(2000, lengths=(3, 12), random_state=0, return_X_y=True)
traces = {
    type(one).__name__: cross_fit_traces(one, X, y)
    for one in (LowestSoFar(), PlattCrossFitCalibrator(), PrefixForecaster(features="last"))
}
ax = None
for name, trace in traces.items():
    ax = StepProfileDisplay.from_predictions(y, trace, ax=ax, name=name).ax_

# %%
from trajscore.metrics import tps_score

pd.Series({name: tps_score(y, trace) for name, trace in traces.items()}).round(4)

# %%
# **What it decides.** Whether your idea is worth keeping: the score is out of fold, and
# everything else (searches, e-processes, reports) takes it as it is.
