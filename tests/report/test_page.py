"""The page, as text: what it shows, what it escapes, and that small data never break it."""

import json
import re
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from judged import evaluate
from known_scores import collapsed
from trajscore import DensityRatioEProcess, PrefixForecaster, TrajectoryArray, io
from trajscore.calibration import cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.report import MonitoringOptions

VOID = {"meta", "br", "input", "wbr"}
HEADS_OF_WORDS = {
    "predictor", "form", "metric", "stop reason", "reason", "level", "step", "steps", "kind",
    "group", "locator",
}  # fmt: skip
EVIL = "<img src=x onerror=alert(1)>\"'</script>"


class Tags(HTMLParser):
    """Collects ids, and tags that are closed in another order than they were opened."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def check(page):
    """Hold a page to what every page promises."""
    tags = Tags()
    tags.feed(page)
    assert (tags.wrong, tags.open) == ([], [])
    assert len(tags.ids) == len(set(tags.ids))
    assert {"answer", "numbers"} <= set(tags.ids)
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(tags.ids)
    assert "://" not in page  # it asks for nothing from elsewhere
    assert not re.search(r'<(link|img|iframe)\b|\bsrc="', page)
    assert not re.search(r' (?:d|x|x1|x2|y1|y2|cx|cy|width)="[^"]*(nan|inf)', page)
    assert not re.search(r'width="-', page)
    assert not re.search(r"\b(nan|inf)\b", plain(page))
    # every head of a column of numbers tells what they are
    heads = re.findall('<th scope="col"(?: class="number")?>(.*?)</th>', page)
    assert set(heads) <= HEADS_OF_WORDS
    return page


def plain(page):
    """What the page says, without its marks."""
    body = re.sub("<(script|style).*?</\\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub("<[^>]*>", " ", body)).split())


def data_in(page):
    block = '<script type="application/json" class="data">(.*?)</script>'
    return json.loads(re.search(block, page)[1])


def test_the_page_keeps_its_promises(page, report):
    check(page)
    assert len(page) < 1e6
    assert page.count('class="row') == len(report.predictors)
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)[1]
    assert "prefers-color-scheme: dark" in style or "prefers-color-scheme:dark" in style
    assert re.search('class="[^"]*theme', page)
    said, run = unescape(page), np.array([0.2, 0.6])
    assert f"<pre>{report.code()}</pre>" in said
    assert re.search(r"<code>(trajscore[.]Dens.*?)</code>", said)[1] in report.code()
    names = {"np": np, "trajscore": sys.modules["trajscore"], "p": run}
    value = eval(re.search(r"<code>(np[.].*?)</code>", said)[1], names)
    assert value == pytest.approx(collapsed([run])[0])


def random_table(seed):
    """A few runs of any lengths, some without an outcome, with rough or constant values."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 61))
    lengths = rng.integers(1, rng.integers(2, 30), n)
    cells = rng.random((lengths.sum(), 3))
    cells[:, 0] = cells[:, 0].round(int(rng.integers(0, 3)))
    if rng.random() < 0.3:
        cells[:, 1] = 0.5
    if rng.random() < 0.3:
        cells[:, 2] = 10 * cells[:, 2] - 5
    y = (rng.random(n) < rng.uniform(0.1, 0.9)).astype(int)
    y[:2] = 0, 1
    y[2:] = np.where(rng.random(n - 2) < rng.choice([0, 0.3]), -1, y[2:])
    return TrajectoryArray(cells, lengths, channels=["a", "b", "c"]), y


# at 1026 a group has no failure
@pytest.mark.parametrize("seed", [0, 1026])
def test_small_random_tables_make_a_page(seed, quick):
    X, y = random_table(seed)
    by = np.arange(len(y)) % 3 if seed else None
    monitoring = MonitoringOptions(n_splits=2) if seed == 0 else False
    options = {"calibrator": "platt", "families": "log", "intervals": quick}
    report = evaluate(X, y, by=by, monitoring=monitoring, **options)
    check(report.to_html())
    assert json.loads(report.to_json())["version"] == 2


def test_small_data_have_a_small_page(chess, quick):
    report = evaluate(chess[0][:8], chess[1][:8], families="log", intervals=quick)
    page = check(report.to_html())
    assert "there are too few runs to say anything" in page
    assert page.count('<details class="run"') == 8
    for part in ('data-tile="', 'id="why"', 'class="data"', 'class="row'):
        assert part not in page


def test_all_that_is_given_is_escaped(fast):
    X, y = make_trajectories(30, random_state=0, return_X_y=True)
    ids, meta = [f"{EVIL}{k}" for k in range(30)], {"stop_reason": [EVIL] * 29 + [None]}
    named = TrajectoryArray(X.cells, X.lengths, ids=ids, meta=meta)
    report = evaluate({EVIL: named}, y, by={EVIL: [EVIL] * 30}, **fast)
    for page in (report.to_html(), report._repr_html_()):
        assert "<img" not in page
        assert page.count("</script>") == page.count("<script")
        assert "<td>nan</td>" not in page
        assert "&lt;img src=x" in page
    traces = dict.fromkeys(("<script>alert(1)</script>", "$x_1$", "[a](b)", "a|b"), X)
    text = evaluate(traces, y, **fast).to_markdown()
    body = re.sub("</?(details|summary)>", "", text)
    assert re.findall(r"(?<!\\)(?:<|\$|\]\()", body) == []
    assert "| a\\|b | as given |" in text


def test_a_notebook_shows_the_first_screen(report, page, monkeypatch):
    shown = report._repr_html_()
    assert 'id="all-numbers"' not in shown
    assert page.count("<h1>") == shown.count("<h1>") == 1
    assert "href=" not in shown  # nothing but the first screen is there to go to
    # its style is its own, and stronger than that of a notebook
    style = re.search("<style>(.*?)</style>", shown, re.DOTALL)[1].strip()
    depth = np.cumsum([(mark == "{") - (mark == "}") for mark in style])
    assert (depth[style.index("{") : -1] > 0).all()
    commanded = replace(report, source=replace(report.source, command="trajscore report runs.csv"))
    assert "(--code shows how)" in " ".join(commanded.to_text().split())
    assert "(--code" not in commanded.to_html() + commanded._repr_html_()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert report._repr_html_().startswith("<table")
    with pytest.raises(ImportError, match=r"Jinja2.*pip install"):
        report.to_html()


@pytest.mark.parametrize("how", [
    {"weights": "uniform"}, {"censored": "drop", "groups": np.arange(360) // 3},
    {"calibrator": PrefixForecaster(features="running", pooled=True)},
    {"calibrator": PrefixForecaster(), "censored": "drop", "groups": np.arange(360) // 3},
])  # fmt: skip
def test_the_forecaster_is_the_one_that_was_judged(chess, quick, how):
    X, y = chess
    report = evaluate(X["material"], y, families="log", intervals=quick, **how)
    forecaster, judged = report.forecaster("material"), report.traces["material", "recalibrated"]
    folds = {"groups": how.get("groups"), "cv": getattr(forecaster, "cv", 5)}
    again = cross_fit_traces(forecaster, X["material"], y, **folds)  # of -1 as in the report
    rows = pd.Index(again.ids).get_indexer(judged.ids)
    assert np.abs(again[rows].cells - judged.cells).max() < 1e-12


# ------------------------------------------------------------------ what it says of acting


def test_curves_count_the_runs_that_thresholds_accept_and_stop(report, page):
    data = data_in(page)
    assert data["shown"] == "material"
    assert set(data["stop"]) == set(report.predictors)
    key = "material", "recalibrated"
    number, failed = collapsed(report.traces[key]), 1 - report.runs.labels
    curve = data["accept"]
    curves = (curve[name] for name in ("threshold", "accepted", "failing"))
    for t, accepted, failing in zip(*curves, strict=True):
        reached = number >= t - 1e-9
        assert accepted == pytest.approx(reached.mean())
        assert failing == pytest.approx((reached * failed).mean())
    assert curve["accepted"][0] == 1
    assert min(curve["accepted"]) * 360 >= 20  # few runs say little
    assert 15 <= len(curve["threshold"]) <= 102
    for name, stop in data["stop"].items():
        trace = report.traces[name, "recalibrated"]
        for k, t in enumerate(stop["threshold"][::9]):
            below = [np.flatnonzero(run.ravel() < t - 1e-9) for run in trace]
            stopped = np.array([len(steps) > 0 for steps in below])
            pairs = zip(trace.lengths, below, strict=True)
            saved = sum(n - steps[0] - 1 for n, steps in pairs if len(steps))
            assert stop["good"][9 * k] == pytest.approx(stopped[failed == 0].mean())
            assert stop["bad"][9 * k] == pytest.approx(stopped[failed == 1].mean())
            assert stop["saved"]["steps"][9 * k] == pytest.approx(saved / len(trace.cells))


def test_what_to_accept_is_cheapest(report, page):
    curve = data_in(page)["accept"]
    said = json.loads(report.to_json())["answer"]["accept"]
    accepted, failing = np.array(curve["accepted"]), np.array(curve["failing"])
    cost = 2 * failing + 1 - accepted
    t, share, failed, price, every = re.search(
        r"of (\S+) or more\. (\S+)% of runs reach it, and (\S+)% of those failed\. "
        r"For 100 runs that costs as much as (\S+) reviews; accepting all costs (\S+),", said,
    ).groups()  # fmt: skip
    best = int(np.argmin(cost))
    assert float(t) == pytest.approx(curve["threshold"][best])
    expected = accepted[best], failing[best] / accepted[best], cost[best], cost[0]
    found = [float(text) / 100 for text in (share, failed, price, every)]
    assert found == pytest.approx(expected, abs=0.0051)


def answer_of(p, y, fast, X=None, **options):
    X = TrajectoryArray(p, np.ones(len(y), dtype=int)) if X is None else X
    report = evaluate(X, y, **fast, **options)
    return json.loads(report.to_json())["answer"]


@pytest.mark.parametrize(
    ("n_failed", "p", "words"),
    [
        (40, 0.8, "Accept every run. For 100 runs, accepting all costs as much as 40 reviews"),
        (160, 0.2, "Review every run. For 100 runs, accepting all costs as much as 160 reviews"),
        (100, None, "Accept runs with a "),
    ],
)
def test_accepting_all_or_none_is_said_where_no_threshold_pays(fast, n_failed, p, words):
    y = (np.arange(200) >= n_failed).astype(int)
    p = np.full(200, p) if p else np.where(y == 1, 0.9, 0.1)
    p = p + np.linspace(-0.01, 0.01, 200)[np.random.default_rng(0).permutation(200)]
    said = answer_of(p, y, fast)["accept"]
    assert words in said
    if n_failed == 100:
        assert "0% of those failed" in said


def test_what_to_stop_loses_at_most_five_of_a_hundred_good_runs(report, page):
    said = json.loads(report.to_json())["answer"]["stop"]
    stop = data_in(page)["stop"]["material"]
    t, saved, bad, good = re.search(
        r"falls below (\S+)\. That saves (\S+)% of all steps, and stops (\S+) of 100 failing runs "
        r"and (\S+) of 100 good", said,
    ).groups()  # fmt: skip
    k = int(np.flatnonzero(np.array(stop["good"]) <= 0.05 + 1e-9)[-1])
    assert float(t) == stop["threshold"][k]
    expected = stop["saved"]["steps"][k], stop["bad"][k], stop["good"][k]
    assert [float(text) / 100 for text in (saved, bad, good)] == pytest.approx(expected, abs=0.0051)


def test_where_stopping_costs_good_runs_none_is_stopped(fast):
    y = np.arange(200) % 2
    late = np.where(y == 1, 0.9, 0.1) + np.linspace(-0.02, 0.02, 200)
    good_dip = np.column_stack([np.where(y == 1, 0.3, 0.5), late, late])
    X = TrajectoryArray.from_padded(good_dip)
    one = evaluate({"dips": X}, y, **fast)
    said = json.loads(one.to_json())["answer"]["stop"]
    assert "falls below 0.1" in said or "falls below 0.3" in said  # below which no good run falls
    level = TrajectoryArray(np.repeat(np.where(y == 1, 0.9, 0.8), 1), np.ones(200, dtype=int))
    said = answer_of(None, y, fast, level)["stop"]
    assert "no threshold saves steps" in said  # of runs of one step


def test_a_rule_on_other_runs_stands_beside_the_steps_saved(short_wins, fast):
    monitoring = MonitoringOptions(DensityRatioEProcess(alpha=[0.1, 0.3]), n_splits=1)
    page = check(evaluate(*short_wins, monitoring=monitoring, **fast).to_html())
    assert "fitted on some runs and judged on others" in page
    rule = DensityRatioEProcess(threshold="ville", alpha=1e-5)
    idle = evaluate(*short_wins, monitoring=MonitoringOptions(rule, n_splits=1), **fast)
    assert "no failing run is flagged before its last step" in check(idle.to_html())


# ------------------------------------------------------------------ said against happened


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        ((0.4, 0.6), "No: where it says 90%, only 60% succeed, too far off for chance."),
        ((0.1, 0.6), "No: where it says 90%, only 60% succeed, too far off for chance."),
        ((0.5, 0.9), "No: where it says 10%, 50% succeed, too far off for chance."),
        ((0.1, 0.9), "Yes: where it says 90%, 90% succeed."),
    ],
)
def test_the_answer_names_what_is_mostly_said(quick, happens, words):
    half = np.arange(200) / 200
    y = np.concatenate([half < rate for rate in happens]).astype(int)
    X = TrajectoryArray(np.repeat([0.1, 0.9], 200), np.ones(400, dtype=int))
    report = evaluate(X, y, calibrator="isotonic", families="log", intervals=quick)
    stated = json.loads(report.to_json())["answer"]["statements"]
    text = next(each for each in stated if "word" in each["question"])
    assert f"{text['answer'].capitalize()}: {text['text']}." == words


def test_why_says_at_which_steps_a_forecast_beats_the_base_rate(fast):
    y = np.arange(60) % 2
    right = np.where(y == 1, 0.8, 0.2) + np.random.default_rng(0).uniform(-0.1, 0.1, 60)
    cells = np.column_stack([np.full(60, 0.5), (right + 0.5) / 2, right])
    page = evaluate(cells, y, **fast).to_html()
    assert "shown to be better than the base rate at step 2; best at step 3" in page
    assert "60 runs reach it" in page


def test_bars_show_what_is_known_and_the_margin_that_is_left(report, page):
    for name in report.predictors:
        for form in ("as_given", "recalibrated"):
            row = report.table.loc[(name, form)]
            assert f"knows {row['TPS log margin'] + row['MCB log']:.3f}" in page
            assert f"{row['TPS log margin']:+.3f}" in page


def test_useless_and_many_predictors_are_folded(useful, fast):
    rng = np.random.default_rng(0)
    p, y = useful.X["true"][:200], useful.y[:200]
    X = {f"p{k}": p.with_cells(p.cells ** (1 + k / 50)) for k in range(10)}
    X |= {f"noise {k}": p.with_cells(rng.random(len(p.cells))) for k in range(6)}
    report = evaluate(X, y, **fast)
    assert (report.cards["card"] == "do not use").sum() == 6
    said = plain(report.to_html())
    assert "7 more: p9, noise" in said or "7 more: p0, noise" in said
    assert "and 2 more" in said
    assert "and 6 more predictors: do not use 6" in " ".join(str(report).split())
    eleven = {name: X[name] for name in report.predictors[:11]}
    report = evaluate(eleven, y, **fast)
    assert "and 1 more predictor: do not use 1" in " ".join(str(report).split())


# ------------------------------------------------------------------ runs


def losses(report, key):
    """Mean loss of each run over its steps, by hand."""
    trace, labels = report.traces[key], report.runs.labels
    found = []
    for run, label in zip(trace, labels, strict=True):
        p = run.ravel().clip(1e-6, 1 - 1e-6)
        w = 1 / np.sqrt(np.arange(1, len(p) + 1))
        found.append(-(w @ (label * np.log(p) + (1 - label) * np.log1p(-p))) / w.sum())
    return np.array(found)


def test_the_worst_runs_are_listed_worst_first(quick):
    X, y = make_trajectories(100, random_state=0, return_X_y=True)
    y = np.where(np.arange(100) % 2 == 0, -1, y)
    report = evaluate(X, y, calibrator=None, intervals=quick)
    page, key = report.to_html(), ("forecast", "as_given")
    rows = re.findall(r'<details class="run"[^>]*>', page)
    assert len(rows) == 60
    outcomes = [re.search(r'data-outcome="([^"]*)"', row)[1] for row in rows]
    assert outcomes == sorted(outcomes, key=lambda one: one == "not observed")  # which come last
    assert set(outcomes[:50]) == {"succeeded", "failed"}
    loss, seen = losses(report, key), report.runs.y >= 0
    worst = np.flatnonzero(seen)[np.argmax(loss[seen])]
    first = json.loads(report.to_json())["answer"]["read_first"]
    assert first.startswith(
        f"Run {report.traces[key].ids[worst]}. Its average loss is {max(loss[seen]):.2f}"
    )
    assert "the largest of 50 runs with an outcome" in first
    found = [float(re.search(r'data-loss="([^"]*)"', row)[1]) for row in rows[:50]]
    np.testing.assert_allclose(found, np.sort(loss[seen])[::-1], rtol=1e-3, atol=1e-4)


def test_the_step_to_look_at_is_where_the_run_was_most_wrong(fast):
    cells = np.full((40, 4), 0.5) + np.linspace(-0.01, 0.01, 160).reshape(40, 4)
    y = np.arange(40) % 2
    cells[4] = 0.5, 0.6, 0.99, 0.7  # fails
    said = answer_of(None, y, fast, TrajectoryArray.from_padded(cells))["read_first"]
    assert "4. Its average loss" in said
    assert "At step 3 the forecast was 99%; the run failed" in said
    cells[4] = 0.99, 0.98, 0.6, 0.5  # most wrong at the first, which says little: where it moved
    said = answer_of(None, y, fast, TrajectoryArray.from_padded(cells))["read_first"]
    assert "At step 3 the forecast was 60%" in said


@pytest.mark.parametrize("n_worst", [1, 60])
def test_a_run_without_a_wrong_step_is_not_read_first(quick, n_worst):
    X, y = make_trajectories(200, random_state=0, return_X_y=True)
    is_worst = (y == 1) & (np.cumsum(y) <= n_worst)
    X = X.with_cells(np.where(np.repeat(is_worst, X.lengths), 1e-3, X.cells.clip(0.01, 0.99)))
    labels = np.where(y == 1, 0, 1)
    report = evaluate(X, y, calibrator=None, intervals=quick, first_error=labels)
    key, failed = ("forecast", "as_given"), np.flatnonzero(report.runs.y == 0)
    worst = failed[np.argmax(losses(report, key)[failed])]
    said = json.loads(report.to_json())["answer"]["read_first"]
    assert said.startswith(f"Run {report.traces[key].ids[worst]}. ")
    assert f"the largest of {len(failed)} runs that failed" in said
    page = check(report.to_html())  # where the link leads to it
    assert page.count('<details class="run"') == (61 if n_worst == 60 else 60)
    unlabelled = evaluate(X, y, calibrator=None, intervals=quick, first_error=labels * 0 - 1)
    assert "the largest of 200 runs." in json.loads(unlabelled.to_json())["answer"]["read_first"]


def test_signals_together_are_not_called_recalibrated(quick):
    X, y = make_trajectories(150, random_state=0, return_X_y=True)
    y[::5] = -1  # b varies only in runs without an outcome
    two = {"a": X, "b": X.with_cells(np.where(np.repeat(y, X.lengths) < 0, X.cells, 0.5))}
    for traces, label in ((two, "all together"), ({"a": X}, "with its history")):
        page = evaluate(traces, y, together=True, intervals=quick).to_html()
        assert all(f"{label} {word}" in page for word in ("knows", "off by"))


# ------------------------------------------------------------------ a log beside the runs


def talk(n, n_agent, *, cost=0.5, known=1.0):
    """A log of turns of a user and an agent, some of which say what they cost."""
    runs = []
    for k in range(n):
        steps = []
        for t in range(n_agent):
            own = cost if k < known * n else None
            extra = {} if own is None else {"usage": {"inputTokens": 3, "outputTokens": 4}}
            steps += [
                io.Step("user", f"<b>question {t}</b>"),
                io.Step("agent", "x" * 5000 if t == 0 else "**answer**", cost=own, extra=extra),
            ]
        runs.append(io.Run(f"r{k}", steps, outcome=k % 2, task=f"t{k}"))
    return runs


def page_of_log(runs, n_steps, fast):
    rng = np.random.default_rng(0)
    X = TrajectoryArray(
        rng.random(len(runs) * n_steps), [n_steps] * len(runs), ids=[run.id for run in runs]
    )
    y = io.outcomes(runs)
    report = evaluate(X, y, **fast)
    return check(report.to_html(log=runs))


def test_code_needs_a_name_of_the_weights():
    X, y = make_trajectories(200, random_state=0, return_X_y=True)
    report = evaluate(X.with_cells(X.cells**3), y, weights=lambda t: 1 / t)
    assert all(line.startswith("# ") for line in report.code().splitlines())
    assert "Define it with def" in report.code()


def test_transcripts_have_the_step_and_the_forecast_beside_each_turn(fast):
    page = page_of_log(talk(20, 3), 3, fast)
    assert page.count('<ol class="turns">') == 20
    assert all(text in page for text in ("&lt;b&gt;question 0&lt;/b&gt;", "<b>answer</b>"))
    assert "(3,800 characters more)" in page
    assert page.count('<span class="at">step 1<br>') == 20
    assert page.count("Task t") == 20
    stop = data_in(page)["stop"]["forecast"]
    assert set(stop["saved"]) == {"steps", "money", "tokens read and generated"}
    np.testing.assert_allclose(stop["saved"]["money"], stop["saved"]["steps"])  # of as much a step
    both = page_of_log(talk(20, 3), 6, fast)  # steps are turns of user and agent
    assert both.count('<span class="at">step 6<br>') == 20
    assert "“" in page  # what was said at the step to look at


def test_long_logs_are_cut(fast):
    steps = [io.Step("agent", "Hi", tool_calls=[io.ToolCall("search", '{"q": 1}')])] * 90
    runs = [io.Run(f"r{k}", steps, outcome=k % 2) for k in range(20)]
    page = page_of_log(runs, 90, fast)
    assert "10 more turns" in page or "10 turns more" in page
    assert page.count('<span class="at">step 80<br>') == 20
    assert "search({&#34;q&#34;: 1})" in page
