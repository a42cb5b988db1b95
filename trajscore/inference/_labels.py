"""Intervals where few runs are labelled, and a judge has an opinion on all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.preprocessing import StandardScaler

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import Sample, check_sample
from trajscore.core.folds import assign_folds
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.policy import MIN_LABELS, MIN_RUNS_FOR_DIFFERENCE
from trajscore.core.score_families import get_family
from trajscore.core.ties import OrdinaryRange
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_fraction,
    check_rows,
    number_of,
    one_per_run,
    to_unit,
)
from trajscore.core.weights import (
    Horizon,
    StepWeights,
    Weights,
    as_step_weights,
    collapse,
    run_sums,
)
from trajscore.inference.intervals import (
    Spread,
    Units,
    any_units,
    n_equal,
    t_quantile,
    warn_few_clusters,
    wilson_interval,
)

# a judge that was never wrong in n labelled runs may be wrong in one of the next
_PSEUDO_DISAGREEMENTS = 2.0
_MOST_FOLDS = 10
# how far, in standard errors, the number of runs may be off that the labels stand for
_MOST_ERRORS = 4.0
_NUMBERS = ("value", "low", "high", "std_error", "std_error_all", "n_labels", "n_runs", "worth")
_N_ITERATIONS = 30
# the largest log-odds of a forecast of one step, as a feature
_LARGEST_LOGIT = 5.0
# a judge's standardised verdict is shrunk less than what the trace says
_JUDGE_SCALE = 2.0


def label_intervals(
    X: Any,
    y: ArrayLike,
    *,
    label_probability: ArrayLike,
    judge: ArrayLike | None = None,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    r"""Estimate success rate, score and margin of all runs from the labels of a few.

    The labels must be drawn at random with known probabilities, as `LabelDesign` draws them. A
    judge that is wrong costs precision; it cannot bias the result.

    Parameters
    ----------
    X : TrajectoryArray or array-like of shape (n_runs, T_max)
        One trace a run. Of a signal that leaves [0, 1] there is no score and no margin.
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 (or missing) not labelled.
    label_probability : float or array-like of shape (n_runs,)
        Chance with which each run was chosen to be labelled; only those of labelled runs are read.
    judge : array-like of shape (n_runs,), optional
        A judge's verdict on every run: 0 or 1, or a grade in [0, 1].
    score, weights, horizon : score family and step weights
        As in `trajscore.metrics.tps_score`.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs, such as trials of one task.
    confidence_level : float, default=0.95
        Level of the intervals.

    Returns
    -------
    DataFrame with one row a metric
        value, low, high and std_error; std_error_all, what it would be if all runs were labelled;
        n_labels and n_runs; worth, the number of labels from which the labels alone would give as
        short an interval; and note, which says why there is no interval where there is none.

    Raises
    ------
    ValueError
        If fewer than 20 runs are labelled, a labelled run has no probability in (0, 1], the
        probabilities do not fit the number of labels, or the judge has no verdict on some run.

    Warns
    -----
    UserWarning
        If the labelled runs are of fewer than 15 groups, or equivalent to fewer equally large ones.

    See Also
    --------
    LabelDesign : Chooses the runs to label.
    labels_needed : How many labels an interval of a given width takes.

    Notes
    -----
    With R whether a run is labelled, :math:`\pi` the probability of that, and g a forecast of the
    outcome from the judge and the trace, every metric is computed from the pseudo-outcome

    .. math:: \tilde y = g + \frac{R}{\pi} (y - g).

    Its mean is that of y whatever g is. g is a ridge logistic regression that is fitted out of
    fold: a run's own label, and those of its group, are never in its g. What g says of a metric
    counts by a factor in [0, 1] that makes its interval shortest; at 0 it is the metric of the
    labelled runs alone. Intervals come from the influence of each run. Two pseudo-disagreements
    with g, spread over the labelled runs, widen them where a judge is nearly never wrong. Those of
    rates have at least the variance that g expects.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), PPI++: Efficient Prediction-Powered Inference; Zrnic and
    Candes (2024), Cross-Prediction-Powered Inference; Robins, Rotnitzky and Zhao (1994); Wilson
    (1927) for rates, with the effective number of runs.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore.datasets import make_trajectories
    >>> runs = make_trajectories(2000, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> judge = np.where(rng.random(2000) < 0.15, 1 - runs.target, runs.target)
    >>> y = np.where(rng.random(2000) < 0.05, runs.target, -1)
    >>> table = label_intervals(runs.data, y, judge=judge, label_probability=0.05)
    >>> table[["value", "low", "high"]].loc["success rate"].round(2).tolist()
    [0.52, 0.45, 0.6]
    """
    family = get_family(score)
    step_weights = as_step_weights(weights, horizon)
    level = as_fraction(confidence_level, "confidence_level")
    sample = check_sample(X, y, groups=groups, allow_soft=False, single_channel=True)
    order = sample.id_order()
    probability = check_label_probability(label_probability, sample.y)[order]
    verdict = check_verdict(judge, order)
    ordered = sample.take(order)
    labels = FewLabels.of(ordered, probability, verdict)
    ones = np.ones(len(order))
    rows = {"success rate": labels.estimate(weighted_rate(ones), level)}
    if ordered.groups is not None:
        labelled = ordered.y != CENSORED
        warn_few_clusters(any_units(ordered.groups[labelled], labelled.sum()))
    if verdict is not None:
        nothing = np.zeros((2, len(order)))
        missed = OutcomeRatio(np.stack([1 - verdict, ones]), nothing, is_rate=True)
        passed = OutcomeRatio(nothing, np.stack([verdict, ones]), is_rate=True)
        rows["judge wrong on successes"] = labels.estimate(missed, level)
        rows["judge wrong on failures"] = labels.estimate(passed, level)
    if ordered.X.is_within_unit():
        name = f"TPS {family.name}"
        tps = score_of_outcomes(ordered.X, family, step_weights)
        rows[name] = labels.estimate(tps, level)
        constant = labels.value(best_constant(tps))
        rows[f"{name} margin"] = labels.estimate(above_constant(tps, family, constant), level)
    table = pd.DataFrame(rows, index=[*_NUMBERS, "note"]).T.rename_axis("metric")
    return table.astype(dict.fromkeys(_NUMBERS, float))


def check_label_probability(label_probability: Any, y: IntArray) -> FloatArray:
    """Return the probability of each run, which must be in (0, 1]; 1 of those without a label."""
    remedy = "give the chance, above 0 and at most 1, with which the run was chosen to be labelled"
    name = "label_probability"
    chance = to_unit(np.where(y == CENSORED, 1.0, one_per_run(label_probability, name, len(y))))
    check_rows(chance, (chance > 0) & (chance <= 1), name, remedy)
    return chance


def check_verdict(judge: Any, order: IntArray) -> FloatArray | None:
    """Return a verdict on each run, in [0, 1] and this order; None stays None."""
    if judge is None:
        return None
    remedy = "give 0, 1 or a grade between them for every run"
    verdict = to_unit(one_per_run(judge, "judge", len(order)))
    check_rows(verdict, (verdict >= 0) & (verdict <= 1), "judge", remedy)
    return verdict[order]


# ------------------------------------------------------------------------ metrics


@dataclass(frozen=True)
class OutcomeRatio:
    """Ratio of sums over runs, of which the terms are known for either outcome of each run."""

    success: FloatArray  # the terms of both sums, of shape (2, n_runs)
    failure: FloatArray
    is_rate: bool = False

    def terms(self, y: FloatArray) -> FloatArray:
        """Return the terms of both sums, given the outcomes."""
        return self.failure + y * (self.success - self.failure)

    def value(self, y: FloatArray) -> float:
        """Return the ratio, given the outcomes."""
        return _ratio(self.terms(y))[0]

    def slope(self, y: FloatArray) -> FloatArray:
        """Return the slope of the ratio, times n_runs, in the outcome of each run."""
        value, scale = _ratio(self.terms(y))
        return scale * _residual(self.success - self.failure, value)


def _ratio(terms: FloatArray) -> tuple[float, float]:
    """Return the ratio of two sums, and what turns residuals into influences; NaN if there is
    nothing to divide by.
    """
    above, below = terms.sum(axis=1)
    if not below > 0:
        return math.nan, math.nan
    return above / below, terms.shape[1] / below


def _residual(terms: FloatArray, value: float) -> FloatArray:
    return terms[0] - value * terms[1]


def weighted_rate(weight: FloatArray) -> OutcomeRatio:
    """Return the success rate of runs that have weights."""
    return OutcomeRatio(np.stack([weight, weight]), np.stack([0 * weight, weight]), is_rate=True)


def score_of_outcomes(X: TrajectoryArray, score: Any, weights: StepWeights) -> OutcomeRatio:
    """Return the Trajectory Proper Score."""
    success, failure = (
        run_sums(np.full(len(X), outcome), X, score, weights) for outcome in (SUCCESS, FAILURE)
    )
    return OutcomeRatio(
        np.stack([success.total, success.divisor]), np.stack([failure.total, failure.divisor])
    )


def best_constant(score: OutcomeRatio) -> OutcomeRatio:
    """Return the success rate over forecasts, which is the best constant of a score."""
    return weighted_rate(score.success[1])


def above_constant(score: OutcomeRatio, family: Any, rate: float) -> OutcomeRatio:
    """Return a score less that of the best constant, which to first order does not move."""
    weight = score.success[1]
    least = 0.5 / len(weight)
    constant = np.array([np.clip(rate, least, 1 - least)])
    return OutcomeRatio(
        score.success - np.outer([*family.success(constant), 0], weight),
        score.failure - np.outer([*family.failure(constant), 0], weight),
    )


# ------------------------------------------------------------------ pseudo-outcomes


@dataclass(frozen=True)
class FewLabels:
    """Outcomes of labelled runs, and a forecast of that of every run from the labels of others."""

    outcome: FloatArray  # 0 where there is no label
    inverse: FloatArray  # 1 / probability where there is a label, else 0
    forecast: FloatArray  # by judge and trace
    units: Units

    @classmethod
    def of(cls, sample: Sample, probability: FloatArray, judge: FloatArray | None) -> Self:
        """Forecast outcomes out of fold; runs are in the order of their ids."""
        y = sample.y
        labelled = y != CENSORED
        n_labels = labelled.sum()
        if n_labels < MIN_LABELS:
            raise ValueError(
                f"{number_of(n_labels, 'run')} of {len(y):,} are labelled; label at least "
                f"{MIN_LABELS}, chosen by LabelDesign, to draw a conclusion"
            )
        outcome = np.where(labelled, y, 0).astype(float)
        inverse = labelled / probability
        units = any_units(sample.groups, len(y))
        _check_total(inverse, units)
        fold = _folds(sample.X.ids, outcome, labelled, sample.groups)
        train = labelled & (fold != np.arange(fold.max() + 1)[:, None])
        features = outcome_features(sample.X, judge)
        coefficients = ridge_logistic(features[labelled], outcome[labelled], train[:, labelled])
        forecast = expit(coefficients @ features.T)[fold, np.arange(len(y))]
        return cls(outcome, inverse, forecast, units)

    @property
    def labelled(self) -> BoolArray:
        """Whether each run is labelled."""
        return self.inverse > 0

    def pseudo_terms(self, ratio: OutcomeRatio, trust: float = 1.0) -> FloatArray:
        """Return terms whose mean, over draws of labels, is that of the terms of the outcomes."""
        guess = trust * ratio.terms(self.forecast)
        return guess + self.inverse * (ratio.terms(self.outcome) - guess)

    def value(self, ratio: OutcomeRatio) -> float:
        """Estimate a ratio."""
        return _ratio(self.pseudo_terms(ratio, self.trust(ratio)))[0]

    def trust(self, ratio: OutcomeRatio) -> float:
        """Return how far the forecast counts: what makes the variance of the estimate least."""
        terms = self.pseudo_terms(ratio)
        value, _ = _ratio(terms)
        noise = (1 - self.inverse) * _residual(ratio.terms(self.forecast), value)
        full, moved = map(self.units.sums, (_residual(terms, value), noise))
        total = moved @ moved
        if not total > 0:  # or the ratio is not defined
            return 1.0
        return float(np.clip(1 - (full @ moved) / total, 0.0, 1.0))

    def estimate(self, ratio: OutcomeRatio, confidence_level: float) -> dict[str, Any]:
        """Return a row of the table: a ratio with its interval, and what the labels are worth."""
        n = len(self.outcome)
        trust = self.trust(ratio)
        value, scale = _ratio(self.pseudo_terms(ratio, trust))
        seen = ratio.terms(self.outcome)
        used = self.labelled & (seen[1] > 0)
        note = self._problem(ratio, value, used.sum())
        row = {"n_labels": self.labelled.sum(), "n_runs": n, "note": note}
        if note:
            return row
        variance, of_runs = self._variances(ratio, trust, value, scale)
        alone = self.inverse @ (scale * _residual(seen, value)) ** 2 / self.inverse.sum()
        n_effective = n_equal(self.units.sums(used * self.inverse))
        quantile = t_quantile(n_effective - 1, confidence_level)
        half_width = quantile * math.sqrt(variance)
        low = value - half_width
        high = value + half_width
        if ratio.is_rate:
            low, high = _bounds_of_rate(value, variance, quantile, *seen[:, used])
        return row | {
            "value": min(max(value, low), high),
            "low": low,
            "high": high,
            "std_error": math.sqrt(variance),
            "std_error_all": math.sqrt(of_runs),
            "worth": min(alone / variance, n) if variance > 0 else n,
        }

    def _variances(
        self, ratio: OutcomeRatio, trust: float, value: float, scale: float
    ) -> tuple[float, float]:
        """Return the variance of a ratio, and what it would be if all runs were labelled."""
        guess, seen, other = (
            scale * _residual(ratio.terms(y), value)
            for y in (self.forecast, self.outcome, 1 - self.outcome)
        )
        guess *= trust
        influence = guess + self.inverse * (seen - guess)
        plain = Spread(influence[:, None], self.units).half_width(1.0)[0] ** 2
        # what drawing the labels adds: none where all were bound to be drawn
        noise = self.inverse * np.maximum(self.inverse - 1, 0) / len(influence) ** 2
        missed = (seen - guess) ** 2
        of_labels = noise @ missed
        of_runs = max(plain - of_labels, 0.0)
        spread = plain
        if ratio.is_rate:  # by chance few labels may show less than the forecast expects
            wrong = abs(self.outcome - self.forecast)
            expected = (1 - wrong) * missed + wrong * (other - guess) ** 2
            spread = of_runs + max(of_labels, noise @ expected)
        share = _PSEUDO_DISAGREEMENTS / self.labelled.sum()  # of labels that might have been other
        return spread + noise @ (other - guess) ** 2 * share, of_runs

    def _problem(self, ratio: OutcomeRatio, value: float, n_used: int) -> str:
        """Say why there is no interval, or nothing."""
        if ratio.is_rate:
            if n_used >= MIN_RUNS_FOR_DIFFERENCE and not math.isnan(value):
                return ""
            needed = f"at least {MIN_RUNS_FOR_DIFFERENCE} are needed"
            return f"Only {n_used} labelled runs count here; {needed}"
        if not self.outcome.any():
            return "No labelled run succeeded; label more runs"
        if self.outcome[self.labelled].all():
            return "No labelled run failed; label more runs"
        return ""


def _check_total(inverse: FloatArray, units: Units) -> None:
    """Refuse probabilities that do not fit the number of labels, and labels of one group only."""
    n = len(inverse)
    total = inverse.sum()
    if (units.sums(inverse) > 0).sum() < 2:
        raise ValueError("all labelled runs are of one group; label runs of at least two")
    # as if runs of a group were labelled together
    errors = np.sqrt(inverse * np.maximum(inverse - 1, 0))
    error = np.linalg.norm(units.sums(errors))
    if abs(total - n) > _MOST_ERRORS * error + 0.01 * n:
        raise ValueError(
            f"by their label_probability the labelled runs stand for {total:,.0f} runs, but there "
            f"are {n:,}; give the chance with which each was chosen, and -1 as the outcome of runs "
            f"that were not"
        )


def _bounds_of_rate(
    value: float, variance: float, quantile: float, above: FloatArray, below: FloatArray
) -> tuple[Any, Any]:
    """Return the ends of an interval by Wilson, with the effective number of runs."""
    rate = min(max(value, 0.0), 1.0)
    least = 1 / (len(above) + 2)  # a rate of 0 or 1 has a variance, too
    inside = min(max(rate, least), 1 - least)
    n_effective = inside * (1 - inside) / variance if variance > 0 else math.inf
    low, high = wilson_interval(rate, n_effective, quantile)
    # if the labels show one outcome only, all runs may have it
    return low if above.any() else 0.0, high if (above < below).any() else 1.0


# ------------------------------------------------------------ forecasts of outcomes


def outcome_features(X: TrajectoryArray, judge: FloatArray | None) -> FloatArray:
    """Return what an outcome is forecast from: verdict, trace and length, and a constant."""
    cells = OrdinaryRange.of(X.cells).nearest(X.cells)
    if X.is_within_unit():
        bound = float(expit(_LARGEST_LOGIT))
        cells = logit(np.clip(cells, 1 - bound, bound))
    columns = [collapse(X.with_cells(cells), phi) for phi in ("last", "mean", "min")]
    steps = np.log(X.lengths)
    columns += [steps, (steps - steps.mean()) ** 2]
    if judge is not None:
        columns.append(judge)
    features = StandardScaler().fit_transform(np.stack(columns, axis=1))
    if judge is not None:
        features[:, -1] *= _JUDGE_SCALE
    # a constant of which the ridge shrinks the coefficient a tenth as much as others
    return np.column_stack([features, np.full(len(features), math.sqrt(10))])


def ridge_logistic(features: FloatArray, y: FloatArray, train: BoolArray) -> FloatArray:
    """Fit a logistic regression to each row of `train`."""
    n_features = features.shape[1]
    products = np.einsum("ij,ik->ijk", features, features).reshape(len(features), -1)
    coefficients = np.zeros((len(train), n_features))
    for _ in range(_N_ITERATIONS):
        p = expit(coefficients @ features.T)
        gradient = (train * (y - p)) @ features - coefficients
        curvature = ((train * p * (1 - p)) @ products).reshape(-1, n_features, n_features)
        step = np.linalg.solve(curvature + np.eye(n_features), gradient[..., None])[..., 0]
        coefficients += step
        if abs(step).max() < 1e-9:
            break
    return coefficients


def _folds(
    ids: AnyArray, outcome: FloatArray, labelled: BoolArray, groups: IntArray | None
) -> IntArray:
    """Put each run, with its group, into a fold; of labels each fold has as many."""
    stratum = outcome.astype(int)
    if groups is None:
        n_folds = min(_MOST_FOLDS, np.bincount(stratum[labelled]).max())
        return assign_folds(n_folds, ids, stratum, is_counted=labelled)
    # groups alternate in the order of their names, those with labels among themselves
    has_label = np.bincount(groups, labelled) > 0
    n_folds = min(_MOST_FOLDS, has_label.sum())
    return assign_folds(n_folds, np.arange(len(has_label)), has_label)[groups]
