"""Agents of real frameworks with fake models: does a guard stop each where its log is flagged?

    python tools/live_runs.py [--runs 40] [--seed 0] [NAME ...]
    python tools/live_runs.py --turns 50
    python tools/live_runs.py --log FILE

A guard is fitted on simulated conversations. Then each framework that is installed runs others,
good and bad, with a model that answers from a list. Each must be stopped before the call of the
model that follows the turn at which the finished log is flagged; the others go on to their end.
Every third run is killed in the middle and goes on in a new agent, from its checkpoint or from the
messages so far, with a guard that was read from a file. Printed: runs, those that the log flags,
those that were stopped live, calls of the model that were saved, and differences, of which there
must be none.
With --turns: the CPU time of a look at a simulated conversation so long. With --log: whether the
looks at every prefix of every run of a log are those of the batch.
"""

import argparse
import asyncio
import importlib.util
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trajscore import DensityRatioEProcess, io
from trajscore.integrations import Guard, StopRun

ERROR = "Error: no such order"


class Turn(NamedTuple):
    """An answer of the fake model: text, and the order that it asks the tool for, if any."""

    text: str
    order: int | None


class Talk(NamedTuple):
    """A conversation as it would be if nobody stopped it."""

    question: str
    turns: list[Turn]
    good: bool


def find(order: int) -> str:
    """Find an order.

    Args:
        order: Number of the order.
    """
    return ERROR if order >= 100 else f"order {order} is in Oslo"


def talk_of(rng: Any) -> Talk:
    """Draw a conversation; bad ones call in vain, again and again, and refuse."""
    good, n = bool(rng.random() < 0.6), int(rng.integers(2, 8))
    turns = []
    for _ in range(n):
        fails = rng.random() < (0.1 if good else 0.7)
        again = fails and rng.random() < 0.5
        order = 113 if again else int(rng.integers(100, 200) if fails else rng.integers(100))
        turns.append(Turn("I cannot see it yet." if again else "I look.", order))
    turns.append(Turn("It is in Oslo." if good else "I cannot find it.", None))
    return Talk(f"Where is order {int(rng.integers(100))}?", turns, good)


def chat_of(talk: Talk) -> list[dict[str, Any]]:
    """Write a conversation as messages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": talk.question}]
    for k, turn in enumerate(talk.turns):
        message: dict[str, Any] = {"role": "assistant", "content": turn.text}
        if turn.order is not None:
            function = {"name": "find", "arguments": f'{{"order": {turn.order}}}'}
            message["tool_calls"] = [{"id": f"c{k}", "type": "function", "function": function}]
        messages.append(message)
        if turn.order is not None:
            result = {"role": "tool", "tool_call_id": f"c{k}", "content": find(turn.order)}
            messages.append(result)
    return messages


def run_of(talk: Talk, name: str) -> io.Run:
    """Return a finished run."""
    run = io.as_run(chat_of(talk), name)
    run.outcome = int(talk.good)
    return run


# ------------------------------------------------------------------ frameworks

FRAMEWORKS: dict[str, tuple[str, Callable[..., int]]] = {}


def framework(name: str, module: str) -> Callable[[Any], Any]:
    """Register a function that runs a talk and returns how often the model was called."""

    def register(function: Any) -> Any:
        FRAMEWORKS[name] = (module, function)
        return function

    return register


def guards(guard: Guard, model: Path | None) -> Iterator[Guard]:
    """Yield the guard and, where its run is killed, the one from a file that goes on."""
    yield guard
    if model is not None:
        yield Guard.load(model)


@framework("a loop of your own", "trajscore")
def own_loop(guard: Guard, talk: Talk, name: str, model: Path | None) -> int:
    """Call model and tools in turn; where it is killed, go on with a guard from a file."""
    watch, messages, chat, calls = guard.follow(name), [], chat_of(talk), 0
    while len(messages) < len(chat):
        messages.append(chat[len(messages)])
        is_model_next = len(messages) < len(chat) and chat[len(messages)]["role"] == "assistant"
        if model is not None and calls == len(talk.turns) // 2:
            watch, model = Guard.load(model).follow(name), None
        if is_model_next:
            if watch.look(messages).stop:
                return calls
            calls += 1
    return calls


class Script:
    """What a fake model says, turn after turn; it is killed once where the run is to go on."""

    def __init__(self, talk: Talk, model: Path | None = None) -> None:
        self.turns, self.calls, self.history = talk.turns, 0, None
        self.kill_at = None if model is None else len(talk.turns) // 2

    def next(self, history: Any = None) -> Turn:
        """Return the next turn; `history` is what was said before it."""
        if self.calls == self.kill_at:
            self.kill_at, self.history = None, history
            raise RuntimeError("killed")
        self.calls += 1
        return self.turns[self.calls - 1]


def langchain_model(script: Script) -> Any:
    """Return a model of LangChain."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Fake(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    def answer() -> Any:
        turn = script.next()
        call = {"name": "find", "args": {"order": turn.order}, "id": f"c{script.calls}"}
        return AIMessage(turn.text, tool_calls=[] if turn.order is None else [call])

    return Fake(messages=iter(answer, None))


@framework("langchain", "langchain")
def langchain(guard: Guard, talk: Talk, name: str, model: Path | None) -> int:
    """Run an agent with the middleware."""
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver

    from trajscore.integrations.langchain import GuardMiddleware

    script = Script(talk, model)
    saver, fake = InMemorySaver(), langchain_model(script)
    config = {"configurable": {"thread_id": name}}
    start: Any = {"messages": [("user", talk.question)]}
    for own in guards(guard, model):
        agent = create_agent(
            fake, [tool(find)], middleware=[GuardMiddleware(own)], checkpointer=saver
        )
        try:
            agent.invoke(start, config)
        except RuntimeError:
            start = None  # go on where it was
            continue
        break
    return script.calls


def openai_model(script: Script) -> Any:
    """Return a model of the Agents SDK."""
    from agents import Model, ModelResponse, Usage, set_tracing_disabled
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    set_tracing_disabled(True)

    class Fake(Model):
        async def get_response(self, *_: Any, **given: Any) -> Any:
            turn = script.next(list(given["input"]))
            text = ResponseOutputText(text=turn.text, type="output_text", annotations=[])
            output: list[Any] = [
                ResponseOutputMessage(
                    id=f"m{script.calls}", content=[text], role="assistant", status="completed",
                    type="message",
                )
            ]  # fmt: skip
            if turn.order is not None:
                arguments, call_id = f'{{"order": {turn.order}}}', f"c{script.calls}"
                output.append(
                    ResponseFunctionToolCall(
                        arguments=arguments, call_id=call_id, name="find", type="function_call"
                    )
                )
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    return Fake()


@framework("openai_agents", "agents")
def openai_agents(guard: Guard, talk: Talk, name: str, model: Path | None) -> int:
    """Run an agent with the hooks."""
    from agents import Agent, Runner, function_tool

    from trajscore.integrations.openai_agents import GuardHooks

    script = Script(talk, model)
    for own in guards(guard, model):
        agent = Agent(name="agent", model=openai_model(script), tools=[function_tool(find)])
        start, hooks = script.history or talk.question, GuardHooks(own, name)
        with suppress(StopRun, RuntimeError):
            asyncio.run(Runner.run(agent, start, hooks=hooks, max_turns=20))
        if script.history is None:
            break
    return script.calls


def pydantic_model(script: Script) -> Any:
    """Return a model of Pydantic AI."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: Any, info: Any) -> Any:
        turn = script.next(list(messages))
        call = ToolCallPart("find", {"order": turn.order}, tool_call_id=f"c{script.calls}")
        return ModelResponse([TextPart(turn.text), *[call] * (turn.order is not None)])

    return FunctionModel(answer)


@framework("pydantic_ai", "pydantic_ai")
def pydantic_ai(guard: Guard, talk: Talk, name: str, model: Path | None) -> int:
    """Run an agent with the hook."""
    from pydantic_ai import Agent

    from trajscore.integrations.pydantic_ai import GuardHooks

    script = Script(talk, model)
    for own in guards(guard, model):
        agent = Agent(pydantic_model(script), tools=[find], capabilities=[GuardHooks(own)])
        question = talk.question if script.history is None else None
        with suppress(RuntimeError):
            asyncio.run(agent.run(question, message_history=script.history))  # closes its loop
        if script.history is None:
            break
    return script.calls


def inspect_parts(script: Script) -> tuple[Any, Any]:
    """Return a model of Inspect, and what a solver uses."""
    from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
    from inspect_ai.tool import ToolCall, tool

    @tool(name="find")
    def find_tool() -> Any:
        async def execute(order: int) -> str:
            """Find an order.

            Args:
                order: Number of the order.
            """
            return find(order)

        return execute

    def answer() -> ModelOutput:
        turn = script.next()
        call = ToolCall(id=f"c{script.calls}", function="find", arguments={"order": turn.order})
        message = ChatMessageAssistant(
            content=turn.text, tool_calls=None if turn.order is None else [call]
        )
        output = ModelOutput.from_message(message)
        # tokens that are not stated would be counted, with a file from the internet
        output.usage = ModelUsage(input_tokens=1, output_tokens=1)
        return output

    return get_model("mockllm/model", custom_outputs=iter(answer, None)), find_tool()


@framework("inspect_sentinel", "inspect_sentinel")
def inspect_sentinel(guard: Guard, talk: Talk, name: str, model: Path | None) -> int:
    """Run a task with the guard as a monitor, whose threshold is 1 - alpha."""
    from inspect_ai import Task, eval as evaluate  # noqa: I001
    from inspect_ai.dataset import Sample
    from inspect_ai.solver import generate, use_tools
    from inspect_sentinel import threshold

    from trajscore.integrations.inspect_sentinel import guard_monitor

    script = Script(talk, model)
    start: Any = talk.question
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "guard.skops"
        guard.save(path)
        alpha = float(guard.process_.alphas_[0])
        for _ in range(1 if model is None else 2):
            fake, find_tool = inspect_parts(script)
            task = Task(
                dataset=[Sample(start)],
                solver=[use_tools(find_tool), generate()],
                sentinel=threshold(guard_monitor(str(path)), terminate_at=1 - alpha),
            )
            (log,) = evaluate(task, model=fake, log_dir=folder, display="none")
            if log.status == "success":
                return script.calls
            start = log.samples[0].messages  # go on from what was said
    raise RuntimeError(f"Inspect: {log.error}")


# ------------------------------------------------------------------ the trial


def trial(name: str, guard: Guard, talks: list[Talk], model: Path) -> list[str]:
    """Run all talks in a framework; return what differs from the finished logs."""
    run = FRAMEWORKS[name][1]
    stops = guard.stopping_steps([run_of(talk, f"run {k}") for k, talk in enumerate(talks)])
    problems, saved, stopped = [], 0, 0
    for k, (talk, stop) in enumerate(zip(talks, stops.tolist(), strict=True)):
        calls = run(guard, talk, f"run {k}", model if k % 3 == 0 else None)
        # the first row is the question; the last answer is flagged too late to save a call
        wanted = min(len(talk.turns), stop - 1) if stop else len(talk.turns)
        saved += len(talk.turns) - calls
        stopped += calls < len(talk.turns)
        if calls != wanted:
            problems.append(f"run {k}: {calls} calls of the model, {wanted} by the log")
    n_good = sum(talk.good for talk in talks)
    lost = sum(talk.good and stop > 0 for talk, stop in zip(talks, stops, strict=True))
    print(
        f"{name:<20} {len(talks)} runs, {n_good} good; the log flags {int((stops > 0).sum())} "
        f"({lost} good), {stopped} stopped live, {saved} calls saved, {len(problems)} differences"
    )
    return problems


def fitted_guard(seed: int, n: int = 600, process: Any = None) -> Guard:
    """Fit a guard on simulated runs."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Guard(None, process).fit([run_of(talk_of(rng), f"old {k}") for k in range(n)])


def time_looks(guard: Guard, turns: int) -> None:
    """Print the CPU time of a look at a conversation of so many turns, all but one the agent's."""
    rng = np.random.default_rng(0)
    asked = [Turn("I look for it once more.", int(rng.integers(200))) for _ in range(turns - 1)]
    messages = chat_of(Talk("Where is order 7?", asked, good=True))
    ways = {
        "look": lambda: guard.look(messages),
        "look of Guard.follow": lambda: guard.follow("run").look(messages),
        "messages to runs alone": lambda: io.as_run(messages),
    }
    warnings.simplefilter("ignore")  # on runs longer than those of the fit
    assert guard.look(messages).step == turns
    for name, look in ways.items():
        seconds = []
        for _ in range(300):
            begun = time.process_time()
            look()
            seconds.append(time.process_time() - begun)
        low, middle, high = 1e3 * np.quantile(seconds, [0.05, 0.5, 0.95])
        print(
            f"{name:<23} {turns} turns, {len(messages)} messages: CPU ms {middle:.2f} "
            f"({low:.2f} to {high:.2f})"
        )


def follow_log(path: Path) -> list[str]:
    """Look at every prefix of every run of a log; return what differs from the batch."""
    runs, process = io.read_runs(path), DensityRatioEProcess(alpha=0.2)
    guard = Guard(process=process).fit(runs, groups=[str(run.task) for run in runs])
    X = guard.signals_.transform(runs)
    stops, n_looks, problems = guard.stopping_steps(runs), 0, []
    going = X.with_ended(False)
    log_m, own = guard.process_.transform(going), guard.process_.stopping_steps(going)
    for row, run in enumerate(runs):
        for n in range(1, len(run.steps) + 1):
            look = guard.look(io.Run(run.id, run.steps[:n], task=run.task), run.id)
            n_looks += 1
            if not look.step:
                continue
            flag = int(own[row]) if own[row] <= look.step else 0
            if (look.flagged_step or 0) != flag or look.log_e_value != log_m[row][look.step - 1]:
                problems.append(f"run {run.id!r}, step {look.step}: {look} in place of {flag}")
        done = guard.look(run, run.id, done=bool(X.ended[row])).flagged_step or 0
        if done != stops[row]:
            problems.append(f"run {run.id!r}, at its end: {done} in place of {stops[row]}")
    print(
        f"{path.name}: {len(runs)} runs, {n_looks} looks, {int((stops > 0).sum())} runs flagged, "
        f"{len(problems)} differences"
    )
    return problems


def main() -> int:
    """Run the trial in all frameworks that are installed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--turns", type=int)
    parser.add_argument("--log", type=Path)
    args = parser.parse_args()
    if args.log is not None:
        problems = follow_log(args.log)
        print("\n".join(problems))
        return bool(problems)
    guard = fitted_guard(args.seed)
    if args.turns is not None:
        time_looks(guard, args.turns)
        return 0
    rng = np.random.default_rng([args.seed, 1])
    talks = [talk_of(rng) for _ in range(args.runs)]
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "guard.skops"
        guard.save(model)
        for name, (module, _) in FRAMEWORKS.items():
            if args.names and name not in args.names:
                continue
            if importlib.util.find_spec(module) is None:
                print(f"{name:<20} not installed")
                continue
            problems += trial(name, guard, talks, model)
    print("\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
