"""What TRACER is measured against: the same kind of estimator, each from one signal.

For the turns of one side alone, take the signals of `TracerSignals` with its `actors`.
"""

from __future__ import annotations

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray
from trajscore.core.within_runs import running_sum, step_numbers
from trajscore.tracer._components import (
    CONFIDENCE,
    SURPRISAL,
    TOOL_CALLS,
    channel,
    check_channel,
    components_of,
)
from trajscore.tracer._risk_scorer import ComponentScorer, RiskScorer, running_mean


class MeanSurprisal(RiskScorer):
    """Mean surprisal of the run so far, also called normalised entropy.

    See Also
    --------
    TracerScorer : Looks at the worst turns instead.

    Examples
    --------
    >>> from trajscore.tracer import MeanSurprisal
    >>> MeanSurprisal().fit_transform([[0.2, 0.6]])
    array([[0.2, 0.4]])
    """

    _reads = SURPRISAL

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        return running_mean(signals, channel(signals, SURPRISAL))


class SelfReportedConfidence(RiskScorer):
    """One minus the mean confidence stated so far.

    Parameters
    ----------
    channel : str, default="confidence"
        The channel that holds them; "verbal" for the output of `trajscore.StepConfidence`.

    See Also
    --------
    trajscore.StepConfidence : Reads stated confidences.

    Examples
    --------
    >>> from trajscore.tracer import SelfReportedConfidence
    >>> SelfReportedConfidence().fit([[0.75, 0.25]]).score_samples([[0.75, 0.25]])
    array([0.5])
    """

    def __init__(self, channel: str = CONFIDENCE) -> None:
        self.channel = channel

    @property
    def _reads(self) -> str:  # type: ignore[override]
        return self.channel

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        return 1 - running_mean(signals, channel(signals, self.channel))


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
    TracerScorer : With ``aggregation="multiplicative"`` the same turns' risks, of the worst ones.

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


class RunLength(RiskScorer):
    """Number of turns so far: a baseline that a useful risk must beat.

    See Also
    --------
    ToolCallCount : Counts calls instead.

    Examples
    --------
    >>> from trajscore.tracer import RunLength
    >>> RunLength().fit_transform([[0.2, 0.6]])
    array([[1., 2.]])
    """

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        return step_numbers(signals).astype(np.float64)


class ToolCallCount(RiskScorer):
    """Number of tool calls so far.

    See Also
    --------
    RunLength : Counts turns instead.

    Examples
    --------
    >>> from trajscore.tracer import ToolCallCount
    >>> ToolCallCount().fit_transform([[2, 1]])
    array([[2., 3.]])
    """

    _reads = TOOL_CALLS

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        return running_sum(signals, np.nan_to_num(channel(signals, TOOL_CALLS)))
