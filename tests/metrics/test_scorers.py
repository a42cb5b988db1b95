"""Scorers of traces beside scikit-learn's own, in every supported release."""

import inspect
import pickle
from functools import partial

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    LearningCurveDisplay,
    PredefinedSplit,
    cross_validate,
)

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


def by_fold(found, name):
    """Scores of the two folds, from a search or a cross-validation."""
    if "split0_test_score" in found or f"split0_test_{name}" in found:
        return [found[f"split{k}_test_{name}"][0] for k in (0, 1)]
    return found[f"test_{name}"]


def expected(runs, score, weight=None):
    """What a scorer must give on each fold; `Weighted` passes the traces through."""
    X, y = runs
    folds = [test for _, test in FOLDS.split()]
    return [score(y[k], X[k], **({} if weight is None else {"sample_weight": weight[k]}))
            for k in folds]  # fmt: skip


def test_a_scorer_reads_transform(runs):
    X, y = runs
    forecaster = PlattCrossFitCalibrator().fit(X, y)
    traces = forecaster.transform(X)
    assert tps_scorer(forecaster, X, y) == tps_score(y, traces)
    codes = np.where(np.arange(80) % 4 == 0, -1, y)
    q_z = np.linspace(0, 1, 80)
    scorer = make_censored_tps_scorer("brier", "uniform", censored="q_z", q_z=0.3)
    how = {"score": "brier", "weights": "uniform"}
    forecaster.set_params(censored="q_z")  # as the scorer; it was fitted to observed outcomes
    assert scorer(forecaster, X, codes) == censored_tps_score(codes, traces, q_z=0.3, **how)
    # one q_z a run takes the place of the one for all
    assert scorer(forecaster, X, codes, q_z=q_z) == censored_tps_score(
        codes, traces, q_z=q_z, **how
    )
    forecaster.set_params(censored="failure")
    assert censored_tps_scorer(forecaster, X, codes) == censored_tps_score(codes, traces)
    seen, weight = codes >= 0, np.linspace(0, 2, 80)
    drop = make_censored_tps_scorer(censored="drop")
    forecaster.set_params(censored="drop")
    assert drop(forecaster, X, codes, sample_weight=weight) == tps_score(
        codes[seen], traces[seen], sample_weight=weight[seen]
    )
    with pytest.raises(ValueError, match='censored="q_z" needs q_z, one for each run'):
        make_censored_tps_scorer(censored="q_z")(forecaster, X, codes)


def test_pickles_copies_and_defaults_are_equal_in_effect(runs, weight):
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
    search = clone(GridSearchCV(Weighted(), {}, scoring=make_tps_scorer("brier"), cv=FOLDS))
    found = search.fit(X, y).cv_results_
    assert by_fold(found, "score") == expected(
        runs, lambda y, X, **how: tps_score(y, X, score="brier", **how)
    )


@pytest.mark.filterwarnings("ignore:horizon=5 leaves:UserWarning")
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"normalize": False},
        {"weights": "uniform"},
        {"weights": "linear_front", "horizon": 5},
        {"weights": lambda step: 1 / (1 + step)},
        OWN,
    ],
)
def test_a_scorer_is_its_metric(runs, weight, how):
    X, y = runs
    forecaster = Weighted().fit(X, y)
    codes = np.where(np.arange(80) % 4 == 0, -1, y)
    for rows in (slice(None), slice(0, 30)):
        given = {"sample_weight": weight[rows]}
        found = make_tps_scorer("brier", **how)(forecaster, X[rows], y[rows], **given)
        assert found == tps_score(y[rows], X[rows], score="brier", **how, **given)
        scorer = make_censored_tps_scorer(censored="q_z", q_z=0.4, **how)
        found = scorer(forecaster, X[rows], codes[rows], **given)
        assert found == censored_tps_score(codes[rows], X[rows], q_z=0.4, **how, **given)


@pytest.mark.parametrize(
    ("maker", "n_runs"),
    [(make_tps_scorer, 19), (partial(make_censored_tps_scorer, censored="drop"), 25)],
)
def test_small_folds_are_warned_of(runs, maker, n_runs):
    X, y = runs
    forecaster = Weighted().fit(X, y)
    if n_runs > 20:  # of which six are not scored
        y = np.where((np.arange(80) < 24) & (np.arange(80) % 4 == 1), -1, y)
    few = (X[:n_runs], y[:n_runs])
    name = getattr(maker, "func", maker).__name__
    message = rf"The fold has 19 runs\. .* or {name}\(normalize=False\)"
    for _ in range(2):  # Python's filter decides how often it is shown
        with pytest.warns(UserWarning, match=message) as caught:
            maker()(forecaster, *few)
        assert caught[0].filename == __file__
    # folds of 20 runs, plain means and means over runs are not
    maker()(forecaster, X[: n_runs + 1], y[: n_runs + 1])
    maker(normalize=False)(forecaster, *few)
    maker(**OWN)(forecaster, *few)


def test_a_search_over_small_folds_suggests_plain_means(runs):
    X, y = runs
    folds = PredefinedSplit(np.arange(80) % 5)
    with pytest.warns(UserWarning, match="has 16 runs.* make_tps_scorer.normalize=False"):
        cross_validate(Weighted(), X, y, scoring=tps_scorer, cv=folds)
    plain = cross_validate(Weighted(), X, y, scoring=make_tps_scorer(normalize=False), cv=folds)[
        "test_score"
    ]
    # of equal folds, the mean is that of all runs
    assert plain.mean() == pytest.approx(tps_score(y, X, normalize=False))


def test_copies_keep_their_requests():
    with config_context(enable_metadata_routing=True):
        scorer = make_censored_tps_scorer(censored="q_z")
        scorer.set_score_request(q_z=True, sample_weight="importance")
        for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
            request = copy.get_metadata_routing().score.requests
            assert request == {"q_z": True, "sample_weight": "importance"}
    assert censored_tps_scorer.requests == {"sample_weight": None}


def test_what_a_scorer_is_called():
    settings = "weights='early', horizon=None, normalize=True"
    assert repr(make_tps_scorer("brier")) == f"TPSScorer(score='brier', {settings})"
    made = make_censored_tps_scorer(censored="q_z", q_z=0.5)
    assert repr(made).endswith(f"{settings}, censored='q_z', q_z=0.5)")
    assert "greater_is_better=False" in repr(ecuas_scorer)
    # reports tell a scorer from a metric by its arguments
    assert [*inspect.signature(tps_scorer).parameters] == ["estimator", "X", "y", "sample_weight"]


def test_learning_curves_name_the_score(runs):
    display = LearningCurveDisplay.from_estimator(
        Weighted(), *runs, scoring=tps_scorer, cv=3, train_sizes=[0.5, 1.0]
    )
    assert display.score_name == "Tps score"


def test_a_bad_parameter_is_found_when_the_scorer_is_made():
    with pytest.raises(ValueError, match="unknown score"):
        make_tps_scorer("logg")
    with pytest.raises(ValueError, match="unknown weights"):
        make_censored_tps_scorer(weights="front")
    with pytest.raises(ValueError, match="give horizon=30, say, or horizon='own' for the paper's"):
        make_tps_scorer(weights="linear_front")
    with pytest.raises(ValueError, match="horizon must be a number of steps"):
        make_tps_scorer(horizon="max")
    with pytest.raises(ValueError, match="normalize must be True or False, got 0.5"):
        make_censored_tps_scorer(normalize=0.5)
    with pytest.raises(ValueError, match="censored must be .*, got 'ignore'"):
        make_censored_tps_scorer(censored="ignore")
    with pytest.raises(ValueError, match="q_z is read only with censored=\"q_z\", not 'failure'"):
        make_censored_tps_scorer(q_z=0.5)
    for q_z, first in ((1.5, "1.5"), (-0.25, "-0.25"), (np.nan, "nan"), ([np.nan, 2, -3], "2")):
        with pytest.raises(ValueError, match=rf"q_z is {first}; it must be a probability in"):
            make_censored_tps_scorer(censored="q_z", q_z=q_z)
    for q_z in (0, 1, [0.0, np.nan, 1.0]):  # one for each run may be missing where none is needed
        assert make_censored_tps_scorer(censored="q_z", q_z=q_z).q_z is q_z
    with pytest.raises(ValueError, match="n must be a finite number"):
        make_ecuas_scorer(n=-1)


def scorers():
    own = make_scorer(brier_score_loss, response_method="predict_proba", greater_is_better=False)
    return {
        "tps": make_tps_scorer(),
        "brier": make_tps_scorer("brier"),
        "censored": make_censored_tps_scorer(),
        "ecuas": make_ecuas_scorer(labels=[0, 1]),
        "own": own,
    }


SCORES = {
    "tps": tps_score,
    "brier": lambda y, X, **how: tps_score(y, X, score="brier", **how),
    "censored": censored_tps_score,
    "ecuas": lambda y, X, **how: -ecuas_score(y, Weighted().fit(X).predict_proba(X), **how),
    "own": lambda y, X, **how: (
        -brier_score_loss(y, Weighted().fit(X).predict_proba(X)[:, 1], **how)
    ),
}


def test_weights_without_routing_go_to_our_scorers_as_to_others(runs, weight):
    # newer releases weight the scores of a search too; whichever it is, all scorers are alike
    X, y = runs
    search = GridSearchCV(Weighted(), {}, scoring=scorers(), refit="tps", cv=FOLDS)
    found = search.fit(X, y, sample_weight=weight).cv_results_
    plain = by_fold(found, "own") == pytest.approx(expected(runs, SCORES["own"]))
    for name, score in SCORES.items():
        assert by_fold(found, name) == pytest.approx(
            expected(runs, score, None if plain else weight)
        )
    alone = GridSearchCV(Weighted(), {}, scoring=tps_scorer, cv=FOLDS)
    alone.fit(X, y, sample_weight=weight)
    assert by_fold(alone.cv_results_, "score") == by_fold(found, "tps")


@pytest.mark.parametrize("search", [False, True])
def test_routed_weights_go_where_they_are_asked_for(runs, weight, search):
    X, y = runs
    with config_context(enable_metadata_routing=True):
        asked = scorers()
        for name in ("tps", "censored", "ecuas"):
            asked[name].set_score_request(sample_weight=True)
        for name in ("brier", "own"):
            asked[name].set_score_request(sample_weight=False)
        model = Weighted().set_fit_request(sample_weight=False)
        if search:
            one = GridSearchCV(model, {}, scoring=asked, refit=False, cv=FOLDS)
            found = one.fit(X, y, sample_weight=weight).cv_results_
        else:
            found = cross_validate(
                model, X, y, scoring=asked, cv=FOLDS, params={"sample_weight": weight}
            )
    for name, score in SCORES.items():
        taken = weight if name in ("tps", "censored", "ecuas") else None
        assert by_fold(found, name) == pytest.approx(expected(runs, score, taken))


def test_metadata_under_another_name(runs, weight):
    X, y = runs
    with config_context(enable_metadata_routing=True):
        scorer = make_tps_scorer().set_score_request(sample_weight="importance")
        found = cross_validate(
            TraceAggregator(), X, y, scoring=scorer, cv=FOLDS, params={"importance": weight}
        )
    assert found["test_score"] == pytest.approx(expected(runs, tps_score, weight))


def test_metadata_that_nobody_asked_for(runs, weight):
    X, y = runs
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_validate(
                TraceAggregator(),
                X,
                y,
                scoring=make_tps_scorer(),
                params={"sample_weight": weight},
                error_score="raise",
            )
        with pytest.raises(TypeError, match=r"CensoredTPSScorer\(.*'drop'\) does not take 'q_z'"):
            make_censored_tps_scorer(censored="drop").set_score_request(q_z=True)
        with pytest.raises(
            TypeError, match=r"TPSScorer\(.*\) does not take 'q_z'; it takes sample_weight"
        ):
            make_tps_scorer().set_score_request(q_z=True)
    with pytest.raises(RuntimeError, match="metadata routing is not enabled"):
        make_tps_scorer().set_score_request(sample_weight=True)


def test_an_estimator_without_forecasts_is_refused():
    X, y = np.linspace(0.1, 0.9, 20)[:, None], np.arange(20) % 2
    with pytest.raises(TypeError, match=r"LogisticRegression has no transform.*PrefixForecaster"):
        tps_scorer(LogisticRegression().fit(X, y), X, y)
