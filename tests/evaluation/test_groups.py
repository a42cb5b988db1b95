"""Groups of runs: whether they differ, and what a report says of each."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from judged import drawn, evaluate
from known_scores import margin_over_best_constant
from refused import must_refuse
from trajscore import TrajectoryArray
from trajscore.datasets import make_trajectories

USE, AVOID, TOO_FEW = "use as it is", "do not use", "too few runs"
FAST = {"calibrator": None, "families": "log"}


def p_of(p, y, labels, fast, groups=None):
    """The p-value of forecasts of one step being worth another share in some group."""
    report = evaluate(p[:, None], y, by=labels, groups=groups, **fast)
    return report.by["p_value"].iloc[0]


def forecasts(seed, n=180):
    """Forecasts of skewed worth, without overconfidence."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.8, n).clip(0.01, 0.99)
    return p, (rng.random(n) < p).astype(int), rng


def test_runs_of_a_cluster_are_no_evidence_of_their_own(rng, fast):
    p, y, _ = forecasts(0, 48)
    copies = np.repeat(np.arange(48), 5)
    by = {f"kind {k}": rng.integers(0, 3, 48)[copies] for k in range(6)}
    found = []
    for groups in (None, copies):
        report = evaluate(p[copies, None], y[copies], by=by, groups=groups, **fast)
        found.append((report.by["p_value"].groupby("by").first() < 0.05 * 6).sum())
    assert found[0] > 2
    assert found[1] < 2


def test_several_kinds_of_groups_share_the_error_rate(fast):
    p, y, rng = forecasts(1)
    group = rng.integers(0, 3, len(y))
    one = p_of(p, y, {"a": group}, fast)
    two = evaluate(p[:, None], y, by={"a": group, "b": group}, **fast).by
    assert two["p_value"].to_numpy() == pytest.approx(min(1, 2 * one))


@pytest.mark.parametrize(("sizes", "is_tested"), [((5, 5), True), ((5, 4), False), ((9, 1), False)])
def test_groups_of_five_units_are_tested(fast, sizes, is_tested):
    group = np.repeat([0, 1], sizes)
    y = np.arange(len(group)) % 2
    p = np.where(y == (group == 0), 0.9, 0.1) + np.linspace(-0.05, 0.05, len(group))
    assert (p_of(p, y, group, fast) < 0.05) == is_tested
    assert (p_of(p, y, group, fast) == 1) != is_tested
    doubled = np.repeat(np.arange(len(group)), 2)  # two runs a cluster, which do not count twice
    found = p_of(p[doubled], y[doubled], group[doubled], fast, doubled)
    assert (found < 0.05) == is_tested


def shares(p, y, group):
    """Squared distances of the shares that groups save from that of all, over their variances."""
    log = np.where(y == 1, np.log(p), np.log1p(-p))
    prior = 5 * y.mean(), 5 * (1 - y).mean()

    def of(rows):
        rate = y[rows].mean()
        above = log[rows] - np.where(y[rows] == 1, np.log(rate), np.log1p(-rate))
        rate = (y[rows].sum() + prior[0]) / (len(rows) + 5)
        scale = -rate * np.log(rate) - (1 - rate) * np.log1p(-rate)
        return above.mean() / scale, len(rows) * (above - above.mean()).var() / scale**2 / len(rows)

    whole = of(np.arange(len(y)))[0]
    rows = [np.flatnonzero(group == one) for one in np.unique(group)]
    n = np.array([len(own) for own in rows])
    share, spread = np.transpose([of(own) for own in rows])
    variance = (n * spread + 4 * (n @ spread) / n.sum()) / (n + 4) / n
    return ((share - whole) ** 2 / variance).sum()


@pytest.mark.parametrize("seed", [0, 5])
def test_the_p_value_is_that_of_shuffled_labels(fast, seed):
    p, y, rng = forecasts(seed, 60)
    group = np.arange(60) % 3
    p = np.where((group == 0) & (rng.random(60) < 0.3), 1 - p, p)
    seen = shares(p, y, group)
    shuffled = [shares(p, y, rng.permutation(group)) for _ in range(1000)]
    expected = (1 + sum(one >= seen for one in shuffled)) / 1001
    error = np.sqrt(2 * expected * (1 - expected) / 1000)
    assert p_of(p, y, group, fast) == pytest.approx(expected, abs=4 * error + 0.002)


def test_what_only_knows_the_group_does_not_work_within_it(fast):
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 100)
    p = np.where(group, 0.8, 0.3)
    y = (rng.random(200) < p).astype(int)
    report = evaluate(p[:, None], y, by=group, **fast)
    assert report.cards["card"].iloc[0] == USE
    assert (report.by["p_value"] < 0.05).all()
    assert (report.by["card"] != USE).all()


# ------------------------------------------------------------------ cards of groups


def test_groups_that_do_not_differ_have_the_card_of_all_runs(grouped):
    of_all, groups = grouped.report.cards.iloc[0], grouped.report.by.loc["alike"]
    assert (groups["p_value"] >= 0.05).all()
    assert set(groups["card"]) == {of_all["card"]}
    for row in groups.to_dict("records"):
        share = row["matters"] / of_all["matters"]
        for name in ("as_given", "as_given_low", "as_given_high"):
            assert row[name] == pytest.approx(of_all[name] * share)
        assert all(row[name] == of_all[name] for name in ("n_needed", "overconfidence"))
    said = " ".join(str(grouped.report).split())
    assert "works is not shown to differ between the 4 groups" in said


def test_the_cards_of_groups_that_differ_are_their_own(grouped):
    groups = grouped.report.by.loc["kind"].droplevel("predictor")
    assert (groups["p_value"] < 0.01).all()
    assert groups["card"]["turned"] == AVOID
    assert (groups["card"][["one", "two"]] != AVOID).all()
    assert groups["as_given"]["turned"] > groups["own"]["turned"]  # shrunken
    assert groups["as_given"]["one"] < groups["own"]["one"]
    for name, row in groups.iterrows():
        own = np.asarray(grouped.by["kind"]) == name
        margin = margin_over_best_constant(grouped.y[own], grouped.X[own])
        assert row["own"] == pytest.approx(margin)
        assert row["n_runs"] == own.sum()
        assert row["success_rate"] == pytest.approx(grouped.y[own].mean())
    assert "but do not use it in kind turned" in " ".join(str(grouped.report).split())
    assert "how well forecast works differs between the" in grouped.report.verdicts()[0]


def shrunken(value, variance):
    """Paule and Mandel's variance by bisection; Morris's intervals in the terms of his paper."""
    n = len(value)

    def excess(between):
        weight = 1 / (variance + between)
        mean = (weight * value).sum() / weight.sum()
        return (weight * (value - mean) ** 2).sum() - (n - 1)

    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    weight = 1 / (variance + low)
    mean, kept = (weight * value).sum() / weight.sum(), low / (low + variance)
    centre = kept * value + (1 - kept) * mean
    unknown = (1 - kept) ** 2 * (1 / weight.sum() + 2 / max(n - 3, 1) * (value - mean) ** 2)
    return centre, np.minimum(np.sqrt((kept * variance + unknown) / variance), 1)


@pytest.mark.parametrize("n_groups", [2, 5])
def test_margins_of_groups_are_shrunken_as_published(rng, fast, n_groups):
    n = 60 * n_groups
    p = rng.uniform(0.05, 0.95, n)
    y = (rng.random(n) < p).astype(int)
    group = np.array(list("abcde"))[np.arange(n) % n_groups]
    worth = np.arange(n) % n_groups / (n_groups - 1)  # from turned round to true
    X = TrajectoryArray(np.clip(worth * p + (1 - worth) * (1 - p), 0.02, 0.98), [1] * n)
    found = evaluate(X, y, by=group, **fast).by.droplevel(["by", "predictor"])
    assert (found["p_value"] < 0.05).all()
    level = 1 - 0.05 / n_groups  # shared out over groups
    np.testing.assert_allclose(found["confidence_level"], level)
    draws = drawn(method="influence", confidence_level=level)
    own = [group == name for name in found.index]
    alone = [evaluate(X[rows], y[rows], **FAST, intervals=draws).cards.iloc[0] for rows in own]
    margin, low, high, matters = (
        np.array([card[name] for card in alone])
        for name in ("as_given", "as_given_low", "as_given_high", "matters")
    )
    half = (high - low) / matters / 2 / student.ppf((1 + level) / 2, 59)
    centre, factor = shrunken(margin / matters, half**2)
    np.testing.assert_allclose(found["own"], margin)
    np.testing.assert_allclose(found["as_given"], centre * matters, rtol=1e-6)
    ends = centre * matters - (margin - low) * factor, centre * matters + (high - margin) * factor
    np.testing.assert_allclose(found["as_given_low"], ends[0], rtol=1e-6)
    np.testing.assert_allclose(found["as_given_high"], ends[1], rtol=1e-6)


def test_a_group_that_needs_a_map_of_its_own_is_named(rng, quick):
    runs = make_trajectories(600, lengths=(3, 8), information=0.35, random_state=0)
    easy = np.arange(600) >= 400  # nearly all succeed, whatever is said of them
    y = np.where(easy, rng.random(600) < 0.9, runs.target)
    noise = np.repeat(easy, runs.q.lengths)
    X = runs.q.with_cells(np.where(noise, rng.random(len(noise)), runs.q.cells))
    bench = np.where(easy, "easy", "hard")
    report = evaluate(X, y, by={"bench": bench}, families="log", intervals=quick)
    assert "forecast, but do not use it in bench easy." in " ".join(str(report).split())


def test_a_group_of_few_runs_needs_more(fast):
    runs = make_trajectories(300, lengths=(3, 8), information=0.35, random_state=0)
    model = np.where(np.arange(300) < 200, "a", "b").astype(object)
    model[:5] = None
    report = evaluate(runs.q, runs.target, by=model, **fast)
    table = report.by.loc["group"].droplevel("predictor")
    assert table["n_runs"].to_dict() == {"(none)": 5, "a": 195, "b": 100}
    assert table.loc["(none)", "card"] == TOO_FEW
    assert table.loc["(none)", "n_needed"] > 0


def test_groups_are_columns_or_labels(fast):
    runs = make_trajectories(60, lengths=(3, 8), random_state=0)
    kind = np.arange(60) % 2
    X = TrajectoryArray(runs.q.cells, runs.q.lengths, ids=runs.q.ids, meta={"model": kind})
    tables = [
        evaluate(X, runs.target, by=by, **fast).by
        for by in ("model", {"model": "model"}, {"model": kind})
    ]
    for table in tables:
        pd.testing.assert_frame_equal(table, tables[0])
    assert table.index.names == ["by", "group", "predictor"]
    assert list(table.index.get_level_values("group")) == ["0", "1"]
    days = pd.Series(pd.to_datetime(["2020-01-01", None])).take(kind)
    pairs = pd.Series([("a", 1), "b"]).take(kind)
    for labels, names in ((days, ["(none)", "2020-01-01"]), (pairs, ["('a', 1)", "b"])):
        named = labels.reset_index(drop=True)
        table = evaluate(X, runs.target, by=named, **fast).by
        assert list(table.index.get_level_values("group")) == names
    rows = [
        ("modl", "by: .*'modl'; did you mean 'model'"),
        ("kind", "'kind'.*meta="),
        ([1, 2, 3], r"by: 'group' must be 60 labels, .* got shape \(3,\)"),
        (kind[:, None], r"shape \(60, 1\)"),
    ]
    must_refuse(lambda by: evaluate(X, runs.target, by=by), rows)


def test_many_small_groups_are_counted(fast):
    runs = make_trajectories(120, lengths=(3, 8), random_state=0)
    task = {"task": np.arange(120) // 4}
    report = evaluate(runs.q, runs.target, by=task, **fast)
    for text in (report.to_text(verbose=True), report.to_markdown()):
        assert "Not shown: 30 smaller groups." in " ".join(text.split())


def test_groups_are_in_every_form_of_the_report(grouped):
    report = grouped.report
    row = report.by.loc[("kind", "turned", "forecast")]
    cell = f"{row['as_given']:+.3f} [{row['as_given_low']:+.3f}, {row['as_given_high']:+.3f}]"
    shown = [f"{row['n_runs']}", f"{row['success_rate']:.0%}", row["card"], cell]
    lines = report.to_text(verbose=True).splitlines()
    line = next(one for one in lines if one.startswith("turned, forecast "))
    assert all(part in line for part in shown)
    assert f"| turned | forecast | {' | '.join(shown)} |" in report.to_markdown()
    page = report.to_html()
    assert "Groups by kind differ" in page
    assert "No sign of a difference between groups by alike" in page
