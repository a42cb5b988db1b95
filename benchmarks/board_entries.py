"""What is entered in the board: pipelines from runs to a forecast of success at every step."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from public_sets import Found
from reproduction.agent_tracer import AgentTracerSignals
from trajscore import (
    ActionSignals,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TracerScorer,
    TracerSignals,
    TrajectoryArray,
    io,
)
from trajscore.calibration import AliveRate, cross_fit_traces
from trajscore.core.within_runs import running_max, running_sum, step_numbers

Floats = NDArray[np.float64]
LENGTH = "length"
PENALTIES = (1e4, 1e3, 300.0, 100.0, 30.0, 10.0, 3.0)
IDENTITY = "identity: "
N_INNER = 4  # folds of the training runs


class OverLength(TransformerMixin, BaseEstimator):
    """Forecast success from the numbers at each step, beside the step's own.

    The log-odds of the success rate of the runs that are still going, plus a weighted sum of the
    numbers: where these say nothing, the weights are zero and the forecast is that from length.
    How much weights are penalised is chosen on the training runs, by group.
    """

    def fit(self, X: TrajectoryArray, y: Any, groups: Any = None) -> Self:
        outcomes = np.asarray(y, dtype=np.float64)
        cells = X.cells.reshape(len(X.cells), -1)
        self.length_ = AliveRate().fit(X, y)
        with np.errstate(all="ignore"):
            center, scale = np.nanmean(cells, axis=0), np.nanstd(cells, axis=0)
        self.center_ = np.nan_to_num(center)
        self.scale_ = np.where(np.nan_to_num(scale) > 0, np.nan_to_num(scale, nan=1.0), np.inf)
        rows, offset = self._rows(X), logit(self.length_.transform(X).cells)
        weight, label = 1 / np.sqrt(step_numbers(X)), np.repeat(outcomes, X.lengths)
        held = np.arange(len(X)) if groups is None else groups
        fold = np.repeat(folds_of_groups(held, N_INNER), X.lengths)
        # who is known before the first step is learned first, and the rest beside it
        known = np.array([str(name).startswith(IDENTITY) for name in X.channels or ()], dtype=bool)
        known = known if len(known) else np.zeros(rows.shape[1], dtype=bool)
        self.coef_ = np.zeros(rows.shape[1])
        for block in (known, ~known):
            if block.any():
                part = rows[:, block]
                penalty = chosen_penalty(part, offset, label, weight, fold)
                self.coef_[block] = ridge(part, offset, label, weight, penalty)
                offset = offset + part @ self.coef_[block]
        return self

    def transform(self, X: TrajectoryArray) -> TrajectoryArray:
        # each row is added up by itself, so that a run gets the same digits in any company
        of_numbers = np.add.reduce(self._rows(X) * self.coef_, axis=1)
        p = expit(logit(self.length_.transform(X).cells) + of_numbers)
        return X.with_cells(p, channels=["probability"])

    def _rows(self, X: TrajectoryArray) -> Floats:
        """Standardise; what is missing is the mean."""
        cells = X.cells.reshape(len(X.cells), -1)
        return np.clip(np.nan_to_num((cells - self.center_) / self.scale_), -4, 4)


def folds_of_groups(group: Any, n_folds: int, seed: int = 0) -> NDArray[np.int64]:
    """Return a fold for each run, drawn by group."""
    names, code = np.unique(np.asarray(group), return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(names)) % n_folds)[code]


def splits(fold: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the rows to train on and those held out, for each fold."""
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(fold.max() + 1)]


def chosen_penalty(rows: Floats, offset: Floats, label: Any, weight: Floats, fold: Any) -> float:
    """Return the penalty with the best log score in training, infinite where none beats none."""
    scores = np.zeros(len(PENALTIES) + 1)
    for k in np.unique(fold):
        train, test = fold != k, fold == k
        for place, penalty in enumerate((np.inf, *PENALTIES)):
            coef = ridge(rows[train], offset[train], label[train], weight[train], penalty)
            odds = offset[test] + rows[test] @ coef
            scores[place] += -(weight[test] * np.logaddexp(0, -(2 * label[test] - 1) * odds)).sum()
    return (np.inf, *PENALTIES)[int(np.argmax(scores))]


def ridge(rows: Floats, offset: Floats, label: Any, weight: Floats, penalty: float) -> Floats:
    """Fit a logistic regression with an offset and a ridge penalty, by Newton's steps."""
    coef = np.zeros(rows.shape[1])
    if np.isinf(penalty):
        return coef
    for _ in range(6):
        p = expit(offset + rows @ coef)
        slope = rows.T @ (weight * (label - p)) - penalty * coef
        curve = (rows * (weight * p * (1 - p))[:, None]).T @ rows
        coef += np.linalg.solve(curve + penalty * np.eye(len(coef)), slope)
    return coef


class BaseRate(TransformerMixin, BaseEstimator):
    """The best constant of the training runs, with the weights of the steps."""

    def fit(self, X: TrajectoryArray, y: Any) -> Self:
        self.rate_ = np.average(np.repeat(y, X.lengths), weights=1 / np.sqrt(step_numbers(X)))
        return self

    def transform(self, X: TrajectoryArray) -> TrajectoryArray:
        return X.with_cells(np.full(len(X.lengths.repeat(X.lengths)), self.rate_), channels=["p"])


class Once(TransformerMixin, BaseEstimator):
    """A slow transformer that reads each run once and learns no outcomes: clones are itself."""

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer
        self.rows_ = Remembered(lambda run: self.transformer.transform([run])[0])

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: Sequence[io.Run], y: Any = None) -> Self:
        if not hasattr(self, "names_"):
            self.names_ = self.transformer.fit(X).get_feature_names_out()
        return self

    def transform(self, X: Sequence[io.Run]) -> TrajectoryArray:
        cells = [self.rows_.of(run).reshape(len(run), -1) for run in X]
        return TrajectoryArray(
            np.concatenate(cells), [len(part) for part in cells], channels=self.names_,
            ids=[run.id for run in X], missing="allow",
        )  # fmt: skip


class Remembered:
    """What a function makes of each run, made once."""

    def __init__(self, function: Callable[[io.Run], Any]) -> None:
        self.function = function
        self.rows: dict[int, tuple[Any, Any]] = {}  # with the steps, so that they keep their id

    def __sklearn_clone__(self) -> Self:
        return self

    def of(self, run: io.Run) -> Any:
        """Return it; a run that was cut short is another one."""
        key = id(run.steps)
        if key not in self.rows:
            self.rows[key] = (run.steps, self.function(run))
        return self.rows[key][1]


def turns(runs: Sequence[io.Run]) -> TrajectoryArray:
    """Return a zero for each step, for what reads nothing but their number."""
    lengths = [len(run) for run in runs]
    return TrajectoryArray(np.zeros(sum(lengths)), lengths, ids=[run.id for run in runs])


def text_of(step: io.Step, most: int = 1500) -> str:
    """Write a turn with its calls and what came back."""
    calls = [
        f"{call.name} {json.dumps(call.arguments, default=str)} {call.result or ''}"
        for call in step.tool_calls
    ]
    return " ".join([step.actor, step.text[:most], *(call[:most] for call in calls)])


def repeated_calls(runs: Sequence[io.Run]) -> TrajectoryArray:
    """Count how often the last calls of the agent were the same, and how many of its turns were."""
    cells = []
    for run in runs:
        last, row, in_all = None, 0, 0
        for step in run.steps:
            calls = [f"{call.name} {call.arguments}" for call in step.tool_calls]
            if calls:
                row = row + 1 if calls == last else 0
                in_all += row > 0
                last = calls
            cells.append((row, in_all))
    counts = np.array(cells, dtype=np.float64)
    return turns(runs).with_cells(counts, channels=["in a row", "in all"])


def token_probability(runs: Sequence[io.Run]) -> TrajectoryArray:
    """Return the mean probability of the agent's tokens: in its last turn, and on average so far.

    A turn of the user has those of the turn before it.
    """
    rows = []
    for run in runs:
        means = [np.exp(one.logprobs).mean() if one.logprobs else np.nan for one in run.steps]
        of_turn = pd.Series(means)
        rows.append(np.column_stack([of_turn.ffill(), of_turn.expanding().mean()]))
    return TrajectoryArray.from_list(
        rows, channels=["last", "mean"], ids=[run.id for run in runs], missing="allow"
    )


class TracerRisk(TracerScorer):
    """TRACER's risk; its signals come from the transformer before."""

    def transform(self, X: Any) -> Any:
        """Return the risk, 0 where nothing is recorded."""
        risk = super().transform(X)
        return risk.with_cells(np.nan_to_num(risk.cells))


class TextClassifier(TransformerMixin, BaseEstimator):
    """Log-odds of success by a logistic regression on the words that `words` makes of each turn.

    `most` steps are learned from, drawn at random, where there are more.
    """

    def __init__(self, words: Any, C: float = 0.1, most: int = 8_000) -> None:
        self.words = words
        self.C = C
        self.most = most

    def fit(self, X: Sequence[io.Run], y: Any, groups: Any = None) -> Self:
        rows, lengths = self._words(X)
        label, weight = np.repeat(y, lengths), 1 / np.sqrt(step_numbers(turns(X)))
        if len(label) > self.most:
            drawn = np.sort(np.random.default_rng(0).permutation(len(label))[: self.most])
            rows, label, weight = rows[drawn], label[drawn], weight[drawn]
        self.model_ = LogisticRegression(C=self.C, solver="liblinear", tol=0.01)
        self.model_.fit(rows, label, weight / weight.mean())
        return self

    def transform(self, X: Sequence[io.Run]) -> TrajectoryArray:
        rows, lengths = self._words(X)
        odds = self.model_.decision_function(rows)
        return TrajectoryArray(odds, lengths, ids=[run.id for run in X])

    def fit_transform(self, X: Sequence[io.Run], y: Any, groups: Any = None) -> TrajectoryArray:
        """Fit on all runs; the log-odds of each are of a fit on others, as those of new runs."""
        self.fit(X, y)
        held = np.arange(len(X)) if groups is None else groups
        return cross_fit_traces(self, X, y, cv=splits(folds_of_groups(held, N_INNER)))

    def _words(self, X: Sequence[io.Run]) -> tuple[csr_matrix, list[int]]:
        parts = [self.words.of(run) for run in X]
        return vstack(parts).tocsr(), [part.shape[0] for part in parts]


def words_of(run: io.Run, turns: int = 2) -> csr_matrix:
    """Hash the words of each turn and of those just before."""
    hashed = HashingVectorizer(n_features=2**14, alternate_sign=False, binary=True)
    own, n = hashed.transform([text_of(step) for step in run.steps]), len(run)
    near = np.tri(n) - np.tri(n, k=-turns)
    return csr_matrix(near) @ own


class Identity(TransformerMixin, BaseEstimator):
    """Which agent, task or environment a run has, by its id: a reference, not a monitor."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def fit(self, X: Sequence[io.Run], y: Any = None) -> Self:
        self.kinds_ = sorted({self.names[run.id] for run in X})
        return self

    def transform(self, X: Sequence[io.Run]) -> TrajectoryArray:
        shown = np.array([[self.names[run.id] == kind for kind in self.kinds_] for run in X])
        cells = np.repeat(shown, [len(run) for run in X], axis=0).astype(np.float64)
        return turns(X).with_cells(cells, channels=[IDENTITY + kind for kind in self.kinds_])


class Beside(TransformerMixin, BaseEstimator):
    """Several transformers of the same runs, side by side."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        self.fit_transform(X, y, groups)
        return self

    def fit_transform(self, X: Any, y: Any, groups: Any = None) -> TrajectoryArray:
        takes = isinstance(self.second, TextClassifier)
        known = {"groups": groups} if takes else {}
        return self._both(self.first.fit_transform(X, y), self.second.fit_transform(X, y, **known))

    def transform(self, X: Any) -> TrajectoryArray:
        return self._both(self.first.transform(X), self.second.transform(X))

    def _both(self, first: TrajectoryArray, second: TrajectoryArray) -> TrajectoryArray:
        cells = [part.cells.reshape(len(part.cells), -1) for part in (first, second)]
        names = second.channels or [f"signal {k}" for k in range(cells[1].shape[1])]
        return TrajectoryArray(
            np.hstack(cells), first.lengths, channels=[*(first.channels or ()), *names],
            ids=first.ids, missing="allow",
        )  # fmt: skip


def log_odds(X: TrajectoryArray, history: bool = False) -> TrajectoryArray:
    """Return the log-odds of the value, with `history` their mean, extremes and last change."""
    odds = logit(np.clip(X.cells.ravel(), 1e-4, 1 - 1e-4))
    if not history:
        return X.with_cells(odds, channels=["log-odds"])
    mean = running_sum(X, odds) / step_numbers(X)
    low, high = -running_max(X, -odds), running_max(X, odds)
    change = np.diff(odds, prepend=0)
    change[X.offsets[:-1]] = 0
    names = ["log-odds", "mean", "lowest", "highest", "change"]
    return X.with_cells(np.column_stack([odds, mean, low, high, change]), channels=names)


@dataclass(frozen=True)
class Entry:
    """A pipeline from runs to forecasts; `reference` is what it is held against."""

    pipeline: Any
    reference: str = LENGTH
    is_checked: bool = True  # that it does not look ahead
    is_own: bool = False  # of who runs the board


def over_length(signals: Any) -> Entry:
    """Enter numbers, a row a step, of which forecasts are made as for all others."""
    return Entry(make_pipeline(signals, OverLength()))


def entries_of(runs: Found, own: Mapping[str, Any]) -> dict[str, Entry]:
    return of_logs(runs, own) if runs.is_log else of_values()


def of_values() -> dict[str, Entry]:
    return {
        LENGTH: Entry(AliveRate()),
        "base rate": Entry(BaseRate()),
        "as stated": Entry(FunctionTransformer()),
        "Platt": Entry(PlattCrossFitCalibrator()),
        "Platt and step": over_length(FunctionTransformer(log_odds)),
        "Platt, step and history": over_length(
            FunctionTransformer(log_odds, kw_args={"history": True})
        ),
        "e-valuator": Entry(PrefixForecaster()),
    }


def of_logs(runs: Found, own: Mapping[str, Any]) -> dict[str, Entry]:
    """Return the entries of logs; those beside the identity are held against it."""
    signals = {
        "repeated calls": FunctionTransformer(repeated_calls),
        "TRACER": make_pipeline(Once(TracerSignals()), TracerRisk()),
        "agent-tracer": make_pipeline(Once(AgentTracerSignals()), TracerRisk()),
        "actions": ActionSignals(),
        "text classifier": TextClassifier(Remembered(words_of)),
    }
    if any(step.logprobs for run in runs.X for step in run.steps):
        signals["token probability"] = FunctionTransformer(token_probability)
    entries = {
        LENGTH: Entry(make_pipeline(FunctionTransformer(turns), AliveRate())),
        "base rate": Entry(make_pipeline(FunctionTransformer(turns), BaseRate())),
        **{name: over_length(numbers) for name, numbers in signals.items()},
        **{name: replace(over_length(numbers), is_own=True) for name, numbers in own.items()},
    }
    if runs.identity is not None:
        known = Identity({run.id: str(of) for run, of in zip(runs.X, runs.identity, strict=True)})
        entries["identity"] = Entry(make_pipeline(known, OverLength()), is_checked=False)
        for name in ("TRACER", "actions", "text classifier", *own):
            both = make_pipeline(Beside(known, {**signals, **own}[name]), OverLength())
            entries[f"identity and {name}"] = Entry(
                both, "identity", is_checked=False, is_own=name in own
            )
    return entries
