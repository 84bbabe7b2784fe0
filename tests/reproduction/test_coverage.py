"""What was run of what was planned, in words; records that are damaged, doubled or of other settings."""

import shutil
from dataclasses import replace

import pytest

from starshl.evaluation.reports.document import Table, Text
from starshl.reproduction import RecordFolder, SummaryFolder, figure, write_report
from starshl.reproduction.compared_methods import COMPARED_METHODS
from starshl.reproduction.coverage import completeness, coverage_of, settings_section, what_was_run
from starshl.reproduction.records import read_record
from starshl.reproduction.results import read_results


def planned(name, n_runs=5):
    """Values of every contestant, length and run of a figure of one protocol."""
    entry = figure(name)
    values = {}
    for chosen in map(COMPARED_METHODS.__getitem__, entry.methods):
        for n_bits in entry.protocols[0].bits if chosen.kind == "hasher" else (None,):
            values[chosen.key, n_bits] = [{"P@10": 0.5}] * n_runs
    return values


def test_a_protocol_is_complete_only_with_all_methods_lengths_and_runs(made):
    [found] = made("paper-usps", planned("usps")).protocols
    assert completeness(found) == "complete"
    values = {place: runs for place, runs in planned("usps", 3).items() if place[1] != 10}
    del values["ksh", 5]
    values = {place: runs for place, runs in values.items() if place[0] != "starshl"}
    [found] = made("paper-usps", values).protocols
    assert completeness(found) == (
        "partial: 3 of 5 runs; no codes of 10 bits; *SHL, defaults was not run; single fits missing: 3 of KSH"
    )


def test_a_method_that_failed_is_told_from_one_that_was_not_run(made):
    values = {place: runs for place, runs in planned("usps").items() if place[0] not in ("sph", "lsh")}
    [found] = made("paper-usps", values).protocols
    found.failed = {"lsh"}
    assert completeness(found) == "partial: SPH was not run; LSH failed"


def test_planned_runs_are_counted(made):
    values = {("ksh", 5): [{"P@10": 0.5}] * 2, ("stranger", 5): [{"P@10": 0.5}]}
    results = made("paper-usps", values)
    coverage = coverage_of(results.protocols[0])
    assert (len(coverage.done), len(coverage.planned)) == (2, (12 * 9 + 2) * 5)
    table = next(block for block in what_was_run(results).blocks if isinstance(block, Table))
    assert "2 of 550" in table.rows[0]


@pytest.fixture
def copied(records, tmp_path):
    return RecordFolder(shutil.copytree(records, tmp_path / "records"))


def read(folder):
    return read_results(folder, SummaryFolder(folder.path / "summaries"))


def of_method(folder, method):
    return next(path for path in folder.paths() if read_record(path).key.method == method)


def text_of(section):
    return " ".join(line for block in section.blocks if isinstance(block, Text) for line in block.lines)


def test_the_record_finished_last_counts_and_the_others_are_told(copied):
    before = read(copied)
    record = read_record(of_method(copied, "lsh"))
    key = replace(record.key, seed=record.key.seed + 1)
    later = {"finished": "9999-01-01T00:00:00+00:00", "versions": record.versions | {"starshl": "9.9"}}
    copied.save(replace(record, key=key, **later))
    results = read(copied)
    assert results.n_replaced == 1
    assert sum(len(p.runs) for p in results.protocols) == sum(len(p.runs) for p in before.protocols)
    [found] = [p for p in results.protocols if p.name == key.protocol]
    [run] = [r for r in found.runs if (r.method, r.n_bits, r.run) == (key.method, key.n_bits, key.run)]
    assert run.seed == key.seed
    told = text_of(what_was_run(results))
    assert "1 run not counted" in told
    assert "MIXED VERSIONS" in told
    assert "9.9" in told


def test_settings_that_differ_are_told_by_protocol(copied):
    path = of_method(copied, "lsh")
    record = read_record(path)
    key = replace(record.key, settings={"variant": "new"})
    copied.save(replace(record, key=key, finished="9999-01-01T00:00:00+00:00"))
    table = settings_section(read(copied)).blocks[0]
    rows = {row[4]: row[3] for row in table.rows if row[1] == "lsh"}
    assert rows["variant=new"] == key.protocol
    assert len(rows) == 2


def test_a_damaged_record_is_left_out_and_named(copied, tmp_path):
    path = of_method(copied, "lsh")
    path.write_bytes(path.read_bytes()[:100])
    shutil.rmtree(copied.path / "summaries")
    written = write_report(copied.path, tmp_path / "report")
    name = path.relative_to(copied.path).as_posix()
    assert written.results.damaged == [name]
    assert name in written.page.read_text()
    assert name in written.markdown.read_text()


def test_a_folder_of_damaged_records_only_is_refused_by_name(tmp_path):
    folder = RecordFolder(tmp_path / "records")
    (folder.path / "paper-usps").mkdir()
    (folder.path / "paper-usps" / "lsh.run").write_bytes(b"no record")
    with pytest.raises(ValueError, match=r"paper-usps/lsh\.run"):
        write_report(folder.path, tmp_path / "report")


def test_a_report_needs_no_data_files(copied, tmp_path, monkeypatch):
    def refuse(*arguments, **settings):
        raise ValueError("The contents are damaged.")

    monkeypatch.setattr("starshl.data.datasets.get", refuse)
    monkeypatch.setenv("STARSHL_DATA", str(tmp_path / "absent"))
    written = write_report(copied.path, tmp_path / "report")
    assert "The pictures are not shown: The contents are damaged." in written.markdown.read_text()


def test_seeds_of_all_runs_and_splits_are_told(made, copied):
    results = made("transductive-vowel", {("svc", None): [{"accuracy": 0.5}] * 20})
    tables = {block.caption: block for block in settings_section(results).blocks}
    assert tables["Seeds by run"].rows[0][2].count(",") == 19
    results = read(copied)
    [splits] = [block for block in settings_section(results).blocks if "SHA-256" in block.caption]
    assert {row[1] for row in splits.rows} == {"max"}
    assert all(len(digest) == 12 for row in splits.rows for digest in row[2].split(", "))
