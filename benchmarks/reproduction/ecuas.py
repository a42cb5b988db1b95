"""ECUAS: the expected cost of uncertainty-augmented systems (Estienne et al., 2026)."""

from __future__ import annotations

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

from .items import Cell, Data, Item, Paper, at_least, numbers

# as printed, and as `Answers.metrics` calls them
COLUMNS = {
    "N-ER": "N-ER", "ECE": "ECE", "AUC": "AUC", "N-CE_qe": "N-CE of confidence",
    "N-BS_qe": "N-BS of confidence", "N-CE_q": "N-CE", "N-BS_q": "N-BS", "AURC": "AURC",
    "n=0": "N-ECUAS_0", "n=1": "N-ECUAS_1", "n=128": "N-ECUAS_128",
}  # fmt: skip

# Table 3: name of the folder, then raw and calibrated
TABLE_3 = """
SST-2,GPT-2,4-shot                  sst2_gpt2_4shot
raw 0.9956 0.3285 0.9444 1.0733 2.2368 1.0733 1.1184 0.1783 1.0528 1.1184 1.0015
cal 0.2288 0.0163 0.8305 0.7867 1.6646 0.4032 0.3368 0.0312 0.4350 0.3368 0.2302
SST-2,GPT-2,0-shot                  sst2_gpt2
raw 0.8284 0.2069 0.8059 0.9375 1.8975 0.9172 0.9204 0.1821 0.9162 0.9204 0.8348
cal 0.3080 0.0118 0.8136 0.7992 1.6466 0.4949 0.4285 0.0500 0.5272 0.4285 0.3103
SITW,PLDA                           sitw_plda
raw 0.3245 0.0012 0.9927 0.4951 1.6469 0.1895 0.2681 0.0000 0.1786 0.2681 0.3243
cal 0.3045 0.0002 0.9925 0.4361 1.6177 0.1580 0.2472 0.0000 0.1456 0.2472 0.3042
FVCAUS,PLDA                         fvcaus_plda
raw 3.9155 0.0178 0.9055 0.6929 1.5846 1.9664 2.9438 0.0095 1.7876 2.9438 3.9162
cal 0.0132 0.0001 0.9994 0.3234 1.6018 0.0079 0.0108 0.0000 0.0074 0.0108 0.0133
CIFAR-100,RepVGG-A2                 cifar100_repvgg_a2
raw 0.2273 0.0558 0.8741 0.7509 1.3781 0.1999 0.3269 0.0611 0.4704 0.3476 0.2290
cal 0.2277 0.0478 0.8722 0.7297 1.3690 0.1982 0.3262 0.0618 0.4598 0.3473 0.2295
CIFAR-100,ResNet-20                 cifar100_resnet-20
raw 0.3148 0.1033 0.8360 0.8203 1.5483 0.2661 0.4497 0.1115 0.6054 0.4811 0.3173
cal 0.3167 0.0163 0.8423 0.7128 1.3798 0.2434 0.4299 0.1104 0.5544 0.4650 0.3191
CIFAR-100,VGG19                     cifar100_vgg19_bn
raw 0.2639 0.1968 0.8671 1.6021 2.0075 0.3919 0.4494 0.0824 0.9697 0.4590 0.2660
cal 0.2657 0.0439 0.8570 0.7062 1.3265 0.2475 0.3746 0.0916 0.5008 0.3941 0.2677
Pneumonia,ResNet-50                 pneumoniamnist_resnet50
raw 0.2778 0.0763 0.8381 1.5503 1.8887 0.8016 0.3760 0.0314 0.9425 0.3760 0.2777
cal 0.2350 0.0101 0.8597 0.7457 1.6354 0.3361 0.2804 0.0198 0.3605 0.2804 0.2351
Adrenal,ResNet-50                   adrenalmnist_resnet50
raw 0.9275 0.1094 0.8022 0.9685 1.7767 0.9310 0.8419 0.0796 0.9586 0.8419 0.9275
cal 0.9130 0.0213 0.7798 0.8340 1.6735 0.7950 0.7840 0.0868 0.7947 0.7840 0.9152
Path,ResNet-50                      pathmnist_resnet50
raw 0.1137 0.0714 0.8633 1.7322 1.8706 0.3285 0.1859 0.0220 0.5975 0.1918 0.1137
cal 0.0758 0.0135 0.9123 0.6585 1.5578 0.1020 0.1118 0.0081 0.1748 0.1187 0.0758
IEMOCAP,Wav2Vec-2.0                 iemocap_wav2vec_pt
raw 0.5036 0.0629 0.7004 0.9427 1.8188 0.6347 0.6464 0.2085 0.7964 0.6810 0.5036
cal 0.4970 0.0211 0.6978 0.9132 1.7891 0.6152 0.6349 0.2062 0.7690 0.6687 0.4970
AGNews,GPT-2                        agnews_gpt2
raw 0.7796 0.1844 0.6431 1.0539 2.1339 0.8138 0.8894 0.4352 1.0045 0.9803 0.7857
cal 0.3786 0.0362 0.7001 0.9325 1.8136 0.5353 0.5414 0.1724 0.7111 0.5802 0.3816
CIFAR-10,ResNet-20                  cifar10_resnet-20
raw 0.0822 0.0382 0.9216 0.7942 1.5977 0.1223 0.1319 0.0092 0.2368 0.1407 0.0829
cal 0.0839 0.0070 0.9233 0.6123 1.4360 0.1011 0.1243 0.0093 0.1900 0.1364 0.0845
CIFAR-10,VGG19                      cifar10_vgg19_bn
raw 0.0677 0.0504 0.9209 1.2340 1.8889 0.1528 0.1237 0.0075 0.3118 0.1268 0.0682
cal 0.0683 0.0128 0.9184 0.6892 1.5651 0.1033 0.1103 0.0081 0.1804 0.1165 0.0689
CIFAR-10,RepVGG-A2                  cifar10_repvgg_a2
raw 0.0526 0.0318 0.9217 0.8760 1.6854 0.0921 0.0889 0.0061 0.1859 0.0936 0.0530
cal 0.0528 0.0084 0.9146 0.6380 1.4953 0.0736 0.0824 0.0069 0.1390 0.0887 0.0532
"""
SATURATED = ("pneumoniamnist_resnet50", "pathmnist_resnet50")
IN_SINGLE_PRECISION = "confidences saturate at 1 in the authors' single precision"
LAST_DIGIT = "the last digits: single precision, or where the optimiser stops"
NOT_EXACT = (
    "it falls slightly somewhere (at most .001): confidences are calibrated out of fold, not "
    "exactly, and only of exact ones does it always rise"
)

# Tables 4 and 5: error rate, Brier score of the confidence, ECUAS_1
MMLU = """
Qwen3.5-4B       0.265 0.146 0.411  0.265 0.207 0.472  0.273 0.239 0.512
Qwen3.5-9B       0.234 0.131 0.365  0.234 0.211 0.445  0.234 0.207 0.441
GLM-4.6V-Flash   0.264 0.182 0.446  0.264 0.239 0.503  0.280 0.240 0.520
Ministral-3-8B   0.372 0.333 0.705  0.372 0.264 0.636  0.327 0.272 0.599
Flash-Lite       0.181 0.127 0.308  0.181 0.172 0.353  0.187 0.156 0.343
Flash            0.145 0.135 0.280  0.145 0.143 0.288  0.126 0.114 0.240
Pro              0.087 0.128 0.215  0.087 0.087 0.174  0.095 0.085 0.180
"""
TRIVIA_QA = """
Qwen3.5-4B       0.303 0.165 0.469  0.303 0.168 0.471  0.308 0.250 0.557
Qwen3.5-9B       0.251 0.132 0.382  0.251 0.139 0.389  0.246 0.212 0.459
GLM-4.6V-Flash   0.209 0.103 0.311  0.209 0.194 0.403  0.209 0.154 0.363
Ministral-3-8B   0.237 0.234 0.471  0.237 0.109 0.347  0.231 0.191 0.422
Flash-Lite       0.119 0.063 0.182  0.119 0.087 0.205  0.108 0.080 0.188
Flash            0.064 0.057 0.121  0.064 0.053 0.117  0.059 0.054 0.113
Pro              0.044 0.092 0.136  0.044 0.054 0.098  0.037 0.036 0.073
"""
IN_TABLE_2 = ("Qwen3.5-9B", "Ministral-3-8B", "Flash-Lite", "Flash")
METHODS = ("sequence posterior", "is true", "verbalized")
ANSWERS = "the models' answers and confidences are not public"
IDENTITY = (
    "For :math:`K \\to \\infty`, ECUAS\\ :sub:`1` is the error rate plus the Brier score of the "
    "confidence (``tests/test_reproduce.py``): so the printed columns can be held against each "
    "other, to .001"
)


def printed_sets() -> list[tuple[str, str, dict[str, list[str]]]]:
    """Name, folder, and printed rows of each set of Table 3."""
    lines = numbers(TABLE_3)
    return [
        (title[0].replace(",", " "), title[1], {raw[0]: raw[1:], cal[0]: cal[1:]})
        for title, raw, cal in zip(lines[::3], lines[1::3], lines[2::3], strict=True)
    ]


@cache
def calibrated(data: Data, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities out of fold, and classes."""
    found = data.answers(folder)
    folds = StratifiedKFold(5, shuffle=True, random_state=42)
    P = cross_val_predict(AffineCalibrator(), *found, cv=folds, method="predict_proba")
    return np.log(P), found[1]


def why(folder: str, kind: str, printed: str, ours: float) -> str:
    """Why a cell of Table 3 differs."""
    far = abs(ours - float(printed)) > 3e-4
    return IN_SINGLE_PRECISION if far and folder in SATURATED and kind == "raw" else LAST_DIGIT


def system(data: Data, name: str, folder: str, rows: dict[str, list[str]]) -> Iterator[Cell]:
    """Two rows of Table 3."""
    for kind, (log_p, y) in (("raw", data.answers(folder)), ("cal", calibrated(data, folder))):
        table = Answers.from_proba(y, log_p, log_proba=True).metrics(rule="trapezoid")
        table["N-BS of confidence"] *= 2  # as the paper prints it
        for (column, ours), text in zip(COLUMNS.items(), rows[kind], strict=True):
            value = float(table[ours])
            yield Cell(f"{name} {kind}", column, text, value, why(folder, kind, text, value))


def table_3(only: Collection[str] = ()) -> list[Callable[[Data], Iterator[Cell]]]:
    """Return what makes the cells of each set, or of some."""
    return [
        partial(system, name=name, folder=folder, rows=rows)
        for name, folder, rows in printed_sets()
        if not only or folder in only
    ]


IN_TABLE_1 = (
    "fvcaus_plda", "agnews_gpt2", "cifar100_resnet-20", "cifar100_vgg19_bn", "cifar100_repvgg_a2",
    "cifar10_resnet-20", "cifar10_vgg19_bn", "cifar10_repvgg_a2",
)  # fmt: skip


def identity(text: str, only: Collection[str] = ()) -> list[Cell]:
    """ECUAS_1 of the printed error rates and Brier scores."""
    return [
        Cell(name, method, printed, float(error) + float(brier), "", slack=0.00151)
        for name, *values in numbers(text)
        if not only or name in only
        for method, error, brier, printed in zip(
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
        return ecuas_from_confidence(
            correct.ravel(),
            log_odds.ravel(),
            n=n,
            n_classes=len(classes),
            sample_weight=softmax(log_p / temperature, axis=1).ravel(),
            log_odds=True,
        )


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


PAPER = Paper(
    "ECUAS: a family of principled metrics for uncertainty-augmented systems",
    [
        Item(
            "Figure 1", "Cost of an answer against its confidence",
            "the statement that a right answer costs at most 1 "
            "and a wrong one at least 1, at the lowest confidence",
            [figure_1], draw=draw_confidence,
            caption="Right answers solid, wrong ones dashed.",
        ),
        Item(
            "Figure 2", "ECUAS as answers are sampled from ever flatter distributions",
            "in expectation over the sampling; the statement that "
            "the cost rises with the temperature on every set, shown by the smallest rise among "
            "nine temperatures",
            [partial(rises, name=name, folder=folder) for name, folder, _ in printed_sets()],
            "the curves have no printed numbers; CIFAR-100, FVCAUS and SITW are left out (minutes)",
            draw=draw_sampling, caption="AGNews, calibrated out of fold.",
        ),
        Item(
            "Equations 5 to 17", "The cost, its integral, and its special cases",
            "``tests/metrics/test_answers.py``, ``tests/metrics/test_rejection_cost.py``",
        ),
        Item(
            "Table 1", "Classification systems, a part of Table 3",
            "as Table 3",
            table_3(IN_TABLE_1), needs=IN_TABLE_1,
        ),
        Item(
            "Table 2", "TriviaQA, four models, a part of Table 5", IDENTITY,
            identity(TRIVIA_QA, IN_TABLE_2), f"{ANSWERS} (the other columns)",
        ),
        Item(
            "Table 3", "All classification systems, raw and calibrated",
            "folds of seed 42; ``tests/metrics/"
            "test_answer_table.py``. N-BS_qe is printed as twice the normalised score",
            table_3(), needs=tuple(folder for _, folder, _ in printed_sets()),
        ),
        Item(
            "Table 4", "MMLU, seven models and three confidences", IDENTITY,
            identity(MMLU), f"{ANSWERS} (the other columns)",
        ),
        Item(
            "Table 5", "TriviaQA, seven models and three confidences", IDENTITY,
            identity(TRIVIA_QA), f"{ANSWERS} (the other columns)",
        ),
        Item(
            "Table 6", "Labels by a model against labels by people", "",
            missing=f"{ANSWERS}; the columns of the human labels are those of Table 5",
        ),
    ],
)  # fmt: skip
