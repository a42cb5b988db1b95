"""From the logs of agents to runs of steps, with the outcome and the reason for the end."""

from trajscore.io._run import Run, Step, ToolCall
from trajscore.io.live import as_run
from trajscore.io.reading import iter_runs, read_runs, read_tau2
from trajscore.io.registry import Format, register
from trajscore.io.runs import Runs, meta, outcomes

__all__ = [
    "Format",
    "Run",
    "Runs",
    "Step",
    "ToolCall",
    "as_run",
    "iter_runs",
    "meta",
    "outcomes",
    "read_runs",
    "read_tau2",
    "register",
]
