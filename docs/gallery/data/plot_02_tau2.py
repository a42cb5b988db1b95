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
path = PUBLIC_LOGS / "tau2/airline_gpt-oss-120b.json"
os.chdir(path.parent)  # so that tables name the file alone
runs = io.read_runs(path.name)
runs

# %%
# The file gives runs that hit the step budget the reward 0. The reader looks at the stop first, so
# these runs are unobserved.
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
