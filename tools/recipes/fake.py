"""What the recipes share: a guard, and a tool that fails whenever a fake model calls it."""

from trajscore import ActionSignals, io
from trajscore.integrations import Guard

QUESTION = "Where is order 113?"


def find(order: int) -> str:
    """Find an order.

    Args:
        order: Number of the order.
    """
    return "Error: no such order"


def _run(k: int) -> io.Run:
    """Repeat one call in vain or, in a run that succeeds, at most the first."""
    turns = [(k, find(k)) if k % 2 or (k % 4 == 0 and n < 2) else (n, "in Oslo") for n in range(5)]
    steps = [
        io.Step("agent", tool_calls=[io.ToolCall("find", {"order": order}, result=result)])
        for order, result in turns[: 2 + k % 4]
    ]
    ends = io.Step("agent", "That is all.")
    return io.Run(f"run {k}", [io.Step("user", QUESTION), *steps, ends], outcome=1 - k % 2)


guard = Guard(ActionSignals(["repeats"])).fit(map(_run, range(300)))
