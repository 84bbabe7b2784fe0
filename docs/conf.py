"""The docs site: `make docs` builds it from the pages in this folder and from docstrings."""

import re
import sys
from importlib.util import find_spec
from unittest.mock import MagicMock

from docutils import nodes
from docutils.utils.math import latex2mathml

from starshl import __version__

# Adapters are described without their libraries, which are large.
for modules in (["faiss"], ["psycopg", "psycopg.sql"], ["pymilvus"]):
    if find_spec(modules[0]) is None:
        sys.modules.update(dict.fromkeys(modules, MagicMock()))

project = "starshl"
author = "The starshl developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
]
exclude_patterns = ["conf.py"]
root_doc = "index"
smartquotes_action = "q"  # quotes only: --option must keep both of its dashes
nitpicky = False  # docstrings also name what the reference leaves out

myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what a parameter may be
autodoc_class_signature = "mixed"
autodoc_inherit_docstrings = False  # scikit-learn documents the methods of its base classes
numpydoc_show_class_members = False

html_theme = "furo"
html_title = "starshl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"  # browsers draw it; nothing is loaded from elsewhere
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)[^)]*\)")


def _unlink_files_outside(app, page, content):
    """Keep the words of links that lead to files outside of docs/, which the site does not have."""
    if "/" not in page:
        content[0] = _OUTSIDE.sub(r"\1", content[0])


# Docstrings are written for people who read them in an editor: names such as codewords_, and |a - b|, stand there as
# they are, but mean something in reStructuredText. What is between backticks stays.
_LITERAL = re.compile(r"(``.*?``|`[^`]*`)")
_MEANINGFUL = re.compile(r"\*(?=SHL)|(?<=\w)_(?!\w)|\|")


def _escape(app, what, name, object_, options, lines):
    formula = None  # the indentation of the formula that a line may belong to
    for number, line in enumerate(lines):
        indentation = len(line) - len(line.lstrip())
        if line.strip() and formula is not None and indentation <= formula:
            formula = None
        if line.lstrip().startswith(".. math::"):
            formula = indentation
        if formula is None and not line.lstrip().startswith((">>>", "...", ":", ".. ")):
            parts = _LITERAL.split(line)
            parts[::2] = [_MEANINGFUL.sub(r"\\\g<0>", part) for part in parts[::2]]
            lines[number] = "".join(parts)


def _is_scikit_learns(app, what, name, object_, skip, options):
    """Leave out what every estimator inherits; None lets autodoc decide about the rest."""
    home = getattr(object_, "__module__", None) or ""
    return True if home.startswith("sklearn.") or name.endswith("_request") else None


# The converter to MathML reads most of LaTeX, but not sizes of brackets, fractions without braces, and dots.
_UNKNOWN = {
    r"\\[bB]ig[lr]?(?![a-zA-Z])": "",
    r"\\t?frac(\d)(\d)": r"\\frac{\1}{\2}",
    r"\\dots": r"\\ldots",
}


def _write_math(translator, node):
    block = node.tagname == "math_block"
    formula = node.astext()
    for pattern, replacement in _UNKNOWN.items():
        formula = re.sub(pattern, replacement, formula)
    mathml = latex2mathml.tex2mathml(formula, as_block=block)
    translator.body.append(f"<div>{mathml}</div>" if block else mathml)
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_write_math, None), (_write_math, None))
    app.connect("source-read", _unlink_files_outside)
    app.connect("autodoc-process-docstring", _escape, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", _is_scikit_learns)
