"""One conversation out of the calls of a model, each of which repeats what came before."""

import json
from collections.abc import Hashable
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Any

from trajscore.io._messages import Message, as_id
from trajscore.io._payloads import messages_in
from trajscore.io._run import Step, ToolCall
from trajscore.io.conversation import Called, Conversation, read_call
from trajscore.io.files import Place
from trajscore.io.vocabulary import Record, as_list, role_of, text_of


class Thread(Conversation):
    """A conversation to which lists of messages are added that repeat parts of it.

    Messages are aligned in order, those with calls by the ids of the calls, and results by their
    call. An answer of a model is new unless a call that came first in the log has repeated it.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.keys: list[Hashable] = []  # identifies each turn
        self.claimed: set[int] = set()  # turns that a call of a model answered, by id()
        self.turns: dict[str, Step] = {}  # by the span that they come from
        self.ran: set[int] = set()  # calls that a tool's span stands for, by id()

    def weave(self, messages: list[Message], index: int) -> list[Step]:
        """Add the new messages of a list; return the turns that it holds."""
        messages = [message for message in messages if not _says_nothing(message)]
        aligned = self._align(list(filter(_is_turn, messages)))
        later = [place for place in reversed(aligned) if place is not None]
        places = iter(aligned)
        woven: list[Step] = []
        moved = 0  # by how much places have shifted
        waiting: list[Called] = []  # calls of the last turn, for results in order
        for message in messages:
            if not _is_turn(message):
                self._add_other(message, index, waiting, woven[-1] if woven else None)
                continue
            if next(places) is None:
                step = self.insert(message, index, later[-1] + moved if later else None)
                moved += 1
            else:
                step = self.steps[later.pop() + moved]
            woven.append(step)
            ids = {call.id for call in _calls(message) if call.id is not None}
            waiting = [(step, call) for call in step.tool_calls if not ids or call.id in ids]
        return woven

    def _align(self, turns: list[Message]) -> list[int | None]:
        """Return the place of each turn, None of a new one."""
        keys = list(map(_key, turns))
        same = sum(takewhile(bool, map(eq, keys, self.keys)))
        places: list[int | None] = [*range(same), *[None] * (len(keys) - same)]
        matcher = SequenceMatcher(None, keys[same:], self.keys[same:], autojunk=False)
        for ours, theirs, size in matcher.get_matching_blocks():
            for k in range(size):
                places[same + ours + k] = same + theirs + k
        for k, turn in enumerate(turns):
            if places[k] is None:
                places[k] = self._place_of_calls(turn)
        return places

    def _place_of_calls(self, message: Record) -> int | None:
        """Return the place of a turn whose calls are known, if they all are."""
        earlier = [self.call_of_id(call.id) for call in _calls(message)]
        steps = [step for step, _ in filter(None, earlier)]
        if not steps or None in earlier:
            return None
        return next((k for k, step in enumerate(self.steps) if step is steps[0]), None)

    def insert(self, message: Message, index: int, place: int | None = None) -> Step:
        """Add a turn before a place, or at the end."""
        step = self.add(message, index)
        assert step is not None
        if place is None:
            place = len(self.keys)
        self.steps.insert(place, self.steps.pop())
        self.keys.insert(place, _key(message))
        return step

    def _add_other(
        self,
        message: Message,
        index: int,
        waiting: list[Called],
        last: Step | None = None,
    ) -> None:
        """Add an instruction or a result, unless the conversation has it."""
        text = text_of(message.get("content"))
        if role_of(message.get("role")) == "system":
            if text not in self.system:
                self.add(message, index)
            return
        called = self._call_of_result(message, waiting)
        if called is None:
            results = [call.result for step in self.steps for call in step.tool_calls]
            others = [(other["name"], other["content"]) for other in self.unmatched]
            if text not in results and (message.get("name"), text) not in others:
                self.add(message, index)
            return
        step, call = called
        if call.result is None or (text and id(call) in self.ran):  # precedes that of the span
            self.set_result(step, call, text, last)
            if message.get("error"):
                call.error = True

    def _call_of_result(self, message: Record, waiting: list[Called]) -> Called | None:
        """Return the call that a result answers: by identifier, else the next one of the turn."""
        key = as_id(message.get("tool_call_id"))
        name = message.get("name")
        called = self.call_of_id(key)
        if called is not None:
            return called
        for k, (_, next_call) in enumerate(waiting):
            if name in (None, next_call.name) and None in (key, next_call.id):
                return waiting.pop(k)
        return None

    def add_call(self, inputs: Any, outputs: Any, index: int) -> list[Step]:
        """Add one call of a model; return the turns of its answer, at least an empty one."""
        history = messages_in(inputs, "user")
        woven = self.weave(history, index)
        ends = (k + 1 for k, step in enumerate(self.steps) if woven and step is woven[-1])
        place = next(ends, 0) if history else len(self.keys)
        answers = messages_in(outputs, "assistant") or [{"role": "assistant", "content": ""}]
        spoken = [message for message in answers if not _says_nothing(message)]
        turns = self._add_answer(spoken or answers[:1], index, place)
        if not history and inputs not in (None, "", [], {}):  # of an unknown form
            for turn in turns[:1]:
                turn.extra.setdefault("input", inputs)
        return turns

    def _add_answer(self, messages: list[Message], index: int, start: int) -> list[Step]:
        """Add the answer of a model, unless a turn from a place on is the same and unclaimed."""
        turns = []
        for message in messages:
            if not _is_turn(message):
                self._add_other(message, index, [])
                continue
            key = _key(message)
            unclaimed = (
                step
                for step, step_key in zip(self.steps[start:], self.keys[start:], strict=True)
                if step_key == key and id(step) not in self.claimed
            )
            turns.append(next(unclaimed, None) or self.insert(message, index))
            self.claimed.add(id(turns[-1]))
        return turns


def _is_turn(message: Record) -> bool:
    return role_of(message.get("role")) not in ("system", "tool")


def _says_nothing(message: Record) -> bool:
    """Tell a message of the agent without any text or call, as some tracers repeat its calls."""
    is_agents = role_of(message.get("role")) == "agent"
    return is_agents and not any(map(message.get, ("content", "tool_calls", "function_call")))


def _key(message: Record) -> Hashable:
    """Return what identifies a turn: the ids of its calls, or its text and calls."""
    calls = _calls(message)
    if calls and all(call.id is not None for call in calls):
        return tuple(sorted(str(call.id) for call in calls))
    called = tuple((call.name, json.dumps(call.arguments, sort_keys=True)) for call in calls)
    return role_of(message.get("role")), " ".join(text_of(message.get("content")).split()), called


def _calls(message: Record) -> list[ToolCall]:
    calls = as_list(message.get("tool_calls"))
    return [read_call(call) for call in calls if isinstance(call, dict)]
