"""E-valuator: agent verifiers with sequential hypothesis testing (Sadhuka et al., 2025)."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from trajscore import DensityRatioEProcess, PrefixForecaster, TrajectoryArray
from trajscore.datasets import load_chess
from trajscore.monitoring import CalibratedVerifier, Pac, RawVerifier, StoppingRule, split_report
from trajscore.plotting import EProcessDisplay, PowerDisplay, SavingsDisplay

from .items import Cell, Data, Paper, at_least, at_most

ALPHAS = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
# power and false alarms at each alpha, as the demonstration of the package prints them
DEMO_VILLE = ".2246 .0043 .3130 .0080 .3934 .0252 .4831 .0608 .5828 .1229 .7020 .1787 .7679 .2518"
DEMO_PAC = ".3043 .0074 .4680 .0436 .5514 .0909 .7077 .1959 .7836 .2887 .7886 .3268 .8683 .4926"
DEMO_THRESHOLDS = "19.1729 5.8901 3.8525 2.3852 1.7831 1.5992 1.2334"
LEVELS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
TABLES = {
    "hotpotqa": "HotpotQA", "gsm8k": "GSM8K", "medqa": "MedQA", "math": "MATH",
    "mmlupro": "MMLU-Pro", "chessgames": "LiChess",
}  # fmt: skip
SETTINGS = (
    "splits and settings of the paper's run are not given; its package does not give these "
    "numbers either, nor does another learner (last score, pooled, naive Bayes)"
)


def density_ratio(threshold: str | Pac, **options: Any) -> DensityRatioEProcess:
    """Return the published process: a regression a step, half of all known runs held out."""
    options = {"alpha": LEVELS} | options
    return DensityRatioEProcess(PrefixForecaster(), threshold, hold_out="runs", **options)


RULES: dict[str, StoppingRule] = {
    "raw verifier": RawVerifier(LEVELS),
    "calibrated verifier": CalibratedVerifier(LEVELS),
    "Bonferroni": density_ratio("bonferroni"),
    "1/alpha": density_ratio("ville"),
    "PAC": density_ratio("pac"),
}


def demonstration(data: Data) -> Iterator[Cell]:
    """What the package's own demonstration prints, with its split."""
    X, y = data.runs("hotpotqa")
    ids = np.array(sorted(X.ids, key=lambda one: int(one.rpartition("_")[2])))  # as in the file
    chosen = np.random.default_rng(42).choice(ids, int(0.8 * len(ids)), replace=False)
    place = pd.Series(np.arange(len(X)), index=X.ids)
    known = place[ids[np.isin(ids, chosen)]].to_numpy()
    new = place[ids[~np.isin(ids, chosen)]].to_numpy()
    ratio = np.random.default_rng(42).choice(X.ids[known], len(known) // 2, replace=False)
    ville = density_ratio("ville", alpha=ALPHAS).fit(X[known], y[known])
    pac = density_ratio(Pac(delta=0.05), alpha=ALPHAS)
    pac.fit(X[known], y[known], calibration=~np.isin(X.ids[known], ratio))
    for name, rule, text in (("1/alpha", ville, DEMO_VILLE), ("PAC", pac, DEMO_PAC)):
        report, printed = rule.report(X[new], y[new]), text.split()
        for k, alpha in enumerate(ALPHAS):
            row, power, false = f"alpha = {alpha}", *printed[2 * k : 2 * k + 2]
            yield Cell(row, f"{name}, power", power, report.loc[alpha, "power"])
            yield Cell(row, f"{name}, false alarms", false, report.loc[alpha, "false_alarm_rate"])
    for alpha, text, ours in zip(ALPHAS, DEMO_THRESHOLDS.split(), pac.thresholds_, strict=True):
        yield Cell(f"alpha = {alpha}", "PAC, threshold", text, ours)


@cache
def reports(data: Data, name: str) -> dict[str, pd.DataFrame]:
    """Rates of the five rules on runs that are new, a fifth known, over random splits."""
    found = data.runs(name)
    n_splits = min(data.splits, 5) if name == "chessgames" else data.splits  # hundreds of steps
    return {
        rule: split_report(one, *found, known_share=0.2, n_splits=n_splits)
        for rule, one in RULES.items()
    }


def controlled(name: str, data: Data) -> Iterator[Cell]:
    """What the paper says of a panel: who keeps to alpha, and who has most power of those."""
    tables = reports(data, name)
    false = {rule: table["false_alarm_rate"] for rule, table in tables.items()}
    excess = {rule: float((rate - rate.index).max()) for rule, rate in false.items()}
    ok = {rule: rate <= rate.index for rule, rate in false.items()}
    rivals = [tables[rule]["power"].where(ok[rule]) for rule in tables if rule != "PAC"]
    lead = float((tables["PAC"]["power"] - pd.concat(rivals, axis=1).max(axis=1)).min())
    more = float((false["Bonferroni"] - false["1/alpha"]).max())
    row, over = TABLES[name], "a rate over splits exceeds its level"
    yield at_most(row, "largest excess of 1/alpha", 0, excess["1/alpha"], over)
    yield at_most(row, "largest excess of PAC", 0, excess["PAC"], over)
    yield at_most(row, "Bonferroni minus 1/alpha", 0, more, "Bonferroni flags more")
    why = "another rule that keeps to alpha has more power at a level"
    yield at_least(row, "least lead of PAC", 0, lead, why)


def panel(name: str, data: Data) -> Iterator[Cell]:
    """What is said of a panel of Figure 2: no level is kept by calibrating the verifier."""
    yield from controlled(name, data)
    false = reports(data, name)["calibrated verifier"]["false_alarm_rate"]
    excess = float((false - false.index).max())
    why = "the calibrated verifier keeps to its level here"
    yield at_least(TABLES[name], "largest excess of calibrated", 0, excess, why)


def medqa(data: Data) -> Iterator[Cell]:
    row = reports(data, "medqa")["1/alpha"].loc[0.5]
    yield Cell("MedQA", "mean length", "2.4", float(data.runs("medqa")[0].lengths.mean()))
    false = row["false_alarm_rate"]
    yield Cell("MedQA, alpha = .5", "1/alpha, false alarms", "0.045", false, SETTINGS)


def hotpotqa(data: Data) -> Iterator[Cell]:
    tables = reports(data, "hotpotqa")
    raw = tables["raw verifier"]
    exchanged = (
        f"the raw verifier has {raw.loc[0.5, 'power']:.3f} and "
        f"{raw.loc[0.5, 'false_alarm_rate']:.3f} here, and so has the calibrated one at alpha = .4"
    )
    yield Cell("HotpotQA", "mean length", "4.7", float(data.runs("hotpotqa")[0].lengths.mean()))
    for rule, power, false, why in (
        ("calibrated verifier", "0.84", "0.61", exchanged),
        ("PAC", "0.81", "0.48", SETTINGS), ("1/alpha", "0.62", "0.21", SETTINGS),
    ):  # fmt: skip
        row, name = tables[rule].loc[0.5], f"HotpotQA, alpha = .5, {rule}"
        yield Cell(name, "power", power, row["power"], why)
        yield Cell(name, "false alarms", false, row["false_alarm_rate"], why)
    excess = raw["false_alarm_rate"] - raw.index
    row, why = "HotpotQA", "the raw verifier does otherwise here"
    yield at_least(row, "excess of the raw verifier, alpha = .5", 0, excess[0.5], why)
    yield at_most(row, "the same, alpha up to .4", 0, float(excess[excess.index <= 0.4].max()), why)


def rates(data: Data) -> pd.DataFrame:
    """Power and false alarms of the five rules at every level, HotpotQA."""
    return side_by_side(reports(data, "hotpotqa"))


def side_by_side(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Power / false alarms, a row a rule and a column a level."""
    rows = {
        rule: {
            f"alpha = {a}": f"{table.loc[a, 'power']:.3f} / {table.loc[a, 'false_alarm_rate']:.3f}"
            for a in table.index
        }
        for rule, table in tables.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def bundled_games() -> tuple[TrajectoryArray, np.ndarray]:
    """The bundled games that ended, by the strong engine."""
    X, y = load_chess(return_X_y=True)
    return X["engine"][y != -1], y[y != -1]


def chess(data: Data) -> pd.DataFrame:
    """The five rules on the bundled games."""
    found = bundled_games()
    return side_by_side(
        {rule: split_report(one, *found, n_splits=5) for rule, one in RULES.items()}
    )


def calibration_sizes(data: Data) -> pd.DataFrame:
    """PAC at alpha = .1 by how many runs are known, HotpotQA."""
    found, pac, rows = data.runs("hotpotqa"), density_ratio("pac", alpha=[0.1]), {}
    for share in (0.003, 0.01, 0.05, 0.2, 0.5):
        row = split_report(pac, *found, known_share=share, n_splits=20).iloc[0]
        rows[f"{int(row['n_known']):,} known"] = {
            column: f"{row[column]:.3f} [{row[f'{column}_low']:.3f}, {row[f'{column}_high']:.3f}]"
            for column in ("power", "false_alarm_rate")
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def toy(data: Data) -> Iterator[Cell]:
    """A calibrated score of two values, .005 and .5, that raises false alarms."""
    score, share = np.array([0.005, 0.5]), np.array([0.99, 0.01])
    runs = np.repeat(score, np.round(share * 100_000).astype(int))  # 99,000 and 1,000 runs
    weight = runs  # P(Y = 1) of each
    flagged = RawVerifier(0.01).fit(runs[:, None]).predict(runs[:, None]) == 0
    yield Cell("Appendix 8.1.4", "P(Y = 1)", "0.00995", float(weight.mean()))
    false = float(weight[flagged].sum() / weight.sum())
    yield Cell("Appendix 8.1.4", "false-alarm rate", "0.50", false)


def draw_rates(data: Data) -> Any:
    return PowerDisplay.from_reports(reports(data, "hotpotqa")).figure_


def draw_savings(data: Data) -> Any:
    """Draw success kept against steps used: a fifth of HotpotQA is known."""
    X, y = data.runs("hotpotqa")
    order = np.random.default_rng(0).permutation(len(X))
    known, new = np.split(order, [len(X) // 5])
    names = ("raw verifier", "calibrated verifier", "PAC")
    rules = {name: RULES[name].fit(X[known], y[known]) for name in names}
    return SavingsDisplay.from_estimator(rules, X[new], y[new]).figure_


def draw_sequences(data: Data) -> Any:
    """Draw log M of bundled games."""
    X, y = bundled_games()
    half = np.arange(len(X)) % 2 == 0
    process = density_ratio("ville", alpha=[0.1]).fit(X[half], y[half])
    return EProcessDisplay.from_estimator(process, X[~half], y[~half], n_runs=24).figure_


PAPER = Paper("evaluator")
PAPER.make(
    cells={
        "Figure 2": [hotpotqa, medqa, *(partial(panel, one) for one in PAPER["Figure 2"].needs)],
        "Figure 4": [partial(panel, "chessgames")],
        "Figure 5": [partial(controlled, "gsm8k"), partial(controlled, "math")],
        "Appendix 8.1.4": [toy],
        "Demonstration of the package": [demonstration],
    },
    instead={"Figure 2": rates, "Figure 4": chess, "Figure 6": calibration_sizes},
    draw={"Figure 2": draw_rates, "Figure 3": draw_savings, "Figure 7": draw_sequences},
)
