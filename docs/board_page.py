"""What the page of the board shows: tables, sentences and a picture, all of docs/stored/board.json.

``python benchmarks/board.py --out docs/stored/board.json`` makes the numbers.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from trajscore.plotting._display import SERIES

STORED = Path(__file__).resolve().parent / "stored" / "board.json"
ENTRIES = (
    "repeated calls", "TRACER", "agent-tracer", "actions", "text classifier", "token probability",
    "identity",
)  # fmt: skip
BESIDE = ("identity and TRACER", "identity and actions", "identity and text classifier")
VALUES = ("as stated", "Platt", "Platt and step", "Platt, step and history", "e-valuator")
SHOWN = ("TRACER", "actions", "text classifier")
LEVEL = 0.05


def write_board(generated, stored=STORED):
    """Write everything that the page and the first page of the docs include."""
    board = json.loads(stored.read_text())
    logs, values = (
        [of_set for of_set in board["sets"] if of_set["kind"] == kind] for kind in ("log", "values")
    )
    known = [log for log in logs if "identity" in log["rows"]]
    parts = {
        "answer": answer(logs, known),
        "logs": table(logs, ("length over base rate", *ENTRIES)),
        "ranks": ranks(board["ranks"]),
        "beside": table(known, BESIDE),
        "values": table(values, ("length over base rate", *VALUES)),
        "of_values": of_values(values),
        "how": how(board, logs, values),
    }
    for name, text in parts.items():
        (generated / f"board_{name}.inc").write_text(text + "\n")
    with plt.rc_context({"svg.hashsalt": "trajscore", "font.size": 11}):
        figure = picture(logs)
        figure.savefig(generated / "board.svg", metadata={"Date": None})
    plt.close("all")


# -------------------------------------------------------------------- tables


def margin(of_set, name):
    """Return the row of an entry's margin; of length, that over the base rate."""
    if name != "length over base rate":
        return of_set["rows"].get(name)
    row = of_set["rows"]["base rate"]
    return {"margin": -row["margin"], "low": -row["high"], "high": -row["low"]} | {
        "p_holm": row["p_holm"]
    }


def wins(sets, name):
    """Return in how many sets an entry is ahead of what it is held against."""
    rows = [margin(of_set, name) for of_set in sets]
    return sum(row is not None and row["margin"] > 0 and row["p_holm"] < LEVEL for row in rows)


def losses(sets, name):
    """Return in how many sets an entry is behind what it is held against."""
    rows = [margin(of_set, name) for of_set in sets]
    return sum(row is not None and row["margin"] < 0 and row["p_holm"] < LEVEL for row in rows)


def table(sets, names):
    """Write margins in thousandths of a nat, a row a set."""
    rows = [["Set (runs / groups, success)", *names]]
    for of_set in sets:
        size = f"{of_set['runs']:,} / {of_set['groups']:,}, {of_set['success']:.0%}"
        cells = (cell(margin(of_set, name), of_set, name) for name in names)
        rows.append([f"{of_set['name']} ({size})", *cells])
    return list_table(rows)


def list_table(rows):
    """Write a table in reStructuredText; the first row is its head."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'  ' if k else '* '}- {text}" for k, text in enumerate(row)]
    return "\n".join(lines)


def cell(row, of_set, name):
    """Write a margin with its interval; a star where it differs from 0."""
    if row is None:
        return "refused" if name in of_set["refused"] else ""
    value, low, high = (thousandths(row[part]) for part in ("margin", "low", "high"))
    if value == "0":
        return value
    value = rf"**{value}**\*" if row["p_holm"] < LEVEL else value
    return f"{value} [{low}, {high}]"


def thousandths(nats):
    """Write a margin in thousandths of a nat, with its sign."""
    number = round(1000 * nats)
    return f"{number:+d}" if number else "0"


# -------------------------------------------------------------------- sentences


def listed(names):
    """Join words as a sentence does."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def answer(logs, known):
    """Say in one sentence how often entries are ahead of counting steps."""
    counts = [
        f"{name} {wins(logs, name)}"
        for name in ("TRACER", "repeated calls", "actions", "text classifier")
    ]
    beside = sum(wins(known, name) for name in BESIDE)
    with_tokens = [log for log in logs if "token probability" in log["rows"]]
    tokens = wins(with_tokens, "token probability")
    return (
        f"On {len(logs)} public logs, monitors beat the forecast from the number of steps alone as "
        f"often as this: {listed(counts)}; token probability on {tokens} of the "
        f"{len(with_tokens)} that hold it; and where the agent, task or environment is known as "
        f"well, {beside} of {len(known) * len(BESIDE)} comparisons show a gain (5% level, Holm)."
    )


def ranks(found):
    """Say which entries are tied across logs."""
    p = found["friedman_p"]
    order = [f"{name} {rank:.1f}" for name, rank in found["mean_rank"].items()]
    groups = [f"({', '.join(group)})" for group in found["tied"]]
    return (
        f"Mean ranks over {found['sets']} logs, 1 is best: {', '.join(order)}. Friedman's test: "
        f"p {'< .001' if p < 0.001 else f'= {p:.3f}'}. Mean ranks closer than "
        f"{found['critical_difference']:.1f} (Nemenyi, 5%) are tied: {listed(groups)}."
    )


def of_values(values):
    """Say how often stated values are ahead of counting steps, as stated and recalibrated."""
    counts = [
        f"*{name}* is ahead on {wins(values, name)} and behind on {losses(values, name)}"
        for name in VALUES
    ]
    return f"Of {len(values)} sets, against the length: {'; '.join(counts)}."


def how(board, logs, values):
    """Say how the numbers were made."""
    return (
        f"Forecasts are those of fits on other groups: {board['folds']} folds, drawn "
        f"{board['repeats']} times. Steps 1 to {board['horizon']} count, with the weights "
        f'"{board["weights"]}" (1 / sqrt(t)), for all sets alike: {len(logs)} logs with '
        f"{sum(log['runs'] for log in logs):,} runs, and {len(values)} sets of stated values with "
        f"{sum(of_set['runs'] for of_set in values):,}."
    )


# -------------------------------------------------------------------- the picture


def picture(logs):
    """Draw margins with their intervals, a row a log."""
    figure, ax = plt.subplots(figsize=(7.6, 0.5 + 0.45 * len(logs)), layout="constrained")
    place = np.arange(len(logs))[::-1]
    for k, (name, color) in enumerate(zip(SHOWN, SERIES, strict=False)):
        rows = [margin(log, name) for log in logs]
        y = place + 0.22 * (1 - k)
        x = np.array([1000 * row["margin"] if row else np.nan for row in rows])
        drawn = [abs(value) >= 0.5 for value in x]  # elsewhere the forecast is that from length
        ends = np.array(
            [[1000 * row["low"], 1000 * row["high"]] if row else [0, 0] for row in rows]
        )
        ax.plot(x, y, "o", color=color, markersize=5, label=name)
        ax.hlines(y[drawn], ends[drawn, 0], ends[drawn, 1], color=color, linewidth=1.5)
    ax.axvline(0, color="0.6", linewidth=1, zorder=0)
    ax.set_yticks(place, [log["name"] for log in logs])
    ax.set_xlabel("ahead of counting steps, thousandths of a nat")
    ax.legend(loc="lower left", frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure
