"""Commands on pages: in code type, in HTML and in Markdown."""

from starshl.evaluation.reports.document import Commands, Document, Section
from starshl.evaluation.reports.html import render_page
from starshl.evaluation.reports.markdown import render_markdown

DOCUMENT = Document("d", "s", [Section("t", "x", [Commands((("starshl fit <table> -o *.star", "learns * codes"),))])])


def test_commands_are_in_code_type_on_a_page():
    assert "<code>starshl fit &lt;table&gt; -o *.star</code><br>learns * codes" in render_page(DOCUMENT)


def test_commands_are_in_code_type_in_markdown():
    assert "- `starshl fit <table> -o *.star`: learns \\* codes" in render_markdown(DOCUMENT)
