"""Pages for those who change the code name files and things that are there."""

import ast
import json
import re
from pathlib import Path

import pytest

import trajscore
from scripts import load_script
from trajscore import plotting

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [PROJECT / "docs" / "built.rst", PROJECT / "CONTRIBUTING.md"]
# titles of things to do
NO_QUESTIONS = {
    "plot_03_live.py", "plot_01_csv.py", "plot_02_tau2.py", "plot_03_chats.py",
    "plot_01_grid_search.py", "plot_02_own_forecaster.py",
}  # fmt: skip


def exists(path):
    return (PROJECT / path).exists() or (PROJECT / "trajscore" / path).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_that_pages_name_exist(page):
    paths = re.findall(r"[`(]([\w./]+\.(?:py|rst|toml))\b", page.read_text())
    assert paths
    assert [path for path in paths if not exists(path)] == []


def test_things_are_in_the_files_named_behind_them():
    pairs = re.findall(r"``([\w.]+)``\s+\(``([\w/]+\.py)``\)", PAGES[0].read_text())
    assert len(pairs) > 10
    assert [pair for pair in pairs if pair[0] not in defined_in(pair[1])] == []


def defined_in(path):
    """Functions, classes, methods and constants that a file defines."""
    if not exists(path):
        return set()
    names = set()
    for node in ast.parse((PROJECT / "trajscore" / path).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
            inside = getattr(node, "body", [])
            names |= {f"{node.name}.{one.name}" for one in inside if hasattr(one, "name")}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_pages_of_the_gallery_ask_and_decide():
    pages = sorted((PROJECT / "docs" / "gallery").rglob("plot_*.py"))
    assert len(pages) >= 20
    for page in pages:
        text = page.read_text()
        asked = ast.get_docstring(ast.parse(text)).splitlines()[0]
        assert "**What it decides.**" in text, page
        assert asked.endswith("?") or page.name in NO_QUESTIONS, asked


def test_examples_that_pages_name_exist():
    named = [
        one
        for page in (PROJECT / "docs").rglob("*.rst")
        if "auto_gallery" not in page.parts
        for one in re.findall(r"/auto_gallery/(\w+/plot_\w+)", page.read_text(encoding="utf-8"))
    ]
    assert len(named) > 5
    gallery = PROJECT / "docs" / "gallery"
    assert [one for one in named if not (gallery / f"{one}.py").exists()] == []


def test_displays_have_a_picture():
    drawn = set(re.findall(r'"(\w+Display)": lambda', (PROJECT / "docs/pictures.py").read_text()))
    assert drawn == set(plotting.__all__)


def test_the_citation_names_this_version():
    text = (PROJECT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [trajscore.__version__]


def examples_of_public_data():
    gallery = stored_output().GALLERY
    pages = sorted(gallery.rglob("plot_*.py"))
    return [page for page in pages if stored_output().public_data(page.read_text("utf-8"))]


def stored_output():
    return load_script("stored_output", "docs")


@pytest.mark.parametrize("example", examples_of_public_data(), ids=lambda path: path.stem)
def test_examples_of_public_data_have_stored_output_of_the_same_code(example):
    file = stored_output().stored_file(example)
    of_code, outputs = stored_output().read(file)
    assert of_code == stored_output().code_hash(example.read_text("utf-8"))
    shown = re.findall(r"images/(sphx_\S+\.png)", "".join(outputs.values()))
    assert shown
    assert [name for name in shown if not (file.parent / name).exists()] == []


def test_stored_output_is_small_and_of_this_version():
    files = [file for file in stored_output().STORED.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 1_500_000
    reports = [file for file in files if file.suffix == ".html"]
    assert len(reports) == 2
    for report in reports:
        assert report.stat().st_size < 500_000
        assert f"trajscore {trajscore.__version__}</p>" in report.read_text("utf-8")


def test_stored_output_holds_nothing_that_was_said(public_file):
    log = json.loads(public_file("tau2", "airline_gpt-oss-120b.json").read_text("utf-8"))
    texts = {
        turn["content"].strip()
        for run in log["simulations"]
        for turn in run["messages"]
        if turn["role"] in ("user", "assistant") and len(turn.get("content") or "") > 40
    }
    assert len(texts) > 100
    stored = "".join(
        file.read_text("utf-8")
        for file in stored_output().STORED.rglob("*")
        if file.suffix in (".inc", ".html")
    )
    assert [text for text in texts if text[:40] in stored] == []


def test_outputs_are_put_below_their_code():
    page = (
        "Title\n=====\n\n.. GENERATED FROM PYTHON SOURCE LINES 1-2\n\n.. code-block:: Python\n\n"
        "    x = 1\n\n    x\n\n.. GENERATED FROM PYTHON SOURCE LINES 3-4\n\nWords.\n\n"
        ".. GENERATED FROM PYTHON SOURCE LINES 5-6\n\n.. code-block:: Python\n\n    x + 1\n\n\n"
        ".. rst-class:: sphx-glr-timing\n\n   0 seconds\n"
    )
    assert stored_output().outputs_of(page) == {}
    outputs = {0: ".. image-sg:: one.png\n   :alt: one", 1: "two"}
    whole = stored_output().with_outputs(page, outputs)
    assert stored_output().outputs_of(whole) == outputs
    assert stored_output().with_outputs(whole, {0: "other"}) == whole


@pytest.mark.parametrize(
    ("change", "is_other"),
    [("x = 2", True), ("# a remark\nx = 1", False), ("# %%\nx = 1", True), ("x = 1\n\n", False)],
)
def test_the_hash_is_of_the_code_alone(change, is_other):
    docstring = '"""\nTitle\n=====\n"""\n\n'
    of_code = stored_output().code_hash
    assert (of_code(docstring + change) != of_code(docstring + "x = 1")) == is_other
