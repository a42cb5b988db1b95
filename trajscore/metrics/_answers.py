"""Answers with an uncertainty: what it costs to rely on them where they seem certain enough."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, log_expit

from trajscore.core.array import TrajectoryArray
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    as_amount,
    as_flag,
    as_within,
    is_number,
)
from trajscore.metrics._answer_checks import check_answers, check_classes, check_decisions
from trajscore.metrics._selective import class_table, confidence_table
from trajscore.metrics.costs import (
    LOWEST,
    Cost,
    RejectionCurve,
    Scale,
    UACost,
    Weight,
    ZeroOneCost,
    as_cost,
    check_gammas,
    decisions,
    ecuas_costs,
    integral,
    largest_uncertainty,
    mean_cost,
)


class _Source(NamedTuple):
    """What answers were made of: confidences, or with `y` probabilities of classes."""

    values: AnyArray
    log: bool  # log-odds of confidences, or log-probabilities
    y: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers or decisions of a system: what each one cost, and how uncertain the system was of it.

    A user accepts an answer where its uncertainty u is at most the cost g of rejecting, and pays g
    otherwise. Make answers by `from_proba`, `from_confidence` or `from_decisions`, and ask for what
    relying on them costs: `cost` at one g, `ecuas` over all of them, `integrated` over a weight of
    your own; `metrics` is a whole table.

    Attributes
    ----------
    log_u, paid, weight : ndarray of shape (n_samples,)
        Logarithm of each answer's uncertainty, what the answer cost, and its sample weight.
    scale : object
        ``scale.u_max``, the largest possible uncertainty, and ``scale.floor``, the smallest one
        that is taken under a logarithm.
    source : object or None
        The confidences or class probabilities that the answers were made of.

    See Also
    --------
    ecuas_score : ``Answers.from_proba(...).ecuas(n)``, in one call.
    ecuas_from_confidence : ``Answers.from_confidence(...).ecuas(n)``, in one call.
    trajscore.plotting.CostCurveDisplay : Draws the cost over the cost of rejecting.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490: Eq. 1 to 7 (`cost`), Eq. 8 to 11 and
    Appendix A.3 (`ecuas`), Eq. 8 and Proposition 3 (`integrated`), Section 4 and Table 3
    (`metrics`).

    Examples
    --------
    >>> answers = Answers.from_proba([0, 1], [[0.9, 0.1], [0.6, 0.4]])
    >>> answers.cost(0.25)
    UACost(cost=0.125, selective_risk=0.0, coverage=0.5)
    >>> round(answers.ecuas(n=1), 3)
    0.74
    """

    log_u: FloatArray
    paid: FloatArray
    weight: FloatArray
    scale: Cost | Scale
    source: _Source | None = None

    @property
    def _floor(self) -> float:
        """Smallest uncertainty under a logarithm, 0 for none."""
        return 0.0 if self.source is not None and self.source.log else self.scale.floor

    @classmethod
    def from_proba(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        cost: ArrayLike | str | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        log_proba: bool = False,
        eps: float = 1e-7,
    ) -> Answers:
        """Take the Bayes decision for each row of class probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Class of each sample.
        y_proba : array-like of shape (n_samples, n_classes)
            Probability of each class.
        cost : array-like of shape (n_classes, n_decisions) or "log", optional
            Cost of each decision for each class, >= 0; a class need not have a decision of cost 0.
            Default: the 0-1 cost of choosing a class. "log" is the cost -log q_y of stating the
            distribution q itself; u is then its entropy.
        labels : array-like of shape (n_classes,), optional
            The class of each column. Default: the sorted classes that occur, where they are as many
            as columns; else 0, ..., K - 1, if all classes that occur are such numbers.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each sample.
        log_proba : bool, default=False
            Whether `y_proba` holds log-probabilities; these are scored without a cap.
        eps : float, default=1e-7
            For plain probabilities, floor of u where a cost grows without end as u tends to 0 (for
            a cost matrix the same share of u_M as for the 0-1 cost, eps u_M / (1 - 1/K)), and of
            probabilities in the logarithmic cost; it caps the penalty.

        Returns
        -------
        Answers
            One for each sample. Of classes with the same largest probability the first column is
            the decision, and of decisions with the same smallest expected cost, to 12 significant
            digits, the first.

        Raises
        ------
        ValueError
            If a row is not a distribution, a class has no column, the classes of the columns are
            ambiguous, `eps` is not in [0, 1), or the cost matrix is not usable.
        """
        if isinstance(y_proba, TrajectoryArray):
            raise ValueError(
                "y_proba holds runs of several steps, and one probability a run is needed: "
                "ecuas_from_confidence(y, TraceAggregator().fit(X).predict_proba(X)[:, 1])"
            )
        P, y, weight = check_classes(y_true, y_proba, labels, sample_weight)
        system = as_cost(cost, P.shape[1], eps)
        log = as_flag(log_proba, "log_proba")
        log_u, paid = decisions(P, y, system, log)
        return cls(log_u, paid, weight, system, _Source(P, log, y))

    @classmethod
    def from_confidence(
        cls,
        correct: ArrayLike,
        confidence: ArrayLike,
        *,
        n_classes: float = np.inf,
        log_odds: bool = False,
        sample_weight: ArrayLike | None = None,
        eps: float = 1e-7,
    ) -> Answers:
        """Take answers that are right or wrong, each with a confidence.

        Parameters
        ----------
        correct : array-like of shape (n_samples,)
            Whether each answer is right (1 or True) or wrong.
        confidence : array-like of shape (n_samples,)
            Probability in [0, 1] that the answer is right: for generated text, that of the answer's
            whole class of equivalent wordings, not of the one string.
        n_classes : float, default=inf
            Number of possible answers; a confidence below 1/n_classes is no longer a confidence in
            the best answer, and costs what 1/n_classes costs.
        log_odds : bool, default=False
            Whether `confidence` holds log(c / (1 - c)), infinity for c = 1; these are ranked and
            scored without a cap, and a certain error costs infinity for n = 0.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each sample.
        eps : float, default=1e-7
            For confidences in [0, 1], floor of the uncertainty under a logarithm.

        Returns
        -------
        Answers
            Each costs 1 where it is wrong, and has the uncertainty 1 - confidence.

        Raises
        ------
        ValueError
            If a confidence is missing or outside [0, 1], an answer is neither right nor wrong,
            `n_classes` is less than 2, or `eps` is not in [0, 1).
        """
        as_within(eps, "eps", 0, 1, "left")
        as_within(n_classes, "n_classes", 2, np.inf, "both")
        log = as_flag(log_odds, "log_odds")
        right, c, weight = check_answers(correct, confidence, sample_weight, probability=not log)
        with np.errstate(divide="ignore"):  # an uncertainty of 0
            log_u = np.asarray(log_expit(-c) if log else np.log(1 - c))
        return cls(log_u, 1 - right, weight, ZeroOneCost(1 - 1 / n_classes, eps), _Source(c, log))

    @classmethod
    def from_decisions(
        cls,
        paid: ArrayLike,
        u: ArrayLike,
        *,
        u_max: ArrayLike,
        sample_weight: ArrayLike | None = None,
        eps: float = 1e-7,
    ) -> Answers:
        """Take decisions with graded costs, each with an uncertainty.

        For systems that state what they do and how much they expect it to cost, and no class
        probabilities. All costs are lowest where u is the expected cost of the best decision.

        Parameters
        ----------
        paid : array-like of shape (n_samples,)
            Cost of each decision that was made, given what was true; >= 0.
        u : array-like of shape (n_samples,)
            Uncertainty of each decision, its expected cost as the system states it; >= 0, in the
            units of `paid`.
        u_max : float or array-like of shape (n_classes, n_decisions)
            Largest uncertainty u_M that can occur; or the cost of each decision for each class, of
            which it is the largest over all distributions of classes, found by a linear program.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each sample.
        eps : float, default=1e-7
            Floor of u / u_M under the logarithm of n = 0.

        Returns
        -------
        Answers
            One for each decision.

        Raises
        ------
        ValueError
            If a cost or an uncertainty is negative or not finite, `u_max` is not above 0, or `eps`
            is not in [0, 1).

        Examples
        --------
        Repairs cost 1, breakdowns 10; a machine is repaired, another left alone, and it breaks
        down:

        >>> costs = [[1, 0], [1, 10]]  # of repairing and of leaving a sound, and a worn, machine
        >>> round(Answers.from_decisions([1, 10], [1.0, 0.4], u_max=costs).ecuas(), 3)
        6.58
        """
        as_within(eps, "eps", 0, 1, "left")
        largest: Any = u_max
        if np.ndim(u_max) == 2:
            largest = largest_uncertainty(u_max)
        largest = as_within(largest, "u_max", 0, np.inf)
        costs, uncertainty, weight = check_decisions(paid, u, sample_weight)
        with np.errstate(divide="ignore"):  # an uncertainty of 0
            log_u = np.log(uncertainty)
        return cls(log_u, costs, weight, Scale(largest, eps * largest))

    def ecuas(self, n: float = 1, *, normalize: bool = False) -> float:
        """Return ECUAS_n, the cost over all costs of rejecting; lower is better.

        The costs g of rejecting have the weight w_n(g) proportional to g^(n-1).

        Parameters
        ----------
        n : float, default=1
            Any real number >= 0. 0 punishes confident errors most (logarithmically); 1 is, for two
            classes, the normalised Brier score; large n tends to the mean cost of the decisions
            divided by u_M, the largest possible uncertainty.
        normalize : bool, default=False
            Whether to divide by the cost of the naive system that always outputs the frequencies of
            the classes; for answers of class probabilities only.

        Returns
        -------
        float
            Mean cost; 1 for a system that is as uncertain as can be.

        Raises
        ------
        ValueError
            If n < 0, or with `normalize`, all samples are of one class, so that the naive system
            costs 0, or there are no class probabilities.
        """
        return self._ecuas(n, normalize)

    def cost(self, gamma: ArrayLike) -> UACost:
        """Return the expected cost at a fixed cost of rejecting, C*_gamma; lower is better.

        Parameters
        ----------
        gamma : float or array-like of shape (n_gammas,)
            Cost of rejecting, >= 0, in the units of the costs of decisions; a decision is accepted
            where u <= gamma.

        Returns
        -------
        named tuple of floats or ndarrays of shape (n_gammas,)
            cost: selective_risk * coverage + gamma * (1 - coverage); lower is better.
            selective_risk: mean cost of accepted decisions; NaN where none is accepted.
            coverage: share of accepted decisions.

        Raises
        ------
        ValueError
            If a gamma is negative or not finite.
        """
        return RejectionCurve(self.log_u, self.paid, self.weight).at(check_gammas(gamma))

    def integrated(self, weight: Weight, *, breaks: Sequence[float] = ()) -> float:
        """Return the expected cost over a weight of rejection costs; lower is better.

        The integral of w(gamma) C*_gamma is a proper score for every weight >= 0; `ecuas` is its
        closed form for w_n. A weight function is integrated numerically, for w_n to ten digits;
        there u has the floor `eps` (from log-probabilities and log-odds 1e-300). Point masses are
        exact.

        Parameters
        ----------
        weight : callable or dict of float to float
            ``weight(gamma)`` for an array of rejection costs in (0, u_M], >= 0; or point masses
            ``{gamma: mass}``.
        breaks : sequence of float, default=()
            Where the weight jumps, or peaks within less than a hundredth of gamma: such a peak may
            be missed if it is not given.

        Returns
        -------
        float
            Mean cost.

        Raises
        ------
        ValueError
            If the weight is neither function nor dict, is negative or not finite somewhere, or its
            integral does not converge.

        Examples
        --------
        >>> answers = Answers.from_proba([0, 1], [[0.9, 0.1], [0.6, 0.4]])
        >>> round(answers.integrated(lambda gamma: 8 * gamma**0), 6)  # n = 1
        0.74
        >>> round(answers.integrated({0.25: 0.5, 0.45: 0.5}), 6)
        0.3125
        """
        if not isinstance(weight, Mapping) and not callable(weight):
            raise ValueError(f"weight must be a function or a dict of point masses, got {weight!r}")
        self._warn_above(stacklevel=3)
        u_max = self.scale.u_max
        log_u = np.minimum(self.log_u, np.log(u_max))
        if isinstance(weight, Mapping):
            curve = RejectionCurve(log_u, self.paid, self.weight)
            return curve.over_point_masses(weight)
        floored = np.maximum(log_u, np.log(self._floor) if self._floor else LOWEST)
        return integral(weight, RejectionCurve(floored, self.paid, self.weight), u_max, breaks)

    def metrics(
        self, *, n: Any = (0, 1, 128), n_bins: int = 10, recall: float = 0.95, rule: str = "mean"
    ) -> pd.Series:
        """Return a table of metrics of answers that are right or wrong.

        Parameters
        ----------
        n : float or sequence of float, default=(0, 1, 128)
            Parameters of `ecuas`.
        n_bins : int, default=10
            Number of bins of the ECE.
        recall : float, default=0.95
            Share of right answers to be accepted for the FPR, in (0, 1].
        rule : {"mean", "trapezoid"}, default="mean"
            As in `aurc`.

        Returns
        -------
        Series
            Of answers of class probabilities first N-ER, N-BS, N-CE: error rate, Brier score and
            cross-entropy of all classes, over those of a naive system that outputs the class
            frequencies (1 for a system no better than that), and N-ECUAS_n, the same of ECUAS_n.
            All four are lower for the better system, and NaN where all samples are of one class.
            Then of the answers and their confidence c:

            accuracy: share of right answers.
            ECE: calibration error over bins of equal width, closed on the left.
            AUC: chance that a right answer has the higher confidence of a pair; ties count half.
            BS of confidence, CE of confidence: Brier score (mean of (c - correct)^2) and
            cross-entropy in nats. N-BS of confidence, N-CE of confidence: the same over what a
            constant confidence at the accuracy a scores, a (1 - a) and the entropy of a.
            AURC: `aurc`. excess AURC: beyond that of a perfect ranking of the same answers.
            AUARC: area under the accuracy-rejection curve, 1 - AURC. AUGRC: `augrc`.
            FPR at recall: share of wrong answers accepted at the highest threshold that accepts at
            least `recall` of the right ones; ties are accepted together.
            ECUAS_n: `ecuas`.
            Where all answers are right, or all wrong, AUC, FPR and the normalised entries are NaN.

        Raises
        ------
        ValueError
            If the answers are decisions with other costs than 0 and 1, their weights add up to 1 or
            less, or a parameter is out of range.

        Notes
        -----
        AURC depends on how many samples there are: a `sample_weight` is the number of samples that
        a row stands for. Log-probabilities are ranked and scored by the log-odds of the answer,
        which do not saturate where its probability rounds to 1.

        References
        ----------
        Table 3 of the paper prints twice the N-BS of the confidence, and takes
        ``rule="trapezoid"``. Excess: Geifman, Uziel and El-Yaniv (2019), ICLR. Accuracy-rejection:
        Nadeem, Zucker and Hanczar (2009), MLSB. FPR at 95% recall: Hendrycks, Mazeika and
        Dietterich (2019), ICLR.

        Examples
        --------
        >>> answers = Answers.from_confidence([1, 1, 0], [0.9, 0.6, 0.4])
        >>> answers.metrics()[["ECE", "AUC", "AURC"]].round(3)
        ECE     0.300
        AUC     1.000
        AURC    0.111
        dtype: float64
        """
        numbers: list[Any] = [n] if is_number(n) else list(n)
        for each_n in numbers:
            as_amount(each_n, "n")
        confidence, log_odds = self._confidence()
        of_answers = confidence_table(
            1 - self.paid, confidence, log_odds, self.weight, n_bins=n_bins, recall=recall,
            rule=rule, eps=self._floor,
        )  # fmt: skip
        if numbers:
            self._warn_above(stacklevel=3)
        of_answers |= {f"ECUAS_{each_n:g}": self._mean(each_n) for each_n in numbers}
        source = self.source
        if source is None or source.y is None:
            return pd.Series(of_answers)
        table = class_table(source.values, source.y, self.weight, source.log, self._floor)
        for each_n in numbers:
            naive = self._naive_cost(each_n)
            table[f"N-ECUAS_{each_n:g}"] = of_answers[f"ECUAS_{each_n:g}"] / naive
        return pd.Series(table | of_answers)

    def _ecuas(self, n: float, normalize: bool = False) -> float:
        """Return what `ecuas` and the functions of one call return, one frame below the user."""
        as_amount(n, "n")
        self._warn_above(stacklevel=4)
        if not as_flag(normalize, "normalize"):
            return self._mean(n)
        naive = self._naive_cost(n)
        if np.isnan(naive):
            raise ValueError(
                "all samples are of one class, so the naive system costs 0 and there is no "
                "normalised score; use normalize=False"
            )
        return self._mean(n) / naive

    def _mean(self, n: float) -> float:
        costs = ecuas_costs(self.log_u, self.paid, n, self.scale.u_max, self._floor)
        return mean_cost(costs, self.weight)

    def _naive_cost(self, n: float) -> float:
        """Cost of always stating the class frequencies; NaN where there is one class."""
        source = self.source
        cost = self.scale
        if source is None or source.y is None or not isinstance(cost, Cost):
            raise ValueError("normalize=True needs class probabilities; use Answers.from_proba")
        counts = np.bincount(source.y, self.weight, source.values.shape[1])
        if np.count_nonzero(counts) < 2:  # counted before dividing, which may round 1 down
            return np.nan
        prior = counts / counts.sum()
        K = len(counts)
        log_u, paid = decisions(np.tile(prior, (K, 1)), np.arange(K), cost, log_proba=False)
        naive = mean_cost(ecuas_costs(log_u, paid, n, cost.u_max, cost.floor), prior)
        if naive <= 0:
            raise ValueError("the naive system costs 0 with this cost matrix; use normalize=False")
        return naive

    def _confidence(self) -> tuple[FloatArray, FloatArray | None]:
        """Return the confidence in each answer, and its log-odds where they are known."""
        source = self.source
        if source is None or not isinstance(self.scale, ZeroOneCost):
            raise ValueError(
                "metrics() needs answers that are right or wrong; use Answers.from_confidence, or "
                "Answers.from_proba without cost="
            )
        if source.y is None:
            return (expit(source.values), source.values) if source.log else (source.values, None)
        best = source.values.max(axis=1).astype(float)
        if source.log:
            return np.minimum(np.exp(best), 1), best - self.log_u
        return np.minimum(best, 1), None

    def _warn_above(self, stacklevel: int) -> None:
        u_max = self.scale.u_max
        n_above = np.count_nonzero(self.log_u > np.log(u_max) + SUM_ROUNDING)
        if n_above:
            warnings.warn(
                f"{n_above} uncertainties lie above the largest possible one, {u_max:.6g}, and are "
                f"scored as that (Appendix A.3)",
                stacklevel=stacklevel,
            )
