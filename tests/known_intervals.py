"""Intervals of t, written down: of a mean of influences, and influences as derivatives."""

import numpy as np
from scipy.special import expit, logit
from scipy.stats import sem, t


def numeric_influence(function, n_runs, step=1e-5):
    """n times the derivative in the weight of each run."""
    weights = 1 + step * np.stack([np.eye(n_runs), -np.eye(n_runs)])
    above, below = (np.array([function(w) for w in side]) for side in weights)
    return n_runs * (above - below) / (2 * step)


def t_interval(value, influence, *, on_logit=False):
    half = t.ppf(0.975, len(influence) - 1) * sem(influence)
    if on_logit:
        return expit(logit(value) + np.array([-1, 1]) * half / (value * (1 - value)))
    return value + np.array([-1, 1]) * half
