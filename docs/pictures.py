"""Pictures of the documentation: of each display, of the layers, and those of guides."""

import json
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import truth_page
from confidences_page import MODELS, STORED, STREAMS
from scipy.stats import rankdata

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    TraceAggregator,
    TracerScorer,
    TrajectoryArray,
    evaluate,
    plotting,
)
from trajscore.datasets import load_chess, load_who_and_when, make_trajectories
from trajscore.localization import FirstErrorLocator, FirstErrorWindow
from trajscore.monitoring import CalibratedVerifier, FleetMonitor, RawVerifier
from trajscore.plotting._display import COLORS, GREY, SERIES

DOCS = Path(__file__).resolve().parent
PLACED = (
    "alive rate, end known", "all together", "token_probability", "token_probability, own weights",
    "base rate", "verbal, own weights",
)  # fmt: skip


def draw_all(folder):
    """Draw what pages include from the folder."""
    shown = folder / "displays"
    shown.mkdir(parents=True, exist_ok=True)
    (folder / "layers.svg").write_text(layers())
    with plt.rc_context({"svg.hashsalt": "trajscore", "font.size": 11}):
        for name, draw in displays().items():
            draw().figure_.savefig(shown / f"{name}.svg", metadata={"Date": None})
            plt.close("all")
        for draw in (meaning, worth, ranking, games, gates, ways, orders):
            figure, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
            draw(ax)
            figure.savefig(folder / f"{draw.__name__}.svg", metadata={"Date": None})
    plt.close("all")


# -------------------------------------------------------------------- displays


def displays():
    """Return, for the name of each display, what draws it."""
    X, y = load_chess(return_X_y=True)
    known = y >= 0
    engine, material, won = X["engine"][known], X["material"][known], y[known]
    recalibrated = PlattCrossFitCalibrator().fit_transform(engine, won)
    both = {"engine, recalibrated": recalibrated, "material, as given": material}
    early = recalibrated.prefix(15)
    halfway = TraceAggregator().fit(early).predict_proba(early)[:, 1]
    answers = {"correct": (halfway > 0.5) == won, "confidence": np.maximum(halfway, 1 - halfway)}

    scores, solved = make_trajectories(
        4000, lengths=(4, 12), information=0.8, random_state=1, return_X_y=True
    )
    alpha, rules = [0.05, 0.1, 0.2], {}
    for name, rule in {
        "e-process": DensityRatioEProcess(alpha=alpha),
        "score below alpha": RawVerifier(alpha=alpha),
        "the same, recalibrated": CalibratedVerifier(alpha=alpha),
    }.items():
        rules[name] = rule.fit(scores[:2000], solved[:2000])
    new, outcome = scores[2000:], solved[2000:]
    report = evaluate(X, y)
    p = plotting
    return {
        "ReliabilityDisplay": lambda: p.ReliabilityDisplay.from_predictions(
            won, material, phi="last", name="material, as given"
        ),
        "DecompositionDisplay": lambda: p.DecompositionDisplay.from_predictions(won, both),
        "StepProfileDisplay": lambda: p.StepProfileDisplay.from_predictions(
            y, X["material"], name="material"
        ),
        "ScoreDisplay": lambda: p.ScoreDisplay.from_intervals(report.intervals, "TPS brier"),
        "CostCurveDisplay": lambda: p.CostCurveDisplay.from_predictions(
            **answers, n=2, name="engine"
        ),
        "RiskCoverageDisplay": lambda: p.RiskCoverageDisplay.from_predictions(
            **answers, name="engine"
        ),
        "TerminationDisplay": lambda: p.TerminationDisplay.from_predictions(
            y, X.meta["stop_reason"]
        ),
        "EProcessDisplay": lambda: p.EProcessDisplay.from_estimator(
            rules["e-process"], new, outcome, alpha=0.1
        ),
        "PowerDisplay": lambda: p.PowerDisplay.from_estimator(rules, new, outcome),
        "SavingsDisplay": lambda: p.SavingsDisplay.from_estimator(rules, new, outcome),
        "FleetDisplay": lambda: p.FleetDisplay.from_estimator(*_fleet()),
        "FirstErrorDisplay": lambda: p.FirstErrorDisplay.from_predictions(*_located(), run=1),
        "EarlyWarningDisplay": lambda: p.EarlyWarningDisplay.from_predictions(
            won, {"1 - engine": engine.with_cells(1 - engine.cells)}
        ),
        "TracerStripDisplay": lambda: p.TracerStripDisplay.from_estimator(*_strip()),
    }


def _fleet():
    """A monitor, runs of which the last have a bolder judge, and their outcomes."""
    runs = make_trajectories(3000, random_state=0)
    X, y = runs.q, runs.target
    bolder = X[2000:].with_cells(X[2000:].cells ** 0.3)
    later = TrajectoryArray.concat([X[1000:2000], bolder])
    return FleetMonitor().fit(X[:1000], y[:1000]), later, y[1000:]


def _located():
    """Return out-of-fold distributions over the steps of runs, and windows."""
    X, first_error = load_who_and_when(return_X_y=True)
    P = FirstErrorLocator().fit_transform(X, first_error, X.meta["question"])
    return P, FirstErrorWindow().fit(P, first_error, X.meta["question"]).transform(P)


def _strip():
    """Return a scorer and signals of one run that goes wrong near its end."""
    rng = np.random.default_rng(3)
    cells = np.clip(rng.normal(0.25, 0.12, (18, 5)), 0, 1)
    cells[11:15] += [0.3, 0.45, 0.35, 0.3, 0]
    cells[:, 4] = np.arange(18) % 2
    cells[cells[:, 4] == 0, :3] = np.nan
    cells[cells[:, 4] == 1, 3] = np.nan
    names = ["surprisal", "repetition", "agent_gap", "user_gap", "is_agent"]
    one = TrajectoryArray(cells, [18], channels=names, ids=["17"], missing="allow")
    return TracerScorer(k=0.2).fit(one), one


# -------------------------------------------------------------------- guides


def meaning(ax):
    """Draw what a confidence means, as given and recalibrated: one sees that it misleads."""
    X, y = load_chess(return_X_y=True)
    known = y >= 0
    recalibrated = PlattCrossFitCalibrator().fit_transform(X["engine"], y)
    for name, trace, color in (
        ("as given", X["engine"], COLORS["as_given"]),
        ("recalibrated", recalibrated, COLORS["recalibrated"]),
    ):
        steps, outcome = trace[known].cells, np.repeat(y[known], trace[known].lengths)
        place = np.clip((steps * 10).astype(int), 0, 9)
        n = np.bincount(place, minlength=10)
        used = n > 50
        mean = np.bincount(place, steps, 10)[used] / n[used]
        rate = np.bincount(place, outcome, 10)[used] / n[used]
        ax.plot(mean, rate, "o-", color=color, markersize=4, label=name, clip_on=False)
    ax.plot([0, 1], [0, 1], "--", color=GREY, linewidth=1)
    ax.set(xlabel="forecast at a step", ylabel="share of these that succeed", aspect="equal")
    ax.set(xlim=(0, 1), ylim=(0, 1), title="What does 0.9 mean?")
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)


def worth(ax):
    """Draw what the forecasts are worth, of all predictors."""
    report = evaluate(*load_chess(return_X_y=True))
    plotting.ScoreDisplay.from_intervals(report.intervals, "TPS brier", ax=ax)
    ax.set(title="Better than the base rate?", xlabel="Brier score of the whole trace")
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["top", "right"]].set_visible(False)


def ranking(ax):
    """Draw that recalibration moves the score of predictors, and hardly their AUROC."""
    table = evaluate(*load_chess(return_X_y=True)).table
    for name in ("engine", "shallow", "material"):
        (before, after) = (
            table.loc[(name, form), ["AUROC", "TPS log margin"]]
            for form in ("as_given", "recalibrated")
        )
        ax.annotate("", after, before, arrowprops={"arrowstyle": "->", "color": GREY})
        ax.plot(*before, "o", color=COLORS["as_given"], label="as given")
        ax.plot(*after, "o", color=COLORS["recalibrated"], label="recalibrated")
        ax.annotate(name, before, (8, -4), textcoords="offset points", fontsize="small")
    ax.axhline(0, color=GREY, linestyle="--", linewidth=1)
    ax.text(0.505, 0.06, "base rate", color=GREY, fontsize="small")
    handles, names = ax.get_legend_handles_labels()
    ax.legend(handles[:2], names[:2], frameon=False, fontsize="small", loc="lower left")
    ax.set(xlim=(0.5, 1), xlabel="AUROC", ylabel="log score above the base rate")
    ax.set(title="Ranked well, and worse than a constant")
    ax.spines[["top", "right"]].set_visible(False)


def games(ax):
    """Draw what a container holds: a row of forecasts a run, and how it ended."""
    X, y = load_chess(return_X_y=True)
    recalibrated = PlattCrossFitCalibrator().fit_transform(X["material"], y)
    rows = [row for end in (1, 0, -1) for row in np.flatnonzero(y == end)[:3]]
    shown = recalibrated[rows]
    cells = ax.pcolormesh(
        shown.padded(), cmap="Blues", vmin=0, vmax=1, edgecolors="w", linewidth=0.3
    )
    for k, n in enumerate(shown.lengths):
        ax.text(n + 1, k + 0.5, f"{y[rows[k]]:g}", va="center", fontsize="small")
    ax.set(yticks=np.arange(len(rows)) + 0.5, yticklabels=shown.ids, xlabel="step", xlim=(0, 66))
    ax.set(title="Nine runs, and their outcomes")
    ax.invert_yaxis()
    ax.figure.colorbar(cells, ax=ax, label="forecast of success", ticks=[0, 0.5, 1])
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(left=False)


def gates(ax):
    """Draw when a gate passes: the interval of a change against the margin."""
    margin = -0.05
    cases = {"pass": (-0.03, 0.09), "undecided": (-0.13, 0.07), "fail": (-0.21, -0.08)}
    for k, (low, high) in enumerate(cases.values()):
        ax.plot([low, high], [k, k], color=COLORS["recalibrated"])
        ax.plot((low + high) / 2, k, "o", color=COLORS["recalibrated"])
    ax.axvline(margin, color="black", linestyle="--", linewidth=1)
    ax.text(margin - 0.005, -0.75, "margin", ha="right", va="center", fontsize="small")
    ax.axvline(0, color=GREY, linestyle=":", linewidth=1)
    ax.text(0.005, -0.75, "no change", va="center", fontsize="small", color=GREY)
    ax.set(yticks=range(3), yticklabels=cases, ylim=(2.5, -1), xlim=(-0.24, 0.14))
    ax.set(xlabel="change of the success rate", title="Worse by more than the margin?")
    ax.spines[["top", "right"]].set_visible(False)


def ways(ax):
    """Draw what each way to a confidence was worth, in four sets of runs of real models."""
    sets = json.loads(STORED.read_text(encoding="utf-8"))["sets"]
    for k, (name, of_set) in enumerate(sets.items()):
        rows = {**of_set["streams"], "judge": of_set["judge"]}
        value, low, high = 1000 * np.transpose([rows[way]["recalibrated"] for way in STREAMS])
        model, _, task = name.partition(" ")
        at = np.arange(len(STREAMS)) + 0.18 * (k - 1.5)
        ax.plot([low, high], [at, at], color=SERIES[k], alpha=0.5)
        ax.plot(value, at, "o", color=SERIES[k], markersize=4,
                label=f"{MODELS[model]}, {task}")  # fmt: skip
    ax.axvline(0, color=GREY, linestyle="--", linewidth=1)
    ax.set(yticks=range(len(STREAMS)), yticklabels=[label for label, _ in STREAMS.values()])
    ax.invert_yaxis()
    ax.set(xlabel="margin, thousandths of a nat", title="What each way was worth")
    ax.figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)


def orders(ax):
    """Draw the place of each forecast by its distance to the truth, and by each metric."""
    both = json.loads(truth_page.STORED.read_text(encoding="utf-8"))["both"]["orders"]
    values = np.array([list(row["values"].values()) for row in both.values()])
    place = rankdata(-values, axis=1).T
    names = list(both["distance"]["values"])
    for k in np.argsort(place[:, 0]):
        name = names[k]
        shown = name in PLACED
        color = SERIES[PLACED.index(name)] if shown else GREY
        ax.plot(place[k], "o-", color=color, markersize=4, alpha=1 if shown else 0.3)
        if shown:
            label = {"color": color, "ha": "right", "va": "center", "fontsize": "small"}
            at = (0, place[k, 0])
            ax.annotate(truth_page.called(name), at, (-8, 0), textcoords="offset points", **label)
    ax.set(xticks=range(len(both)), xticklabels=["distance\nto truth", *list(both)[1:]])
    ax.tick_params(axis="x", labelsize="x-small")
    ax.set(yticks=[], title="Order, the best on top")
    ax.invert_yaxis()
    ax.spines[["top", "right", "left"]].set_visible(False)


# -------------------------------------------------------------------- layers


def layers():
    """Draw the levels that pyproject.toml names, the highest on top, a box a package."""
    pyproject = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    levels = pyproject["tool"]["trajscore"]["layers"][::-1]
    boxes = []
    for row, names in enumerate(levels):
        width = 640 / len(names)
        for k, name in enumerate(names):
            x, y = k * width, row * 42
            boxes.append(
                f'<rect x="{x + 4:g}" y="{y + 4}" width="{width - 8:g}" height="34" rx="6"/>'
                f'<text x="{x + width / 2:g}" y="{y + 26}">{name}</text>'
            )
    style = "rect{fill:#e3eff7;stroke:#0077bb}text{text-anchor:middle;font:15px sans-serif}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {len(levels) * 42}">'
        f"<style>{style}</style>{''.join(boxes)}</svg>"
    )
