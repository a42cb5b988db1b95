"""Agents on a real model, with five kinds of confidence at each step.

A run is one line of JSON: its messages with log-probabilities, as a chat client keeps them, its
outcome and stop reason, and at each turn of the agent the sampled answers, P(true), P(success) and
the percent it states. The log that the package brings has them as a chat log; costs of the
confidences stay with the runs.
"""

import gzip
import itertools
import json
import pathlib
import queue
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed

import openai
from serve import MODELS, SLOTS
from tasks import TASKS
from tqdm import tqdm

from trajscore.judging.answers import percent_share, yes_share

TEMPERATURE = 0.7  # of what the agent does
N_TOKENS = 4  # of an answer
SAMPLES = 4
TOP = 5  # alternatives of a token that a log keeps
STREAMS = ("action", "samples", "p_true", "p_success", "percent")


class Model:
    """One slot of a server: prompts that go on where the last one stopped are read once."""

    def __init__(self, url: str, slot: int):
        self.client = openai.OpenAI(base_url=url, api_key="none", max_retries=5, timeout=600)
        self.slot = slot

    def complete(self, prompt: str | list, also: dict | None = None, **options):
        """Return the completion of `prompt` (text, then tokens), and what it took.

        `also` holds options that the server alone has.
        """
        options = {"max_tokens": N_TOKENS, "stop": ["\n"], **options}
        own = {"id_slot": self.slot, **(also or {})}
        began = time.perf_counter()
        answer = self.client.completions.create(
            model="served", prompt=prompt, extra_body=own, **options
        )
        cost = Counter(
            calls=1,
            seconds=time.perf_counter() - began,
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
        )
        return answer.choices[0], cost


def tokens_of(choice) -> list[dict]:
    """Return the tokens of a choice as chat completions write them, the line's end left out."""
    tokens = choice.logprobs.content if choice.logprobs else ()
    line = itertools.takewhile(lambda token: not token["token"].startswith("\n"), tokens)
    return [
        scored(token) | {"top_logprobs": list(map(scored, token["top_logprobs"][:TOP]))}
        for token in line
    ]


def scored(token: dict) -> dict:
    """Return a token, or an alternative, with its log-probability alone."""
    return {"token": token["token"], "logprob": round(token["logprob"], 5)}


def word_of(text: str) -> str:
    """Return the first word of an answer, as it is compared."""
    words = text.split()
    return words[0].strip(".,").lower() if words else ""


def p_yes(choice) -> float | None:
    """Return P(yes) among yes and no at the first token, or None where neither is near the top."""
    first = choice.logprobs.content[0]["top_logprobs"] if choice.logprobs else ()
    share = yes_share((token["token"], token["logprob"]) for token in first)
    return None if share is None else round(share, 5)


def run(model: Model, task: str, seed: int) -> dict:
    """Let the agent do task `seed`; ask for each confidence where the step has been made."""
    world = TASKS[task](seed)
    text, ended = world.examples, None
    messages, steps = [{"role": "system", "content": world.system}], []
    cost = {stream: Counter() for stream in STREAMS}
    while ended is None:
        call = seed * 1000 + 10 * len(steps)
        seen = world.see()
        prompt = f"{text}{seen}\n{world.ask}"
        answer, spent = model.complete(prompt, temperature=TEMPERATURE, seed=call, logprobs=20)
        cost["action"] += spent
        reply = {"role": "assistant", "content": answer.text.strip()}
        reply["logprobs"] = {"content": tokens_of(answer)}
        messages += [{"role": "user", "content": seen}, reply]
        text = f"{prompt}{answer.text.rstrip()}\n"
        sampled = []
        for k in range(SAMPLES):
            sample, spent = model.complete(prompt, temperature=1.0, seed=call + k + 1)
            sampled.append(word_of(sample.text))
            cost["samples"] += spent
        step = {"samples": sampled}
        for stream, question in (("p_true", world.was_right), ("p_success", world.will_succeed)):
            reply, spent = model.complete(text + question, max_tokens=1, temperature=0, logprobs=20)
            step[stream] = p_yes(reply)
            cost[stream] += spent
        reply, spent = model.complete(text + world.percent, temperature=0)
        step["percent"] = reply.text.strip()
        cost["percent"] += spent
        steps.append(step)
        ended = world.act(word_of(answer.text))
    return {
        "id": f"{task}-{seed}",
        "task": task,
        "messages": messages,
        "stop_reason": "budget" if ended == "budget" else "finished",
        "success": None if ended == "budget" else ended == "success",
        "steps": steps,
        "cost": cost,
    }


def finished(path: pathlib.Path) -> dict[str, dict]:
    """Return the runs that `path` holds, a last line that a kill tore left out."""
    if not path.exists():
        return {}
    whole = path.read_text().rpartition("\n")[0]
    path.write_text(whole + "\n" * bool(whole))
    return {run["id"]: run for run in map(json.loads, whole.splitlines())}


def make(url: str, task: str, seeds: range, path: pathlib.Path) -> list[dict]:
    """Do a run for each seed that `path` does not hold yet, add each run as it ends; return all."""
    there = finished(path)
    left = [seed for seed in seeds if f"{task}-{seed}" not in there]
    models: queue.SimpleQueue[Model] = queue.SimpleQueue()
    for slot in range(SLOTS):
        models.put(Model(url, slot))

    def with_a_slot(seed):
        model = models.get()
        try:
            return run(model, task, seed)
        finally:
            models.put(model)

    with path.open("a") as out, ThreadPoolExecutor(SLOTS) as pool:
        ends = as_completed([pool.submit(with_a_slot, seed) for seed in left])
        for end in tqdm(ends, total=len(left), desc=path.stem, disable=not left):
            result = end.result()
            there[result["id"]] = result
            out.write(json.dumps(result) + "\n")
            out.flush()
    return [there[f"{task}-{seed}"] for seed in seeds]


def record(model: str, run: dict) -> dict:
    messages, steps = [], iter(run["steps"])
    for message in run["messages"]:
        streams = {}
        if message["role"] == "assistant":
            step = next(steps)
            streams = {"confidence": percent_share(step["percent"])}
            streams |= {name: step[name] for name in ("p_true", "p_success", "samples")}
        messages.append(message | streams)
    return {
        "id": f"{model}-{run['id']}",
        "task": run["id"],
        "model": model,
        "family": run["task"],
        "stop_reason": run["stop_reason"],
        "success": run["success"],
        "messages": messages,
    }


def write(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Write the log of all runs in `folder`, in the order of models, tasks and seeds."""
    lines = []
    for model, task in itertools.product(MODELS, TASKS):
        runs = list(finished(folder / f"{model}-{task}.jsonl").values())
        runs.sort(key=lambda run: int(run["id"].rpartition("-")[2]))
        lines += [json.dumps(record(model, run), separators=(",", ":")) for run in runs]
    text = "".join(line + "\n" for line in lines)
    # no time of making in the file: the same runs make the same bytes
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{path}: {len(lines)} runs, {path.stat().st_size / 1e6:.2f} MB")
