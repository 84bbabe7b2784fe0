"""`starshl reproduce` and `starshl report`."""

import json
import shutil
from pathlib import Path

import pytest

from starshl.cli.reproduce import duration_text
from starshl.reproduction.records import RECORD_FORMAT
from starshl.reproduction.report import default_summaries


@pytest.fixture
def places(tmp_path):
    return ("--records", tmp_path / "records", "--output", tmp_path / "report", "--jobs", 1)


FAST = ("reproduce", "--figure", "digits", "--quick", "--bits", "8,12", "--methods", "lsh,float", "--runs", 1)


def test_reproduce_runs_writes_a_report_and_runs_nothing_twice(answer, places, tmp_path):
    first, second = answer(*FAST, *places), answer(*FAST, *places)
    assert (first["n_runs"], first["n_done_now"], first["n_done_before"]) == (3, 3, 0)
    assert (second["n_done_now"], second["n_done_before"]) == (0, 3)
    assert first["report"] == str(tmp_path / "report" / "report.html")
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        *("report.html", "report.md", "measurements.csv", "summary.csv", "curves.csv")
    }


def test_reproduce_tells_progress_and_time_left_on_standard_error(starshl, places):
    found = starshl(*FAST, *places)
    assert found.exit_code == 0
    assert "3/3 runs, 0 s left: " in found.stderr
    assert found.stdout.startswith("3 runs: 3 now, 0 before; 0 of all failed")


def test_a_failed_run_gives_exit_code_one_and_the_others_are_done(starshl, places):
    words = ("reproduce", "--quick", "--bits", 400, "--methods", "1-agh,lsh", "--runs", 1, *places)
    found = starshl(*words)
    assert found.exit_code == 1
    assert "Failed: 1-AGH, 400 bits" in found.stderr
    assert "2 runs: 2 now, 0 before; 1 of all failed" in found.stdout
    again = starshl(*words, "--json")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["n_done_now"] == 0


def test_report_is_written_from_records_alone(starshl, answer, places, tmp_path):
    starshl(*FAST, *places)
    found = answer("report", tmp_path / "records", "-o", tmp_path / "other", "--markdown", tmp_path / "results.md")
    assert found["n_runs"] == 3
    assert {claim["verdict"] for claim in found["claims"]} == {"not measured"}
    assert (tmp_path / "results.md").read_text() == (tmp_path / "other" / "report.md").read_text()
    assert (tmp_path / "other" / "report.html").read_text() == (tmp_path / "report" / "report.html").read_text()


def test_a_report_never_replaces_the_records_and_summaries_it_is_made_from(starshl, places, tmp_path):
    starshl(*FAST, *places)
    inputs = [path for path in (tmp_path / "records").rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in inputs}
    for path in inputs:
        found = starshl("report", tmp_path / "records", "-o", tmp_path / "other", "--markdown", path)
        assert (found.exit_code, "same file as the input" in found.stderr) == (2, True)
    for words in (("-o", tmp_path / "records"), ("-o", tmp_path / "other", "--pages", tmp_path / "records")):
        found = starshl("report", tmp_path / "records", *words)
        assert (found.exit_code, "the one that is read" in found.stderr) == (2, True)
    assert {path: path.read_bytes() for path in inputs} == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--figure", "pendigit"), "no figure 'pendigit'"),
        (("--figure", "digits", "--methods", "khs"), "no method 'khs'"),
        (("--methods", "ssh"), "not part of digits"),
        (("--bits", "8,x"), "--bits got '8,x'"),
        (("--bits", "0"), "--bits got '0'"),
        (("--bits", ""), "--bits got ''; give a number"),
        (("--figure", ","), "--figure is empty"),
        (("--runs", "0"), "runs is 0"),
        (("--runs", "99"), "runs is 99"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(starshl, places, words, told):
    found = starshl("reproduce", *words, *places)
    assert found.exit_code == 2
    assert told in found.stderr
    assert found.stderr.count("\n") == 1
    assert not places[1].exists()


@pytest.mark.parametrize("command", [("reproduce", "--quick", "--records"), ("report",)])
def test_records_of_another_version_are_refused(starshl, tmp_path, command):
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "starshl-records.json").write_text(json.dumps({"format": RECORD_FORMAT + 1}))
    found = starshl(*command, folder)
    assert found.exit_code == 2
    assert f"records of format {RECORD_FORMAT + 1}" in found.stderr


@pytest.mark.parametrize(("content", "told"), [(None, "There is no folder"), ("x", "not a folder")])
def test_report_refuses_what_is_no_folder_of_records(starshl, tmp_path, content, told):
    folder = tmp_path / "records"
    if content:
        folder.mkdir()
        (folder / "thesis.txt").write_text(content)
    found = starshl("report", folder, "-o", tmp_path / "report")
    assert found.exit_code == 2
    assert told in found.stderr


ONE_LENGTH = ("reproduce", "--quick", "--methods", "lsh,sph", "--bits", 8, "--runs", 1)


def test_report_names_a_damaged_record_and_ends_with_code_1(starshl, places, tmp_path):
    starshl(*ONE_LENGTH, *places)
    shutil.rmtree(tmp_path / "records" / "summaries")
    damaged = next((tmp_path / "records").glob("*/lsh-*.run"))
    damaged.write_bytes(b"no record")
    found = starshl("report", tmp_path / "records", "-o", tmp_path / "report")
    assert found.exit_code == 1
    assert f"{damaged} is not a readable run record" in found.stderr
    assert "model" not in found.stderr
    assert (tmp_path / "report" / "report.html").exists()


def test_reproduce_names_a_damaged_record_and_does_its_run_again(starshl, places, tmp_path):
    starshl(*ONE_LENGTH, *places)
    damaged = next((tmp_path / "records").glob("*/lsh-*.run"))
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:60])
    found = starshl(*ONE_LENGTH, *places)
    assert found.exit_code == 0, found.output
    assert f"Damaged: {damaged.parent.name}/{damaged.name} could not be read" in found.stderr
    assert "2 runs: 1 now, 1 before; 0 of all failed" in found.stdout
    assert damaged.stat().st_size > 60


def test_runs_resume_from_summaries_kept_elsewhere(answer, places, tmp_path):
    first = answer(*ONE_LENGTH, *places, "--summaries", tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["retrieval-digits-300-300.jsonl"]
    shutil.rmtree(tmp_path / "records")
    again = answer(*ONE_LENGTH, *places, "--summaries", tmp_path / "kept")
    assert (first["n_done_now"], again["n_done_now"], again["n_done_before"]) == (2, 0, 2)
    found = answer("report", tmp_path / "absent", "--summaries", tmp_path / "kept", "-o", tmp_path / "report")
    assert found["n_runs"] == 2


@pytest.fixture
def kept(answer, places, tmp_path):
    """A folder of summaries of three fast runs, from elsewhere."""
    answer(*FAST, *places, "--summaries", tmp_path / "kept")
    return tmp_path / "kept"


def again(kept, tmp_path, name="again"):
    folders = ("--records", tmp_path / name, "--output", tmp_path / f"report-{name}", "--summaries", kept)
    return (*FAST, "--again", *folders, "--jobs", 1)


def test_again_does_finished_runs_anew_and_finds_their_scores_equal(answer, starshl, kept, tmp_path):
    (file,) = kept.iterdir()
    before = file.read_bytes()
    found = answer(*again(kept, tmp_path))
    assert (found["n_done_now"], found["n_done_before"]) == (3, 0)
    assert (found["n_equal"], found["n_different"], found["n_not_compared"]) == (3, 0, 0)
    assert all(run["equal"] and not run["differences"] for run in found["compared"].values())
    lines = starshl(*again(kept, tmp_path, "more")).stdout.splitlines()
    assert lines[0] == "equal: LSH, 8 bits, retrieval-digits-300-300 run 0"
    assert lines[3].endswith("third digit of every score: 3 equal, 0 different, 0 without an earlier summary.")
    assert file.read_bytes() == before


def test_again_names_the_scores_that_differ_and_ends_with_code_1(starshl, kept, tmp_path):
    (file,) = kept.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    changed = next(line for line in lines if line.get("method") == "lsh")
    true, changed["scores"]["pr_area"] = changed["scores"]["pr_area"], 0.9876
    versions = next(line["value"] for line in lines if line.get("id") == changed["versions"])
    versions["numpy"] = "1.0"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = starshl(*again(kept, tmp_path))
    assert found.exit_code == 1
    assert f"different: LSH, 8 bits, retrieval-digits-300-300 run 0 (pr_area 0.9876, now {true:.4f})" in found.stdout
    assert ": 2 equal, 1 different, 0 without" in found.stdout
    assert "Other versions of libraries may be the cause: numpy 1.0, now " in found.stdout


def test_again_takes_a_new_folder_of_records_each_time(answer, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = (*FAST, "--again", "--summaries", kept, "--jobs", 1)
    first, second = answer(*words), answer(*words)
    assert first["records"] != second["records"]
    assert first["n_done_now"] == second["n_done_now"] == 3
    assert len(list((tmp_path / "starshl-again").iterdir())) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--bits", 16), "has none of these runs"),
        (("--bits", 8, "--records", "."), "which it compares them with"),
    ],
)
def test_again_refuses_what_it_cannot_compare_before_any_run(starshl, answer, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    answer(*ONE_LENGTH, "--records", "runs", "--summaries", "summaries", "--jobs", 1)
    found = starshl(*ONE_LENGTH, *words, "--again", "--summaries", "summaries")
    assert found.exit_code == 2
    assert told in found.stderr
    assert not (tmp_path / "starshl-again").exists()


def test_summaries_go_with_the_sources_in_a_clone_and_with_the_records_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert default_summaries(Path("records")) == Path("records/summaries")
    (tmp_path / "src" / "starshl" / "reproduction").mkdir(parents=True)
    (tmp_path / "results" / "summaries").mkdir(parents=True)
    assert default_summaries(Path("records")) == Path("results/summaries")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.6, "1 min 00 s"), (61, "1 min 01 s"), (7260, "2 h 01 min")]
)
def test_time_left_is_told_in_words(seconds, text):
    assert duration_text(seconds) == text
