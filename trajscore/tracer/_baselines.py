"""What TRACER is measured against: the same kind of estimator, each from one signal.

For the turns of one side alone, take the signals of `TracerSignals` with its `actors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, softmax
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import UNIT_ROUNDING, as_numbers, check_choice
from trajscore.core.within_runs import running_sum, step_numbers
from trajscore.tracer._risk_scorer import (
    SURPRISAL,
    ComponentScorer,
    RiskScorer,
    channel,
    check_channel,
    components_of,
    running_mean,
)
from trajscore.tracer.turns import Turns, check_runs, take_turns


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
        parts = components_of(signals, "both")
        weighted = parts.risk(self.alpha, self.beta, self.gamma, "multiplicative")
        absent = np.isnan(channel(signals, SURPRISAL))
        return np.sqrt(running_mean(signals, np.where(absent, np.nan, weighted**2)))


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
