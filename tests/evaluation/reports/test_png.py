"""The PNG encoder against a decoder written from the specification."""

import struct
import zlib

import numpy as np
import pytest

from starshl.evaluation.reports.html import encode_png, png_data_uri


def decode(content):
    """Read an 8-bit gray PNG whose lines are not filtered."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        kind, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, color, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, color, rest) == (8, 0, [0, 0, 0])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (32, 32), (3, 257)])
def test_a_picture_survives_the_round_trip(shape):
    image = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(decode(encode_png(image)), image)
    assert np.array_equal(decode(encode_png(np.asfortranarray(image))), image)


def test_a_data_uri_holds_the_file_itself():
    assert png_data_uri(np.zeros((2, 2), np.uint8)).startswith("data:image/png;base64,iVBORw0KGgo")


@pytest.mark.parametrize("image", [np.zeros((2, 2)), np.zeros((2, 2, 3), np.uint8), np.zeros((0, 2), np.uint8)])
def test_other_arrays_are_refused(image):
    with pytest.raises(ValueError, match="must be uint8"):
        encode_png(image)
