"""Fitted processes in files that run no code when they are read."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from sklearn.utils.validation import check_is_fitted

from trajscore.core.errors import ArgumentError, optional
from trajscore.core.storage import check_archive, replacing, trusted_types
from trajscore.monitoring._eprocess import DensityRatioEProcess

Fitted = TypeVar("Fitted")


def save_fitted(estimator: Any, path: Path) -> None:
    """Write a fitted estimator to a .skops file, whole or not at all."""
    content = _skops("writing").dumps(estimator)
    with replacing(path) as file:
        file.write(content)


def _skops(doing: str) -> Any:
    return optional("skops.io", f"{doing} a model needs skops", "monitor")


def load_process(
    path: str | Path, trusted: Sequence[str] = (), max_size: int | None = None
) -> DensityRatioEProcess:
    """Read a fitted process from a .skops file, and try it out."""
    process = load_fitted(path, DensityRatioEProcess, trusted, max_size)
    try:  # a run of two steps, as what is loaded may be damaged in any part
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = [0.5] * process.test_.n_channels
            for alpha in process.test_.alphas:
                monitor = process.monitor(alpha)
                monitor.update(scores, "a")
                monitor.update(scores, "a", done=True)
    except Exception as error:
        raise ValueError(f"{path} holds a process that does not work: {error}") from error
    return process


def load_fitted(
    path: str | Path,
    kind: type[Fitted],
    trusted: Sequence[str] = (),
    max_size: int | None = None,
) -> Fitted:
    """Read a fitted estimator from a .skops file, which runs no code of its own.

    All types in the file are checked before any of it is loaded. They must be trusted by skops,
    named in `trusted_types`, or named by the caller in `trusted`.
    """
    io = _skops("reading")
    file = Path(path)
    if not file.exists():
        raise OSError(
            f"{file} does not exist; write it with trajscore fit, or skops.io.dump(process, path)"
        )
    try:
        check_archive(file, max_size)
        unknown = io.get_untrusted_types(file=file)
    except ArgumentError:
        raise
    except Exception as error:  # whatever skops raises for another kind of file
        raise ValueError(
            f"{file} is not a .skops file; write one with trajscore fit, or of a "
            f"fitted process with skops.io.dump(process, path)"
        ) from error
    refused = sorted(set(unknown).difference(trusted_types(), trusted))
    if refused:
        raise ValueError(
            f"{file} holds {', '.join(refused)}, which could do harm when loaded; if you know who "
            f"made the file, name what you trust, by trusted={refused} or "
            f"{' '.join(f'--trust {type_name}' for type_name in refused)}"
        )
    try:
        fitted = io.load(file, trusted=unknown)
    except Exception as error:
        raise ValueError(f"{file} is damaged: {error}; write it again") from error
    if not isinstance(fitted, kind):
        raise ValueError(
            f"{file} holds a {type(fitted).__name__}, not a {kind.__name__}; trajscore fit writes "
            f"a DensityRatioEProcess, with --guard a Guard, for integrations.Guard.load, and with "
            f"--forecaster what trajscore forecast reads"
        )
    place = str(file).replace("%", "%%")
    need = "write it after its fit, or with trajscore fit"
    check_is_fitted(fitted, msg=f"{place}: the %(name)s in it is not fitted; {need}")
    return fitted
