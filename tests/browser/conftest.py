"""Pages in a real browser: run them with ``pytest -m browser tests/browser``."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

from judged import evaluate
from trajscore.cli.main import main
from trajscore.datasets import load_chess, make_trajectories

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NAMES = ["chess", "eight", "twelve", "hotpotqa", "tau2"]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in Path(item.fspath).parents:
            item.add_marker(pytest.mark.browser)


def twelve_predictors(n=20_000):
    """Predictors of many runs, sharp and dull, honest and not, one with a long name."""
    runs = make_trajectories(n, information=0.5, lengths=(3, 25), budget=22, random_state=0)
    rng = np.random.default_rng(0)
    q = logit(np.clip(runs.q.cells, 1e-9, 1 - 1e-9))
    predictors = {}
    for k in range(12):
        log_odds = (0.3 * k) * q + (k % 3 - 1) + 0.3 * (k % 4) * rng.standard_normal(len(q))
        name = "the judge of the second day, a large model" if k == 3 else f"judge {k + 1}"
        predictors[name] = runs.q.with_cells(expit(log_odds))
    return predictors, runs.target


def write(name, folder, public_file):
    """Write one of the five pages; return the file, and the report where Python made it."""
    path, report = folder / f"{name}.html", None
    if name == "chess":
        X, y = load_chess(return_X_y=True)
        report = evaluate(X, y)
    elif name == "eight":
        X, y = load_chess(return_X_y=True)
        report = evaluate(X[:8], y[:8])
    elif name == "twelve":
        predictors, y = twelve_predictors()
        groups = np.array([f"model {k % 12}" for k in range(len(y))])
        report = evaluate(predictors, y, families=("log", "brier"), by={"model": groups})
    elif name == "tau2":
        log = public_file("tau2", "airline_gpt-oss-120b.json")
        assert main(["report", str(log), "--monitor", "--out", str(path)]) == 0
    else:
        table = public_file("evaluator", "hotpotqa_w_scores_compressed.csv.gz")
        options = "--id uq_problem_idx --step num_steps --score judge_probability --outcome solved"
        assert main(["report", str(table), *options.split(), "--out", str(path)]) == 0
    if report is not None:
        report.to_html(path)
    return path, report


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    with sync_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    return tmp_path_factory.mktemp("pages"), {}


@pytest.fixture(params=NAMES)
def written(request, browser, pages, public_file):
    folder, known = pages
    if request.param not in known:
        known[request.param] = write(request.param, folder, public_file)
    return known[request.param]


@pytest.fixture
def report_file(written):
    return written[0]


@pytest.fixture
def report(written):
    if written[1] is None:
        pytest.skip("made on the command line")
    return written[1]


@pytest.fixture
def visit(browser, report_file):
    """Open the page in a window of some width; what it logs and asks for is kept."""
    contexts = []

    def go(width=1400, **options):
        context = browser.new_context(viewport={"width": width, "height": 1000}, **options)
        contexts.append(context)
        page = context.new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.goto(report_file.as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
