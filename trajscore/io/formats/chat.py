"""Chat messages of OpenAI's interface or another client's; a list of them, or runs that hold it."""

from collections.abc import Callable, Iterator
from typing import Any

from trajscore.io._messages import (
    find_messages,
    is_chat_list,
    is_message,
    is_of_program,
    is_run,
    spread,
    type_of,
)
from trajscore.io._results import REACT_CALL
from trajscore.io._run import MalformedRunError, Run, as_object, leftover
from trajscore.io._smolagents import stop_of
from trajscore.io.conversation import Conversation, add_tokens
from trajscore.io.fields import dig, usual_names
from trajscore.io.files import LogFile, Place, rows_of, stem
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import (
    USAGES,
    WORDS,
    Record,
    as_fields,
    as_list,
    first,
    first_object,
    is_response,
    token_counts,
)

_ANSWER_ID = ("id", "response_id")
RUN_LISTS = WORDS["run_lists"]
"""Fields of a file that list its runs."""


def is_chat(head: Head) -> bool:
    """Tell a chat, and not a long table that has a column for the role."""
    fields = head.fields
    if not head.whole:  # a more specific field may follow
        return False
    is_of_line = {*usual_names("id", fields)} <= {"id"}
    if "messages" in fields:  # of a list only the first item is known
        return True
    if is_message(fields):
        is_of_pydantic = {"parts", "kind"} <= fields.keys() and not usual_names("outcome", fields)
        return is_of_pydantic or is_of_line
    return is_chat_list(head.item) or is_run(fields) or bool(named_runs(fields))


def is_talk(record: Record) -> bool:
    """Tell a record that holds messages, also in an object within it."""
    return is_chat_list(find_messages(spread(record))[0])


def named_runs(fields: Record, is_one: Callable[[Record], Any] = is_talk) -> list[Record]:
    """Return the runs of an object: by their ids, by columns as of a frame, or in a usual field."""
    for named in (fields, rows_of(fields)):
        runs: list[Record] = [
            {"id": k, **(as_fields(run) or {"messages": run})} for k, run in named.items()
        ]
        if len(runs) > 1 and all(map(is_one, runs)):
            return runs
    for held in filter(None, map(fields.get, RUN_LISTS)):
        if any(map(is_one, map(as_fields, as_list(held)))):
            return as_list(held)
        if runs := named_runs(as_fields(held), is_one):
            return runs
    return []


@register
class OpenAI(Format):
    name = "openai"
    holds = "messages"
    lax = True

    def recognise(self, head: Head) -> bool:
        return is_chat(head)

    def runs(self, file: LogFile) -> RawRuns:
        fields: dict[str, Any] = {}
        talks: dict[Any, list[Any]] = {}  # messages by their conversation, if they name one
        chains: dict[Any, list[Record]] = {}  # of responses, by what goes on with them
        for key, index, item in file.items(RUN_LISTS):
            if index is None:
                fields[str(key)] = item
            elif (answer := _response_of(item)) and not talks:
                talk = as_fields(answer, "conversation").get("id")
                chain = chains.pop(answer.get("previous_response_id") or talk, [])
                chain.append(item)
                chains[talk or first(answer, _ANSWER_ID) or index] = chain
            elif talks and (ending := _of_run(item)):
                fields |= ending
            elif talks or (is_message(item) and not is_run(item)):
                talks.setdefault(as_fields(item).get("conversation_id"), []).append(item)
            else:
                yield file.place(index), item
        runs: list[Record] = [{"id": name, "messages": talk} for name, talk in talks.items()]
        if len(runs) == 1:
            fields["messages"] = runs.pop()["messages"]
        if is_run(fields) or is_message(fields):
            is_named = file.fields.id_of(fields) is not None
            runs = [fields if is_named else {"id": stem(file.path)} | fields]
        runs = runs or named_runs(fields) or list(_chained(chains, file))
        if not runs:
            file.info.update(fields)
        for index, run in enumerate(runs):
            yield file.place(index), run

    def run(self, raw: Any, place: Place) -> Run:
        record = as_object({"messages": raw} if isinstance(raw, list) else raw)
        raw = spread(record)
        messages, used = find_messages(raw)
        if is_message(raw) and messages is None:
            messages = [raw]
            used = {"output"}
            if not is_response(raw):
                raw = {"id": raw.get("id")}
        run = new_run(raw, place, used | {"choices"})
        run.id = place.name(place.fields.id_of(record), run.id)  # before that of an object within
        if messages is None:
            raise MalformedRunError(
                "it has no 'messages' that are a list; write them with json.dumps"
            )
        last = first_object(messages[-1:])
        if "messages" in last and not is_message(last):  # a result of AutoGen
            return self.run({**leftover(raw, used), **last}, place)
        if "model_type" in raw and REACT_CALL in str(messages[:2]):
            raise MalformedRunError("it is one call of ReAct; save prediction.toDict() of each run")
        details = as_fields(last, "incomplete_details")  # of a response
        failed = first(last, ("error_code", "errorCode"))
        run.stop_reason = details.get("reason") or stop_of(last) or failed
        if n := sum(map(is_of_program, messages)):
            run.extra["n_left_out"] = {"put in": n}
        run = Conversation(place, messages).finish(run)
        # the usage of the run, where its turns do not say theirs
        if "choices" not in raw and not {"input_tokens", "output_tokens"} & run.meta.keys():
            add_tokens(run, [token_counts(first(raw, USAGES))])
        return run


def _of_run(item: Any) -> Record:
    """Return the fields of a line after messages that is of their run, such as its outcome."""
    fields = as_fields(item)
    if "total_cost_usd" in fields:  # the last line of Claude's Agent SDK
        return {**fields, "stop_reason": fields.get("subtype")}
    is_ending = usual_names("outcome", fields) and not is_message(item)
    return {"lines_of_run": 1, **fields} if is_ending else {}


def _response_of(item: Any) -> Record:
    """Return a response of OpenAI, also beside its request; an empty object for anything else."""
    return next(filter(is_response, (item, as_fields(item).get("response"))), {})


def _chained(chains: dict[Any, list[Record]], file: LogFile) -> Iterator[Record]:
    """Yield the runs of responses, each of which names the one before it."""
    alone = [as_list(chain[0].get("output")) for chain in chains.values() if len(chain) == 1]
    kinds = {type_of(as_fields(item)) for output in alone for item in output}
    if "function_call" in kinds and len(alone) == len(chains) > 1:
        raise ValueError(
            f"{file.path}: its responses call tools, and none names the one before it; list "
            f'those of each run, a run a line: {{"responses": [...]}}'
        )
    for chain in chains.values():
        messages = [message for item in chain for message in find_messages(item)[0] or [item]]
        name = first({**_response_of(chain[0]), **chain[0]}, _ANSWER_ID)
        names = {"id": name, "messages": messages}
        last = {**chain[-1], **_response_of(chain[-1])}
        yield leftover(last, {"output", "object", "request", "response"}) | names


def new_run(raw: Record, place: Place, used: set[str]) -> Run:
    """Return a run without steps, with the fields of a record that nothing else uses."""
    fields = place.fields
    name = place.name(fields.id_of(raw))
    task, trial = fields.values(raw, ("task", "trial")).values()
    parts = ("task", "trial") if fields.ids else ("id", "task", "trial")
    run = Run(name, task=task, trial=trial)
    run.extra = leftover(raw, used | {*fields.names(raw, parts).values()})
    # an id within a request, which is not kept
    run.extra |= {name: dig(raw, name) for name in fields.ids if "." in name}
    return run
