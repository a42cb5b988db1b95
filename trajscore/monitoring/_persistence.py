"""Fitted processes in files that run no code when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from trajscore.calibration import PlattCrossFitCalibrator, PrefixForecaster, TraceAggregator
from trajscore.calibration._beta import BetaCrossFitCalibrator, BetaMap
from trajscore.calibration._isotonic import IsotonicCrossFitCalibrator, IsotonicMap
from trajscore.calibration._platt import PlattMap
from trajscore.core.storage import replacing
from trajscore.metrics._scorers import CensoredTPSScorer, TPSScorer
from trajscore.monitoring._density_ratio import DensityRatio, FittedTest, Fold
from trajscore.monitoring._eprocess import DensityRatioEProcess
from trajscore.monitoring._thresholds import (
    Bonferroni,
    Conformal,
    CrossConformal,
    Pac,
    PacMarginal,
    Ville,
)

# What a fitted process is made of, beside scikit-learn's estimators, which skops trusts itself, by
# full names: a module's prefix would let a file run any function in it. The two scorers, which a
# search for the best forecaster holds, only read numbers.
_OURS = (
    Bonferroni,
    CensoredTPSScorer,
    Conformal,
    CrossConformal,
    DensityRatio,
    DensityRatioEProcess,
    FittedTest,
    Fold,
    Pac,
    PacMarginal,
    PlattCrossFitCalibrator,
    BetaCrossFitCalibrator,
    BetaMap,
    IsotonicCrossFitCalibrator,
    IsotonicMap,
    PlattMap,
    PrefixForecaster,
    TPSScorer,
    TraceAggregator,
    Ville,
)
_SKLEARN_TYPES = (  # records of settings, in searches and in gradient boosting
    "sklearn._loss.link.HalfLogitLink",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedGroupKFold",
    "sklearn.model_selection._split.StratifiedKFold",
)
_TRUSTED = frozenset((*(f"{one.__module__}.{one.__qualname__}" for one in _OURS), *_SKLEARN_TYPES))


def save_process(process: DensityRatioEProcess, path: Path) -> None:
    """Write a fitted process to a .skops file, whole or not at all."""
    content = _skops("writing").dumps(process)
    with replacing(path) as file:
        file.write(content)


def _skops(doing: str) -> Any:
    try:
        from skops import io
    except ImportError as error:
        raise ImportError(
            f'{doing} a model needs skops; run `pip install "scikit-trajscore[monitor]"`'
        ) from error
    return io


def load_process(path: str | Path, trusted: Sequence[str] = ()) -> DensityRatioEProcess:
    """Read a fitted process from a .skops file, which runs no code of its own.
    All types in the file are checked before any of it is loaded. Trusted are those of this
    package that a process is made of, its Trajectory Proper Scores, scikit-learn's estimators and
    a few of its records; no other function. What skops warns of is not trusted either: the trees
    of forests and of gradient boosting, whose indices scikit-learn does not check, and other
    metrics of a search. Who made the file can name them in `trusted`, by their full names.
    """
    io = _skops("reading")
    file = Path(path)
    if not file.exists():
        raise OSError(
            f"{file} does not exist; write it with trajscore fit, or skops.io.dump(process, path)"
        )
    try:
        unknown = io.get_untrusted_types(file=file)
    except (BadZipFile, KeyError, ValueError) as error:
        raise ValueError(
            f"{file} is no .skops file; write one with skops.io.dump(process, path)"
        ) from error
    refused = sorted(set(unknown) - _TRUSTED - set(trusted))
    if refused:
        raise ValueError(
            f"{file} holds {', '.join(refused)}, which could do harm when loaded; if you know who "
            f"made the file, name what you trust, by trusted={refused} or "
            f"{' '.join(f'--trust {one}' for one in refused)}"
        )
    process = io.load(file, trusted=unknown)
    if not isinstance(process, DensityRatioEProcess):
        raise ValueError(f"{file} holds a {type(process).__name__}, not a DensityRatioEProcess")
    return process
