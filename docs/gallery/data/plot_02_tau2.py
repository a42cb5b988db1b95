"""
From a tau2-bench log to the runs to read
=========================================

A result file of tau2-bench: 50 airline tasks, one run each. Why did runs end, which failed, and
where did they go wrong?
"""

import os
from pathlib import Path

from trajscore import TracerScorer, TracerSignals, io
from trajscore.censoring import termination_audit
from trajscore.plotting import TerminationDisplay, TracerStripDisplay

PUBLIC_LOGS = Path(os.environ.get("TRAJSCORE_TEST_DATA", "."))
runs = io.read_runs(PUBLIC_LOGS / "tau2/airline_gpt-oss-120b.json")
runs

# %%
# The file says reward 0 of runs that hit the step budget. The reader looks at the stop first: of
# these the outcome is not observed.
y, meta = io.outcomes(runs), io.meta(runs)
TerminationDisplay.from_audit(termination_audit(None, y, meta["stop_reason"]))

# %%
# The three failing runs of the highest risk, and the worst of them turn by turn:
signals = TracerSignals().fit_transform(runs)
scorer = TracerScorer().fit(signals)
table = meta.assign(risk=scorer.score_samples(signals), outcome=y)
first = table[table["outcome"] == 0].nlargest(3, "risk")
first[["run", "task", "n_steps", "stop_reason", "risk"]].round(3)

# %%
TracerStripDisplay.from_estimator(scorer, signals, int(first.index[0]))

# %%
# **What it decides.** Which dialogues to read first, and at which turns to start.
