"""The documentation site: Markdown pages, and the Python reference from docstrings. `make docs` builds it."""

from __future__ import annotations

from typing import Any

import eplb

project = "eplb"
release = version = eplb.__version__
copyright = "the eplb authors"  # noqa: A001

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
html_theme = "furo"
html_title = f"eplb {release}"
html_copy_source = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings tell shapes, which types cannot
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False

myst_heading_anchors = 3
# Links to files of the repository that are no page of the site; scripts/check-docs sees that they exist.
suppress_warnings = ["myst.xref_missing"]


def give_sources_a_heading(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """The line `Source: ...` behind the sections of a docstring; without a heading it would belong to the last of them."""
    for number, line in enumerate(lines):
        if line.startswith("Source: "):
            lines[number:number] = ["Notes", "-----"]
            return


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", give_sources_a_heading, priority=100)  # before napoleon's 500
