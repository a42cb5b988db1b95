"""A loop of your own, with a fake model: first the runs to learn from, then one that is stopped.

python own_loop.py collect
trajscore fit runs.json --guard --alpha 0.1 --out guard.skops
python own_loop.py
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

from trajscore.integrations import Guard


def run(order: int, watch: Any = None) -> list[dict[str, Any]]:
    """Run the agent, and return all messages."""
    messages = [{"role": "user", "content": f"Where is order {order}?"}]
    while True:
        if watch is not None and (look := watch.look(messages)).stop:
            print(f"stopped at step {look.flagged_step}")
            return messages
        answer = call_model(messages, order)
        messages.append(answer)
        for call in answer.get("tool_calls", []):
            result = {"role": "tool", "tool_call_id": call["id"], "content": find(order)}
            messages.append(result)
        if "tool_calls" not in answer:
            return messages


# ------------------------------------------------------------------ a model that does not give up


def find(order: int) -> str:
    """Find an order: those below 200 in three calls of four, others never."""
    return "in Oslo" if order < 200 and random.random() < 0.75 else "Error: not found"


def call_model(messages: list[dict[str, Any]], order: int) -> dict[str, Any]:
    """Call the tool until it has a result."""
    last = messages[-1]["content"]
    if "Oslo" in last or len(messages) > 24:
        return {"role": "assistant", "content": f"Your order is {last}."}
    function = {"name": "find", "arguments": json.dumps({"order": order})}
    call = {"id": f"call-{len(messages)}", "type": "function", "function": function}
    return {"role": "assistant", "content": "I look.", "tool_calls": [call]}


if "collect" in sys.argv:
    chats = [run(random.randrange(100, 250)) for _ in range(200)]
    logs = [{"messages": chat, "success": "Oslo" in chat[-1]["content"]} for chat in chats]
    Path("runs.json").write_text(json.dumps(logs))
else:
    run(213, Guard.load("guard.skops").follow("run 7"))
