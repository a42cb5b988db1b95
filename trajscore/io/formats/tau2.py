"""Result files of tau2-bench. The stop reason is read before the reward."""

from pathlib import Path
from typing import Any

from trajscore.io._run import MalformedRunError, Run, as_object, check_list, leftover
from trajscore.io.conversation import Conversation
from trajscore.io.fields import dig
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import as_fields

_HEADS = ("results.json", "results.json.gz")


@register
class Tau2(Format):
    name = "tau2"
    holds = "simulations"
    _layout = ("results.json*", "simulations/*.json*")

    def recognise(self, head: Head) -> bool:
        names = set(head.fields)
        if head.listed or head.whole:  # one simulation
            return {"messages", "termination_reason"} <= names
        is_head = {"info", "tasks"} <= names or "environment_info" in as_fields(head.fields, "info")
        return "simulations" in names or is_head

    def folder(self, place: Path) -> list[Path]:
        """List the head and the simulations of a folder with one file a simulation."""
        if place.name in _HEADS:
            place = place.parent
        if (place / "simulations").is_dir():
            return super().folder(place)
        return []

    def runs(self, file: LogFile) -> RawRuns:
        # beside a folder of simulations, the list is an index of them
        file.is_head = file.path.name in _HEADS and (file.path.parent / "simulations").is_dir()
        for key, index, value in file.items({"simulations"}):
            if index is None:
                file.info[str(key)] = value
            elif "messages" in as_fields(value) or not file.is_head:
                yield file.place(index), value
        if "messages" in file.info:
            raw = file.others.pop(str(file.path))
            for name in _HEADS:
                file.info.update(file.others.get(str(file.path.parent.parent / name), {}))
            yield file.place(0), raw

    def run(self, raw: Any, place: Place) -> Run:
        raw = as_object(raw)
        task = raw.get("task_id")
        name = place.name(raw.get("id"), None if task is None else f"{task}-{raw.get('trial', 0)}")
        reason = raw.get("termination_reason")
        if not isinstance(reason, str) or not reason:
            raise MalformedRunError(
                "it has no termination_reason, without which its reward has no meaning"
            )
        place.stop_reason = reason.rpartition(".")[2].lower()
        messages = check_list(raw.get("messages"), "its messages are")
        talk = Conversation(place, list(map(_with_confidence, messages)))
        run = self._new_run(raw, name, stop_reason=place.stop_reason)
        run.meta["max_steps"] = dig(place.info, "info.max_steps")
        run.meta = {"reward": None, **leftover(run.meta)}
        return talk.finish(run)


def _with_confidence(message: Any) -> Any:
    """Add the confidence that agent-tracer asks for after each turn, if there is one."""
    stated = as_fields(message, "uncertainty").get("self_assessed_confidence")
    if stated is None:
        return message
    return {"confidence": stated, **message}
