"""Public logs of agents, as the files that `trajscore.io` reads."""

from __future__ import annotations

from pathlib import Path

from trajscore.core.values import check_choice
from trajscore.datasets._fetch import of_archive, retrieve

_TAU_BENCH = (
    "https://raw.githubusercontent.com/sierra-research/tau-bench/"
    "59a200c6d575d595120f1cb70fea53cef0632f6b/historical_trajectories/"
)
_AIRLINE = "gpt-4o-airline.json"
_AIRLINE_SHA256 = "e9e6c0297660c537f83d4fd9c476ce7a9a86ecd2784874b7bfc13be598e37bfa"
_COMMIT = "89888f1604001fcd80b0799a37af42a1bfebfd8f"
_MULTI_SWE = f"https://github.com/multi-swe-bench/experiments/archive/{_COMMIT}.tar.gz"
_ARCHIVE = f"multi-swe-bench-experiments-{_COMMIT[:12]}.tar.gz"
_RUNS = r"[^/]*/(evaluation/java/verified/[^/]+/(?:trajs/[^/]+\.traj|results/results\.json))"
# of paths and contents, as those of BALROG
_RUNS_SHA256 = "33b3c81ec0479c4bf29facb3503da5e7162694dae4e7a48d42db441f4555bb82"

_NAMES = ("tau_bench", "multi_swe_bench")


def fetch_logs(
    name: str, *, data_home: str | Path | None = None, download_if_missing: bool = True
) -> Path:
    """Fetch a public log of agents, for `trajscore.io.read_runs`.

    Parameters
    ----------
    name : {"tau_bench", "multi_swe_bench"}
        200 runs of gpt-4o at the airline tasks of tau-bench (MIT licence), or 448 runs of
        SWE-agent with five models at the Java issues of Multi-SWE-bench. The latter state no
        licence: they are fetched, and may not be passed on.
    data_home, download_if_missing : str or Path, and bool
        As in `fetch_evaluator`.

    Returns
    -------
    Path
        The log: a file, or the folder into which an archive was unpacked.

    Raises
    ------
    ValueError, OSError, ImportError
        As `fetch_evaluator`.

    Notes
    -----
    One of the five models of Multi-SWE-bench was evaluated on one of its 91 issues: its other runs
    have no outcome, and do not count as failures.

    Where only git reaches GitHub, make the archive from a clone of the repository, at the path that
    the error under ``download_if_missing=False`` names, of the folders ``trajs`` and ``results``::

        git archive --prefix=experiments/ -o PATH 89888f160400 FOLDER ...

    References
    ----------
    Yao et al. (2024), tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains;
    logs at github.com/sierra-research/tau-bench. Zan et al. (2024), SWE-bench-java: A GitHub Issue
    Resolving Benchmark for Java; logs at github.com/multi-swe-bench/experiments.

    Examples
    --------
    >>> from trajscore import io
    >>> from trajscore.datasets import fetch_logs
    >>> runs = io.read_runs(fetch_logs("tau_bench"))  # doctest: +SKIP
    """
    check_choice(name, "name", _NAMES)
    if name == "tau_bench":
        url = _TAU_BENCH + _AIRLINE
        return retrieve(url, _AIRLINE, _AIRLINE_SHA256, data_home, download_if_missing)
    archive = retrieve(_MULTI_SWE, _ARCHIVE, None, data_home, download_if_missing)
    folder = archive.with_name(archive.name.removesuffix(".tar.gz"))
    files = of_archive(archive, _RUNS, _RUNS_SHA256, "runs of Multi-SWE-bench")
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder
