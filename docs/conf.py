"""Sphinx configuration."""

import trajscore

project = "trajscore"
copyright = "2026, the trajscore developers"
version = release = trajscore.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
autosummary_generate = True
autodoc_typehints = "none"
# made by scikit-learn, and documented there
_ROUTED = ("fit", "score", "predict", "decision_function", "transform", "predict_proba")
autodoc_default_options = {"exclude-members": ", ".join(f"set_{one}_request" for one in _ROUTED)}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["_templates"]
exclude_patterns = ["_build"]
suppress_warnings = ["autosummary.import_cycle"]

html_title = "trajscore"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
