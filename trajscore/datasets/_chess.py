"""The bundled data: chess games of a weak engine, judged by a strong one."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.datasets._fetch import as_data

_CHANNELS = ["engine", "shallow", "material"]


def load_chess(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load 360 chess games, each move with three forecasts of whether the agent wins.

    A run is a game, a step a move of the agent (White, a weak engine). 67 games were cut at a
    budget of 60 moves: their outcome is -1, and `meta` holds their final outcome.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(X, y)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether the Bunch also holds the long table, as `frame`.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray of 360 runs with the channels engine, shallow and material, and
        stop_reason and final_outcome in its meta; target: 1 won, 0 not won, -1 cut;
        feature_names; frame: DataFrame or None; DESCR: how the data were made; filename.

    See Also
    --------
    fetch_evaluator : Larger public tables of agents' runs.

    Examples
    --------
    >>> from trajscore.datasets import load_chess
    >>> X, y = load_chess(return_X_y=True)
    >>> X
    <TrajectoryArray: 360 runs of 1 to 60 steps, channels engine, shallow, material>
    >>> int((y == -1).sum())
    67
    """
    folder = resources.files("trajscore.datasets") / "data"
    path = folder / "chess.csv.gz"
    with resources.as_file(path) as file:
        frame = pd.read_csv(file, compression="gzip")
    X, y = TrajectoryArray.from_frame(
        frame,
        id="game",
        step="move",
        value=_CHANNELS,
        outcome="outcome",
        meta=["stop_reason", "final_outcome"],
        stop_reason=(),  # its outcomes follow the rule already
    )
    return as_data(
        X,
        y,
        return_X_y,
        feature_names=list(_CHANNELS),
        frame=frame if as_frame else None,
        DESCR=(folder / "README.md").read_text(encoding="utf-8"),
        filename=str(path),
    )
