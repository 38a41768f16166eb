"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import figures  # noqa: E402
import reports  # noqa: E402
import settings_tables  # noqa: E402

import gradsieve  # noqa: E402

project = "gradsieve"
author = "The gradsieve developers"
copyright = author
version = release = gradsieve.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
default_role = "code"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # the notebook's outputs are what its code does
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
# Signatures name these as the code does, not as the pages-long unions that they stand for.
autodoc_type_aliases = {
    name: name
    for name in (
        "Array",
        "ArrayLike",
        "DTypeLike",
        "Output",
        "Engine",
        "Estimator",
        "Measure",
        "Convention",
        "PolicyName",
        "OnSkip",
        "Problem",
    )
}
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"gradsieve {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
GALLERY = HERE / "_build" / "gallery"  # its reports lie beside the pages, as they are
GALLERY.mkdir(parents=True, exist_ok=True)
html_extra_path = [str(GALLERY)]


def escape_bars(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """|dS| is a size, not one of reStructuredText's substitutions."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def plain_aliases(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """An alias inside another type is a wrapped name; unwrap it."""

    def unwrapped(text: str | None) -> str | None:
        return text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)

    return unwrapped(signature), unwrapped(returns)


def setup(app: Sphinx) -> None:
    made = HERE / "_build" / "figures"
    app.connect("builder-inited", lambda app: figures.draw(made))
    app.connect("builder-inited", lambda app: settings_tables.write(made))
    app.connect("builder-inited", lambda app: reports.write(GALLERY))
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
    app.connect("autodoc-process-signature", plain_aliases)
