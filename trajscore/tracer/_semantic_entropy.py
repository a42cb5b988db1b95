"""Semantic entropy: how many different things sampled answers say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, softmax
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import UNIT_ROUNDING, as_numbers
from trajscore.tracer._risk_scorer import RiskScorer, running_mean
from trajscore.tracer._turns import Turns, check_runs, take_turns

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
    same = _same_words if equivalence is None else equivalence
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
    objects = all(isinstance(sample, Mapping) for sample in samples)
    texts = [sample.get("text", "") for sample in samples] if objects else list(samples)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"answer {place} is {type(text).__name__}, not text; leave it out, or give str()"
            )
    given: list[Any] = [sample.get("logprob") for sample in samples] if objects else [None]
    if None in given:
        return texts, np.full(len(texts), 1 / len(texts))
    logs = as_numbers(given, "log_probs")
    if not (logs <= UNIT_ROUNDING).all() or np.isneginf(logs).all():
        raise ValueError(
            f"log_probs must hold a log-probability of each answer, not all -inf, got {given}"
        )
    return texts, np.asarray(softmax(logs))
