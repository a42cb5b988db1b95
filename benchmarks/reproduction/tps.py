"""The Trajectory Proper Score: scoring rules for agentic uncertainty (Raghu et al., 2026)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import cross_fit_traces
from trajscore.censoring import censoring_shift, termination_audit
from trajscore.metrics import censored_tps_score, tps_samples, tps_score, trajectory_diagnostics
from trajscore.plotting import TerminationDisplay

from .items import Cell, Data, Paper, at_least, at_most

SCHEDULES = ("linear_front", "uniform", "exponential_front", "linear_back")
FAMILIES = {"log": "log", "Brier": "brier", "Beta(2,4)": ("beta", 2, 4)}
# weights over the length of each run, as in the paper
PUBLISHED = {"weights": "linear_front", "horizon": "own"}
DIAGNOSTICS = ("AUROC", "AUPRC", "AURC", "T-ECE", "T-Brier")
PAPER = Paper("tps")
MIXTURE = (
    "the printed shifts imply other success rates (Tau2-Bench about .456, not .443; StrategyQA "
    ".8415, not .8421): their runs are not all those of Tables 2 and 3"
)

PROSE = (
    "J.3 and J.4 say that alpha < beta emphasises overconfidence in runs that fail; the floors of "
    "J.2 say the reverse"
)
# runs and successes, then the row of the base rate as printed. The successes are those that round
# to the printed rates; HotpotQA's are 892 by Table 9: log(1 - 892 / 1987) = -.596, 891 give -.595
BASE_RATES = {
    "StrategyQA": (2229, 1877, "0.500 0.158 0.158 0.000 0.133 -0.436 -0.133 -0.00263"),
    "Tau2-Bench": (201, 89, "0.500 0.557 0.557 0.000 0.247 -0.687 -0.247 -0.00760"),
    "HotpotQA": (1529, 892, "0.500 0.417 0.417 0.000 0.243 -0.679 -0.243 -0.00649"),
}
# WebShop: complete successes, complete failures, stopped at the budget
WEBSHOP = (118, 45, 145)
SECTION_6_3 = Cell("Tau2-Bench, section 6.3", "shift / rate", "+0.404", 0.3032 / 0.75)
APPENDIX_D = [
    Cell("Appendix D", "logit(.95)", "2.94", float(logit(0.95))),
    Cell("Appendix D", "logit(1 - 1e-6)", "13.82", float(logit(1 - 1e-6))),
    Cell("Table 13", "mean forecast of the base rate", "0.38", 118 / 308),
]
REASONS = ("done", "max_steps", "parse_error", "tool_error", "env_terminated")
# runs of each reason, and the row as printed
AUDIT = {name: (list(map(int, row[:5])), row[5:]) for name, *row in PAPER.rows("Table 6")}
AUDITED = {  # as printed, and as `termination_audit` calls it
    "runs": "n_runs",
    "clean outcome": "complete",
    "max_steps": "administrative",
    "other stops": "informative",
    "uncensored n": "complete",
}


def constant(n: int, value: float) -> TrajectoryArray:
    """Runs of four steps with the same forecast."""
    return TrajectoryArray(np.full(4 * n, value), np.full(n, 4))


def rated(X: TrajectoryArray, rate: float) -> TrajectoryArray:
    return X.with_cells(np.full(len(X.cells), rate))


def row_of(y: np.ndarray, F: TrajectoryArray) -> dict[str, float]:
    """A row of the transparency tables: diagnostics, and the score in each family."""
    scores = {f"TPS {k}": tps_score(y, F, score=one, **PUBLISHED) for k, one in FAMILIES.items()}
    return trajectory_diagnostics(y, F, **PUBLISHED).to_dict() | scores


def base_rate(name: str, data: Data) -> Iterator[Cell]:
    """Make the last row of a transparency table."""
    n, successes, row = BASE_RATES[name]
    ours = row_of((np.arange(n) < successes).astype(int), constant(n, successes / n))
    columns = [*DIAGNOSTICS, *(f"TPS {family}" for family in FAMILIES)]
    for column, text in zip(columns, row.split(), strict=True):
        yield Cell("base rate", column, text, float(ours[column]))


def webshop() -> tuple[np.ndarray, TrajectoryArray]:
    """Outcomes of the working sample, and the base rate where a run that was cut off failed."""
    y = np.repeat([1, 0, -1], WEBSHOP)
    return y, constant(len(y), WEBSHOP[0] / sum(WEBSHOP))


def scored(**how: Any) -> tuple[float, float]:
    """Score WebShop's base rate on its complete runs, and on all."""
    y, F = webshop()
    return tps_score(y[y != -1], F[y != -1], **how), censored_tps_score(y, F, **how)


def shifts(data: Data) -> Iterator[Cell]:
    """Rows of the base rate in Table 11."""
    for weights in SCHEDULES:
        for (family, score), text in zip(
            FAMILIES.items(), ("+0.1623", "+0.0797", "+0.00057"), strict=True
        ):
            complete, extended = scored(score=score, weights=weights, horizon="own")
            yield Cell(f"base rate, {weights}", family, text, extended - complete)


def margins(data: Data) -> Iterator[Cell]:
    """Scores of the base rate that Table 14 and Appendix I.2 imply; shrinkage of its margins."""
    complete, extended = scored(**PUBLISHED)
    yield Cell("base rate, log", "complete", "-0.8279", complete)
    yield Cell("base rate, log", "extended", "-0.6656", extended)
    for weights, before, after, shrinkage in (
        ("linear-front", 0.0123, 0.0086, "-30"), ("uniform", 0.0301, 0.0237, "-21"),
        ("linear-back", 0.0476, 0.0316, "-34"),
    ):  # fmt: skip
        ours = 100 * (after / before - 1)
        yield Cell(f"verbal confidence, {weights}", "shrinkage, %", shrinkage, ours)


def audit(data: Data) -> Iterator[Cell]:
    """Table 6, of runs with the printed reasons."""
    for name, (counts, printed_row) in AUDIT.items():
        meta = pd.DataFrame({"stop_reason": np.repeat(REASONS, counts)})
        y = np.where(meta["stop_reason"] == "done", 1, -1)
        row = termination_audit(meta, y).table.iloc[-1]
        for text, (title, column) in zip(printed_row, AUDITED.items(), strict=True):
            yield Cell(name, title, text, float(row[column]))


def continuation(data: Data) -> Iterator[Cell]:
    """Row of the base rate in Table 9, from its counts and the mean q_Z of Table 7."""
    n, successes, _ = BASE_RATES["HotpotQA"]
    F, y = constant(87, successes / (n + AUDIT["HotpotQA"][0][1])), np.full(87, -1)
    simple = censored_tps_score(y, F, **PUBLISHED)
    exact = censored_tps_score(y, F, q_z=np.full(87, 0.240), **PUBLISHED)
    row = "base rate, linear-front"
    yield Cell(row, "simple", "-0.596", simple)
    yield Cell(row, "exact", "-0.645", exact)
    yield Cell(row, "exact - simple", "-0.049", exact - simple)


def projection(data: Data) -> Iterator[Cell]:
    """Error of the conditional-projection identity, with made continuations of public prefixes.

    The paper prints 9e-16 for its own runs.
    """
    X, _ = data.runs("hotpotqa")
    X = X[X.lengths == 7][:87]
    branches = np.random.default_rng(0).integers(0, 2, (87, 10))
    exact = tps_samples(branches.mean(axis=1), X, **PUBLISHED)
    one_by_one = np.mean([tps_samples(y, X, **PUBLISHED) for y in branches.T], axis=0)
    error = float(np.abs(exact - one_by_one).max())
    yield at_most("HotpotQA, e-valuator's runs", "largest error of the identity", 1e-14, error)


def kept_steps(lengths: np.ndarray, rate: float) -> np.ndarray:
    """Cut the same share of runs of every length, at a random step before the last."""
    rng = np.random.default_rng(0)
    place = pd.Series(rng.random(len(lengths))).groupby(lengths).rank(pct=True).to_numpy()
    cut = (place <= rate) & (lengths > 1)
    return np.where(cut, rng.integers(1, np.maximum(lengths, 2)), lengths)


def cut_runs(y: np.ndarray, X: TrajectoryArray, calibrate: bool) -> Iterator[tuple]:
    """Cut three of four runs, and yield what it shifts, by family and schedule."""
    kept = kept_steps(X.lengths, 0.75)
    for weights in sorted(SCHEDULES):
        how = {"weights": weights, "horizon": "own"}
        forecasts = PlattCrossFitCalibrator(**how).fit_transform(X, y) if calibrate else X
        for name, score in FAMILIES.items():
            yield name, weights, censoring_shift(y, forecasts, kept, score=score, **how)


def artificial_censoring(data: Data) -> pd.DataFrame:
    """Table 10's layout where three of four public runs are cut; calibrated out of fold."""
    X, y = data.runs("hotpotqa")
    rows = {
        (name.lower(), weights): {
            "complete": table.loc["all", "complete"],
            "shift": table.loc["all", "shift"],
            "failures": table.loc["failure", "shift"],
            "successes": table.loc["success", "shift"],
        }
        for name, weights, table in cut_runs(y, X, calibrate=True)
    }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = table.index.set_names(["score", "weights"])
    return table


def decomposition(data: Data) -> Iterator[Cell]:
    """Error of prefix swap plus tail omission, where public runs are cut; printed: 4.4e-16."""
    X, y = data.runs("hotpotqa")
    error = max(
        float(np.abs(table["shift"] - table["prefix_swap"] - table["tail_omission"]).max())
        for _, _, table in cut_runs(y, X, calibrate=False)
    )
    yield at_most("HotpotQA, e-valuator's runs", "largest error", 1e-14, error)


def transforms(data: Data) -> pd.DataFrame:
    """Appendix E on public runs: rank metrics, held fixed, and scores of transformed forecasts."""
    X, y = data.runs("hotpotqa")
    ranked = trajectory_diagnostics(y, X)[["AUROC", "AUPRC", "AURC"]]
    cells = {
        "as they are": X.cells,
        "0.4 + 0.2 x": 0.4 + 0.2 * X.cells,
        "square root": np.sqrt(X.cells),
        "square": X.cells**2,
        "Platt, out of fold": PlattCrossFitCalibrator(**PUBLISHED).fit_transform(X, y).cells,
    }
    scores = {name: tps_score(y, X.with_cells(one), **PUBLISHED) for name, one in cells.items()}
    rows = pd.DataFrame([ranked] * len(scores), index=scores.keys())
    rows["TPS log"] = scores
    of_base = tps_score(y, rated(X, y.mean()), **PUBLISHED)
    rows.loc["base rate"] = [0.5, 1 - y.mean(), 1 - y.mean(), of_base]
    return rows


def mixtures(data: Data) -> Iterator[Cell]:
    """Mean shifts of Table 10 from those of failures and successes."""
    for name, family, *values in PAPER.rows("Table 10"):
        n, successes, _ = BASE_RATES[name]
        rate = successes / n
        for k, weights in enumerate(SCHEDULES):
            mean, failure, success = values[3 * k : 3 * k + 3]
            ours = rate * float(success) + (1 - rate) * float(failure)
            yield Cell(f"{name}, {family}", weights, mean, ours, MIXTURE, slack=0.00056)


def recalibrated(data: Data) -> pd.DataFrame:
    """Raw and calibrated rows as in Tables 2 to 5, of a judge on public runs."""
    rows = {}
    for name in ("hotpotqa", "gsm8k"):
        X, y = data.runs(name)
        platt = cross_fit_traces(PlattCrossFitCalibrator(**PUBLISHED), X, y)
        for form, F in (("raw", X), ("Platt", platt), ("base rate", rated(X, y.mean()))):
            rows[name, form] = row_of(y, F)
    return pd.DataFrame.from_dict(rows, orient="index")


def floors(data: Data) -> Iterator[Cell]:
    """What a forecast that is certain and wrong costs under Beta(2, 4)."""
    score = ("beta", 2, 4)
    success = tps_score([1], [[0.0]], score=score)  # printed: -B(2, 5) and -B(3, 4)
    failure = tps_score([0], [[1.0]], score=score)
    yield Cell("Beta(2,4)", "0, and it succeeds", "-0.0333", success)
    yield Cell("Beta(2,4)", "1, and it fails", "-0.0167", failure)
    ratio = failure / success
    yield at_least("overconfidence over pessimism", "ratio of the floors", 1, ratio, PROSE)


def table_12(data: Data) -> Iterator[Cell]:
    """Differences of the printed columns."""
    for family, *values in PAPER.rows("Table 12"):
        for weights, k in (("linear-front", 0), ("uniform", 3)):
            complete, extended, shift = values[k : k + 3]
            slack = 1.01 * 10.0 ** -len(shift.partition(".")[2])
            ours = float(extended) - float(complete)
            yield Cell(family, weights, shift, ours, "", slack=slack)


def draw_terminations(data: Data) -> Any:
    reason = np.repeat(REASONS, AUDIT["WebShop"][0])
    y = np.repeat([1, 0, -1], [*WEBSHOP[:2], len(reason) - sum(WEBSHOP[:2])])
    return TerminationDisplay.from_predictions(y, reason).figure_


PAPER.make(
    cells={
        "Appendix D": APPENDIX_D,
        "Appendix J": [floors],
        "Table 2": [partial(base_rate, "StrategyQA")],
        "Table 3": [partial(base_rate, "Tau2-Bench")],
        "Table 4": [partial(base_rate, "HotpotQA")],
        "Table 6": [audit],
        "Table 9": [continuation, projection],
        "Table 10": [mixtures, SECTION_6_3, decomposition],
        "Table 11": [shifts],
        "Table 12": [table_12],
        "Table 14": [margins],
    },
    instead={
        "Figure 1": transforms, "Table 2": recalibrated, "Table 10": artificial_censoring,
    },
    draw={"Table 6": draw_terminations},
)  # fmt: skip
