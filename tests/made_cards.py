"""Cards, groups and the data around them, made by hand for tests of sentences."""

from types import SimpleNamespace

import pandas as pd

from trajscore.core.weights import as_step_weights
from trajscore.report._data import Facts, IntervalOptions, Options, Source

NAN = float("nan")
NOTHING = (NAN, NAN, NAN)
BETTER, WORSE, OPEN = (0.1, 0.05, 0.15), (-0.1, -0.15, -0.05), (0.02, -0.1, 0.14)


def card(action, *, as_given=BETTER, recalibrated=BETTER, gain=NOTHING, **others):
    ends = ("", "_low", "_high")
    estimates = {
        "as_given": as_given,
        "recalibrated": recalibrated,
        "gain": gain,
        "signal": NOTHING,
    }
    numbers = {
        f"{name}{end}": value
        for name, three in estimates.items()
        for end, value in zip(ends, three, strict=True)
    }
    rest = {"n_runs": 1000, "success_rate": 0.5, "n_needed": 0, "matters": 0.0125, "tied": False}
    return pd.Series({"card": action} | numbers | rest | others, dtype=object)


def data_of(cards, *, facts=None, **others):
    table = pd.DataFrame(cards).T.infer_objects() if cards else pd.DataFrame()
    stated = {
        "n_runs": 1000, "n_observed": 1000, "success_rate": 0.5, "censored": "failure",
        "rate": 0.5, "n_beyond": 0, "n_unscored": 0, "knows_end": {}, "is_clustered": False,
        "intervals": IntervalOptions(), "calibrators": None, "monitoring": None,
    }  # fmt: skip
    options = Options(("log",), as_step_weights(), "weighted")
    key = pd.MultiIndex.from_product([list(cards), ["as_given"]])
    rest = {
        "by": None, "pairs": None, "observed_cards": None, "monitoring": None,
        "intervals": pd.DataFrame(), "table": pd.DataFrame({"TPS log": NAN}, index=key),
        "source": Source(), "remarks": [],
    }  # fmt: skip
    return SimpleNamespace(
        cards=table,
        options=options,
        score_name="TPS log",
        facts=Facts(**(stated | (facts or {}))),
        **(rest | others),
    )


def cards_of(**actions):
    """Cards with margins that fall in the order of the names."""
    return {
        name: card(
            action,
            as_given=tuple(x - 0.001 * k for x in BETTER),
            recalibrated=tuple(x - 0.001 * k for x in BETTER),
            n_needed=100 * (k + 1),
        )
        for k, (name, action) in enumerate(actions.items())
    }


def groups_of(rows):
    """Cards of groups, rows being (group, predictor, p_value, card)."""
    index = pd.MultiIndex.from_tuples(
        [("kind", group, name) for group, name, _, _ in rows], names=["by", "group", "predictor"]
    )
    table = pd.DataFrame([own for *_, own in rows], index=index).infer_objects()
    return table.assign(p_value=[p for _, _, p, _ in rows])
