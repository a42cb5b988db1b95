"""Plain English: idioms and names that readers stumble over do not come back."""

import ast
import re

import pytest

from scripts import PROJECT

# what reads as a riddle, and what to write instead
IDIOMS = {
    r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|larger|smaller|worse|better|wider"
    r"|narrower|later|earlier)[a-z]": "is not a",
    r"\bthose above\b": "name what is allowed",
    r"\b(?:is|are) none of\b": "is not one of",
    r"\btells? [a-z ]{0,30}apart\b": "distinguish",
    r"\btold apart\b": "distinguished",
    r"\bas telling as\b": "equivalent to",
    r"\bgiveaways?\b": "leakage",
    r"\bstray values?\b": "out-of-range values",
    r"\black(?:s|ing)?\b": "missing, has no",
    r"\bfaults? of the test bench\b": "infrastructure error",
    r"\bso many\b": "give the number",
    r"\bcan be said as well\b": "say what the option does",
    r"\bweighted forecast\b": "average confidence, early steps counting more",
    r"\bit was not said\b": "say what to pass",
}
NAMES = {"found", "said", "told", "given", "kept", "made", "one", "those", "what"}
ROOMS = sorted(path.parent.name for path in (PROJECT / "trajscore").glob("*/__init__.py"))


def files(room):
    return sorted((PROJECT / "trajscore" / room).rglob("*.py"))


def texts(tree):
    """Every string of a file with its line: docstrings and messages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(
                    part.value if isinstance(part, ast.Constant) else "X" for part in node.values
                ),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def names(tree):
    """Every name that a file gives, with its line: variables, parameters, functions, fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef):
            yield node.lineno, node.name


def idioms(text):
    """Every idiom in a text, with what to write instead."""
    for idiom, plain in IDIOMS.items():
        for match in re.finditer(idiom, " ".join(text.split()), re.IGNORECASE):
            yield f"{match.group()!r}; write: {plain}"


@pytest.mark.parametrize("room", ROOMS)
def test_sentences_are_plain(room):
    problems = [
        f"{path.relative_to(PROJECT)}:{line}: {problem}"
        for path in files(room)
        for line, text in texts(ast.parse(path.read_text()))
        for problem in idioms(text)
    ]
    assert problems == []


@pytest.mark.parametrize("room", ROOMS)
def test_names_are_nouns(room):
    problems = [
        f"{path.relative_to(PROJECT)}:{line}: {name}"
        for path in files(room)
        for line, name in names(ast.parse(path.read_text()))
        if name in NAMES
    ]
    assert problems == []


def test_docs_are_plain():
    pages = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"]  # the changelog names old words
    made = {"auto_gallery", "generated"}  # of sources that are elsewhere
    pages += [page for page in (PROJECT / "docs").rglob("*.rst") if not made & set(page.parts)]
    problems = [
        f"{path.relative_to(PROJECT)}: {problem}"
        for path in pages
        for problem in idioms(path.read_text())
    ]
    assert problems == []
