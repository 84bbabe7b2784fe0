"""Label-efficiency curves as charts in files of their own."""

import xml.etree.ElementTree as ET

import pytest

from starshl.evaluation.reports.svg import render_standalone
from starshl.reproduction import LabelEfficiency
from starshl.reproduction.label_efficiency import label_efficiency_chart

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def curve():
    accuracies = {"ours": ((0.7, 0.8), (0.9, 0.92), (0.95, 0.97)), "theirs": ((0.6, 0.7), (0.91, 0.95), (0.9, 0.9))}
    return LabelEfficiency("letters & digits", 500, (1, 5, 20), accuracies)


def test_a_chart_of_its_own_is_svg_with_a_legend_and_both_color_schemes(curve):
    charts = [label_efficiency_chart(curve, "ours"), label_efficiency_chart(curve, "ours")]
    text = render_standalone(charts, {"ours": 1, "theirs": 2}, title="How many <labels>?")
    drawing = ET.fromstring(text)
    texts = [element.text for element in drawing.iter(f"{SVG}text")]
    assert texts[0] == "How many <labels>?"
    assert texts.count("letters & digits") == 2
    assert texts.count("ours") == texts.count("theirs") == 1
    style = drawing.find(f"{SVG}style").text
    assert "prefers-color-scheme: dark" in style
    assert all(f".c{number} {{" in style for number in range(8))
    assert len([e for e in drawing.iter(f"{SVG}path") if e.get("class") == "mark"]) == 2 * 6 + 2


def test_every_panel_lies_within_the_picture(curve):
    drawing = ET.fromstring(render_standalone([label_efficiency_chart(curve)] * 3, {"ours": 0, "theirs": 2}, title=""))
    width, height = float(drawing.get("width")), float(drawing.get("height"))
    for panel in drawing.findall(f"{SVG}svg"):
        x, y, w, h = (float(panel.get(name)) for name in ("x", "y", "width", "height"))
        assert x + w <= width
        assert y + h <= height
