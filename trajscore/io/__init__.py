"""From the logs of agents to runs of steps, with the outcome and the reason for the end."""

from trajscore.io._run import MalformedRunError, Run, Step, ToolCall
from trajscore.io.formats.atif import read_atif
from trajscore.io.formats.chat import read_openai
from trajscore.io.formats.inspect_ai import read_inspect
from trajscore.io.formats.jsonl import read_jsonl
from trajscore.io.formats.tau2 import read_tau2
from trajscore.io.formats.tau_bench import read_tau_bench
from trajscore.io.reading import iter_runs, read_runs
from trajscore.io.registry import Format, register
from trajscore.io.runs import Runs, meta, outcomes

__all__ = [
    "Format",
    "MalformedRunError",
    "Run",
    "Runs",
    "Step",
    "ToolCall",
    "iter_runs",
    "meta",
    "outcomes",
    "read_atif",
    "read_inspect",
    "read_jsonl",
    "read_openai",
    "read_runs",
    "read_tau2",
    "read_tau_bench",
    "register",
]
