"""
What is in this log?
====================

Before a report: which format is it, how many runs and outcomes does it hold, why did they end,
and is there a confidence at all? A result file of tau2-bench is asked.
"""

import os
from pathlib import Path

from trajscore.cli.main import main

PUBLIC_LOGS = Path(os.environ.get("TRAJSCORE_TEST_DATA", "."))
path = PUBLIC_LOGS / "tau2/airline_gpt-oss-120b.json"
os.chdir(path.parent)  # so that the answer names the file alone
status = main(["describe", path.name])

# %%
# In a shell that is ``trajscore describe airline_gpt-oss-120b.json``. The same runs, by how long
# they are and how they ended:
import matplotlib.pyplot as plt

from trajscore import io

meta = io.meta(io.read_runs(path))
_, ax = plt.subplots(layout="constrained")
shown = {reason: part["n_agent"] for reason, part in meta.groupby("stop_reason")}
ax.hist(list(shown.values()), bins=20, stacked=True, label=list(shown))
ax.set(xlabel="turns of the agent", ylabel="runs")
ax.legend(frameon=False)
plt.show()

# %%
# **What it decides.** Which options a report needs: here none. The log holds no confidence, so
# the risk that TRACER sees in the dialogue would be judged; six runs have no outcome, and one of
# these ended by its own doing.
