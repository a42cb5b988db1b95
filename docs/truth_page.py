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
        "answer": answer(figures["both"]),
        "limit": limit(figures),
        "distances": distances(figures["both"]),
        "agreement": agreement(figures),
        "orders": orders(figures),
        "leaning": leaning(figures["both"]),
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


def answer(own):
    """Say what the truth is worth, who comes near, and which metrics show it."""
    to_truth = own["distance"]["log"]
    best = nearest(own)
    share = own["margin"][best][0] / own["margin"]["truth"][0]
    tau = ", ".join(
        f"{row['tau'][0]:.2f} by {metric}" for metric, row in list(own["orders"].items())[1:]
    )
    return (
        f"The truth is worth {own['margin']['truth'][0]:.3f} nats more than the base rate, and the "
        f"best forecast ({called(best)}) {own['margin'][best][0]:.3f}, or {share:.0%} of it. Order "
        f"{len(to_truth)} forecasts by their distance to the truth: Kendall's rank correlation "
        f"with that order is {tau}."
    )


def nearest(own):
    """Return the forecast that is nearest to the truth."""
    to_truth = own["distance"]["log"]
    return min(to_truth, key=lambda name: to_truth[name][0])


def limit(figures):
    """Return a row a set of runs: what the truth is worth, and the best forecast."""
    rows = [["Runs", "Succeed", "Truth, by outcomes", "Truth, by itself", "Best forecast"]]
    for name, own in figures.items():
        runs = f"{SETS[name]} ({own['n_runs']:,} of {own['n_tasks']} tasks)"
        to_truth = own["distance"]["log"]
        best = nearest(own)
        truth = [interval(own["margin"]["truth"]), interval(to_truth["base rate"])]
        of_best = f"{called(best)}: {interval(own['margin'][best])}"
        rows.append([runs, f"{own['success']:.0%}", *truth, of_best])
    return list_table(rows)


def distances(own):
    """Return a row a forecast, the nearest first: distances, margins, and what metrics say."""
    head = "Forecast; Distance, log; Distance, squared; Margin; Own weights; AUROC; T-ECE"
    rows = [head.split("; ")]
    of = {metric: row["values"] for metric, row in own["orders"].items()}
    for name, distance in sorted(own["distance"]["log"].items(), key=lambda item: item[1][0]):
        margin = own["margin"].get(name, (0, 0, 0))
        away = [
            interval(row).replace("+", "") for row in (distance, own["distance"]["brier"][name])
        ]
        others = f"{1000 * of['own weights'][name]:.0f}", f"{of['AUROC'][name]:.2f}"
        rows.append([called(name), *away, interval(margin), *others, f"{-of['T-ECE'][name]:.3f}"])
    return list_table(rows)


def agreement(figures):
    """Return a row a set and score: how far differences of scores are from those of distances."""
    rows = [["Runs", "Score", "Pairs", "z above 2", "Largest z", "Smallest p (Holm)"]]
    for name, own in figures.items():
        for score, of in own["agreement"].items():
            z, p = f"{of['largest_z']:.1f}", f"{of['smallest_p_holm']:.2f}"
            rows.append([SETS[name], score, f"{of['n_pairs']}", f"{of['n_beyond_two']}", z, p])
    return list_table(rows)


def orders(figures):
    """Return a row a metric: how its order of the forecasts agrees with that by distance."""
    rows = [["Order by", *(SETS[name] for name in figures)]]
    for metric in list(figures["both"]["orders"])[1:]:
        rows.append([metric])
        for own in figures.values():
            of = own["orders"][metric]
            tau = "{:.2f} [{:.2f}, {:.2f}]".format(*of["tau"])
            rows[-1].append(f"{tau}; reversed {of['n_turned']}, clearly {of['n_clear']}")
    return list_table(rows)


def leaning(own):
    """Say what the paper's weights, AUROC and T-ECE prefer to forecasts that are nearer."""
    of = {metric: row["values"] for metric, row in own["orders"].items()}
    signals = [name for name in of["distance"] if name + OWN in of["distance"]]
    farther = sum(of["distance"][name + OWN] < of["distance"][name] for name in signals)
    preferred = sum(of["own weights"][name + OWN] > of["own weights"][name] for name in signals)
    firsts = {metric: max(of[metric], key=of[metric].get) for metric in ("AUROC", "T-ECE")}
    place = {
        metric: 1 + sum(value > of["distance"][first] for value in of["distance"].values())
        for metric, first in firsts.items()
    }
    return (
        f"Recalibrated by the paper's weights, {farther} of {len(signals)} signals are farther "
        f"from the truth, and the score by the same weights prefers {preferred} of them. AUROC "
        f"puts *{called(firsts['AUROC'])}* first, number {place['AUROC']} by distance; T-ECE "
        f"puts *{called(firsts['T-ECE'])}* first, number {place['T-ECE']} of {len(of['distance'])}."
    )


def checks(checked):
    """Return a row a model: its own answers against the chances."""
    rows = [["Model", "Answers drawn anew", "Steps of the runs", "Certain", "Contradicted"]]
    for model, own in checked.items():
        anew = "chi-square {drawn_chi2:.0f} of {n_drawn}, p = {drawn_p_value:.2f}".format(**own)
        steps = "{n_steps:,}; z = {steps_z:.1f}, by the log {logged_z:.1f}".format(**own)
        wrong = "{n_contradicted}, by the log {n_logged_contradicted}".format(**own)
        rows.append([MODELS[model], anew, steps, f"{own['n_certain']:,}", wrong])
    off = [f"{own['off_in_doubt']:.3f} ({MODELS[model]})" for model, own in checked.items()]
    return (
        f"{list_table(rows)}\n\nWhere a doubt is left, chances by the log differ from these by "
        f"{' and '.join(off)}, root mean square."
    )
