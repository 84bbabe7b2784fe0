"""What was retrieved for a query: pictures and lists, right, wrong or unknown."""

import re

import numpy as np

from starshl.evaluation.reports.document import Document, Drawing, Lists, Pictures, Section
from starshl.evaluation.reports.html import render_page
from starshl.evaluation.reports.markdown import render_markdown
from starshl.evaluation.reports.svg import render_strips

ROWS = (("one", ("x & y", "z", "w"), (True, False, None)), ("two", ("v",), (None,)))
LISTS = Lists("Row 3, class a", "what <b>?", ROWS)
PIXELS = np.zeros((2, 2), np.uint8)
PICTURES = Pictures("Row 4", PIXELS, (("one", (PIXELS, PIXELS, PIXELS), (True, False, None)),))


def document(*blocks):
    return Document("title", "subtitle", [Section("heading", "anchor", list(blocks))])


def test_lists_show_the_query_and_mark_each_answer():
    page = render_page(document(LISTS))
    assert "<h3>what &lt;b&gt;?</h3>" in page
    assert "<h4>one <small>1 of 2</small></h4>" in page
    assert '<li class="right" title="the same class">x &amp; y</li>' in page
    assert '<li class="wrong" title="another class">z</li>' in page
    assert '<li class="unknown" title="class unknown">w</li>' in page
    assert "<h4>two <small></small></h4>" in page  # nothing is known, so nothing is counted


def test_pictures_have_a_third_frame_for_what_is_not_known():
    page = render_page(document(PICTURES))
    assert [page.count(f'<img class="{kind}"') for kind in ("query", "right", "wrong", "unknown")] == [1, 1, 1, 1]
    assert "one<small>1 of 2</small>" in page


def test_lists_are_a_table_in_markdown():
    text = render_markdown(document(LISTS, PICTURES))
    assert "| one | 1 of 2 | x &amp; y; z; w |" in text
    assert "| one | 1 of 2 |\n" in text


def test_strips_store_each_picture_once_and_mark_wrong_ones():
    other = np.full((2, 2), 200, np.uint8)
    rows = (("one", (PIXELS, other), (True, False)), ("two & three", (other, other), (True, None)))
    drawing = render_strips(Pictures("caption", PIXELS, rows), title="A <query>")
    assert drawing.count("<image ") == 2
    assert re.findall(r'<use class="(\w+)" href="#(\w+)"', drawing) == [
        *(("query", "i0"), ("right", "i0"), ("wrong", "i1")),
        *(("query", "i0"), ("right", "i1"), ("right", "i1")),
    ]
    assert "two &amp; three" in drawing
    assert "A &lt;query&gt;" in drawing
    assert ">1 of 2<" in drawing
    assert "prefers-color-scheme: dark" in drawing


def test_a_drawing_is_a_picture_on_every_kind_of_page():
    drawn = document(Drawing("what [it] shows", "results/it.svg"))
    assert r"![what \[it\] shows](results/it.svg)" in render_markdown(drawn)
    assert '<img alt="what [it] shows" src="results/it.svg">' in render_page(drawn)
