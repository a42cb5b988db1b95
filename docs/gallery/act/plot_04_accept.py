"""
Accept or reject an answer: at what price?
==========================================

An answer is used if its uncertainty is below what a rejection costs: asking again, or a person.
ECUAS prices that bargain over all such costs; at a price you know, read the curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from trajscore.calibration import AffineCalibrator
from trajscore.datasets import fetch_expected_cost
from trajscore.metrics import Answers
from trajscore.plotting import CostCurveDisplay, RiskCoverageDisplay

log_p, y = fetch_expected_cost("sst2_gpt2", return_X_y=True)  # GPT-2 judges film reviews
half = len(y) // 2
systems = {
    "as given": np.exp(log_p[half:]),
    "recalibrated": AffineCalibrator().fit(log_p[:half], y[:half]).predict_proba(log_p[half:]),
}

_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
answers = {}
for (name, p), color in zip(systems.items(), ("#dd6611", "#0077bb"), strict=True):
    answers[name] = p.argmax(axis=1) == y[half:], p.max(axis=1)
    style = {"name": name, "color": color}
    CostCurveDisplay.from_predictions(*answers[name], n=1, n_classes=2, ax=left, **style)
    RiskCoverageDisplay.from_predictions(*answers[name], ax=right, **style)
plt.show()

# %%
# Asking a person costs a fifth of what a wrong answer costs:
for name, (correct, confidence) in answers.items():
    at_price = Answers.from_confidence(correct, confidence).cost(0.2)
    print(f"{name}: cost {at_price.cost:.3f}, {at_price.coverage:.0%} answered")

# %%
# **What it decides.** Look up your price on the left: where a curve lies above the dotted line,
# reject everything instead. The threshold is then 1 minus the price, for a recalibrated confidence
# only.
