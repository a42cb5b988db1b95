"""
From your CSV to a report
=========================

A table with one row a step is enough: a run, a step, one or more confidences, and the outcome, on
every row of the run or on one of them. If it is empty, the run is *unobserved*.
"""

# sphinx_gallery_thumbnail_path = '_static/page.png'
from trajscore.datasets import load_chess

frame = load_chess(as_frame=True).frame
frame.to_csv("runs.csv", index=False)
frame.head()

# %%
# Five lines, and the page is written:
import pandas as pd

from trajscore import TrajectoryArray, evaluate

df = pd.read_csv("runs.csv")
X, y = TrajectoryArray.from_frame(
    df, id="game", step="move", value=["engine", "material"], outcome="outcome"
)
report = evaluate(X, y)
report.to_html("report.html")

# %%
# In a notebook, the report shows the first screen of the page:
report

# %%
# **What it decides.** Which predictor to use, which runs to accept and which to stop, and whether
# there are enough runs to say so. In a shell the same is ``trajscore report runs.csv --id game
# --step move --score engine --score material --outcome outcome --out report.html``.
import os

os.remove("runs.csv")
os.remove("report.html")
