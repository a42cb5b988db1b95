"""The keys under which logs keep the same things, whatever library wrote them, and their texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

Record = Mapping[str, Any]
"""An object of JSON."""

# fmt: off
# ------------------------------------------------------------------ runs and messages
MESSAGE_LISTS = (
    "messages", "contents", "conversations", "conversation", "history", "events",
    "chat_history", "all_messages", "new_messages", "message_history",
)
"""Fields of a run that list its messages."""

CALL_SIDES = (
    ("input", "output"), ("inputs", "outputs"), ("request", "response"), ("input", "response"),
    ("input", "new_items"), ("original_input", "session_items"),
    ("original_input", "generated_items"),
)
"""What a model was given, and what it answered; or an agent of OpenAI's SDK, and what it did."""

THREAD = "message_thread"
ITEM_LISTS = (
    "items", "new_items", "session_items", "generated_items", "input_list", "to_input_list",
    "responses", "raw_responses", "model_responses", "values", "state", "result", THREAD,
)
"""Fields that list the messages, items or answers of a run, where they are that."""

MESSAGE_OWNERS = (
    "values", "state", "final_state", "result", "session", "_state", "run_result", "task_result",
    "llm_context", "agent_states",
)
"""Fields of a run whose object holds its messages: a result, or a state that was saved."""

PAYLOADS = (
    "messages", "contents", "input_messages", "output_messages", "all_messages",
    "new_messages", "chat_history", "history", "input", "output", "inputs", "outputs", "prompts",
    "prompt", "new_message", "message", "response", "result", "generations", "candidates", "value",
    "kwargs", "args",
)
"""Fields of a request, a response or a state that hold messages, in the order of the search."""

OF_USER = {"prompt", "prompts", "input", "inputs", "contents", "new_message", "args", "kwargs"}
OF_EITHER = {"messages", "message", "response", "generations", "candidates", "output", "outputs"}
ANSWERS = (
    ({"choices"}, "choices"), ({"candidates"}, "candidates"),  # completions, Gemini
    ({"outputs", "prompt_token_ids"}, "outputs"), ({"text", "meta_info"}, ""),  # vLLM, SGLang
    # llama.cpp, TGI, Ollama, Responses
    ({"content", "completion_probabilities"}, ""), ({"content", "tokens_predicted"}, ""),
    ({"generated_text"}, ""), ({"output", "object"}, ""),
    ({"model", "message", "done"}, ""), ({"model", "response", "done"}, ""),
)
"""Fields that tell the response of a server, and the one that lists its answers, if any does."""
SAID = ("text", "message", "content", "generated_text", "response", "delta", "output")
"""Where an answer has its turn, or the text of it."""
OF_ANSWERS = {
    *SAID, "choices", "candidates", "outputs", "logprobs", "details", "meta_info",
    "completion_probabilities", "generation_settings", "timings",
}
"""All fields of a response that are of its turn, or of how it was made."""
HOLDERS = {
    "response", "raw", "raw_response", "raw_data", "model_response", "llm_response", "completion",
    "output", "generation", "extra",
}
"""Fields of a turn that may hold the response that it comes from."""
PROMPTS = ("prompt", "inputs", "input", "text")

INSTRUCTIONS = ("system", "instructions", "system_instruction", "systemInstruction")
TEXTS = ("text", "content", "output_text", "completion", "answer", "delta")

ROLES = {
    **dict.fromkeys(("agent", "ai", "assistant", "bot", "chatgpt", "gpt", "model"), "agent"),
    **dict.fromkeys(("customer", "human", "user"), "user"),
    **dict.fromkeys(("developer", "system"), "system"),
    **dict.fromkeys(("function", "observation", "tool"), "tool"),
}
KNOWN_ACTORS = {
    role: "environment" if kind in ("system", "tool") else kind for role, kind in ROLES.items()
}
MESSAGE_TYPES = {"human", "user", "ai", "assistant", "system", "tool", "function", "developer"}
MESSAGE_CLASSES = {
    # of LangChain
    "humanmessage": "user", "aimessage": "assistant", "systemmessage": "system",
    "toolmessage": "tool", "functionmessage": "tool",
    # of AutoGen, whose agents and users are told apart by the source of a message
    **dict.fromkeys((
        "textmessage", "multimodalmessage", "structuredmessage", "stopmessage", "handoffmessage",
        "toolcallrequestevent", "codegenerationevent", "assistantmessage",
    ), "assistant"),
    **dict.fromkeys(("toolcallexecutionevent", "codeexecutionevent"), "tool"),
    "usermessage": "user", "functionexecutionresultmessage": "tool",
}
PROGRAM_CLASSES = {  # which a program writes: of AutoGen, repeats of a result, who is next
    "toolcallsummarymessage", "handoffmessage", "memoryqueryevent", "selectorevent",
    "selectspeakerevent", "userinputrequestedevent", "modelclientstreamingchunkevent",
    # of OpenAI's Responses and Agents SDK: lists of tools, requests for approval, references
    "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "tool_approval_item",
    "item_reference", "compaction", "additional_tools",
}
ITEM_TYPES = {"reasoning", "thoughtevent", "program", "program_output", "tool_search_output"}
"""Items of OpenAI's Responses, and of AutoGen, other than messages, ``_call`` and its output."""

# ------------------------------------------------------------------ parts of a message
TEXT_TYPES = {"text", "output_text", "input_text"}
THOUGHT_TYPES = {"thinking", "redacted_thinking", "reasoning", "thought", "thoughtevent"}
PROMPT_TYPES = {"system-prompt": "system", "user-prompt": "user"}
CALL_TYPES = {
    "tool_use", "server_tool_use", "mcp_tool_use", "tool-call", "tool_call", "function_call",
}
RESULT_TYPES = {
    "tool_result", "tool-result", "tool_call_response", "tool-return", "function_call_output",
    "function_result", "retry-prompt", "tool-error",
}
NOT_TOOLS = {"(merged tools)"}  # spans around several tools
WRAPPED_CALLS = ("functionCall", "function_call", "toolUse")
WRAPPED_RESULTS = ("functionResponse", "function_response", "toolResult")

CALL_NAME = ("name", "toolName", "tool_name", "tool.name", "function_name")
CALL_ID = (
    "call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "id",
)
ARGUMENTS = (
    "arguments", "args", "input", "action", "parameters", "queries", "query", "code",
    "tool.args", "tool_kwargs",
)
RESULT = ("output", "result", "response", "content", "outputs", "results", "error")

# ------------------------------------------------------------------ spans
Kind = Literal["model", "tool", "other"]
OWN_SCORES = "trajscore"
SPAN_KINDS: dict[str, Kind] = {
    **dict.fromkeys((
        "chat", "call_llm", "chat_model", "completion", "text_completion", "generate_content",
        "generation", "llm", "response", "dogenerate", "dostream", "generatetext", "streamtext",
        "generateobject", "streamobject",
    ), "model"),
    **dict.fromkeys(("execute_tool", "function", "tool", "toolcall"), "tool"),
}
SESSION = ("session", "sessionId", "session_id", "session.id", "gen_ai.conversation.id")
"""What several traces of one conversation share; a user may give these for the id."""

# attributes of spans, by the GenAI convention, OpenInference, Traceloop, Vercel and Google
SPAN_KIND = (
    "openinference.span.kind", "gen_ai.operation.name", "ai.operationId", "llm.request.type",
    "traceloop.span.kind", "langfuse.observation.type", "span_kind",
)
SPAN_INPUT = (
    "gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "ai.prompt.messages",
    "ai.prompt", "traceloop.entity.input", "input.value", "input", "langfuse.observation.input",
    "gcp.vertex.agent.llm_request",
)
SPAN_OUTPUT = (
    "gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "gen_ai.output",
    "traceloop.entity.output", "output.value", "output", "langfuse.observation.output",
    "gcp.vertex.agent.llm_response",
)
TOOL_NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
TOOL_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id")
TOOL_INPUT = (
    "gen_ai.tool.call.arguments", "gen_ai.tool.args", "tool_arguments", "ai.toolCall.args",
    "traceloop.entity.input", "input.value", "input", "tool.parameters",
    "langfuse.observation.input", "gcp.vertex.agent.tool_call_args",
)
TOOL_OUTPUT = (
    "gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "gen_ai.output",
    "traceloop.entity.output", "output.value", "output", "langfuse.observation.output",
    "gcp.vertex.agent.tool_response",
)
MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
FINISH_REASON = ("gen_ai.response.finish_reasons", "llm.finish_reason")
COSTS = (
    ("gen_ai.usage.input_cost", "gen_ai.usage.output_cost"), ("llm.cost.total",),
    ("gen_ai.usage.cost",),
)
TOKENS = {
    "input": ("gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens"),
    "output": (
        "gen_ai.usage.output_tokens", "llm.token_count.completion",
        "gen_ai.usage.completion_tokens",
    ),
}
USAGE = {
    "input": (
        "input_tokens", "prompt_tokens", "prompt_token_count", "promptTokenCount", "inputTokens",
        "input",
    ),
    "output": (
        "output_tokens", "completion_tokens", "candidates_token_count", "candidatesTokenCount",
        "outputTokens", "output",
    ),
}
"""The number of tokens by side, in the usage that a call of a model reports."""
USAGES = ("usage", "usage_metadata", "usageMetadata", "token_usage", "models_usage", "metrics")
# fmt: on


def first(fields: Record, names: Iterable[str], *, blank: bool = False) -> Any:
    """Return the first of some fields that is not None, nor empty text unless `blank`."""
    for name in names:
        value = fields.get(name)
        if value is not None and (blank or value != ""):
            return value
    return None


def as_fields(value: Any, *path: str) -> Record:
    """Return an object of JSON, or that on a path within it; an empty one for anything else."""
    for name in path:
        value = as_fields(value).get(name)
    if isinstance(value, dict):
        return value
    return {}


def as_list(value: Any) -> list[Any]:
    """Return a list of JSON; an empty one for anything else."""
    if isinstance(value, list):
        return value
    return []


def first_object(values: Any) -> Record:
    """Return the first item of a list of JSON; an empty object where that is none."""
    return as_fields(next(iter(as_list(values)), None))


def answer_part(fields: Record) -> Record:
    """Return the first answer of a server's response; an empty object for other objects."""
    if _MARKS.isdisjoint(fields):  # as of most objects
        return {}
    is_piece = False in (fields.get("done"), fields.get("stop"))  # of a stream
    if is_piece or str(fields.get("object")).endswith(".chunk"):
        return {}
    for names, path in ANSWERS:
        if names <= fields.keys():
            part = first_object(fields[path]) if path else fields
            is_other = path == "candidates" and not as_fields(part, "content")
            is_other = is_other or ("object" in names and fields["object"] != "response")
            if not (is_other or _IN_ANSWERS.isdisjoint(part)):
                return part
    return {}


_IN_ANSWERS = {*SAID, "logprobs"}
_MARKS = {name for names, _ in ANSWERS for name in names} - {*SAID, "model"} | {"generated_text"}


def is_own_score(name: Any) -> bool:
    """Tell a score that a guard gave, and not a judge of the log."""
    return str(name).startswith(OWN_SCORES)


def token_counts(usage: Any, keys: Mapping[str, tuple[str, ...]] = USAGE) -> dict[str, Any]:
    """Return the number of tokens by side, "input" and "output"."""
    return {side: first(as_fields(usage), names) for side, names in keys.items()}


def span_kind(kind: Any) -> Kind:
    """Return what a span stands for by the word of its library."""
    return SPAN_KINDS.get(str(kind).lower().rpartition(".")[2], "other")


def parsed(value: Any) -> Any:
    """Return what is written as JSON text within JSON; other text, and all else, as it is.

    >>> parsed('[{"role": "user"}]'), parsed("[sic]")
    ([{'role': 'user'}], '[sic]')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def unnested(value: Any, depth: int = 6) -> Any:
    """Return what is written as JSON text, also where that holds JSON text again."""
    inner = parsed(value)
    if depth > 1 and inner is not value:
        return unnested(inner, depth - 1)
    return inner


_OF_PART = ("text", "type")  # fields of a part of a message


def whole_text(text: str) -> str:
    """Put "?" for half of a surrogate pair, which JSON allows and text encodings do not."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def text_of(content: Any) -> str:
    """Return the text of a message's content: text, parts, nothing, or any JSON value."""
    return whole_text(_text_of(content))


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_part_text(part) for part in content)))
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return json.dumps(content, ensure_ascii=False)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for name in ("text", "refusal", "logs"):
            if isinstance(part.get(name), str):
                return str(part[name])
        if isinstance(part.get("type"), str):  # a picture, a sound: kept in the step's extra
            return ""
    return json.dumps(part, ensure_ascii=False)


def is_known(content: Any) -> bool:
    """Tell content whose text is found, or which has none, from JSON of an unknown form."""
    if content is None or isinstance(content, str):
        return True
    parts, names = (content, _OF_PART) if isinstance(content, list) else ([content], _OF_PART[:1])
    return all(
        isinstance(part, (str, type(None)))
        or (isinstance(part, dict) and any(isinstance(part.get(name), str) for name in names))
        for part in parts
    )


def only_text(content: Any) -> bool:
    """Tell whether the content of a message holds nothing but text."""
    if content is None or isinstance(content, str):
        return True
    more = (
        part
        for part in as_list(content)
        if isinstance(part, dict) and not part.keys() <= {*_OF_PART}
    )
    return is_known(content) and not any(more)
