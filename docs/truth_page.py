"""What the page on the truth of real runs shows: docs/stored/truth.json and truth_checked.json.

``python benchmarks/truth.py --out docs/stored/truth.json`` makes the numbers of the first,
``python benchmarks/real_agents truth FOLDER`` those of the second.
"""

import json
from pathlib import Path

from board_page import list_table, thousandths
from confidences_page import MODELS, STREAMS

STORED = Path(__file__).resolve().parent / "stored" / "truth.json"
SETS = {"both": "Both models", **MODELS}
OWN = ", own weights"


def write_truth(generated, stored=STORED):
    """Write the tables that the page includes."""
    figures = json.loads(stored.read_text(encoding="utf-8"))
    checked = json.loads(stored.with_name("truth_checked.json").read_text(encoding="utf-8"))
    parts = {
        "limit": limit(figures),
        "distances": distances(figures["both"]),
        "agreement": agreement(figures),
        "orders": orders(figures),
        "checked": checks(checked),
    }
    for name, text in parts.items():
        (generated / f"truth_{name}.inc").write_text(text + "\n", encoding="utf-8")


def called(name):
    """Return what a forecast is called on the page."""
    signal = name.removesuffix(OWN)
    return STREAMS.get(signal, (signal,))[0] + name.removeprefix(signal)


def interval(row):
    """Write a number with its interval, in thousandths."""
    return "{} [{}, {}]".format(*map(thousandths, row))


def limit(figures):
    """Return a row a set of runs: what the truth is worth, and the best forecast."""
    rows = [
        ["Runs", "Succeed", "Certain", "Truth, by outcomes", "Truth, by itself", "Best forecast"]
    ]
    for name, own in figures.items():
        to_truth = own["distance"]["log"]
        best = min(to_truth, key=lambda one: to_truth[one][0])
        rows.append(
            [
                f"{SETS[name]} ({own['n_runs']:,} of {own['n_tasks']} tasks)",
                f"{own['success']:.0%}",
                f"{own['certain_before_the_last']:.0%}",
                interval(own["margin"]["truth"]),
                interval(to_truth["base rate"]),
                f"{called(best)}: {interval(own['margin'][best])}",
            ]
        )
    return list_table(rows)


def distances(own):
    """Return a row a forecast, the nearest first: distances, margins, and what metrics say."""
    rows = [
        [
            "Forecast",
            "Distance, log",
            "Distance, squared",
            "Margin",
            "Own weights",
            "AUROC",
            "T-ECE",
        ]
    ]
    of = {metric: row["values"] for metric, row in own["orders"].items()}
    for name, distance in sorted(own["distance"]["log"].items(), key=lambda item: item[1][0]):
        margin = own["margin"].get(name)
        rows.append(
            [
                called(name),
                interval(distance),
                interval(own["distance"]["brier"][name]),
                interval(margin) if margin else "0",
                f"{1000 * of['own weights'][name]:.0f}",
                f"{of['AUROC'][name]:.2f}",
                f"{-of['T-ECE'][name]:.3f}",
            ]
        )
    return list_table(rows)


def agreement(figures):
    """Return a row a set and score: how far differences of scores are from those of distances."""
    rows = [["Runs", "Score", "Pairs", "Beyond two errors", "Largest z", "Holm's p, least"]]
    for name, own in figures.items():
        for score, found in own["agreement"].items():
            rows.append(
                [
                    SETS[name],
                    score,
                    str(found["n_pairs"]),
                    str(found["n_beyond_two"]),
                    f"{found['largest_z']:.1f}",
                    f"{found['smallest_p_holm']:.2f}",
                ]
            )
    return list_table(rows)


def orders(figures):
    """Return a row a metric: how its order of the forecasts agrees with that by distance."""
    rows = [["Order by", *(f"{SETS[name]}" for name in figures)]]
    for metric in list(figures["both"]["orders"])[1:]:
        cells = (own["orders"][metric] for own in figures.values())
        rows.append(
            [
                metric,
                *(
                    "{:.2f} [{:.2f}, {:.2f}]; {} turned round, {} beyond doubt".format(
                        *cell["tau"], cell["n_turned"], cell["n_beyond_doubt"]
                    )
                    for cell in cells
                ),
            ]
        )
    return list_table(rows)


def checks(checked):
    """Return a row a model: its own answers against the chances."""
    rows = [
        ["Model", "Answers drawn anew", "Steps of the runs", "Certain", "Contradicted", "Error"]
    ]
    for model, own in checked.items():
        rows.append(
            [
                MODELS[model],
                f"{anew}; z = {own['drawn_mean_z']:.1f}",
                f"{own['n_steps']:,}, z = {own['steps_z']:.1f}",
                f"{own['n_certain']:,}",
                str(own["n_contradicted"]),
                f"{own['largest_error']:.4f}",
            ]
        )
    return list_table(rows)
