"""What LangGraph and Inspect really write, run here without a network."""

import pytest

from known_dialogue import ALL, ASK, said
from trajscore import io

ASKED = ASK["content"]


def check(run):
    assert said(run) == [("system", "Be kind."), *ALL]


def find(order: int) -> str:
    """Find an order."""
    assert order == 3
    return "in Paris"


# ------------------------------------------------------------------ LangChain and LangGraph


@pytest.fixture
def graph():
    """A graph of a model that answers from a list, and a tool."""
    pytest.importorskip("langgraph")
    messages = pytest.importorskip("langchain_core.messages")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.tools import tool
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    call = {"name": "find", "args": {"order": 3}, "id": "c1"}
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    answers = [
        messages.AIMessage("I look.", tool_calls=[call], usage_metadata=usage),
        messages.AIMessage([{"type": "text", "text": "In Paris."}]),
    ]
    model = GenericFakeChatModel(messages=iter(answers))
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([tool(find)]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges(
        "agent", lambda state: "tools" if state["messages"][-1].tool_calls else END
    )
    builder.add_edge("tools", "agent")
    asked = [messages.SystemMessage("Be kind."), messages.HumanMessage(ASKED)]
    return builder.compile(), {"messages": asked}


def test_langgraph(write, graph):
    from langchain_core.load import dumpd
    from langchain_core.messages import messages_to_dict

    app, asked = graph
    state = app.invoke(asked)
    logs = [
        {"messages": [message.model_dump() for message in state["messages"]]},
        messages_to_dict(state["messages"]),
        dumpd(state),
        {"thread_id": "t", "values": dumpd(state)},
    ]
    for k, log in enumerate(logs):
        check(io.read_runs(write(f"{k}.json", log))[0])


# ------------------------------------------------------------------ Inspect AI


def test_inspect(tmp_path):
    log = pytest.importorskip("inspect_ai.log")
    from inspect_ai import event, model, scorer

    user = model.ChatMessageUser(content="1 + 1?", id="u")
    output = model.ModelOutput.from_content("m", "2")
    token = model.Logprob(token="2", logprob=-0.25)
    output.choices[0].logprobs = model.Logprobs(content=[token])
    config = model.GenerateConfig()
    asked = {"model": "m", "input": [user], "tools": [], "tool_choice": "auto", "config": config}
    one = log.EvalSample(
        id="s", epoch=1, uuid="run", input="1 + 1?", target="2", messages=[user, output.message],
        events=[event.ModelEvent(output=output, **asked)],
        scores={"match": scorer.Score(value="C")},
    )  # fmt: skip
    for name, listed in (("a.eval", ["s"]), ("b.json", ["s"]), ("c.eval", None)):
        spec = log.EvalSpec(
            created="2026-01-01T00:00:00+00:00", task="t", model="m", config=log.EvalConfig(),
            dataset=log.EvalDataset(sample_ids=listed),
        )  # fmt: skip
        whole = log.EvalLog(eval=spec, samples=[one], status="success")
        log.write_eval_log(whole, str(tmp_path / name))
        (run,) = io.read_runs(tmp_path / name)
        assert (run.id, run.task, run.outcome) == ("run", "s", 1)
        assert [step.text for step in run.steps] == ["1 + 1?", "2"]
        assert run.steps[1].logprobs == (-0.25,)
