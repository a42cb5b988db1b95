"""Sphinx configuration. What is drawn or run at the build stands in pictures.py and samples.py."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copy

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import api_page  # noqa: E402
import board_page  # noqa: E402
import confidences_page  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402
import pictures  # noqa: E402
import samples  # noqa: E402
import stored_output  # noqa: E402
import truth_page  # noqa: E402

import trajscore  # noqa: E402
from trajscore.plotting._display import SERIES  # noqa: E402

project = "trajscore"
copyright = "2026, the trajscore developers"
version = release = trajscore.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "myst_parser",  # the changelog is Markdown
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
autosummary_generate = True
autodoc_typehints = "none"
# made by scikit-learn, and documented there
_ROUTED = ("fit", "score", "predict", "decision_function", "transform", "predict_proba")
autodoc_default_options = {"exclude-members": ", ".join(f"set_{one}_request" for one in _ROUTED)}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery", "stored", "generated/*.inc"]
suppress_warnings = ["autosummary.import_cycle", "config.cache"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_title = "trajscore"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static", "generated/static"]
html_extra_path = ["generated/extra"]
html_css_files = ["trajscore.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
}

# now, because autosummary makes pages of the names in files that are there before the build
api_page.write_api(HERE / "api" / "index.rst")

# ------------------------------------------------------------------ formulas without a network

_STATIC = HERE / "generated" / "static"
for folder in (_STATIC, HERE / "generated" / "extra"):
    folder.mkdir(parents=True, exist_ok=True)
# a single file that draws its letters itself, so that no fonts are needed
_MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
copy(_MATHJAX / "tex-svg.js", _STATIC / "mathjax.js")
mathjax_path = "mathjax.js"
mathjax3_config = {"options": {"enableMenu": False}}

# ------------------------------------------------------------------ gallery

DATA = Path(os.environ.get("TRAJSCORE_TEST_DATA", HERE.parents[1] / "shared" / "data"))
os.environ["TRAJSCORE_TEST_DATA"] = str(DATA)
NOT_RUN = samples.without_data(HERE / "gallery", DATA)


def use_our_colors(gallery_conf, fname):
    """Let plain matplotlib in examples have the palette of the displays."""
    plt.rcParams["axes.prop_cycle"] = plt.cycler(color=SERIES)


sphinx_gallery_conf = {
    "reset_modules": ("matplotlib", use_our_colors),
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "subsection_order": [
        f"gallery/{part}" for part in ("judge", "mend", "sure", "act", "data", "build")
    ],
    "within_subsection_order": "FileNameSortKey",
    # examples whose data is neither here nor to be fetched show stored output
    "filename_pattern": "/plot_",
    "ignore_pattern": r"__init__\.py",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("trajscore",),
    "reference_url": {"trajscore": None},
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 0,
    "write_computation_times": False,  # a page that would load scripts from elsewhere
    "image_srcset": ["2x"],
}
if NOT_RUN:
    alternatives = "|".join(one.removesuffix(".py") for one in NOT_RUN)
    sphinx_gallery_conf["filename_pattern"] = rf"/plot_(?!(?:{alternatives})\.py)"


def setup(app):
    """Draw the pictures and write the sample reports before pages are read."""
    app.connect("builder-inited", lambda app: pictures.draw_all(HERE / "generated"))
    app.connect("builder-inited", lambda app: samples.write_reports(HERE / "generated", DATA))
    app.connect("builder-inited", lambda app: samples.write_glossary(HERE / "generated"))
    app.connect("builder-inited", lambda app: board_page.write_board(HERE / "generated"))
    app.connect(
        "builder-inited", lambda app: confidences_page.write_confidences(HERE / "generated")
    )
    app.connect("builder-inited", lambda app: truth_page.write_truth(HERE / "generated"))
    # before the gallery makes thumbnails of its pictures
    app.connect("builder-inited", lambda app: stored_output.place_pictures(NOT_RUN), priority=100)
    app.connect(
        "source-read",
        lambda app, name, source: stored_output.insert_outputs(NOT_RUN, name, source),
    )
