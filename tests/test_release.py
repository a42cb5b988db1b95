"""What is checked before a release: contents and sizes of the files, and the tag."""

import io
import re
import tarfile
import zipfile

import trajscore
from scripts import PROJECT, load_script

check = load_script("check_dist", ".ci")
NAME = f"scikit_trajscore-{trajscore.__version__}"


def pack(folder, wheel, sdist):
    """Pack empty files of these names into a wheel and an sdist."""
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl", "w") as packed:
        for file in wheel:
            packed.writestr(file, "")
    with tarfile.open(folder / f"{NAME}.tar.gz", "w:gz") as packed:
        for file in sdist:
            packed.addfile(tarfile.TarInfo(f"{NAME}/{file}"), io.BytesIO())
    return folder


def test_what_a_release_should_not_have_or_has_not_is_named(tmp_path):
    package = [path for path in (PROJECT / "trajscore").rglob("*") if path.is_file()]
    ours = [str(path.relative_to(PROJECT)) for path in package if path.suffix != ".pyc"]
    sdist = [*ours, *check.IN_SDIST]
    assert check.problems(pack(tmp_path, [*ours, f"{NAME}.dist-info/RECORD"], sdist)) == []
    ours.remove("trajscore/report/glossary.toml")
    found = "; ".join(check.problems(pack(tmp_path, [*ours, "tests/a.py"], sdist[1:]), "v9.9"))
    for text in ("glossary.toml", "tests/a.py, which is not source", sdist[0], "the tag is v9.9"):
        assert text in found
    (tmp_path / "old.whl").touch()
    assert "old.whl" in check.problems(tmp_path)[0]


def test_each_promise_of_security_names_tests_that_exist():
    promises = (PROJECT / "SECURITY.md").read_text().split("\n- ")[1:]
    for promise in promises:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", promise)
        assert tests, promise
        for path, name in tests:
            assert f"def {name}(" in (PROJECT / path).read_text(), (path, name)
