"""One file a format of logs; an import here registers it."""

from trajscore.io.formats import (  # noqa: F401
    agentdojo,
    agents_sdk,
    atif,
    balrog,
    braintrust,
    chat,
    claude_code,
    codex,
    inspect_ai,
    intercode,
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
