"""Imports go down only; heavy or optional libraries are not imported at start-up."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import trajscore

ROOT = Path(trajscore.__file__).parent
LAYERS = [
    {"_coerce", "_forms", "_makers", "trajectories", "outcomes", "weights", "stops"},
    {"_frames", "_storage", "validation", "_running", "_transformer", "io"},
    {"metrics"},
    {"calibration"},
    {"inference", "monitoring", "tracer"},
    {"censoring"},
    {"plotting"},
    {"report"},
    {"_tables", "_logs", "datasets", "testing", "_serve"},
    {"cli", "__main__", "__init__"},
]
# these know only the container, whatever stands above them
ONLY_CONTAINER = {"datasets", "_tables", "io"}


def level(name: str) -> int:
    return next(k for k, names in enumerate(LAYERS) if name in names)


def top_level_imports(path: Path):
    for node in ast.parse(path.read_text()).body:  # imports inside functions are deferred
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trajscore"):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [a.name for a in node.names]


def test_imports_go_down_only():
    seen = 0
    for path in ROOT.rglob("*.py"):
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for other in top_level_imports(path):
            if other == "__version__":
                continue
            seen += 1
            assert level(other) <= level(own), f"{path.name} ({own}) imports {other}"
            if own in ONLY_CONTAINER and other != own:
                assert level(other) <= 1, f"{own} may know only the container, not {other}"
    assert seen > 50


def test_start_up_leaves_optional_libraries_alone():
    code = (
        "import sys, trajscore; "
        "optional = ('matplotlib', 'pooch', 'tqdm', 'pyarrow', 'narwhals', 'inspect_ai', 'skops', "
        "'wordllama', 'sentence_transformers'); "
        "print([m for m in optional "
        "if m in sys.modules and m not in before])"
    )
    before = "import sys, sklearn.metrics, pandas; before = set(sys.modules); "
    result = subprocess.run(
        [sys.executable, "-c", before + code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_subpackages_are_attributes_but_imported_only_when_used():
    code = (
        "import sys, trajscore; "
        "assert {'datasets', 'plotting', 'io'} <= set(dir(trajscore)); "
        "assert 'trajscore.plotting' not in sys.modules; "
        "print(trajscore.plotting.__name__, trajscore.datasets.make_trajectories.__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["trajscore.plotting", "make_trajectories"]
    with pytest.raises(AttributeError, match="module 'trajscore' has no attribute 'plots'"):
        trajscore.plots  # noqa: B018 - looked up for its error


def test_no_module_is_too_long():
    for path in ROOT.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 550, path
