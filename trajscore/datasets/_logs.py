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
# name: repository, commit, wanted paths, SHA-256 of these paths and contents, and what they are
_ARCHIVES = {
    "multi_swe_bench": (
        "multi-swe-bench/experiments",
        "89888f1604001fcd80b0799a37af42a1bfebfd8f",
        r"[^/]*/(evaluation/java/verified/[^/]+/(?:trajs/[^/]+\.traj|results/results\.json))",
        "33b3c81ec0479c4bf29facb3503da5e7162694dae4e7a48d42db441f4555bb82",
        "runs of Multi-SWE-bench",
    ),
    "who_and_when": (
        "mingyin1/Agents_Failure_Attribution",
        "3d9d568840f004b389638f97adf3e0ab8b5a9514",
        r"[^/]*/(Who&When/[^/]+/[^/]+\.json)",
        "95c1fec2148430e9fb48c0cadd9110aea4b0b67a4e1d60bf5a2ffe8d58c6465d",
        "runs of Who&When",
    ),
}


def fetch_logs(
    name: str, *, data_home: str | Path | None = None, download_if_missing: bool = True
) -> Path:
    """Fetch a public log of agents, for `trajscore.io.read_runs`.

    Parameters
    ----------
    name : {"tau_bench", "multi_swe_bench", "who_and_when"}
        200 runs of gpt-4o at the airline tasks of tau-bench (MIT licence); 448 runs of SWE-agent
        with five models at the Java issues of Multi-SWE-bench, which state no licence: they are
        fetched, and may not be passed on; or 184 failed runs of several agents, each with the step
        and the agent that people found at fault (MIT licence).
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

    A run of Who&When is a file with ``history``, ``mistake_step``, which counts from 0, and
    ``mistake_agent``; to read it as a log, name its agents by ``roles=``.

    Where only git reaches GitHub, make the archive from a clone of the repository, at the path that
    the error under ``download_if_missing=False`` names, of the folders ``trajs`` and ``results``,
    or of ``Who&When``::

        git archive --prefix=experiments/ -o PATH 89888f160400 FOLDER ...

    References
    ----------
    Yao et al. (2024), tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains;
    logs at github.com/sierra-research/tau-bench. Zan et al. (2024), SWE-bench-java: A GitHub Issue
    Resolving Benchmark for Java; logs at github.com/multi-swe-bench/experiments. Zhang et al.
    (2025), Which Agent Causes Task Failures and When?; logs at
    github.com/mingyin1/Agents_Failure_Attribution.

    Examples
    --------
    >>> from trajscore import io
    >>> from trajscore.datasets import fetch_logs
    >>> runs = io.read_runs(fetch_logs("tau_bench"))  # doctest: +SKIP
    """
    check_choice(name, "name", ("tau_bench", *_ARCHIVES))
    if name == "tau_bench":
        url = _TAU_BENCH + _AIRLINE
        return retrieve(url, _AIRLINE, _AIRLINE_SHA256, data_home, download_if_missing)
    repository, commit, wanted, sha256, kind = _ARCHIVES[name]
    archive = retrieve(
        f"https://github.com/{repository}/archive/{commit}.tar.gz",
        f"{repository.replace('/', '-')}-{commit[:12]}.tar.gz",
        None,
        data_home,
        download_if_missing,
    )
    folder = archive.with_name(archive.name.removesuffix(".tar.gz"))
    for path, content in of_archive(archive, wanted, sha256, kind).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder
