"""Saves that fail, of each kind that the package has: is the old file whole after each?

python tools/saves.py [--times 1000] [--only NAME]     (as root: a small disk is mounted)

A disk that is full and a limit on the size of files let a save write a random part; a kill comes at
a random moment after a save has begun to write. After each the file must read as one that was saved
whole.
"""

import argparse
import io
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trajscore import DensityRatioEProcess, TrajectoryArray, evaluate
from trajscore.cli import check as check_command
from trajscore.datasets import make_trajectories
from trajscore.gates import RunSet, check
from trajscore.monitoring._state_file import StateFile
from trajscore.monitoring.persistence import load_process, save_fitted
from trajscore.report.page import build

PAGE = 4096  # of the disk in memory
LARGEST = 6 * PAGE  # content of a run


class Kind(NamedTuple):
    """A save of one of two contents, and what reads it again."""

    ending: str
    save: Callable[[int, Path], Any]
    read: Callable[[Path], Any]
    in_place: bool = False  # changes a part of the file


def state_file(path: Path) -> StateFile:
    """The state of a monitor."""
    return StateFile(path, {}, "normal")


def write_run(k: int, path: Path) -> None:
    """Write two runs of 20 in one step, each the same letter throughout, more or less often."""
    with closing(state_file(path)) as file:
        letter = os.urandom(1).hex()[0]
        size = int.from_bytes(os.urandom(2)) % LARGEST
        file.write({ord(letter) % 10: letter * (size + 1), 10 + ord(letter) % 10: letter})


def runs_are_whole(path: Path) -> bool:
    """Whether both runs of each step were written, and no letter is of another step."""
    with warnings.catch_warnings(), closing(state_file(path)) as file:
        warnings.simplefilter("error")  # of damage
        contents = file.contents
    assert all(len(set(content)) == 1 for content in contents.values())
    pairs = [(contents.get(run), contents.get(run + 10)) for run in range(10)]
    return all((a or "")[:1] == (b or "") for a, b in pairs)


def kinds() -> dict[str, Kind]:
    """Each kind of save."""
    samples = [make_trajectories(100, lengths=5, random_state=k, return_X_y=True) for k in (0, 1)]
    arrays = [X for X, _ in samples]
    reports = [evaluate(X, y) for X, y in samples]
    pages = {id(report): build.to_html(report) for report in reports}
    build.to_html = lambda report, log: pages[id(report)]  # drawn once, and not for each save
    processes = [DensityRatioEProcess(alpha=0.2).fit(X, y) for X, y in samples]
    sets = [RunSet(X, y) for X, y in samples]
    results = [check(new, sets[0]) for new in sets]
    # read and checked once, and not for each save
    check_command.read = lambda k, _: k
    check_command.check = lambda k, *_: results[k]

    def checked(k: int, path: Path) -> None:
        given = dict.fromkeys(("gates", "margin", "undecided"))
        given |= {"new": k, "baseline": 0, "json": path}
        with redirect_stdout(io.StringIO()):
            check_command.run(argparse.Namespace(**given))

    return {
        "page": Kind(".html", lambda k, path: reports[k].to_html(path), Path.read_bytes),
        "report, JSON": Kind(".json", lambda k, path: reports[k].to_json(path), Path.read_bytes),
        "report, Markdown": Kind(
            ".md", lambda k, path: reports[k].to_markdown(path), Path.read_bytes
        ),
        "runs": Kind(".npz", lambda k, path: arrays[k].save(path), TrajectoryArray.load),
        "process": Kind(
            ".skops",
            lambda k, path: save_fitted(processes[k], path),
            lambda path: load_process(path).thresholds_.to_dict(),
        ),
        "state of a monitor": Kind("", write_run, runs_are_whole, in_place=True),
        "check": Kind(".json", checked, Path.read_bytes),
    }


class Trial:
    """Saves of one kind to one file, with what came of them."""

    def __init__(self, kind: Kind, folder: Path, rng: np.random.Generator) -> None:
        self.kind, self.folder, self.rng = kind, folder, rng
        self.path = folder / f"file{kind.ending}"
        self.whole, sizes = [], []
        for k in (1, 0):
            kind.save(k, self.path)
            self.whole.append(kind.read(self.path))
            sizes.append(self.path.stat().st_size)
        self.size = min(sizes)
        self.counts: Counter[str] = Counter()

    def too_small(self) -> int:
        """A random size that the file cannot have after the next save."""
        size = self.path.stat().st_size + LARGEST if self.kind.in_place else self.size
        return int(self.rng.integers(size))

    def fail(self) -> None:
        """Save what cannot be saved, and look at the file."""
        before = self.content()
        try:
            self.kind.save(1, self.path)
        except OSError:
            self.counts["failed"] += 1
        except Exception as error:
            self.counts[f"raised {type(error).__name__}"] += 1
        else:
            self.counts["saved"] += 1
            return
        self.counts["harmed"] += self.content() != before
        self.counts["left a part"] += len(self.parts())

    def content(self) -> Any:
        """What is in the file; of a state the runs, as a monitor reads a copy of it."""
        if not self.kind.in_place:
            return self.path.read_bytes()
        with tempfile.TemporaryDirectory() as folder, limited(None):
            for file in self.folder.glob(f"{self.path.name}*"):
                shutil.copy(file, folder)
            with closing(state_file(Path(folder) / self.path.name)) as copy:
                return copy.contents

    def kill(self) -> None:
        """Kill a process that saves again and again, soon after it has begun to write."""
        child = os.fork()
        if child == 0:
            for k in range(1_000_000):
                self.kind.save(1 - k % 2, self.path)
        begun, changed = time.monotonic(), self.path.stat().st_mtime_ns
        while not self.parts() and (
            not self.kind.in_place or self.path.stat().st_mtime_ns == changed
        ):
            assert time.monotonic() < begun + 600, "nothing is saved"
        time.sleep(10 ** self.rng.uniform(-5, -2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.counts["failed"] += 1
        self.counts["harmed"] += self.kind.read(self.path) not in self.whole
        for part in self.parts():
            self.counts["amid a save"] += 1
            part.unlink()

    def parts(self) -> list[Path]:
        """What is left of saves that did not end."""
        return list(self.folder.glob(".*.part"))


def full_disk(kind: Kind, times: int, rng: np.random.Generator, disk: Path) -> Counter[str]:
    """Fail for want of space, which is random and less than what the file takes."""
    with mounted(disk):
        trial, ballast = Trial(kind, disk, rng), disk / "ballast"
        for _ in range(times):
            ballast.unlink(missing_ok=True)
            there = os.statvfs(disk)
            free = int(rng.integers(-(-(LARGEST if kind.in_place else trial.size) // PAGE)))
            with ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, (there.f_bavail - free) * there.f_frsize)
            trial.fail()
    return trial.counts


@contextmanager
def mounted(disk: Path) -> Iterator[None]:
    """Have a small disk in memory."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", disk], check=True)


def size_limit(kind: Kind, times: int, rng: np.random.Generator, folder: Path) -> Counter[str]:
    """Fail because files may not be larger than a random size."""
    trial = Trial(kind, folder, rng)
    for _ in range(times):
        with limited(trial.too_small()):
            trial.fail()
    return trial.counts


@contextmanager
def limited(size: int | None) -> Iterator[None]:
    """Have a limit on the size of files, or none."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before[1] if size is None else size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def killed(kind: Kind, times: int, rng: np.random.Generator, folder: Path) -> Counter[str]:
    """Fail because the process is killed."""
    trial = Trial(kind, folder, rng)
    for _ in range(times):
        trial.kill()
    return trial.counts


WAYS = {"full disk": full_disk, "size limit": size_limit, "killed": killed}


def main() -> None:
    """Print what came of the saves."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--only", default="", help="kinds whose names hold this")
    arguments = parser.parse_args()
    print(f"{arguments.times} failed saves of each kind; what came of them")
    chosen = {name: kind for name, kind in kinds().items() if arguments.only in name}
    for name, kind in chosen.items():
        for way, fails in WAYS.items():
            with tempfile.TemporaryDirectory() as folder:
                counts = fails(kind, arguments.times, np.random.default_rng(0), Path(folder))
            said = ", ".join(f"{n} {one}" for one, n in counts.items())
            print(f"{name:<22}{way:<12}{said}", flush=True)


if __name__ == "__main__":
    main()
