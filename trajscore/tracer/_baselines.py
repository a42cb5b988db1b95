"""What TRACER is measured against: the same kind of estimator, each from one signal.

For the turns of one side alone, take the signals of `TracerSignals` with its `actors`.
"""

from __future__ import annotations

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import check_choice
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
            return step_numbers(signals).astype(np.float64)
        values = channel(signals, self.channel)
        if self.kind == "count":
            return running_sum(signals, np.nan_to_num(values))
        mean = running_mean(signals, values)
        return 1 - mean if self.kind == "confidence" else mean


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
