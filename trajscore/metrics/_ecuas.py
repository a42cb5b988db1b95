"""The formula of ECUAS: what a decision costs, over all costs of rejecting it."""

from __future__ import annotations

import numpy as np

from trajscore.core.type_aliases import FloatArray


def ecuas_costs(
    log_u: FloatArray, paid: FloatArray, n: float, u_max: float, floor: float
) -> FloatArray:
    """Compute C*_n of Eq. 9: in x = u / u_M it is x^(n+1) + (n+1)/n (1 - x^n) c / u_M.

    Uncertainties above u_M cost the same as u_M (Appendix A.3). `floor` is the smallest u under
    the logarithm of n = 0, or 0 for none.
    """
    log_x = np.minimum(log_u - np.log(u_max), 0.0)
    if n == 0:
        if floor > 0:
            log_x = np.maximum(log_x, min(np.log(floor / u_max), 0.0))
        with np.errstate(invalid="ignore"):  # a certain and right answer: 0 times infinity
            penalty = np.where(paid > 0, -log_x * paid, 0.0)
        return np.asarray(np.exp(log_x) + penalty / u_max)
    weight_above = -np.expm1(n * log_x)  # 1 - x^n, exact also for small n
    return np.asarray(np.exp((n + 1) * log_x) + (n + 1) / n * weight_above * paid / u_max)
