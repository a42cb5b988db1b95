"""
How early does a risk warn of failure?
======================================

A dialogue of an agent holds no confidence. TRACER sees trouble in what was said: repetitions,
results that do not fit the call, a user who talks past the agent. 195 public airline dialogues of
tau-bench.
"""

import os
from pathlib import Path

from trajscore import TracerScorer, TracerSignals, io
from trajscore.plotting import EarlyWarningDisplay, TracerStripDisplay

PUBLIC_LOGS = Path(os.environ.get("TRAJSCORE_TEST_DATA", "."))
runs = io.read_runs(PUBLIC_LOGS / "tau_bench/gpt-4o-airline.json")
y = io.outcomes(runs)
signals = TracerSignals().fit_transform(runs)
scorer = TracerScorer().fit(signals)

known = y >= 0
EarlyWarningDisplay.from_estimator(scorer, signals[known], y[known])

# %%
# The failing run with the largest risk, turn by turn:
risk = scorer.score_samples(signals)
worst = max((row for row in range(len(y)) if y[row] == 0), key=lambda row: risk[row])
TracerStripDisplay.from_estimator(scorer, signals, worst)

# %%
# **What it decides.** Which runs to read first, and where in them: ``runs[worst].steps`` holds what
# was said. As a forecast it must beat run
# length first: see :doc:`/user_guide/tracer`.
