"""Model files: what goes in comes out; what is damaged, edited or foreign is refused in one sentence."""

import os
import threading

import numpy as np
import pytest
from safetensors.numpy import save

import starshl
from starshl._common.bundle import pack_values, read_bundle, unpack_values, write_bundle
from starshl._common.files import write_atomically
from starshl.exceptions import BundleFormatError
from starshl.hashers.baselines import LSHash


def round_trip(values, path):
    plain, arrays = pack_values(values, "v.")
    write_bundle(path, {"values": plain}, arrays)
    header, arrays = read_bundle(path)
    return unpack_values(header["values"], arrays, "v.")


@pytest.mark.parametrize(
    "array",
    [
        *[np.arange(6).reshape(2, 3).astype(dtype) for dtype in "?bBhHiIlLefd"],
        *[np.arange(3).astype(dtype) for dtype in (">i4", ">f8", ">u2")],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0)[::3],
        np.array(3.5),
        np.empty((0, 4)),
        np.array([np.nan, np.inf, -0.0]),
        np.array(["a", "", "ünï🙂"]),
        np.array([["a", "b"], ["c", "dd"]]),
        np.array([], dtype="U3"),
        np.array(["one", "two\x00three"], dtype=object),
        np.array([1, "a", None, 2.5, True], dtype=object),
        np.array([2**70, -1], dtype=object),
        np.array([], dtype=object),
        np.array([b"ab", b"c"]),
        np.array([], dtype="S3"),
        np.array(["a", "b"], dtype="U9"),
        np.array([["a"], ["b"]]).astype(">U2"),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays_come_back_as_they_were(array, tmp_path):
    found = round_trip({"array": array}, tmp_path / "values.star")["array"]
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize(
    "value",
    [True, 3, -(2**70), 0.1, float("inf"), [float("-inf"), 1.0], "text", "", None, [1, "a", None], (1, 2.0), [], ()],
    ids=repr,
)
def test_plain_values_come_back_as_they_were(value, tmp_path):
    found = round_trip({"value": value}, tmp_path / "values.star")["value"]
    assert found == value
    assert type(found) is type(value)


def test_numpy_numbers_come_back_as_numbers(tmp_path):
    assert round_trip({"a": np.float32(0.5), "b": np.int8(3), "c": np.bool_(True)}, tmp_path / "v.star") == {
        "a": 0.5,
        "b": 3,
        "c": True,
    }


@pytest.mark.parametrize(
    "value",
    [len, object(), {"a": 1}, [len], np.array([len]), np.array([1j]), np.array([1], np.longdouble), {1}],
    ids=lambda value: type(value).__name__,
)
def test_what_a_file_cannot_hold_is_refused(value):
    with pytest.raises(TypeError, match="cannot"):
        pack_values({"value": value})


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.star"):
        starshl.load(tmp_path / "nothing.star")
    with pytest.raises(FileNotFoundError, match="no model file"):
        starshl.load(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 8, b"\xff" * 100, b"PK\x03\x04", b"\x80\x04\x95pickle", save({"a": np.ones(2)})],
    ids=["empty", "zeros", "ones", "zip", "pickle", "foreign safetensors"],
)
def test_files_of_another_kind_are_refused(content, tmp_path):
    path = tmp_path / "model.star"
    path.write_bytes(content)
    with pytest.raises(BundleFormatError, match=r"model\.star"):
        starshl.load(path)


def test_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.star"
    X = np.random.default_rng(0).normal(size=(20, 3))
    LSHash(8, random_state=0).fit(X).save(path)
    before = path.read_bytes()

    def interrupt(*args):
        raise KeyboardInterrupt

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, interrupt)
            with pytest.raises(KeyboardInterrupt):
                LSHash(16, random_state=1).fit(X).save(path)
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["model.star"]


def test_file_that_cannot_be_made_leaves_nothing(tmp_path):
    hasher = LSHash(8).fit(np.eye(3))
    hasher.weights_ = len  # nothing that a file could hold
    with pytest.raises(TypeError, match="weights_"):
        hasher.save(tmp_path / "model.star")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("place", "named"), [("no/model.star", "folder: '.*no'"), (".", "is a folder: ")])
def test_saving_where_no_file_can_be_names_the_place(place, named, tmp_path):
    hasher = LSHash(8).fit(np.eye(3))
    with pytest.raises(OSError, match=named):
        hasher.save(tmp_path / place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["StarSHL", "graph", "LSHash"])
def test_saving_the_same_model_twice_gives_the_same_bytes(name, models, tmp_path):
    for file in ("a.star", "b.star"):
        models[name].save(tmp_path / file)
    assert (tmp_path / "a.star").read_bytes() == (tmp_path / "b.star").read_bytes()


def test_file_has_the_permissions_of_any_new_file(models, tmp_path):
    models["LSHash"].save(tmp_path / "model.star")
    (tmp_path / "other").touch()
    assert (tmp_path / "model.star").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_threads_that_write_files_leave_the_umask_alone(tmp_path, monkeypatch):
    def refuse(mask):
        raise AssertionError("os.umask changes the mask of every thread")

    monkeypatch.setattr(os, "umask", refuse)
    old = {path.name for path in tmp_path.iterdir()}
    threads = [threading.Thread(target=write_atomically, args=(tmp_path / f"{k}", b"x")) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (tmp_path / "plain").touch()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1
    assert {path.name for path in tmp_path.iterdir()} - old == {*map(str, range(8)), "plain"}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"a,b\n1,2\n", "a text file"),
        ("größe".encode() * 2000, "a text file"),
        (b"", "an empty file"),
        (b"\x93NUMPY\x01\x00", "a NumPy array"),
        (b"PK\x03\x04....", "a zip archive"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"SQLite format 3\x00", "an SQLite database"),
    ],
)
def test_a_file_of_another_kind_is_called_by_its_kind_and_not_by_what_a_parser_says(content, kind, tmp_path):
    path = tmp_path / "model.star"
    path.write_bytes(content)
    with pytest.raises(BundleFormatError, match=f"it seems to be {kind}") as caught:
        read_bundle(path)
    assert "deserializ" not in str(caught.value)
    assert "header" not in str(caught.value)
