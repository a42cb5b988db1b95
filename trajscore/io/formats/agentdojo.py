"""Results of AgentDojo: a file a pair of a user's task and an injected one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._run import Run, as_object, as_outcome, leftover
from trajscore.io.files import Place
from trajscore.io.registry import Format, Head, register

_RUN = frozenset({"messages", "user_task_id", "injection_task_id", "error"})


@register
class AgentDojo(Format):
    name, holds = "agentdojo", "user_task_id"
    beside = ("suite_name", "pipeline_name", "injection_task_id", "utility")
    cut_runs = "score"

    def recognise(self, head: Head) -> bool:
        return {"user_task_id", "suite_name"} <= head.fields.keys()

    def folder(self, place: Path) -> list[Path]:
        """List the results of a folder of pipelines, suites, tasks and attacks."""
        return sorted(path for path in place.glob("**/*user_task_*/*/*.json") if path.is_file())

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object(raw)
        task = f"{raw.get('suite_name')}-{raw.get('user_task_id')}"
        injected = raw.get("injection_task_id")
        about = (raw.get("pipeline_name"), task, raw.get("attack_type"), injected)
        run = Run(
            place.name("/".join(str(part) for part in about if part not in (None, "none"))),
            outcome=as_outcome(raw.get("utility")),
            stop_reason="error" if raw.get("error") else None,
            task=task,
            trial=injected,
            meta={"model": raw.get("pipeline_name")},
            extra=leftover(raw, _RUN) | ({"error": raw["error"]} if raw.get("error") else {}),
        )
        if raw.get("security") is not None:
            run.scores["security"] = raw["security"]
        talk = Conversation(place)
        talk.add_all(raw.get("messages"))
        return talk.finish(run)
