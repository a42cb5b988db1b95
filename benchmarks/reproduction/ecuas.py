"""ECUAS: the expected cost of uncertainty-augmented systems (Estienne et al., 2026)."""

import warnings
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from trajscore.calibration import AffineCalibrator
from trajscore.metrics import Answers, ecuas_from_confidence

from .items import Cell, Data, Paper, at_least

PAPER = Paper("ecuas")
# as printed, and as `Answers.metrics` calls them
COLUMNS = {
    "N-ER": "N-ER", "ECE": "ECE", "AUC": "AUC", "N-CE_qe": "N-CE of confidence",
    "N-BS_qe": "N-BS of confidence", "N-CE_q": "N-CE", "N-BS_q": "N-BS", "AURC": "AURC",
    "n=0": "N-ECUAS_0", "n=1": "N-ECUAS_1", "n=128": "N-ECUAS_128",
}  # fmt: skip

SATURATED = ("pneumoniamnist_resnet50", "pathmnist_resnet50")
IN_SINGLE_PRECISION = "confidences saturate at 1 in the authors' single precision"
LAST_DIGIT = "the last digits: single precision, or where the optimiser stops"
NOT_EXACT = (
    "it falls slightly somewhere (at most .001): confidences are calibrated out of fold, not "
    "exactly, and only of exact ones does it always rise"
)

IN_TABLE_2 = ("Qwen3.5-9B", "Ministral-3-8B", "Flash-Lite", "Flash")
METHODS = ("sequence posterior", "is true", "verbalized")
LINES = PAPER.rows("Table 3")
SYSTEMS = [  # name, folder, and printed rows of each set
    (title[0].replace(",", " "), title[1], {raw[0]: raw[1:], cal[0]: cal[1:]})
    for title, raw, cal in zip(LINES[::3], LINES[1::3], LINES[2::3], strict=True)
]


@cache
def calibrated(data: Data, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities out of fold, and classes."""
    found = data.answers(folder)
    folds = StratifiedKFold(5, shuffle=True, random_state=42)
    P = cross_val_predict(AffineCalibrator(), *found, cv=folds, method="predict_proba")
    return np.log(P), found[1]


def why(folder: str, kind: str, text: str, ours: float) -> str:
    far = abs(ours - float(text)) > 3e-4
    return IN_SINGLE_PRECISION if far and folder in SATURATED and kind == "raw" else LAST_DIGIT


def system(data: Data, name: str, folder: str, rows: dict[str, list[str]]) -> Iterator[Cell]:
    for kind, (log_p, y) in (("raw", data.answers(folder)), ("cal", calibrated(data, folder))):
        table = Answers.from_proba(y, log_p, log_proba=True).metrics(rule="trapezoid")
        table["N-BS of confidence"] *= 2  # as the paper prints it
        for (column, ours), text in zip(COLUMNS.items(), rows[kind], strict=True):
            value = float(table[ours])
            yield Cell(f"{name} {kind}", column, text, value, why(folder, kind, text, value))


def table_3(folders: Collection[str]) -> list[Callable[[Data], Iterator[Cell]]]:
    """Return what makes the cells of these sets."""
    return [
        partial(system, name=name, folder=folder, rows=rows)
        for name, folder, rows in SYSTEMS
        if folder in folders
    ]


def identity(table: str, only: Collection[str] = ()) -> list[Cell]:
    """ECUAS_1 of the printed error rates and Brier scores."""
    return [
        Cell(name, method, text, float(error) + float(brier), "", slack=0.00151)
        for name, *values in PAPER.rows(table)
        if not only or name in only
        for method, error, brier, text in zip(
            METHODS, values[::3], values[1::3], values[2::3], strict=True
        )
    ]


N_OF_CONFIDENCE, N_OF_SAMPLING = (0, 1, 4, 128), (0, 1, 128)


def cost_of_answers(n: float, n_classes: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidences from 1 / n_classes up, and what a right and a wrong answer cost at each."""
    confidence = np.linspace(1 / n_classes, 1, 401)
    right, wrong = (
        np.array([ecuas_from_confidence([y], [c], n=n, n_classes=n_classes) for c in confidence])
        for y in (1, 0)
    )
    return confidence, right, wrong


def cost_of_sampling(y: np.ndarray, log_p: np.ndarray, n: float, temperature: float) -> float:
    """Expected ECUAS_n if answers are drawn from softmax(log p / temperature)."""
    classes = range(log_p.shape[1])
    of_others = [logsumexp(np.delete(log_p, k, axis=1), axis=1) for k in classes]
    log_odds = log_p - np.stack(of_others, axis=1)  # exact also where p rounds to 1
    correct = y[:, None] == np.array(classes)
    with warnings.catch_warnings():  # unlikely answers are more uncertain than the largest u
        warnings.simplefilter("ignore", UserWarning)
        how = {"n": n, "n_classes": len(classes), "log_odds": True}
        how["sample_weight"] = softmax(log_p / temperature, axis=1).ravel()
        return ecuas_from_confidence(correct.ravel(), log_odds.ravel(), **how)


def draw_confidence(data: Data) -> Any:
    """Figure 1: solid lines for right answers, dashed ones for wrong answers."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for ax, n_classes in zip(panels, (4, np.inf), strict=True):
        for k, n in enumerate(N_OF_CONFIDENCE):
            confidence, right, wrong = cost_of_answers(n, n_classes)
            ax.plot(confidence, right, color=f"C{k}", label=f"n = {n}")
            ax.plot(confidence, wrong, color=f"C{k}", linestyle="--")
        title = "many classes" if np.isinf(n_classes) else f"{n_classes} classes"
        ax.set(xlabel="confidence in the answer", xlim=(confidence[0], 1), ylim=(0, 6), title=title)
    panels[0].set(ylabel="cost (solid: right, dashed: wrong)")
    panels[0].legend(frameon=False)
    return figure


def draw_sampling(data: Data) -> Any:
    """Figure 2: one line for each n, of one set."""
    log_p, y = calibrated(data, "agnews_gpt2")
    figure, ax = plt.subplots(layout="constrained")
    temperatures = np.geomspace(0.05, 10, 25)
    for n in N_OF_SAMPLING:
        costs = [cost_of_sampling(y, log_p, n, temperature) for temperature in temperatures]
        ax.plot(temperatures, costs, label=f"n = {n}")
    ax.set(xscale="log", xlabel="temperature of the sampling", ylabel="ECUAS")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return figure


def figure_1(data: Data) -> Iterator[Cell]:
    """What a rejected answer costs, right or wrong."""
    for n_classes, row in ((4, "K = 4"), (np.inf, "K → ∞")):
        for n in N_OF_CONFIDENCE:
            _, right, wrong = cost_of_answers(n, n_classes)
            yield Cell(row, f"n = {n}, right", "1", right.max())
            yield Cell(row, f"n = {n}, wrong", "1", wrong.min())


def rises(data: Data, name: str, folder: str) -> Iterator[Cell]:
    """Whether the cost rises with the temperature everywhere, on a set that takes no minutes."""
    log_p, y = data.answers(folder)
    if log_p.shape[1] > 10 or len(y) > 20_000:
        return
    log_p, y = calibrated(data, folder)
    for n in N_OF_SAMPLING:
        cost = [cost_of_sampling(y, log_p, n, t) for t in np.geomspace(0.05, 10, 9)]
        yield at_least(name, f"n = {n}", 0, float(np.diff(cost).min()), NOT_EXACT)


PAPER.make(
    cells={
        "Figure 1": [figure_1],
        "Figure 2": [partial(rises, name=name, folder=folder) for name, folder, _ in SYSTEMS],
        "Table 1": table_3(PAPER["Table 1"].needs),
        "Table 2": identity("Table 5", IN_TABLE_2),
        "Table 3": table_3(PAPER["Table 3"].needs),
        "Table 4": identity("Table 4"),
        "Table 5": identity("Table 5"),
    },
    draw={"Figure 1": draw_confidence, "Figure 2": draw_sampling},
)
