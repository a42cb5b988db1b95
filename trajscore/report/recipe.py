"""Code that does what a report says next: fit, save and forecast; accept; stop."""

from __future__ import annotations

import shlex

from trajscore.core.errors import show_controls
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import AS_GIVEN, RECALIBRATED

NO_CODE = "# No predictor is shown to be useful, so there is no code."
_N_STEPS = 3  # of the run that is forecast
_OF_PREDICTORS = ("--score=", "--risk=")
_OF_RECALIBRATION = ("--weights=", "--horizon=", "--missing=", "--calibrator=", "--censored=")
_RUN_SCORES = {"last": "p[-1]", "mean": "p.mean()", "min": "p.min()"}


def recipe(data: Evaluation, name: str, form: str) -> str:
    """Return a script that forecasts a running run by a predictor in one form."""
    if not data.recommendations[name].is_useful:
        return NO_CODE
    trace = data.traces[name, AS_GIVEN]
    first = trace.cells[: min(_N_STEPS, trace.lengths[0])]
    running = [float(f"{value:.4g}") for value in first + 0.0]  # which turns -0.0 into 0.0
    imports = ["import numpy as np", "import trajscore"]
    lines = [f"p = np.array({running})  # a running run: its values are its forecasts"]
    shell = [f"Stop: {stop_code(data, name)}"]
    if form == RECALIBRATED:
        imports.insert(1, "import skops.io")
        if _has_file(data):
            options = (f"--forecaster={name}", "--out=forecaster.skops")
            fit = shlex.join(["trajscore", "fit", *data.source.words, *options])
            shell.insert(0, f"In a shell: {fit}")
        lines = [
            f"forecaster = report.forecaster({name!r})",
            "skops.io.dump(forecaster, 'forecaster.skops')",
            f"p = forecaster.transform([{running}])[0]  # a running run, its values so far",
        ]
    if data.source.command:
        imports.append("from trajscore.cli.report import judge")
        lines.insert(0, f"report = judge({shlex.join(data.source.words)!r})")
    # a name may hold ends of lines, beyond which it would be code
    comments = [f"# {show_controls(' '.join(text.splitlines()))}" for text in shell]
    score = f"print(p, {accept_code(data)})  # its steps; once it ends, the run"
    return "\n".join([*imports, "", *lines, score, *comments])


def accept_code(data: Evaluation) -> str:
    """Return the expression of the score of a run, of its forecasts p."""
    phi = data.options.settings.phi
    weights = data.options.weights
    horizon = "" if weights.horizon is None else f", {weights.horizon!r}"
    schedule = weights.schedule_name if callable(weights.schedule) else repr(weights.schedule)
    steps = f"trajscore.step_weights([len(p)], {schedule}{horizon})"
    return _RUN_SCORES.get(phi, f"np.average(p, weights={steps})")


def stop_code(data: Evaluation, name: str) -> str:
    """Return what learns from the runs of a report when to stop others, by one predictor."""
    if not _has_file(data):
        traces = f"report.traces[{name!r}, {AS_GIVEN!r}]"
        rest = "report.runs.y, groups=report.runs.groups"
        return f"trajscore.DensityRatioEProcess().fit({traces}, {rest})"
    words = [word for word in data.source.words if not word.startswith(_OF_RECALIBRATION)]
    others = [word for word in words if not word.startswith(_OF_PREDICTORS)]
    mine = [word for word in words if word in [f"{option}{name}" for option in _OF_PREDICTORS]]
    mine = mine or [f"--score={name}"]
    return shlex.join(["trajscore", "fit", *others, *mine, "--out=stop.skops"])


def _has_file(data: Evaluation) -> bool:
    """Whether a command read the runs from a file."""
    words = data.source.words
    return bool(words) and not words[0].startswith("-")
