"""One file a format of logs, which registers it."""

from trajscore.io.formats import (
    agents_sdk,
    atif,
    chat,
    claude_code,
    inspect_ai,
    jsonl,
    langfuse,
    mlflow,
    otel,
    tau2,
    tau_bench,
)

__all__ = [
    "agents_sdk",
    "atif",
    "chat",
    "claude_code",
    "inspect_ai",
    "jsonl",
    "langfuse",
    "mlflow",
    "otel",
    "tau2",
    "tau_bench",
]
