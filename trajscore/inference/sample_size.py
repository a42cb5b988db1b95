"""How many runs a comparison needs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri

from trajscore.core.ties import ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_fraction, as_numbers, as_within, is_number
from trajscore.inference.intervals import resampling_units
from trajscore.inference.mean_intervals import refuse_missing_scores

ONE_DIGIT: FloatArray = np.outer(10.0 ** np.arange(12), np.arange(1, 10)).ravel()
"""Numbers of one significant digit; no forecast of a sample size is more precise than that."""


def up_to_one_digit(n: float) -> int:
    """Round a number of runs up to one significant digit.

    >>> up_to_one_digit(3), up_to_one_digit(1155), up_to_one_digit(20)
    (3, 2000, 20)
    """
    return int(ONE_DIGIT[np.searchsorted(ONE_DIGIT, n)])


def runs_needed(
    difference: float,
    samples: ArrayLike | None = None,
    *,
    sd: float | None = None,
    groups: ArrayLike | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int:
    r"""Return how many runs it takes to see a difference of two mean scores.

    Parameters
    ----------
    difference : float
        Difference to be seen, such as 0.01 of TPS.
    samples : array-like of shape (n_runs,), optional
        Paired differences of the scores of a pilot.
    sd : float, optional
        Standard deviation of the paired differences, instead of a pilot.
    groups : array-like of shape (n_runs,), optional
        Clusters of the pilot, such as tasks: the design effect is estimated from them, and
        taken as 1 where the estimate is below.
    power : float, default=0.8
        Chance that the test sees the difference.
    alpha : float, default=0.05
        Two-sided level of the test.

    Returns
    -------
    int
        Number of runs, with as many in each cluster as in the pilot. More trials of the same tasks
        raise the design effect; more tasks do not.

    Notes
    -----
    With the standard deviation :math:`\sigma` and the design effect :math:`D`, and the last term
    for the variance being estimated (Guenther 1981),

    .. math:: n = D \left[(z_{1-\alpha/2} + z_{power})^2 \sigma^2 / \delta^2
              + z_{1-\alpha/2}^2 / 2\right].

    A pilot's standard deviation has an error of its own: about 7% from 100 runs, so 14% in n.

    References
    ----------
    Guenther (1981), Sample Size Formulas for Normal Theory T Tests; Kish (1965), Survey Sampling.

    Examples
    --------
    >>> runs_needed(0.02, sd=0.15)
    444
    """
    power = as_fraction(power, "power")
    alpha = as_fraction(alpha, "alpha")
    if not is_number(difference) or not 0 < abs(difference) < math.inf:
        raise ValueError(f"difference must be finite and not zero, got {difference!r}")
    if (samples is None) == (sd is None):
        raise ValueError("give either the samples of a pilot or sd, the deviation of differences")
    if groups is not None and samples is None:
        raise ValueError("groups go with the samples of a pilot")
    design_effect = 1.0
    if samples is not None:
        values = _differences(samples)
        sd = float(values.std(ddof=1))
        if groups is not None:
            design_effect = max(design_effect, _design_effect(values, groups))
    sd = as_within(sd, "sd", 0, math.inf)
    z = float(ndtri(1 - alpha / 2))
    simple = (z + float(ndtri(power))) ** 2 * (sd / difference) ** 2 + z**2 / 2
    if not math.isfinite(design_effect * simple):
        raise ValueError("no number of runs is large enough; ask for a larger difference")
    return math.ceil(design_effect * simple)


def _design_effect(values: FloatArray, groups: ArrayLike) -> float:
    """Return the variance of the mean over clusters, over that of independent runs."""
    units = resampling_units(len(values), groups)
    if units.n_units == len(values):
        raise ValueError("every cluster has one run, so there is no design effect to estimate")
    residuals = units.sums((values - values.mean())[:, None])[:, 0]
    clustered = (residuals**2).sum() * units.n_units / (units.n_units - 1)
    return float(clustered / (len(values) * values.var(ddof=1)))


def _differences(samples: ArrayLike) -> FloatArray:
    values = as_numbers(samples, "samples")
    if values.ndim != 1 or len(values) < 2:
        raise ValueError("samples must be the difference of each run, for 2 runs or more")
    refuse_missing_scores(pd.DataFrame({"difference": values}))
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        raise ValueError(
            "the difference does not vary, so the runs needed cannot be computed; give more runs"
        )
    return values
