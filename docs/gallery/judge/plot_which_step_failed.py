"""
Which step failed, and how surely?
==================================

184 runs of teams of agents failed, and people say which message was the decisive error (Who&When).
Somebody who looks for it reads from the start, or asks a judge. Do seven numbers of each message,
its length and a few words, say where to look first?
"""

from trajscore.datasets import load_who_and_when
from trajscore.localization import FirstErrorLocator, FirstErrorWindow, compare_locators
from trajscore.plotting import FirstErrorDisplay

X, first_error = load_who_and_when(return_X_y=True)
question = X.meta["question"]  # some questions are in two runs, which stay together
P = FirstErrorLocator().fit_transform(X, first_error, groups=question)
live = FirstErrorLocator(live=True).fit_transform(X, first_error, groups=question)

# %%
# Each run has one distribution over its steps, by a fit on other questions. The reference is the
# position of a message alone, which costs nothing.
table = compare_locators(first_error, {"all": P, "live": live}, groups=question, random_state=0)
table.round(2)

# %%
# The numbers say more than position: see *beats_position*. A person who begins with the likeliest
# message reads *steps_read* of them up to the error. A window holds the error of 9 in 10 runs:
window = FirstErrorWindow(alpha=0.1).fit(P, first_error, groups=question)
said = f"people say: message {first_error[1]}"
FirstErrorDisplay.from_predictions(P, window.transform(P), run=1, name=said)

# %%
# Verdicts of judges say more. With those of one judge, three or twenty at each step, the same
# estimator makes one calibrated distribution of them: :doc:`/user_guide/tracer` has the figures.
#
# **What it decides.** Where a person reads first, and how much. If a locator does not beat
# position, its signals have shown nothing: read from the start, or label more runs.
