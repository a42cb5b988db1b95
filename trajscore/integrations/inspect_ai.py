"""Early stopping of an evaluation, and a guard as an approver, in Inspect (extra ``inspect``)."""

from __future__ import annotations

from typing import Any

from trajscore.core.errors import optional
from trajscore.core.values import ByName
from trajscore.inference import SequentialComparison
from trajscore.integrations._guard import Guard

_NEED = "StopWhenDecided needs Inspect", "inspect"
_approval: Any = optional("inspect_ai.approval", *_NEED)
_EarlyStop: Any = optional("inspect_ai.util", *_NEED).EarlyStop
_value_to_float: Any = optional("inspect_ai.scorer", *_NEED).value_to_float


class StopWhenDecided:
    """Buy no more samples once success is shown to be above a target, or below it.

    Pass it as ``Task(..., early_stopping=StopWhenDecided(0.9))``, with the samples shuffled.
    Results count in the order in which samples were begun, as short ones, which end first, may
    succeed more often; of several epochs the first counts. Samples in flight still run.

    Parameters
    ----------
    target : float
        Success rate in [0, 1].
    scorer : str, optional
        Which of several scorers counts.
    alpha : float, default=0.05
        Chance that a decision is wrong, half of it on each side, however often one looks.

    Attributes
    ----------
    comparison : SequentialComparison
        What is known: "a" is decided where success is above the target.
    """

    def __init__(self, target: float, scorer: str | None = None, alpha: float = 0.05) -> None:
        self.target, self.scorer = target, scorer
        self.comparison = SequentialComparison((-target, 1 - target), alpha)
        self._scores: dict[Any, float | None] = {}  # in the order in which samples were begun

    async def start_task(self, task: Any, samples: list[Any], epochs: int) -> str:
        """Name what stops the task."""
        return f"trajscore: success against {self.target:g}"

    async def schedule_sample(self, id: Any, epoch: int) -> Any:  # noqa: A002
        """Stop a sample that is not begun yet, once the comparison is decided."""
        if self.comparison.decision is not None:
            reason = f"decided after {self.comparison.decided_after} samples"
            return _EarlyStop(id=id, epoch=epoch, reason=reason)
        if epoch == 1:
            self._scores[id] = None
        return None

    async def complete_sample(self, id: Any, epoch: int, scores: ByName) -> None:  # noqa: A002
        """Take the score of a sample."""
        name = self.scorer or (next(iter(scores)) if len(scores) == 1 else None)
        if name not in scores:
            raise ValueError(
                f"name one of the scorers {', '.join(scores)}: StopWhenDecided(scorer=)"
            )
        if epoch == 1 and id in self._scores:
            self._scores[id] = float(_value_to_float()(scores[name].score.value))
        for score in list(self._scores.values())[self.comparison.n_runs :]:
            if score is None:
                break
            self.comparison.update(score, self.target)

    async def complete_task(self) -> ByName:
        """Say what was decided."""
        low, high = (end + self.target for end in self.comparison.interval)
        side = {"a": "above", "b": "below", None: "undecided"}[self.comparison.decision]
        after = self.comparison.decided_after
        return {"target": self.target, "success": side, "low": low, "high": high, "after": after}


@_approval.approver
def guard_approver(model: str, person: Any, **options: Any) -> Any:
    """Ask `person`, as ``human_approver()``, about the calls of a flagged sample, once a flag.

    Pass it in ``Task(approval=[ApprovalPolicy(guard_approver("guard.skops", human_approver()),
    "*")])``; options are those of `Guard.follow`. A stopped sample ends. The answer, to approve or
    to terminate, is an approval event in the log of Inspect.
    """
    guard = Guard.load(model)

    async def approve(message: str, call: Any, view: Any, history: list[Any]) -> Any:
        watch = guard.follow(on_flag="ask", **options)
        look = watch.look(history, approved=lambda call: True)
        text = f"step {look.step}, suspicion {look.suspicion:.3g}"
        if look.ask:
            text += f", likely wrong steps {look.window}: {look.text}\n{message}"
            return await person(text, call, view, history)
        decision = "approve"
        if look.stop:
            decision = "terminate"
        return _approval.Approval(decision=decision, explanation=text)

    return approve
