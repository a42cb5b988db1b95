"""One dialogue, as each format of logs has it: a question, a call with its result, an answer."""

from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "docs" / "formats" / "samples"


def said(run):
    """Return who says what, and each call with its arguments and result."""
    return [
        *(("system", text) for text in run.extra.get("system", ())),
        *(
            part
            for step in run.steps
            for part in (
                *([(step.actor, step.text)] if step.text else []),
                *((call.name, call.arguments, call.result) for call in step.tool_calls),
            )
        ),
    ]


def turns(run):
    """Return who says what in each turn, also where that is nothing."""
    return [(step.actor, step.text) for step in run.steps]


def user(words="Hi"):
    return {"role": "user", "content": words}


def agent(words="", *calls, ids=True, **more):
    made = [{"id": name.upper() if ids else None, "name": name} for name in calls]
    return {"role": "assistant", "content": words} | ({"tool_calls": made} if made else {}) | more


def tool(words, key=None, **more):
    return {"role": "tool", "tool_call_id": key, "content": words} | more


CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": 3}'}}
ASK, LOOK = user("Where is order 3?"), agent("I look.", tool_calls=[CALL])
FOUND, TOLD = tool("in Paris", "c1"), agent("In Paris.")
HI, YES = user(), agent("Yes")
ALL = [
    ("user", "Where is order 3?"),
    ("agent", "I look."),
    ("find", {"order": 3}, "in Paris"),
    ("agent", "In Paris."),
]
