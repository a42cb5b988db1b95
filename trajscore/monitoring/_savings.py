"""What stopping early saves, and what accuracy it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import is_number
from trajscore.core.within_runs import (
    first_step_above,
    last_cells,
    run_numbers,
    running_max,
    running_sum,
)
from trajscore.monitoring._stopping_rule import (
    StoppingRule,
    rate_with_interval,
    spent_until,
)


@dataclass(frozen=True, eq=False)
class TokenSavings:
    """Accuracy kept against cost spent, as a stopping rule's threshold moves.

    `curve` has threshold (a limit on the rule's statistic: log M for a density ratio, minus the
    score for a verifier); cost_share, the cost spent as a share of that of all runs to their ends;
    accuracy, the share of runs that succeed and are not flagged, and accuracy_share, the same as a
    share of the accuracy without flags. The first row flags no run, the last one all runs at their
    first step; a run is flagged where its statistic exceeds the threshold, strictly. `at_alpha` is
    the same at the fitted levels, with the threshold in the rule's own units, and false_alarm_rate
    with its 95% Clopper-Pearson interval.
    """

    curve: pd.DataFrame
    at_alpha: pd.DataFrame
    total_cost: float  # of all runs to their ends
    accuracy: float  # mean outcome without flags
    n_runs: int
    n_dropped: int  # runs left out, as their outcome was not observed

    @property
    def area(self) -> float:
        """Mean accuracy_share over the cost shares between all first steps and all steps.

        Between thresholds the curve is joined by straight lines, which a random choice between
        the two attains. 0.5 is what a random share of runs flagged at their first step comes to;
        NaN if no run costs anything after its first step.
        """
        cost = self.curve["cost_share"].to_numpy()
        shares = self.curve["accuracy_share"].to_numpy()
        span = cost[0] - cost[-1]
        if not span > 0:
            return float("nan")
        return float((cost[:-1] - cost[1:]) @ (shares[:-1] + shares[1:]) / 2 / span)

    def point(self, accuracy_share: float = 0.9) -> pd.Series:
        """Return the cheapest row of `curve` that keeps a share of the accuracy without flags."""
        if not is_number(accuracy_share) or not 0 <= accuracy_share <= 1:
            raise ValueError(f"accuracy_share must lie in [0, 1], got {accuracy_share!r}")
        enough = self.curve["accuracy_share"].to_numpy() >= accuracy_share - 1e-12
        return self.curve.iloc[int(np.flatnonzero(enough)[-1])]  # cost falls from row to row

    def __repr__(self) -> str:
        return f"TokenSavings(area={self.area:.3f}, n_runs={self.n_runs})"


def token_savings(process: StoppingRule, X: Any, y: ArrayLike, *, cost: Any = None) -> TokenSavings:
    """Weigh the cost that flags save against the accuracy that they lose.

    A flagged run ends after the step that was flagged and counts as a failure.

    Parameters
    ----------
    process : StoppingRule
        Fitted; `DensityRatioEProcess` or any baseline.
    X : TrajectoryArray or array-like of shape (n_runs, T_max)
        Scores of runs that were not used in fitting.
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade; runs with -1 are ignored.
    cost : TrajectoryArray or array-like of shape (n_runs, T_max), optional
        Cost of each step, for example in tokens, for the same runs in the same order. Default: 1
        a step.

    Returns
    -------
    TokenSavings
        The curve, its area, and what the fitted levels come to.

    Raises
    ------
    ValueError
        If costs are of other runs, negative or all zero, or no run succeeded.

    See Also
    --------
    trajscore.plotting.SavingsDisplay : Draws it.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, section 4.3.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import token_savings
    >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
    >>> process = DensityRatioEProcess(alpha=0.1).fit(X[:1000], y[:1000])
    >>> savings = token_savings(process, X[1000:], y[1000:])
    >>> savings
    TokenSavings(area=0.519, n_runs=1000)
    >>> print(f"{savings.point(0.9).cost_share:.2f}")
    0.89
    """
    if not isinstance(process, StoppingRule):
        raise ValueError(f"process must be a fitted stopping rule, got {process!r}")
    traces, labels, costs, n_dropped = process._observed(X, y, cost, allow_soft=True)
    if not labels.any():
        raise ValueError("no run succeeded, so the share of accuracy kept is undefined")
    account = _Account(traces, labels, process._statistic(traces), running_sum(traces, costs.cells))
    if not account.total > 0:
        raise ValueError(
            "all costs are zero, so nothing can be saved; pass cost=, that of each step"
        )
    return TokenSavings(
        curve=_curve(account),
        at_alpha=_at_alpha(process, account),
        total_cost=account.total,
        accuracy=float(labels.mean()),
        n_runs=len(labels),
        n_dropped=n_dropped,
    )


class _Account(NamedTuple):
    """Runs with outcomes, a rule's statistic, and what has been spent on each up to each step."""

    X: TrajectoryArray
    y: NDArray[Any]
    statistic: FloatArray
    spent: FloatArray

    @property
    def total(self) -> float:
        """Cost of all runs to their ends."""
        return float(self.spent[last_cells(self.X)].sum())

    def shares(self, threshold: FloatArray, cost: FloatArray, accepted: FloatArray) -> pd.DataFrame:
        """One row a threshold, from the cost that it leaves and the successes that it keeps."""
        return pd.DataFrame(
            {
                "threshold": threshold,
                "cost_share": np.maximum(cost / self.total, 0.0),
                "accuracy": accepted / len(self.y),
                "accuracy_share": accepted / self.y.sum(),
            }
        )


def _curve(account: _Account) -> pd.DataFrame:
    threshold, saved, lost = _follow_threshold(account)
    accepted = account.y.sum() - lost
    accepted[-1] = 0.0
    return account.shares(threshold, account.total - saved, accepted)


def _follow_threshold(account: _Account) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return thresholds, from none to all runs flagged, the cost that they save and the y flagged.

    A threshold below a record of a run, but not below the one before, stops the run there. So each
    record brings the run's cost down from that of its next record, and the last one, the first to
    be passed, from its full cost, and takes its outcome.
    """
    X, y, statistic, spent = account
    largest = running_max(X, statistic)
    is_record = np.append(True, largest[1:] > largest[:-1])
    is_record[X.offsets[:-1]] = True
    cells = np.flatnonzero(is_record)
    run, value, cost = run_numbers(X)[cells], largest[cells], spent[cells]
    is_last = np.append(run[1:] != run[:-1], True)
    until = np.where(is_last, spent[last_cells(X)][run], np.append(cost[1:], 0.0))
    saved = until - cost
    lost = np.where(is_last, y[run], 0.0)
    order = np.lexsort((lost, saved, -value))  # ties too in an order that rows cannot change
    value = value[order]
    ends = np.append(value[1:] != value[:-1], True)
    saved, lost = (np.append(0.0, np.cumsum(change[order])[ends]) for change in (saved, lost))
    return np.append(value[ends], -np.inf), saved, lost


def _at_alpha(process: StoppingRule, account: _Account) -> pd.DataFrame:
    X, y, statistic, spent = account
    alphas, good = process.alphas_.tolist(), y == 1
    limits = [process._limits(X, alpha) for alpha in alphas]
    stops = [first_step_above(X, statistic, limit) for limit in limits]
    table = account.shares(
        process.thresholds_.to_numpy(),
        np.array([spent_until(X, spent, steps)[0].sum() for steps in stops]),
        np.array([y[steps == 0].sum() for steps in stops]),
    )
    rates = [rate_with_interval("false_alarm_rate", steps[good] > 0) for steps in stops]
    table = table.join(pd.DataFrame(rates))
    table.index = pd.Index(process.alphas_, name="alpha")
    return table
