"""The risk of a run by TRACER: the tail functional of its steps' risks, and its tuning."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.ids import id_order
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, check_outcomes
from trajscore.core.values import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_within,
    check_choice,
)
from trajscore.core.within_runs import (
    cells_by_step,
    run_maxima,
    run_numbers,
    running_max,
    step_numbers,
)
from trajscore.tracer._risk_scorer import (
    ACTORS,
    AGGREGATIONS,
    COMPONENTS,
    IS_AGENT,
    SURPRISAL,
    ComponentScorer,
    check_channel,
    check_surprisal,
    components_of,
    nothing_recorded,
    nothing_yet,
    penalty,
    step_risk,
    weigh,
)


class TracerScorer(ComponentScorer):
    r"""Risk of a run from its worst steps.

    The risk of a step is the largest of its components, or another combination of them; the risk
    of a run mixes the mean over its worst steps with the worst one. Nothing is learned unless
    `tune` asks for it.

    Parameters
    ----------
    alpha, beta, gamma : float, default=1.0
        Weights of repetition, of the agent's gap and of the user's gap.
    k : float, default=0.1
        Tail fraction in (0, 1]: the K = max(1, floor(k N)) worst of N steps are averaged.
    w : float, default=0.1
        Weight in [0, 1] of the worst step, and for "separate" of the penalty.
    aggregation : {"max", "additive", "multiplicative", "separate"}, default="max"
        How a step's components become its risk.
    actors : {"both", "agent", "user"}, default="both"
        Whose steps carry risk; the others' risk is 0, and K is the same.
    tune : {None, "pairwise_logistic"}, default=None
        Whether `fit` looks for the parameters that separate failures from successes: over a
        coarse grid of alpha, beta, gamma and k, over a fine one, then over w.
    tau : float, default=1.0
        Temperature of the loss that `tune` minimises: the mean of
        :math:`\log(1 + e^{-(s_i - s_j)/\tau})` over failures i and successes j with risks s.

    Attributes
    ----------
    alpha_, beta_, gamma_, k_, w_ : float
        The parameters in use: the given ones, or those found.
    loss_ : float
        Pairwise logistic loss of the training runs; only with `tune`.
    n_unobserved_ : int
        Training runs without an outcome, left out of tuning; only with `tune`.
    n_channels_in_ : int
        Number of channels seen in `fit`.
    channels_in_ : tuple of str or None
        Their names; other ones are refused afterwards.

    See Also
    --------
    TracerSignals : Makes the components from runs.
    trajscore.tracer.early_warning : How early the risk predicts failure.

    Notes
    -----
    With U the surprisal and the penalty :math:`P_t = \alpha D_a + \beta D_o^A + \gamma D_o^U`:

    ================  ======================================================================
    max               :math:`r_t = \max(U_t, \alpha D_a, \beta D_o^A, \gamma D_o^U)`
    additive          :math:`r_t = U_t + P_t`
    multiplicative    :math:`r_t = U_t (1 + P_t)`
    separate          :math:`(1 - w)` top-K mean of U + :math:`w` top-K mean of P
    ================  ======================================================================

    and, but for the last, the risk is :math:`(1 - w)` times the mean of the K largest
    :math:`r_t` plus :math:`w` times the largest. A component that was not recorded leaves the
    others as they are. Until the first one of a run is recorded, its risk is NaN: in logs of
    dialogues, at the user's first turn. With "multiplicative" it is NaN until the first surprisal,
    which every run in `fit` must have. Tuning ignores a run of which none is ever recorded. With
    "max", `fit` warns where some runs have a surprisal and some have none, as their risks are on
    different scales. An array of one value a step, of whatever origin, is taken for the surprisal:
    the risk is then its tail.

    The tail is monotone, translation invariant, positively homogeneous, subadditive, and
    1-Lipschitz in the largest change of a step's risk (Theorems A.2 and A.4).

    References
    ----------
    Tayebati et al. (2026), TRACER: Trajectory Risk Aggregation for Critical Episodes in Agentic
    Reasoning, Eq. 16 to 23 and Appendix G.

    Examples
    --------
    >>> from trajscore import TracerScorer, TrajectoryArray
    >>> S = TrajectoryArray([[0.2, 0.0], [0.5, 0.0], [0.3, 0.8]], [2, 1],
    ...                     channels=["surprisal", "repetition"])
    >>> scorer = TracerScorer(w=0.5).fit(S)
    >>> scorer.score_samples(S)
    array([0.5, 0.8])
    >>> scorer.transform(S).to_list()
    [array([0.2, 0.5]), array([0.8])]
    """

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        gamma: float = 1.0,
        k: float = 0.1,
        w: float = 0.1,
        aggregation: str = "max",
        actors: str = "both",
        tune: str | None = None,
        tau: float = 1.0,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.k = k
        self.w = w
        self.aggregation = aggregation
        self.actors = actors
        self.tune = tune
        self.tau = tau

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check parameters and data; with `tune`, find the parameters.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals of `TracerSignals`.
        y : array-like of shape (n_runs,), optional
            Outcomes: 1 success, 0 failure, -1 not observed; needed for `tune`.

        Returns
        -------
        TracerScorer
            The fitted scorer.
        """
        signals = self._signals(X, reset=True)
        check_surprisal(signals, self.aggregation)
        parameters = {name: getattr(self, name) for name in TUNED}
        if self.tune is not None:
            if y is None:
                raise ValueError(f"tune={self.tune!r} needs y in fit, the outcome of each run")
            codes = check_outcomes(y, signals, allow_soft=False)
            parameters, self.loss_ = tuned(
                signals, codes, self.w, self.tau, aggregation=self.aggregation, actors=self.actors
            )
            self.n_unobserved_ = int((codes == CENSORED).sum())
        for name, value in parameters.items():
            setattr(self, f"{name}_", value)
        return self

    def attribution(self, X: TrajectoryArray) -> pd.DataFrame:
        """Split the risk of each run into the agent's and the user's part.

        Parameters
        ----------
        X : TrajectoryArray
            The signals, with the channel "is_agent".

        Returns
        -------
        DataFrame with n_runs rows, indexed by run
            total, agent, user: the risk of the run, and with only the agent's or only the
            user's steps at risk. The two parts add up to the total or more; NaN as in
            `score_samples`.

        References
        ----------
        Tayebati et al. (2026), TRACER, Theorem A.9.

        Examples
        --------
        >>> S = TrajectoryArray([[0.2, 1], [0.5, 0]], [2], channels=["surprisal", "is_agent"])
        >>> TracerScorer().fit(S).attribution(S)
             total  agent  user
        run
        0      0.5    0.2   0.5
        """
        signals = self._signals(X, reset=False)
        check_channel(signals, IS_AGENT, type(self).__name__)
        total = self._run_risk(signals)
        parts = {"total": total}
        for side in ("agent", "user"):
            parts[side] = 0.0 * total  # NaN stays
            if self.actors in ("both", side):
                parts[side] = self._run_risk(signals, side)
        return pd.DataFrame(parts, index=pd.Index(signals.ids, name="run"))

    def explain(self, X: Any) -> TrajectoryArray:
        """Return what the risk of each run is made of, step by step.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals.

        Returns
        -------
        TrajectoryArray
            Channels surprisal, repetition, agent_gap and user_gap, times their weights, 0 where
            absent; risk, of the step (for "separate", the mix of surprisal and penalty); and
            critical, 1 for the K worst steps, the earlier of equal ones first.

        See Also
        --------
        trajscore.plotting.TracerStripDisplay : Draws it.

        Examples
        --------
        >>> S = TrajectoryArray([[0.2, 0.0], [0.5, 0.9]], [2],
        ...                     channels=["surprisal", "repetition"])
        >>> TracerScorer(alpha=2).fit(S).explain(S)[["repetition", "risk", "critical"]].cells
        array([[0. , 0.2, 0. ],
               [1.8, 1.8, 1. ]])
        """
        signals = self._signals(X, reset=False)
        parts = self._components(signals)
        if self.aggregation == "separate":
            risk = mixed(parts[0], penalty(parts), self.w_)
        else:
            risk = step_risk(parts, self.aggregation)
        order = np.lexsort((-risk, run_numbers(signals)))  # stable: of equal ones the earlier first
        size = np.repeat(tail_size(signals.lengths, self.k_), signals.lengths)
        critical = np.empty_like(risk)
        critical[order] = step_numbers(signals) <= size
        return signals.with_cells(
            np.stack([*parts, risk, critical], axis=1), channels=(*COMPONENTS, "risk", "critical")
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.actors, "actors", ACTORS)
        if self.tune is not None:
            check_choice(self.tune, "tune", ("pairwise_logistic",))
        check_choice(self.aggregation, "aggregation", AGGREGATIONS)
        as_within(self.tau, "tau", 0, np.inf, "right")
        as_within(self.k, "k", 0, 1, "right")
        as_within(self.w, "w", 0, 1, "both")

    def _check_signals(self, signals: TrajectoryArray) -> None:
        if self.actors != "both":
            check_channel(signals, IS_AGENT, type(self).__name__)
        super()._check_signals(signals)

    def _components(self, signals: TrajectoryArray) -> FloatArray:
        return weigh(components_of(signals, self.actors), self.alpha_, self.beta_, self.gamma_)

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        parts = self._components(signals)
        if self.aggregation == "separate":
            mean = top_means(signals, parts[0], self.k_)
            other = top_means(signals, penalty(parts), self.k_)
        else:
            risk = step_risk(parts, self.aggregation)
            mean = top_means(signals, risk, self.k_)
            other = running_max(signals, risk)
        is_unknown = nothing_yet(signals, needed_components(self.aggregation))
        return np.where(is_unknown, np.nan, mixed(mean, other, self.w_))

    def _run_risk(self, signals: TrajectoryArray, actors: str | None = None) -> FloatArray:
        setting = {name: np.array([getattr(self, f"{name}_")]) for name in TUNED}
        return grid_scores(signals, setting, self.aggregation, actors or self.actors).ravel()


# Cells of the prefixes that are sorted at a time.
_CHUNK_CELLS = 1 << 20
# floor(k N) is meant for the number k as written: 0.29 * 100 is 29
_ROUNDING = 1e-9


def tail_size(lengths: Any, k: Any) -> IntArray:
    """Return K = max(1, floor(k N)) for lengths N; arrays are broadcast."""
    whole = np.floor(k * lengths + _ROUNDING)
    return np.maximum(whole, 1).astype(np.int64)


def mixed(mean: FloatArray, largest: FloatArray, w: float | FloatArray) -> FloatArray:
    """Return (1 - w) mean + w largest."""
    return (1 - w) * mean + w * largest


def top_means(X: TrajectoryArray, risk: FloatArray, k: float) -> FloatArray:
    """Return the mean of the K largest cells up to each cell."""
    mean = np.empty_like(risk)
    for length, (ends, _) in enumerate(cells_by_step(X), start=1):  # prefixes that have the same K
        size = int(tail_size(length, k))
        n_runs = max(1, _CHUNK_CELLS // length)
        for batch in np.split(ends, range(n_runs, len(ends), n_runs)):
            cells = risk[batch[:, None] - np.arange(length)]
            largest = np.partition(cells, length - size, axis=1)[:, length - size :]
            # added up from the largest on: the same digits in whatever company a run is computed
            mean[batch] = np.cumsum(-np.sort(-largest, axis=1), axis=1)[:, -1] / size
    return mean


TUNED = ("alpha", "beta", "gamma", "k", "w")
_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
_TAILS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
_FINE_FACTORS = (0.6, 0.8, 1.0, 1.25, 1.6)
_MIXES = tuple(round(0.1 * step, 1) for step in range(11))
_PAIRS = 1 << 22


def tuned(
    X: TrajectoryArray, codes: IntArray, w: float, tau: float, *, aggregation: str, actors: str
) -> tuple[dict[str, float], float]:
    """Return the best (alpha, beta, gamma, k, w) and its loss: coarse, then fine, then w."""
    rows = np.flatnonzero((codes != CENSORED) & ~nothing_recorded(X))
    if not len(rows):
        raise ValueError(
            "tune needs runs that have an outcome and a recorded component; no run has both"
        )
    rows = rows[id_order(X.ids[rows])]
    sample = X[rows]
    labels = codes[rows]

    def best(**grid: ArrayLike) -> tuple[dict[str, float], float]:
        values = {name: np.atleast_1d(np.asarray(grid[name], dtype=float)) for name in TUNED}
        scores = grid_scores(sample, values, aggregation, actors)
        losses = pairwise_logistic_loss(labels, scores, tau)
        # of settings that are equally good, the first: the one with the smallest weights
        place = np.unravel_index(int(np.argmin(losses.round(12))), losses.shape)
        setting = zip(TUNED, place, strict=True)
        return {name: float(values[name][index]) for name, index in setting}, float(losses[place])

    best_so_far, _ = best(alpha=_WEIGHTS, beta=_WEIGHTS, gamma=_WEIGHTS, k=_TAILS, w=w)
    finer = {
        name: sorted({round(value * factor, 6) for factor in _FINE_FACTORS})  # 0 stays 0
        for name, value in best_so_far.items()
    }
    finer["k"] = sorted({min(k, 1.0) for k in finer["k"]})
    best_so_far, _ = best(**(finer | {"w": w}))
    return best(**(best_so_far | {"w": sorted({*_MIXES, w})}))


def pairwise_logistic_loss(labels: IntArray, risk: FloatArray, tau: float) -> FloatArray:
    """Return the mean of log(1 + exp(-(s_i - s_j) / tau)) over failures i and successes j.

    `risk` has the shape (..., n_runs): several settings at once.
    """
    settings = risk.reshape(-1, risk.shape[-1]) / tau
    # sorted, so that the order of rows cannot change a digit
    failed = np.sort(settings[:, labels == FAILURE], axis=1)
    succeeded = np.sort(settings[:, labels == SUCCESS], axis=1)
    n_pairs = failed.shape[1] * succeeded.shape[1]
    if not n_pairs:
        raise ValueError(
            "tune needs failures and successes, but all observed outcomes are of one class"
        )
    losses = np.empty(len(settings))
    n_rows = max(1, _PAIRS // n_pairs)
    for start in range(0, len(settings), n_rows):
        rows = slice(start, start + n_rows)
        margin = failed[rows][:, :, None] - succeeded[rows][:, None, :]
        losses[rows] = np.logaddexp(0, -margin).reshape(len(margin), -1).mean(axis=1)
    return losses.reshape(risk.shape[:-1])


def grid_scores(
    X: TrajectoryArray, grid: dict[str, FloatArray], aggregation: str, actors: str
) -> FloatArray:
    """Return the risk of each run for every setting of a grid over `TUNED`.

    Of shape (n_alpha, n_beta, n_gamma, n_k, n_w, n_runs): steps are sorted once for all k and w.
    """
    alpha, beta, gamma, k, w = grid.values()
    starts = X.offsets[:-1]
    components = components_of(X, actors)

    def tail_means(risk: FloatArray) -> FloatArray:  # of shape (n_k, 1, n_runs)
        means = np.empty((len(k), 1, len(X)))
        for length in np.unique(X.lengths).tolist():
            rows = np.flatnonzero(X.lengths == length)
            sizes = tail_size(length, k)
            falling = -np.sort(-risk[starts[rows, None] + np.arange(length)])
            means[:, 0, rows] = (np.cumsum(falling, axis=1)[:, sizes - 1] / sizes).T
        return means

    scores = []
    for weights in product(alpha, beta, gamma):
        parts = weigh(components, *weights)
        if aggregation == "separate":
            mean = tail_means(parts[0])
            other = tail_means(penalty(parts))
        else:
            risk = step_risk(parts, aggregation)
            mean = tail_means(risk)
            other = run_maxima(X, risk)
        scores.append(mixed(mean, other, w[:, None]))
    out = np.reshape(scores, (*map(len, grid.values()), len(X)))
    out[..., nothing_recorded(X, needed_components(aggregation))] = np.nan
    return out


def needed_components(aggregation: str) -> Sequence[str]:
    """Return the components without any of which there is no risk."""
    return (SURPRISAL,) if aggregation == "multiplicative" else COMPONENTS
