"""Finding, checking, downloading and describing data sets."""

import gzip
import hashlib
import json
import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from starshl.data import datasets
from starshl.data.datasets import convert, registry, store
from starshl.data.datasets.download import OpenML, Web
from starshl.data.datasets.registry import ENTRIES, Entry
from starshl.exceptions import ChecksumError, DatasetUnavailableError, DownloadError

LINES = [f"{','.join(str((i * j) % 101) for j in range(16))},{i % 10}\n" for i in range(12)]
ROWS = "".join(LINES)
PARTS = {"toy.tra": "".join(LINES[:7]).encode(), "toy.tes": "".join(LINES[7:]).encode()}


@pytest.fixture
def empty_machine(tmp_path, monkeypatch):
    """No data folder, an empty cache."""
    monkeypatch.delenv("STARSHL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def toy(web, tmp_path, monkeypatch, empty_machine):
    """A registered data set of 12 rows whose two files are on the local server."""
    for name, content in PARTS.items():
        web.put(name, content)
        (tmp_path / name).write_bytes(content)
    arrays = convert.pendigits_from_text([tmp_path / name for name in PARTS])
    source = Web(tuple(web.url(name) for name in PARTS), convert.pendigits_from_text)
    return register(monkeypatch, sources=(source,), digest=datasets.array_digest(arrays))


def register(monkeypatch, **changes):
    settings = {"n_rows": 12, "n_features": 16, "class_names": tuple("0123456789"), "license": "none"}
    entry = Entry("toy", "Toy", "toy.npz", **(settings | changes))
    monkeypatch.setattr(registry, "ENTRIES", (*ENTRIES, entry))
    return entry


def test_download_is_converted_checked_and_kept_in_the_cache(toy, web):
    found = datasets.get("toy")
    assert found.X.shape == (12, 16)
    assert found.X.dtype == np.uint8
    assert found.split.tolist() == [0] * 7 + [1] * 5
    assert found.y.tolist() == [i % 10 for i in range(12)]
    assert datasets.locate("toy") == datasets.cache_folder() / "toy.npz"
    assert [path.name for path in datasets.cache_folder().iterdir()] == ["toy.npz"]
    web.server.pages.clear()
    assert np.array_equal(datasets.get("toy").X, found.X)


def test_progress_bar_goes_to_stderr_only_when_asked(toy, capsys):
    datasets.get("toy", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "toy.tra" in err
    datasets.cache_folder().joinpath("toy.npz").unlink()
    datasets.get("toy")
    assert capsys.readouterr() == ("", "")


def test_source_with_other_arrays_is_refused_and_leaves_nothing(toy, web):
    web.put("toy.tra", PARTS["toy.tra"].replace(b"0", b"1"))
    with pytest.raises(ChecksumError, match="They differ from the registered"):
        datasets.get("toy")
    assert datasets.locate("toy") is None
    assert not list(datasets.cache_folder().iterdir())


def test_a_set_that_another_process_fetches_meanwhile_is_taken(toy, web, monkeypatch):
    def convert_too_late(paths):
        with monkeypatch.context() as elsewhere:
            register(elsewhere, sources=toy.sources, digest=toy.digest)
            datasets.fetch("toy")  # as another process does, which removes the files of its download
        return convert.pendigits_from_text(paths)

    register(monkeypatch, sources=(replace(toy.sources[0], convert=convert_too_late),), digest=toy.digest)
    assert len(datasets.get("toy")) == 12
    assert [path.name for path in datasets.cache_folder().iterdir()] == ["toy.npz"]


def test_second_source_is_used_when_the_first_fails(toy, web, monkeypatch):
    gone = Web((web.url("gone"), web.url("gone")), convert.pendigits_from_text)
    register(monkeypatch, sources=(gone, *toy.sources), digest=toy.digest)
    assert len(datasets.get("toy")) == 12


def test_all_failures_are_told_together_with_the_way_out(toy, web, monkeypatch):
    gone = Web((web.url("gone"), web.url("gone")), convert.pendigits_from_text)
    odd = Web((web.url("toy.tra"), web.url("toy.tes")), convert.digit_images_from_idx)
    register(monkeypatch, sources=(gone, odd), digest=toy.digest)
    with pytest.raises(DownloadError, match=r"404.*should be.*STARSHL_DATA"):
        datasets.fetch("toy")


def test_openml_tells_the_address_of_its_file(web, empty_machine, monkeypatch):
    arff = b"% a comment\n@RELATION toy\n@ATTRIBUTE a REAL\n@data\n% another\n\n" + ROWS.encode()
    web.put("toy.arff", arff)
    about = {"url": web.url("toy.arff"), "md5_checksum": hashlib.md5(arff).hexdigest()}
    web.put("api/77", json.dumps({"data_set_description": about}).encode())
    register(monkeypatch, sources=(OpenML(77, convert.pendigits_from_arff, api=web.url("api")),))
    found = datasets.get("toy")
    assert found.y.tolist() == [i % 10 for i in range(12)]
    assert found.X[3].tolist() == [(3 * j) % 101 for j in range(16)]


def test_openml_answer_without_an_address_is_a_failed_source(web, empty_machine, monkeypatch):
    web.put("api/77", b"{}")
    register(monkeypatch, sources=(OpenML(77, convert.pendigits_from_arff, api=web.url("api")),))
    with pytest.raises(DownloadError, match="names no data file"):
        datasets.get("toy")


def test_data_folder_comes_before_the_cache(toy, tmp_path, monkeypatch):
    cached = datasets.fetch("toy")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "toy.npz").write_bytes(cached.read_bytes())
    assert datasets.describe("toy").where == "cache"
    monkeypatch.setenv("STARSHL_DATA", str(folder))
    assert datasets.locate("toy") == folder / "toy.npz"
    assert datasets.describe("toy").where == "folder"


def test_damaged_and_altered_files_are_refused(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("STARSHL_DATA", str(tmp_path))
    (tmp_path / "toy.npz").write_bytes(b"PK not a zip")
    with pytest.raises(ChecksumError, match="not a readable npz file"):
        datasets.get("toy")
    np.savez(tmp_path / "toy.npz", X=np.zeros((12, 16), np.uint8), y=np.zeros(12, np.int64))
    with pytest.raises(ChecksumError, match="was expected"):
        datasets.get("toy")


def test_archive_that_unpacks_to_far_more_than_the_set_is_refused_unread(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("STARSHL_DATA", str(tmp_path))
    datasets.get("toy")
    with np.load(datasets.cache_folder() / "toy.npz") as archive:
        arrays = dict(archive)
    np.savez_compressed(tmp_path / "toy.npz", **arrays, zeros=np.zeros(10**7))
    tracemalloc.start()
    try:
        with pytest.raises(ChecksumError, match="unpacks to"):
            datasets.get("toy")
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("answer", [{"data_set_description": 3}, {"data_set_description": {"url": 3}}, {}])
def test_openml_answer_of_another_form_is_a_failed_source(answer, web, tmp_path):
    web.put("32", json.dumps(answer).encode())
    source = OpenML(32, convert.pendigits_from_arff, api=web.url("").rstrip("/"))
    with pytest.raises(DownloadError, match="names no data file"):
        source.fetch(tmp_path, None)


def test_set_without_a_checksum_must_at_least_have_its_size(empty_machine, tmp_path, monkeypatch):
    register(monkeypatch)
    monkeypatch.setenv("STARSHL_DATA", str(tmp_path))
    np.savez(tmp_path / "toy.npz", X=np.zeros((12, 15)), y=np.zeros(12, np.int64))
    with pytest.raises(ChecksumError, match="12 rows and 16 features"):
        datasets.get("toy")


def test_absent_sets_say_where_they_were_looked_for(empty_machine):
    with pytest.raises(DatasetUnavailableError, match=r"mnist\.npz.*cache"):
        datasets.get("mnist", download=False)
    with pytest.raises(DatasetUnavailableError, match="no public download: the embeddings"):
        datasets.get("agnews")


def test_folder_that_does_not_exist_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("STARSHL_DATA", str(tmp_path / "typo"))
    with pytest.raises(DatasetUnavailableError, match="which is not a folder"):
        datasets.get("mnist", download=False)


@pytest.mark.parametrize(
    ("asked", "meant"), [("mnst", "mnist"), ("cifar-10", "cifar10"), ("PASCAL", "pascal07"), ("usp", "usps")]
)
def test_unknown_name_gets_the_nearest_names(asked, meant):
    with pytest.raises(ValueError, match=f"no data set '{asked}'.*'{meant}'"):
        datasets.get(asked)
    with pytest.raises(ValueError, match="Known are mnist, "):
        datasets.get("zzzzzzzz")


def test_digits_come_with_scikit_learn(empty_machine):
    found = datasets.get("digits", download=False)
    assert (found.X.shape, found.n_classes, found.split) == ((1797, 64), 10, None)
    assert datasets.describe("digits").where == "package"
    with pytest.raises(ValueError, match="comes with scikit-learn"):
        datasets.fetch("digits")


def test_every_set_is_described(empty_machine):
    found = {about.name: about for about in datasets.describe_all()}
    assert set(found) == set(datasets.names())
    assert found["mnist"].where == "download"
    assert found["pascal07"].where == "unavailable"
    assert any("never published" in note for note in found["pascal07"].notes)
    assert all(about.n_classes > 1 for about in found.values())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_is_held_to_a_checksum_or_says_why_it_has_no_source(entry):
    checked_by_files = entry.sources and all(getattr(source, "md5", ()) for source in entry.sources)
    assert entry.digest is not None or checked_by_files
    assert bool(entry.sources) + bool(entry.no_download) == (1 if entry.file else 0)


@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES])
def test_real_files_have_their_registered_checksum(name):
    if "STARSHL_DATA" not in os.environ:
        pytest.skip("STARSHL_DATA names no folder of data sets")
    entry = registry.entry_of(name)
    if entry.file and datasets.locate(name) is None:
        pytest.skip(f"{entry.file} is not in STARSHL_DATA")
    found = datasets.get(name, download=False)
    assert found.X.shape == (entry.n_rows, entry.n_features)
    assert np.array_equal(np.unique(found.y), np.arange(entry.n_classes))


def text_of(rows, separator):
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def pendigits_files(arrays):
    rows = np.column_stack([arrays["X"], arrays["y"]]).tolist()
    n_train = int((arrays["split"] == 0).sum())
    return [text_of(rows[:n_train], ",").encode(), text_of(rows[n_train:], ",").encode()]


def letter_files(arrays):
    rows = zip(arrays["y"].tolist(), arrays["X"].tolist(), strict=True)
    return [text_of(([chr(65 + label), *values] for label, values in rows), ",").encode()]


def vowel_files(arrays):
    columns = (arrays[name].tolist() for name in ("split", "speaker", "sex", "X", "y"))
    rows = ([split, speaker, sex, *X, y] for split, speaker, sex, X, y in zip(*columns, strict=True))
    return [text_of(rows, "  ").encode()]


def usps_files(arrays):
    rows = [[f"{y}.0000", *(f"{v:.3f}" for v in x)] for x, y in zip(arrays["X"], arrays["y"], strict=True)]
    return [gzip.compress(text_of(part, " ").encode(), 1) for part in (rows[:7291], rows[7291:])]


def idx_files(arrays):
    files = []
    for part in (0, 1):
        rows = arrays["split"] == part
        images, labels = arrays["X"][rows], arrays["y"][rows].astype(np.uint8)
        head = b"\x00\x00\x08\x03" + np.array([len(images), 28, 28], ">u4").tobytes()
        files.append(gzip.compress(head + images.tobytes(), 0))
        files.append(gzip.compress(b"\x00\x00\x08\x01" + np.array([len(labels)], ">u4").tobytes() + labels.tobytes()))
    return files


@pytest.mark.parametrize(
    ("name", "publish", "convert_back"),
    [
        ("pendigits", pendigits_files, convert.pendigits_from_text),
        ("letter", letter_files, convert.letter_from_text),
        ("vowel", vowel_files, convert.vowel_from_text),
        ("usps", usps_files, convert.usps_from_text),
        ("mnist", idx_files, convert.digit_images_from_idx),
    ],
)
def test_real_arrays_survive_the_format_they_are_published_in(name, publish, convert_back, tmp_path):
    if "STARSHL_DATA" not in os.environ or datasets.locate(name) is None:
        pytest.skip("STARSHL_DATA names no folder with this data set")
    with np.load(datasets.locate(name)) as archive:
        contents = publish(dict(archive))
    suffix = ".gz" if contents[0][:2] == b"\x1f\x8b" else ".data"
    paths = [tmp_path / f"{k}{suffix}" for k in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    entry = registry.entry_of(name)
    assert store._checked(entry, convert_back(paths), "the test")["X"].shape == (
        entry.n_rows,
        entry.n_features,
    )
