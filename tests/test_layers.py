"""Imports go down only; heavy or optional libraries are not imported at start-up."""

import ast
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import trajscore

ROOT = Path(trajscore.__file__).parent
PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
LAYERS = tomllib.loads(PYPROJECT.read_text())["tool"]["trajscore"]["layers"]
FILES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py")
}


def modules_of(node: ast.AST) -> list[str]:
    """Modules of this package that an import names, whether or not they are files."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name.startswith("trajscore")]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert node.level == 0, "imports name the whole path"
    module = node.module or ""
    if not module.startswith("trajscore"):
        return []
    inside = [f"{module}.{alias.name}" for alias in node.names]
    return [name for name in inside if name in FILES] or [module]


@cache
def imports(path: Path) -> set[str]:
    """All imports of a file, those inside functions and under TYPE_CHECKING as well."""
    return {name for node in ast.walk(ast.parse(path.read_text())) for name in modules_of(node)}


def package(module: str) -> str:
    return [*module.split("."), ""][1]


def test_every_package_has_a_level():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == {name for level in LAYERS for name in level}
    loose = {path.name for path in ROOT.glob("*.py")}
    assert loose == {"__init__.py", "__main__.py"}


def test_imports_go_down_only():
    level = {name: k for k, names in enumerate(LAYERS) for name in names}
    wrong = [
        f"{module} imports {other}"
        for module, path in FILES.items()
        for other in sorted(imports(path))
        if package(other)  # the package itself: its version
        and package(other) != package(module)
        and level[package(other)] >= level[package(module)]
    ]
    assert wrong == []
    assert len(FILES) > 50


def test_no_package_is_imported_from_within_itself():
    # a file names the file that it needs: a package's __init__ imports all of its files
    wrong = [
        f"{module} imports {other}"
        for module, path in FILES.items()
        for other in imports(path)
        if other not in FILES and package(other) == package(module)
    ]
    assert wrong == []


def test_files_do_not_import_in_circles():
    graph = {module: imports(path) & set(FILES) for module, path in FILES.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(FILES)


OPTIONAL = (
    *("matplotlib", "pooch", "tqdm", "pyarrow", "inspect_ai", "skops", "wordllama"),
    "sentence_transformers",
)


@pytest.mark.parametrize("module", ["trajscore", "trajscore.cli.main"])
def test_start_up_imports_only_what_is_used(module):
    heavy = ("numpy", "pandas", "scipy", "sklearn")
    code = (
        f"import sys, {module}; print([m for m in {heavy} if m in sys.modules]); "
        "import pandas, sklearn.metrics, trajscore; before = set(sys.modules); "
        "rooms = [getattr(trajscore, name) for name in trajscore.__all__]; "
        "print(set(trajscore.__all__) <= set(dir(trajscore))); "
        f"print([m for m in {OPTIONAL} if m in sys.modules and m not in before])"
    )
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["[]", "True", "[]"]


def test_the_first_screen_imports_only_what_it_shows():
    unused = ("trajscore.io.formats", "trajscore.monitoring", "sklearn.datasets", *OPTIONAL[:2])
    code = (
        "import pandas, sys; from trajscore.cli.main import main; main(['report', '--jobs', '1']); "
        f"print([m for m in {unused} if m in sys.modules], file=sys.stderr)"
    )
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stderr == "[]\n"


def test_a_name_that_is_not_there_is_said():
    with pytest.raises(AttributeError, match="module 'trajscore' has no attribute 'plots'"):
        trajscore.plots  # noqa: B018 - looked up for its error


def test_no_module_is_too_long():
    for path in ROOT.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= (400 if "report" in path.parts else 550), path
