"""What the page on getting confidences shows of real models: docs/stored/real_agents.json.

``python benchmarks/real_agents figures FOLDER`` makes the numbers.
"""

import json
import math
from pathlib import Path

from board_page import list_table, thousandths

STORED = Path(__file__).resolve().parent / "stored" / "real_agents.json"
MODELS = {"gemma3_270m": "Gemma 3 270M", "smollm2_135m": "SmolLM2 135M"}
STREAMS = {  # what it is called, and which calls it needs beside the agent's own
    "token_probability": ("token probability", None),
    "entropy_confidence": ("entropy of tokens", None),
    "p_true": ("P(true)", "p_true"),
    "p_success": ("P(success)", "p_success"),
    "verbal": ("stated percent", "percent"),
    "agreement": ("agreement of samples", "samples"),
    "semantic_confidence": ("semantic entropy of samples", "samples"),
    "judge": ("judge: the other model", "judge"),
}
OFTEN_MISSING = 0.05  # the share that is worth a word
OF_MARGINS = """\
Margin over the base rate after recalibration, in thousandths of a nat, with its 95% interval;
higher is better, and the best of a set is **bold**. Costs come on top of the agent's own call. They
count the whole prompt of each call, of which servers that keep a prompt read little again. The
judge was asked by the prompt of before further lines were marked."""
OF_RISKS = """\
The AUROC of failing, of whole runs, for risks that need no calibration (0.5 is chance). Run length
needs nothing; TRACER does without log-probabilities, SAUP and mean surprisal do not; semantic
entropy needs samples."""


def write_confidences(generated, stored=STORED):
    """Write the tables that the page includes."""
    figures = json.loads(stored.read_text(encoding="utf-8"))
    sets = figures["sets"]
    head = [headline(name, of_set) for name, of_set in sets.items()]
    parts = [
        OF_MARGINS,
        list_table([["Confidence", "A step costs", *head], *margins(sets, figures["cost"])]),
        OF_RISKS,
        list_table([["Risk", *head], *aurocs(sets)]),
    ]
    (generated / "real_agents.inc").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def headline(name, of_set):
    """Name a set, with its number of runs and the share that succeeds."""
    model, _, task = name.partition(" ")
    share = of_set["success"] / of_set["n_runs"]
    return f"{MODELS[model]}, {task} ({of_set['n_runs']:,} runs, {share:.0%} succeed)"


def margins(sets, cost):
    """Return a row a stream: its name, what it costs, its margin in each set."""
    of_sets = [{**of_set["streams"], "judge": of_set.get("judge")} for of_set in sets.values()]
    own = [name for name in STREAMS if name != "judge"]  # which has fewer runs
    best = [max(own, key=lambda name, rows=rows: middle(rows.get(name))) for rows in of_sets]
    return [
        [
            label,
            price(calls, cost),
            *(
                cell(rows.get(name), name == first)
                for rows, first in zip(of_sets, best, strict=True)
            ),
        ]
        for name, (label, calls) in STREAMS.items()
    ]


def middle(row):
    """Return a margin for choosing the best; of none, the lowest."""
    value = row["recalibrated"][0] if row else None
    return -math.inf if value is None or math.isnan(value) else value


def cell(row, is_best):
    """Write a margin with its interval, and how often the confidence is missing."""
    if middle(row) == -math.inf:
        return "none" if row else ""
    value, low, high = map(thousandths, row["recalibrated"])
    text = f"**{value}** [{low}, {high}]" if is_best else f"{value} [{low}, {high}]"
    if "judge" in row:
        text += f"; {row['n_runs']} runs"
    missing = row.get("missing") or 0
    return f"{text}; {missing:.0%} missing" if missing >= OFTEN_MISSING else text


def price(calls, cost):
    """Write the calls and tokens of a step, averaged over the models."""
    if calls is None:
        return "nothing"
    spent = [of_model[calls] for of_model in cost.values() if calls in of_model]
    if not spent:
        return "1 call"
    mean = {name: sum(one[name] for one in spent) / len(spent) for name in spent[0]}
    tokens = mean["prompt_tokens"] + mean["completion_tokens"]
    number = round(mean["calls"])
    return f"{number} call{'s' * (number > 1)}, {tokens:,.0f} tokens"


def aurocs(sets):
    """Return a row a risk: its name, and its AUROC in each set."""
    names = next(iter(sets.values()))["risks"]
    rows = [[of_set["risks"][name] for of_set in sets.values()] for name in names]
    return [
        [name, *("{:.2f} [{:.2f}, {:.2f}]".format(*row) for row in own)]
        for name, own in zip(names, rows, strict=True)
    ]
