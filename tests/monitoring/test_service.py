"""Model files and ``trajscore monitor``: what is read works, runs no code, and repairs nothing."""

import json
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from trajscore import DensityRatioEProcess, PlattCrossFitCalibrator, PrefixForecaster, tps_scorer
from trajscore.datasets import make_trajectories
from trajscore.integrations import Guard
from trajscore.monitoring import Conformal, Pac

skops = pytest.importorskip("skops.io")
X, Y = make_trajectories(300, lengths=(1, 6), random_state=0, return_X_y=True)
GRID = {"features": ["prefix", "last"]}
RUNNING = {"features": "running", "pooled": True}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "process.skops"


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": [0.3, 0.1]},
        {"threshold": Conformal("randomized", end_worth=0.3)},
        {"threshold": "randomized_ville"},
        {"threshold": "bonferroni"},
        {"threshold": Pac("randomized")},
        {"forecaster": "passthrough"},
        {"forecaster": make_pipeline(PrefixForecaster(), PlattCrossFitCalibrator())},
        {"forecaster": PrefixForecaster(HistGradientBoostingClassifier(max_iter=3), **RUNNING)},
        {"forecaster": GridSearchCV(PrefixForecaster(), GRID, scoring=tps_scorer, cv=3)},
    ],
    ids=["levels", "ties", "ville", "steps", "pac", "passthrough", "pipeline", "trees", "grid"],
)  # fmt: skip
def test_a_process_that_is_read_decides_as_the_one_that_was_written(options, path, monitored):
    process = DensityRatioEProcess(**{"alpha": 0.3, **options}).fit(X, Y)
    skops.dump(process, path)
    trees = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
    if "HistGradient" in repr(options) and trees in skops.get_untrusted_types(file=path):
        code, _, err = monitored(path, [])
        assert (code, f"--trust {trees}" in err) == (2, True)
    lines = []
    for row in range(30):
        lines += [json.dumps({"id": row, "score": score}) for score in X[row].tolist()]
        lines.append(json.dumps({"id": row, "end": True}))
    for said, alpha in (((), None), (("--alpha", str(process.alphas_[-1])), process.alphas_[-1])):
        code, answers, _ = monitored(path, lines, "--trust", trees, *said)
        assert (code, len(answers)) == (0, len(lines))
        last = {answer["id"]: answer["flagged"] for answer in answers}
        expected = process.predict(X[:30].with_ended(), alpha) == 0
        assert [last[row] for row in range(30)] == expected.tolist()


def malicious(path, module, name, arguments):
    """A model file whose root is a call of a function."""
    skops.dump([arguments], path)
    with zipfile.ZipFile(path) as file:
        schema = json.loads(file.read("schema.json"))
    call = {"__class__": name, "__module__": module, "__loader__": "ConstructorFromReduceNode",
            "content": schema["content"][0], "__id__": 1}  # fmt: skip
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("schema.json", json.dumps(schema | call))


def test_a_model_file_runs_no_code(path, monitored):
    marker = path.with_name("ran")
    arguments = (f"open({str(marker)!r}, 'w').write('')", {})
    for module, name in [
        ("numpy.testing", "runstring"),
        ("trajscore.metrics", "tps_score"),
        ("sklearn.utils._testing", "set_random_state"),
        ("trajscore.monitoring._eprocess", "np.testing.runstring"),
    ]:
        malicious(path, module, name, arguments)
        code, _, err = monitored(path, [])
        with pytest.raises(ValueError, match=name):
            Guard.load(path)
        assert (code, f"holds {module}.{name}" in err, marker.exists()) == (2, True, False)


class Unknown:
    """A type of a user's own."""


def test_other_files_are_refused(path, monitored):
    process = DensityRatioEProcess(alpha=0.3).fit(X, Y)
    name = f"{Unknown.__module__}.Unknown"
    broken = DensityRatioEProcess(alpha=0.3).fit(X, Y)
    del broken.test_.__dict__["alphas"]

    def said(*options):
        code, _, err = monitored(path, [], *options)
        assert code == 2
        assert "process.skops" in err
        return err

    assert "does not exist" in said()
    path.write_bytes(b"text")
    assert "is not a .skops file" in said()
    skops.dump([1, 2], path)
    assert "a list, not a DensityRatioEProcess" in said()
    skops.dump([Unknown()], path)
    assert f"--trust {name}" in said()
    assert "holds a list" in said("--trust", name)
    skops.dump(broken, path)
    assert "does not work" in said()
    skops.dump(process, path)
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:  # arrays that are no arrays
        for name, content in parts.items():
            file.writestr(name, content if name == "schema.json" else b"no array")
    assert "is damaged" in said()


def test_runs_without_a_score_are_forgotten_when_a_minute_has_gone_by(path, monkeypatch, monitored):
    skops.dump(DensityRatioEProcess(alpha=0.3).fit(X, Y), path)
    now = [0.0]

    def ticking():
        now[0] += 30.0
        return now[0]

    monkeypatch.setattr("time.monotonic", ticking)
    lines = ['{"id": "old", "score": 0.4}'] + ['{"id": "new", "score": 0.4}'] * 5
    last = '{"id": "old", "score": 0.4}'
    for hours, step in (("0.03", 1), ("1", 2)):
        said = ("--forget-after", hours)
        _, answers, _ = monitored(path, [*lines, last], *said)
        assert answers[-1]["step"] == step
        assert np.isfinite(answers[-1]["margin"])
