"""The paper's theorems, by exact enumeration of small worlds or Monte Carlo with its error."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joint_laws import JointLaw, linear_front
from known_scores import FAMILIES, OWN, censored_tps_samples
from trajscore import TraceAggregator, TrajectoryArray
from trajscore.metrics import regret, tps_samples, tps_score, trajectory_diagnostics

# fixed exogenously, as Theorem 4.1 asks for
WAYS = [
    {},
    {"weights": "uniform"},
    {"weights": "exponential_front"},
    {"weights": "linear_back"},
    {"weights": "linear_front", "horizon": 3},
    {"weights": lambda step: 1 / (1 + step / 10)},
]
inside = st.floats(0.02, 0.98)
seeds = st.integers(0, 10**6)
few = settings(max_examples=15)


class World:
    """A binary tree of three steps: at each node the history gains one bit, then Y is drawn.

    All 8 histories x 2 outcomes are enumerated, so expectations are sums without error.
    """

    def __init__(self, bits, leaf):
        self.histories = np.array(list(itertools.product([0, 1], repeat=3)))
        steps = np.where(self.histories == 1, bits, 1 - np.asarray(bits))
        self.p_history = steps.prod(axis=1)
        self.leaf = np.asarray(leaf)
        self.q = self.mean_given_prefix(self.leaf)

    def mean_given_prefix(self, values):
        """E[values | first t bits], for t = 1, 2, 3."""
        out = np.empty((8, 3))
        for t in (1, 2, 3):
            for k in range(8):
                same = (self.histories[:, :t] == self.histories[k, :t]).all(axis=1)
                out[k, t - 1] = np.average(values[same], weights=self.p_history[same])
        return out

    def expected(self, traces, score, how):
        # of runs of one length all samples are those of a mean
        ones = tps_samples(np.ones(8), traces, score=score, **how)
        zeros = tps_samples(np.zeros(8), traces, score=score, **how)
        return float(self.p_history @ (self.leaf * ones + (1 - self.leaf) * zeros))


worlds = st.builds(
    World,
    st.lists(st.floats(0.1, 0.9), min_size=3, max_size=3),
    st.lists(inside, min_size=8, max_size=8),
)


@few
@given(world=worlds, seed=seeds, score=st.sampled_from([*FAMILIES]))
def test_41_no_adapted_trace_beats_the_truth(score, world, seed):
    # any adapted trace may try: one free number for each prefix
    rng = np.random.default_rng(seed)
    table = {t: rng.uniform(0.01, 0.99, 2**t) for t in (1, 2, 3)}
    code = world.histories @ np.array([4, 2, 1])
    trace = np.stack([table[t][code >> (3 - t)] for t in (1, 2, 3)], axis=1)
    for how in (*WAYS, OWN):  # of one length, the own horizon of each is that of all
        gain = world.expected(trace, score, how) - world.expected(world.q, score, how)
        assert gain <= 1e-15
        # and the loss is the expected regret, step by step (Eq. 9)
        loss = world.p_history @ regret(world.q, trace, score=score, **how)
        assert gain == pytest.approx(-loss, abs=1e-12)
        if np.abs(trace - world.q).max() > 0.05:
            assert gain < 0


class WorldOfLengths:
    """Histories of two states a step, and lengths of 1 to 3 that know the outcome.

    All atoms of history, length and outcome are there, each a run that weighs its chance, so that
    the score of the set is an expectation without error.
    """

    def __init__(self, rng):
        atoms = list(itertools.product(range(8), (1, 2, 3), (0, 1)))
        code, self.lengths, self.y = np.array(atoms).T
        self.chance = rng.dirichlet(np.full(len(atoms), 0.3))
        step = np.arange(1, 4)
        self.prefix = code[:, None] >> (3 - step)  # the first t states of each run
        self.alive = step <= self.lengths[:, None]

    def trace(self, values):
        """A container of values at each run and step."""
        return TrajectoryArray.from_padded(np.where(self.alive, values, np.nan))

    def best(self, weights):
        """E[w_t(T) Y | H_t] / E[w_t(T) | H_t] of the runs that are still going."""
        out = np.full(self.alive.shape, 0.5)
        for t in (1, 2, 3):
            for prefix in range(2**t):
                here = self.alive[:, t - 1] & (self.prefix[:, t - 1] == prefix)
                w = self.chance * here * weights(t, self.lengths)
                if w.sum() > 1e-12:
                    out[here, t - 1] = w @ self.y / w.sum()
        return self.trace(out)

    def adapted(self, rng):
        """Any forecast of what is known at each step."""
        tables = [rng.uniform(0.01, 0.99, 2**t) for t in (1, 2, 3)]
        steps = zip(tables, self.prefix.T, strict=True)
        return self.trace(np.stack([table[prefix] for table, prefix in steps], axis=1))

    def score(self, trace, score, how):
        return tps_score(self.y, trace, score=score, sample_weight=self.chance, **how)


@few
@given(seed=seeds, score=st.sampled_from([*FAMILIES]))
def test_no_adapted_trace_beats_the_truth_whatever_tells_of_the_length(score, seed):
    rng = np.random.default_rng(seed)
    world = WorldOfLengths(rng)
    truth = world.best(lambda t, T: 1.0)
    tilted = world.best(lambda t, T: (T + 1 - t) / (T * (T + 1)))
    for how in WAYS:
        for normalize in (True, False):
            options = {"normalize": normalize, **how}
            best = world.score(truth, score, options)
            assert world.score(tilted, score, options) <= best + 1e-14
            assert world.score(world.adapted(rng), score, options) < best
    # weights that the realised length makes elicit the tilted forecast
    best = world.score(tilted, score, OWN)
    assert world.score(truth, score, OWN) <= best + 1e-14
    assert world.score(world.adapted(rng), score, OWN) < best


@few
@given(world=worlds, budget=st.integers(1, 2), seed=seeds, score=st.sampled_from([*FAMILIES]))
def test_43_exact_censored_score_is_proper_under_administrative_stops(score, world, budget, seed):
    rng = np.random.default_rng(seed)
    q = world.q[:, :budget]
    table = rng.uniform(0.01, 0.99, 2**budget)
    trace = q.copy()
    code = (world.histories @ np.array([4, 2, 1])) >> (3 - budget)
    trace[:, budget - 1] = table[code]

    def expected(F):
        # every run is cut at the budget; q_Z is the truth at the last step seen
        return world.p_history @ censored_tps_samples(-np.ones(8), F, q_z=q[:, -1], score=score)

    assert expected(trace) <= expected(q) + 1e-15


@few
@given(world=worlds, seed=seeds)
def test_c3_the_simple_score_elicits_the_pseudo_label(world, seed):
    # histories whose second bit is 1 are cut after step 2; the others are observed
    rng = np.random.default_rng(seed)
    observed = world.histories[:, 1] == 0
    m = world.mean_given_prefix(world.leaf * observed)[:, :2]
    q = world.q[:, :2]

    def expected(F):
        cut = censored_tps_samples(-np.ones(8), F)
        ones, zeros = tps_samples(np.ones(8), F), tps_samples(np.zeros(8), F)
        seen = world.leaf * ones + (1 - world.leaf) * zeros
        return world.p_history @ np.where(observed, seen, cut)

    shifted = np.clip(m + rng.uniform(-0.2, 0.2), 0, 1)
    assert expected(shifted) <= expected(m) + 1e-12
    assert expected(q) < expected(m)  # q itself is beaten: success mass is missing


def test_theorem_a_t_ece_does_not_see_resolution():
    # two histories with q = .2 and .8: the constant .5 ties the truth at zero
    n = 500
    y = np.r_[np.arange(n) < 0.2 * n, np.arange(n) < 0.8 * n].astype(int)
    truth = np.r_[np.full(n, 0.2), np.full(n, 0.8)][:, None]
    constant = np.full((2 * n, 1), 0.5)
    assert trajectory_diagnostics(y, truth)["T-ECE"] == pytest.approx(0, abs=1e-12)
    assert trajectory_diagnostics(y, constant)["T-ECE"] == pytest.approx(0, abs=1e-12)
    gain = tps_samples(y, truth, score="brier") - tps_samples(y, constant, score="brier")
    assert gain.mean() == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("phi", "other", "excess"),
    [
        ("mean", [[0.5, 0.9], [0.5, 0.1]], 0.01),
        ("weighted", [[0.5, 0.9], [0.5, 0.1]], 0.01),
        ("min", [[1.0, 0.7], [1.0, 0.3]], 0.02),
        ("last", [[0.9, 0.7], [0.1, 0.3]], 0.0),
    ],
)
def test_theorem_b_scalars_do_not_elicit_the_trace(phi, other, excess):
    # q_1 = .5, q_2 = .7 or .3 with equal chance
    truth, distorted = np.array([[0.5, 0.7], [0.5, 0.3]]), np.array(other)
    aggregator = TraceAggregator(phi, weights="uniform").fit(truth)

    def brier(trace):
        scalar, q = aggregator.predict_proba(trace)[:, 1], truth[:, 1]
        return np.mean(q * (1 - scalar) ** 2 + (1 - q) * scalar**2)

    assert brier(truth) - brier(distorted) == pytest.approx(excess, abs=1e-12)
    # the trajectory score sees through all of them
    assert (regret(truth, distorted, score="brier") > 0.009).all()


@pytest.mark.filterwarnings("ignore:horizon=3 leaves:UserWarning")
def test_regret_is_what_the_score_loses(ragged):
    # where the chance is one in a run, it is the run's soft outcome too
    F, q = ragged[0], np.linspace(0.1, 0.9, 200)
    truth = F.with_cells(np.repeat(q, F.lengths))
    for score in FAMILIES:
        for how in (*WAYS, OWN):
            found = regret(truth, F, score=score, **how)
            lost = tps_score(q, truth, score=score, **how) - tps_score(q, F, score=score, **how)
            assert found.mean() == pytest.approx(lost, rel=1e-12), how
            assert (found >= 0).all()


def test_chances_of_a_law_are_those_of_its_runs():
    # one state: a run ends after step 1 with chance .5 and then succeeds; else at step 2 with .2
    law = JointLaw(np.ones(1), np.ones((1, 1)), np.array([[0.5], [1.0]]), np.array([[1.0], [0.2]]))
    assert law.chances().ravel() == pytest.approx([0.6, 0.2])
    assert law.chances(end=True).ravel() == pytest.approx([1.0, 0.2])
    assert law.chances(end=False)[0, 0] == pytest.approx(0.2)
    # own weights of step 1 are 1 in a run of one step and 2/3 in a run of two
    tilted = (0.5 + 0.5 * 0.2 * 2 / 3) / (0.5 + 0.5 * 2 / 3)
    assert law.chances(linear_front).ravel() == pytest.approx([tilted, 0.2])
