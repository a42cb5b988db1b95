"""What is checked before a release: contents and sizes of the files, and the tag."""

import io
import tarfile
import zipfile

import pytest

import trajscore
from scripts import PROJECT, load_script

check = load_script("check_dist", ".ci")
NAME = f"scikit_trajscore-{trajscore.__version__}"


@pytest.fixture
def dist(tmp_path):
    """Return a folder, and what packs files of the project into a wheel and an sdist there."""

    def pack(wheel, sdist):
        with zipfile.ZipFile(tmp_path / f"{NAME}-py3-none-any.whl", "w") as packed:
            for file in wheel:
                packed.writestr(file, "")
        with tarfile.open(tmp_path / f"{NAME}.tar.gz", "w:gz") as packed:
            for file in sdist:
                packed.addfile(tarfile.TarInfo(f"{NAME}/{file}"), io.BytesIO())
        return tmp_path

    return pack


def test_what_is_missing_or_too_much_in_a_release_is_named(dist):
    package = [path for path in (PROJECT / "trajscore").rglob("*") if path.is_file()]
    ours = [str(path.relative_to(PROJECT)) for path in package if path.suffix != ".pyc"]
    sdist = [*ours, *check.IN_SDIST]
    assert check.problems(dist([*ours, f"{NAME}.dist-info/RECORD"], sdist)) == []
    words, help_file = "trajscore/report/sentences.toml", "trajscore/cli/help.toml"
    assert {words, help_file} <= set(ours)
    ours.remove(words)
    found = check.problems(dist([*ours, "tests/conftest.py"], sdist[1:]), "v9.9")
    for text in (words, "tests/conftest.py, which is not source", sdist[0], "the tag is v9.9"):
        assert any(text in problem for problem in found), text
    (dist([], []) / "old.whl").touch()
    assert "old.whl" in check.problems(dist([], []))[0]
