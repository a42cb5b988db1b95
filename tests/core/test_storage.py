import datetime as dt
import os
import signal
import subprocess
import sys
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.core.storage import replacing, too_large, unpacked_limit

COLUMNS = {
    "floats": [1 / 3, 2e-12],
    "float32": np.array([0.1, 0.2], dtype=np.float32),
    "int8": np.array([1, 2], dtype=np.int8),
    "uint64": np.array([2**64 - 1, 2], dtype=np.uint64),
    "flags": [True, False],
    "times": np.array(["2020-01-01", "NaT"], dtype="M8[us]"),
    "times with a zone": pd.to_datetime(["2020", "2021"]).tz_localize("Europe/Berlin"),
    "durations": pd.to_timedelta(["1h", "2h"]),
    "Int64": pd.array([2**60 + 1, None], dtype="Int64"),
    "Float64": pd.array([1 / 3, None], dtype="Float64"),
    "boolean": pd.array([True, None], dtype="boolean"),
    "string": pd.array(["a", None], dtype="string"),
    "category": pd.Categorical(["u", "v"], ["w", "v", "u"]),
    "ordered": pd.Categorical(["u", None], ["v", "u"], ordered=True),
    "text": ["01", "b"],
    "text or None": ["a", None],
    "text or NaN": ["a", np.nan],
}


def array_with(column, **kwargs):
    meta = pd.DataFrame({"s": column})
    return TrajectoryArray.from_list([[0.1], [0.2, 0.3]], meta=meta, **kwargs)


def there_and_back(X, path):
    X.save(path)
    return TrajectoryArray.load(path)


@pytest.fixture(params=["npz", "parquet"])
def path(request, tmp_path):
    return tmp_path / f"x.{request.param}"


@pytest.mark.parametrize("name", COLUMNS)
def test_meta_comes_back_as_it_was(name, path):
    X = array_with(COLUMNS[name])
    back = there_and_back(X, path)
    assert back == X
    assert back.meta.dtypes.astype(str).tolist() == X.meta.dtypes.astype(str).tolist()


def test_whole_containers_come_back(path):
    X = TrajectoryArray.from_padded(
        [[[0.1, np.nan], [0.3, 0.4]], [[0.5, 0.6], [np.nan, np.nan]]],
        channels=["a", "b"],
        ids=["x", "y"],
        horizon=[4, 3],
        meta={"k": [1.0, 2.0], 5: ["a", "b"]},
        ended=[True, False],
        missing="allow",
    )
    for part in (X, X["b"], X[1:], X[[]], TrajectoryArray.from_list([])):
        back = there_and_back(part, path)
        assert back == part
        assert back.shape == part.shape
        assert back.meta.columns.tolist() == part.meta.columns.tolist()
    X = TrajectoryArray.from_list([[0.1]], meta=pd.DataFrame(index=[0]))
    assert there_and_back(X, path) == X


@pytest.mark.parametrize(
    ("column", "ending"),
    [
        ([1j, 2], "npz"),
        (pd.period_range("2020", periods=2, freq="M"), "npz"),
        ([dt.date(2020, 1, 1)] * 2, "npz"),
        ([(1,), (2,)], "npz"),
        ([1j, 2], "parquet"),
        (["a", 1], "parquet"),
        (pd.Series([1, 2**70], dtype=object), "parquet"),
        (pd.Series([1.5, None], dtype=object), "parquet"),
        (pd.Categorical([3, 4]), "parquet"),
    ],
)
def test_what_would_not_come_back_is_refused(column, ending, tmp_path):
    path = tmp_path / f"x.{ending}"
    with pytest.raises(ValueError, match=r"column 's' of meta \(.*\) would not come back"):
        array_with(column).save(path)
    assert not path.exists()


def test_objects_of_plain_kinds_come_back_from_npz(tmp_path):
    for column in (["a", 1], [True, None], [1, 2**70], [[1], [2.5]]):
        X = array_with(pd.Series(column, dtype=object))
        assert there_and_back(X, tmp_path / "x.npz") == X


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"], [("a", 1), "b"]])
def test_names_that_a_file_cannot_hold(names, path):
    meta = pd.DataFrame([[1, 2], [3, 4]])
    meta.columns = pd.Index(names, tupleize_cols=False)
    X = TrajectoryArray.from_list([[0.1], [0.2]], meta=meta)
    with pytest.raises(ValueError, match="cannot be saved under that name"):
        X.save(path)


def test_files_of_others(path):
    with pytest.raises(
        FileNotFoundError, match="does not exist; give the path of a file that save wrote"
    ):
        TrajectoryArray.load(path)
    for content in (b"", b"hello", b"PK\x03\x04 and no more"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.\w+: not a file that TrajectoryArray.save"):
            TrajectoryArray.load(path)
    if path.suffix == ".npz":
        np.savez(path, cells=[1.0])
    else:
        pd.DataFrame({"row": [0], "value:": [1.0]}).to_parquet(path)
    with pytest.raises(ValueError, match=r"not a file that TrajectoryArray.save"):
        TrajectoryArray.load(path)


def test_a_width_that_a_file_cannot_have(tmp_path):
    X = TrajectoryArray.from_list([[0.1, 0.2], [0.3]])
    path = tmp_path / "x.npz"
    X.save(path)
    parts = dict(np.load(path))
    np.savez(path, **parts | {"n_steps": np.int64(1)})
    assert TrajectoryArray.load(path).shape == (2, 2)  # no cell is lost
    np.savez(path, **parts | {"n_steps": np.int64(10**9)})
    with pytest.raises(ValueError, match="not a file that TrajectoryArray.save"):
        TrajectoryArray.load(path)


def test_a_file_that_unpacks_to_far_more_is_refused(path, monkeypatch):
    X = TrajectoryArray(np.zeros(300_000), [300_000])
    X.save(path)
    assert TrajectoryArray.load(path) == X
    monkeypatch.setattr("trajscore.core.storage._LEAST_LIMIT", 1000)
    monkeypatch.setattr("trajscore.core.storage._USUAL_RATIO", 2)
    limit = 2 * path.stat().st_size
    with pytest.raises(ValueError, match=f"unpacks to more than {limit:,} bytes; .* with max_size"):
        TrajectoryArray.load(path)
    assert TrajectoryArray.load(path, max_size=10**8) == X


def test_a_pipe_is_refused(path):
    os.mkfifo(path)
    with pytest.raises(ValueError, match="is a folder, a pipe or a device; name a file"):
        TrajectoryArray.load(path)


def test_unknown_endings(tmp_path):
    for work in (array_with([1, 2]).save, TrajectoryArray.load):
        with pytest.raises(ValueError, match=r"\.npz or \.parquet"):
            work(tmp_path / "x.pkl")


@pytest.fixture
def large():
    return TrajectoryArray(np.random.default_rng(0).random(50_000), [50_000])


def test_a_save_that_fails_half_way_leaves_the_old_file(path, large):
    resource = pytest.importorskip("resource")
    old = array_with(["u", "v"])
    old.save(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))  # files may not be larger
    try:
        with pytest.raises(OSError, match="File too large"):
            large.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(path.parent.iterdir()) == [path]
    assert TrajectoryArray.load(path) == old


KILLED = """
import resource, signal, sys
from trajscore import TrajectoryArray
from trajscore.core.storage import replacing, too_large, unpacked_limit

X = TrajectoryArray.load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
X.save(sys.argv[2])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="limits file sizes as POSIX does")
def test_a_save_that_is_killed_half_way_leaves_the_old_file(path, large):
    source, old = path.with_name("large" + path.suffix), array_with(["u", "v"])
    large.save(source)
    old.save(path)
    result = subprocess.run([sys.executable, "-c", KILLED, source, path], capture_output=True)
    assert result.returncode == -signal.SIGXFSZ, result.stderr
    assert TrajectoryArray.load(path) == old


def test_a_save_replaces_what_a_link_names_and_keeps_its_mode(path):
    kept = path.with_name("kept" + path.suffix)
    array_with([1, 2]).save(kept)
    kept.chmod(0o640)
    path.symlink_to(kept)
    new = array_with([3, 4])
    new.save(path)
    assert path.is_symlink()
    assert TrajectoryArray.load(kept) == new
    assert kept.stat().st_mode & 0o777 == 0o640


def test_a_folder_that_is_not_there(path):
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        array_with([1, 2]).save(path.parent / "nowhere" / path.name)


def test_a_pipe_is_written_to_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as file:
        file.write(b"page")
    assert os.read(reader, 10) == b"page"
    os.close(reader)
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("numbers", [[0, 1, 3], [0, 1, 2**40], [2**40, 1, 2**40]])
def test_run_numbers_that_a_file_cannot_have(tmp_path, numbers):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "runs.parquet"
    array_with(["a", "b"]).save(path)
    table = parquet.read_table(path)
    assert table.column_names[0] == "row"
    assert table["row"].to_pylist() == [0, 1, 1]
    parquet.write_table(table.set_column(0, "row", [numbers]), path)
    with pytest.raises(ValueError, match=r"not a file that TrajectoryArray\.save"):
        TrajectoryArray.load(path)


@pytest.mark.parametrize(
    ("size", "limit"),
    [(0, 256_000_000), (2_560_000, 256_000_000), (2_560_001, 256_000_100), (10**7, 10**9)],
)
def test_a_file_may_unpack_to_a_hundred_times_its_size(tmp_path, size, limit):
    path = tmp_path / "runs.npz"
    path.touch()
    os.truncate(path, size)
    assert unpacked_limit(path) == limit
    words = f"{path} unpacks to more than {limit:,} bytes; if you trust the file, allow more with"
    assert str(too_large(path, None)).startswith(words)
    assert "unpacks to more than 7 bytes" in str(too_large(path, 7))


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_a_file_may_unpack_to_just_the_largest_size(tmp_path, ending):
    path, X = tmp_path / f"runs{ending}", TrajectoryArray.from_list([[0.5, 0.6], [0.7]])
    X.save(path)
    if ending == ".npz":
        with ZipFile(path) as archive:
            size = sum(len(archive.read(name)) for name in archive.namelist())
    else:
        size = 8 * 3 * len(pytest.importorskip("pyarrow.parquet").read_table(path).column_names)
    assert TrajectoryArray.load(path, max_size=size) == X
    with pytest.raises(ValueError, match=f"unpacks to more than {size - 1:,} bytes"):
        TrajectoryArray.load(path, max_size=size - 1)


def test_a_container_without_runs_comes_back(tmp_path):
    X = TrajectoryArray.from_list([])
    for ending in (".npz", ".parquet"):
        X.save(tmp_path / f"runs{ending}")
        assert TrajectoryArray.load(tmp_path / f"runs{ending}") == X
