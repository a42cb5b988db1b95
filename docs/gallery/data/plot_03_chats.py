"""
Stated confidence in chat logs
==============================

An agent was told to end each turn with ``Confidence: NN%``. The chats are in OpenAI's format, one
JSON object a run: what did it claim, and does that hold?
"""

import json
from pathlib import Path


from trajscore import PlattCrossFitCalibrator, StepConfidence, io
from trajscore.datasets import make_trajectories

# 200 chats as such an agent would write them, with confidences that are too high
made, solved = make_trajectories(200, lengths=(2, 6), sharpness=2, random_state=0, return_X_y=True)
lines = []
for name, scores, outcome in zip(made.ids, made.to_list(), solved, strict=True):
    turns = [{"role": "user", "content": "Please find my bag."}]
    for p in scores:
        turns.append({"role": "assistant", "content": f"Looking. Confidence: {50 + 50 * p:.0f}%"})
        turns.append({"role": "user", "content": "And?"})
    lines.append(json.dumps({"id": str(name), "messages": turns[:-1], "success": int(outcome)}))
Path("chats.jsonl").write_text("\n".join(lines))

# %%
runs = io.read_runs("chats.jsonl")
runs

# %%
X, y = StepConfidence().fit_transform(runs)["verbal"], io.outcomes(runs)
X.to_frame().head()

# %%
from trajscore.plotting import ReliabilityDisplay

recalibrated = PlattCrossFitCalibrator().fit_transform(X, y)
display = ReliabilityDisplay.from_predictions(y, X, phi="last", name="as given", color="#dd6611")
ReliabilityDisplay.from_predictions(
    y, recalibrated, phi="last", ax=display.ax_, name="recalibrated", color="#0077bb"
)

# %%
# **What it decides.** A stated confidence that never falls below 50% is common, and of use once
# recalibrated. How yours is stated (a tag, JSON, a line of text) is an option of
# :class:`~trajscore.StepConfidence`.
Path("chats.jsonl").unlink()
