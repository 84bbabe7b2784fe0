"""The results on one page, with appendix pages and drawings."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from starshl.evaluation.reports.document import Table
from starshl.reproduction import RecordFolder, SummaryFolder, check_claims
from starshl.reproduction.figures import FIGURES
from starshl.reproduction.overview import answer_section, coverage_section
from starshl.reproduction.pages import OTHER_PAGES, write_pages
from starshl.reproduction.paper_figures import paper_figure_sections
from starshl.reproduction.pictures import typical_query
from starshl.reproduction.results import read_results
from starshl.reproduction.studies import beyond_section, describe_few_labels, describe_no_labels

METHODS = {"starshl-paper": 0.9, "ksh": 0.8, "ksh-all": 0.85, "bre": 0.5, "lsh": 0.4, "starridge": 0.95}


def figures(bits=(5, 15, 45), n_runs=3):
    spread = [0.001 * run for run in range(n_runs)]
    return {
        (method, n_bits): [{"P@10": mean + own, "P@50": mean, "PR area": mean} for own in spread]
        for method, mean in METHODS.items()
        for n_bits in bits
    }


@pytest.fixture(scope="module")
def results(records):
    return read_results(None, SummaryFolder(records / "summaries"))


def test_the_same_results_give_the_same_bytes_and_stale_pages_go(results, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "gone.md").write_text("old")
    write_pages(results, tmp_path)
    first = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))}
    assert tmp_path / "results" / "gone.md" not in first
    write_pages(results, tmp_path)
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))} == first


def test_every_link_and_picture_of_the_pages_exists(results, tmp_path):
    write_pages(results, tmp_path)
    pages = list(tmp_path.rglob("*.md"))
    assert len(pages) > 3
    for page in pages:
        for address in re.findall(r"\]\(([^)]+)\)", page.read_text()):
            assert (page.parent / address).is_file(), address


@pytest.mark.parametrize("page", ["labels", "unsupervised"])
def test_the_pages_of_the_other_studies_begin_with_the_data_sets_that_are_missing(page, results, tmp_path):
    write_pages(results, tmp_path)
    first = (tmp_path / "results" / f"{page}.md").read_text().split("\n## ")[1]
    assert first.startswith("Which data sets")
    assert all(name in first for name in ("CIFAR-10", "PASCAL07", "Letter", "Vowel"))


def test_drawings_have_colors_for_light_and_dark_pages(results, tmp_path):
    write_pages(results, tmp_path)
    drawings = list((tmp_path / "results").glob("*.svg"))
    assert drawings
    assert all("prefers-color-scheme: dark" in drawing.read_text() for drawing in drawings)


def test_the_answer_names_the_winner_and_the_interval(made):
    results = made("paper-usps", figures())
    text, *blocks = answer_section(results, check_claims(results)).blocks
    assert text.lines[1].startswith("By P@10 at 45 bits, *SHL with the paper's settings is clearly ahead of all other ")
    assert text.lines[1].endswith(" methods of the paper on usps.")
    assert "StarRidge is first by P@10 on 1 of 1 data set, clearly ahead of the second on usps. By PR " in text.lines[2]
    paper, everyone = (block for block in blocks if isinstance(block, Table))
    assert paper.rows == (("usps", "0.901", "KSH, all labels 0.851", "+0.050 (+0.050 to +0.050)"),)
    second = "*SHL, paper settings 0.901"
    assert everyone.rows == (("usps", "StarRidge 0.951", second, "+0.050 (+0.050 to +0.050)"),)


def test_the_answer_says_which_winner_only_ties_with_the_second(made):
    values = figures()
    values["hc-sdh", 45] = [{"P@10": value, "PR area": 0.99} for value in (0.94, 0.95, 0.96)]
    results = made("paper-usps", values)
    told = answer_section(results, check_claims(results)).blocks[0].lines[2]
    assert "StarRidge is first by P@10 on 1 of 1 data set, clearly ahead of the second on none." in told
    assert "By PR area the first is HC-SDH, all rows on 1." in told


def test_the_answer_says_where_a_lead_is_that_of_the_largest_class(made):
    values = figures()
    for (method, _), runs in values.items():
        runs[:] = [own | {"P@10, mean of classes": 0.1 if method == "starshl-paper" else 0.2} for own in runs]
    results = made("paper-pascal07", values)
    (protocol,) = results.protocols
    protocol.random_precision, protocol.majority_accuracy = {0: 0.157}, {0: 0.32}
    told = answer_section(results, check_claims(results)).blocks[0].lines[2]
    assert told.startswith("The lead on pascal07 comes from its largest class, 32% of the queries: if every class ")
    assert told.endswith("it is -0.100 (-0.100 to -0.100).")


def test_the_answer_says_where_starshl_is_not_ahead(made):
    values = figures()
    values["ksh", 45] = [{"P@10": 0.99}] * 3
    results = made("paper-usps", values)
    text = answer_section(results, check_claims(results)).blocks[0]
    assert text.lines[1].endswith("clearly ahead of all other methods of the paper on no data set; behind on usps.")


def test_the_answer_claims_no_lead_that_a_single_run_shows(made):
    results = made("paper-usps", figures(n_runs=1))
    text = answer_section(results, check_claims(results)).blocks[0]
    assert text.lines[1].endswith("on no data set; not clear on usps.")


def test_a_column_with_fewer_runs_than_the_caption_says_tells_how_many(made):
    values = figures() | {("ksh", 15): [{"P@10": 0.8, "P@50": 0.8, "PR area": 0.8}]}
    values = {(method, n_bits): runs[:1] if n_bits == 15 else runs for (method, n_bits), runs in values.items()}
    results = made("paper-usps", values)
    (table,) = (
        b for s in paper_figure_sections(results, check_claims(results)) for b in s.blocks if isinstance(b, Table)
    )
    row = next(row for row in table.rows if row[0] == "KSH")
    column = table.columns.index("P@10, 15 bits")
    assert "over 3 runs" in table.caption
    assert row[column].endswith("(1 run)")


def test_each_printed_figure_has_what_the_paper_says_and_a_table(made):
    results = made("paper-usps", figures())
    (section,) = paper_figure_sections(results, check_claims(results))
    text, table = section.blocks
    assert section.title.startswith("Figure 2: ")
    assert text.lines[0].startswith("The paper says: ")
    assert "DOES NOT HOLD" not in text.lines[1]
    assert [row[0] for row in table.rows][:2] == ["*SHL, paper settings", "KSH"]


@pytest.mark.parametrize(("chance", "unequal"), [(0.101, False), (0.157, True)])
def test_unequal_classes_get_yardsticks_and_figures_in_which_classes_count_the_same(made, chance, unequal):
    results = made("paper-pascal07", figures(n_runs=1))
    (protocol,) = results.protocols
    protocol.random_precision, protocol.majority_accuracy = {0: chance}, {0: 0.3}
    assert protocol.unequal is unequal
    (section,) = paper_figure_sections(results, [])
    first, *others = (block for block in section.blocks if isinstance(block, Table))
    rows = {row[0]: row[1:] for row in first.rows}
    assert rows.get("random order") == (("0.157",) * 4 + ("-",) * 2 if unequal else None)
    assert rows.get("largest class") == (("0.300",) * 4 + ("-",) * 2 if unequal else None)
    assert [table.columns[-1] for table in others] == ["balanced accuracy"] * unequal


@pytest.mark.parametrize(("date", "is_old"), [("2026-11-17", True), ("2026-11-18", False)])
def test_a_figure_says_whether_star_ridge_was_measured_before_its_codes_changed(made, date, is_old):
    results = made("paper-usps", figures())
    for protocol in results.protocols:
        protocol.runs = [replace(run, date=date) for run in protocol.runs]
    [section] = paper_figure_sections(results, [])
    assert any("StarRidge was measured here before" in line for line in section.blocks[0].lines) is is_old


def test_few_labels_and_none_have_a_sentence_and_a_table_each(made):
    few = {("starridge", 32): [0.9, 0.92, 0.91], ("svc", None): [0.7, 0.8, 0.75], ("starshl-graph", 32): [0.95] * 3}
    results = made("labels-digits-5", {place: [{"accuracy": a} for a in found] for place, found in few.items()})
    none = {"starshl-clusters": (0.6, 0.5), "1-agh": (0.9, 0.4), "starshl-graph-clusters": (0.8, 0.7)}
    values = {(method, 32): [{"P@10": near, "mAP": ranked}] for method, (near, ranked) in none.items()}
    results.protocols += made("unsupervised-digits", values).protocols
    (told,) = describe_few_labels(results)
    assert told.startswith("With 5 labels per class StarRidge labels 0.910 to 0.910 of the queries right, clearly more")
    (told,) = describe_no_labels(results)
    assert told == (
        "Without labels, the first by P@10 is 1-AGH on 1 of 1 data set; *SHL as in the paper is behind by 0.30 to 0.30."
    )
    few_table, none_table = (block for block in beyond_section(results).blocks if isinstance(block, Table))
    (row,) = few_table.rows
    assert (*row[:3], row[4]) == ("digits", "0.910", "0.750", "*SHL, graph kernel 0.950")
    assert none_table.rows == (("digits", "1-AGH 0.900", "*SHL, clusters of the graph 0.700", "0.600", "0.500"),)


def test_the_extent_counts_fits_done_and_planned_of_every_figure(made):
    section = coverage_section(made("paper-usps", figures(bits=(5, 15), n_runs=1)), [])
    assert "usps 12 of 550" in section.blocks[0].lines[0]
    assert "mnist 0 of 550" in section.blocks[0].lines[0]
    assert section.blocks[0].lines[0].endswith("The command starshl reproduce does those that are missing.")


def test_a_typical_query_is_nearest_to_the_means_of_all_methods():
    hits = np.array([[0, 7, 15, 8], [0, 2, 15, 9]])
    assert typical_query(hits) == 3


def test_the_committed_pages_are_those_of_the_committed_summaries(tmp_path):
    root = Path(__file__).parents[2]
    summaries = SummaryFolder(root / "results" / "summaries")
    results = read_results(None, summaries)
    # Retrieved pictures are drawn from records, which are not committed; the drawing is.
    (tmp_path / "results").mkdir()
    shutil.copy(root / "docs" / "results" / "retrieved-pictures.svg", tmp_path / "results")
    for _, linked in OTHER_PAGES:
        shutil.copy(root / "docs" / linked, tmp_path)
    write_pages(results, tmp_path)
    for page in ("results.md", "results/who-wins.svg", "results/claims.md"):
        assert (tmp_path / page).read_bytes() == (root / "docs" / page).read_bytes(), (
            f"docs/{page} is out of date; run: starshl report --pages docs"
        )


def test_retrieved_pictures_are_drawn_from_records_and_stay_when_there_are_none(records, tmp_path, monkeypatch):
    folder = RecordFolder(records)
    results = read_results(folder, SummaryFolder(records / "summaries"))
    with_records = replace(FIGURES["digits"].quick(), name="pictures", number=6, bits=(15,))
    monkeypatch.setitem(FIGURES, "pictures", with_records)
    page = write_pages(results, tmp_path, folder)
    drawing = tmp_path / "results" / "retrieved-pictures.svg"
    drawn = drawing.read_text()
    assert drawn.count('class="query"') == 6  # the hashers of the page that have records
    assert "](results/retrieved-pictures.svg)" in page.read_text()
    write_pages(results, tmp_path)
    assert drawing.read_text() == drawn
    assert "](results/retrieved-pictures.svg)" in page.read_text()
