"""The whole report, from real records of small runs."""

import csv
import re
import shutil
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from starshl.evaluation.reports.charts import render_chart
from starshl.evaluation.reports.document import Chart, Document, Section, Series, Table, Text
from starshl.evaluation.reports.html import render_page
from starshl.evaluation.reports.markdown import render_markdown
from starshl.evaluation.reports.statistics import summarize
from starshl.reproduction import RecordFolder, SummaryFolder, write_report
from starshl.reproduction.results import read_results

VOID = {"meta", "img", "br"}


@pytest.fixture(scope="module")
def written(records, tmp_path_factory):
    return write_report(records, tmp_path_factory.mktemp("report"))


class Outline(HTMLParser):
    """Collects addresses, headings' text and whether every element is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.captions, self.tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "data", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h2", "p", "summary", "figcaption"):
            self.captions.append(data)


@pytest.fixture(scope="module")
def outline(written):
    parser = Outline()
    parser.feed(written.page.read_text())
    assert parser.open == []
    return parser


def test_the_page_needs_no_network(written, outline):
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in outline.addresses)
    text = written.page.read_text()
    assert not re.search(r"https?://|@import|url\(", text)
    assert "link" not in outline.tags


def test_links_of_the_page_lead_to_sections(written, outline):
    anchors = set(re.findall(r'<section id="([^"]+)"', written.page.read_text()))
    assert {address[1:] for address in outline.addresses if address.startswith("#")} == anchors


def test_the_page_has_every_section_table_and_chart(outline):
    told = " | ".join(outline.captions)
    for words in (
        *("What was run", "The claims of the paper", "digits: retrieval (reduced)", "pictures retrieved at"),
        *("few labels", "no labels", "Settings, seeds, versions", "Failed runs", "Seeds by run", "Versions"),
        *(
            "P@10 over the length of the codes",
            "P@s at",
            "Precision and recall by radius",
            "Paired differences in P@10",
        ),
        *("accuracy on the queries", "Codes of 8 bits without labels"),
    ):
        assert words in told, words
    assert "svg" in outline.tags
    assert "img" in outline.tags


def test_every_table_of_the_page_is_in_the_markdown_twin(written):
    text = written.markdown.read_text()
    for words in ("Claims.", "P@10, mean and deviation over runs", "Paired differences", "Failed runs", "Machines"):
        assert words in text, words
    assert "PARTIAL" in text


def test_the_same_records_give_the_same_bytes(records, written, tmp_path):
    again = write_report(records, tmp_path)
    for first, second in ((written.page, again.page), (written.markdown, again.markdown)):
        assert first.read_bytes() == second.read_bytes()


def test_figures_of_the_page_are_those_of_the_records(records, written):
    found = next(p for p in written.results.protocols if p.task == "retrieval")
    expected = summarize(found.values("lsh", 15, "P@10").values())
    cell = f"{expected.mean:.3f} ± {expected.deviation:.3f}"
    assert re.search(
        rf'LSH</th><td class="number">[^<]*</td><td class="number">{cell}|{cell}', written.page.read_text()
    )
    rows = list(csv.DictReader((written.page.parent / "summary.csv").open()))
    [row] = [
        r for r in rows if (r["method"], r["bits"], r["metric"], r["protocol"]) == ("lsh", "15", "P@10", found.name)
    ]
    assert float(row["mean"]) == pytest.approx(expected.mean)


def test_csv_tables_hold_every_run(records, written):
    rows = list(csv.DictReader((written.page.parent / "measurements.csv").open()))
    runs = {(r["protocol"], r["method"], r["bits"], r["run"]) for r in rows}
    assert len(runs) == sum(len(found.runs) for found in written.results.protocols)
    assert list(csv.DictReader((written.page.parent / "curves.csv").open()))


def test_failed_runs_are_told_and_not_counted_as_results(written):
    assert {failure.method for failure in written.results.failures} == {"1-agh"}
    assert "n_bits is 400" in written.page.read_text()


def test_results_are_read_once_and_told(records):
    told = []
    folder = RecordFolder(records)
    summaries = SummaryFolder(records / "summaries")
    read_results(folder, summaries, report=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(folder), len(folder))


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no run records"):
        write_report(tmp_path, tmp_path / "report")
    with pytest.raises(ValueError, match="There is no folder"):
        write_report(tmp_path / "absent", tmp_path / "report")


def test_text_from_records_cannot_become_markup():
    nasty = "<script>alert(1)</script> | *x*"
    table = Table("t", ("a", "b"), ((nasty, nasty),))
    document = Document("d", "s", [Section(nasty, "x", [Text((nasty,)), table])])
    page = render_page(document)
    assert "<script>alert" not in page
    assert "&lt;script>" in render_markdown(document)
    assert "\\| \\*x\\*" in render_markdown(document)


def test_a_chart_is_well_formed_and_keeps_its_lines_within_the_frame():
    lines = (Series("a & b", (5, 15, 45), (0.2, 0.5, 0.9), (0.1, None, 0.2)), Series("c", (5,), (0.3,)))
    chart = Chart("t", "bits", "P@10", lines, (5, 15, 45))
    figure = ET.fromstring(render_chart(chart, {"a & b": 0, "c": 9}))
    marks = [path for path in figure.iter("path") if "mark" in path.get("class")]
    assert marks[0].get("data-tip") == "a & b: 0.200 ± 0.100 at bits 5"
    places = [tuple(map(float, re.findall(r"[\d.]+", mark.get("transform")))) for mark in marks]
    assert all(0 < x < 480 and 0 < y < 310 for x, y in places)
    assert places[0][1] > places[1][1] > places[2][1]


def test_lines_of_a_chart_differ_in_more_than_color():
    series = tuple(Series(f"m{k}", (0, 1), (0.1 * k, 0.2)) for k in range(13))
    figure = ET.fromstring(render_chart(Chart("t", "x", "y", series), {f"m{k}": k for k in range(13)}))
    looks = set()
    for group in figure.iter("g"):
        line = next(path for path in group.iter("path") if path.get("class") == "line")
        mark = next(path for path in group.iter("path") if path.get("class") == "mark")
        looks.add((line.get("stroke-dasharray"), mark.get("d")))
    assert len(looks) == 13


def test_a_report_from_summaries_alone_has_the_same_numbers_and_says_why_pictures_are_missing(
    records, written, tmp_path
):
    summaries = shutil.copytree(records / "summaries", tmp_path / "summaries")
    alone = write_report(tmp_path / "absent", tmp_path / "report", summaries=summaries)
    for first, second in zip(written.tables, alone.tables, strict=True):
        assert first.read_bytes() == second.read_bytes()
    text = alone.markdown.read_text()
    assert "The pictures are not shown: they need the codes" in text
    assert "digits: retrieval (reduced)" in text
    assert not (tmp_path / "absent").exists()


def test_tables_say_how_many_labels_each_method_used(written):
    text = written.markdown.read_text()
    [row] = re.findall(r"^\| HC-SDH, all rows \| .*$", text.split("P@10, mean and deviation")[1].split("\n\n")[1], re.M)
    assert row.split(" | ")[1] == "300"
    [row] = re.findall(r"^\| LSH \| .*$", text.split("P@10, mean and deviation")[1].split("\n\n")[1], re.M)
    assert row.split(" | ")[1] == "0"


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("[click](x)", " [click](x)"),
        ("![x](data:image/png;base64,AA)", "!["),
        ("see https://example.org", "https://"),
        ("see www.example.org", "www.e"),
        ("mail me@example.org", "me@example"),
        ("`code`", " `"),
        ("<a href=x>", "<a"),
        ("one | two", "e | t"),
        ("_slanted_", " _s"),
        ("~~gone~~", "~~"),
    ],
)
def test_markdown_keeps_text_from_becoming_links_or_markup(text, markup):
    document = Document(text, text, [Section(text, "x", [Text((text,)), Table(text, (text,), ((text,),))])])
    rendered = render_markdown(document).replace("`starshl report`", "")
    assert markup not in f" {rendered}"


def test_a_report_tells_of_nothing_that_was_not_run(written):
    text = written.markdown.read_text()
    # Rows of other data sets, in captions of charts and tables.
    assert not re.findall(r"(?:MNIST|USPS|Pendigits|AG News|Letter), \d", text)
    assert "Poisson learning" not in text
