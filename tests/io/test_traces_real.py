"""Real traces: what their own projects read in them stands in our runs, once and in order."""

import json

import pytest

from trajscore import io
from trajscore.io._conversation import role_of
from trajscore.io.text import text_of

LANGFUSE = (
    "autogen-2025-06-06",
    "claude-agent-2025-12-22",
    "crewai-2025-07-11",
    "langgraph-python-2025-08-22",
    "openai-agents-2025-09-30",
    "pydantic-ai-tools-2025-12-04",
    "vercel-aisdk-2025-11-17",
)


def plain(content):
    """Return a text without regard to spaces, and JSON without regard to how it is written."""
    text = content if isinstance(content, str) else json.dumps(content)
    try:
        value = json.loads(text)
    except ValueError:
        return " ".join(text.split())
    return json.dumps(value if not isinstance(value, list) or len(value) > 1 else value[0])


def said_in(run):
    """Return all that a run says, in order."""
    said = [("system", plain(text)) for text in run.extra.get("system", ())]
    for step in run.steps:
        said += [(step.actor, plain(step.text))] if step.text else []
        said += [("call", call.name) for call in step.tool_calls]
        said += [("tool", plain(call.result)) for call in step.tool_calls if call.result]
    return [*said, ("json", plain(run.extra.get("output", "")))]


def said_by(messages):
    """Return what the messages say that the project's own converter read."""
    for message in messages:
        content, role = message.get("content"), role_of(message.get("role", "tool"))
        parts = content if isinstance(content, list) else [content]
        used = [p["name"] for p in parts if isinstance(p, dict) and p.get("type") == "tool_use"]
        if content and not used:
            texts = all(isinstance(p, dict) and p.get("type") == "text" for p in parts)
            yield role, plain(text_of(content) if texts else content)
        used += [call["name"] for call in message.get("tool_calls") or ()]
        yield from (("call", name) for name in used)
        if "json" in message and "role" not in message:
            yield "json", plain(message["json"])


@pytest.mark.parametrize("name", LANGFUSE)
def test_langfuse_as_its_own_converter_reads_it(public_file, name):
    (run,) = io.read_runs(public_file("traces", "langfuse", f"{name}.trace.json"))
    sides = json.loads(public_file("traces", "langfuse", f"{name}.chatml.json").read_text())
    ours = said_in(run)
    for sides_of_one in sides.values():
        for side in sides_of_one.values():
            place = 0
            for kind, text in said_by(side["data"]) if side["success"] else ():
                kinds = ("json", "tool") if kind == "json" else (kind,)
                found = [
                    k for k in range(place, len(ours)) if ours[k] in [(x, text) for x in kinds]
                ]
                assert found, (kind, text)
                place = found[0]


@pytest.mark.parametrize(
    ("name", "actors", "tools"),
    [
        ("autogen-2025-06-06", "ua", 0),
        ("claude-agent-2025-12-22", "uaaaa", 2),
        ("crewai-2025-07-11", "ua", 0),
        ("langgraph-python-2025-08-22", "uuaa", 1),
        ("openai-agents-2025-09-30", "uaa", 1),
        ("pydantic-ai-tools-2025-12-04", "uaauaua", 4),
        ("vercel-aisdk-2025-11-17", "ua", 1),
    ],
)
def test_langfuse_has_the_conversation_once(public_file, name, actors, tools):
    (run,) = io.read_runs(public_file("traces", "langfuse", f"{name}.trace.json"))
    assert "".join(step.actor[0] for step in run.steps) == actors
    assert sum(len(step.tool_calls) for step in run.steps) == tools
    assert "unmatched_results" not in run.extra


def test_langfuse_scores(public_file):
    names = [f"{name}.trace.json" for name in LANGFUSE]
    runs = io.read_runs([public_file("traces", "langfuse", name) for name in names])
    assert [run.outcome for run in runs] == [-1, 0, -1, -1, -1, -1, -1]  # one has "correctness"
    assert runs[4].scores == {"toxicity": 0.8, "hallucination": 0}
    assert any("toxicity" in note for note in runs.notes)


@pytest.mark.parametrize(
    ("name", "n_agent", "tools", "tokens"),
    [
        ("GOOGLE", 3, ["get_current_time", "write_file", "final_output"], (2251, 86)),
        ("LANGCHAIN", 4, ["get_current_time", "write_file"], (1262, 125)),
        ("OPENAI", 3, ["get_current_time", "write_file"], (1020, 76)),
        ("SMOLAGENTS", 3, ["get_current_time", "write_file", "final_answer"], (2294, 87)),
    ],
)
def test_genai_traces(public_file, name, n_agent, tools, tokens):
    (run,) = io.read_runs(public_file("traces", "otel_genai", f"{name}_trace.json"))
    assert [step.actor for step in run.steps] == ["user", *["agent"] * n_agent]
    calls = [call for step in run.steps for call in step.tool_calls]
    assert [call.name for call in calls] == tools
    assert all(call.result is not None and isinstance(call.arguments, dict) for call in calls)
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == tokens
    assert len(run.extra["system"]) == 1


@pytest.mark.parametrize(
    "name",
    [
        "openinference_client_span_input_output_only",
        "openinference_client_span_tool_calls",
        "otel_genai_client_span_tool_calls",
        "otel_genai_deprecated_client_span_tool_calls",
    ],
)
def test_one_call_by_every_convention(public_file, name):
    (run,) = io.read_runs(public_file("traces", "openinference", f"{name}.json"))
    assert [(step.actor, step.text) for step in run.steps] == [
        ("user", "Weather in Paris?"),
        ("agent", "Absolutely! Let me check the weather for you."),
        ("agent", "The weather in Paris is currently rainy with a temperature of 57°F."),
    ]
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"location": "Paris"})
    assert call.result == "rainy, 57°F"
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (97, 52)


def test_one_call_of_a_tool(public_file):
    (run,) = io.read_runs(
        public_file("traces", "openinference", "otel_genai_tool_execution_span.json")
    )
    (call,) = run.steps[0].tool_calls
    assert (call.id, call.name, call.arguments) == ("1234", "get_weather", {"city": "New York"})
    assert "sunny" in call.result
