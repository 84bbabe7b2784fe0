"""Index files: complete or refused."""

import errno
import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file

from starshl.codes import BinaryCodes
from starshl.exceptions import IndexFormatError
from starshl.index import BucketIndex, FlatIndex, MultiIndex, load_index


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


def test_a_newer_format_is_refused_by_name(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    layout = json.loads(content[8 : 8 + length])
    inner = json.loads(layout["__metadata__"]["starshl-index"]) | {"format": 2}
    layout["__metadata__"]["starshl-index"] = json.dumps(inner)
    head = json.dumps(layout).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + content[8 + length :])
    with pytest.raises(IndexFormatError, match="format 2; this version of starshl reads up to 1"):
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
