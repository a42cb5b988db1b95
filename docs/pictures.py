"""Pictures of the documentation: of each display, of the layers, and those of guides."""

import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    TracerScorer,
    TrajectoryArray,
    evaluate,
    plotting,
)
from trajscore.datasets import load_chess, make_trajectories
from trajscore.metrics import aggregate
from trajscore.monitoring import CalibratedVerifier, RawVerifier
from trajscore.plotting._display import COLORS, GREY

DOCS = Path(__file__).resolve().parent


def draw_all(folder):
    """Draw what pages include from the folder."""
    shown = folder / "displays"
    shown.mkdir(parents=True, exist_ok=True)
    (folder / "layers.svg").write_text(layers())
    with plt.rc_context({"svg.hashsalt": "trajscore", "font.size": 11}):
        for name, draw in displays().items():
            draw().figure_.savefig(shown / f"{name}.svg", metadata={"Date": None})
            plt.close("all")
        for draw in (meaning, worth):
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
    calibrated = PlattCrossFitCalibrator().fit_transform(engine, won)
    both = {"engine, recalibrated": calibrated, "material, as given": material}
    halfway = aggregate(calibrated.prefix(15), "last")
    answers = {"correct": (halfway > 0.5) == won, "confidence": np.maximum(halfway, 1 - halfway)}

    scores, solved = make_trajectories(
        4000, lengths=(4, 12), information=0.8, random_state=1, return_X_y=True
    )
    alpha, rules = [0.05, 0.1, 0.2], {}
    for name, rule in {
        "e-process": DensityRatioEProcess(alpha=alpha),
        "score below alpha": RawVerifier(alpha=alpha),
        "the same, calibrated": CalibratedVerifier(alpha=alpha),
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
        "MurphyDisplay": lambda: p.MurphyDisplay.from_predictions(won, material, name="material"),
        "StepProfileDisplay": lambda: p.StepProfileDisplay.from_predictions(
            y, X["material"], name="material"
        ),
        "LengthDisplay": lambda: p.LengthDisplay.from_predictions(y, X),
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
        "EarlyWarningDisplay": lambda: p.EarlyWarningDisplay.from_predictions(
            won, {"1 - engine": engine.with_cells(1 - engine.cells)}
        ),
        "TracerStripDisplay": lambda: p.TracerStripDisplay.from_estimator(*_strip()),
    }


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


# -------------------------------------------------------------------- first page


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
    ax.set(title="Is it worth more than the base rate?", xlabel="Brier score of the whole trace")
    ax.spines[["top", "right"]].set_visible(False)


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
