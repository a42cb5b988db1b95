import io as streams
import json
import zipfile
from types import SimpleNamespace

import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from trajscore import DensityRatioEProcess, PlattCrossFitCalibrator, PrefixForecaster, tps_scorer
from trajscore.datasets import make_trajectories
from trajscore.metrics import trajectory_diagnostics
from trajscore.monitoring import _service
from trajscore.monitoring._persistence import load_process
from trajscore.monitoring._service import serve

X, Y = make_trajectories(300, lengths=(1, 6), random_state=0, return_X_y=True)
BOOSTED = PrefixForecaster(
    HistGradientBoostingClassifier(max_iter=3), features="summary", pooled=True
)
FOREST = PrefixForecaster(RandomForestClassifier(3), features="summary", pooled=True)
SEARCH = GridSearchCV(
    PrefixForecaster(), {"features": ["prefix", "summary"]}, scoring=tps_scorer, cv=3
)
TREES = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


def ranking(forecaster, X, y):
    """A scorer of a user's own."""
    return trajectory_diagnostics(y, forecaster.transform(X))["AUROC"]


RANKED = clone(SEARCH).set_params(scoring=ranking)
METRIC = f"{__name__}.ranking"


@pytest.fixture
def io():
    return pytest.importorskip("skops.io")


@pytest.mark.parametrize(
    ("options", "trusted"),
    [
        ({}, []),
        ({"alpha": [0.1, 0.3]}, []),
        ({"threshold": "randomized_ville"}, []),
        ({"threshold": "conformal", "cross_fit": 3}, []),
        ({"forecaster": "passthrough"}, []),
        ({"forecaster": make_pipeline(PrefixForecaster(), PlattCrossFitCalibrator())}, []),
        ({"forecaster": BOOSTED}, [TREES]),
        ({"forecaster": FOREST}, ["sklearn.tree._tree.Tree"]),
        ({"forecaster": SEARCH}, []),
        ({"forecaster": RANKED}, [METRIC]),
    ],
    ids=[
        *("default", "levels", "randomised Ville", "cross-fitted", "passthrough", "pipeline"),
        *("boosting", "forest", "search", "search by a metric of the user"),
    ],
)
def test_every_process_is_read_back(io, tmp_path, options, trusted):
    process = DensityRatioEProcess(**{"alpha": 0.3, **options}).fit(X, Y)
    io.dump(process, tmp_path / "process.skops")
    again = load_process(tmp_path / "process.skops", trusted)
    assert again.predict(X).tolist() == process.predict(X).tolist()
    assert repr(again.monitor().update(0.4, "a")) == repr(process.monitor().update(0.4, "a"))


@pytest.mark.parametrize(("forecaster", "name"), [(BOOSTED, TREES), (RANKED, METRIC)])
def test_what_is_not_trusted_is_named_with_the_remedy(io, tmp_path, forecaster, name):
    io.dump(DensityRatioEProcess(forecaster, alpha=0.3).fit(X, Y), tmp_path / "process.skops")
    if name not in io.get_untrusted_types(file=tmp_path / "process.skops"):
        pytest.skip("this release of skops trusts it")
    with pytest.raises(ValueError, match="could do harm") as caught:
        load_process(tmp_path / "process.skops")
    assert f"--trust {name}" in str(caught.value)
    assert f"trusted=['{name}']" in str(caught.value)


def malicious(io, path, module, name, arguments):
    """A model file whose root is a call of a function."""
    io.dump([arguments], path)
    with zipfile.ZipFile(path) as file:
        schema = json.loads(file.read("schema.json"))
    call = {
        "__class__": name,
        "__module__": module,
        "__loader__": "ConstructorFromReduceNode",
        "content": schema["content"][0],
        "__id__": 1,
    }
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("schema.json", json.dumps(schema | call))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy.testing", "runstring"),
        ("trajscore.metrics", "tps_score"),
        ("sklearn.utils._testing", "set_random_state"),
        ("trajscore.monitoring._eprocess", "np.testing.runstring"),
    ],
)
def test_a_model_file_runs_no_code(io, tmp_path, module, name):
    marker = tmp_path / "ran"
    arguments = (f"open({str(marker)!r}, 'w').write('')", {})
    malicious(io, tmp_path / "evil.skops", module, name, arguments)
    with pytest.raises(ValueError, match=f"holds {module}.{name}, which could do harm"):
        load_process(tmp_path / "evil.skops")
    assert not marker.exists()


def test_lines_are_not_repaired():
    monitor = DensityRatioEProcess(alpha=0.3).fit(X, Y).monitor()
    monitor.update(0.4, "a")
    before = list(monitor)
    bad = {
        '{"id": "a", "score": "0.5"}': "the score '0.5' is not a number",
        '{"id": "a", "score": true}': "the score True is not a number",
        '{"id": "a", "score": [true]}': "is not a number",
        '{"id": true, "score": 0.5}': '"id" must be text or a whole number, got true',
        '{"id": null, "score": 0.5}': '"id" must be text or a whole number, got null',
        '{"id": "a", "end": "false"}': '"end" must be true or false, got "false"',
        '{"id": "a", "end": 1}': '"end" must be true or false, got 1',
        '{"id": "a", "score": 1' + "0" * 400 + "}": "is not a number",
    }
    out = streams.StringIO()
    serve(monitor, [line.encode() for line in bad], out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    for answer, message in zip(answers, bad.values(), strict=True):
        assert message in answer["error"]
    assert list(monitor) == before
    out = streams.StringIO()
    serve(monitor, [b'{"id": "a", "end": false, "score": 0.3}'], out)
    assert json.loads(out.getvalue())["step"] == 2


def test_a_line_that_is_too_long_is_answered_once_and_the_next_one_is_read(monkeypatch):
    monkeypatch.setattr(_service, "_LONGEST", 8)
    text = b"12345678\n" + b"1234567\n" + b"x" * 20 + b"\n" + b"12\n" + b"y" * 9
    shown = list(_service.lines_of(streams.BytesIO(text)))
    assert shown == [b"12345678\n", b"1234567\n", b"x" * 9, b"12\n", b"y" * 9]
    with pytest.raises(ValueError, match="the line has more than 8 bytes"):
        _service.read_message(shown[2], ("id",), "send")
    assert _service._read_json(shown[1], "send") == 1234567


def test_runs_are_forgotten_at_most_once_a_minute(monkeypatch):
    calls = []

    class Full:
        def forget(self, seconds):
            calls.append(seconds)
            raise OSError("no space left")  # which is tried again later

    def serve_at(times, forget_after):
        clock = iter(times)
        monkeypatch.setattr(_service, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        serve(Full(), [b"\n"] * 4, streams.StringIO(), forget_after)

    # the start, then a look at the clock at each line, and one more where runs are forgotten
    serve_at([0, 60, 60.5, 61, 121, 121.5, 122], 5.0)
    assert calls == [5.0, 5.0]
    serve_at([0, 100, 100, 200, 200, 300, 300, 400, 400], float("inf"))
    assert calls == [5.0, 5.0]


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('"step": 0', '"step" must be a whole number from 1 on, got 0'),
        ('"step": -1', '"step" must be a whole number from 1 on, got -1'),
        ('"step": true', '"step" must be a whole number from 1 on, got true'),
        ('"step": 1.0', '"step" must be a whole number from 1 on, got 1.0'),
        ('"step": null', '"step" must be a whole number from 1 on, got null'),
        ('"end": 1', '"end" must be true or false, got 1'),
        ('"end": false', '"score" is missing; send one, or "end": true'),
    ],
)
def test_steps_and_ends_that_are_refused(rest, message):
    out = streams.StringIO()
    lines = [b"\n", f'{{"id": 7, {rest}}}'.encode()]
    serve(SimpleNamespace(), lines, out)
    assert json.loads(out.getvalue()) == {"error": message, "line": 2}
