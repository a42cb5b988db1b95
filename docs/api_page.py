"""The page of the API: what each package names in its ``__all__``, once, by its shortest name."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import trajscore

TOP = "trajscore"
TITLES = {
    TOP: "Runs, and saving",
    "metrics": "Metrics and scorers",
    "calibration": "Calibration",
    "monitoring": "Monitoring",
    "localization": "Which step failed",
    "censoring": "Runs that were cut off",
    "report": "Reports",
    "inference": "Intervals and comparisons",
    "gates": "Gates",
    "integrations": "Where agents run",
    "plotting": "Plots",
    "io": "Logs",
    "judging": "A model as a judge",
    "tracer": "From logs to confidences and risk",
    "streaming": "More runs than memory holds",
    "datasets": "Data",
    "testing": "Testing",
}
"""Packages in the order of the page; any others follow."""
_TEMPLATES = {"TrajectoryArray": "container", "Display": "display"}  # by the end of a name


def api_page():
    """Return the page."""
    names = (path.parent.name for path in Path(trajscore.__file__).parent.glob("*/__init__.py"))
    packages = {**TITLES, **{name: name for name in sorted(names) if name not in TITLES}}
    named = {package: _named(package) for package in packages}
    elsewhere = {name for package in packages if package != TOP for name in named[package]}
    named[TOP] = [name for name in named[TOP] if name not in elsewhere]
    sections = [_section(title, named[of]) for of, title in packages.items() if named[of]]
    return "\n".join(["API reference\n=============\n\n.. currentmodule:: trajscore\n", *sections])


def write_api(path):
    """Write the page, unless it is there: Sphinx reads again what is newer."""
    text = api_page()
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _named(package):
    """What a package makes public, as seen from the top; what the top has, too, comes first."""
    module = trajscore if package == TOP else import_module(f"{TOP}.{package}")
    things = {name: getattr(module, name) for name in getattr(module, "__all__", [])}
    names = [name for name, thing in things.items() if not isinstance(thing, ModuleType)]
    short = [name for name in names if getattr(trajscore, name, None) is things[name]]
    return [*short, *(f"{package}.{name}" for name in names if name not in short)]


def _section(title, names):
    """A heading, and a table for each template."""
    by_template = {}
    for name in names:
        template = next((of for end, of in _TEMPLATES.items() if name.endswith(end)), None)
        by_template.setdefault(template, []).append(name)
    lines = [title, "-" * len(title), ""]
    for template, its_names in by_template.items():
        lines += [".. autosummary::", "   :toctree: generated"]
        lines += [f"   :template: autosummary/{template}.rst"] if template else []
        lines += ["", *(f"   {name}" for name in its_names), ""]
    return "\n".join(lines)
