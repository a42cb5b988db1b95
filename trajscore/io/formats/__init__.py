"""One file a format of logs; an import here registers it."""

from trajscore.io.formats import (  # noqa: F401
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
