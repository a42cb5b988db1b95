"""Where in a run a trace earns or loses its score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.run_sums import score_cells
from trajscore.core.sample import check_forecasts
from trajscore.core.score_families import get_family
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.within_runs import step_numbers


def step_profile(
    y_true: ArrayLike,
    traces: Any,
    *,
    score: Any = "log",
    q_z: ArrayLike = 0.0,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Mean score at every step, over the runs that are at least that long.

    Parameters
    ----------
    y_true, traces, score, q_z, sample_weight : array-likes and score family
        As in `censored_tps_score`.

    Returns
    -------
    DataFrame indexed by step (from 1)
        n_runs: runs alive, or the sum of their weights; score: their mean score;
        std_error: its standard error (NaN up to a single run); forecast: their mean forecast;
        success_rate: their mean outcome. And of those among them whose outcome was observed:
        n_observed, score_observed and std_error_observed (NaN at steps that none reaches).

    Raises
    ------
    ValueError
        If a forecast lies outside [0, 1], or q_z does for a run that was not observed.

    Notes
    -----
    Later steps are reached by other runs than early ones: compare predictors at the same step,
    not steps with one another. At the budget that stopped them, unobserved runs may be most of
    those alive: a fall there is one of what they are counted as, unless ``score_observed`` falls
    too.

    A weight says how often a run counts: weight 2 is the run twice, in the counts and the
    standard errors too. Weights that are only proportional to that, as those that add up to one,
    have to be scaled first, to a mean of one for example.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification,
    Eq. 2, of which these are the terms before they are weighted over the steps.

    Examples
    --------
    >>> step_profile([1, 0], [[0.5, 0.9], [0.5, float("nan")]], score="brier")[["n_runs", "score"]]
          n_runs  score
    step
    1          2  -0.25
    2          1  -0.01
    """
    runs = check_forecasts(
        y_true, traces, allow_censored=True, sample_weight=sample_weight, q_z=q_z
    )
    X = runs.X
    family = get_family(score)
    step = step_numbers(X) - 1
    w = np.repeat(runs.weight, X.lengths)
    labels = as_labels(runs.y, censored="q_z", q_z=runs.q_z).value
    scored = score_cells(family, X.cells, labels, X.lengths)

    observed = w * np.repeat(runs.y != CENSORED, X.lengths)
    n_runs, mean, std_error = mean_by_step(step, w, scored)
    n_observed, observed_mean, observed_error = mean_by_step(step, observed, scored)
    table = pd.DataFrame(
        {
            "n_runs": n_runs,
            "score": mean,
            "std_error": std_error,
            "forecast": mean_by_step(step, w, X.cells)[1],
            "success_rate": mean_by_step(step, w, np.repeat(labels, X.lengths))[1],
            "n_observed": n_observed,
            "score_observed": observed_mean,
            "std_error_observed": observed_error,
        },
        index=pd.RangeIndex(1, len(n_runs) + 1, name="step"),
    )
    counts = ["n_runs", "n_observed"]
    if (table[counts] == np.floor(table[counts])).all(axis=None):
        table[counts] = table[counts].astype(np.int64)
    return table[table["n_runs"] > 0]


def mean_by_step(
    step: IntArray, w: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weight of each step, the weighted mean of x, and its standard error."""
    total = np.bincount(step, w).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(step, w * x) / total
        variance = np.bincount(step, w * (x - np.nan_to_num(mean)[step]) ** 2) / (total - 1)
        return total, mean, np.where(total > 1, np.sqrt(variance / total), np.nan)
