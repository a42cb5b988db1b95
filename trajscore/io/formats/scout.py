"""Databases of Inspect Scout, which imports from Phoenix, LangSmith, Logfire and Weave."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trajscore.core.errors import optional
from trajscore.io._run import Run, leftover
from trajscore.io.conversation import Conversation
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import FORMATS


@register
class Scout(Format):
    name = "scout"
    holds = "transcript_id"

    def recognise(self, head: Head) -> bool:
        return False  # by its folder only

    def folder(self, place: Path) -> list[Path]:
        """Return the folder of a database, which is read as a whole."""
        if any(place.glob("**/transcripts_*.parquet")):
            return [place]
        return []

    def runs(self, file: LogFile) -> RawRuns:
        scout = optional(
            "inspect_scout", "reading transcripts of Inspect Scout needs inspect-scout", "scout"
        )
        with ExitStack() as opened:
            # a thread of its own, as in a notebook this one is within a loop already
            thread = opened.enter_context(ThreadPoolExecutor(1))
            runner = asyncio.Runner()

            def wait(work: Coroutine[Any, Any, Any]) -> Any:
                return thread.submit(runner.run, work).result()

            opened.callback(thread.submit, runner.close)
            database = scout.transcripts_db(str(file.path))
            wait(database.connect())
            opened.callback(lambda: wait(database.disconnect()))
            content = scout.TranscriptContent(messages="all")
            for index, entry in enumerate(wait(_listed(database))):
                yield file.place(index), wait(database.read(entry, content))

    def run(self, transcript: Any, place: Place) -> Run:
        run = Run(
            place.name(transcript.transcript_id),
            stop_reason=transcript.limit or ("error" if transcript.error else None),
            task=transcript.task_id,
            trial=transcript.task_repeat,
            meta={name: getattr(transcript, name) for name in FORMATS["scout"]["meta"]},
            scores=leftover({"success": transcript.success, "score": transcript.score}),
            extra={"metadata": dict(transcript.metadata)},
        )
        messages = [message.model_dump(exclude_none=True) for message in transcript.messages]
        return Conversation(place, messages).finish(run)


async def _listed(database: Any) -> list[Any]:
    return [entry async for entry in database.select()]
