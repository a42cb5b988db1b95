"""Where public files of tests come from: pinned addresses, with the SHA-256 of each file.

`public_file` (conftest.py) looks into $TRAJSCORE_TEST_DATA first, and downloads only where
$TRAJSCORE_FETCH is set.
"""

from __future__ import annotations

from pathlib import Path

import pooch

from trajscore.datasets import fetch_expected_cost

CACHE = pooch.os_cache("trajscore-tests")
GITHUB = "https://raw.githubusercontent.com"
SOURCES = {
    "evaluator": "shuvom-s/e-valuator/main/data",
    "tau_bench": (
        "sierra-research/tau-bench/59a200c6d575d595120f1cb70fea53cef0632f6b/historical_trajectories"
    ),
    "traces/langfuse": (
        "langfuse/langfuse/62751446149b702b419a9292ddfc2280cdf74b8c/"
        "worker/src/__tests__/chatml/framework-traces"
    ),
    "traces/openinference": (
        "Arize-ai/openinference/1fe497f1d9f45a07eee55d97fe185e020560f9c7/"
        "js/packages/openinference-genai/test/__fixtures__"
    ),
    "traces/otel_genai": (
        "mozilla-ai/any-agent/3e248d1c5a04d43f00589596d3fc580dbec64194/tests/assets"
    ),
}
SHA256 = {
    "evaluator/gsm8k_w_scores_compressed.csv.gz": (
        "136e22f05e72149379932137546bc129311a87befc33786fc65a3985606da275"
    ),
    "evaluator/hotpotqa_w_scores_compressed.csv.gz": (
        "bbb84df8d771482d2de96b93bbb548444620ef65b98116030958c68e91cba094"
    ),
    "tau_bench/gpt-4o-airline.json": (
        "e9e6c0297660c537f83d4fd9c476ce7a9a86ecd2784874b7bfc13be598e37bfa"
    ),
    "traces/langfuse/autogen-2025-06-06.chatml.json": (
        "138d9a74d982b4e4ce53f9e43f610e8143225f67e4ca3908760b85e02591bcbc"
    ),
    "traces/langfuse/autogen-2025-06-06.trace.json": (
        "716ca3e4b50b816d399170aad70904b7855d3a9f5a9328dd8c2974c904a57dec"
    ),
    "traces/langfuse/claude-agent-2025-12-22.chatml.json": (
        "48e11b9e06f6f39b7b86c214d3815886d0ee81d244f0d51c9f4848233cb5f76a"
    ),
    "traces/langfuse/claude-agent-2025-12-22.trace.json": (
        "e1a65d677f8c10177713e58bd0f15cd0092979e4e611ffbcbc3deb7cac5550fb"
    ),
    "traces/langfuse/crewai-2025-07-11.chatml.json": (
        "7429e29e6f8c2b393075e2a6fca69867b298aeab629808ec0d7d4aee39840501"
    ),
    "traces/langfuse/crewai-2025-07-11.trace.json": (
        "7d07a43b12b02603c2e24f36c69afec3cecdfb33fe432711e89ddc7520ed4c01"
    ),
    "traces/langfuse/langgraph-python-2025-08-22.chatml.json": (
        "bfe6fa959eadd1273ebc4526dae74d316d04b57118b62723d3e9cf01f977c3da"
    ),
    "traces/langfuse/langgraph-python-2025-08-22.trace.json": (
        "9cc48306a7918709f2f9ea0eb521405ab2e71a9b18ac748552017f349ff8f3a6"
    ),
    "traces/langfuse/openai-agents-2025-09-30.chatml.json": (
        "1792722eb0e2e10ebe0ffb5268eac72e7aaa90d83f24c92de6b43842f5d8972e"
    ),
    "traces/langfuse/openai-agents-2025-09-30.trace.json": (
        "0e65031799f7ba4d6d94769e3e9ba4f714b728e270cf747d54a05bf6e31930cb"
    ),
    "traces/langfuse/pydantic-ai-tools-2025-12-04.chatml.json": (
        "3b68b0ea0ad81cac5cf371da0313c3c05419e931b71ecb6599f0d32636427708"
    ),
    "traces/langfuse/pydantic-ai-tools-2025-12-04.trace.json": (
        "6eb8e10c1750f2eec893be70b8db52db97be609a73f7625d01820beadbe38e2a"
    ),
    "traces/langfuse/vercel-aisdk-2025-11-17.chatml.json": (
        "82aba2f5414995afa8b111072bd70d11c7742e8ea697a9e833de85af2b5ab866"
    ),
    "traces/langfuse/vercel-aisdk-2025-11-17.trace.json": (
        "10dcc16a9c438492f210e70d7f7b99bbec7497eb1eb0ebda7950208e25061a08"
    ),
    "traces/openinference/openinference_client_span_input_output_only.json": (
        "d7effa8b44120261b5b5ca42909a9d68cb48138c01015cd21d7653406d8fe6cd"
    ),
    "traces/openinference/openinference_client_span_tool_calls.json": (
        "9ed238889617dd4cd6fe8dcb1ac4bba708f0c6a6734ba1b5ba5f7c22b84410cd"
    ),
    "traces/openinference/otel_genai_client_span_tool_calls.json": (
        "2abfb68d529e23debf7fed5219e31a4775c7e40fb3da0b408680f89275c1c5ac"
    ),
    "traces/openinference/otel_genai_deprecated_client_span_tool_calls.json": (
        "064620370b69af477569fa3d1f0ceda7fd7a3d2b9b12af99d24b676bbdb62c77"
    ),
    "traces/openinference/otel_genai_tool_execution_span.json": (
        "af079e45f3c2d5c542939b73fb7ad814b921402f2302854af9547263483aa178"
    ),
    "traces/otel_genai/GOOGLE_trace.json": (
        "aff8af250059da8560dc6229cf168830e2844a61af9b027b68829827db56e588"
    ),
    "traces/otel_genai/LANGCHAIN_trace.json": (
        "635c0c9267dba6716d0ed25d29cbba30333de60ca4271ccef22c9e2ab56948b0"
    ),
    "traces/otel_genai/OPENAI_trace.json": (
        "0e4490d41dee88f2c8516ab276de3b7cc7c3542d972e90f0e08197d887f9af74"
    ),
    "traces/otel_genai/SMOLAGENTS_trace.json": (
        "98d478bfba3fb30b66097619616440f67a1469ca8408b345efee5b79cf228617"
    ),
}

# of the folder made_logs, which has no address
MADE_LOGS = [
    "anthropic.jsonl", "langgraph_lc.jsonl", "langgraph_state.jsonl",
    "langsmith.jsonl", "mlflow.jsonl", "openai_bare.json", "openai_noout.json",
    "openai_passed.jsonl", "openai_responses.jsonl", "openai_score.jsonl", "openai_success.json",
    "otel.json", "sharegpt.json",
]  # fmt: skip


def is_fetchable(name: str) -> bool:
    """Whether a file has a pinned address."""
    return name in SHA256 or name.startswith("expected_cost/")


def fetch(name: str) -> Path:
    """Return the path of a file in pooch's cache, downloaded once and checked."""
    folder, _, file = name.rpartition("/")
    if name.startswith("expected_cost/"):  # which the package pins
        name = folder.rpartition("/")[2]
        fetch_expected_cost(name, data_home=CACHE)
        return CACHE / "trajscore" / f"{name}_{file}"
    path = pooch.retrieve(
        f"{GITHUB}/{SOURCES[folder]}/{file}",
        known_hash=f"sha256:{SHA256[name]}",
        fname=file,
        path=CACHE / folder,
    )
    return Path(path)
