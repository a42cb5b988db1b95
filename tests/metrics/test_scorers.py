"""Scorers of traces beside scikit-learn's own, in every supported release."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, make_scorer
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB

from refused import not_refused
from trajscore import (
    PlattCrossFitCalibrator,
    TraceAggregator,
    censored_tps_scorer,
    ecuas_scorer,
    make_censored_tps_scorer,
    make_ecuas_scorer,
    make_tps_scorer,
    tps_scorer,
)
from trajscore.datasets import make_trajectories
from trajscore.metrics import censored_tps_score, ecuas_score, tps_score

OWN = {"weights": "linear_front", "horizon": "own"}  # the convention of the paper
FOLDS = PredefinedSplit(np.arange(80) % 2)


class Weighted(TraceAggregator):
    """Traces and probabilities of one estimator that takes weights."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y)


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(80, sharpness=2, random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(0).uniform(0.2, 3, 80)


def test_a_scorer_reads_transform(runs, weight):
    X, y = runs
    forecaster = PlattCrossFitCalibrator().fit(X, y)
    F, codes = forecaster.transform(X), np.where(np.arange(80) % 4 == 0, -1, y)
    seen, q_z = codes >= 0, np.linspace(0, 1, 80)
    assert tps_scorer(forecaster, X, y) == tps_score(y, F)
    assert censored_tps_scorer(forecaster, X, codes) == censored_tps_score(codes, F)
    forecaster.set_params(censored="q_z")  # as the scorer; it was fitted to observed outcomes
    scorer = make_censored_tps_scorer("brier", censored="q_z", q_z=0.3)
    expected = censored_tps_score(codes, F, q_z=0.3, score="brier")
    assert scorer(forecaster, X, codes) == expected
    # one q_z a run takes the place of the one for all
    expected = censored_tps_score(codes, F, q_z=q_z, score="brier")
    assert scorer(forecaster, X, codes, q_z=q_z) == expected
    with pytest.warns(UserWarning, match="'q_z', but the scorer has censored='failure'") as caught:
        censored_tps_scorer(forecaster, X, codes)
    assert [one.filename for one in caught] == [__file__]
    forecaster.set_params(censored="drop")
    found = make_censored_tps_scorer(censored="drop")(forecaster, X, codes, sample_weight=weight)
    assert found == tps_score(codes[seen], F[seen], sample_weight=weight[seen])


@pytest.mark.filterwarnings("ignore:horizon=5 leaves:UserWarning")
def test_a_scorer_is_its_metric(runs, weight):
    X, y = runs
    forecaster, codes = Weighted().fit(X, y), np.where(np.arange(80) % 4 == 0, -1, y)
    for how in ({}, {"normalize": False}, {"weights": "linear_front", "horizon": 5}, OWN):
        for rows in (slice(None), slice(0, 30)):
            given = {"sample_weight": weight[rows]}
            found = make_tps_scorer("brier", **how)(forecaster, X[rows], y[rows], **given)
            assert found == tps_score(y[rows], X[rows], score="brier", **how, **given)
            scorer = make_censored_tps_scorer(censored="q_z", q_z=0.4, **how)
            found = scorer(forecaster, X[rows], codes[rows], **given)
            assert found == censored_tps_score(codes[rows], X[rows], q_z=0.4, **how, **given)


def test_copies_are_equal_in_effect(runs, weight):
    X, y = runs
    forecaster = Weighted().fit(X, y)
    for scorer, made in (
        (tps_scorer, make_tps_scorer("log", "early")),
        (censored_tps_scorer, make_censored_tps_scorer("log", "early", None, "failure")),
        (ecuas_scorer, make_ecuas_scorer(1)),
    ):
        value = scorer(forecaster, X, y, sample_weight=weight)
        assert repr(made) == repr(scorer)
        for copy in (made, pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
            assert copy(forecaster, X, y, sample_weight=weight) == value
    assert "score='brier'" in repr(make_tps_scorer("brier"))
    assert "q_z=0.5" in repr(make_censored_tps_scorer(censored="q_z", q_z=0.5))


def test_small_folds_are_warned_of(runs):
    X, y = runs
    forecaster = Weighted().fit(X, y)
    # of 25 runs six are not scored
    some = np.where((np.arange(80) < 24) & (np.arange(80) % 4 == 1), -1, y)
    for maker, codes, n, options in (
        (make_tps_scorer, y, 19, {}),
        (make_censored_tps_scorer, some, 25, {"censored": "drop"}),
    ):
        message = rf"19 runs\. .* {maker.__name__}\(normalize=False\)"
        with pytest.warns(UserWarning, match=message) as caught:
            maker(**options)(forecaster, X[:n], codes[:n])
        assert caught[0].filename == __file__
        # folds of 20 runs, plain means and means over runs are not
        maker(**options)(forecaster, X[: n + 1], codes[: n + 1])
        maker(normalize=False, **options)(forecaster, X[:n], codes[:n])
        maker(**OWN, **options)(forecaster, X[:n], codes[:n])


SCORES = {
    "tps": tps_score,
    "censored": lambda y, X, **how: censored_tps_score(y, X, score="brier", **how),
    "ecuas": lambda y, X, **how: -ecuas_score(y, Weighted().fit(X).predict_proba(X), **how),
    "own": lambda y, X, **how: (
        -brier_score_loss(y, Weighted().fit(X).predict_proba(X)[:, 1], **how)
    ),
}


def scorers():
    own = make_scorer(brier_score_loss, response_method="predict_proba", greater_is_better=False)
    made = make_tps_scorer(), make_censored_tps_scorer("brier"), make_ecuas_scorer(labels=[0, 1])
    return dict(zip(SCORES, [*made, own], strict=True))


def expected(runs, name, weight=None):
    """What a scorer must give on each fold; `Weighted` passes the traces through."""
    X, y = runs
    v = np.ones(80) if weight is None else weight
    scores = [SCORES[name](y[k], X[k], sample_weight=v[k]) for _, k in FOLDS.split()]
    return pytest.approx(scores)


def test_weights_without_routing_go_to_our_scorers_as_to_others(runs, weight):
    # newer releases weight the scores of a search too; whichever it is, all scorers are alike
    search = GridSearchCV(Weighted(), {}, scoring=scorers(), refit="tps", cv=FOLDS)
    results = search.fit(*runs, sample_weight=weight).cv_results_
    found = {name: [results[f"split{k}_test_{name}"][0] for k in (0, 1)] for name in SCORES}
    taken = None if found["own"] == expected(runs, "own") else weight
    for name in SCORES:
        assert found[name] == expected(runs, name, taken), name


def test_routed_weights_go_where_they_are_asked_for(runs, weight):
    X, y = runs
    with config_context(enable_metadata_routing=True):
        asked = scorers()
        for name, scorer in asked.items():
            scorer.set_score_request(sample_weight=name != "own")
        asked["tps"] = clone(asked["tps"], safe=False)  # a copy keeps its request
        asked["censored"].set_score_request(sample_weight="importance")
        given = {"sample_weight": weight, "importance": weight**2}
        model = Weighted().set_fit_request(sample_weight=False)
        found = cross_validate(model, X, y, scoring=asked, cv=FOLDS, params=given)
        taken = {"tps": weight, "censored": weight**2, "ecuas": weight, "own": None}
        for name, v in taken.items():
            assert found[f"test_{name}"] == expected(runs, name, v), name
        how = {"scoring": make_tps_scorer(), "params": {"sample_weight": weight}}
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_validate(TraceAggregator(), X, y, error_score="raise", **how)
        make_censored_tps_scorer(censored="q_z").set_score_request(q_z=True)
        for scorer in (make_censored_tps_scorer(censored="drop"), make_tps_scorer()):
            rows = [({"q_z": True}, "'q_z'; it takes sample_weight")]
            assert not not_refused(scorer.set_score_request, rows, TypeError)
    with pytest.raises(RuntimeError, match="metadata routing is not enabled"):
        make_tps_scorer().set_score_request(sample_weight=True)


def test_ecuas_in_folds_that_lack_a_class():
    X, y = load_iris(return_X_y=True)
    models = {"var_smoothing": [1e3, 1e-9]}
    search = GridSearchCV(GaussianNB(), models, scoring=make_ecuas_scorer(n=0)).fit(X, y)
    assert search.best_params_ == {"var_smoothing": 1e-9}
    assert search.best_score_ < 0
    model, rows = GaussianNB(), np.r_[40:50, 90:100]
    fitted = model.fit(X, y)
    cost = [[0, 1, 3, 0.8], [2, 0, 1, 0.8], [5, 2, 0, 0.8]]
    found = make_ecuas_scorer(0, cost=cost, normalize=True, labels=range(3))(fitted, X, y)
    how = {"n": 0, "cost": cost, "normalize": True}
    assert found == -ecuas_score(y, fitted.predict_proba(X), **how)
    value = -ecuas_score(y[rows], fitted.predict_proba(X[rows]), labels=range(3))
    for labels in ([0, 1, 2], [-1, 0, 1], ["a", "b", "c"]):
        renamed = np.array(labels)[y]
        scorer = make_ecuas_scorer(labels=labels)
        folds = {"cv": [(np.arange(150), rows)], "scoring": scorer}
        assert cross_val_score(model, X, renamed, **folds) == pytest.approx(value)
        bad = [(model.fit(X, renamed), X[rows], renamed[rows], {}, "2 of 3 classes.* labels=")]
        assert not not_refused(make_ecuas_scorer(), bad)
    # of two classes a scorer is given the second column alone
    X, y = X[:100, :1], y[:100]
    for labels in ([-1, 0], [False, True], ["a", "b"]):
        names = np.array(labels)[y]
        model = GaussianNB().fit(X, names)
        value = -ecuas_score(y[:50], model.predict_proba(X[:50]), labels=[0, 1])
        scorer = make_ecuas_scorer(labels=labels)
        assert scorer(model, X[:50], names[:50]) == pytest.approx(value)


def test_bad_input(runs):
    rows = [
        ("logg", {}, "score 'logg'"),
        ({"weights": "front"}, "weights 'front'"),
        ({"weights": "linear_front"}, "horizon='own'"),
        ({"horizon": "max"}, "horizon must be a number of steps"),
        ({"normalize": 0.5}, "normalize .* got 0.5"),
    ]
    assert not not_refused(make_tps_scorer, rows)
    rows += [({"censored": "ignore"}, "censored .* got 'ignore'"), ({"q_z": 0.5}, 'censored="q_z"')]
    for q_z, first in ((1.5, "1.5"), (-0.25, "-0.25"), (np.nan, "nan"), ([np.nan, 2, -3], "2")):
        rows += [({"censored": "q_z", "q_z": q_z}, rf"q_z is {first};")]
    rows += [({"censored": "q_z", "q_z": "a"}, "q_z must be numbers")]
    assert not not_refused(make_censored_tps_scorer, rows)
    make_censored_tps_scorer(censored="q_z", q_z=[0.0, np.nan, 1.0])  # missing where none is needed
    assert not not_refused(make_ecuas_scorer, [({"n": -1}, "n must be")])
    X, y = runs
    model, codes = Weighted().fit(X, y), np.r_[y[:5], -1, y[6:]]
    scorer = make_censored_tps_scorer(censored="q_z")
    assert not not_refused(scorer, [(model, X, codes, {}, "needs q_z, one for each run")])
    model = LogisticRegression().fit([[0.1], [0.9]], [0, 1])
    rows = [(model, np.full((20, 1), 0.5), np.arange(20) % 2, {}, "PrefixForecaster")]
    assert not not_refused(tps_scorer, rows, TypeError)
