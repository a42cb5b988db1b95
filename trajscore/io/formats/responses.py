"""What a model answered in OpenAI's Responses: those of a run in a list, or naming the one before.

Without what it was asked, they hold no turns of the user and no results of tools.
"""

from typing import Any

from trajscore.core.stops import ADMINISTRATIVE
from trajscore.io._conversation import Conversation, add_tokens
from trajscore.io._messages import as_chat, find_messages, spread, type_of
from trajscore.io._run import MalformedRunError, Run, leftover
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import Record, as_fields, as_list, first, token_counts

_LISTS = ("responses", "raw_responses", "model_responses", "response")
_ID = ("id", "response_id")


@register
class Responses(Format):
    name = "responses"
    holds = "output"
    beside = ("object", "previous_response_id", "instructions", "status")
    stops = {"max_output_tokens": ADMINISTRATIVE}

    def recognise(self, head: Head) -> bool:
        has_more = find_messages(spread(head.fields))[0] is not None
        return head.whole and not has_more and bool(_responses_of(head.item or head.fields))

    def runs(self, file: LogFile, options: Any) -> RawRuns:
        whole: dict[str, Any] = {}
        alone: list[Record] = []
        for key, index, item in file.items():
            if index is None:
                whole[str(key)] = item
            elif _is_response(item):
                alone.append(item)
            else:
                yield file.place(index), item
        if whole:
            yield file.place(0), {"id": stem(file.path), **whole}
        chains = _chains(alone)
        calls = (type_of(as_fields(item)) for answer in alone for item in answer["output"])
        if len(chains) == len(alone) > 1 and "function_call" in calls:
            raise ValueError(
                f"{file.path}: its responses call tools, and none names the one before it; list "
                f'those of each run, a run a line: {{"responses": [...]}}'
            )
        yield from ((file.place(index), chain) for index, chain in enumerate(chains))

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        responses = _responses_of(raw)
        if not responses:
            raise MalformedRunError("it has no response with an output")
        messages: list[Any] = []
        for response in responses:
            system = response.get("instructions")
            if isinstance(system, str):
                messages.append({"role": "system", "content": system})
            messages += [message for _, message in as_chat(response["output"])]
        record = {} if isinstance(raw, list) or _is_response(raw) else raw
        place.name(place.fields.id_of(record), first(responses[0], _ID))
        last = responses[-1]
        task, trial = place.fields.values(record, ("task", "trial")).values()
        run = Run(str(place.run), task=task, trial=trial, meta={"model": last.get("model")})
        run.stop_reason = first(as_fields(last, "incomplete_details"), ("reason",))
        run.stop_reason = run.stop_reason or first(as_fields(last, "error"), ("code",))
        run.extra = leftover({"metadata": last.get("metadata"), **record}, ("id", *_LISTS))
        add_tokens(run, (token_counts(response.get("usage")) for response in responses))
        return Conversation(place, messages).finish(run)


def _is_response(value: Any) -> bool:
    """Tell an answer, or what the Agents SDK keeps of it, from a record with a request."""
    fields = as_fields(value)
    is_answer = fields.get("object") == "response" or "response_id" in fields
    return is_answer and "input" not in fields and isinstance(fields.get("output"), list)


def _responses_of(value: Any) -> list[Record]:
    """Return the responses that a run is, or lists."""
    if _is_response(value):
        return [value]
    if isinstance(value, dict):
        return next(filter(None, map(_responses_of, map(value.get, _LISTS))), [])
    are_all = all(map(_is_response, as_list(value)))
    return as_list(value) if are_all else []


def _chains(responses: list[Record]) -> list[list[Record]]:
    """Return the responses of each run: those that name the one before, or a conversation."""
    chains: dict[Any, list[Record]] = {}  # by what goes on with them
    for response in responses:
        conversation = as_fields(response, "conversation").get("id")
        before = response.get("previous_response_id") or conversation
        chain = chains.pop(before, []) if before else []
        chain.append(response)
        chains[conversation or first(response, _ID) or id(response)] = chain
    return sorted(chains.values(), key=lambda chain: responses.index(chain[0]))
