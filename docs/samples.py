"""Public data for the gallery, and reports made at the build.

Data is taken from $TRAJSCORE_TEST_DATA, or fetched; where neither can be done, the page that would
have shown it says so.
"""

import os
import re
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from shutil import copy

from trajscore import datasets, evaluate
from trajscore.report._glossary import GLOSSARY

HOME = Path(__file__).resolve().parent / "generated" / "data"
os.environ.setdefault("SCIKIT_LEARN_DATA", str(HOME))


def without_data(gallery, data):
    """Return the names of examples whose data cannot be had, after plot_."""
    return sorted(
        path.name.removeprefix("plot_")
        for path in gallery.rglob("plot_*.py")
        if not all(at_hand(*one, data) for one in asked(path.read_text()))
    )


def say_not_run(not_run, docname, source):
    """Say on the page of an example that its data could not be had."""
    if docname.rpartition("/plot_")[2] + ".py" in not_run and "auto_gallery" in docname:
        note = (
            "\n.. note::\n   The public data of this page could not be had when it was built, so "
            "the code is shown without output.\n"
        )
        source[0] = re.sub(r"(?m)^(=+)$", rf"\1\n{note}", source[0], count=1)


def asked(code):
    """Return what public data an example asks for, as pairs of kind and name."""
    fetched = re.findall(r"fetch_(evaluator|expected_cost)\(\s*\"(\w[\w-]*)\"", code)
    return [*fetched, *(("file", name) for name in re.findall(r"PUBLIC_LOGS / \"(.+?)\"", code))]


@cache
def at_hand(kind, name, data):
    """Say whether data is here, after putting it where the fetchers look."""
    if kind == "file":
        return (data / name).exists()
    if kind == "evaluator":
        wanted = {
            f"{name}_w_scores_compressed.csv.gz": f"evaluator/{name}_w_scores_compressed.csv.gz"
        }
        fetch = datasets.fetch_evaluator
    else:
        parts = ("scores", "targets")
        wanted = {f"{name}_{one}.npy": f"expected_cost/{name}/{one}.npy" for one in parts}
        fetch = datasets.fetch_expected_cost
    folder = Path(os.environ["SCIKIT_LEARN_DATA"]) / "trajscore"
    folder.mkdir(parents=True, exist_ok=True)
    for file, here in wanted.items():
        if not (folder / file).exists() and (data / here).exists():
            copy(data / here, folder / file)
    try:
        fetch(name)
    except Exception as error:  # no network, in one of many ways
        print(f"examples that need {name} are shown without output: {error}")
        return False
    return True


# -------------------------------------------------------------------- reports

_LOG = "tau2/airline_gpt-oss-120b.json"


def write_reports(generated, data):
    """Write a report of each kind of input, and the lines of rst that link to them."""
    folder = generated / "extra" / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, text, make in (
        ("chess", "a table: 360 games of a weak engine, three predictors (bundled)", _chess),
        ("hotpotqa", "a table: 16,110 question-answering runs, a judge's probability", _hotpotqa),
        ("airline", "a log: 50 tau2-bench airline dialogues of gpt-oss-120b", _airline),
    ):
        try:
            make(data, folder / f"{name}.html")
        except FileNotFoundError:
            lines.append(f"* {name}, of {text}: not made here, because its data could not be had")
        else:
            lines.append(f"* `{name} <reports/{name}.html>`__, of {text}")
    (generated / "reports.inc").write_text("\n".join(lines) + "\n")


def _chess(data, path):
    X, y = datasets.load_chess(return_X_y=True)
    evaluate(X, y).to_html(path)


def _hotpotqa(data, path):
    if not at_hand("evaluator", "hotpotqa", data):
        raise FileNotFoundError
    X, y = datasets.fetch_evaluator("hotpotqa", return_X_y=True)
    evaluate({"judge": X}, y).to_html(path)


def _airline(data, path):
    from trajscore.cli.main import main

    if not (data / _LOG).exists():
        raise FileNotFoundError
    with redirect_stdout(StringIO()):
        main(["report", str(data / _LOG), "--out", str(path)])


def write_glossary(generated):
    """Write what the numbers of a report mean, as the report's page tells it."""
    lines = [f"**{name}**\n   {text}" for name, text in GLOSSARY.items()]
    (generated / "numbers.inc").write_text("\n".join(lines) + "\n")
