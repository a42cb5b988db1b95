"""A report as one self-contained page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from trajscore.plotting import LengthDisplay, ReliabilityDisplay, ScoreDisplay, StepProfileDisplay
from trajscore.plotting._display import COLORS
from trajscore.report._data import (
    BASE_RATE,
    CALIBRATED,
    CONSTANT,
    RAW,
    SCALAR_METRICS,
    ReportData,
)
from trajscore.report._disclosures import disclosures, population, sentence
from trajscore.report._verdict import contradictions, verdicts
from trajscore.report.render.cells import gain_cells, margin_cells, stopping_cells

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#222;max-width:74rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2.2rem}
table{border-collapse:collapse;font-size:.82rem;display:block;overflow-x:auto}
th,td{padding:.3rem .45rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
th{background:#f5f5f2}tbody th{text-align:left;font-weight:500;background:none}
figure{margin:1rem 0;display:inline-block}figcaption{font-size:.85rem;color:#555;max-width:30rem}
img{max-width:100%}dt{font-weight:600}dd{margin:0 0 .6rem 0}li{margin:.2rem 0}
"""

_HEAD = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>trajscore report</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>
<h1>Does the confidence mean what it says?</h1>
"""


def to_html(data: ReportData) -> str:
    """Return the report as an HTML page with pictures inside."""
    sections = [
        ("", _list(verdicts(data))),
        ("Raw and calibrated", _forms(data)),
        ("The forecast of every step", _steps_table(data)),
        ("One number a run", _collapsed_table(data)),
        ("Margin over the base rate, on the same runs", margin_cells(data).to_html(border=0)),
        ("What recalibration changes", _gains(data)),
        ("Stopping failing runs early", _stopping(data)),
        ("Notes", _list(sentence(note) for note in data.remarks)),
        (
            "Reliability of one number a run",
            "".join(_reliability(data, name) for name in data.predictors),
        ),
        ("Score by step", "".join(_steps(data, name) for name in data.predictors)),
        ("Length against outcome", _length(data)),
        ("Left out", _left_out(data)),
        ("How this was made", _disclosures(data)),
    ]
    body = "\n".join(
        (f"<h2>{html.escape(title)}</h2>\n" if title else "") + content
        for title, content in sections
        if content
    )
    return f"{_HEAD}{body}\n</body></html>\n"


# -------------------------------------------------------------------- text and tables


def _list(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{html.escape(one)}</li>" for one in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _steps_table(data: ReportData) -> str:
    about = (
        f"Of {population(data.facts)}. Scores: higher is better. S-ECE, the calibration error of "
        f"the forecasts of steps, weighted as the score, in all and by third of the run, and "
        f"{data.options.miscalibration}, the part of the score that the best monotone "
        f"recalibration would gain: lower is better."
    )
    rows = data.table[data.table[data.score_name].notna()]
    return _about(about) + _numbers(rows, ["n_runs", "n_censored", *data.options.step_metrics])


def _collapsed_table(data: ReportData) -> str:
    about = (
        f"The {data.options.phi} forecast of each run, of the same runs. AUROC, AUPRC: higher is "
        f"better. AURC, T-ECE, T-Brier and ECUAS: lower is better. T-ECE does not see skill: a "
        f"constant at the base rate has none."
    )
    table = _numbers(data.table, ["n_runs", "n_censored", *SCALAR_METRICS])
    return _about(about) + table + _list(f"{one}." for one in contradictions(data))


def _about(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _numbers(table: pd.DataFrame, columns: list[str]) -> str:
    return table[columns].to_html(border=0, na_rep="", float_format=lambda value: f"{value:.4f}")


def _gains(data: ReportData) -> str:
    cells = gain_cells(data)
    if cells.empty:
        return ""
    return (
        f"<p>Each metric raw -&gt; calibrated, and the gain with its interval, paired by run; "
        f"above 0 is better, whichever way the metric points.</p>{cells.to_html(border=0)}"
    )


def _stopping(data: ReportData) -> str:
    cells = stopping_cells(data)
    if cells.empty:
        return ""
    return (
        f"<p>Share of good runs flagged (false alarms, to be at most the level alpha) and of bad "
        f"runs flagged (power), on runs that were not used in fitting.</p>{cells.to_html(border=0)}"
    )


def _left_out(data: ReportData) -> str:
    if data.excluded.empty:
        return "<p>No run was left out.</p>"
    return data.excluded.to_html(index=False, border=0)


def _disclosures(data: ReportData) -> str:
    items = (
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>"
        for name, text in disclosures(data).items()
    )
    return f"<dl>{''.join(items)}</dl>"


# -------------------------------------------------------------------- pictures


def _figure(draw: Callable[[Any], Any], caption: str, height: float = 3.6) -> str:
    """Draw on a figure of its own, without touching the caller's pyplot state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'an HTML report needs matplotlib; run `pip install "scikit-trajscore[report]"`'
        ) from error
    figure = Figure(figsize=(5.4, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    draw(axes)
    buffer = io.BytesIO()
    # no date and version: the same report is the same file
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    image = base64.b64encode(buffer.getvalue()).decode()
    text = html.escape(caption)
    return (
        f'<figure><img src="data:image/png;base64,{image}" alt="{text}" width="480">'
        f"<figcaption>{text}</figcaption></figure>"
    )


def _forms(data: ReportData) -> str:
    """Draw the leading score and the leading error of every predictor, raw and calibrated."""
    height = 0.8 + 0.45 * len(data.table)
    score = _figure(
        lambda ax: ScoreDisplay.from_intervals(data.intervals, data.score_name, ax=ax),
        "Mean score with its interval; right is better. The dashed line is a constant forecast of "
        "the base rate.",
        height,
    )
    error = _figure(
        lambda ax: ScoreDisplay.from_intervals(data.intervals, "S-ECE", ax=ax),
        "Calibration error of the forecasts of steps, weighted as the score; left is better.",
        height,
    )
    return score + error


def _probabilities(data: ReportData, name: str) -> list[tuple[str, str]]:
    """Return the forms of a predictor that are probabilities."""
    scored = data.intervals.xs(data.score_name, level="metric").index
    return [(name, form) for form in (RAW, CALIBRATED) if (name, form) in scored]


def _reliability(data: ReportData, name: str) -> str:
    options = data.options

    def draw(ax: Any) -> None:
        for key in _probabilities(data, name):
            ReliabilityDisplay.from_predictions(
                data.labels[key],
                data.traces[key],
                phi=options.phi,
                weights=options.weights,
                ax=ax,
                name=key[1],
                color=COLORS[key[1]],
            )

    caption = (
        f"{name}: share of successes against the {options.phi} forecast of a run, in quantile "
        f"bins: not the forecasts of steps, of which S-ECE tells."
    )
    return _figure(draw, caption, height=4.6)


def _steps(data: ReportData, name: str) -> str:
    def draw(ax: Any) -> None:
        for k, key in enumerate([*_probabilities(data, name), (BASE_RATE, CONSTANT)]):
            is_constant = key[1] == CONSTANT  # and needs no second line of observed runs alone
            StepProfileDisplay.from_predictions(
                data.labels[key] if is_constant else data.outcomes[key],
                data.traces[key],
                q_z=data.labels[key],
                score=data.options.scores[0],
                ax=ax,
                color=COLORS[key[1]],
                name=BASE_RATE if is_constant else key[1],
                shade=k == 0,
            )

    caption = (
        f"{name}: mean score of the runs that reach each step (at least 10), with two standard "
        f"errors."
    )
    if data.facts.n_censored:
        caption += (
            " Solid: all runs, as they are counted. Dashed: the runs with an observed outcome "
            "alone. Grey: the share of unobserved runs among those that reach the step."
        )
    return _figure(draw, caption)


def _length(data: ReportData) -> str:
    key = (BASE_RATE, CONSTANT)
    return _figure(
        lambda ax: LengthDisplay.from_predictions(data.outcomes[key], data.traces[key], ax=ax),
        "Success rate of complete runs by their number of steps, with 95% intervals; bars show "
        "how many runs there are.",
    )
