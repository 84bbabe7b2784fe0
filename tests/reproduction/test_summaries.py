"""Summaries: the numbers of runs as lines of text that survive damage and name no paths."""

import json
from dataclasses import replace

import numpy as np
import pytest

from starshl.data import datasets
from starshl.hashers.baselines import LSHash
from starshl.reproduction import (
    Record,
    RunKey,
    RunSummary,
    SummaryFolder,
    protocol,
    run,
    score,
    split_data,
    summarize_record,
)

KEY = RunKey("some-protocol", 0, "lsh", 8, seed=3, split_digest="abc", settings={"scaling": "max"})


@pytest.fixture(scope="module")
def record():
    digits = datasets.get("digits")
    small = protocol("labels-digits-5").reduced(n_train=200, n_query=60, n_runs=2)
    data = split_data(digits, small.split(digits, 0))
    return run(lambda n_bits, seed: LSHash(n_bits, random_state=seed), data, "lsh", 12)


def failed(**changes):
    return RunSummary(Record(replace(KEY, **changes), "usps", "failed", "no memory", finished="2026"))


def test_a_summary_comes_back_with_the_scores_of_its_record(record, tmp_path):
    summary = summarize_record(record)
    SummaryFolder(tmp_path).add(summary)
    [found] = SummaryFolder(tmp_path)
    assert (found.key, found.rows, found.scores) == (record.key, summary.rows, summary.scores)
    assert (found.record.n_labeled, found.record.versions) == (record.n_labeled, record.versions)
    sizes = {"train": 200, "query": 60, "classes": 10}
    assert {name: found.rows[name] for name in sizes} == sizes
    scores = score(record)
    assert found.scores["precision_at"] == pytest.approx(scores["precision_at"], rel=1e-5)
    assert found.scores["curve"]["precision"] == pytest.approx(scores["curve"]["precision"], rel=1e-5)
    assert found.record.arrays == {}


def test_answers_without_a_method_and_single_classes_are_scored(record):
    summary = summarize_record(record)
    y_query, y_items = record.arrays["y_query"], record.arrays["y_database"]
    largest = np.bincount(record.arrays["y_train"]).argmax()
    assert summary.rows["majority_accuracy"] == pytest.approx(np.mean(y_query == largest), rel=1e-5)
    # Any item may come first.
    assert summary.rows["random_precision"] == pytest.approx(np.mean(y_query[:, None] == y_items), rel=1e-5)
    by_class = summary.scores["precision_by_class"]
    assert list(by_class) == [10, 15]
    weights = np.bincount(y_query, minlength=len(by_class[10])) / len(y_query)
    assert weights @ np.array(by_class[10]) == pytest.approx(summary.scores["precision_at"][10], rel=1e-4)


def test_summaries_are_small_and_write_shared_values_once(record, tmp_path):
    summary = summarize_record(record)
    folder = SummaryFolder(tmp_path)
    for number in range(20):
        key = replace(record.key, run=number)
        folder.add(replace(summary, record=replace(summary.record, key=key)))
    [file] = tmp_path.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum("id" in line for line in lines) == 6
    assert len(lines) == 26
    # 7,000 fits of the whole campaign must fit into a few megabytes.
    assert file.stat().st_size / 20 < 1600


def test_a_key_with_other_settings_has_no_summary(tmp_path):
    folder = SummaryFolder(tmp_path)
    folder.add(failed())
    assert folder.get(KEY).record.message == "no memory"
    for change in ({"settings": {"scaling": "unit"}}, {"split_digest": "abd"}, {"seed": 4}, {"protocol": "other"}):
        assert folder.get(replace(KEY, **change)) is None


def test_a_line_cut_by_a_kill_costs_only_itself(tmp_path):
    SummaryFolder(tmp_path).add(failed())
    SummaryFolder(tmp_path).add(failed(run=1))
    file = tmp_path / "some-protocol.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    folder = SummaryFolder(tmp_path)
    assert [summary.key.run for summary in folder] == [0]
    assert len(folder.damaged) == 1
    assert folder.damaged[0].startswith("some-protocol.jsonl:")
    folder.add(failed(run=2))
    assert [summary.key.run for summary in SummaryFolder(tmp_path)] == [0, 2]
    folder.tidy()
    tidied = SummaryFolder(tmp_path)
    assert tidied.damaged == []
    assert [summary.key.run for summary in tidied] == [0, 2]


@pytest.mark.parametrize(
    "line", ["[]", "7", "{", '{"format": 2}', '{"format": 1, "method": "../x"}', "[" * 100_000, "\x00"]
)
def test_lines_that_are_no_summaries_are_named_and_skipped(line, tmp_path):
    SummaryFolder(tmp_path).add(failed())
    with (tmp_path / "some-protocol.jsonl").open("a") as file:
        file.write(line + "\n")
    folder = SummaryFolder(tmp_path)
    assert (len(folder), len(folder.damaged)) == (1, 1)


def test_a_finished_run_without_its_numbers_of_rows_is_named_and_skipped(record, tmp_path):
    SummaryFolder(tmp_path).add(replace(summarize_record(record), rows={"train": 200}))
    folder = SummaryFolder(tmp_path)
    assert (len(folder), len(folder.damaged)) == (0, 1)


def test_the_summary_added_last_replaces_the_earlier_one(tmp_path):
    folder = SummaryFolder(tmp_path)
    folder.add(failed())
    folder.add(replace(failed(), record=replace(failed().record, message="still no memory")))
    assert SummaryFolder(tmp_path).get(KEY).record.message == "still no memory"
    n_lines = len((tmp_path / "some-protocol.jsonl").read_text().splitlines())
    folder.tidy()
    assert len((tmp_path / "some-protocol.jsonl").read_text().splitlines()) == n_lines - 1


def test_a_file_whose_name_is_no_protocol_is_refused(tmp_path):
    (tmp_path / "Some Notes.jsonl").write_text("")
    with pytest.raises(ValueError, match="cannot be named 'Some Notes'"):
        SummaryFolder(tmp_path)


def test_two_processes_add_to_one_file_and_one_of_them_tidies_it(tmp_path):
    first, second = SummaryFolder(tmp_path), SummaryFolder(tmp_path)
    first.add(failed(run=0))
    second.add(failed(run=1))
    second.add(failed(run=1))  # a run done again makes the file untidy
    first.add(failed(run=2))
    second.tidy()
    first.add(failed(run=3))
    together = SummaryFolder(tmp_path)
    assert sorted(summary.key.run for summary in together) == [0, 1, 2, 3]
    assert together.damaged == []
