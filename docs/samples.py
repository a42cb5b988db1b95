"""Public data for the gallery, and reports made at the build.

Data is taken from $TRAJSCORE_TEST_DATA, or fetched; where neither can be done, pages show stored
output, of docs/stored.
"""

import os
from contextlib import chdir, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from unittest.mock import patch

from stored_output import STORED, public_data

from trajscore import Report, datasets
from trajscore.cli.main import main
from trajscore.report.glossary import GLOSSARY

HOME = Path(__file__).resolve().parent / "generated" / "data"
os.environ.setdefault("SCIKIT_LEARN_DATA", str(HOME))


def without_data(gallery, data):
    """Return the names of examples whose data cannot be had, after plot_."""
    return sorted(
        path.name.removeprefix("plot_")
        for path in gallery.rglob("plot_*.py")
        if not all(at_hand(*one, data) for one in public_data(path.read_text()))
    )


@cache
def at_hand(kind, name, data):
    """Say whether data is here, after putting it where the fetchers look."""
    if kind == "file":
        return (data / name).exists()
    if kind == "evaluator":
        wanted = {_table(name): f"evaluator/{_table(name)}"}
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
        print(f"examples that need {name} show stored output: {error}")
        return False
    return True


def _table(name):
    """Return the file name of a table of E-valuator."""
    return f"{name}_w_scores_compressed.csv.gz"


# -------------------------------------------------------------------- reports

_LOG = Path("tau2") / "airline_gpt-oss-120b.json"
_COLUMNS = "--id uq_problem_idx --step num_steps --score judge_probability --outcome solved"


def write_reports(generated, data):
    """Write a report of each kind of input, and the lines of rst that link to them."""
    folder = generated / "extra" / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, (text, make) in _REPORTS.items():
        if not make(data, folder / f"{name}.html"):
            copy(STORED / "reports" / f"{name}.html", folder)
        lines.append(f"* `{name} <reports/{name}.html>`__, of {text}")
    (generated / "reports.inc").write_text("\n".join(lines) + "\n")


def store_reports():
    """Store the reports of public data, without what was said in the dialogues."""
    data, folder = Path(os.environ["TRAJSCORE_TEST_DATA"]), STORED / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    whole = Report.to_html
    with patch.object(Report, "to_html", lambda report, path, **of_log: whole(report, path)):
        for name in ("hotpotqa", "airline"):
            if not _REPORTS[name][1](data, folder / f"{name}.html"):
                raise SystemExit(f"the data of the report {name} is not in {data}")


def _chess(data, path):
    return _report(None, "", path)


def _hotpotqa(data, path):
    if not at_hand("evaluator", "hotpotqa", data):
        return False
    file = Path(os.environ["SCIKIT_LEARN_DATA"]) / "trajscore" / _table("hotpotqa")
    return _report(file, _COLUMNS, path)


def _real_runs(data, path):
    return _report(Path(datasets.load_real_runs().filename), "", path)


def _airline(data, path):
    return (data / _LOG).exists() and _report(data / _LOG, "", path)


def _report(file, options, path):
    """Write a report as the command line does, in the folder of its input; return True."""
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(StringIO()):
        name = [] if file is None else [copy(file, file.name)]
        main(["report", *name, *options.split(), "--out", path.name])
        copy(path.name, path)
    return True


_REPORTS = {
    "chess": ("a table: 360 games of a weak engine, three predictors (bundled)", _chess),
    "hotpotqa": ("a table: 16,110 question-answering runs, a judge's probability", _hotpotqa),
    "real_runs": ("a log: 2,000 dialogues of two small language models (bundled)", _real_runs),
    "airline": ("a log: 50 tau2-bench airline dialogues of gpt-oss-120b", _airline),
}


def write_glossary(generated):
    """Write what the numbers of a report mean, as the report's page tells it."""
    lines = [f"**{name}**\n   {text}" for name, text in GLOSSARY.items()]
    (generated / "numbers.inc").write_text("\n".join(lines) + "\n")
