"""From the logs of agents to runs of steps, with the outcome and the reason for the end."""

from trajscore.io._atif import iter_atif, read_atif
from trajscore.io._detect import detect_format, iter_runs, read_runs
from trajscore.io._inspect import iter_inspect, read_inspect
from trajscore.io._jsonl import iter_jsonl, read_jsonl
from trajscore.io._openai import iter_openai, read_openai
from trajscore.io._records import Run, Step, ToolCall
from trajscore.io._runs import Runs, RunStream, Skipped, meta, outcomes
from trajscore.io._tau2 import iter_tau2, read_tau2
from trajscore.io._tau_bench import iter_tau_bench, read_tau_bench

__all__ = [
    "Run",
    "RunStream",
    "Runs",
    "Skipped",
    "Step",
    "ToolCall",
    "detect_format",
    "iter_atif",
    "iter_inspect",
    "iter_jsonl",
    "iter_openai",
    "iter_runs",
    "iter_tau2",
    "iter_tau_bench",
    "meta",
    "outcomes",
    "read_atif",
    "read_inspect",
    "read_jsonl",
    "read_openai",
    "read_runs",
    "read_tau2",
    "read_tau_bench",
]
