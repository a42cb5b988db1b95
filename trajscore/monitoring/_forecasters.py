"""What rules that follow a forecaster ask of it."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from trajscore.calibration import PrefixForecaster


def is_passthrough(forecaster: Any) -> bool:
    """Say whether scores are to be taken as forecasts.

    Parameters
    ----------
    forecaster : object
        The parameter of the rule.

    Returns
    -------
    bool
        Whether it is the string "passthrough".
    """
    return isinstance(forecaster, str) and forecaster == "passthrough"


def trace_forecaster(forecaster: Any) -> Any:
    """Return an unfitted forecaster for the parameter `forecaster` of a rule.

    Parameters
    ----------
    forecaster : forecaster, "passthrough" or None
        None stands for a `PrefixForecaster`.

    Returns
    -------
    forecaster or None
        A clone; None for "passthrough".

    Raises
    ------
    ValueError
        If it has no ``transform``.
    """
    if is_passthrough(forecaster):
        return None
    prototype = PrefixForecaster() if forecaster is None else forecaster
    if not hasattr(prototype, "transform"):
        if isinstance(prototype, str):
            raise ValueError(f'forecaster must be an estimator or "passthrough", got {prototype!r}')
        name = type(prototype).__name__
        raise ValueError(
            f"forecaster must turn scores into a trace by its transform, and {name} has none; "
            f"wrap a classifier as PrefixForecaster({name}())"
        )
    return clone(prototype)
