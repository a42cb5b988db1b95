"""Files of a container: whole, or not there."""

import os
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray

COLUMNS = {
    "floats": [1 / 3, 2e-12],
    "int8": np.array([1, 2], dtype=np.int8),
    "uint64": np.array([2**64 - 1, 2], dtype=np.uint64),
    "flags": [True, False],
    "Int64": pd.array([2**60 + 1, None], dtype="Int64"),
    "boolean": pd.array([True, None], dtype="boolean"),
    "string": pd.array(["a", None], dtype="string"),
    "text": ["01", "b"],
    "text or NaN": ["a", np.nan],
}


def array_with(column):
    meta = pd.DataFrame({"s": column})
    return TrajectoryArray.from_list([[0.1], [0.2, 0.3]], meta=meta)


def there_and_back(X, path):
    X.save(path)
    return TrajectoryArray.load(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.npz"


def test_meta_comes_back_as_it_was(path):
    for name, column in COLUMNS.items():
        X = array_with(column)
        back = there_and_back(X, path)
        assert back == X, name
        assert str(back.meta["s"].dtype) == str(X.meta["s"].dtype), name


def test_what_would_not_come_back_is_refused(path):
    for column in (
        [1j, 2],
        pd.period_range("2020", periods=2, freq="M"),
        pd.to_datetime(["2020", "2021"]),
        pd.Categorical(["u", "v"], ordered=True),
        [(1,), (2,)],
    ):
        with pytest.raises(ValueError, match="column 's' .*astype"):
            array_with(column).save(path)
        assert not path.exists()
    for column in (["a", 1], [True, None], [1, 2**70], [[1], [2.5]]):
        X = array_with(pd.Series(column, dtype=object))
        assert there_and_back(X, path) == X
    meta = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(ValueError, match="column 'a' .*meta"):
        TrajectoryArray.from_list([[0.1], [0.2]], meta=meta).save(path)


def test_files_of_others(path):
    with pytest.raises(FileNotFoundError, match=path.name):
        TrajectoryArray.load(path)
    for content in (b"", b"hello", b"PK\x03\x04 and no more"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=path.name):
            TrajectoryArray.load(path)
    np.savez(path, cells=[1.0])
    with pytest.raises(ValueError, match="from_frame"):
        TrajectoryArray.load(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match=path.name):
        TrajectoryArray.load(path)
    for work in (array_with([1, 2]).save, TrajectoryArray.load):
        with pytest.raises(ValueError, match=r"x\.pkl.*\.npz"):
            work(path.with_name("x.pkl"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        array_with([1, 2]).save(path.parent / "nowhere" / path.name)


class Harm:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def test_a_file_runs_no_code(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    TrajectoryArray.from_list([[0.1], [0.2]]).save(path)
    with np.load(path) as file:
        parts = dict(file)
    for name in parts:
        np.savez(path, **parts | {name: np.array([Harm()], dtype=object)})
        with pytest.raises(ValueError, match=path.name):
            TrajectoryArray.load(path)
    assert not path.with_name("harm").exists()


def test_a_file_may_unpack_to_just_the_largest_size(path):
    X = TrajectoryArray.from_list([[0.5, 0.6], [0.7]])
    X.save(path)
    with ZipFile(path) as archive:
        size = sum(len(archive.read(name)) for name in archive.namelist())
    assert TrajectoryArray.load(path, max_size=size) == X
    with pytest.raises(ValueError, match=f"{size - 1:,} bytes.*max_size"):
        TrajectoryArray.load(path, max_size=size - 1)


def test_by_default_a_file_may_unpack_to_256_mb_or_a_hundred_times_its_size(path):
    for content, limit in ((b"a", 256_000_000), (bytes(3_000_000), None)):
        for excess in (0, 1):
            with ZipFile(path, "w") as archive:
                archive.writestr("cells.npy", content)
            limit = limit or 100 * path.stat().st_size
            with ZipFile(path, "a") as archive:  # as a file may say
                archive.infolist()[0].file_size = limit + excess
                archive._didModify = True
            with pytest.raises(ValueError, match="max_size" if excess else "not a file"):
                TrajectoryArray.load(path)


def test_a_save_that_fails_half_way_leaves_the_old_file(path):
    resource = pytest.importorskip("resource")
    large = TrajectoryArray(np.random.default_rng(0).random(50_000), [50_000])
    old = array_with(["u", "v"])
    source = path.with_name("large" + path.suffix)
    large.save(source)
    old.save(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))  # files may not be larger
    try:
        with pytest.raises(OSError, match="File too large"):
            large.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(path.parent.iterdir()) == sorted([source, path])
    assert TrajectoryArray.load(path) == old
