"""Code that does what a report says next: fit, save and forecast; accept; stop."""

import shlex

from trajscore.core.errors import show_controls
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import AS_GIVEN

NO_CODE = "# There is nothing to fit: no predictor is shown to need recalibration."
NO_NAME = (
    "# The weights are a function without a name, which no code can repeat, and no file can hold.\n"
    "# Define it with def, pass it as weights, and evaluate again."
)
_SCRIPT = """\
import numpy as np
import skops.io
import trajscore
{report}
forecaster = report.forecaster({name!r})
skops.io.dump(forecaster, 'forecaster.skops')
p = forecaster.transform({run})[0]{flat}  # a running run, its values so far
print(p, {score})  # its steps; once it ends, the run
# To stop failing runs, by another rule: {stop}"""
_N_STEPS = 3  # of the run that is forecast
_RUN_SCORES = {"last": "p[-1]", "mean": "p.mean()", "min": "p.min()"}


def recipes(data: Evaluation, name: str, form: str) -> dict[str, str]:
    """Return a script that forecasts a run, the score of a run, and what learns when to stop."""
    score = _run_score(data)
    stop = _stop(data, name)
    code = NO_CODE
    is_useful = form != AS_GIVEN and data.recommendations[name].is_useful
    if is_useful and not data.options.weights.schedule_name.isidentifier():
        code = NO_NAME
    elif is_useful:
        report = "\n# report is what trajscore.evaluate returned"
        if data.source.command:
            report = (
                f"from trajscore.cli.report import judge\n\n"
                f"report = judge({shlex.join(data.source.words)!r})"
            )
        run = data.inputs_of(name)[0][:_N_STEPS].round(4) + 0.0  # which turns -0.0 into 0.0
        signals = data.signals_of(name)
        values = str([run.ravel().tolist()])
        if len(signals) > 1:
            values = (
                f"trajscore.TrajectoryArray.from_list(\n    [{run.tolist()}],\n"
                f"    channels={list(signals)},\n)"
            )
        code = _SCRIPT.format(
            report=report,
            name=name,
            run=values,
            flat=".ravel()" * (len(signals) > 1),
            score=score,
            # a name may hold ends of lines, beyond which it would be code
            stop=show_controls(" ".join(stop.splitlines())),
        )
    return {"code": code, "score_code": score, "stop_code": stop}


def _run_score(data: Evaluation) -> str:
    """Return the expression of the score of a run, of its forecasts p."""
    weights = data.options.weights
    schedule = repr(weights.schedule)
    if callable(weights.schedule):
        schedule = weights.schedule_name if weights.schedule_name.isidentifier() else "weights"
    horizon = "" if weights.horizon is None else f", horizon={weights.horizon!r}"
    mean = f"np.average(p, weights=trajscore.step_weights([len(p)], {schedule}{horizon}))"
    return _RUN_SCORES.get(data.options.settings.phi, mean)


def _stop(data: Evaluation, name: str) -> str:
    """Return what learns from the runs of a report when to stop others, by one predictor."""
    words = data.source.reading
    if words[:1] != (data.source.name,):  # no command read the runs from a file
        rest = "report.runs.y, groups=report.runs.groups"
        return f"trajscore.DensityRatioEProcess().fit(report.inputs_of({name!r}), {rest})"
    signals = [f"{'--risk' if f'--risk={signal}' in words else '--score'}={signal}"
               for signal in data.signals_of(name)]  # fmt: skip
    shared = [word for word in words if not word.startswith(("--score=", "--risk="))]
    return f"trajscore fit {shlex.join([*shared, *signals, '--out=stop.skops'])}"
