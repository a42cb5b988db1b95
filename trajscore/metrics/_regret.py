"""What a trace loses against the truth, where the truth is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.ids import check_same_runs
from trajscore.core.score_families import get_family
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, Weights, as_step_weights


class RegretParts(NamedTuple):
    """Parts of the expected plug-in regret of each run, as `plug_in_regret` describes them."""

    total: FloatArray
    oracle: FloatArray
    bias: FloatArray
    bound: FloatArray


def regret(
    q_true: Any,
    traces: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
) -> FloatArray:
    """Expected loss of each trace against the true success probabilities.

    Parameters
    ----------
    q_true : TrajectoryArray or array-like of shape (n_runs, T_max)
        True q_t = P(Y=1 | history up to t).
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts, for the same steps.
    score, weights, horizon : score family and step weights
        As in `tps_score`.

    Returns
    -------
    ndarray of shape (n_runs,)
        Sum over t of w_t {q (S(q,1) - S(F,1)) + (1-q) (S(q,0) - S(F,0))}, divided by the mean
        weight of a run, so that the mean over runs is what the score of the set loses; zero if and
        only if F = q at every step with a positive weight, never negative.

    Raises
    ------
    ValueError
        If the two have other runs or lengths, a probability lies outside [0, 1], or the score or
        the weights are unknown.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 8 and 9.

    Examples
    --------
    >>> regret([[0.5, 0.7]], [[0.5, 0.7]]), regret([[0.5]], [[0.6]], score="brier")
    (array([0.]), array([0.01]))
    """
    q, F = _same_runs(q_true=q_true, traces=traces)
    w = _shared_weights(F, weights, horizon)
    return _sum_steps(w * _expected_gain(get_family(score), q.cells, q.cells, F.cells), q)


def plug_in_regret(
    q_true: Any,
    traces: Any,
    surrogate: Any,
    *,
    score: Any = ("beta", 2, 4),
    weights: Weights = "early",
    horizon: Horizon = None,
) -> RegretParts:
    """Split the regret under a surrogate outcome into the true regret and a bias term.

    When q_Z is estimated, outcomes are replaced by a surrogate whose conditional mean a_t may
    differ from q_t by r_t = a_t - q_t. The expected regret then is R*(F) + r_t (D(q) - D(F))
    with the score contrast D(p) = S(p, 1) - S(p, 0).

    Parameters
    ----------
    q_true, traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        As in `regret`.
    surrogate : TrajectoryArray or array-like of shape (n_runs, T_max)
        Conditional mean a_t of the surrogate outcome, for the same steps.
    score, weights, horizon : score family and step weights
        As in `tps_score`.

    Returns
    -------
    named tuple of ndarrays of shape (n_runs,)
        total: expected score of the truth minus that of the trace, when outcomes are replaced by
        the surrogate; total = oracle + bias. oracle: the same under the truth; never negative.
        bias: what the surrogate's conditional-mean bias adds; may have either sign. bound: upper
        bound of the absolute bias, 2 B times the weighted sum of the surrogate's absolute biases;
        infinite for unbounded scores.

    Raises
    ------
    ValueError
        If the three have other runs or lengths, a probability lies outside [0, 1], or the score
        or the weights are unknown.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Remark C.5.

    Examples
    --------
    >>> parts = plug_in_regret([[0.5]], [[0.6]], [[0.55]], score="brier")
    >>> parts.total.round(3), parts.oracle.round(3), parts.bias.round(3)
    (array([-0.]), array([0.01]), array([-0.01]))
    """
    q, F, a = _same_runs(q_true=q_true, traces=traces, surrogate=surrogate)
    w = _shared_weights(F, weights, horizon)
    family = get_family(score)
    shift = a.cells - q.cells
    contrast = _contrast(family, q.cells) - _contrast(family, F.cells)
    return RegretParts(
        total=_sum_steps(w * _expected_gain(family, a.cells, q.cells, F.cells), q),
        oracle=_sum_steps(w * _expected_gain(family, q.cells, q.cells, F.cells), q),
        bias=_sum_steps(w * shift * contrast, q),
        bound=_bias_bound(family, _sum_steps(w * np.abs(shift), q)),
    )


def _same_runs(**traces: Any) -> list[TrajectoryArray]:
    """Check probabilities of the same runs and steps as ``traces`` has."""
    checked = {
        name: check_trajectories(X, probabilities=True, single_channel=True)
        for name, X in traces.items()
    }
    for name, X in checked.items():
        check_same_runs(X, checked["traces"], name, "traces")
    return list(checked.values())


def _shared_weights(X: TrajectoryArray, weights: Weights, horizon: Horizon) -> FloatArray:
    """Weight of each step over the mean weight of a run."""
    how = as_step_weights(weights, horizon)
    how.warn_unscored(X.lengths)
    of_runs = how.of(X)
    return np.asarray(of_runs.cells() / of_runs.divisor().mean()) if len(X) else np.empty(0)


def _expected_gain(family: Any, mean: FloatArray, q: FloatArray, p: FloatArray) -> FloatArray:
    """Expected score of reporting q instead of p, when the outcome has the given mean."""
    success = family.success(q) - family.success(p)
    failure = family.failure(q) - family.failure(p)
    return np.asarray(mean * success + (1 - mean) * failure)


def _contrast(family: Any, p: FloatArray) -> FloatArray:
    return np.asarray(family.success(p) - family.failure(p))


def _bias_bound(family: Any, shift: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):  # no shift, no bias: 0 times infinity is 0 here
        return np.nan_to_num(2 * _largest_contrast(family) * shift, nan=0.0, posinf=np.inf)


def _largest_contrast(family: Any) -> float:
    # D is increasing for a proper score, so its extremes are at the ends; where a score clips they
    # are finite for that alone
    if family.clip is not None:
        return np.inf
    return float(np.abs(_contrast(family, np.array([0.0, 1.0]))).max())


def _sum_steps(cells: FloatArray, X: TrajectoryArray) -> FloatArray:
    return np.add.reduceat(cells, X.offsets[:-1]) if len(X) else np.empty(0)
