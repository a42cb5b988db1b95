"""Shared fixtures: small data made on the spot, and public data where it is at hand."""

import io
import json
import os
import re
from pathlib import Path

# threads of BLAS only contend on small arrays, the more so beside other workers
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import settings

from public_data import fetch, is_fetchable
from trajscore import TrajectoryArray
from trajscore.cli.main import main

mpl.use("Agg")

pytest_plugins = ["evaluated"]  # reports that several rooms ask

# scikit-learn 1.6 codes two classes by the first label that it sees, later releases by the smaller
CODED_BY_FIRST_LABEL = (
    "check_pipeline_consistency",
    "check_sample_weight_equivalence_on_dense_data",
)


def pytest_make_parametrize_id(config, val):
    """Name dicts of options and functions without addresses, which differ between workers."""
    if isinstance(val, dict) or callable(val):
        return re.sub(" at 0x[0-9a-f]+", "", str(val))[:60]
    return None


def pytest_collection_modifyitems(items):
    if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 7):
        return
    reason = "this release of scikit-learn makes other classes of the same labels"
    for item in items:
        if any(name in item.name for name in CODED_BY_FIRST_LABEL):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=False))


@pytest.fixture(autouse=True)
def close_figures():
    """Leave no figure open, of which matplotlib warns."""
    yield
    plt.close("all")


# times depend on the machine; a slow example is no error
settings.register_profile("trajscore", deadline=None, max_examples=40)
settings.load_profile("trajscore")

DATA = Path(
    os.environ.get("TRAJSCORE_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def _public_file(*parts: str) -> Path:
    path, name = DATA.joinpath(*parts), "/".join(parts)
    if path.exists():
        return path
    if not is_fetchable(name):
        pytest.skip(f"the public file {name} is not in $TRAJSCORE_TEST_DATA")
    if "TRAJSCORE_FETCH" not in os.environ:
        pytest.skip(f"the public file {name} is not here; TRAJSCORE_FETCH=1 downloads it")
    return fetch(name)


@pytest.fixture(scope="session")
def public_file():
    """Path of a public file; without it, the test is skipped."""
    return _public_file


@pytest.fixture(scope="session")
def hotpotqa(public_file) -> tuple[TrajectoryArray, np.ndarray]:
    path = public_file("evaluator", "hotpotqa_w_scores_compressed.csv.gz")
    names = {"id": "uq_problem_idx", "step": "num_steps"}
    names |= {"value": "judge_probability", "outcome": "solved"}
    frame = pd.read_csv(path, usecols=[*names.values()])
    return TrajectoryArray.from_frame(frame, **names)


@pytest.fixture(scope="session")
def n_simulations() -> int:
    """Repeats of heavy simulations; TRAJSCORE_SIMULATIONS=2000 runs them in full."""
    return int(os.environ.get("TRAJSCORE_SIMULATIONS", "200"))


@pytest.fixture
def monitored(monkeypatch, capsys):
    """Send lines to `trajscore monitor`; return its exit code, its answers and its warnings."""

    def send(model, lines, *options, stdin=None):
        given = b"\n".join(one if isinstance(one, bytes) else one.encode() for one in lines)
        monkeypatch.setattr("sys.stdin", stdin or io.TextIOWrapper(io.BytesIO(given)))
        code = main(["monitor", "--model", str(model), *map(str, options)])
        out, err = capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err

    return send


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def ragged(rng) -> tuple[TrajectoryArray, np.ndarray]:
    """200 runs of 1 to 9 steps with string ids."""
    lengths = rng.integers(1, 10, 200)
    ids = [f"r{k:03d}" for k in rng.permutation(200)]
    X = TrajectoryArray(rng.random(lengths.sum()), lengths, ids=ids)
    return X, rng.integers(0, 2, 200)
