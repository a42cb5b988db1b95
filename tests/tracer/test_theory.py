"""The paper's bounds in simulated worlds."""

import numpy as np
import pytest

from trajscore import TracerScorer, TracerSignals, io


@pytest.mark.parametrize(("k", "w"), [(0.1, 0.0), (0.2, 0.3), (0.5, 0.1)])
def test_breakdown_is_bounded_by_the_tail(rng, k, w):
    """Eq. 24: hazards of at most c r_t, few of them large, bound the chance of a breakdown."""
    n_runs, n_steps, c = 20_000, 20, 0.3
    size = int(k * n_steps)
    risk = 0.002 * rng.random((n_runs, n_steps))
    critical = (
        rng.random((n_runs, n_steps)).argsort(axis=1) < rng.integers(0, size + 1, n_runs)[:, None]
    )
    risk[critical] = rng.random(critical.sum())
    hazard = np.minimum(1, c * risk) * rng.random((n_runs, n_steps))  # at most c r_t
    breakdown = (rng.random((n_runs, n_steps)) < hazard).any(axis=1)
    ordered = -np.sort(-risk, axis=1)
    eta = ordered[:, size:].sum(axis=1).max(initial=0)
    tail_mean = TracerScorer(k=k, w=0).fit(risk).score_samples(risk).mean()
    assert breakdown.mean() > 0.01
    assert breakdown.mean() <= c * (size * tail_mean + eta)
    tracer = TracerScorer(k=k, w=w).fit(risk).score_samples(risk).mean()
    assert breakdown.mean() <= c * size / (1 - w) * tracer + c * eta


def test_surprisal_is_uncertainty_plus_mismatch(rng):
    """Theorem A.1 by Monte Carlo: E[U] = mean entropy of Q + mean KL(Q || P)."""
    n_tokens, n_words, n_runs = 6, 5, 3000
    Q = rng.dirichlet(np.ones(n_words), n_tokens)
    P = rng.dirichlet(np.ones(n_words), n_tokens)
    entropy = -(Q * np.log(Q)).sum(axis=1).mean()
    mismatch = (Q * np.log(Q / P)).sum(axis=1).mean()
    drawn = (rng.random((n_runs, n_tokens, 1)) > Q.cumsum(axis=1)).sum(axis=2)
    logprobs = np.log(P[np.arange(n_tokens), drawn])
    runs = [
        io.Run(f"r{k}", [io.Step("agent", "x", logprobs=tuple(row))])
        for k, row in enumerate(logprobs.tolist())
    ]
    # all tokens count: the theorem is for a fixed set of them
    U = TracerSignals(least_surprisal=0).fit_transform(runs)["surprisal"].cells.ravel()
    error = U.std() / np.sqrt(n_runs)
    assert abs(U.mean() - (entropy + mismatch)) < 4 * error
    assert mismatch > 10 * error
