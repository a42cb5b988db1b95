"""Agent trajectory interchange format (ATIF), with Harbor's result.json beside it."""

from pathlib import Path
from typing import Any

from trajscore.io._run import Run, as_object, as_outcome, check_list, leftover
from trajscore.io._smolagents import is_step
from trajscore.io.conversation import Conversation
from trajscore.io.fields import dig
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import FORMATS, Record, as_fields, first_object

_RESULT = "result.json"


@register
class ATIF(Format):
    name = "atif"
    holds = "steps"
    _layout = ("**/trajectory*.json*",)  # of a trial each

    def recognise(self, head: Head) -> bool:
        if head.listed:
            return False
        if str(head.fields.get("schema_version", "")).upper().startswith("ATIF"):
            return True
        names = head.fields.keys()
        is_run = "steps" in names and bool({"agent", "trajectory_id", "session_id"} & names)
        is_memory = is_run and is_step(first_object(head.fields["steps"]))
        return (is_run and not is_memory) or _is_of_terminal_bench(head.fields)

    def runs(self, file: LogFile) -> RawRuns:
        # beside a trajectory, its continuations and summaries are no runs
        file.is_head = file.path.name.startswith(
            (_RESULT, "trajectory.cont-", "trajectory.summarization-")
        )
        whole = file.whole()
        if _is_of_terminal_bench(whole):
            raise ValueError(
                f"{file.path}: results of terminal-bench hold no turns; give a folder of Harbor's "
                f"jobs, or the log of the agent itself"
            )
        if not file.is_head:
            yield file.place(0), _with_rest(file.path, whole)

    def run(self, raw: Any, place: Place) -> Run:
        files = (folder / _RESULT for folder in place.file.parents[:2])
        result = next((LogFile(file).whole() for file in files if file.is_file()), {})
        name = place.name(raw.get("trajectory_id"), result.get("trial_name"), raw.get("session_id"))
        reason = dig(result, "exception_info.exception_type")
        place.stop_reason = None if reason is None else str(reason)
        rewards = as_fields(result, "verifier_result", "rewards")
        reward = rewards.get("reward")
        if len(rewards) == 1:
            (reward,) = rewards.values()
        talk = Conversation(place)
        n_copied = 0
        for index, step in enumerate(check_list(raw.get("steps"), "its steps are")):
            fields = as_object(step, f"message {index} is")
            if fields.get("is_copied_context"):
                n_copied += 1
            else:
                _add(talk, fields, index)
        run = self._new_run(
            raw,
            name,
            outcome=as_outcome(reward),
            stop_reason=place.stop_reason,
            task=result.get("task_name"),
            trial=result.get("trial_name"),
        )
        run.meta = {"reward": reward, **run.meta}
        if result:
            run.extra |= {"result": result, "rewards": rewards}
        if n_copied:
            run.extra["n_copied_steps"] = n_copied
        return talk.finish(run)


def _is_of_terminal_bench(fields: Record) -> bool:
    return "parser_results" in {*fields, *first_object(fields.get("results"))}


def _with_rest(path: Path, raw: dict[str, Any]) -> dict[str, Any]:
    """Add the steps of the files that continue a trajectory."""
    seen = {path}
    rest = raw.get("continued_trajectory_ref")
    while isinstance(rest, str) and isinstance(raw.get("steps"), list):
        path = path.parent / Path(rest).name
        if path in seen or not path.exists():
            break
        seen.add(path)
        more = LogFile(path).whole()
        raw["steps"] = [*raw["steps"], *(more.get("steps") or [])]
        raw["final_metrics"] = more.get("final_metrics", raw.get("final_metrics"))
        rest = more.get("continued_trajectory_ref")
    return raw


# ------------------------------------------------------------------ steps


def _add(talk: Conversation, step: Record, index: int) -> None:
    metrics = dict(as_fields(step, "metrics"))
    extra = as_fields(step, "extra")
    message = {
        "role": step.get("source"),
        "content": step.get("message"),
        "tool_calls": step.get("tool_calls"),
        "logprobs": metrics.pop("logprobs", None),
        "cost": metrics.pop("cost_usd", None),
    }
    turn = talk.add(message, index)
    if turn is not None:
        turn.extra |= leftover(step, FORMATS["atif"]["step"]) | dict(extra)
        if metrics:
            turn.extra["metrics"] = metrics
    results = dig(step, "observation.results") or []
    for result in check_list(results, f"message {index}: the results of its observation are"):
        fields = as_object(result, f"message {index}: a result of its observation is")
        talk.add({**fields, "role": "tool", "tool_call_id": fields.get("source_call_id")}, index)
