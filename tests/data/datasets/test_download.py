"""The downloader against a real server on loopback, faults included."""

import hashlib
import socket

import numpy as np
import pytest

from starshl.data.datasets.download import download, read_json
from starshl.exceptions import ChecksumError, DownloadError

CONTENT = np.random.default_rng(0).bytes(3_000_000)


def test_file_arrives_whole_and_progress_counts_up_to_its_size(web, tmp_path):
    web.put("file.gz", CONTENT)
    seen = []
    path = download(web.url("file.gz"), tmp_path / "new" / "file.gz", progress=lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == ("file.gz", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert [found.name for found in path.parent.iterdir()] == ["file.gz"]


def test_cut_connection_is_resumed_where_it_broke(web, tmp_path):
    page = web.put("file", CONTENT, "cut", "cut")
    assert download(web.url("file"), tmp_path / "file").read_bytes() == CONTENT
    ranges = [request.get("Range") for request in page.requests]
    assert ranges == [None, "bytes=1500000-", "bytes=2250000-"]


def test_download_of_an_earlier_process_is_resumed(web, tmp_path):
    page = web.put("file", CONTENT, "cut", always=True)
    with pytest.raises(DownloadError, match=r"tried 4 times.*is kept"):
        download(web.url("file"), tmp_path / "file")
    arrived = (tmp_path / "file.part").stat().st_size
    page.faults.clear()
    assert download(web.url("file"), tmp_path / "file").read_bytes() == CONTENT
    assert page.requests[-1]["Range"] == f"bytes={arrived}-"


@pytest.mark.parametrize("fault", ["ignore range", "wrong range", "416", "503"])
def test_server_that_cannot_resume_still_gives_the_whole_file(web, tmp_path, fault):
    web.put("file", CONTENT, "cut", fault)
    assert download(web.url("file"), tmp_path / "file").read_bytes() == CONTENT


def test_file_that_changed_meanwhile_is_fetched_anew(web, tmp_path):
    page = web.put("file", CONTENT, "cut", always=True)
    with pytest.raises(DownloadError):
        download(web.url("file"), tmp_path / "file")
    page.faults.clear()
    page.content = CONTENT[::-1]
    assert download(web.url("file"), tmp_path / "file").read_bytes() == CONTENT[::-1]


def test_part_without_a_validator_is_never_continued(web, tmp_path):
    page = web.put("file", CONTENT, "cut", etag=False)
    assert download(web.url("file"), tmp_path / "file").read_bytes() == CONTENT
    assert "Range" not in page.requests[-1]


def test_file_of_unknown_length_arrives(web, tmp_path):
    web.put("file", CONTENT, "no length")
    assert download(web.url("file"), tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("length", ["many", "-5", "1_000", "", "1 2", "9" * 5000, "3e6"], ids=lambda text: text[:9])
def test_length_that_is_not_a_number_is_a_failed_download(length, web, tmp_path):
    web.put("file", CONTENT, f"length {length}", always=True)
    with pytest.raises(DownloadError, match=r"announced a length of .* tried 4 times"):
        download(web.url("file"), tmp_path / "file", pause=0.001)
    assert not (tmp_path / "file").exists()


def test_download_goes_on_after_one_answer_with_a_bad_length(web, tmp_path):
    web.put("file", CONTENT, "length many")
    assert download(web.url("file"), tmp_path / "file", pause=0.001).read_bytes() == CONTENT


@pytest.mark.parametrize("stamp", [b"", b"\xff\xfe", b"a\nInjected: header"])
def test_partial_file_with_a_damaged_stamp_starts_over(stamp, web, tmp_path):
    page = web.put("file", CONTENT)
    (tmp_path / "file.part").write_bytes(b"something else")
    (tmp_path / "file.part.validator").write_bytes(stamp)
    assert download(web.url("file"), tmp_path / "file").read_bytes() == CONTENT
    assert "Range" not in page.requests[0]


def test_missing_file_is_told_at_once(web, tmp_path):
    page = web.put("gone", b"", "404", always=True)
    with pytest.raises(DownloadError, match="answered 404"):
        download(web.url("gone"), tmp_path / "gone")
    assert len(page.requests) == 1
    assert not list(tmp_path.iterdir())


def test_file_with_a_wrong_checksum_is_discarded(web, tmp_path):
    web.put("file", CONTENT)
    with pytest.raises(ChecksumError, match="It was discarded"):
        download(web.url("file"), tmp_path / "file", md5="0" * 32)
    assert not list(tmp_path.iterdir())
    good = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    assert download(web.url("file"), tmp_path / "file", md5=good.upper()).exists()


def test_unreachable_server_is_told(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
    with pytest.raises(DownloadError, match="Check the network"):
        download(url, tmp_path / "file")
    with pytest.raises(DownloadError, match="Check the network"):
        read_json(url)


def test_only_web_addresses_are_followed(tmp_path):
    with pytest.raises(DownloadError, match="only http and https"):
        download("file:///etc/hostname", tmp_path / "file")


def test_json_that_is_missing_or_damaged_is_told(web):
    for content in (b"{", b"[" * 200_000, b'{"a": 1, "a": 2}', b"\xff"):
        web.put("damaged", content)
        with pytest.raises(DownloadError, match="could not be read"):
            read_json(web.url("damaged"))
    web.put("list", b"[1]")
    with pytest.raises(DownloadError, match="list instead of an object"):
        read_json(web.url("list"))
    with pytest.raises(DownloadError, match="answered 404"):
        read_json(web.url("nowhere"))
