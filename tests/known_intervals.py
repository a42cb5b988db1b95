"""Intervals of t, written down: of a mean of influences, where asked for on the logit scale."""

import numpy as np
from scipy.special import expit, logit
from scipy.stats import sem, t


def t_interval(value, influence, *, on_logit=False):
    half = t.ppf(0.975, len(influence) - 1) * sem(influence)
    if on_logit:
        return expit(logit(value) + np.array([-1, 1]) * half / (value * (1 - value)))
    return value + np.array([-1, 1]) * half
