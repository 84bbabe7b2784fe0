"""Index files: complete or refused."""

import errno
import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file

from starshl import BinaryCodes
from starshl.exceptions import IndexFormatError
from starshl.index import BucketIndex, FlatIndex, MultiIndex, load_index
from starshl.index.files import write_index_file


@pytest.fixture(params=[FlatIndex, BucketIndex, MultiIndex])
def index(request):
    signs = np.random.default_rng(0).choice([-1, 1], size=(300, 12))
    return request.param.from_codes(BinaryCodes.from_signs(signs[np.arange(600) % 300]))


@pytest.fixture
def path(index, tmp_path):
    index.save(tmp_path / "codes.index")
    return tmp_path / "codes.index"


def test_any_safetensors_reader_opens_the_file(index, path):
    assert sorted(load_file(path)["ids"].tolist()) == list(range(600))


def test_the_same_index_gives_the_same_bytes(index, path, tmp_path):
    index.save(tmp_path / "again.index")
    assert path.read_bytes() == (tmp_path / "again.index").read_bytes()


def test_changes_to_a_mapped_index_never_reach_the_file(path):
    before = path.read_bytes()
    mapped = load_index(path, memory_map=True)
    mapped.remove([0, 5])
    mapped.add(mapped.reconstruct([7]), [1000])
    assert path.read_bytes() == before
    assert len(load_index(path)) == 600


@pytest.mark.parametrize("memory_map", [False, True])
def test_a_file_cut_anywhere_is_refused(path, memory_map):
    content = path.read_bytes()
    for length in [0, 4, 8, 100, len(content) // 2, len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(IndexFormatError, match="truncated, damaged"):
            load_index(path, memory_map=memory_map, verify=False)


def test_trailing_bytes_are_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(IndexFormatError, match="should end after"):
        load_index(path)


def test_a_flipped_bit_anywhere_is_refused(path):
    content = path.read_bytes()
    for place in range(0, len(content), 97):
        broken = bytearray(content)
        broken[place] ^= 4
        path.write_bytes(broken)
        with pytest.raises(IndexFormatError):
            load_index(path, memory_map=True)


@pytest.mark.parametrize(("number", "advice"), [(1, "Save the index again"), (3, "Install a newer starshl")])
def test_another_format_is_refused_by_name(path, number, advice):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    layout = json.loads(content[8 : 8 + length])
    inner = json.loads(layout["__metadata__"]["starshl-index"]) | {"format": number}
    layout["__metadata__"]["starshl-index"] = json.dumps(inner)
    head = json.dumps(layout).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + content[8 + length :])
    with pytest.raises(IndexFormatError, match=rf"format {number}; .* reads format 2\. {advice}"):
        load_index(path)


def test_a_missing_file_and_another_file_are_told_apart(tmp_path):
    with pytest.raises(FileNotFoundError, match="no index file"):
        load_index(tmp_path / "nothing.index")
    (tmp_path / "text.index").write_text("not an index at all")
    with pytest.raises(IndexFormatError, match="of another kind"):
        load_index(tmp_path / "text.index")


def test_a_full_disk_leaves_the_old_file_and_no_other(index, path, monkeypatch):
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    index.remove(index.ids[:10].copy())
    with pytest.raises(OSError, match="No space left"):
        index.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["codes.index"]


# From here on: files that a stranger wrote, with a checksum that matches. Whatever they hold, loading must refuse
# them before a compiled loop follows a number in them, with and without comparing the checksum.

WORDS = np.array([[5, 9, 3]], np.uint32)
FLAT = {"kind": "flat", "n_bits": 32, "space_id": None}
BUCKETS = {"kind": "buckets", "n_bits": 32, "space_id": None}


def refused(path, match, **options):
    for memory_map in (False, True):
        for verify in (False, True):
            with pytest.raises(IndexFormatError, match=match):
                load_index(path, memory_map=memory_map, verify=verify, **options)


def bucket_arrays(starts=(0, 2, 3, 5), ids=(0, 4, 1, 2, 3), planes=WORDS, dtype=np.int32):
    return {"planes": planes, "starts": np.array(starts, dtype), "ids": np.array(ids, np.int64)}


def flat_arrays(ids=(3, 5, 9), planes=WORDS):
    return {"planes": planes, "ids": np.array(ids, np.int64)}


def test_the_crafted_files_below_would_load_if_nothing_were_wrong(tmp_path):
    for header, arrays in ((FLAT, flat_arrays()), (BUCKETS, bucket_arrays())):
        write_index_file(tmp_path / "good.index", header, arrays)
        for memory_map in (False, True):
            for verify in (False, True):
                assert len(load_index(tmp_path / "good.index", memory_map=memory_map, verify=verify)) >= 3


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"starts": (0, 3, 2, 5)}, "starts do not rise"),
        ({"starts": (0, 2, 2, 5)}, "starts do not rise"),
        ({"starts": (1, 2, 3, 5)}, "starts do not rise"),
        ({"starts": (-1, 2, 3, 5)}, "starts do not rise"),
        ({"starts": (0, 2, 3, 4)}, "starts do not rise"),
        ({"starts": (0, 2, 3, 6)}, "starts do not rise"),
        ({"starts": (0, 2, 2**31 - 1, 5)}, "starts do not rise"),
        ({"starts": (0, -(2**40), 3, 5), "dtype": np.int64}, "starts do not rise"),
        ({"starts": (0, 2, 3, 5), "dtype": np.uint32}, "its starts are uint32"),
        ({"starts": [[0, 2, 3, 5]]}, "its planes are"),
        ({"starts": ()}, "its planes are"),
        ({"starts": (0, 5)}, "its planes are"),
        ({"ids": (4, 0, 1, 2, 3)}, "ids of a bucket are not in ascending order"),
        ({"ids": (0, 0, 1, 2, 3)}, "ids of a bucket are not in ascending order"),
        ({"ids": (1, 4, 0, 2, 3)}, "not ordered by their lowest ids"),
        ({"ids": (0, 2, 1, 2, 3)}, "occurs more than once"),
        ({"ids": (0, 3 * 2**60, 1, 2, 3 * 2**60)}, "occurs more than once"),
        ({"ids": [[0, 4, 1, 2, 3]]}, "its ids are int64 of shape"),
        ({"planes": np.array([[5, 9, 5]], np.uint32)}, "two buckets hold the same code"),
        ({"planes": WORDS.astype(np.uint64)}, "its planes are uint64"),
        ({"planes": WORDS[:, :2]}, "its planes are"),
    ],
)
def test_sealed_buckets_that_would_mislead_a_search_are_refused(tmp_path, changed, match):
    write_index_file(tmp_path / "bad.index", BUCKETS, bucket_arrays(**changed))
    refused(tmp_path / "bad.index", match)


@pytest.mark.parametrize("kind", ["flat", "multi"])
@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"ids": (5, 3, 9)}, "ids are not in ascending order"),
        ({"ids": (3, 3, 9)}, "ids are not in ascending order"),
        ({"ids": (3, 5)}, "its planes are"),
        ({"planes": np.vstack([WORDS, WORDS])}, "its planes are"),
        ({"planes": WORDS[0]}, "its planes are"),
        ({"planes": WORDS.astype(np.int64)}, "its planes are int64"),
    ],
)
def test_sealed_flat_indexes_that_would_mislead_a_search_are_refused(tmp_path, kind, changed, match):
    write_index_file(tmp_path / "bad.index", {"kind": kind, "n_bits": 32, "space_id": None}, flat_arrays(**changed))
    refused(tmp_path / "bad.index", match)


@pytest.mark.parametrize("kind", ["flat", "multi", "buckets"])
@pytest.mark.parametrize("n_bits", [1, 3, 24, 31])
def test_a_length_below_that_of_the_codes_is_refused(tmp_path, kind, n_bits):
    planes = np.array([[1 << 31, 1, 0]], np.uint32)
    arrays = bucket_arrays(planes=planes) if kind == "buckets" else flat_arrays(planes=planes)
    write_index_file(tmp_path / "bad.index", {"kind": kind, "n_bits": n_bits, "space_id": None}, arrays)
    refused(tmp_path / "bad.index", "padding bits|its planes are")


@pytest.mark.parametrize("n_bits", [0, -32, True, 32.0, "32", None, [32], 10**30, 33])
def test_a_length_that_is_no_length_is_refused(tmp_path, n_bits):
    write_index_file(tmp_path / "bad.index", FLAT | {"n_bits": n_bits}, flat_arrays())
    refused(tmp_path / "bad.index", "does not hold a complete index")


@pytest.mark.parametrize("header", [{"kind": "tree"}, {"kind": ["flat"]}, {"kind": None}, {"extra": 1}])
def test_a_header_that_names_no_known_index_is_refused(tmp_path, header):
    write_index_file(tmp_path / "bad.index", FLAT | header, flat_arrays())
    refused(tmp_path / "bad.index", "does not hold a complete index")


@pytest.mark.parametrize("number", [0, -1, True, "1", 1.0, None])
def test_a_format_number_that_is_none_is_refused(tmp_path, number):
    write_index_file(tmp_path / "bad.index", FLAT | {"format": number}, flat_arrays())
    refused(tmp_path / "bad.index", "no format number")


def test_missing_and_unknown_arrays_are_refused(tmp_path):
    for arrays in ({"ids": np.arange(3)}, flat_arrays() | {"more": np.arange(3)}):
        write_index_file(tmp_path / "bad.index", FLAT, arrays)
        refused(tmp_path / "bad.index", "it holds the arrays")


def write_raw(path, layout_text, data=b"", length=None):
    head = layout_text.encode()
    path.write_bytes((len(head) if length is None else length).to_bytes(8, "little") + head + data)


@pytest.mark.parametrize(
    "layout",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        "[]",
        "1",
        "null",
        '{"__metadata__": []}',
        '{"__metadata__": {"starshl-index": 1, "sha256": 1}}',
        '{"__metadata__": {"starshl-index": "\\ud800", "sha256": ""}}',
        json.dumps({"__metadata__": {"starshl-index": "[" * 200_000, "sha256": ""}}),
        '{"n": ' + "9" * 10_000 + "}",
        "\0",
    ],
)
def test_headers_that_are_no_header_are_refused(tmp_path, layout):
    write_raw(tmp_path / "bad.index", layout)
    refused(tmp_path / "bad.index", "not a readable index file")


def test_a_huge_header_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "bad.index"
    with path.open("wb") as file:
        file.write((1 << 33).to_bytes(8, "little"))
        file.truncate((1 << 33) + 8)  # takes no space on the disk
    with pytest.raises(IndexFormatError, match="at most 1048576 are allowed"):
        load_index(path, memory_map=True)


@pytest.mark.parametrize(
    "entry",
    [
        {"shape": [-1, -3]},
        {"shape": [True, 3]},
        {"shape": [1.0, 3]},
        {"shape": 3},
        {"shape": [10**30, 0]},
        {"shape": [2**62, 4]},
        {"data_offsets": [0, 10**30]},
        {"data_offsets": [24, 12]},
        {"data_offsets": [23, 35]},
        {"data_offsets": [24]},
        {"dtype": "F64"},
        {"dtype": ["U32"]},
    ],
)
def test_array_entries_that_are_not_consistent_are_refused(tmp_path, entry):
    path = tmp_path / "bad.index"
    write_index_file(path, FLAT, flat_arrays())
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    layout = json.loads(content[8 : 8 + length])
    layout["planes"] |= entry
    write_raw(path, json.dumps(layout).ljust(length + 64 - len(json.dumps(layout)) % 64), content[8 + length :])
    refused(path, "not a readable index file")
