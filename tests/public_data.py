"""Where public files of tests come from: pinned addresses, with the SHA-256 of each file.

`public_file` (conftest.py) looks into $TRAJSCORE_TEST_DATA first, and downloads only where
$TRAJSCORE_FETCH is set.
"""

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
REGISTRY = Path(__file__).with_name("public_files.txt").read_text(encoding="utf-8")
SHA256 = dict(line.split() for line in REGISTRY.splitlines())

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
