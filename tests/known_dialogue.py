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


ASK = {"role": "user", "content": "Where is order 3?"}
LOOK = {
    "role": "assistant",
    "content": "I look.",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": 3}'}}
    ],
}
FOUND = {"role": "tool", "tool_call_id": "c1", "content": "in Paris"}
TOLD = {"role": "assistant", "content": "In Paris."}
ALL = [
    ("user", "Where is order 3?"),
    ("agent", "I look."),
    ("find", {"order": 3}, "in Paris"),
    ("agent", "In Paris."),
]
