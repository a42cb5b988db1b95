"""Messages in a tree of answers and their alternatives, as ChatGPT exports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajscore.io._vocabulary import as_fields, as_list, first


def find_tree(record: Mapping[str, Any]) -> tuple[list[Any], set[str]]:
    """Return the messages of a tree that lead to the current one, or to the last, as ChatGPT's."""
    for name, value in record.items():
        nodes = {key: as_fields(node) for key, node in as_fields(value).items()}
        if not nodes or any(not {"message", "parent"} <= node.keys() for node in nodes.values()):
            continue
        parents = [node["parent"] for node in nodes.values()]
        last = next((key for key in reversed(nodes) if key not in parents), None)
        key = record.get("current_node", last)
        path: list[Any] = []
        while isinstance(key, str) and key in nodes and nodes[key] not in path:
            path.insert(0, nodes[key])
            key = nodes[key]["parent"]
        messages = (node["message"] for node in path)
        return [_of_node(message) for message in messages if isinstance(message, dict)], {name}
    return [], set()


def _of_node(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of a tree with its role and its text where other messages have them."""
    parts = as_list(as_fields(message.get("content")).get("parts"))
    text = {"content": "\n".join(parts)} if all(isinstance(part, str) for part in parts) else {}
    role = first(as_fields(message.get("author")), ("role",)) or message.get("role")
    return {**message, "role": role, **text}


def beside_path(raw: Mapping[str, Any], used: set[str], n_messages: int) -> dict[str, Any]:
    """Return how many messages of a tree do not lead to the last one, such as other answers."""
    nodes = [node for name in used for node in as_fields(raw.get(name)).values()]
    n_others = sum(isinstance(as_fields(node).get("message"), dict) for node in nodes) - n_messages
    return {"n_left_out": {"other branch": n_others}} if n_others > 0 else {}
