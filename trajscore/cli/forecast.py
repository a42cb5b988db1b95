"""``trajscore forecast``: forecast new runs, also running ones, by a fitted forecaster."""

import argparse
from typing import Any

from trajscore.calibration.forecaster import Forecaster
from trajscore.cli.inputs import READING, read_inputs, write_table
from trajscore.core.values import number_of
from trajscore.core.within_runs import whole_runs
from trajscore.evaluation.runs import MISSING
from trajscore.loading.load import RISKS
from trajscore.monitoring.persistence import load_fitted
from trajscore.tracer import TracerScorer

OPTIONS = READING | {"--missing": {"choices": MISSING}}


def run(arguments: argparse.Namespace) -> None:
    """Forecast every step of new runs, and write a table."""
    out = arguments.out
    kind: Any = Forecaster  # an abstract one
    forecaster = load_fitted(arguments.model, kind, arguments.trust, arguments.max_size)
    if not (arguments.scores or arguments.risks):
        arguments.scores = forecaster.channels_in_ or ()
    arguments.outcomes = {}  # runs may go on
    inputs = read_inputs(arguments.new, arguments, missing=arguments.missing)
    X = inputs.container()
    refuse_tracer(inputs.log, X.channels)
    if arguments.missing == "ffill":
        X = X.ffill()
    complete = X[whole_runs(X)]
    table = forecaster.transform(complete).to_frame()
    write_table(table.set_axis(["run", "step", "forecast"], axis=1), out)
    if n := len(X) - len(complete):
        print(f"{number_of(n, 'run')} left out: a value is missing, or there is no step")
    print(f"wrote {out}: {number_of(len(complete), 'run')}, {len(complete.cells):,} steps")


def refuse_tracer(log: Any, names: Any) -> None:
    """Refuse risks of a log that depend on all its runs."""
    if log and any(isinstance(RISKS.get(name), TracerScorer) for name in names or ()):
        raise ValueError(
            "what TRACER sees in a dialogue depends on the other runs of its log, so new runs "
            "cannot be forecast by it; learn from messages with trajscore fit --guard, or name "
            "another predictor, such as trajscore fit --forecaster 'tool calls'"
        )
