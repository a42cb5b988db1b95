"""One file a format of logs, which registers it."""

from trajscore.io.formats import (
    agentdojo,
    agents_sdk,
    atif,
    chat,
    claude_code,
    codex,
    inspect_ai,
    jsonl,
    langfuse,
    langsmith,
    mlflow,
    otel,
    scout,
    swe_agent,
    tau2,
    tau_bench,
)

__all__ = [
    "agentdojo",
    "agents_sdk",
    "atif",
    "chat",
    "claude_code",
    "codex",
    "inspect_ai",
    "jsonl",
    "langfuse",
    "langsmith",
    "mlflow",
    "otel",
    "scout",
    "swe_agent",
    "tau2",
    "tau_bench",
]
