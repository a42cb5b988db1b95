"""What all scorers of risk share, and those that TRACER is measured against, of one signal each.

For the turns of one side alone, take the signals of `TracerSignals` with its `actors`.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import entr, softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.estimator import TraceTransformer, check_estimator_input, like_input
from trajscore.core.values import (
    UNIT_ROUNDING,
    ArrayLike,
    BoolArray,
    FloatArray,
    as_amount,
    as_numbers,
    check_choice,
    first_true,
    undefined_is_nan,
)
from trajscore.core.within_runs import last_cells, running_max, running_sum, step_numbers
from trajscore.io import Run
from trajscore.tracer.turns import Turns, check_runs, take_turns

SURPRISAL = "surprisal"
COMPONENTS: tuple[str, ...] = (SURPRISAL, "repetition", "agent_gap", "user_gap")
IS_AGENT = "is_agent"
CHANNELS = (*COMPONENTS, IS_AGENT, "tool_calls", "confidence")
AGGREGATIONS = ("max", "additive", "multiplicative", "separate")
ACTORS = ("both", "agent", "user")


def components_of(X: TrajectoryArray, actors: str) -> FloatArray:
    """Return the `COMPONENTS` of each cell, of shape (4, n_cells).

    They are 0 where absent, and in turns of actors other than the chosen ones.
    """
    counted = np.ones(len(X.cells), dtype=bool)
    if actors != "both":
        counted = (channel(X, IS_AGENT) > 0) == (actors == "agent")
    parts = np.zeros((len(COMPONENTS), len(X.cells)))
    for name, values in _recorded(X).items():
        parts[COMPONENTS.index(name)] = np.where(counted & ~np.isnan(values), values, 0.0)
    return parts


def weigh(parts: FloatArray, alpha: float, beta: float, gamma: float) -> FloatArray:
    """Return U_t, alpha D_a, beta D_o^A and gamma D_o^U of each cell."""
    return parts * np.array([1.0, alpha, beta, gamma])[:, None]


def penalty(parts: FloatArray) -> FloatArray:
    """Return the sum of all weighted components but the surprisal."""
    return parts[1:].sum(axis=0)


def step_risk(parts: FloatArray, aggregation: str) -> FloatArray:
    """Return the risk of each cell by its weighted components; "separate" has no single one."""
    if aggregation == "max":
        return parts.max(axis=0)
    if aggregation == "additive":
        return parts[0] + penalty(parts)
    return parts[0] * (1 + penalty(parts))


def nothing_yet(X: TrajectoryArray, names: Sequence[str]) -> BoolArray:
    """Whether none of these components was recorded up to each cell, whoever acted."""
    recorded = [~np.isnan(values) for name, values in _recorded(X).items() if name in names]
    return running_max(X, np.logical_or.reduce(recorded).astype(float)) == 0


def nothing_recorded(X: TrajectoryArray, names: Sequence[str] = COMPONENTS) -> BoolArray:
    """Whether none of these components of a run was recorded at any step, whoever acted."""
    return nothing_yet(X, names)[last_cells(X)]


def channel(X: TrajectoryArray, name: str) -> FloatArray:
    """Return one channel's cells."""
    return X[name].cells.ravel()


def _recorded(X: TrajectoryArray) -> dict[str, FloatArray]:
    """Return the components that there are, NaN in cells where one was not recorded."""
    return {name: channel(X, name) for name in COMPONENTS if name in (X.channels or ())}


# ------------------------------------------------------------------ checks at the door


def check_channel(X: TrajectoryArray, name: str, reader: str) -> None:
    """Refuse signals without a channel that is read."""
    if name not in (X.channels or ()):
        raise ValueError(
            f"{reader} needs the channel {name!r}; X has {', '.join(X.channels or ())}"
        )


def check_components(X: TrajectoryArray, reader: str) -> None:
    """Refuse signals without any component, and negative ones, in scikit-learn's words."""
    parts = _recorded(X)
    if not parts:
        raise ValueError(
            f"{reader} needs at least one of the channels {', '.join(COMPONENTS)}; X has "
            f"{', '.join(X.channels or ())}"
        )
    for name, values in parts.items():
        cell = first_true(values < -UNIT_ROUNDING)
        if cell is not None:
            raise ValueError(
                f"Negative values in data: {X.place(cell)}, channel {name!r} has {values[cell]:g}; "
                f"components of risk are 0 or more"
            )


def check_surprisal(X: TrajectoryArray, aggregation: str) -> None:
    """Refuse a run without surprisal where it is multiplied; warn where the largest part counts.

    Of runs with and without a surprisal, the largest parts are on different scales.
    """
    if aggregation == "multiplicative":
        check_channel(X, SURPRISAL, f"{aggregation=}")
    if SURPRISAL not in (X.channels or ()):
        return
    without = nothing_recorded(X, [SURPRISAL])
    if aggregation == "multiplicative" and without.any():
        place = X.place(int(X.offsets[:-1][without][0])).split(", step")[0]  # the run alone
        raise ValueError(
            f"{place}: {aggregation=} multiplies surprisal, and the run has no token "
            f"log-probabilities; use another aggregation, or leave such runs out"
        )
    if aggregation == "max" and 0 < without.sum() < len(X):
        warnings.warn(
            f"{without.sum()} of {len(X)} runs have no surprisal. With {aggregation=} their risk "
            f"is on another scale than that of the other runs. Leave these runs out, or the "
            f"channel {SURPRISAL!r}",
            stacklevel=3,
        )


class RiskScorer(TraceTransformer, BaseEstimator):
    """Base of the scorers: a trace of risk by `transform`, one number a run by `score_samples`.

    A subclass gives `_trace`, which returns the risk of the run so far at every cell, and in
    `_check_parameters` and `_check_signals` what it asks for; by default the channel that it reads.
    """

    _output_channels = ("risk",)
    _reads: str | None = None
    """The channel that is read, and that the values of a plain array are taken for."""

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used."""

    def _check_signals(self, signals: TrajectoryArray) -> None:
        if self._reads is not None:
            check_channel(signals, self._reads, type(self).__name__)

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        raise NotImplementedError

    def _run_risk(self, signals: TrajectoryArray) -> FloatArray:
        return self._trace(signals)[last_cells(signals)]

    def _signals(self, X: Any, *, reset: bool) -> TrajectoryArray:
        """Check parameters and input, once for each call."""
        self._check_parameters()
        if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], Run):
            raise ValueError(
                f"{type(self).__name__} reads the channels that TracerSignals makes of runs, got "
                f"runs; pass TracerSignals().fit_transform(runs)"
            )
        signals = check_estimator_input(
            self, X, reset=reset, single_channel=False, allow_missing=True
        )
        if signals.channels is None:
            signals = signals.with_cells(signals.cells, channels=(self._reads or "value",))
        self._check_signals(signals)
        return signals

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check parameters and data; nothing is learned.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals of `TracerSignals`. One unnamed value a step is taken for the signal that
            the scorer reads first.
        y : array-like of shape (n_runs,), optional
            Not used; for scikit-learn's sake.

        Returns
        -------
        estimator
            The fitted scorer.
        """
        self._signals(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return the risk of the run so far, at every step.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals.

        Returns
        -------
        TrajectoryArray or ndarray of shape (n_runs, T_max)
            One channel, "risk"; higher means failure is more likely. NaN where the scorer has
            seen nothing that it reads. An array if `X` is one.
        """
        signals = self._signals(X, reset=False)
        return like_input(signals.with_cells(self._trace(signals), channels=("risk",)), X)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the risk of each run.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals.

        Returns
        -------
        ndarray of shape (n_runs,)
            Higher means failure is more likely: the last value of `transform`; NaN for a run in
            which the scorer has seen nothing that it reads.
        """
        return self._run_risk(self._signals(X, reset=False))

    def decision_function(self, X: Any) -> FloatArray:
        """Return minus the risk of each run, which is higher where success is more likely."""
        return -self.score_samples(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # of others than classifiers, scorers read decision_function of these only, up to 1.8
        tags.estimator_type = "outlier_detector"
        return tags


class ComponentScorer(RiskScorer):
    """Base of the scorers that weigh the components of TRACER's risk."""

    _reads = SURPRISAL

    def _check_parameters(self) -> None:
        for name in ("alpha", "beta", "gamma"):
            as_amount(getattr(self, name), name)

    def _check_signals(self, signals: TrajectoryArray) -> None:
        check_components(signals, type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def running_mean(X: TrajectoryArray, values: FloatArray) -> FloatArray:
    """Return the mean of the values so far that are not missing; NaN where all are."""
    there = ~np.isnan(values)
    number = running_sum(X, there.astype(float))
    with undefined_is_nan():
        return running_sum(X, np.where(there, values, 0.0)) / number


class ChannelRisk(RiskScorer):
    """Risk by one channel so far: its mean, one minus the mean of a confidence, or its sum.

    The mean surprisal is also called normalised entropy. The number of turns, or of tool calls, so
    far is a baseline that a useful risk must beat.

    Parameters
    ----------
    channel : str or None, default="surprisal"
        The channel. None counts turns, with ``kind="count"``.
    kind : {"mean", "confidence", "count"}, default="mean"
        The mean of the values so far; one minus it, for "confidence" of `TracerSignals` or "verbal"
        of `trajscore.StepConfidence`; or the sum, for "tool_calls". A missing value is left out.

    See Also
    --------
    TracerScorer : Looks at the worst turns instead.

    Examples
    --------
    >>> from trajscore.tracer import ChannelRisk
    >>> ChannelRisk().fit_transform([[0.2, 0.6]])
    array([[0.2, 0.4]])
    >>> ChannelRisk("confidence", kind="confidence").fit_transform([[0.75, 0.25]])
    array([[0.25, 0.5 ]])
    >>> ChannelRisk(None, kind="count").fit_transform([[0.1, 0.2, 0.3]])
    array([[1., 2., 3.]])
    """

    def __init__(self, channel: str | None = SURPRISAL, kind: str = "mean") -> None:
        self.channel = channel
        self.kind = kind

    @property
    def _reads(self) -> str | None:  # type: ignore[override]
        return self.channel

    def _check_parameters(self) -> None:
        check_choice(self.kind, "kind", ("mean", "confidence", "count"))
        if self.channel is None and self.kind != "count":
            raise ValueError('channel=None counts turns; give kind="count", or name a channel')

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        if self.channel is None:
            return step_numbers(signals).astype(float)
        values = channel(signals, self.channel)
        if self.kind == "count":
            return running_sum(signals, np.nan_to_num(values))
        mean = running_mean(signals, values)
        if self.kind == "confidence":
            return 1 - mean
        return mean


class SAUP(ComponentScorer):
    r"""Root mean square of surprisal, each turn weighted with its situation.

    :math:`\sqrt{\frac{1}{N} \sum_t (W_t U_t)^2}` with :math:`W_t = 1 + \alpha D_a + \beta D_o^A +
    \gamma D_o^U`, over the turns so far that have a surprisal.

    Parameters
    ----------
    alpha, beta, gamma : float, default=1.0
        Weights of repetition, of the agent's gap and of the user's gap.

    See Also
    --------
    TracerScorer : With ``aggregation="multiplicative"``, the tail of the same products W U.

    References
    ----------
    Zhao et al. (2025), Uncertainty Propagation on LLM Agent.

    Examples
    --------
    >>> from trajscore import TrajectoryArray
    >>> from trajscore.tracer import SAUP
    >>> S = TrajectoryArray([[1.0, 2.0], [1.0, 3.0]], [2], channels=["surprisal", "repetition"])
    >>> SAUP().fit(S).score_samples(S).round(3)
    array([3.536])
    """

    def __init__(self, alpha: float = 1.0, beta: float = 1.0, gamma: float = 1.0) -> None:
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma

    def _check_signals(self, signals: TrajectoryArray) -> None:
        super()._check_signals(signals)
        check_channel(signals, SURPRISAL, type(self).__name__)

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        parts = weigh(components_of(signals, "both"), self.alpha, self.beta, self.gamma)
        absent = np.isnan(channel(signals, SURPRISAL))
        squares = step_risk(parts, "multiplicative") ** 2
        return np.sqrt(running_mean(signals, np.where(absent, np.nan, squares)))


Equivalence = Callable[[str, str], bool]


class SemanticEntropy(RiskScorer):
    """Mean semantic entropy of the answers sampled so far.

    The entropy, in nats, is that of the meanings of the answers sampled at one step: 0 if all
    mean the same, at most the logarithm of their number.

    Parameters
    ----------
    samples : str, default="samples"
        Where a step keeps its sampled answers: ``step.extra[samples]``, a list of texts, or of
        objects with "text" and "logprob". Where each answer has a log-probability, answers
        are weighted by probability, otherwise equally.
    equivalence : callable, optional
        Tells of two answers whether they mean the same; each answer is compared with the first
        one of every meaning so far. Default: the same but for case and spaces.

    Attributes
    ----------
    n_runs_without_ : int
        Training runs without any samples; their risk is NaN.

    References
    ----------
    Farquhar et al. (2024), Detecting hallucinations in large language models using semantic
    entropy; Kuhn et al. (2023), Semantic uncertainty.

    Examples
    --------
    >>> from trajscore import io
    >>> from trajscore.tracer import SemanticEntropy
    >>> run = io.Run("a", [io.Step("agent", "Yes", extra={"samples": ["yes", "no"]})])
    >>> SemanticEntropy().fit([run]).score_samples([run]).round(3)
    array([0.693])
    """

    def __init__(self, samples: str = "samples", equivalence: Equivalence | None = None) -> None:
        self.samples = samples
        self.equivalence = equivalence

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check the runs, whose steps hold sampled answers; nothing is learned."""
        runs = check_runs(X, type(self).__name__)
        self.n_runs_without_ = sum(
            not any(step.extra.get(self.samples) for step in run.steps) for run in runs
        )
        return self

    def transform(self, X: Any) -> TrajectoryArray:
        """Return the mean entropy so far of each turn, NaN before the first sampled answers."""
        entropies = self._signals(X, reset=False)
        return entropies.with_cells(self._trace(entropies), channels=("risk",))

    def _signals(self, X: Any, *, reset: bool) -> TrajectoryArray:
        """Return the entropy of each turn of agent or user."""
        check_is_fitted(self)
        turns = take_turns(X, ("agent", "user"), type(self).__name__)
        values = np.array([self._entropy(turns, k) for k in range(len(turns.steps))])
        return turns.container(values[:, None], ("entropy",))

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        return running_mean(signals, signals.cells.ravel())

    def _entropy(self, turns: Turns, turn: int) -> float:
        samples = turns.steps[turn].extra.get(self.samples)
        if not samples:
            return float("nan")
        try:
            return semantic_entropy(samples, self.equivalence)
        except ValueError as error:
            raise ValueError(f"{turns.place(turn)}, {self.samples}: {error}") from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def semantic_entropy(samples: Any, equivalence: Equivalence | None) -> float:
    """Return the entropy over the meanings of sampled answers."""
    same = equivalence or _same_words
    share: dict[str, float] = {}  # of each meaning, by the first answer that has it
    for text, part in zip(*_answers(samples), strict=True):
        meaning = next((other for other in share if same(other, text)), text)
        share[meaning] = share.get(meaning, 0.0) + part
    return float(entr(np.array(list(share.values()))).sum())


def _same_words(a: str, b: str) -> bool:
    """Whether two answers are the same but for case and spaces."""
    return a.casefold().split() == b.casefold().split()


def _answers(samples: Any) -> tuple[list[str], FloatArray]:
    """Return sampled answers, each with its weight: equal ones, unless all have a probability."""
    if not isinstance(samples, (list, tuple)):
        raise ValueError(f"answers must be a list of texts, got {type(samples).__name__}")
    texts = list(samples)
    logprobs: list[Any] = [None]
    if all(isinstance(sample, Mapping) for sample in samples):
        texts = [sample.get("text", "") for sample in samples]
        logprobs = [sample.get("logprob") for sample in samples]
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"answer {place} is {type(text).__name__}, not text; leave it out, or give str()"
            )
    if None in logprobs:
        return texts, np.full(len(texts), 1 / len(texts))
    logs = as_numbers(logprobs, "log_probs")
    if not (logs <= UNIT_ROUNDING).all() or np.isneginf(logs).all():
        raise ValueError(
            f"log_probs must hold a log-probability of each answer, not all -inf, got {logprobs}"
        )
    return texts, np.asarray(softmax(logs))
