"""A person is asked by a framework's own means, and the run goes on, or stops, or is resumed."""

import asyncio
import gc
from contextlib import nullcontext
from importlib import import_module
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from scripts import load_script
from trajscore import DensityRatioEProcess
from trajscore.integrations import Guard, StopRun
from trajscore.localization import FirstErrorLocator, FirstErrorWindow

live = load_script("live_runs", "tools")
TURNS = [live.Turn("I cannot see it yet.", 113)] * 5 + [live.Turn("I cannot find it.", None)]
TALK = live.Talk("Where is order 7?", TURNS, good=False)


@pytest.fixture(scope="module")
def guard():
    return live.fitted_guard(0, 200, DensityRatioEProcess(alpha=0.2))


@pytest.fixture(scope="module")
def two_levels():
    return live.fitted_guard(0, 300, DensityRatioEProcess(alpha=(0.3, 0.05)))


@pytest.fixture(scope="module")
def window(two_levels):
    """Marks where a call first failed."""
    rng = np.random.default_rng(1)
    runs = [live.run_of(live.talk_of(rng), str(k)) for k in range(100)]
    failed = [[step.observation == live.ERROR for step in run.steps] for run in runs]
    labels = [1 + steps.index(True) if any(steps) else 0 for steps in failed]
    X, locator = two_levels.signals_.transform(runs), FirstErrorLocator()
    P = locator.fit_transform(X, labels)
    return make_pipeline(two_levels.signals_, locator, FirstErrorWindow(0.5).fit(P, labels))


def test_a_loop_asks_once_and_stops_at_the_smaller_level(two_levels, window):
    with pytest.raises(ValueError, match="on_flag must be 'stop' or 'ask'"):
        two_levels.follow(on_flag="maybe")
    chat = live.chat_of(TALK)
    for answer, stop_at in (("go on", 3), ("stop", 2)):
        watch = two_levels.follow("run 7", on_flag="ask", window=window)
        assert not watch.look(chat[:1]).ask
        look = watch.look(chat[:3])
        assert (look.ask, look.stop, look.flagged_step) == (True, False, 2)
        assert look.text == 'I cannot see it yet.\nfind {"order": 113}\nError: no such order'
        assert list(look.window) == [2]
        with pytest.raises(ValueError, match="answer must be 'go on' or 'stop'"):
            watch.answer("yes")
        watch.answer(answer)
        looks = [watch.look(chat[:n]) for n in (3, 5)]
        assert next(look.step for look in looks if look.stop) == stop_at
        assert {(look.ask, look.answer) for look in looks} == {(False, answer)}


@pytest.mark.slow
def test_of_good_runs_few_are_asked_about_and_fewer_stopped(n_simulations):
    rng = np.random.default_rng(0)
    shares = []
    for seed in range(n_simulations // 2):
        guard = live.fitted_guard(seed, 100, DensityRatioEProcess(alpha=(0.2, 0.05)))
        rows = []
        for k, talk in enumerate(talk for talk in map(live.talk_of, [rng] * 20) if talk.good):
            person, chat = Mock(return_value="go on"), live.chat_of(talk)
            watch = guard.follow(f"new {k}", on_flag=person)
            looks = [watch.look(chat[:n]) for n in range(1, len(chat), 2)]
            assert person.call_count <= 1
            rows.append((person.call_count, any(look.stop for look in looks)))
        shares.append(np.mean(rows, axis=0))
    error = np.std(shares, axis=0) / np.sqrt(len(shares))
    assert (np.mean(shares, axis=0) <= np.array([0.2, 0.05]) + 2 * error).all()


def langchain(adapter, guard, path, answer, killed, script):
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    saver, fake = InMemorySaver(), live.langchain_model(script)
    config = {"configurable": {"thread_id": "run 7"}}

    def parts_of(guard):
        hooks, tools = adapter.GuardMiddleware(guard, on_flag="ask"), [tool(live.find)]
        return hooks, create_agent(fake, tools, middleware=[hooks], checkpointer=saver)

    hooks, agent = parts_of(guard)
    agent.invoke({"messages": [("user", TALK.question)]}, config)
    if killed:
        hooks, agent = parts_of(Guard.load(path))
    (question,) = agent.get_state(config).interrupts
    state = agent.invoke(Command(resume=answer), config)
    assert "__interrupt__" not in state
    assert state["guard_answer"] == answer
    return question.value["text"], hooks.looks["run 7"]


def openai_agents(adapter, guard, path, answer, killed, script):
    import agents

    def parts_of(guard):
        hooks = adapter.GuardHooks(guard, "run 7", on_flag="ask")
        find = agents.function_tool(live.find, needs_approval=hooks.needs_approval)
        return hooks, agents.Agent(name="agent", model=live.openai_model(script), tools=[find])

    async def run():
        hooks, agent = parts_of(guard)
        result = await agents.Runner.run(agent, TALK.question, hooks=hooks)
        text = hooks.last.text
        if killed:
            hooks, agent = parts_of(Guard.load(path))
            state = await agents.RunState.from_string(agent, result.to_state().to_string())
            result = await agents.Runner.run(agent, state, hooks=hooks)  # nobody has answered
        (asked,) = result.interruptions
        state = result.to_state()
        {"go on": state.approve, "stop": state.reject}[answer](asked)
        with nullcontext() if answer == "go on" else pytest.raises(StopRun):
            result = await agents.Runner.run(agent, state, hooks=hooks)
            assert not result.interruptions
        return text, hooks.last

    return asyncio.run(run())


@pytest.mark.filterwarnings("ignore:.*found no current event loop|unclosed")
def test_tools_of_openai_that_do_not_ask_are_named(guard):
    agents = pytest.importorskip("agents")
    hooks = import_module("trajscore.integrations.openai_agents").GuardHooks(guard, on_flag="ask")
    tools, model = [agents.function_tool(live.find)], live.openai_model(live.Script(TALK))
    agent = agents.Agent(name="agent", model=model, tools=tools)
    with pytest.warns(UserWarning, match="needs_approval=hooks.needs_approval"):
        asyncio.run(agents.Runner.run(agent, TALK.question, hooks=hooks))


def pydantic_ai(adapter, guard, path, answer, killed, script):
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    output = [str, DeferredToolRequests]

    def parts_of(guard):
        hooks, model = adapter.GuardHooks(guard, on_flag="ask"), live.pydantic_model(script)
        return hooks, Agent(model, output_type=output, tools=[live.find], capabilities=[hooks])

    hooks, agent = parts_of(guard)
    result = asyncio.run(agent.run(TALK.question))
    messages = result.all_messages()
    if killed:
        messages = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
        hooks, agent = parts_of(Guard.load(path))
        result = asyncio.run(agent.run(message_history=messages))  # nobody has answered
    (asked,) = result.output.approvals
    text = result.output.metadata[asked.tool_call_id]["text"]
    results = result.output.build_results(approvals={asked.tool_call_id: answer == "go on"})
    result = asyncio.run(agent.run(message_history=messages, deferred_tool_results=results))
    assert isinstance(result.output, str)
    return text, [*hooks.looks.values()][-1]


def inspect_ai(adapter, guard, path, answer, killed, script):
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.approval import Approval, ApprovalPolicy, approver
    from inspect_ai.dataset import Sample
    from inspect_ai.solver import generate, use_tools

    @approver(name="person")
    def person():
        async def approve(message, call, view, history):
            asked.append(message)
            if killed and len(asked) == 1:
                raise RuntimeError("killed")
            return Approval(decision={"go on": "approve", "stop": "terminate"}[answer])

        return approve

    def run(start):
        fake, find = live.inspect_parts(script)
        policy = ApprovalPolicy(adapter.guard_approver(str(path), person()), "*")
        solver = [use_tools(find), generate()]
        task = Task(dataset=[Sample(start)], solver=solver, approval=[policy])
        (log,) = evaluate(task, model=fake, log_dir=str(path.parent), display="none")
        return log.samples[0]

    asked = []
    sample = run(TALK.question)
    if killed:
        script.calls -= 1
        sample = run(sample.messages[:-1])
    assert len(asked) == 1 + killed
    decisions = [event.decision for event in sample.events if event.event == "approval"]
    assert ("terminate" in decisions) == (answer == "stop")
    return asked[-1], None


@pytest.mark.parametrize("killed", [False, True], ids=["waits", "killed"])
@pytest.mark.parametrize("answer", ["go on", "stop"])
@pytest.mark.parametrize("framework", [langchain, openai_agents, pydantic_ai, inspect_ai])
@pytest.mark.filterwarnings("ignore")  # of the frameworks themselves
def test_an_agent_asks_and_goes_by_the_answer(guard, tmp_path, framework, answer, killed):
    name = framework.__name__
    pytest.importorskip({"openai_agents": "agents"}.get(name, name))
    pytest.importorskip("skops")
    adapter = import_module(f"trajscore.integrations.{name}")
    path = tmp_path / "guard.skops"
    guard.save(path)
    script = live.Script(TALK)
    text, look = framework(adapter, guard, path, answer, killed, script)
    assert 'I cannot see it yet.\nfind {"order": 113}' in text
    assert look is None or (look.answer, look.stop) == (answer, answer == "stop")
    assert script.calls == len(TURNS) if answer == "go on" else script.calls <= 2
    gc.collect()  # event loops that they leave open
