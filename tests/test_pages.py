"""Pages for those who change the code name files and things that are there."""

import ast
import re
from pathlib import Path

import pytest

import trajscore
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
