"""A person is asked by a framework's own means, and the run goes on, or stops, or is resumed."""

import asyncio
import gc
import json

import pytest

from scripts import load_script
from trajscore import DensityRatioEProcess
from trajscore.integrations import Guard, StopRun

live = load_script("live_runs", "tools")
TURNS = [live.Turn("I cannot see it yet.", 113)] * 5 + [live.Turn("I cannot find it.", None)]
TALK = live.Talk("Where is order 7?", TURNS, good=False)


@pytest.fixture(scope="module")
def guard():
    return live.fitted_guard(0, 200, DensityRatioEProcess(alpha=0.2))


@pytest.fixture(scope="module")
def two_levels():
    return live.fitted_guard(0, 300, DensityRatioEProcess(alpha=(0.3, 0.05)))


def test_a_loop_asks_once_and_stops_at_the_smaller_level(two_levels):
    chat = live.chat_of(TALK)
    for answer, stop_at in (("go on", 3), ("stop", 2)):
        watch = two_levels.follow("run 7", on_flag="ask")
        assert not watch.look(chat[:1]).ask
        look = watch.look(chat[:3])
        assert (look.ask, look.stop, look.flagged_step) == (True, False, 2)
        assert look.text == 'I cannot see it yet.\nfind {"order": 113}'
        watch.answer(answer)
        looks = [watch.look(chat[:n]) for n in (3, 5)]
        assert next(look.step for look in looks if look.stop) == stop_at
        assert {(look.ask, look.answer) for look in looks} == {(False, answer)}


def langchain(guard, path, answer, killed):
    pytest.importorskip("langchain")
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    from trajscore.integrations.langchain import GuardMiddleware

    class Fake(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            return self

    def answers():
        for k, turn in enumerate(TURNS):
            calls.append(k)
            call = {"name": "find", "args": {"order": turn.order}, "id": f"c{k}"}
            yield AIMessage(turn.text, tool_calls=[] if turn.order is None else [call])

    calls, saver, fake = [], InMemorySaver(), Fake(messages=answers())
    config = {"configurable": {"thread_id": "run 7"}}

    def parts_of(guard):
        hooks = GuardMiddleware(guard, on_flag="ask")
        tools = [tool(live.find)]
        return hooks, create_agent(fake, tools, middleware=[hooks], checkpointer=saver)

    hooks, agent = parts_of(guard)
    state = agent.invoke({"messages": [("user", TALK.question)]}, config)
    if killed:
        hooks, agent = parts_of(Guard.load(path))
    (question,) = agent.get_state(config).interrupts
    assert (question.value["ask"], len(calls)) == (True, 1)
    state = agent.invoke(Command(resume=answer), config)
    assert "__interrupt__" not in state
    texts = [message.text for message in state["messages"] if isinstance(message, AIMessage)]
    return question.value["text"], texts, hooks.looks["run 7"]


def openai_agents(guard, path, answer, killed):
    pytest.importorskip("agents")
    from agents import (
        Agent,
        Model,
        ModelResponse,
        Runner,
        RunState,
        Usage,
        function_tool,
        set_tracing_disabled,
    )
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from trajscore.integrations.openai_agents import GuardHooks

    set_tracing_disabled(True)

    class Fake(Model):
        async def get_response(self, *_, **given):
            k = sum(item.get("role") == "assistant" for item in given["input"])
            text = ResponseOutputText(text=TURNS[k].text, type="output_text", annotations=[])
            texts.append(text.text)
            output = [
                ResponseOutputMessage(
                    id=f"m{k}", content=[text], role="assistant", status="completed", type="message"
                )
            ]
            if TURNS[k].order is not None:
                arguments = json.dumps({"order": TURNS[k].order})
                output.append(
                    ResponseFunctionToolCall(
                        arguments=arguments, call_id=f"c{k}", name="find", type="function_call"
                    )
                )
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *_, **__):
            raise NotImplementedError

    def parts_of(guard):
        hooks = GuardHooks(guard, "run 7", on_flag="ask")
        find = function_tool(live.find, needs_approval=hooks.needs_approval)
        return Agent(name="agent", model=Fake(), tools=[find]), hooks

    async def run():
        agent, hooks = parts_of(guard)
        result = await Runner.run(agent, TALK.question, hooks=hooks)
        question = hooks.last.text
        state = result.to_state()
        if killed:
            agent, hooks = parts_of(Guard.load(path))
            state = await RunState.from_string(agent, state.to_string())
            result = await Runner.run(agent, state, hooks=hooks)  # nobody has answered
            state = result.to_state()
        (asked,) = result.interruptions
        {"go on": state.approve, "stop": state.reject}[answer](asked)
        try:
            result = await Runner.run(agent, state, hooks=hooks)
            assert not result.interruptions
        except StopRun:
            texts.append("stopped")
        return question, texts, hooks.last

    texts = []
    return asyncio.run(run())


def pydantic_ai(guard, path, answer, killed):
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from trajscore.integrations.pydantic_ai import GuardHooks

    def reply(messages, info):
        k = sum(isinstance(message, ModelResponse) for message in messages)
        parts = [TextPart(TURNS[k].text)]
        if TURNS[k].order is not None:
            parts.append(ToolCallPart("find", {"order": TURNS[k].order}, tool_call_id=f"c{k}"))
        return ModelResponse(parts)

    def parts_of(guard):
        hooks = GuardHooks(guard, on_flag="ask")
        return hooks, Agent(
            FunctionModel(reply),
            output_type=[str, DeferredToolRequests],
            tools=[live.find],
            capabilities=[hooks],
        )

    hooks, agent = parts_of(guard)
    result = asyncio.run(agent.run(TALK.question))
    requests, messages = result.output, result.all_messages()
    if killed:
        messages = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
        hooks, agent = parts_of(Guard.load(path))
        result = asyncio.run(agent.run(message_history=messages))  # nobody has answered
        requests = result.output
    (asked,) = requests.approvals
    results = requests.build_results(approvals={asked.tool_call_id: answer == "go on"})
    result = asyncio.run(agent.run(message_history=messages, deferred_tool_results=results))
    assert isinstance(result.output, str)
    replies = [message for message in result.all_messages() if isinstance(message, ModelResponse)]
    question = requests.metadata[asked.tool_call_id]["text"]
    return question, [reply.text for reply in replies], list(hooks.looks.values())[-1]


def inspect_ai(guard, path, answer, killed):
    pytest.importorskip("inspect_ai")
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.approval import Approval, ApprovalPolicy, approver
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import ToolCall, tool

    from trajscore.integrations.inspect_ai import guard_approver

    @tool(name="find")
    def find_tool():
        async def execute(order: int) -> str:
            """Find an order.

            Args:
                order: Number of the order.
            """
            return live.find(order)

        return execute

    @approver(name="person")
    def person():
        async def approve(message, call, view, history):
            asked.append(message)
            if killed and len(asked) == 1:
                raise RuntimeError("killed")
            return Approval(decision={"go on": "approve", "stop": "terminate"}[answer])

        return approve

    def outputs(first):
        for k, turn in enumerate(TURNS[first:], start=first):
            call = ToolCall(id=f"c{k}", function="find", arguments={"order": turn.order})
            message = ChatMessageAssistant(
                content=turn.text, tool_calls=None if turn.order is None else [call]
            )
            output = ModelOutput.from_message(message)
            output.usage = ModelUsage(input_tokens=1, output_tokens=1)
            yield output

    def run(start, first):
        task = Task(
            dataset=[Sample(start)],
            solver=[use_tools(find_tool()), generate()],
            approval=[ApprovalPolicy(guard_approver(str(path), person()), "*")],
        )
        fake = get_model("mockllm/model", custom_outputs=outputs(first))
        (log,) = evaluate(task, model=fake, log_dir=str(path.parent), display="none")
        return log.samples[0]

    asked = []
    sample = run(TALK.question, 0)
    if killed:
        sample = run(sample.messages[:-1], 1)
    texts = [message.text for message in sample.messages if message.role == "assistant"]
    assert len(asked) == 1 + killed
    decisions = [event.decision for event in sample.events if event.event == "approval"]
    assert ("terminate" in decisions) == (answer == "stop")
    return asked[-1], texts, None


FRAMEWORKS = [langchain, openai_agents, pydantic_ai, inspect_ai]


@pytest.mark.parametrize("killed", [False, True], ids=["waits", "killed"])
@pytest.mark.parametrize("answer", ["go on", "stop"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.filterwarnings("ignore")  # of the frameworks themselves
def test_an_agent_asks_and_goes_by_the_answer(guard, tmp_path, framework, answer, killed):
    pytest.importorskip("skops")
    guard.save(tmp_path / "guard.skops")
    question, texts, look = framework(guard, tmp_path / "guard.skops", answer, killed)
    assert 'I cannot see it yet.\nfind {"order": 113}' in question
    assert look is None or (look.answer, look.stop) == (answer, answer == "stop")
    if answer == "go on":
        assert texts == [turn.text for turn in TURNS]
    else:
        assert len(texts) < 4
    gc.collect()  # event loops that they leave open
