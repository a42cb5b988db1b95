"""Code that does what a report says next: fit, save and forecast; accept; stop."""

from __future__ import annotations

import shlex

from trajscore.core.errors import show_controls
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import AS_GIVEN

NO_CODE = "# No recalibrated predictor is shown to be useful, so there is nothing to fit."
_IMPORTS = """\
import numpy as np
import skops.io
import trajscore
from trajscore.cli.report import judge
"""
_N_STEPS = 3  # of the run that is forecast
_NOT_OF_STOPPING = (
    "--score=", "--risk=", "--weights=", "--horizon=", "--missing=", "--calibrator=", "--censored=",
)  # fmt: skip
_RUN_SCORES = {"last": "p[-1]", "mean": "p.mean()", "min": "p.min()"}


def recipe(data: Evaluation, name: str, form: str) -> str:
    """Return a script that forecasts a running run by a predictor, if it is to be recalibrated."""
    if form == AS_GIVEN or not data.recommendations[name].is_useful:
        return NO_CODE
    words = data.source.words
    run = data.traces[name, AS_GIVEN][0][:_N_STEPS].ravel() + 0.0  # which turns -0.0 into 0.0
    values = [float(f"{value:.4g}") for value in run]
    lines = [
        _IMPORTS,
        f"report = judge({shlex.join(words)!r})",
        f"forecaster = report.forecaster({name!r})",
        "skops.io.dump(forecaster, 'forecaster.skops')",
        f"p = forecaster.transform([{values}])[0]  # a running run, its values so far",
        f"print(p, {accept_code(data)})  # its steps; once it ends, the run",
    ]
    if not data.source.command:
        lines[1] = "# report is what trajscore.evaluate returned"
    comments = [f"Stop: {stop_code(data, name)}"]
    if _has_file(data):
        options = [f"--forecaster={name}", "--out=forecaster.skops"]
        comments.append(f"In a shell: trajscore fit {shlex.join([*words, *options])}")
    # a name may hold ends of lines, beyond which it would be code
    return "\n".join(lines + [f"# {show_controls(' '.join(of.splitlines()))}" for of in comments])


def accept_code(data: Evaluation) -> str:
    """Return the expression of the score of a run, of its forecasts p."""
    weights = data.options.weights
    schedule = weights.schedule_name if callable(weights.schedule) else repr(weights.schedule)
    horizon = weights.name.removeprefix(weights.schedule_name)
    mean = f"np.average(p, weights=trajscore.step_weights([len(p)], {schedule}{horizon}))"
    return _RUN_SCORES.get(data.options.settings.phi, mean)


def stop_code(data: Evaluation, name: str) -> str:
    """Return what learns from the runs of a report when to stop others, by one predictor."""
    words = data.source.words
    if _has_file(data):
        option = "--risk" if f"--risk={name}" in words else "--score"
        shared = [word for word in words if not word.startswith(_NOT_OF_STOPPING)]
        return f"trajscore fit {shlex.join([*shared, f'{option}={name}', '--out=stop.skops'])}"
    traces = f"report.traces[{name!r}, {AS_GIVEN!r}]"
    rest = "report.runs.y, groups=report.runs.groups"
    return f"trajscore.DensityRatioEProcess().fit({traces}, {rest})"


def _has_file(data: Evaluation) -> bool:
    """Whether a command read the runs from a file."""
    return data.source.words[:1] == (data.source.name,)
