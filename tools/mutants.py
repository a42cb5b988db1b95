"""Would the tests notice? Changes formulas, one at a time, and runs the tests on each change.

A mutant differs from the package in one operator, constant, bound or operand. A process imports it
in place of the file, and runs the tests that run its line, those of its own file first, until one
fails. Which tests run a line is read from a coverage run of the whole suite, doctests included:

    python -m pytest -n 2 --cov=trajscore --cov-context=test --cov-report=

`--seed` fixes the choice, which stays when other lines of the files change; `--only` runs some of
its numbers again.

    python tools/mutants.py [FILE_OR_FOLDER ...] [-n 100] [--seed 0] [--only 3 17] [--list]
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
FORMULAS = (
    "trajscore/metrics",
    "trajscore/core/binning.py",
    "trajscore/core/collapse.py",
    "trajscore/core/equal_length.py",
    "trajscore/core/ranking.py",
    "trajscore/core/run_sums.py",
    "trajscore/core/score_families.py",
    "trajscore/core/statistics.py",
    "trajscore/core/ties.py",
    "trajscore/core/weighted_steps.py",
    "trajscore/core/within_strata.py",
    "trajscore/monitoring/_thresholds.py",
    "trajscore/censoring/_censoring_shift.py",
    "trajscore/censoring/_weighting.py",
    "trajscore/censoring/_bounds.py",
    "trajscore/calibration",
    "trajscore/gates",
    "trajscore/inference",
    "trajscore/tracer/_early_warning.py",
)
ENOUGH = 0.95
MEMORY = 8 << 30  # bytes of address space that a mutant may ask for
# imported once, before the tests of each mutant are forked
AT_HAND = (
    "jinja2", "matplotlib.pyplot", "pandas", "scipy.optimize", "scipy.stats",
    "sklearn.ensemble", "sklearn.linear_model", "sklearn.model_selection", "sklearn.pipeline",
    "sklearn.utils.estimator_checks",
)  # fmt: skip

_BFGS = (
    'return minimize(loss, start, jac=True, method="BFGS", options={{"gtol": {}, "maxiter": 2000}})'
)
_MORE = "more = float(np.exp(brentq(shortfall, least, most))) if {} else np.exp(least)"
_OF_ONE_STEP = (
    "plot.line([1, {}] if n == 1 else steps, np.repeat(cells, 2) if n == 1 else cells, key[1])"
)
_IN_RANGE = "if low >= (0 if probabilities else -np.inf) and {}:"
# (file, line, line of the mutant): why no test could tell them apart
EQUIVALENT = {
    (
        "trajscore/metrics/_uncertainty.py",
        "c=classes.max() / classes, A_ub=-(scaled / each).T, b_ub=-1 / each, bounds=(0, None)",
        "c=classes.max() / classes, A_ub=-(scaled / each).T, b_ub=-2 / each, bounds=(0, None)",
    ): "the size of the solution is divided out",
    (
        "trajscore/metrics/_class_probabilities.py",
        "if len(classes) < n_classes:",
        "if (len(classes) <= n_classes):",
    ): "as many classes as columns have been returned before",
    (
        "trajscore/streaming/_ranking.py",
        "failures, successes, confidence = self.sums[:, self.sums[:2].sum(axis=0) > 0]",
        "failures, successes, confidence = self.sums[:, (self.sums[:2].sum(axis=0) >= 0)]",
    ): "cells without a run only take time",
    (
        "trajscore/streaming/dask_batches.py",
        "packed = zlib.compress(cloudpickle.dumps(accumulator), 1) # megabytes of zeros, mostly",
        "packed = zlib.compress(cloudpickle.dumps(accumulator), 2) # megabytes of zeros, mostly",
    ): "how hard an accumulator is compressed",
    (
        "trajscore/core/frame.py",
        "order = np.full(len(steps), -1)",
        "order = np.full(len(steps), -2)",
    ): "any number below 0 marks a place without a row",
    (
        "trajscore/core/weights.py",
        "if len(self._places) < n_cells:",
        "if (len(self._places) <= n_cells):",
    ): "how often the same numbers are made",
    (
        "trajscore/core/checks.py",
        _IN_RANGE.format("high <= (1 if probabilities else np.inf)"),
        _IN_RANGE.format("(high < (1 if probabilities else np.inf))"),
    ): "a closer look then finds nothing",
    (
        "trajscore/core/within_runs.py",
        "n_rows = max(1, _CHUNK_CELLS // (longest * max(1, values[:1].size)))",
        "n_rows = max(2, _CHUNK_CELLS // (longest * max(1, values[:1].size)))",
    ): "how many runs are added up at once",
    (
        "trajscore/datasets/_synthetic.py",
        "outcome = (seen[last_cells(walk)] + rest > threshold).astype(np.int64)",
        "outcome = ((seen[last_cells(walk)] + rest >= threshold)).astype(np.int64)",
    ): "a sum of normal numbers is never just the threshold",
    (
        "trajscore/streaming/dask_batches.py",
        "if _reduce_tree(*steps, self._parts[middle : middle + 1]) is None: # a cheap first look",
        "if _reduce_tree(*steps, self._parts[middle : middle + 2]) is None: # a cheap first look",
    ): "at how many partitions is looked first",
    (
        "trajscore/streaming/_accumulator.py",
        "if not ends[0] <= ends[1]:",
        "if not ends[0] <= ends[-1]:",
    ): "the second of two is the last",
    (
        "trajscore/metrics/_uncertainty.py",
        "return float(np.average(np.where(weight > 0, costs, 0.0), weights=weight))",
        "return float(np.average(np.where(weight > 0, costs, 1.0), weights=weight))",
    ): "a weight of 0 times a finite number",
    (
        "trajscore/core/ties.py",
        "least = np.where(above > 0, above * (1 - ROUNDING), above)",
        "least = np.where((above >= 0), above * (1 - ROUNDING), above)",
    ): "0 times a number is 0",
    (
        "trajscore/core/equal_length.py",
        "edges, longest = [1], int(lengths.max(initial=0))",
        "edges, longest = [1], int(lengths.max(initial=1))",
    ): "lengths are at least 1, and of none no bin is asked for",
    (
        "trajscore/metrics/_rejection_cost.py",
        "values = [self.at(s) for s in np.linspace(start, stop, 9)]",
        "values = [self.at(s) for s in np.linspace(start, stop, 10)]",
    ): "in how many places a message looks for the roughest panel",
    (
        "trajscore/calibration/_prefix.py",
        "return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=200))",
        "return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=400))",
    ): "the fit of a few scaled features has converged long before",
    (
        "trajscore/monitoring/_thresholds.py",
        "total = (per_run * (y + 2).astype(np.uint64)).sum(dtype=np.uint64)",
        "total = ((per_run / (y + 2).astype(np.uint64))).sum(dtype=np.uint64)",
    ): "a digest of the same data, whose value nothing promises",
    (
        "trajscore/core/ranking.py",
        "later = np.where(flagged > 0, failures / flagged, 0.0)",
        "later = np.where(flagged > 0, failures / flagged, 1.0)",
    ): "a group without weight has no run whose influence it could be",
    (
        "trajscore/core/ranking.py",
        "precision = np.where(flagged > 0, hits / flagged, 0.0)",
        "precision = np.where(flagged > 0, hits / flagged, 1.0)",
    ): "before the first run with weight there is no failure to count",
    (
        "trajscore/metrics/_rejection_cost.py",
        "return np.array([values.sum(), values[: self._n_low].sum()])",
        "return np.array([values.sum(), values[1:self._n_low].sum()])",
    ): "whether to go down by 35 e-folds more is judged by nearly the same part of the lowest one",
    (
        "trajscore/censoring/_practice_shift.py",
        "values = figures(np.ones((1, len(sample))))[0]",
        "values = figures(np.ones((2, len(sample))))[0]",
    ): "each draw is computed alone, and the first one is taken",
    (
        "trajscore/calibration/_affine.py",
        _BFGS.format("1e-9"),
        _BFGS.format("-1e-09"),
    ): "it then stops where the loss falls no further: the same optimum, to nine digits",
    (
        "trajscore/gates/_change.py",
        "return float(freedoms.min())",
        "return float(freedoms.max())",
    ): "without an error no bound takes the degrees of freedom",
    (
        "trajscore/tracer/_similarity.py",
        "out[(first == second) & (out > 0.5)] = 1.0 # the same text, but for rounding",
        "out[(first == second) & ((out >= 0.5))] = 1.0 # the same text, but for rounding",
    ): "a row of length one or zero times itself is 1 or 0, but for rounding",
    (
        "trajscore/tracer/_tail.py",
        "n_runs = max(1, _CHUNK_CELLS // length)",
        "n_runs = min(1, _CHUNK_CELLS // length)",
    ): "how many runs are looked at together",
    (
        "trajscore/report/_cards.py",
        "largest = np.abs(reference.samples).max()",
        "largest = np.abs(reference.samples).min()",
    ): "rounding errors are far below, and differences far above, a billionth of either",
    (
        "trajscore/streaming/batches.py",
        "if sum(map(len, buffer)) < _BATCH_ROWS:",
        "if (sum(map(len, buffer)) <= _BATCH_ROWS):",
    ): "how many rows are joined at once",
    (
        "trajscore/io/_run.py",
        "return SUCCESS if abs(number - SUCCESS) <= _SUCCESS_TOLERANCE else FAILURE",
        "return SUCCESS if (abs(number - SUCCESS) < _SUCCESS_TOLERANCE) else FAILURE",
    ): "no number lies just so far from 1",
    (
        "trajscore/gates/_change.py",
        _MORE.format("shortfall(least) > 0"),
        _MORE.format("(shortfall(least) >= 0)"),
    ): "a root at the lower end is that end",
    (
        "trajscore/io/_json.py",
        "if not is_number or self._ended or end < len(self._buffer) - _LONGEST_LITERAL:",
        "if not is_number or self._ended or (end <= len(self._buffer) - _LONGEST_LITERAL):",
    ): "how much is read after a number",
    (
        "trajscore/io/_messages.py",
        "lists_calls or (is_item and of_items) or (last is not None and _is_open(last[1]))",
        "lists_calls or (is_item and of_items) or (last is not None and _is_open(last[-1]))",
    ): "the second of two is the last",
    (
        "trajscore/inference/mean_intervals.py",
        "_MOST_DRAWS = 4000",
        "_MOST_DRAWS = 4001",
    ): "one draw more than very many",
    (
        "trajscore/report/page/screen.py",
        _OF_ONE_STEP.format("2"),
        _OF_ONE_STEP.format("4"),
    ): "a line ends where the axis ends",
    (
        "trajscore/monitoring/_monitor.py",
        "last = Decision(run_id, 0, 0.0, shown, False, np.inf)",
        "last = Decision(run_id, 0, 1.0, shown, False, np.inf)",
    ): "the first decision that is returned is that after the first step",
    (
        "trajscore/io/_traces.py",
        "sessions.setdefault(key, (path, []))[1].extend(records)",
        "sessions.setdefault(key, (path, []))[-1].extend(records)",
    ): "the second of two is the last",
    (
        "trajscore/report/_acting.py",
        "falls = np.flatnonzero(reached < before)",
        "falls = np.flatnonzero((reached <= before))",
    ): "what is added where a threshold stays the same is taken away again",
    (
        "trajscore/inference/_sequential.py",
        "return -float(sizes[0]), float(sizes[1])",
        "return -float(sizes[0]), float(sizes[-1])",
    ): "the second of two is the last",
    (
        "trajscore/report/_equal_length.py",
        "over = ours[0] - theirs[0], ours[1] - theirs[1]",
        "over = ours[0] - theirs[0], ours[1] - theirs[-1]",
    ): "the second of two is the last",
    (
        "trajscore/metrics/_answer_table.py",
        "losses = np.empty((len(P), 3))",
        "losses = np.empty((len(P), 4))",
    ): "a column that nothing reads",
    (
        "trajscore/metrics/_rejection_cost.py",
        "top = log_max - _WIDTH * 0.5 ** np.arange(1, 30)",
        "top = log_max - _WIDTH * 0.5 ** np.arange(-1, 30)",
    ): "two more edges beside those of panels of the same width",
    (
        "trajscore/core/frame.py",
        "rises[self.first[1:] - 1] = True",
        "rises[self.first[1 + 1:] - 1] = True",
    ): "the same order is then found the long way",
    (
        "trajscore/metrics/_class_confidence.py",
        "best = np.maximum.reduceat(mass, np.flatnonzero(np.diff(in_question, prepend=-1)))",
        "best = np.maximum.reduceat(mass, np.flatnonzero(np.diff(in_question, prepend=1)))",
    ): "the first question has the number 0",
    (
        "trajscore/gates/_change.py",
        "side, z = int(distance < 0), float(norm.ppf(POWER))",
        "side, z = int((distance <= 0)), float(norm.ppf(POWER))",
    ): "no number of runs shows a difference of 0",
    (
        "trajscore/inference/rate_intervals.py",
        "return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)",
        "return np.maximum(center - half, 0.0), np.minimum(center + half, 2.0)",
    ): "Wilson's interval ends at 1, but for rounding",
    (
        "trajscore/calibration/_platt.py",
        "cell = np.floor(columns / _CELL)",
        "cell = np.ceil(columns / _CELL)",
    ): "to which of two narrow cells their common end belongs",
    (
        "trajscore/testing/_estimator_checks.py",
        "data = make(0)",
        "data = make(1)",
    ): "which random runs the checks take",
    (
        "trajscore/metrics/_uncertainty.py",
        "if bound - u_max <= 1e-9 * bound:",
        "if (bound - u_max < 1e-09 * bound):",
    ): "no bound lies just so far above",
    (
        "trajscore/report/_cards.py",
        "return three if math.isclose(three[0], own[0], rel_tol=1e-6, abs_tol=1e-9) else own",
        "return three if math.isclose(three[0], own[0], rel_tol=2e-06, abs_tol=1e-9) else own",
    ): "rounding errors are far below, and differences far above, either",
    (
        "trajscore/report/_intervals.py",
        "is_large = max(len(row.traces.cells) for row in rows) > MANY",
        "is_large = (max((len(row.traces.cells) for row in rows)) >= MANY)",
    ): "in how many processes a table of just so many cells is computed",
    (
        "trajscore/report/_groups.py",
        "block = np.where(is_torn, 1 + np.unique(cluster, return_inverse=True)[1], 0)",
        "block = np.where(is_torn, 2 + np.unique(cluster, return_inverse=True)[1], 0)",
    ): "numbers of blocks only put them in order",
    (
        "trajscore/calibration/fixed_step.py",
        "won = success >= 0.5",
        "won = (success > 0.5)",
    ): "a grade of 0.5 is a tie with itself, so that the AUROC is neither 0 nor 1",
    (
        "trajscore/io/tables.py",
        "if step is None or (step == ROWS and step not in frame.columns):",
        "if step is None or ((step not in frame.columns)):",
    ): "a column that is named is there",
    (
        "trajscore/calibration/look_ahead.py",
        "if short_values is not None and not _agree(values()[1], short_values).all():",
        "if short_values is not None and not _agree(values()[-1], short_values).all():",
    ): "the second of two is the last",
    (
        "trajscore/monitoring/_thresholds.py",
        "needed = int(np.floor(self.max_steps * (1 - self.alpha) / self.alpha + 1e-9)) + 1",
        "needed = int(np.floor(self.max_steps * (1 - self.alpha) / self.alpha + 2e-09)) + 1",
    ): "no number lies just so far below a whole one",
    (
        "trajscore/inference/_labels.py",
        "score.success - weight * worth[0], score.failure - weight * worth[1], weight, weight",
        "score.success - weight * worth[0], score.failure - weight * worth[-1], weight, weight",
    ): "the second of two is the last",
}

OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "minimum": "maximum", "argmin": "argmax", "floor": "ceil", "any": "all"}
NAMES |= {new: old for old, new in NAMES.items()}
SIDES = {"left": "right", "right": "left"}
# tests that read the source
NO_NUMBERS = ("tests/test_layers.py", "tests/test_public.py", "tests/test_language.py")
AT_ONCE, AT_MOST = 40, 600  # tests of a mutant
COMPOUND = (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp)
NO_FORMULA = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)
NO_FIELD = {"annotation", "returns", "decorator_list", "type_params"}
NO_KEYWORD = {"stacklevel", "dtype", "n_jobs", "verbose"}
# looks of a picture
NO_KEYWORD |= {"linewidth", "markersize", "zorder", "fontsize", "figsize", "height"}


@dataclass(frozen=True)
class Mutant:
    """One change: bytes `start` to `end` of a file become `text`; the line before and after."""

    file: str
    line: int
    start: int
    end: int
    text: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n  - {self.before}\n  + {self.after}"


def main() -> int:
    """Choose mutants, run them, print what became of each; 1 if too few were noticed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", default=FORMULAS, metavar="FILE_OR_FOLDER")
    parser.add_argument("-n", type=int, default=100, help="how many mutants")
    parser.add_argument("--quick", action="store_true", help="ten mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the choice to run")
    parser.add_argument("--list", action="store_true", help="show the choice, run nothing")
    parser.add_argument("--limit", type=int, default=900, help="seconds a mutant may take")
    parser.add_argument("--workers", type=int, default=2, choices=(1, 2))
    parser.add_argument("--coverage", type=Path, default=ROOT / ".coverage", metavar="FILE")
    args = parser.parse_args()

    chosen = choose(args.files, 10 if args.quick else args.n, args.seed)
    numbers = args.only or range(len(chosen))
    if args.list:
        for k in numbers:
            print(f"{k:3d} {chosen[k]}")
        return 0
    if not args.coverage.exists():
        parser.error(f"there is no {args.coverage}: make it by the command in this file's head")

    start = time.perf_counter()
    results: dict[int, tuple[str, str]] = {}
    with ProcessPoolExecutor(args.workers, initializer=prepare) as pool:
        options = str(args.coverage.resolve()), args.limit
        jobs = {pool.submit(run, chosen[k], *options): k for k in numbers}
        for job in as_completed(jobs):
            k = jobs[job]
            results[k] = verdict, by = job.result()
            print(f"{k:3d} {verdict:9} {chosen[k]}\n  {by}", flush=True)
    return summary(chosen, results, time.perf_counter() - start)


def summary(chosen: list[Mutant], results: dict[int, tuple[str, str]], seconds: float) -> int:
    """Print the counts and the survivors; 1 if too few mutants were noticed."""
    counts = dict.fromkeys(("killed", "survived", "timed out"), 0)
    for verdict, _ in results.values():
        counts[verdict] += 1
    print("\nSurvivors:" if counts["survived"] else "\nNo mutant survived.")
    for k in sorted(results):
        if results[k][0] == "survived":
            print(f"{k:3d} {chosen[k]}")
    noticed = 1 - counts["survived"] / len(results)
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"{len(results)} mutants: {told}; {noticed:.1%} noticed, in {seconds / 60:.0f} minutes")
    return int(noticed < ENOUGH)


# ------------------------------------------------------------------------------- mutants


def choose(files: Iterable[str], n: int, seed: int) -> list[Mutant]:
    """Return n mutants at random places, one a place; those that change nothing left out."""
    paths = [
        path.relative_to(ROOT).as_posix()
        for file in files
        for path in (sorted((ROOT / file).rglob("*.py")) or [ROOT / file])
    ]
    found = sorted((item for path in paths for item in mutants_of(path, seed)), key=lambda x: x[0])
    mutants = [one for _, one in found]
    return [one for one in mutants if (one.file, one.before, one.after) not in EQUIVALENT][:n]


def mutants_of(file: str, seed: int) -> Iterator[tuple[str, Mutant]]:
    """Yield a mutant for every place that has any, with a key that shuffles the places."""
    source = (ROOT / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: dict[str, int] = {}
    for node in formulas(ast.parse(source)):
        found = variants(node)
        if not found:
            continue
        head, tail = starts[node.lineno - 1], starts[node.end_lineno]
        start, end = head + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        name = f"{seed} {file} {source[head:tail]!r} {start - head} {end - head}"
        seen[name] = seen.get(name, 0) + 1  # the same line may stand in two functions
        key = hashlib.sha256(f"{name} {seen[name]}".encode()).hexdigest()
        new = found[int(key[:8], 16) % len(found)]
        text = f"({ast.unparse(new)})" if isinstance(new, COMPOUND) else ast.unparse(new)
        before = " ".join(source[head:tail].decode().split())
        after = " ".join((source[head:start].decode() + text + source[end:tail].decode()).split())
        yield key, Mutant(file, node.lineno, start, end, text, before, after)


def formulas(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what computes something: no annotations, no error texts, no imports, no __all__."""
    if isinstance(node, NO_FORMULA) or (isinstance(node, ast.keyword) and node.arg in NO_KEYWORD):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "warnings.warn"):
        return
    if is_size(node):
        return
    yield node
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return  # -1 is one number
    if variants_of_axis(node):
        return
    if isinstance(node, ast.Dict):  # of options, too, as an argument in a call
        names = [getattr(key, "value", None) for key in node.keys]
        values = [v for k, v in zip(names, node.values, strict=True) if k not in NO_KEYWORD]
        node = ast.Dict([], values)
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in NO_FIELD:
                yield from formulas(child)


def variants(node: ast.AST) -> list[ast.AST]:
    """Return what may stand in place of a node."""
    if axes := variants_of_axis(node):
        return axes
    match node:
        case ast.UnaryOp(ast.USub(), ast.Constant(value)):
            return other_numbers(-value)
        case ast.Constant(value) if type(value) in (int, float):
            return other_numbers(value)
        case ast.Constant(str() as side) if side in SIDES:
            return [ast.Constant(SIDES[side])]
        case ast.Call(ast.Attribute(_, "where") as func, [test, yes, no], []):
            return [ast.Call(func, [test, no, yes], [])]
        case ast.Attribute(value, name, ctx) if name in NAMES and name not in ("floor", "ceil"):
            return [ast.Attribute(value, NAMES[name], ctx)]
        case ast.Attribute(ast.Name("np") as value, name, ctx) if name in NAMES:
            return [ast.Attribute(value, NAMES[name], ctx)]
        case ast.Name(name, ast.Load()) if name in NAMES:
            return [ast.Name(NAMES[name])]
        case ast.Slice(lower, upper, None):
            one = ast.Constant(1)
            later = ast.BinOp(lower, ast.Add(), one) if lower else one
            earlier = ast.BinOp(upper, ast.Sub(), one) if upper else ast.Constant(-1)
            return [ast.Slice(later, upper), ast.Slice(lower, earlier)]
    return other_operators(node)


def is_size(node: ast.AST) -> bool:
    """Whether a node, such as 1 << 16, says how much is done at once, or how fine a table is."""
    is_shift = isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift)
    return is_shift and all(isinstance(one, ast.Constant) for one in (node.left, node.right))


def variants_of_axis(node: ast.AST) -> list[ast.AST]:
    """Return another axis in place of one: not the last for the second of two, the same."""
    match node:
        case ast.keyword("axis", ast.Constant(int() as axis)):
            return [ast.keyword("axis", ast.Constant(int(axis == 0)))]
        case ast.keyword("axis", ast.UnaryOp(ast.USub(), ast.Constant(1))):
            return [ast.keyword("axis", ast.Constant(0))]
        case ast.Subscript(ast.Attribute(_, "shape") as shape, ast.Constant(int() as axis), ctx):
            return [ast.Subscript(shape, ast.Constant(int(axis == 0)), ctx)]
    return []


def other_numbers(value: float) -> list[ast.AST]:
    """Return other values of a constant: one more, twice, the other sign."""
    return [ast.Constant(other) for other in (value + 1, value * 2, -value) if other != value]


def other_operators(node: ast.AST) -> list[ast.AST]:
    """Return other operators at the place of one, and its operands alone."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS and not is_text(left, right):
            return [ast.BinOp(left, OPERATORS[type(op)](), right), left, right]
        case ast.AugAssign(target, op, value) if type(op) in OPERATORS and not is_text(value):
            return [ast.AugAssign(target, OPERATORS[type(op)](), value)]
        case ast.Compare(left, [op, *ops], rest) if type(op) in OPERATORS:
            return [ast.Compare(left, [OPERATORS[type(op)](), *ops], rest)]
        case ast.BoolOp(op, values):
            return [ast.BoolOp(OPERATORS[type(op)](), values), *values]
        case ast.UnaryOp(ast.Not() | ast.Invert() | ast.USub(), operand):
            return [operand]
    return []


def is_text(*operands: ast.AST) -> bool:
    """Whether an operator joins texts, lists or types rather than numbers."""
    return any(
        isinstance(one, ast.JoinedStr | ast.List | ast.Tuple)
        or (
            isinstance(one, ast.BinOp)
            and type(one.op) is ast.BitOr
            and is_text(one.left, one.right)
        )
        or (isinstance(one, ast.Subscript) and is_text(one.value))
        or (isinstance(one, ast.Constant) and not isinstance(one.value, int | float))
        or (isinstance(one, ast.Name) and (one.id[0].isupper() and len(one.id) > 2))
        or (isinstance(one, ast.Name) and one.id in ("str", "int", "float"))
        for one in operands
    )


# --------------------------------------------------------------------- the tests of a mutant


def tests_of(mutant: Mutant, coverage: str) -> list[str]:
    """Return tests that run the statement of a mutant, or else its file, nearest first."""
    part, name = Path(mutant.file).parts[1], Path(mutant.file).stem.lstrip("_")
    of_lines = tests_by_line(mutant.file, coverage)
    tests = set().union(*(of_lines.get(line, ()) for line in lines_of_statement(mutant)))
    tests = tests or set().union(*of_lines.values())  # what is run where a file is imported
    own = f"tests/{part}/"

    def far(test: str) -> tuple[bool, bool, str]:
        is_near = test.startswith((f"{own}test_{name}.py", mutant.file))
        return not is_near, not test.startswith(own), hashlib.sha256(test.encode()).hexdigest()

    return sorted((test for test in tests if not test.startswith(NO_NUMBERS)), key=far)


@cache
def tests_by_line(file: str, coverage: str) -> dict[int, set[str]]:
    """Return which tests run each line of a file, by a coverage run of the whole suite."""
    source = ROOT / file
    if source.stat().st_mtime > Path(coverage).stat().st_mtime:
        print(f"{file} is newer than {coverage}: its lines may have moved", file=sys.stderr)
    data = CoverageData(coverage)
    data.read()
    if file not in data.measured_files():
        raise RuntimeError(f"{coverage} knows no tests of {file}; make it again")
    lines = data.contexts_by_lineno(file)
    return {line: {one.rpartition("|")[0] for one in lines[line]} - {""} for line in lines}


def lines_of_statement(mutant: Mutant) -> range:
    """Return the lines from the head of the statement that a mutant is in to its own."""
    tree = ast.parse((ROOT / mutant.file).read_bytes())
    heads = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or 0)
    ]
    return range(max(heads), mutant.line + 1)


# ------------------------------------------------------------------------------- runs


def prepare() -> None:
    """Make ready a worker, from which the tests of each mutant are forked."""
    data = os.environ.setdefault("TRAJSCORE_TEST_DATA", str(ROOT.parent / "shared" / "data"))
    assert Path(data).is_absolute(), "TRAJSCORE_TEST_DATA must be an absolute path"
    os.environ |= {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for name in AT_HAND:
        import_module(name)


def run(mutant: Mutant, coverage: str, limit: int) -> tuple[str, str]:
    """Return what became of a mutant, and the test that noticed it."""
    tests = tests_of(mutant, coverage)[:AT_MOST]
    try:
        for part in (tests[:AT_ONCE], tests[AT_ONCE:]):
            if failed := first_failure(part, limit, mutant):
                break
    except TimeoutError:
        return "timed out", ""
    if failed and not is_sound(failed, limit):
        raise RuntimeError(f"this test fails without any mutant, too: {failed}")
    return ("killed", failed) if failed else ("survived", f"{len(tests)} tests")


@cache
def is_sound(test: str, limit: int) -> bool:
    """Whether a test passes where there is no mutant."""
    return not first_failure([test], limit)


def first_failure(tests: list[str], limit: int, mutant: Mutant | None = None) -> str:
    """Run tests, maybe of a mutant, in a process of their own; return the first that fails."""
    if not tests:
        return ""
    with tempfile.TemporaryFile("w+") as told:
        child = os.fork()
        if not child:
            os.setsid()
            signal.alarm(limit)
            for stream in (1, 2):
                os.dup2(told.fileno(), stream)
            try:
                os._exit(run_tests(tests, mutant))
            finally:  # whatever happens, this process does not go on as its parent
                traceback.print_exc()
                os._exit(3)
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):  # workers that its tests have started
            os.killpg(child, signal.SIGKILL)
        told.seek(0)
        lines = told.read().splitlines()
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        raise TimeoutError
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return ""
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    if os.WIFSIGNALED(status) or any("while loading conftest" in line for line in lines):
        return tests[0]  # it cannot even be imported, or ends the interpreter
    if os.WEXITSTATUS(status) not in (1, 2) or not failed:
        raise RuntimeError("\n".join(["pytest did not run:", *lines]))
    return failed[0].split(" ", 1)[1].split(" - ")[0]


def run_tests(tests: list[str], mutant: Mutant | None) -> int:
    """Run tests in this process, which has not imported the package yet; return the exit code."""
    if mutant is not None:
        source, own = (ROOT / mutant.file).read_bytes(), str(ROOT / mutant.file)
        text = source[: mutant.start] + mutant.text.encode() + source[mutant.end :]
        as_written = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
            return compile(text, own, "exec") if loader.path == own else as_written(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]))


if __name__ == "__main__":
    sys.exit(main())
