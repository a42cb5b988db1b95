"""What is computed, and what its parts are called: rows, metrics, columns, options, notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from trajscore.core.array import TrajectoryArray
from trajscore.core.parallel import Progress, Work
from trajscore.core.score_families import USUAL_SCORES, ScoreFamily
from trajscore.core.weights import PART_STARTS, Horizon, StepWeights
from trajscore.metrics.costs import cost_of_reliance
from trajscore.metrics.run_metrics import DIAGNOSTICS, CostMetric, RankMetric, RunMetric

BASE_RATE = "base rate"
ALIVE = "alive rate"
ALIVE_END = "alive rate, end known"
REFERENCES = (BASE_RATE, ALIVE, ALIVE_END)
TOGETHER = "all together"
WITH_HISTORY = "with its history"
AS_GIVEN = "as_given"
RECALIBRATED = "recalibrated"
CONSTANT = "constant"
FORMS = {AS_GIVEN: "as given", RECALIBRATED: "recalibrated"}
RowKey = tuple[str, str]
"""Predictor and form: where a row stands in the tables."""

_ECUAS = (
    "Mean cost of accepting or rejecting runs by one number a run, over all prices of a rejection; "
    "with 0, 1 or 128 the weight moves to cheap rejections; lower is better."
)
RUN_METRICS: dict[str, RunMetric] = DIAGNOSTICS | {
    f"ECUAS_{n}": CostMetric(_ECUAS, partial(cost_of_reliance, n=n)) for n in (0, 1, 128)
}
STEP_ERRORS = {"S-ECE": None} | {f"S-ECE {part}": part for part in PART_STARTS}
FRACTIONS = (*STEP_ERRORS, *DIAGNOSTICS)
"""Metrics that lie in [0, 1]."""
RANK_METRICS = [name for name, metric in RUN_METRICS.items() if isinstance(metric, RankMetric)]


def columns_of(estimate: str) -> list[str]:
    """Return the columns of an estimate and of the ends of its interval."""
    return [estimate, f"{estimate}_low", f"{estimate}_high"]


VALUE = ["value", "low", "high"]
MARGIN = columns_of("margin")
GAIN = columns_of("gain")
OVER_ALIVE = columns_of("over_alive")
OVER_ALIVE_END = columns_of("over_alive_end")
OVER_AS_GIVEN = columns_of("over_as_given")
OVER_LENGTH = columns_of("over_length")  # a ranking, above that by what is left of length
LEVELS = [VALUE, MARGIN, OVER_ALIVE, OVER_ALIVE_END, OVER_AS_GIVEN]
"""Columns of a metric, and of what it is above its references."""

INFLUENCE = "influence"  # how intervals are made
BOOTSTRAP = "bootstrap"
BOUNDS = "bounds"


@dataclass(frozen=True)
class MonitoringOptions:
    """What is reported of stopping failing runs early.

    Parameters
    ----------
    rule : StoppingRule, optional
        Default: a `trajscore.DensityRatioEProcess` at the levels 0.05, 0.1 and 0.2.
    known_share : float, default=0.8
        Share of the runs that it is fitted on, in each of several random splits.
    n_splits : int, default=20
        Number of splits.
    cost : TrajectoryArray, optional
        Cost of each step of the runs, found by their ids, such as tokens, after which it is called
        where its channel has a name.

    Examples
    --------
    >>> from trajscore.report import MonitoringOptions
    >>> MonitoringOptions(known_share=0.2).n_splits
    20
    """

    rule: Any = None
    known_share: float = 0.8
    n_splits: int = 20
    cost: TrajectoryArray | None = None

    @property
    def cost_name(self) -> str:
        """What the cost is called."""
        return "cost" if self.cost is None or not self.cost.channels else self.cost.channels[0]


@dataclass(frozen=True)
class EvaluationOptions:
    """What few calls of `trajscore.evaluate` change.

    Parameters
    ----------
    families : score family or sequence of them, default=("log", "brier", ("beta", 4, 2))
        Trajectory Proper Scores to report, or one of them; intervals and verdicts lead with the
        first. Beta(4, 2) punishes overconfidence in runs that fail, which is what somebody who lets
        an agent go on has to fear; the tables of Raghu et al. have Beta(2, 4), which punishes
        pessimism about runs that succeed.
    horizon : int, "own" or None, default=None
        Number of steps over which step weights are taken, as in `trajscore.metrics.tps_score`.
    phi : {"last", "mean", "min", "weighted"}, default="weighted"
        How traces are collapsed for the scalar diagnostics.
    missing : {"same_runs", "ffill"}, default="same_runs"
        What to do where a value of a predictor is missing: leave the run out for all predictors, so
        that they are judged on the same runs; or let a value hold until the next one is stated, and
        leave out the runs whose first value is missing. What is left out is counted, with whose
        value was missing.
    together : bool, default=True
        Whether one more row, "all together", is what all signals forecast with their history, by
        `trajscore.calibration.CombinedForecaster`; with one signal "... with its history".
    prices : dict of str to float, optional
        What a value of a signal costs, at each step, by its name: then the report says what the
        forecasts of a run cost, and how many failures they find.
    first_error : array-like of int of shape (n_runs,), optional
        The first wrong step of each run, counted from 1; 0 where no step is wrong, -1 where the run
        is not labelled. Then the report says which predictors find that step, and where to read.
    end : bool, optional
        Whether predictors know, with the last step of a run, that it is the last: what counting
        steps is worth, which they are held against, is then counted with that knowledge. Default:
        what the calibrator says by its `end`, if it has one; else both are stated where they
        differ.
    intervals : {"auto", "bootstrap", "influence"}, default="auto"
        How intervals are made: from the influence of each run on a metric, which holds for many
        runs; by bootstrap; or by influence where at least 30 runs or clusters (or a quarter of all,
        if that is less) carry the variance, and else by bootstrap. Those of scores and costs are
        wide enough for losses that no run has shown yet. Calibration errors have bounds of their
        own.
    confidence_level : float, default=0.95
        Level of the intervals.
    n_resamples : int, default=1000
        Number of bootstrap replicates, where intervals are made by bootstrap.
    random_state : int, RandomState instance or None, default=0
        Seed of the bootstrap, and of what is shuffled; a random state is drawn from once.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    progress : callable, optional
        Wraps what takes long, as ``tqdm`` does: the lists of predictors, of groups and of blocks
        of replicates.

    Examples
    --------
    >>> from trajscore import evaluate
    >>> from trajscore.datasets import load_chess
    >>> from trajscore.report import EvaluationOptions
    >>> options = EvaluationOptions(families="brier", missing="ffill", n_jobs=2)
    >>> evaluate(*load_chess(return_X_y=True), options=options).score_name
    'TPS brier'
    """

    families: Any = USUAL_SCORES
    horizon: Horizon = None
    phi: str = "weighted"
    missing: str = "same_runs"
    together: bool = True
    prices: Mapping[str, float] | None = None
    first_error: Any = None
    end: bool | None = None
    intervals: str = "auto"
    confidence_level: float = 0.95
    n_resamples: int = 1000
    random_state: Any = 0
    n_jobs: int | None = None
    progress: Progress | None = None


@dataclass(frozen=True)
class Options:
    """What is computed of each row, and how it is drawn and shared out."""

    scores: tuple[ScoreFamily, ...]  # verdicts lead with the first
    weights: StepWeights
    settings: EvaluationOptions = field(default_factory=EvaluationOptions)
    work: Work = field(default_factory=Work)

    @property
    def quiet(self) -> Options:
        """The same, without showing how far it is."""
        return replace(self, work=Work(self.work.n_jobs))

    @property
    def leading(self) -> tuple[ScoreFamily, StepWeights]:
        """The score that verdicts lead with, and its weights."""
        return self.scores[0], self.weights

    @property
    def score_names(self) -> list[str]:
        """Columns of the scores."""
        return [f"TPS {score.name}" for score in self.scores]

    @property
    def unit(self) -> str:
        """Unit of the leading score, after a space."""
        return f" {self.scores[0].unit}".rstrip()

    @property
    def miscalibration(self) -> str:
        """Column of what the best monotone recalibration would gain of the leading score."""
        return f"MCB {self.scores[0].name}"

    @property
    def step_metrics(self) -> list[str]:
        """Columns of the metrics that judge the forecast of every step; the scores come first."""
        return [*self.score_names, *STEP_ERRORS, self.miscalibration]

    @property
    def metrics(self) -> list[str]:
        """Columns of all metrics."""
        return [*self.step_metrics, *RUN_METRICS]

    @property
    def lower_is_better(self) -> list[str]:
        """Columns of the metrics that are errors or costs."""
        lower = [name for name, metric in RUN_METRICS.items() if metric.lower_is_better]
        return [*STEP_ERRORS, self.miscalibration, *lower]


@dataclass(frozen=True)
class Note:
    """What a reader should know of its subject: a kind with the facts of its words, or a text.

    `report/glossary.toml` and `report/verdicts.py` have the words of each kind.
    """

    subject: str  # a predictor, or what else is meant: "weights", "intervals", "stops", "all"
    kind: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    text: str = ""
