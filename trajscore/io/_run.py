"""Runs, steps and tool calls, the same for every format of logs."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.stops import Mechanism
from trajscore.core.values import UNIT_ROUNDING, number_of, outside_unit
from trajscore.io.vocabulary import Record, as_list

Actor = Literal["agent", "user", "environment"]


@dataclass(slots=True)
class ToolCall:
    """One call of a tool, with its result.

    Parameters
    ----------
    name : str
        The tool.
    arguments : dict or str, default={}
        Its arguments; text where the log holds text that is not a JSON object.
    id : str, optional
        The call's identifier in the log.
    result : str, optional
        What the tool returned; None where the log has no result for this call.
    error : bool, optional
        Whether the log marks the result as an error.
    extra : dict
        Fields of the call that have no place of their own.

    Examples
    --------
    >>> from trajscore.io import ToolCall
    >>> ToolCall("get_user", {"id": "mia"}).result is None
    True
    """

    name: str
    arguments: Any = field(default_factory=dict)
    id: str | None = None
    result: str | None = None
    error: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, repr=False)
class Step:
    """One turn of the agent or of the user.

    A signal that the log does not hold is None, never 0. A text of None is an empty one.

    Parameters
    ----------
    actor : {"agent", "user", "environment"}
        Who acts. A role that is neither agent nor user is "environment", with its name in
        ``extra["role"]``.
    text : str, default=""
        What is said; empty for a pure tool call.
    tool_calls : list of ToolCall
        The calls made in this turn.
    observation : str, optional
        The results of these calls, one after the other, where the calls do not hold them.
    tokens : tuple of str, optional
        The tokens of the turn.
    logprobs : tuple of float, optional
        Their log-probabilities; NaN where one token's is missing, -inf is kept.
    top_logprobs : tuple of tuples of (str, float), optional
        For each token, the likeliest tokens at its place with their log-probabilities.
    confidence : float, optional
        The confidence stated in a field of its own, not in the text.
    cost : float, optional
        What the turn cost, in the log's unit.
    index : int, optional
        The message's place in the log, from 0.
    span : str, optional
        Id of the span or observation that the turn comes from, in logs of these.
    scores : dict
        Judgements of the turn by name. `confidence` may be one of them, or a field of `extra`.
    extra : dict
        Fields of the message that have no place of their own. ``"answered_after"`` says after how
        many steps of the run the last result came, where others stand between.

    Examples
    --------
    >>> from trajscore.io import Step
    >>> Step("agent", "Which flight?", logprobs=(-0.1, -2.0))
    <Step: agent, 'Which flight?', 2 logprobs>
    """

    actor: Actor
    text: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    observation: str | None = None
    tokens: tuple[str, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...] | None = None
    confidence: float | None = None
    cost: float | None = None
    index: int | None = None
    span: str | None = None
    scores: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.text is None:
            self.text = ""

    @property
    def results(self) -> list[str]:
        """What the calls of the turn returned: `observation`, or else the result of each."""
        if self.observation is not None:
            return [self.observation]
        return [call.result for call in self.tool_calls if call.result is not None]

    @property
    def is_empty(self) -> bool:
        """Whether the log holds nothing of the turn."""
        return not (
            self.text.strip()
            or self.tool_calls
            or self.logprobs is not None
            or self.confidence is not None
            or self.observation
            or self.scores
        )

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 40 else self.text[:37] + "..."
        parts = [self.actor, repr(text), *(f"calls {call.name}" for call in self.tool_calls)]
        if self.logprobs is not None:
            parts.append(f"{len(self.logprobs)} logprobs")
        if self.confidence is not None:
            parts.append(f"confidence {self.confidence:g}")
        return f"<Step: {', '.join(parts)}>"


@dataclass(slots=True, repr=False)
class Run:
    """One trajectory: its steps, and how it ended.

    Parameters
    ----------
    id : str
        Identifier of the run.
    steps : list of Step
        The turns of agent and user, in order.
    outcome : {1, 0, -1} or float, default=-1
        Success, failure, or not observed; or a grade between 0 and 1.
    stop_reason : str, optional
        Why the run ended, in the log's own word.
    stop_kind : {"complete", "administrative", "informative", "excluded", "unknown"}, optional
        What the stop reason means for the outcome; "complete" where that was observed, unless
        the reason is not known; None where there is neither.
    task : str, optional
        What the agent was to do; runs of one task belong together.
    trial : int or str, optional
        Which attempt at the task.
    meta : dict
        Numbers and words about the run that go into the table of `meta`: reward, cost, file.
    scores : dict
        Judgements of the run by name. Where the format defines no outcome, it may be one of them,
        or a field of `extra`.
    extra : dict
        Other fields of the run; ``"system"`` holds its system messages and, where not all stand at
        the start, ``"system_after"`` after how many steps each came.

    Examples
    --------
    >>> from trajscore.io import Run, Step
    >>> Run("a", [Step("user", "Hello"), Step("agent", "Hi")], outcome=1)
    <Run 'a': 2 steps, success>
    """

    id: str
    steps: list[Step] = field(default_factory=list)
    outcome: float = -1
    stop_reason: str | None = None
    stop_kind: Mechanism | None = None
    task: str | None = None
    trial: int | str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.task is not None:
            self.task = str(self.task)

    @property
    def ended_before_start(self) -> bool:
        """Whether it has an outcome or a stop reason, and no turn of the agent that holds a thing.

        Turns of a role that is not known may be the agent's.
        """
        if self.outcome == CENSORED and self.stop_reason is None:
            return False
        return not any(
            "role" in step.extra or (step.actor == "agent" and not step.is_empty)
            for step in self.steps
        )

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        named: dict[float, str] = {1: "success", 0: "failure", -1: "not observed"}
        ended = named.get(self.outcome, f"outcome {self.outcome}")
        reason = ""
        if self.stop_reason:
            reason = f", {self.stop_reason}"
        return f"<Run {self.id!r}: {number_of(len(self.steps), 'step')}, {ended}{reason}>"


class MalformedRunError(ValueError):
    """A run that cannot be read; it is left out and counted."""


def as_object(raw: Any, subject: str = "it is") -> Record:
    """Return the fields of a run, or of a part of it, which must be an object."""
    if not isinstance(raw, dict):
        remedy = "; write it as JSON, a run a line, no default=str" * isinstance(raw, (str, list))
        raise MalformedRunError(f"{subject} {type(raw).__name__}, not an object{remedy}")
    return raw


def check_list(value: Any, subject: str) -> list[Any]:
    """Return a part of a run, which must be a list."""
    if not isinstance(value, list):
        raise MalformedRunError(f"{subject} {type(value).__name__}, not a list")
    return value


def as_objects(raw: Any) -> list[Record]:
    """Return the records that a run is made of, which must be objects in a list."""
    return list(map(as_object, as_list(raw) or [raw]))


def leftover(fields: Record, used: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields that are not used elsewhere and are not None."""
    return {name: value for name, value in fields.items() if name not in used and value is not None}


# ------------------------------------------------------------------ outcomes of logs


def as_outcome(reward: Any) -> int:
    """Turn the reward of a format into an outcome: 1 is success, anything less is failure."""
    number = _as_number(reward)
    if number is None:
        raise MalformedRunError(f"its reward is {reward!r}, not a number")
    if math.isnan(number):
        return CENSORED
    if abs(number - SUCCESS) <= UNIT_ROUNDING:
        return SUCCESS
    return FAILURE


def as_grade(value: Any) -> float | None:
    """Turn a named outcome into 1, 0, -1 or a grade; None if it is not an outcome."""
    number = _as_number(value)
    if number is None:
        return None
    if math.isnan(number) or number == CENSORED:
        return CENSORED
    if as_outcome(number) == SUCCESS:
        return SUCCESS
    if outside_unit(number):
        return None
    return max(number, 0.0) or FAILURE


def _as_number(value: Any) -> float | None:
    """Return a number or a boolean as a float, NaN for None, and None for other values."""
    if value is None:
        return math.nan
    if isinstance(value, (bool, np.bool_, int, float, np.number)):
        return float(value)
    return None
