"""Which types a saved estimator may hold: they keep numbers and settings, and run nothing."""

from __future__ import annotations

# By full names, one by one: a module's prefix would let a file name any function in it.
_OURS = {
    "calibration._affine": ("AffineCalibrator",),
    "calibration._aggregator": ("TraceAggregator",),
    "calibration._alive_rate": ("AliveRate",),
    "calibration._beta": ("BetaCrossFitCalibrator", "BetaMap"),
    "calibration._ensemble": ("EnsembleCrossFitCalibrator", "EnsembleMap"),
    "calibration._isotonic": ("IsotonicCrossFitCalibrator", "IsotonicMap"),
    "calibration._platt": ("PlattCrossFitCalibrator", "PlattMap"),
    "calibration._prefix": ("PrefixForecaster",),
    "censoring._continuation": ("ContinuationModel",),
    "censoring._hazard": ("StopHazard",),
    "censoring._monte_carlo": ("MonteCarloContinuation",),
    "censoring._shares": ("_with_squares",),
    "core.score_families": ("BetaScore", "BrierScore", "LogScore"),
    "integrations._guard": ("Guard",),
    "metrics._scorers": ("CensoredTPSScorer", "TPSScorer"),
    "monitoring._baselines": ("CalibratedVerifier", "RawVerifier"),
    "monitoring._density_ratio": ("DensityRatio", "FittedTest"),
    "monitoring._eprocess": ("DensityRatioEProcess",),
    "monitoring._fleet": ("FleetMonitor",),
    "monitoring._fleet_cause": ("Run",),
    "monitoring._learn_then_test": ("LearnThenTestStop",),
    "monitoring._thresholds": ("Conformal", "Pac", "PacMarginal", "Ville"),
    "tracer._action_signals": ("ActionSignals",),
    "tracer._baselines": ("ChannelRisk", "SAUP"),
    "tracer._embedders": ("_triples",),
    "tracer._semantic_entropy": ("SemanticEntropy",),
    "tracer._step_confidence": ("StepConfidence",),
    "tracer._tracer_scorer": ("TracerScorer",),
    "tracer._tracer_signals": ("TracerSignals",),
}
_OTHERS = (  # records of settings, in searches
    "builtins.frozenset",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedGroupKFold",
    "sklearn.model_selection._split.StratifiedKFold",
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
    ours = (f"trajscore.{module}.{name}" for module, names in _OURS.items() for name in names)
    return sorted([*ours, *_OTHERS])
