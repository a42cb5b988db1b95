"""
Is the new version better, or was it lucky?
===========================================

Two agents on the same 50 public airline tasks of tau2-bench, one run each: the second solved 28,
the first 19. Would you let the second replace the first? And would a gate in CI have let the
first replace the second?
"""

import os
from pathlib import Path

from trajscore.gates import Gate, RunSet, check, compare

PUBLIC_LOGS = Path(os.environ.get("TRAJSCORE_TEST_DATA", "."))
old = RunSet.read(PUBLIC_LOGS / "tau2/airline_gpt-oss-120b.json")
new = RunSet.read(PUBLIC_LOGS / "tau2/toolorchestra_airline_gpt-5_1trial.json")
print(compare(old, new))

# %%
# Runs of the same task are paired. The interval of the change in success only just excludes zero:
# with one run a task, even 18 points could almost be luck. A gate asks something easier: is the new
# version worse by more than 5 points?
print(check(new, old, Gate("success", margin=0.05)))

# %%
# The other way round, the answer is open, and the gate says how many runs would settle it:
print(check(old, new, Gate("success", margin=0.05)))

# %%
# How large a drop would such a gate find? The width of the interval says it: it shrinks with the
# root of the number of tasks.
import matplotlib.pyplot as plt
import numpy as np

found = compare(old, new)
success, n = found.table.loc[("success", "", "")], found.matched.n_common
half = (success["change_high"] - success["change_low"]) / 2
tasks = np.geomspace(25, 800, 50)
_, ax = plt.subplots(layout="constrained")
ax.plot(tasks, half * np.sqrt(n / tasks))
ax.axvline(n, color="#777777", linestyle="--", label="here")
ax.set(xscale="log", xlabel="tasks, one run each", ylabel="half the interval of the change")
ax.set_xticks([25, 50, 100, 200, 400, 800], ["25", "50", "100", "200", "400", "800"])
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()

# %%
# **What it decides.** Whether a change may go out. "Undecided" is an answer too: it comes with
# the number of more runs that would settle it. On the command line: ``trajscore check new.json
# --baseline old.json``, with an exit code (:doc:`/user_guide/gates`).
