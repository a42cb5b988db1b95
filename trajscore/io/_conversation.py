"""From chat messages to steps, with their tool calls and results."""

import math
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from trajscore.core.values import parse_number, run_label
from trajscore.io._messages import answer_of, answer_within, as_chat, as_id
from trajscore.io._results import lacks_answer
from trajscore.io._run import (
    Actor,
    MalformedRunError,
    Run,
    Step,
    ToolCall,
    as_object,
    check_list,
    leftover,
)
from trajscore.io.fields import scalar
from trajscore.io.files import Place
from trajscore.io.logprobs import (
    MAY_HOLD,
    TokenScores,
    find_logprobs,
    parse_logprobs,
    without_logprobs,
)
from trajscore.io.vocabulary import (
    PARTS,
    USAGES,
    Record,
    answer_part,
    as_fields,
    first,
    is_amount,
    only_text,
    parsed,
    role_of,
    text_of,
    token_counts,
)

Called = tuple[Step, ToolCall]
"""A call, behind the turn that made it."""

_MESSAGE = {*PARTS["message"]}
_NO_SCORES = TokenScores()
_CALL = {
    "type", "part_kind", "function", *PARTS["call_name"], *PARTS["call_id"], *PARTS["arguments"],
}  # fmt: skip


def read_call(call: Any) -> ToolCall:
    """Read a tool call in any of the forms of chat logs."""
    call = as_object(call, "a tool call is")
    source = as_fields(call, "function") or call
    name = first(source, PARTS["call_name"]) or call.get("function")
    return ToolCall(
        name="" if not name or isinstance(name, (dict, list)) else str(name),
        arguments=read_arguments(first(source, PARTS["arguments"], blank=True)),
        id=as_id(first(call, PARTS["call_id"])),
        extra=leftover(call, _CALL),
    )


def read_arguments(arguments: Any) -> Any:
    """Turn arguments written as JSON text into a dict; leave other text as it is."""
    if arguments is None:
        return {}
    inner = parsed(arguments)
    if isinstance(inner, dict):
        return inner
    return arguments


class Conversation:
    """Collects the messages of one run, in the form of any library; its place is for errors."""

    def __init__(self, place: Place, messages: Any = None) -> None:
        self.place = place
        self.steps: list[Step] = []
        self.system: list[str] = []
        self.unmatched: list[dict[str, Any]] = []
        self._calls: dict[str, Called] = {}
        # the turn before each instruction, and a turn with the one before a result of its calls
        self._before_instructions: list[Step | None] = []
        self._before_results: list[tuple[Step, Step]] = []
        if messages is not None:
            self.extend(check_list(messages, "its messages are"))

    def extend(self, messages: Iterable[Any], start: int = 0) -> set[int]:
        """Add messages of any library; return the turns that they answer, by id()."""
        n_results = len(self._before_results)
        listed = list(messages)
        if lacks_answer(listed):
            raise MalformedRunError("it has no answer; save kickoff().model_dump_json() instead")
        for index, message in as_chat(listed):
            self.add(message, start + index)
        return {id(step) for step, _ in self._before_results[n_results:]}

    def call_of_id(self, key: str | None) -> Called | None:
        """Return the call of an identifier, if there is one."""
        return self._calls.get(key or "")

    def add(self, message: Any, index: int) -> Step | None:
        """Add a message, or a completion with its choices; return the turn, if it is one."""
        fields = as_object(message, f"message {index} is")
        scores = _NO_SCORES
        if any(map(fields.get, MAY_HOLD.intersection(fields))):
            fields, scores = self._unwrap(fields, index)
        if "role" not in fields:
            raise MalformedRunError(
                f"message {index} has no role; write each with its role and content"
            )
        kind = role_of(fields["role"])
        try:
            if kind == "system":
                text = text_of(fields.get("content"))
                if text not in self.system[-1:]:  # some libraries repeat it with each request
                    self.system.append(text)
                    self._before_instructions.append(self.steps[-1] if self.steps else None)
            elif kind == "tool":
                self._add_results(fields, index)
            else:
                return self._add_turn(fields, scores, kind, index)
        except MalformedRunError as error:
            raise MalformedRunError(f"message {index}: {error}") from error
        return None

    def _unwrap(self, message: Record, index: int) -> tuple[Record, TokenScores]:
        """Return a message with what an answer within it adds, and its log-probabilities."""
        logprobs = find_logprobs(message) or find_logprobs(as_fields(message, "raw_data"))
        part = answer_part(message) or answer_within(message)
        if part:
            turn = answer_of(part)[-1]
            logprobs = logprobs or turn.get("logprobs")
            if not (message.get("content") or message.get("tool_calls")):
                message = {**message, **leftover(turn, ("role", "logprobs"))}
        if logprobs is None:
            return message, _NO_SCORES
        return without_logprobs(message), parse_logprobs(logprobs, self.place, index)

    def _add_turn(self, fields: Record, scores: TokenScores, kind: Actor, index: int) -> Step:
        content = fields.get("content")
        if content in (None, "") and isinstance(fields.get("refusal"), str):
            content = fields["refusal"]
        extra = leftover(fields, _MESSAGE)
        if not only_text(content):
            extra["parts"] = content
        if kind == "environment":
            extra["role"] = str(fields["role"])
        usage = first(extra, USAGES)
        if usage is not None:
            counts = token_counts(usage)
            if leftover(counts):
                extra.setdefault("tokens", counts)
        calls = check_list(parsed(fields.get("tool_calls")) or [], "its tool calls are")
        if fields.get("function_call"):  # the older form, one call without an identifier
            calls = [*calls, fields["function_call"]]
        step = Step(kind, text_of(content), list(map(read_call, calls)), index=index, extra=extra)
        stated = fields.get("confidence")
        if stated is not None:
            value = scalar(stated)  # of several values, an error shows all
            step.confidence = as_number(stated if value is None else value, "its confidence")
        step.cost = as_number(fields.get("cost"), "its cost")
        step.tokens, step.logprobs, step.top_logprobs = scores
        self.steps.append(step)
        for call in step.tool_calls:
            if call.id is not None:
                self._calls[call.id] = step, call
        return step

    def _add_results(self, fields: Record, index: int) -> None:
        """Add a tool's result to the call that it answers, or else to the turn before it."""
        nested = first(fields, ("tool_messages", "tool_responses"))  # the latter of AutoGen 0.2
        if isinstance(nested, list):
            for result in nested:
                self._add_results(as_object(result, "a nested tool result is"), index)
            return
        text = text_of(fields.get("content"))
        key = as_id(fields.get("tool_call_id", fields.get("id")))
        name = fields.get("name")
        error = fields.get("error")
        error = None if error is None else bool(error)
        step: Step | None
        called = self.call_of_id(key)
        if key is None:  # results come in the order of the calls
            calls = ((turn, call) for turn in self.steps[-1:] for call in turn.tool_calls)
            free = (c for c in calls if c[1].result is None and name in (None, c[1].name))
            called = next(free, None)
        if called is not None:
            step, call = called
            call.result = text if call.result is None else f"{call.result}\n{text}"
            if call.error is None:
                call.error = error
        else:
            self.unmatched.append(
                {"index": index, "id": key, "name": name, "content": text, "error": error}
            )
            actor = role_of(fields.get("requestor"))
            actors = {actor} if actor in ("agent", "user") else {"agent", "environment"}
            step = next((turn for turn in reversed(self.steps) if turn.actor in actors), None)
        if step is not None:
            step.observation = text if step.observation is None else f"{step.observation}\n{text}"
            self._before_results.append((step, self.steps[-1]))

    def set_result(self, step: Step, call: ToolCall, text: str, last: Step | None = None) -> None:
        """Set the result of a call and what its turn observed; it came after `last`, or all."""
        call.result = text
        step.observation = "\n".join(c.result for c in step.tool_calls if c.result is not None)
        self._before_results.append((step, last or self.steps[-1]))

    def finish(self, run: Run) -> Run:
        """Put the steps, the system messages and unmatched results into the run."""
        run.steps = self.steps
        if not {"input_tokens", "output_tokens"} & run.meta.keys():
            add_tokens(run, [s.extra["tokens"] for s in self.steps if "tokens" in s.extra])
        if self.system:
            run.extra["system"] = self.system
        self._note_what_came_late(run)
        if self.unmatched:
            run.extra["unmatched_results"] = self.unmatched
        return run

    def _note_what_came_late(self, run: Run) -> None:
        """Say after how many turns instructions and results came, where that is not as usual."""
        late = [(step, turn) for step, turn in self._before_results if turn is not step]
        if not (late or any(self._before_instructions)):
            return
        places = {id(turn): place for place, turn in enumerate([None, *self.steps])}
        end = len(self.steps)  # of a turn that was taken out
        after = [places.get(id(turn), end) for turn in self._before_instructions]
        if any(after):
            run.extra["system_after"] = after
        results = [(places.get(id(turn), end), step) for step, turn in late]
        for place, step in sorted(results, key=itemgetter(0)):  # of several, the last counts
            if place > places.get(id(step), end):
                step.extra["answered_after"] = place


def add_tokens(run: Run, counts: Iterable[Any]) -> None:
    """Add numbers of tokens by side to those of a run."""
    for tokens in counts:
        for side, number in as_fields(tokens).items():
            if is_amount(number):
                name = f"{side}_tokens"
                run.meta[name] = run.meta.get(name, 0) + number


def as_number(value: Any, subject: str) -> float | None:
    """Read a number that may be missing."""
    if value is None or isinstance(value, bool):
        return None
    number = value
    if not isinstance(value, float):
        text = str(value)
        number = math.nan if text.strip().lower() == "nan" else parse_number(text)
    if number is None or math.isinf(number):
        raise MalformedRunError(f"{subject} is {run_label(value)}; write a number, such as 0.9")
    return None if math.isnan(number) else number
