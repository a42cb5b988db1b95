"""Runs of agent frameworks with fake models, and what their users save of them: for exports.py."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

# ------------------------------------------------------------------ what happens in the runs


@dataclass
class Turn:
    """An answer of the fake model: text, and calls as (name, arguments)."""

    text: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@dataclass
class Talk:
    """A question, and what the fake model answers, turn by turn."""

    question: str
    turns: list[Turn]

    @property
    def confidence(self) -> float | None:
        """The confidence that its last turn states."""
        text = self.turns[-1].text
        return float(text.split("Confidence: ")[1].rstrip("%")) / 100 if "%" in text else None


SYSTEM = "Be kind. State how sure you are."
USAGE = {"input": 5, "output": 2}  # of each answer of the model
TALKS = [
    Talk(
        "Where is order 3?",
        [
            Turn("I look.", [("find", {"order": 3})]),
            Turn("Order 3 is in Paris. Confidence: 80%"),
        ],
    ),
    Talk(
        "Where are orders 4 and 5?",
        [
            Turn("Both at once.", [("find", {"order": 4}), ("find", {"order": 5})]),
            Turn("Order 4 is in Rome, order 5 in Oslo. Confidence: 90%"),
        ],
    ),
    Talk(
        "Where is order 13?",
        [
            Turn("One moment.", [("find", {"order": 13})]),
            Turn("I try the weather.", [("weather", {"city": "Bern"})]),
            Turn("I cannot find it. Confidence: 15%"),
        ],
    ),
    Talk(
        "How is the weather in Lima?",
        [Turn("", [("weather", {"city": "Lima"})]), Turn("Sunny in Lima. Confidence: 70%")],
    ),
]
CITIES = {3: "Paris", 4: "Rome", 5: "Oslo"}
FAILURE = "no such order"


def find(order: int) -> str:
    """Find an order.

    Args:
        order: Number of the order.
    """
    if order not in CITIES:
        raise ValueError(FAILURE)
    return f"in {CITIES[order]}"


def weather(city: str) -> str:
    """Say how the weather is.

    Args:
        city: Name of the city.
    """
    return f"sunny in {city}"


def result_of(name: str, arguments: dict[str, Any]) -> str:
    """Return what a result must contain, an error's text where the tool fails."""
    try:
        return {"find": find, "weather": weather}[name](**arguments)
    except ValueError as error:
        return str(error)


def expected_run(talk: Talk, *, tokens: bool = True) -> dict[str, Any]:
    """Return what happened in a run, as `expected.json` has it."""
    turns = [{"actor": "user", "text": talk.question, "calls": []}]
    for turn in talk.turns:
        calls = [
            {"name": name, "arguments": arguments, "result": result_of(name, arguments)}
            for name, arguments in turn.calls
        ]
        turns.append({"actor": "agent", "text": turn.text, "calls": calls})
    counts = {side: n * len(talk.turns) for side, n in USAGE.items()}
    return {
        "system": SYSTEM,
        "turns": turns,
        "confidence": talk.confidence,
        "tokens": counts if tokens else None,
    }


# ------------------------------------------------------------------ writing


EXPORTERS: dict[str, Exporter] = {}


@dataclass
class Exporter:
    """How to run a framework; `package` is its name on PyPI."""

    package: str
    write: Callable[[Path], None]


def exporter(name: str, package: str) -> Callable[[Callable[[Path], None]], Callable[..., None]]:
    """Register a function that writes the exports of a framework to a folder."""

    def register(write: Callable[[Path], None]) -> Callable[[Path], None]:
        EXPORTERS[name] = Exporter(package, write)
        return write

    return register


def as_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON; text as it is, since the framework has written it."""
    return value if isinstance(value, str) else json.dumps(value, indent=indent, default=str)


def save(folder: Path, what: str, value: Any) -> None:
    """Write one file of an export, whose name ends in .json or .jsonl."""
    path = folder / what
    path.parent.mkdir(parents=True, exist_ok=True)
    is_lines = path.suffix == ".jsonl" and not isinstance(value, str)
    path.write_text("".join(as_text(v) + "\n" for v in value) if is_lines else as_text(value, 1))


def save_runs(folder: Path, what: str, runs: Iterable[Any], *, lines: bool = True) -> None:
    """Write an export of one run each: as a folder of files, as JSON lines, and as one list."""
    runs = [json.loads(as_text(run)) for run in runs]
    for k, run in enumerate(runs):
        save(folder, f"{what}/{k}.json", run)
    if lines:
        save(folder, f"{what}.jsonl", runs)
        save(folder, f"{what}.json", runs)


def save_expected(folder: Path, runs: list[dict[str, Any]]) -> None:
    """Write what happened in all runs of a framework."""
    save(folder, "expected.json", runs)


# ------------------------------------------------------------------ spans of any framework


def write_spans(folder: Path, what: str, spans: Iterable[Any]) -> None:
    """Write finished spans of OpenTelemetry as its console exporter does, an object a span."""
    save(folder, what, [json.loads(span.to_json()) for span in spans])


def record_spans(instrument: Callable[[Any], None]) -> Callable[[], list[Any]]:
    """Turn tracing on; return a function that returns the finished spans."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    instrument(provider)
    return lambda: list(memory.get_finished_spans())


# ------------------------------------------------------------------ LlamaIndex


@exporter("llamaindex", "llama-index-core")
def llamaindex(folder: Path) -> None:
    """Run a FunctionAgent: its events, its memory, its context, its answers and its spans."""
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ChatResponse,
        LLMMetadata,
        TextBlock,
        ToolCallBlock,
    )
    from llama_index.core.llms.callbacks import llm_chat_callback
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import ToolSelection
    from llama_index.core.memory import ChatMemoryBuffer
    from llama_index.core.workflow import Context, JsonSerializer

    class Fake(FunctionCallingLLM):
        turns: list[Any]

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(is_function_calling_model=True, model_name="fake")

        def answer(self) -> ChatResponse:
            turn = self.turns.pop(0)
            blocks: list[Any] = [TextBlock(text=turn.text)] if turn.text else []
            first = 10 * len(self.turns)
            blocks += [
                ToolCallBlock(tool_call_id=f"c{first + k}", tool_name=name, tool_kwargs=arguments)
                for k, (name, arguments) in enumerate(turn.calls)
            ]
            usage = {"prompt_tokens": USAGE["input"], "completion_tokens": USAGE["output"]}
            message = ChatMessage(role="assistant", blocks=blocks)
            return ChatResponse(message=message, raw={"usage": usage, "model": "fake"})

        @llm_chat_callback()
        async def achat(self, messages: Any, **options: Any) -> ChatResponse:
            return self.answer()

        @llm_chat_callback()
        async def astream_chat(self, messages: Any, **options: Any) -> Any:
            async def pieces() -> Any:
                yield self.answer()

            return pieces()

        async def achat_with_tools(self, *messages: Any, **options: Any) -> ChatResponse:
            return await self.achat(options.get("chat_history") or [])

        async def astream_chat_with_tools(self, *messages: Any, **options: Any) -> Any:
            return await self.astream_chat(options.get("chat_history") or [])

        def _prepare_chat_with_tools(self, tools: Any, **options: Any) -> Any:
            return {"messages": options.get("chat_history") or []}

        def get_tool_calls_from_response(self, response: Any, **options: Any) -> list[Any]:
            return [
                ToolSelection(
                    tool_id=block.tool_call_id,
                    tool_name=block.tool_name,
                    tool_kwargs=block.tool_kwargs,
                )
                for block in response.message.blocks
                if isinstance(block, ToolCallBlock)
            ]

        def chat(self, *args: Any, **options: Any) -> Any:
            raise NotImplementedError

        complete = stream_chat = stream_complete = chat
        acomplete = astream_complete = chat

    async def run(talk: Talk, streaming: bool) -> tuple[Any, ...]:
        agent = FunctionAgent(
            tools=[find, weather],
            llm=Fake(turns=list(talk.turns)),
            system_prompt=SYSTEM,
            streaming=streaming,
        )
        memory = ChatMemoryBuffer.from_defaults(token_limit=40000, tokenizer_fn=str.split)
        context = Context(agent)
        handler = agent.run(talk.question, memory=memory, ctx=context)
        events = [event async for event in handler.stream_events()]
        return events, await handler, memory, context

    def instrument(provider: Any) -> None:
        from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

        LlamaIndexInstrumentor().instrument(tracer_provider=provider)

    spans = record_spans(instrument)
    for streaming in (False, True):
        suffix = "_streamed" if streaming else ""
        runs = [asyncio.run(run(talk, streaming)) for talk in TALKS]
        named = [
            {"run_id": f"r{k}", "event": type(event).__name__, **event.model_dump(mode="json")}
            for k, (events, *_) in enumerate(runs)
            for event in events
        ]
        save(folder, f"events{suffix}.jsonl", named)
    bare = [{k: v for k, v in event.items() if k not in ("run_id", "event")} for event in named]
    save(
        folder,
        "events_run_id.jsonl",
        [{"run_id": e["run_id"], **b} for e, b in zip(named, bare, strict=True)],
    )
    save(
        folder,
        "events_in_data.jsonl",
        [
            {"run_id": e["run_id"], "type": e["event"], "data": b}
            for e, b in zip(named, bare, strict=True)
        ],
    )
    for k, (events, *_) in enumerate(runs):
        save(folder, f"events_dump/{k}.jsonl", [event.model_dump(mode="json") for event in events])
    save_runs(folder, "answers", [answer.model_dump_json() for _, answer, *_ in runs])
    save_runs(
        folder, "memory", [{"messages": [m.model_dump() for m in r[2].get_all()]} for r in runs]
    )
    save_runs(folder, "context", [run[3].to_dict(serializer=JsonSerializer()) for run in runs])
    finished = spans()
    half = len({span.context.trace_id for span in finished}) // 2
    order = list(dict.fromkeys(span.context.trace_id for span in finished))
    write_spans(
        folder, "openinference.json", [s for s in finished if s.context.trace_id in order[:half]]
    )
    write_spans(
        folder,
        "openinference_streamed.jsonl",
        [s for s in finished if s.context.trace_id in order[half:]],
    )
    save_expected(folder, [expected_run(talk) for talk in TALKS])


# ------------------------------------------------------------------ AutoGen


@exporter("autogen", "autogen-agentchat")
def autogen(folder: Path) -> None:
    """Run an AssistantAgent, alone and in a team: results, states, messages and event logs."""
    import logging

    import httpx
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import TextMentionTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_core import EVENT_LOGGER_NAME
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    def server(talk: Talk) -> Any:
        turns = enumerate(talk.turns)

        def answer(request: httpx.Request) -> httpx.Response:
            place, turn = next(turns)
            calls = [
                {
                    "id": f"c{place}{k}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for k, (name, arguments) in enumerate(turn.calls)
            ]
            message = {"role": "assistant", "content": turn.text or None}
            message |= {"tool_calls": calls} if calls else {}
            reason = "tool_calls" if calls else "stop"
            usage = {"prompt_tokens": USAGE["input"], "completion_tokens": USAGE["output"]}
            body = {
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": "fake",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": usage | {"total_tokens": sum(USAGE.values())},
            }
            return httpx.Response(200, json=body)

        return httpx.AsyncClient(transport=httpx.MockTransport(answer))

    events: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if str(record.msg).startswith("{"):  # a ValueError of a tool is logged, too
                events.append(str(record.msg))

    logger = logging.getLogger(EVENT_LOGGER_NAME)
    logger.setLevel(logging.INFO)
    logger.addHandler(Keep())

    async def run(talk: Talk, *, in_team: bool) -> tuple[Any, Any, list[Any]]:
        info = {
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": "unknown",
        }
        client = OpenAIChatCompletionClient(
            model="fake", api_key="none", model_info=info, http_client=server(talk)
        )
        agent = AssistantAgent(
            "helper",
            client,
            tools=[find, weather],
            system_message=SYSTEM,
            max_tool_iterations=5,
        )
        end = TextMentionTermination("Confidence")
        runner = RoundRobinGroupChat([agent], termination_condition=end) if in_team else agent
        streamed = [event async for event in runner.run_stream(task=talk.question)]
        return streamed[-1], await runner.save_state(), streamed[:-1]

    def run_all(what: str, *, in_team: bool) -> list[tuple[Any, Any, list[Any]]]:
        runs, logs = [], []
        for k, talk in enumerate(TALKS):
            events.clear()
            runs.append(asyncio.run(run(talk, in_team=in_team)))
            logs.append([json.loads(line) for line in events])
            save(folder, f"{what}/{k}.jsonl", logs[-1])
        save(folder, f"{what}.jsonl", [event for log in logs for event in log])
        return runs

    def instrument(provider: Any) -> None:
        from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

        AutogenAgentChatInstrumentor().instrument(tracer_provider=provider)

    spans = record_spans(instrument)
    alone = run_all("event_log", in_team=False)
    n_alone = len(spans())
    teams = run_all("team_event_log", in_team=True)
    write_spans(folder, "openinference.json", spans()[:n_alone])
    write_spans(folder, "team_openinference.json", spans()[n_alone:])
    save_runs(folder, "task_result", [result.model_dump(mode="json") for result, *_ in alone])
    save_runs(folder, "agent_state", [state for _, state, _ in alone])
    save_runs(folder, "team_result", [result.model_dump(mode="json") for result, *_ in teams])
    save_runs(folder, "team_state", [state for _, state, _ in teams])
    save(
        folder,
        "messages.jsonl",
        [
            {"run_id": f"r{k}", **message.model_dump(mode="json")}
            for k, (*_, messages) in enumerate(alone)
            for message in messages
        ],
    )
    for k, (*_, messages) in enumerate(alone):
        save(folder, f"stream/{k}.json", [message.model_dump(mode="json") for message in messages])
    save_expected(folder, [expected_run(talk) for talk in TALKS])


# ------------------------------------------------------------------ Google ADK


@exporter("adk", "google-adk")
def adk(folder: Path) -> None:
    """Run an LlmAgent: sessions, events, spans."""
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Fake(BaseLlm):
        turns: list[Any]

        async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
            turn = self.turns.pop(0)
            parts = [types.Part(text=turn.text)] if turn.text else []
            parts += [
                types.Part.from_function_call(name=name, args=args) for name, args in turn.calls
            ]
            yield LlmResponse(
                content=types.Content(role="model", parts=parts),
                usage_metadata=types.GenerateContentResponseUsageMetadata(
                    prompt_token_count=USAGE["input"],
                    candidates_token_count=USAGE["output"],
                    total_token_count=sum(USAGE.values()),
                ),
            )

    def safe_find(order: int) -> Any:
        """Find an order."""
        try:
            return find(order)
        except ValueError as error:
            return {"error": str(error)}

    safe_find.__name__ = "find"

    async def run(talk: Talk) -> tuple[Any, list[Any]]:
        agent = LlmAgent(
            name="helper",
            model=Fake(model="fake", turns=list(talk.turns)),
            instruction=SYSTEM,
            tools=[safe_find, weather],
        )
        runner = InMemoryRunner(agent, app_name="orders")
        session = await runner.session_service.create_session(app_name="orders", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=talk.question)])
        events = [
            event
            async for event in runner.run_async(
                user_id="u", session_id=session.id, new_message=message
            )
        ]
        session = await runner.session_service.get_session(
            app_name="orders", user_id="u", session_id=session.id
        )
        return session, events

    def instrument(provider: Any) -> None:
        from opentelemetry import trace

        trace.set_tracer_provider(provider)

    spans = record_spans(instrument)
    for talk in TALKS:
        asyncio.run(run(talk))
    n_bare = len(spans())  # from 2.0 on without content, if it is not asked for
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_AND_EVENT"
    runs = [asyncio.run(run(talk)) for talk in TALKS]
    write_spans(folder, "spans.json", spans()[:n_bare])
    write_spans(folder, "spans_with_content.json", spans()[n_bare:])
    save_runs(folder, "session", [session.model_dump_json() for session, _ in runs])
    save_runs(
        folder, "session_by_alias", [session.model_dump_json(by_alias=True) for session, _ in runs]
    )
    save_runs(
        folder,
        "session_exclude_none",
        [session.model_dump(mode="json", exclude_none=True) for session, _ in runs],
    )
    save_runs(
        folder,
        "session_events",
        [[event.model_dump(mode="json") for event in session.events] for session, _ in runs],
    )
    for k, (session, _) in enumerate(runs):
        save(
            folder,
            f"session_events_lines/{k}.jsonl",
            [event.model_dump(mode="json", exclude_none=True) for event in session.events],
        )
    save(
        folder,
        "session_events_all.jsonl",
        [
            {"session_id": session.id, **event.model_dump(mode="json", exclude_none=True)}
            for session, _ in runs
            for event in session.events
        ],
    )
    for k, (_, events) in enumerate(runs):
        save(
            folder,
            f"run_async_events/{k}.json",
            [event.model_dump(mode="json") for event in events],
        )
    # the agent adds its name to the system prompt
    save_expected(folder, [expected_run(talk) | {"system": None} for talk in TALKS])


# ------------------------------------------------------------------ DSPy


@exporter("dspy", "dspy")
def dspy(folder: Path) -> None:
    """Run a ReAct module: predictions, trajectories, the model's history and spans."""
    import dspy

    answers: list[dict[str, Any]] = []

    class Fake(dspy.utils.DummyLM):  # type: ignore[name-defined]
        pass

    def instrument(provider: Any) -> None:
        from openinference.instrumentation.dspy import DSPyInstrumentor

        DSPyInstrumentor().instrument(tracer_provider=provider)

    spans = record_spans(instrument)
    runs, expected = [], []
    for talk in TALKS:
        answers = []
        calls = [(turn.text, call) for turn in talk.turns for call in turn.calls]
        for text, (name, arguments) in [*calls, ("I know.", ("finish", {}))]:
            answers.append(
                {
                    "next_thought": text,
                    "next_tool_name": name,
                    "next_tool_args": json.dumps(arguments),
                }
            )
        answers.append({"reasoning": "As found.", "answer": talk.turns[-1].text})
        model = Fake(answers)
        with dspy.context(lm=model, adapter=dspy.ChatAdapter()):
            agent = dspy.ReAct(dspy.Signature("question -> answer", SYSTEM), tools=[find, weather])
            runs.append((talk, agent(question=talk.question), model))
        wanted = expected_run(talk, tokens=False)
        turns = wanted["turns"][:1]
        turns += [
            {
                "actor": "agent",
                "text": text,
                "calls": [{"name": name, "arguments": args, "result": result_of(name, args)}],
            }
            for text, (name, args) in calls
        ]
        finish = {"name": "finish", "arguments": {}, "result": "Completed."}
        turns.append({"actor": "agent", "text": "I know.", "calls": [finish]})
        turns.append({"actor": "agent", "text": talk.turns[-1].text, "calls": []})
        expected.append(wanted | {"turns": turns, "system": None})
    asked = [{"question": talk.question} for talk, *_ in runs]
    answers_of = [prediction.toDict() for _, prediction, _ in runs]
    save_runs(folder, "prediction", [{**q, **p} for q, p in zip(asked, answers_of, strict=True)])
    save_runs(folder, "prediction_alone", answers_of)
    save_runs(
        folder,
        "example_and_prediction",
        [{"example": q, "prediction": p} for q, p in zip(asked, answers_of, strict=True)],
    )
    save_runs(
        folder,
        "history",
        [json.loads(json.dumps(model.history, default=str)) for *_, model in runs],
        lines=False,
    )
    for k, (*_, model) in enumerate(runs):
        save(
            folder,
            f"history_lines/{k}.jsonl",
            model.history and [json.loads(json.dumps(call, default=str)) for call in model.history],
        )
    write_spans(folder, "openinference.json", spans())
    save_expected(folder, expected)


# ------------------------------------------------------------------ LangChain and LangGraph


@exporter("langgraph", "langgraph")
def langgraph(folder: Path) -> None:
    """Run `create_agent` on a thread each; the state, its history, streams and events."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, messages_to_dict
    from langchain_core.tools import ToolException, tool
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
    from langgraph.checkpoint.memory import InMemorySaver

    class Fake(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

        def _stream(self, *args: Any, **kwargs: Any) -> Any:  # its own loses the calls
            raise NotImplementedError

    @tool("find")
    def careful(order: int) -> str:
        """Find an order."""
        try:
            return find(order)
        except ValueError as error:
            raise ToolException(str(error)) from error

    careful.handle_tool_error = True

    usage = {
        "input_tokens": USAGE["input"],
        "output_tokens": USAGE["output"],
        "total_tokens": sum(USAGE.values()),
    }

    def answers(name: str, talk: Talk) -> Any:
        for k, turn in enumerate(talk.turns):
            calls = [
                {"name": tool_name, "args": arguments, "id": f"{name}-{k}{i}"}
                for i, (tool_name, arguments) in enumerate(turn.calls)
            ]
            yield AIMessage(turn.text, tool_calls=calls, usage_metadata=usage)

    def agent(name: str, talk: Talk, **options: Any) -> Any:
        return create_agent(
            Fake(messages=answers(name, talk), disable_streaming=True),
            [careful, tool(weather)],
            system_prompt=SYSTEM,
            **options,
        )

    def asked(talk: Talk) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": talk.question}]}

    saver = InMemorySaver()
    states, snapshots, histories, checkpoints, traced = [], [], [], [], []
    for k, talk in enumerate(TALKS):
        thread = {"configurable": {"thread_id": f"thread-{k}"}}
        app = agent(f"call-{k}", talk, checkpointer=saver)
        collector = RunCollectorCallbackHandler()
        states.append(app.invoke(asked(talk), thread | {"callbacks": [collector]}))
        traced += [json.loads(run.json()) for run in collector.traced_runs]
        snapshots.append(app.get_state(thread))
        histories.append(list(app.get_state_history(thread)))
        checkpoints += [entry._asdict() for entry in saver.list(thread)]
    save_runs(folder, "model_dump", [[m.model_dump() for m in s["messages"]] for s in states])
    save_runs(
        folder, "state", [{"messages": [m.model_dump() for m in s["messages"]]} for s in states]
    )
    save_runs(folder, "messages_to_dict", [messages_to_dict(s["messages"]) for s in states])
    save_runs(folder, "dumpd", list(map(dumpd, states)))
    save_runs(folder, "state_as_default_str", states)
    save_runs(folder, "get_state", [dumpd(s._asdict()) for s in snapshots])
    save_runs(folder, "get_state_bare", [dumpd(s.values) for s in snapshots])
    save_runs(folder, "get_state_as_list", snapshots)
    save_runs(folder, "get_state_history", [[dumpd(s._asdict()) for s in h] for h in histories])
    save(
        folder,
        "get_state_history_of_all.jsonl",
        [dumpd(s._asdict()) for history in histories for s in history],
    )
    save(folder, "checkpointer_list.json", dumpd(checkpoints))
    save(folder, "run_collector.json", traced)

    def streamed(k: int, mode: str) -> list[Any]:
        stream = agent(f"call-{k}", TALKS[k]).stream(asked(TALKS[k]), stream_mode=mode)
        return list(map(dumpd, stream))

    modes: dict[str, list[list[Any]]] = {}
    for mode in ("updates", "values", "tasks", "debug"):
        modes[mode] = [
            [
                dumpd(chunk)
                for chunk in agent(f"call-{k}", talk).stream(asked(talk), stream_mode=mode)
            ]
            for k, talk in enumerate(TALKS)
        ]
        for k, chunks in enumerate(modes[mode]):
            save(folder, f"stream_{mode}/{k}.jsonl", chunks)
            save(folder, f"stream_{mode}_in_list/{k}.json", chunks)

    save_runs(folder, "stream_messages", [streamed(k, "messages") for k in range(len(TALKS))])

    async def events(name: str, talk: Talk) -> list[Any]:
        stream = agent(name, talk).astream_events(asked(talk), version="v2")
        return [dumpd(event) async for event in stream]

    written = [asyncio.run(events(f"call-{k}", talk)) for k, talk in enumerate(TALKS)]
    for k, run in enumerate(written):
        save(folder, f"astream_events/{k}.jsonl", run)
    save(folder, "astream_events_of_all.jsonl", [event for run in written for event in run])
    save_expected(folder, [expected_run(talk) for talk in TALKS])


@exporter("langgraph_sqlite", "langgraph-checkpoint-sqlite")
def langgraph_sqlite(folder: Path) -> None:
    """Keep threads in the database of the SQLite checkpointer."""
    import sqlite3

    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import MessagesState, StateGraph

    with sqlite3.connect(folder / "checkpoints.sqlite", check_same_thread=False) as database:
        for k, talk in enumerate(TALKS):
            graph = StateGraph(MessagesState)
            graph.add_node(
                "agent", lambda _, talk=talk: {"messages": AIMessage(talk.turns[-1].text)}
            )
            graph.set_entry_point("agent")
            app = graph.compile(checkpointer=SqliteSaver(database))
            thread = {"configurable": {"thread_id": f"thread-{k}"}}
            app.invoke({"messages": [HumanMessage(talk.question)]}, thread)
    save_expected(folder, [expected_run(talk) for talk in TALKS])


# ------------------------------------------------------------------ OpenAI's Agents SDK


@exporter("openai_agents", "openai-agents")
def openai_agents(folder: Path) -> None:
    """Run `Runner.run` with a session; items, state, responses and traces."""
    import dataclasses

    import agents
    from openai.types import responses as made

    spans: list[Any] = []
    with_responses: list[Any] = []
    whole_responses: list[Any] = []

    class Keep(agents.TracingProcessor):
        def on_trace_start(self, trace: Any) -> None: ...

        def on_trace_end(self, trace: Any) -> None:
            spans.append(trace.export())
            with_responses.append(trace.export())
            whole_responses.append(trace.export())

        def on_span_start(self, span: Any) -> None: ...

        def on_span_end(self, span: Any) -> None:
            fields = span.export()
            if fields["span_data"]["type"] == "generation":
                spans.append(fields)
                usage = fields["span_data"]["usage"]
                data = {"type": "response", "response_id": "r", "usage": usage}
                with_responses.append(fields | {"span_data": data})
                inner = fields["span_data"]  # what a processor can add
                whole = {"input": inner["input"], "response": {"output": inner["output"]}}
                whole_responses.append(fields | {"span_data": data | whole})
            else:
                spans.append(fields)
                with_responses.append(fields)
                whole_responses.append(fields)

        def shutdown(self) -> None: ...

        def force_flush(self) -> None: ...

    def output(name: str, turn: Turn) -> list[Any]:
        text = made.ResponseOutputText(text=turn.text, type="output_text", annotations=[])
        message = made.ResponseOutputMessage(
            id=f"{name}-m", content=[text], role="assistant", status="completed", type="message"
        )
        calls = [
            made.ResponseFunctionToolCall(
                arguments=json.dumps(arguments),
                call_id=f"{name}-c{i}",
                id=f"{name}-f{i}",
                name=tool_name,
                type="function_call",
                status="completed",
            )
            for i, (tool_name, arguments) in enumerate(turn.calls)
        ]
        return [message, *calls] if turn.text else list(calls)

    class Fake(agents.Model):
        def __init__(self, name: str, talk: Talk) -> None:
            self.answers = iter([output(f"{name}-{k}", turn) for k, turn in enumerate(talk.turns)])

        async def get_response(
            self,
            system_instructions: Any,
            input: Any,  # noqa: A002
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            asked = [{"role": "user", "content": input}] if isinstance(input, str) else input
            asked = [{"role": "system", "content": system_instructions}, *asked]
            with agents.generation_span(model="fake", input=asked) as span:
                answer = next(self.answers)
                span.span_data.output = [item.model_dump() for item in answer]
                span.span_data.usage = {f"{side}_tokens": n for side, n in USAGE.items()}
            usage = agents.Usage(
                requests=1,
                input_tokens=USAGE["input"],
                output_tokens=USAGE["output"],
                total_tokens=sum(USAGE.values()),
            )
            return agents.ModelResponse(output=answer, usage=usage, response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    agents.set_trace_processors([Keep()])
    results, sessions = [], []

    async def run(k: int, talk: Talk) -> None:
        agent = agents.Agent(
            name="Helper",
            instructions=SYSTEM,
            model=Fake(f"run-{k}", talk),
            tools=[
                agents.function_tool(find, failure_error_function=lambda _, error: str(error)),
                agents.function_tool(weather),
            ],
        )
        session = agents.SQLiteSession(f"session-{k}", folder / "session.db")
        results.append(await agents.Runner.run(agent, talk.question, session=session))
        sessions.append(await session.get_items())
        session.close()

    for k, talk in enumerate(TALKS):
        asyncio.run(run(k, talk))

    def plain(value: Any) -> Any:
        if hasattr(value, "model_dump"):
            return value.model_dump()
        if dataclasses.is_dataclass(value):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return {name: plain(inner) for name, inner in fields.items() if name != "agent"}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    save_runs(folder, "to_input_list", [result.to_input_list() for result in results])
    save_runs(
        folder,
        "new_items_to_input_item",
        [[item.to_input_item() for item in result.new_items] for result in results],
    )
    save_runs(folder, "new_items", [plain(result.new_items) for result in results])
    save_runs(folder, "raw_responses", [plain(result.raw_responses) for result in results])
    save_runs(folder, "to_state_to_json", [result.to_state().to_json() for result in results])
    save_runs(folder, "to_state_to_string", [result.to_state().to_string() for result in results])
    save_runs(folder, "session_get_items", sessions)
    save(folder, "processor_spans.jsonl", spans)
    save(folder, "processor_response_spans.jsonl", with_responses)
    save(folder, "processor_whole_response_spans.jsonl", whole_responses)
    save_expected(folder, [expected_run(talk) for talk in TALKS])


# ------------------------------------------------------------------ Pydantic AI


@exporter("pydantic_ai", "pydantic-ai-slim")
def pydantic_ai(folder: Path) -> None:
    """Run an agent of a `FunctionModel`; its messages, and spans where OpenTelemetry is there."""
    import pydantic_ai
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import RequestUsage
    from pydantic_core import to_jsonable_python

    def careful(order: int) -> str:
        try:
            return find(order)
        except ValueError as error:
            raise pydantic_ai.ModelRetry(str(error)) from error

    def agent(name: str, talk: Talk, **options: Any) -> Any:
        answers = iter(
            ModelResponse(
                parts=[
                    *([TextPart(turn.text)] if turn.text else []),
                    *(
                        ToolCallPart(tool_name, arguments, f"{name}-{k}{i}")
                        for i, (tool_name, arguments) in enumerate(turn.calls)
                    ),
                ],
                usage=RequestUsage(input_tokens=USAGE["input"], output_tokens=USAGE["output"]),
            )
            for k, turn in enumerate(talk.turns)
        )
        built = pydantic_ai.Agent(
            FunctionModel(lambda messages, info: next(answers)), retries=3, **options
        )
        built.tool_plain(careful, name="find")
        built.tool_plain(weather)
        return built

    for form in ("system_prompt", "instructions"):
        results = [
            asyncio.run(agent(f"call-{k}", talk, **{form: SYSTEM}).run(talk.question))
            for k, talk in enumerate(TALKS)
        ]
        add = "" if form == "system_prompt" else "_with_instructions"
        every = [result.all_messages_json().decode() for result in results]
        new = [result.new_messages_json().decode() for result in results]
        nested = [{"messages": json.loads(text)} for text in every]
        lines = [message for text in every for message in json.loads(text)]
        save_runs(folder, f"all_messages_json{add}", every)
        save_runs(folder, f"new_messages_json{add}", new)
        save_runs(folder, f"under_messages{add}", nested)
        whole = [to_jsonable_python(result, serialize_unknown=True) for result in results]
        save_runs(folder, f"result{add}", whole)
        save(folder, f"messages_of_all{add}.jsonl", lines)
    otel(folder, agent)
    save_expected(folder, [expected_run(talk) for talk in TALKS])


def otel(folder: Path, agent: Any) -> None:
    """Write the spans of Pydantic AI in each version of its instrumentation."""
    if importlib.util.find_spec("opentelemetry.sdk") is None:
        return
    from pydantic_ai import Agent, InstrumentationSettings

    def instrument(version: int, provider: Any) -> None:
        settings = InstrumentationSettings(tracer_provider=provider, version=version)
        Agent.instrument_all(settings)

    for version in (2, 3, 5):
        spans = record_spans(partial(instrument, version))
        for k, talk in enumerate(TALKS):
            asyncio.run(agent(f"call-{k}", talk, system_prompt=SYSTEM).run(talk.question))
        Agent.instrument_all(instrument=False)
        lines = [span.to_json(indent=None) for span in spans()]
        save(folder, f"otel_v{version}.jsonl", "".join(line + "\n" for line in lines))


# ------------------------------------------------------------------ smolagents


def of_smolagents(folder: Path, kind: str, model: Callable[[Talk], Any]) -> None:
    """Run agents of smolagents, and write what they keep: steps, messages, and results."""
    import smolagents

    full, short, results, chats = [], [], [], []
    for talk in TALKS:
        agent = getattr(smolagents, kind)(
            tools=[smolagents.tool(find), smolagents.tool(weather)],
            model=model(talk),
            instructions=SYSTEM,
            verbosity_level=0,
        )
        results.append(agent.run(talk.question, return_full_result=True).dict())
        full.append(agent.memory.get_full_steps())
        short.append(agent.memory.get_succinct_steps())
        chats.append([message.dict() for message in agent.write_memory_to_messages()])
    save_runs(folder, "get_full_steps", full)
    save_runs(folder, "get_succinct_steps", short)
    save_runs(folder, "run_result", results)
    save_runs(folder, "write_memory_to_messages", chats)


@exporter("smolagents", "smolagents")
def smolagents(folder: Path) -> None:
    """Run a `ToolCallingAgent`, whose last turn is a call of `final_answer`."""
    from smolagents import models
    from smolagents.monitoring import TokenUsage

    class Fake(models.Model):
        def __init__(self, talk: Talk) -> None:
            super().__init__(model_id="fake")
            last = Turn("", [("final_answer", {"answer": talk.turns[-1].text})])
            self.answers = enumerate([*talk.turns[:-1], last])

        def generate(self, *args: Any, **kwargs: Any) -> Any:
            k, turn = next(self.answers)
            calls = [
                models.ChatMessageToolCall(
                    id=f"call-{k}{i}",
                    type="function",
                    function=models.ChatMessageToolCallFunction(name=name, arguments=arguments),
                )
                for i, (name, arguments) in enumerate(turn.calls)
            ]
            usage = TokenUsage(input_tokens=USAGE["input"], output_tokens=USAGE["output"])
            return models.ChatMessage(
                role="assistant", content=turn.text, tool_calls=calls, token_usage=usage
            )

    of_smolagents(folder, "ToolCallingAgent", Fake)
    expected = [expected_run(talk) for talk in TALKS]
    for run_, talk in zip(expected, TALKS, strict=True):
        answer = talk.turns[-1].text
        call = {"name": "final_answer", "arguments": {"answer": answer}, "result": answer}
        run_["turns"][-1]["calls"] = [call]
        run_["system"] = None  # it stands within a longer one
    save_expected(folder, expected)


@exporter("smolagents_code", "smolagents")
def smolagents_code(folder: Path) -> None:
    """Run a `CodeAgent`, whose turns are code."""
    from smolagents import models
    from smolagents.monitoring import TokenUsage

    def code_of(talk: Talk) -> list[str]:
        lines = [
            "\n".join(f"print({name}(**{arguments!r}))" for name, arguments in turn.calls)
            for turn in talk.turns[:-1]
        ]
        return [*lines, f"final_answer({talk.turns[-1].text!r})"]

    def texts_of(talk: Talk) -> list[str]:
        pairs = zip(talk.turns, code_of(talk), strict=True)
        return [f"Thought: {turn.text}\n<code>\n{code}\n</code>" for turn, code in pairs]

    class Fake(models.Model):
        def __init__(self, talk: Talk) -> None:
            super().__init__(model_id="fake")
            self.answers = iter(texts_of(talk))

        def generate(self, *args: Any, **kwargs: Any) -> Any:
            usage = TokenUsage(input_tokens=USAGE["input"], output_tokens=USAGE["output"])
            return models.ChatMessage(
                role="assistant", content=next(self.answers), token_usage=usage
            )

    of_smolagents(folder, "CodeAgent", Fake)
    expected = [expected_run(talk) for talk in TALKS]
    for run_, talk in zip(expected, TALKS, strict=True):
        run_["system"] = None
        for turn, text, code in zip(run_["turns"][1:], texts_of(talk), code_of(talk), strict=True):
            result = (turn["calls"] or [{"result": talk.turns[-1].text}])[0]["result"]
            turn["text"] = text
            turn["calls"] = [{"name": "python_interpreter", "arguments": code, "result": result}]
    save_expected(folder, expected)


# ------------------------------------------------------------------ Inspect AI


@exporter("inspect_ai", "inspect-ai")
def inspect_ai(folder: Path) -> None:
    """Run a task with `mockllm`; logs in both forms, and what `inspect log dump` prints."""
    import subprocess

    import inspect_ai
    from inspect_ai import model, solver, tool
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import includes

    @tool.tool(name="find")
    def find_tool() -> Any:
        async def execute(order: int) -> str:
            """Find an order.

            Args:
                order: Number of the order.
            """
            try:
                return find(order)
            except ValueError as error:
                raise tool.ToolError(str(error)) from error

        return execute

    @tool.tool(name="weather")
    def weather_tool() -> Any:
        async def execute(city: str) -> str:
            """Say how the weather is.

            Args:
                city: Name of the city.
            """
            return weather(city)

        return execute

    def answers() -> Any:
        for j, talk in enumerate(TALKS):
            for k, turn in enumerate(talk.turns):
                calls = [
                    tool.ToolCall(id=f"{j}-{k}{i}", function=name, arguments=arguments)
                    for i, (name, arguments) in enumerate(turn.calls)
                ]
                message = model.ChatMessageAssistant(content=turn.text, tool_calls=calls or None)
                usage = model.ModelUsage(
                    input_tokens=USAGE["input"],
                    output_tokens=USAGE["output"],
                    total_tokens=sum(USAGE.values()),
                )
                yield model.ModelOutput(
                    model="fake",
                    choices=[model.ChatCompletionChoice(message=message)],
                    usage=usage,
                )

    for form in ("eval", "json"):
        inspect_ai.eval(
            inspect_ai.Task(
                dataset=[
                    Sample(input=talk.question, target="in", id=f"q{k}")
                    for k, talk in enumerate(TALKS)
                ],
                solver=[
                    solver.system_message(SYSTEM),
                    solver.use_tools(find_tool(), weather_tool()),
                    solver.generate(),
                ],
                scorer=includes(),
            ),
            model=model.get_model("mockllm/model", custom_outputs=answers()),
            log_dir=str(folder / f"folder_{form}"),
            log_format=form,
            max_samples=1,
            display="none",
        )
        log = next((folder / f"folder_{form}").glob(f"*.{form}"))
        shutil.copy(log, folder / f"log.{form}")
        if form == "eval":
            command = [str(Path(sys.executable).with_name("inspect")), "log", "dump", str(log)]
            dump = subprocess.run(command, capture_output=True, text=True, check=True)
            save(folder, "inspect_log_dump.json", dump.stdout)
    save_expected(folder, [expected_run(talk) for talk in TALKS])


# ------------------------------------------------------------------ CrewAI


@exporter("crewai", "crewai")
def crewai(folder: Path) -> None:
    """Run agents alone and in crews; of turns with calls CrewAI keeps no words."""
    os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
    from crewai import Agent, BaseLLM, Crew, Task
    from crewai.tools import tool

    class Fake(BaseLLM):
        turns: list[Any]

        def call(self, *args: Any, **kwargs: Any) -> Any:
            turn = self.turns.pop(0)
            calls = [
                {"name": name, "arguments": json.dumps(arguments)} for name, arguments in turn.calls
            ]
            return [
                {"id": f"c{len(self.turns)}{k}", "type": "function", "function": call}
                for k, call in enumerate(calls)
            ] or turn.text

        def supports_function_calling(self) -> bool:
            return True

    def agent(talk: Talk) -> Any:
        llm = Fake(model="fake", turns=list(talk.turns))
        tools = [tool("find")(find), tool("weather")(weather)]
        return Agent(role="Helper", goal="Help", backstory=SYSTEM, llm=llm, tools=tools)

    crews, alone = [], []
    for talk in TALKS:
        helper = agent(talk)
        task = Task(description=talk.question, expected_output="An answer", agent=helper)
        crews.append(Crew(agents=[helper], tasks=[task]).kickoff().model_dump(mode="json"))
        alone.append(agent(talk).kickoff(talk.question).model_dump(mode="json"))
    save_runs(folder, "crew_kickoff", crews)
    save_runs(folder, "agent_kickoff", alone)
    expected = [expected_run(talk, tokens=False) | {"system": None} for talk in TALKS]
    for run_ in expected:
        for turn in run_["turns"]:
            turn["text"] = "" if turn["calls"] else turn["text"]
    save_expected(folder, expected)
