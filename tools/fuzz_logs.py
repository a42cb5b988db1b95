"""What readers do with damaged logs: read them right, refuse them in a sentence, or fail.

    python tools/fuzz_logs.py LOGS... [--n 20000] [--seed 0] [--show 5]

LOGS are files or folders of good logs. Each mutation takes one of them, cut down to a few runs, and
truncates it, drops, renames, repeats or nests a part, gives it another type, or puts garbage bytes
into it. What comes of it is one of:

sane      it is read; every invariant of runs holds, and tables and signals follow
refused   an error of one sentence that names the file, or says that there are no outcomes
raw       any other error
nonsense  it is read, but an invariant does not hold
hang      it takes longer than ten seconds

The exit code is 1 where there is one of raw, nonsense and hang. A mutation can be made again from
its number, which is said with it: --only NUMBER.
"""

import argparse
import copy
import gzip
import json
import math
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

from trajscore import StepConfidence, io
from trajscore.io.files import LogFile

SECONDS = 10
ENDINGS = (".json", ".jsonl", ".traj", ".json.gz", ".jsonl.gz")
IN_VALUES = ["drop", "retype", "nest", "repeat", "rename", "shuffle"]
IN_BYTES = ["truncate", "bytes", "deep", "gzip"]
SMALL = 3  # runs of a log that are kept
ODD = [
    None, True, False, 0, 1, -1, 7, 0.5, -1e308, 10**400, math.nan, math.inf, "", "x", "nan",
    "70%", "\ud83d", "\u0000", "a" * 1000, [], {}, [[]], [None], {"": None}, ["x", 1],
    {"role": "assistant"}, [{"role": "assistant"}], {"type": "text"}, [{"type": "tool_use"}],
]  # fmt: skip


# ------------------------------------------------------------------ logs


def seeds(places: list[Path]) -> list[tuple[str, str, object]]:
    """Return the name, the ending and the value of each log; lines are a list."""
    paths = []
    for place in places:
        paths += sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
    found = []
    for path in paths:
        if not path.name.endswith(ENDINGS) or ".chatml." in path.name:
            continue
        try:
            items = list(LogFile(path).items())
        except ValueError:
            continue
        lines = ".jsonl" in path.name
        listed = lines or all(key is None for key, _, _ in items)
        value = [one for _, _, one in items] if listed else {key: one for key, _, one in items}
        found.append((path.name, ".jsonl" if lines else ".json", small(value)))
    return found


def small(value: object) -> object:
    """Keep a few runs of a log, so that a mutation takes no time."""
    if isinstance(value, list):
        return value[: 8 * SMALL]
    for name in ("simulations", "resourceSpans"):
        if isinstance(value, dict) and isinstance(value.get(name), list):
            value = {**value, name: value[name][:SMALL]}
    return value


# ------------------------------------------------------------------ mutations


def places_of(value: object) -> list[tuple[object, object]]:
    """Return each container with each of its keys, at any depth."""
    found, todo = [], [value]
    while todo:
        one = todo.pop()
        keys = (
            list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        )
        for key in keys:
            found.append((one, key))
            todo.append(one[key])
    return found


def mutate(value: object, ending: str, rng: random.Random) -> tuple[str, bytes]:
    """Return what was done, and the damaged log."""
    what = rng.choice([*IN_VALUES, *IN_BYTES])
    value = copy.deepcopy(value)
    if what in IN_VALUES:
        for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
            change(value, what, rng)
    data = as_bytes(value, ending)
    if what == "truncate":
        data = data[: rng.randrange(len(data))]
    elif what == "bytes":
        data = with_garbage(data, rng)
    elif what == "deep":
        depth = rng.choice([100, 900, 2000, 100_000])
        at = rng.randrange(len(data))
        data = data[:at] + rng.choice([b"[", b'{"a":']) * depth + data[at:]
    elif what == "gzip":
        packed = bytearray(gzip.compress(data, mtime=0))
        for _ in range(rng.choice([0, 1, 3])):
            packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        data = bytes(packed[: rng.randrange(len(packed))] if rng.random() < 0.3 else packed)
    return what, data


def change(value: object, what: str, rng: random.Random) -> None:
    """Change one place of a value."""
    found = places_of(value)
    if not found:
        return
    box, key = rng.choice(found)
    if what == "drop":
        del box[key]
    elif what == "retype":
        box[key] = copy.deepcopy(rng.choice(ODD))
    elif what == "nest":
        box[key] = rng.choice([[box[key]], {"value": box[key]}, {str(key): box[key]}, [[box[key]]]])
    elif what == "repeat" and isinstance(box, list):
        box[key:key] = [copy.deepcopy(box[key])] * rng.choice([1, 1, 2, 50])
    elif what == "repeat":
        box[f"{key}_2"] = copy.deepcopy(box[key])
    elif what == "rename" and isinstance(box, dict):
        names = [str(other) for _, other in rng.sample(found, min(8, len(found)))]
        box[rng.choice([*names, str(key).upper(), "x", "role", "content", "id"])] = box.pop(key)
    elif isinstance(box, list):
        rng.shuffle(box)
    else:
        other, place = rng.choice(found)
        if box is not other and not inside(box[key], other) and not inside(other[place], box):
            box[key], other[place] = other[place], box[key]


def inside(value: object, box: object) -> bool:
    """Tell whether a container is part of a value, so that a swap would make a circle."""
    return value is box or any(one[key] is box for one, key in places_of(value))


def as_bytes(value: object, ending: str) -> bytes:
    """Write a value as JSON or JSON lines."""
    lines = ending == ".jsonl" and isinstance(value, list)
    text = "".join(json.dumps(one) + "\n" for one in value) if lines else json.dumps(value)
    return text.encode("utf-8", "surrogatepass")


def with_garbage(data: bytes, rng: random.Random) -> bytes:
    """Change and insert some bytes."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 10, 100])):
        at = rng.randrange(len(changed))
        kind = rng.randrange(3)
        if kind == 0:
            changed[at] = rng.randrange(256)
        elif kind == 1:
            changed[at:at] = rng.randbytes(rng.choice([1, 4]))
        else:
            changed[at:at] = rng.choice([b'"', b"{", b"]", b",", b"\\u", b"\\ud800", b"9" * 5000])
    return bytes(changed)


# ------------------------------------------------------------------ what comes of it


class HangError(BaseException):
    """A mutation that takes too long; nothing catches it on the way."""


def try_out(path: Path) -> tuple[str, str]:
    """Read a log as a user would; return the class of what comes of it, and a word about it."""
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return use(path)
    except HangError:
        return "hang", ""
    except Exception as error:
        said = str(error)
        if clear(error, said, path):
            return "refused", ""
        last = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "raw",
            f"{type(error).__name__}: {said[:200]} ({Path(last.filename).name}:{last.lineno})",
        )
    finally:
        signal.alarm(0)


def clear(error: Exception, said: str, path: Path) -> bool:
    """Tell a refusal of ours: it names the file, in one line that can be written."""
    if not isinstance(error, (ValueError, FileNotFoundError)) or isinstance(error, UnicodeError):
        return False
    return path.name in said and "\n" not in said and said.isprintable()


def use(path: Path) -> tuple[str, str]:
    """Do with a log what its users do."""
    runs = io.read_runs(path)
    if wrong := nonsense(runs):
        return "nonsense", wrong
    io.meta(runs)
    try:
        io.outcomes(runs)
    except ValueError as error:
        if "no run has an outcome" not in str(error):
            raise
    if runs:
        StepConfidence().fit_transform(runs)
    return "sane", ""


def nonsense(runs: io.Runs) -> str:
    """Say which invariant of runs does not hold; "" if all do."""
    if not runs and not runs.left_out:
        return "nothing at all was read"
    for run in runs:
        agent = [step for step in run.steps if step.actor == "agent"]
        held = any(s.text.strip() or s.tool_calls or s.logprobs or s.scores or s.observation
                   or s.confidence is not None for s in agent)  # fmt: skip
        if not held and run.outcome == -1 and run.stop_reason is None:
            return "a run of which nothing is known"
        if held == run.ended_before_start:
            return "a run that ended before it began, or not"
        if not (run.outcome == -1 or 0 <= run.outcome <= 1):
            return f"outcome {run.outcome!r}"
        if not isinstance(run.id, str) or not run.id:
            return f"id {run.id!r}"
        for step in run.steps:
            if wrong := odd_step(step):
                return wrong
    return ""


def odd_step(step: io.Step) -> str:
    """Say which invariant of a step does not hold; "" if all do."""
    if not isinstance(step.text, str) or not isinstance(step.observation, (str, type(None))):
        return f"text {step.text!r:.40}"
    for name in ("confidence", "cost"):
        value = getattr(step, name)
        if value is not None and not (isinstance(value, float) and math.isfinite(value)):
            return f"{name} {value!r}"
    for call in step.tool_calls:
        if not isinstance(call.name, str) or not isinstance(call.result, (str, type(None))):
            return f"call {call!r:.60}"
    (step.text + (step.observation or "")).encode()
    return ""


def main() -> int:
    """Mutate, read, count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=3, help="examples of each error")
    parser.add_argument("--only", type=int, help="number of one mutation; its log is kept")
    args = parser.parse_args()

    def stop(*_: object) -> None:
        raise HangError

    signal.signal(signal.SIGALRM, stop)
    logs = seeds(args.logs)
    counts: Counter[tuple[str, str]] = Counter()
    bad: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.n) if args.only is None else [args.only]:
            rng = random.Random(f"{args.seed}-{number}")
            name, ending, value = rng.choice(logs)
            what, data = mutate(value, ending, rng)
            path = Path(folder if args.only is None else ".") / f"log-{number}{ending}"
            path.write_bytes(data)
            found, said = try_out(path)
            if args.only is None:
                path.unlink()
            counts[what, found] += 1
            if found in ("raw", "nonsense", "hang"):
                bad.setdefault(f"{found}: {said}", []).append(f"{name} {what} --only {number}")
    return report(counts, bad, args.show)


def report(counts: Counter[tuple[str, str]], bad: dict[str, list[str]], show: int) -> int:
    """Print how many mutations came to what, and the errors, the most frequent first."""
    kinds = ["sane", "refused", "raw", "nonsense", "hang"]
    print(f"{'mutation':<10}" + "".join(f"{kind:>10}" for kind in kinds))
    for what in sorted({what for what, _ in counts}):
        print(f"{what:<10}" + "".join(f"{counts[what, kind]:>10}" for kind in kinds))
    total = [sum(n for (_, found), n in counts.items() if found == kind) for kind in kinds]
    print(f"{'all':<10}" + "".join(f"{n:>10}" for n in total))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    for said, where in sorted(bad.items(), key=lambda pair: -len(pair[1])):
        print(f"\n{len(where)} times {said}")
        for one in where[:show]:
            print(f"    {one}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
