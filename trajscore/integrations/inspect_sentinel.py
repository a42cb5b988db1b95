"""A guard as a monitor of Inspect Sentinel (extra ``sentinel``).

``Task(..., sentinel=threshold(guard_monitor("guard.skops"), terminate_at=0.95))`` ends samples
where a guard with alpha = 0.05 stops them, and so for any alpha. Inspect scores samples that were
ended as it scores others.
"""

from __future__ import annotations

from typing import Any

from trajscore.core.errors import optional
from trajscore.integrations._guard import Guard

_sentinel: Any = optional("inspect_sentinel", "guard_monitor needs Inspect Sentinel", "sentinel")


@_sentinel.monitor(version=1, portable=False)
def guard_monitor(model: str) -> Any:
    """Report 1 minus the p-value of a run so far, by a guard in a file, before each call."""
    guard = Guard.load(model)

    async def look(
        context: _sentinel.Context,
        step: _sentinel.BeforeGenerate,
    ) -> _sentinel.Observation:
        sent = step.history or []  # with what a summary has left out of the input
        sent_ids = {message.id for message in sent}
        decision = guard.look([*sent, *(m for m in step.input if m.id not in sent_ids)])
        text = (
            f"step {decision.step}: log M = {decision.log_e_value:.3g}, "
            f"threshold {decision.log_threshold:.3g}"
        )
        # rounded, as 1 - (1 - 0.05) is not 0.05
        return _sentinel.Observation.score(round(decision.suspicion, 12), text)

    return look
