"""Run records: complete or not there, self-describing, refused when they mean something else."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from starshl._common.bundle import read_bundle, write_bundle
from starshl.exceptions import RecordFormatError
from starshl.reproduction import Record, RecordFolder, RunKey

KEY = RunKey("paper-usps", 3, "starshl-paper", 12, 99, "abc", {"scaling": "max", "rate": 0.5})
RECORD = Record(
    KEY,
    "usps",
    "ok",
    seconds={"fit": 1.25},
    peak_bytes=12345,
    n_labeled=300,
    versions={"numpy": "2"},
    machine={"cores": 2},
    warnings=["ConvergenceWarning: slow"],
    finished="2026-01-01T00:00:00+00:00",
    arrays={"database": np.arange(6, dtype=np.uint8).reshape(3, 2), "y_database": np.arange(3)},
)


def test_record_comes_back_as_it_was_saved(tmp_path):
    folder = RecordFolder(tmp_path / "deep" / "runs")
    path = folder.save(RECORD)
    assert path.name.startswith("starshl-paper-012bits-run03-")
    found = RecordFolder(tmp_path / "deep" / "runs").load(KEY)
    assert found.key == KEY
    for name in (
        "dataset",
        "status",
        "seconds",
        "peak_bytes",
        "n_labeled",
        "versions",
        "machine",
        "warnings",
    ):
        assert getattr(found, name) == getattr(RECORD, name)
    assert found.digests == RECORD.digests
    assert np.array_equal(found.arrays["database"], RECORD.arrays["database"])
    assert found.codes("database").n_bits == 12
    assert [record.key for record in folder] == [KEY]


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": "paper-mnist"},
        {"run": 4},
        {"method": "starshl"},
        {"n_bits": 13},
        {"seed": 1},
        {"split_digest": "abd"},
        {"settings": {"scaling": "unit", "rate": 0.5}},
    ],
)
def test_anything_that_changes_the_result_makes_another_run(change, tmp_path):
    folder = RecordFolder(tmp_path / "runs")
    folder.save(RECORD)
    assert folder.path_of(KEY).exists()
    assert not folder.path_of(replace(KEY, **change)).exists()


def test_order_of_settings_does_not_matter():
    assert replace(KEY, settings={"rate": 0.5, "scaling": "max"}).file_name == KEY.file_name


def test_a_record_replaces_that_of_an_attempt_that_failed(tmp_path):
    folder = RecordFolder(tmp_path / "runs")
    folder.save(Record(KEY, "usps", "failed", message="ValueError: no"))
    assert folder.load(KEY).message == "ValueError: no"
    folder.save(RECORD)
    assert folder.load(KEY).ok
    assert len(folder) == 1


def test_folder_of_another_format_is_refused(tmp_path):
    RecordFolder(tmp_path / "runs")
    marker = tmp_path / "runs" / "starshl-records.json"
    marker.write_text(json.dumps({"kind": "starshl run records", "format": 99}))
    with pytest.raises(RecordFormatError, match="records of format 99"):
        RecordFolder(tmp_path / "runs")
    marker.write_text("{")
    with pytest.raises(RecordFormatError, match="damaged"):
        RecordFolder(tmp_path / "runs")


def test_folder_with_other_contents_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("words")
    with pytest.raises(RecordFormatError, match="not a folder"):
        RecordFolder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(RecordFormatError, match="is a file"):
        RecordFolder(tmp_path / "thesis.tex")


def test_damaged_and_foreign_records_are_refused_by_name(tmp_path):
    folder = RecordFolder(tmp_path / "runs")
    path = folder.save(RECORD)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(RecordFormatError, match="Delete it"):
        folder.load(KEY)
    write_bundle(path, {"record_format": 99}, {})
    with pytest.raises(RecordFormatError, match="format is 99"):
        list(folder)
    write_bundle(path, {"method": "LSHash"}, {})
    with pytest.raises(RecordFormatError, match="record_format"):
        folder.load(KEY)


def test_absent_record_and_absent_codes_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no record of 'starshl-paper'"):
        RecordFolder(tmp_path / "runs").load(KEY)
    with pytest.raises(ValueError, match="holds no codes of 'query'"):
        RECORD.codes("query")


WRITE_FOREVER = """
import sys
from itertools import count
import numpy as np
from starshl.reproduction import Record, RecordFolder, RunKey
folder = RecordFolder(sys.argv[1])
for run in count():
    key = RunKey("paper-usps", run, "lsh", 8, 0, "abc")
    folder.save(Record(key, "usps", "ok", arrays={"database": np.full((200_000, 1), run % 256, np.uint8)}))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_killed_writer_leaves_only_complete_records(tmp_path):
    path = [entry for entry in sys.path if entry]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE_FOREVER, str(tmp_path / "runs")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
    )
    deadline = time.monotonic() + 180
    while len(list(tmp_path.glob("runs/*/*.run"))) < 5 and time.monotonic() < deadline:
        assert writer.poll() is None
        time.sleep(0.01)
    writer.kill()
    writer.wait()
    folder = RecordFolder(tmp_path / "runs")
    done = [record.key.run for record in folder]
    assert len(done) >= 5
    assert sorted(done) == list(range(len(done)))
    assert all(folder.load(RunKey("paper-usps", run, "lsh", 8, 0, "abc")).ok for run in done)


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/cron", "a/b", "..", "", "UPPER", "two words", "a\\b", "x" * 200, 7]
)
@pytest.mark.parametrize("field", ["protocol", "method"])
def test_names_that_could_leave_the_folder_are_refused(field, name, tmp_path):
    with pytest.raises(ValueError, match="cannot be named"):
        replace(KEY, **{field: name})


def test_a_crafted_record_cannot_name_a_path(tmp_path):
    folder = RecordFolder(tmp_path / "runs")
    path = folder.save(RECORD)
    header, arrays = read_bundle(path)
    header["key"]["protocol"] = "../../outside"
    write_bundle(path, header, arrays)
    with pytest.raises(RecordFormatError, match=r"cannot be named '\.\./\.\./outside'"):
        list(folder)


@pytest.mark.parametrize("change", [{"status": "fine"}, {"message": 3}, {"seconds": [1]}, {"key": "text"}])
def test_a_crafted_record_of_wrong_types_is_refused(change, tmp_path):
    folder = RecordFolder(tmp_path / "runs")
    path = folder.save(RECORD)
    header, arrays = read_bundle(path)
    write_bundle(path, header | change, arrays)
    with pytest.raises(RecordFormatError, match="not a readable run record"):
        folder.load(KEY)
