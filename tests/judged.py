"""Reports of single predictors, of options by name, wherever `evaluate` takes them."""

from dataclasses import fields

import trajscore
from trajscore.report import EvaluationOptions

RARE = [field.name for field in fields(EvaluationOptions)]


def evaluate(X, y=None, **named):
    how = named.pop("intervals", {})
    named |= how if isinstance(how, dict) else {"intervals": how}
    rare = {"together": False} | {name: named.pop(name) for name in RARE if name in named}
    return trajscore.evaluate(X, y, **named, options=EvaluationOptions(**rare))


def drawn(n_resamples=1000, method="auto", **others):
    return {"n_resamples": n_resamples, "intervals": method, **others}
