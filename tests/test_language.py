"""Plain English: idioms that readers stumble over do not come back."""

import ast
import re

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
TREES = {
    path.relative_to(PROJECT): ast.parse(path.read_text())
    for path in sorted((PROJECT / "trajscore").rglob("*.py"))
}


def texts(tree):
    """Every string of a file with its line: docstrings and messages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (one.value if isinstance(one, ast.Constant) else "X" for one in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def idioms(text):
    """Every idiom in a text, with what to write instead."""
    for idiom, plain in IDIOMS.items():
        for match in re.finditer(idiom, " ".join(text.split()), re.IGNORECASE):
            yield f"{match.group()!r}; write: {plain}"


def test_sentences_are_plain():
    assert [
        f"{path}:{line}: {problem}"
        for path, tree in TREES.items()
        for line, text in texts(tree)
        for problem in idioms(text)
    ] == []


def test_docs_are_plain():
    files = ("README.md", "CONTRIBUTING.md", "trajscore/report/glossary.toml")
    pages = [PROJECT / file for file in files]  # the changelog names old words
    made = {"auto_gallery", "generated"}  # of sources that are elsewhere
    pages += [page for page in (PROJECT / "docs").rglob("*.rst") if not made & set(page.parts)]
    assert [
        f"{page.relative_to(PROJECT)}: {problem}"
        for page in pages
        for problem in idioms(page.read_text())
    ] == []
