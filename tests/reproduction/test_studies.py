"""The sections beside retrieval, on figures made by hand."""

from dataclasses import replace

import pytest

from starshl.evaluation.reports.document import Chart, Table, Text, table_of_means
from starshl.reproduction.studies import labels_section, unsupervised_section
from starshl.reproduction.transduction import transductive_section

INDUCTIVE, TRANSDUCTIVE = "starshl-paper", "starshl-paper-transductive"


def blocks_of(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


def transductive(made):
    """Induction and transduction that differ by 0.02 if decoded by Hamming distance, and not by hinge distance."""
    values = {("svc", None): [{"accuracy": 0.9}, {"accuracy": 0.92}]}
    for n_bits, base in ((4, 0.5), (15, 0.7)):
        accuracies = [base, base + 0.01]
        values[INDUCTIVE, n_bits] = [{"accuracy, ties at random": a, "accuracy, hinge": a + 0.03} for a in accuracies]
        values[TRANSDUCTIVE, n_bits] = [
            {"accuracy, ties at random": a + 0.02, "accuracy, transductive": a + 0.03} for a in accuracies
        ]
    return transductive_section(made("transductive-vowel", values).protocols[0])


def test_transductive_section_decodes_both_modes_alike(made):
    [chart] = blocks_of(transductive(made), Chart)
    assert [series.name for series in chart.series] == [
        "*SHL inductive, Hamming (paper settings)",
        "*SHL transductive, Hamming (paper settings)",
        "*SHL inductive, hinge (paper settings)",
        "*SHL transductive, hinge (paper settings)",
        "one-vs-one SVC",
    ]
    assert chart.series[0].x == (4, 15)
    assert chart.series[-1].y == (0.91, 0.91)


def test_transductive_section_tells_the_gain_by_each_way_of_decoding(made):
    section = transductive(made)
    text = " ".join(line for block in blocks_of(section, Text) for line in block.lines)
    assert "both decoded by Hamming distance, transduction changes the accuracy by +0.020" in text
    assert "both decoded by hinge distance, transduction changes the accuracy by +0.000" in text
    gains = blocks_of(section, Table)[-1]
    assert ("transductive minus inductive, Hamming (paper settings)", "15", "+0.020") in [r[:3] for r in gains.rows]
    assert ("transductive minus inductive, hinge (paper settings)", "15", "+0.000") in [r[:3] for r in gains.rows]


def test_transductive_section_says_where_the_best_of_star_shl_loses_and_never_to_itself(made):
    text = [line for block in blocks_of(transductive(made), Text) for line in block.lines]
    assert any("one-vs-one SVC is best with accuracy" in line for line in text)
    [loss] = [line for line in text if "does not win" in line]
    assert "hinge (paper settings) does not win" in loss
    assert "behind one-vs-one SVC" in loss


def test_records_without_ties_at_random_lack_that_row(made):
    values = {(INDUCTIVE, 4): [{"accuracy": 0.5, "accuracy, hinge": 0.6}]}
    [chart] = blocks_of(transductive_section(made("transductive-vowel", values).protocols[0]), Chart)
    assert [series.name for series in chart.series] == ["*SHL inductive, hinge (paper settings)"]


def test_a_mean_of_fewer_runs_is_marked_and_bold_counts_shared_runs_only():
    cells = {"LSH": [{0: 0.5, 1: 0.9}], "KSH": [{0: 0.6}]}
    table = table_of_means("t", ("method", "P@10"), cells)
    assert table.rows == (("LSH", "0.700 ± 0.283"), ("KSH", "0.600 (1 run)"))
    assert table.strong == {(1, 1)}


@pytest.mark.parametrize("notes", [None, {"LSH": "none"}])
def test_columns_that_do_not_fit_the_means_are_refused(notes):
    cells = {"LSH": [{0: 0.5}, {0: 0.6}], "KSH": [{0: 0.6}, {0: 0.7}]}
    names = ("method",) if notes is None else ("method", "labels")
    for columns in (("16 bits", "32 bits"), (*names, "16 bits"), (*names, "8 bits", "16 bits", "32 bits")):
        with pytest.raises(ValueError, match="2 means of 'LSH'"):
            table_of_means("t", columns, cells, notes=notes)
    assert len(table_of_means("t", (*names, "16 bits", "32 bits"), cells, notes=notes).rows) == 2


def test_means_that_are_printed_alike_are_bold_alike():
    cells = {"SVC": [{0: 0.9094}], "StarRidge": [{0: 0.9091}], "LSH": [{0: 0.9084}]}
    table = table_of_means("t", ("method", "accuracy"), cells)
    assert table.strong == {(0, 1), (1, 1)}


def test_labels_section_joins_the_protocols_of_a_data_set_in_the_order_of_labels(made):
    def few(n_labels, accuracy):
        values = {
            ("starshl-graph", 32): [{"accuracy": accuracy, "P@10": 0.5}],
            ("ssh", 32): [{"accuracy, nearest code": 0.4, "P@10": 0.6}],
        }
        return made(f"labels-digits-{n_labels}", values).protocols[0]

    section = labels_section([few(20, 0.9), few(1, 0.3), few(5, 0.8)])
    [chart] = blocks_of(section, Chart)
    assert chart.ticks == (1, 5, 20)
    assert chart.series[0].y == (0.3, 0.8, 0.9)
    accuracy, precision, gaps = blocks_of(section, Table)
    assert accuracy.rows == (
        ("*SHL, graph kernel", "- / - / -", "0.300", "0.800", "0.900"),
        ("SSH", "- / - / -", "0.400", "0.400", "0.400"),
    )
    assert accuracy.strong == {(1, 2), (0, 3), (0, 4)}
    assert precision.strong == {(1, 2), (1, 3), (1, 4)}
    assert gaps.rows[1][:3] == ("*SHL, graph kernel minus SSH", "5 per class", "+0.400")
    _, coverage, told = blocks_of(section, Text)
    assert [line.split(":")[0] for line in coverage.lines] == [f"Protocol labels-digits-{n}" for n in (1, 5, 20)]
    assert "1 of 5 runs" in coverage.lines[0]
    assert "With 1 label per class SSH is best" in told.lines[0]


def with_unequal_classes(found):
    """Give ten classes of which one has a fifth of all rows."""
    found.random_precision, found.majority_accuracy = {0: 0.12}, {0: 0.2}
    return found


def test_where_classes_are_unequal_few_labels_are_shown_beside_what_needs_no_learning(made):
    values = {
        ("starshl-graph", 32): [
            {"accuracy": 0.8, "accuracy, balanced": 0.7, "P@10": 0.6, "P@10, mean of classes": 0.5}
        ],
        ("ssh", 32): [{"accuracy, nearest code": 0.4, "P@10": 0.3, "P@10, mean of classes": 0.2}],
    }
    few = [with_unequal_classes(made(f"labels-usps-{n}", values).protocols[0]) for n in (1, 5)]
    section = labels_section(few)
    tables = {table.caption.split(" on the")[0].rstrip(","): table for table in blocks_of(section, Table)[:4]}
    assert {name: table.rows[1:] for name, table in tables.items()} == {
        "accuracy": (
            ("SSH", "- / -", "0.400", "0.400"),
            ("largest class", "-", "0.200", "0.200"),
        ),
        "accuracy, balanced": (("largest class", "-", "0.100", "0.100"),),
        "P@10": (
            ("SSH", "- / -", "0.300", "0.300"),
            ("random order", "-", "0.120", "0.120"),
            ("largest class", "-", "0.200", "0.200"),
        ),
        "P@10, mean of classes": (
            ("SSH", "- / -", "0.200", "0.200"),
            ("random order", "-", "0.100", "0.100"),
            ("largest class", "-", "0.100", "0.100"),
        ),
    }
    text = [line for block in blocks_of(section, Text) for line in block.lines]
    [told] = [line for line in text if line.startswith("Classes are unequal")]
    assert "P@10 of 0.120" in told
    assert "accuracy of 0.200 (balanced: 0.100)" in told
    [chart] = blocks_of(section, Chart)
    assert [series.name for series in chart.series] == ["*SHL, graph kernel", "SSH"]


def test_what_needs_no_learning_is_never_the_best_row(made):
    values = {("lsh", 32): [{"P@10": 0.11, "mAP": 0.1}], ("itq", 32): [{"P@10": 0.1, "mAP": 0.11}]}
    section = unsupervised_section(with_unequal_classes(made("unsupervised-usps", values).protocols[0]))
    table = blocks_of(section, Table)[0]
    assert table.columns[:4] == ("method", "P@10", "P@10, mean of classes", "mAP")
    assert [row[:4] for row in table.rows[-2:]] == [
        ("random order", "0.120", "0.100", "-"),
        ("largest class", "0.200", "0.100", "-"),
    ]
    assert table.strong == {(0, 1), (1, 3)}
    assert [row[0] for row in table.rows[:2]] == ["LSH", "ITQ"]


def test_unsupervised_section_compares_clusters_alike_and_as_assigned(made):
    values = {
        ("starshl-clusters", 32): [{"P@10": 0.7, "mAP": 0.5, "ARI, codes": 0.6, "ARI, assigned": 0.61}],
        ("itq", 32): [{"P@10": 0.8, "mAP": 0.4, "ARI, codes": 0.5}],
    }
    section = unsupervised_section(made("unsupervised-digits", values).protocols[0])
    [chart] = blocks_of(section, Chart)
    assert chart.tick_names == ("P@10", "mAP", "ARI, codes", "ARI, assigned")
    assert {series.name: (series.x, series.y) for series in chart.series} == {
        "*SHL": ((0, 1, 2, 3), (0.7, 0.5, 0.6, 0.61)),
        "ITQ": ((0, 1, 2), (0.8, 0.4, 0.5)),
    }
    table, gaps = blocks_of(section, Table)
    assert [row[:3] for row in gaps.rows[:2]] == [
        ("*SHL minus ITQ", "P@10", "-0.100"),
        ("*SHL minus ITQ", "mAP", "+0.100"),
    ]
    assert table.rows[0] == ("*SHL", "0.700", "0.500", "0.600", "0.610")
    assert table.rows[1][-1] == "-"
    assert any(
        "*SHL does not win: place 2 of 2, 0.100 behind ITQ" in line for line in blocks_of(section, Text)[1].lines
    )


def test_rows_that_are_older_than_a_change_of_their_methods_are_named(made):
    protocol = made("unsupervised-usps", {("starridge-clusters", 32): [{"P@10": 0.8}], ("lsh", 32): [{"P@10": 0.4}]})
    [found] = protocol.protocols
    for date, named in (("2026-11-18", True), ("2026-11-19", False)):
        found.runs = [replace(run, date=date) for run in found.runs]
        lines = [line for text in blocks_of(unsupervised_section(found), Text) for line in text.lines]
        told = [line for line in lines if line.startswith("Measured before 2026-11-19")]
        assert bool(told) is named
        assert not named or ("StarRidge, clusters" in told[0] and "LSH" not in told[0])
