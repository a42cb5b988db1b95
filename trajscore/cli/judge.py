"""``trajscore judge``: ask a model after each step of a log whether the run will succeed."""

import argparse

import numpy as np
import pandas as pd

from trajscore.cli.inputs import READING, load_request, progress_bar, write_table
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.values import number_of
from trajscore.judging import StepJudge
from trajscore.judging.answers import FORMS
from trajscore.judging.questions import CHANNEL, questions
from trajscore.loading.load import load
from trajscore.loading.tables import NO_SCORE, Inputs, describe_notes

_DEFAULTS = StepJudge("")
OPTIONS = READING | {
    "--answer": {"choices": FORMS, "default": _DEFAULTS.answer},
    "--question": {"default": _DEFAULTS.question},
    "--max-chars": {"default": _DEFAULTS.max_chars},
    "--concurrency": {"default": _DEFAULTS.concurrency},
}


def run(arguments: argparse.Namespace) -> None:
    """Judge the runs of a log, and write a table."""
    out = arguments.out
    inputs = load(arguments.log, load_request(arguments, needs_scores=False))
    if not inputs.log:
        raise ValueError(f"{arguments.log} is a table; a judge reads what was said, give a log")
    names = ("model", "base_url", "answer", "question", "max_chars", "concurrency")
    options = {name: getattr(arguments, name) for name in names}
    cache = arguments.cache or out.with_name(f"{out.name}.cache.sqlite")
    batch = questions(StepJudge(**options, cache=cache, progress=progress_bar()), inputs.log)
    if not np.array_equal(inputs.container().lengths, batch.turns.lengths):
        raise ArgumentError(
            "{argument}: turns of users are steps of these scores, too, but a judge is asked after "
            "turns of the agent alone; leave them out here, and pass them to trajscore report",
            "scores",
        )
    left = batch.left
    size = f"{number_of(len(inputs.log), 'run')}, {number_of(len(batch.keys), 'step')}"
    requests = f"{number_of(len(left), 'request')}, {len(batch.texts) - len(left):,} from {cache}"
    spent = "about {:,} tokens asked, at most {:,} answered".format(*batch.n_tokens)
    if notes := describe_notes(inputs.notes, arguments.options):
        print(notes)
    print(f"{size}: {requests}; {spent}", flush=True)
    if arguments.dry_run:
        return
    unanswered = batch.turns.container(np.zeros((len(batch.keys), 1)), [CHANNEL])
    table = _table(inputs, unanswered)
    trial = out.with_name(f".{out.stem}.part{out.suffix}")
    write_table(table, trial)  # what cannot be written is refused before answers are paid for
    trial.unlink()
    judged = batch.ask()
    table[table.columns[-1]] = judged.traces.to_frame()[CHANNEL]
    n_asked = sum(answer.prompt_tokens or 0 for answer in judged.new)
    n_answered = sum(answer.answer_tokens or 0 for answer in judged.new)
    spent = f"{n_asked:,} tokens asked, {n_answered:,} answered"
    if n_unknown := sum(None in answer[2:] for answer in judged.new):
        spent += f", not counted by the endpoint for {number_of(n_unknown, 'answer')}"
    print(*judged.notes, f"{number_of(len(judged.new), 'request')} made: {spent}", sep="\n")
    if np.isnan(judged.traces.cells).all():
        raise ValueError(
            f"no answer of {arguments.model!r} can be read, so {out} is not written; name another "
            f"--model, or change --answer or --question"
        )
    write_table(table, out)
    print(f"wrote {out}; judge it with: trajscore report {out}")


def _table(inputs: Inputs, traces: TrajectoryArray) -> pd.DataFrame:
    """Return a row a step, or for a run without one: its task, stop, outcome, and confidences."""
    steps = TrajectoryArray.stack([inputs.container(), traces]).to_frame()
    runs = traces.meta
    names = dict.fromkeys(("task", inputs.group, "stop_reason"))
    runs = runs[[name for name in names if name in runs]]
    runs = runs.assign(outcome=inputs.y, first_error=inputs.first_error).dropna(axis=1, how="all")
    runs = runs.loc[runs.index.repeat(np.maximum(traces.lengths, 1))]
    scores = steps.drop(columns=["run", "step", NO_SCORE], errors="ignore")
    return pd.concat([steps[["run", "step"]], runs.reset_index(drop=True), scores], axis=1)
