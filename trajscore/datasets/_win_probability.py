"""Public win probabilities, updated while games went on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.datasets._fetch import as_data, retrieve

_URL = (
    "https://raw.githubusercontent.com/fivethirtyeight/checking-our-work-data/"
    "f6d5b2e1d6da2889345d381c41431f9a4ee208dd/"
)
_FILE = "march_madness_in_game_men.csv"
_SHA256 = "584b6ba54c71e034632801c1f046b82e6ee657d3037ffc1ed8c1ee9d90ad18fe"


def fetch_win_probability(
    *,
    data_home: str | Path | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Fetch win probabilities during 401 games of college basketball (fivethirtyeight, CC BY 4.0).

    Their forecasts are calibrated as they are, which few are: a control for what recalibrates.

    Parameters
    ----------
    data_home, download_if_missing, return_X_y : str or Path, bool and bool
        As in `fetch_evaluator`.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray of the probability that the first team wins, one step each time that
        it was updated; its meta names the season. target: 1 where it won, else 0. DESCR; filename.

    Raises
    ------
    ValueError, OSError, ImportError
        As `fetch_evaluator`.

    References
    ----------
    FiveThirtyEight, How Good Are FiveThirtyEight Forecasts?; tables at
    github.com/fivethirtyeight/checking-our-work-data.

    Examples
    --------
    >>> from trajscore.datasets import fetch_win_probability
    >>> X, y = fetch_win_probability(return_X_y=True)  # doctest: +SKIP
    """
    path = retrieve(_URL + _FILE, _FILE, _SHA256, data_home, download_if_missing)
    table = pd.read_csv(path)
    game = table["season"].astype(str) + " " + table["team1"] + " - " + table["team2"]
    X, y = TrajectoryArray.from_frame(
        table.assign(game=game, update=table.groupby(game).cumcount() + 1),
        id="game", step="update", value="prob1", outcome="prob1_outcome", meta=["season"],
    )  # fmt: skip
    return as_data(
        X,
        y,
        return_X_y,
        DESCR=f"{len(X)} games and who was to win at each update; fivethirtyeight, CC BY 4.0.",
        filename=str(path),
    )
