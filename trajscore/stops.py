"""Why a run ended, and what that means for its outcome."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trajscore.outcomes import CENSORED

ADMINISTRATIVE_STOPS = frozenset(
    {
        "budget",
        "cost",
        "cost_limit",
        "max_iterations",
        "max_messages",
        "max_rounds",
        "max_steps",
        "max_tokens",
        "max_turns",
        "message",
        "message_limit",
        "step_budget",
        "step_limit",
        "time",
        "time_limit",
        "token",
        "token_limit",
        "turn",
        "turn_limit",
        "working",
    }
)
"""Stop reasons that a budget fixed in advance imposes: they say nothing of the outcome."""


def is_informative_stop(
    y: ArrayLike, reasons: ArrayLike, administrative: frozenset[str] = ADMINISTRATIVE_STOPS
) -> NDArray[np.bool_]:
    """Tell which unobserved runs were stopped by something other than a budget.

    A parse error or a failed tool is the agent's own doing and may say how the run would have
    ended, so censored scores that rest on administrative stops must leave such runs out.

    Parameters
    ----------
    y : ndarray of shape (n_runs,)
        Checked outcomes; runs that were observed are never informative stops.
    reasons : array-like of shape (n_runs,)
        Stop reason of each run; case and the difference of "-", " " and "_" do not matter.
    administrative : frozenset of str
        The reasons that are budgets.

    Returns
    -------
    ndarray of bool of shape (n_runs,)
        True where the outcome was not observed and the stop was not administrative.

    References
    ----------
    Raghu et al. (2026), Appendix G.

    Examples
    --------
    >>> is_informative_stop([1, -1, -1], ["done", "max_steps", "parse_error"])
    array([False, False,  True])
    """
    names = pd.Series(np.asarray(reasons, dtype=object)).astype("string").fillna("")
    names = names.str.strip().str.lower().str.replace(r"[\s\-]+", "_", regex=True)
    outcomes = np.asarray(y)
    if len(names) != len(outcomes):
        raise ValueError(f"there are {len(names)} stop reasons for {len(outcomes)} runs")
    return (outcomes == CENSORED) & ~names.isin(administrative).to_numpy(dtype=bool)
