"""Pages for those who change the code name files and things that are there."""

import json
import re
from pathlib import Path

import pytest

import trajscore
from scripts import load_script

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [PROJECT / "docs" / "built.rst", PROJECT / "CONTRIBUTING.md"]


def exists(path):
    return (PROJECT / path).exists() or (PROJECT / "trajscore" / path).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_that_pages_name_exist(page):
    paths = re.findall(r"[`(]([\w./]+\.(?:py|rst|toml))\b", page.read_text())
    assert paths
    assert [path for path in paths if not exists(path)] == []


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


def test_the_citation_names_this_version():
    text = (PROJECT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [trajscore.__version__]


stored_output = load_script("stored_output", "docs")


def test_examples_of_public_data_have_stored_output_of_the_same_code():
    pages = sorted(stored_output.GALLERY.rglob("plot_*.py"))
    pages = [page for page in pages if stored_output.public_data(page.read_text("utf-8"))]
    assert pages
    for page in pages:
        file = stored_output.stored_file(page)
        of_code, outputs = stored_output.read(file)
        assert of_code == stored_output.code_hash(page.read_text("utf-8")), page
        shown = re.findall(r"images/(sphx_\S+\.png)", "".join(outputs.values()))
        assert shown, page
        assert [name for name in shown if not (file.parent / name).exists()] == []


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
        for file in stored_output.STORED.rglob("*")
        if file.suffix in (".inc", ".html")
    )
    assert [text for text in texts if text[:40] in stored] == []
