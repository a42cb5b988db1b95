"""Which types a saved estimator may hold: they keep numbers and settings, and run nothing."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from inspect import isabstract
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator

from trajscore.core.score_families import FAMILIES

# Classes only, by full names, out of files that hold a public estimator of these packages or its
# parts: a module's prefix would let a file name any function in it. Estimators of other packages
# ask a model or act, and are not trusted; tests hold that these do nothing of the kind.
_ROOMS = ("calibration", "censoring", "monitoring", "tracer")
_FILES_OF_RECORDS = (
    "core.outliers", "monitoring._density_ratio", "monitoring._fleet_runs",
    "monitoring._thresholds",
)  # fmt: skip
_OTHERS = (  # scikit-learn's are records of settings, in searches
    "builtins.frozenset",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedGroupKFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "trajscore.censoring._shares._with_squares",
    "trajscore.integrations._guard.Guard",
    "trajscore.metrics._scorers.CensoredTPSScorer",
    "trajscore.metrics._scorers.TPSScorer",
)


def trusted_types() -> list[str]:
    """Return the full names of the types that our fitted estimators are made of.

    They keep numbers and settings, and run nothing when they are read: pass them to
    ``skops.io.load(trusted=)``, and to MLflow as ``skops_trusted_types``. scikit-learn's own
    estimators skops trusts by itself. Not here are types of other packages, such as an embedder's,
    and what forests and boosting keep, as scikit-learn does not check the indices of trees.

    Returns
    -------
    list of str
        Names, sorted.

    Examples
    --------
    >>> from trajscore import trusted_types
    >>> "trajscore.calibration._platt.PlattCrossFitCalibrator" in trusted_types()
    True
    """
    rooms = [import_module(f"trajscore.{room}") for room in _ROOMS]
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    homes = {thing.__module__ for thing in public if _is(thing, BaseEstimator)}
    files = map(import_module, homes.union(f"trajscore.{part}" for part in _FILES_OF_RECORDS))
    kinds = [*FAMILIES, *(kind for file in files for kind in _record_types(file))]
    return sorted([*(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds), *_OTHERS])


def _record_types(file: ModuleType) -> list[type]:
    """Return the estimators and records that a file defines, without bases of others."""
    return [
        kind
        for kind in vars(file).values()
        if _is(kind, object) and kind.__module__ == file.__name__
        if issubclass(kind, BaseEstimator) or is_dataclass(kind) or hasattr(kind, "_fields")
        if not isabstract(kind)
    ]


def _is(thing: Any, kind: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, kind)
