"""Pages for those who change the code name files and things that are there."""

import json
import os
import pkgutil
import re
from pathlib import Path

import pytest

import trajscore
from scripts import PROJECT, load_script

GUIDE = PROJECT / "docs" / "user_guide"
PAGES = [PROJECT / "docs" / "built.rst", PROJECT / "CONTRIBUTING.md"]


def exists(path):
    return (PROJECT / path).exists() or (PROJECT / "trajscore" / path).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_that_pages_name_exist(page):
    paths = re.findall(r"[`(]([\w./]+\.(?:py|rst|toml))\b", page.read_text())
    assert paths
    assert [path for path in paths if not exists(path)] == []


def test_the_guide_asks_at_most_fourteen_questions_with_a_picture_each():
    pages = {*GUIDE.glob("*.rst")} - {GUIDE / "index.rst"}
    assert len(pages) <= 14
    for page in pages:
        text = page.read_text("utf-8")
        assert text.partition("\n")[0].endswith("?"), page
        assert len(re.findall(r"^\.\. (?:image::|container:: flow)", text, re.MULTILINE)) == 1, page
    assert len([*stored_output.GALLERY.rglob("plot_*.py")]) <= 20


def test_the_citation_names_this_version():
    text = (PROJECT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [trajscore.__version__]


# ------------------------------------------------------------------ from equation to code

PAPERS = Path(os.environ.get("TRAJSCORE_TEST_DATA", PROJECT)).parent / "papers"
SECTIONS = {
    "tps_paper.txt": "Trajectory Proper Scores", "ecuas_paper.txt": "ECUAS",
    "evaluator_paper.txt": "E-valuator", "tracer_paper.txt": "TRACER",
}  # fmt: skip
KINDS = "Eq|Theorem|Proposition|Assumption|Remark|Corollary|Lemma|Algorithm|Table|Figure|Section|"
KINDS += "Appendix"


def equations_page():
    parts = re.split(r"(?m)^(.+)\n-{3,}$", (PROJECT / "docs" / "equations.rst").read_text())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_links_from_equations_lead_to_public_objects():
    links = [
        link
        for text in equations_page().values()
        for link in re.findall(r":(?:func|class|meth):`([\w.]+)`", text)
    ]
    assert len(links) > 50
    assert [link for link in links if not pkgutil.resolve_name(link).__doc__] == []


@pytest.mark.parametrize(("paper", "section"), SECTIONS.items(), ids=SECTIONS.values())
def test_equations_are_numbered_as_in_the_papers(paper, section):
    if not (PAPERS / paper).exists():
        pytest.skip("the texts of the papers are not here")
    text, named = (PAPERS / paper).read_text(), equations_page()[section]
    numbers = {kind: set() for kind in KINDS.split("|")}
    number = r"[A-Z\d][\dIV.]*(?:-\d+)?\b"
    for kind, listed in re.findall(rf"\b({KINDS})\.? ({number}(?:, {number})*)", named):
        for one in listed.split(", "):
            first, _, last = one.partition("-")
            numbers[kind] |= {str(k) for k in range(int(first), int(last) + 1)} if last else {one}
    printed = re.findall(r"(?m)(?:\\quad| ) ?\((\d\d?)\)(?:\s*\\end\{\w+\})?[ $]*$", text)
    assert numbers.pop("Eq") == set(printed)  # each is here, or said to stand in a proof alone
    for kind, named_numbers in numbers.items():
        for one in named_numbers:
            # sections, and what only a heading numbers: at the start of a line
            heading = rf"(?m)^(?:{kind} )?{re.escape(one)}\.? [A-Z]"
            start = kind[:3] + r"\w*\.?"
            found = re.search(rf"(?i)\b{start} {re.escape(one)}\b", text) or re.search(
                heading, text
            )
            assert found, (paper, kind, one)


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
