"""
Was the agent swapped, or its judge?
====================================

Somebody replaced the model behind an agent and, weeks later, the judge of its runs. Which of the
two needs a new calibration? A monitor of all runs gives an alarm for each, and names what changed
where one cause fits.
"""

import os
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

from trajscore import PrefixForecaster, TracerScorer, TracerSignals, TrajectoryArray, io
from trajscore.calibration import cross_fit_traces
from trajscore.gates import RunSet, compare
from trajscore.monitoring import FleetMonitor
from trajscore.plotting import FleetDisplay

PUBLIC_LOGS = Path(os.environ.get("TRAJSCORE_TEST_DATA", "."))


def read(name):
    """Read the risk that TRACER sees after every turn, and the outcomes."""
    runs = io.read_runs(PUBLIC_LOGS / name)
    risk, y = TracerScorer().fit_transform(TracerSignals().fit_transform(runs)), io.outcomes(runs)
    return risk[y >= 0], y[y >= 0]


old, y_old = read("tau2/airline_gpt-oss-120b.json")
new, y_new = read("tau2/toolorchestra_airline_gpt-5_1trial.json")
judge = PrefixForecaster(features="running", pooled=True)
forecasts_old = cross_fit_traces(judge, old, y_old)
forecasts_new = judge.fit(old, y_old).transform(new)
print(f"success: {y_old.mean():.0%} before the swap, {y_new.mean():.0%} after it")

# %%
# The logs hold 50 tasks, so a long stream is drawn from them: 900 runs of the first agent, of which
# 400 are the reference, then 2,000 of the second. For the last 1,000 the judge is bolder.
rng = np.random.default_rng(0)


def drawn(X, y, n):
    """Draw runs with replacement."""
    rows = rng.choice(len(y), n)
    return X[rows], y[rows]


parts = [drawn(forecasts_old, y_old, n) for n in (400, 500)]
parts += [drawn(forecasts_new, y_new, 1000) for _ in range(2)]
last, y_last = parts[-1]
parts[-1] = last.with_cells(expit(logit(last.cells.clip(0.01, 0.99)) + 1.2)), y_last
stream = TrajectoryArray.concat([X for X, _ in parts])
X = TrajectoryArray(stream.cells, stream.lengths)  # a run that is drawn twice counts as two
y = np.concatenate([y for _, y in parts])
fleet = FleetMonitor(alpha=0.05).fit(X[:400], y[:400])
display = FleetDisplay.from_estimator(fleet, X[400:], y[400:])

# %%
# The swap came with run 501, the new judge with run 1,501.
for change in display.changes:
    print(f"alarm at run {change.alarm}, since run {change.since}: {change.cause}. {change.advice}")

# %%
# Another agent changed many things at once, so the first alarm has no single cause. What changed is
# in the runs after it:
first, second = display.changes
sets = [RunSet(X[rows], y[rows]) for rows in (slice(400), slice(400 + first.alarm, 1900))]
print("\n".join(compare(*sets).changes()[:3]))

# %%
# **What it decides.** Who has to look at what, and from which run on. After the first alarm: keep
# the new agent, which succeeds more often, and do not trust forecasts that were fitted on the old
# one. After the second: a new calibration. On the command line: ``trajscore watch reference.csv
# runs.csv`` (:doc:`/user_guide/fleet`).
