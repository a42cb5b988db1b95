"""A conversation that goes on, as a run of steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from trajscore.core.values import is_iterable
from trajscore.io._run import MalformedRunError, Run
from trajscore.io.conversation import Conversation
from trajscore.io.fields import USUAL
from trajscore.io.files import Place
from trajscore.io.vocabulary import OF_USER, TYPES, Values, first


def as_run(messages: Iterable[Any], id: str = "run") -> Run:  # noqa: A002
    """Make a run of the messages of a conversation, as any library holds them.

    Parameters
    ----------
    messages : iterable of dict or of a library's own message objects
        Messages of OpenAI (chat or responses), Anthropic, LangChain, Pydantic AI, Inspect and
        others, as a log of theirs holds them.
    id : str, default="run"
        Name of the run.

    Returns
    -------
    Run
        What was said, called and answered so far; its outcome is not observed.

    Raises
    ------
    ValueError
        If a message cannot be read; the error says which.

    See Also
    --------
    read_runs : Reads logs.

    Examples
    --------
    >>> from trajscore import io
    >>> call = {"id": "1", "function": {"name": "find", "arguments": '{"order": 7}'}}
    >>> run = io.as_run([
    ...     {"role": "user", "content": "Where is order 7?"},
    ...     {"role": "assistant", "content": "I look.", "tool_calls": [call]},
    ...     {"role": "tool", "tool_call_id": "1", "content": "in Oslo"},
    ... ])
    >>> [(step.actor, step.text, step.observation) for step in run.steps]
    [('user', 'Where is order 7?', None), ('agent', 'I look.', 'in Oslo')]
    """
    live = LiveRun(id)
    live.add(_plain_messages(messages))
    return live.talk.finish(Run(live.id))


class LiveRun:
    """A conversation that goes on, of which each message is read once."""

    def __init__(self, id: Any) -> None:  # noqa: A002
        self.id = str(id)
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.talk = Conversation(Place(Path(self.id), 0, run=self.id))
        self._messages: Values = []

    def read(self, messages: Iterable[Any]) -> int:
        """Read all messages so far; return how many turns are as they were, with their results."""
        plain = _plain_messages(messages)
        kept = self._messages
        n = len(kept)
        # an item of OpenAI's Responses may go on
        if (
            not n
            or plain[:n] != kept
            or str(first(kept[-1], ("type", "role"))) not in TYPES["message"]
        ):
            self.forget()
            n = 0
        self._messages = []  # should a message be refused
        new = deepcopy(plain[n:])
        n_same = self.add(new, n)
        self._messages = [*kept[:n], *new]
        return n_same

    def add(self, messages: Values, start: int = 0) -> int:
        """Add messages; return how many turns are as they were, with their results."""
        steps = self.talk.steps
        n = len(steps)
        answered = self.talk.extend(messages, start)
        for step in steps[n:]:
            texts = {name: step.extra.get(name) for name in (*USUAL["text"], *OF_USER)}
            named = next((k for k, text in texts.items() if text and isinstance(text, str)), None)
            if named is not None and not step.text and not step.tool_calls:
                raise MalformedRunError(
                    f"message {step.index} has no 'content', but {named!r}; put its text under "
                    f"'content'"
                )
        return next((k for k in range(n) if id(steps[k]) in answered), n)


def _plain_messages(messages: Any) -> Values:
    """Return message objects as the dicts that their libraries write."""
    if isinstance(messages, (Mapping, str)) or not is_iterable(messages):
        raise MalformedRunError(
            f"messages must be the list of messages, not {type(messages).__name__}"
        )
    return list(map(_plain, messages))


def _plain(message: Any) -> Any:
    """Return a message object as the dict that its library writes."""
    for name in ("model_dump", "to_dict"):
        if hasattr(message, name) and not isinstance(message, type):
            return getattr(message, name)()
    if is_dataclass(message) and not isinstance(message, type):
        return asdict(message)
    return message
