"""
Which map: Platt, beta or isotonic?
===================================

A stiff map needs few runs, a free one uses many. A proper score, out of fold, says which suits.
"""

import pandas as pd

from trajscore import PlattCrossFitCalibrator
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)
from trajscore.datasets import fetch_evaluator
from trajscore.metrics import tps_score

X, y = fetch_evaluator("hotpotqa", return_X_y=True)
maps = {
    "Platt": PlattCrossFitCalibrator(),
    "beta": BetaCrossFitCalibrator(),
    "isotonic": IsotonicCrossFitCalibrator(),
    "mean of the three": EnsembleCrossFitCalibrator(),
}
sizes = [40, 80, 160, 320, 640, 1280, 5120, len(y)]
scores = pd.DataFrame(
    {
        name: [tps_score(y[:n], one.fit_transform(X[:n], y[:n])) for n in sizes]
        for name, one in maps.items()
    },
    index=pd.Index(sizes, name="runs"),
)
ax = scores.sub(scores["Platt"], axis=0).plot(logx=True, marker="o")
_ = ax.set(ylabel="log score less that of Platt's map")

# %%
scores.round(3)

# %%
# Each point is one set of runs, so the left half of the picture is mostly chance.
#
# **What it decides.** Nothing has to be chosen: the mean of the three, which is the default of
# :func:`~trajscore.evaluate`, leans on the stiff maps with few runs and on the free one with many.
# For one map, :ref:`let a search choose <sphx_glr_auto_gallery_build_plot_01_grid_search.py>`.
