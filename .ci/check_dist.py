"""Check the files of a release: python .ci/check_dist.py FOLDER [TAG]."""

import re
import sys
import tarfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
LARGEST = 3_000_000  # bytes of each file
IN_SDIST = [
    "tests/conftest.py",
    "docs/conf.py",
    "tools/recipes/own_loop.py",
    ".ci/run",
    "README.md",
]
IN_SDIST += ["LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "SECURITY.md"]


def problems(folder, tag=None):
    """Return what is wrong with the files of a folder, each in a sentence."""
    text = (PROJECT / "trajscore" / "__init__.py").read_text()
    (version,) = re.findall(r'__version__ = "(.+)"', text)
    name = f"scikit_trajscore-{version}"
    wheel, sdist = folder / f"{name}-py3-none-any.whl", folder / f"{name}.tar.gz"
    files = {path.name for path in folder.iterdir()}
    if files != {wheel.name, sdist.name}:
        return [f"the folder has {sorted(files)}, and should have {wheel.name} and {sdist.name}"]
    sources = [path for path in (PROJECT / "trajscore").rglob("*") if path.is_file()]
    ours = {str(path.relative_to(PROJECT)) for path in sources if path.suffix != ".pyc"}
    with zipfile.ZipFile(wheel) as packed:
        in_wheel = {one for one in packed.namelist() if ".dist-info/" not in one}
    with tarfile.open(sdist) as packed:
        in_sdist = {one.partition("/")[2] for one in packed.getnames()}
    found = [f"the wheel has no {file}" for file in sorted(ours - in_wheel)]
    found += [f"the wheel has {file}, which is not source" for file in sorted(in_wheel - ours)]
    found += [f"the sdist has no {file}" for file in sorted({*ours, *IN_SDIST} - in_sdist)]
    for file in (wheel, sdist):
        if file.stat().st_size > LARGEST:
            found.append(f"{file.name} has {file.stat().st_size:,} bytes, above {LARGEST:,}")
    if tag is not None:
        if tag != f"v{version}":
            found.append(f"the tag is {tag}, and the version is {version}")
        if not re.search(
            rf"(?m)^## {re.escape(version)} \(\d", (PROJECT / "CHANGELOG.md").read_text()
        ):
            found.append(f"the changelog has no date at {version}")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]), *sys.argv[2:])) or None)
