"""Reading picture files: modes, orientation, limits, and files that are no pictures."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from starshl.data.features import ReadPictures, open_picture, preview_of
from starshl.exceptions import PictureError

RED, BLUE = (200, 30, 30), (30, 30, 200)


def _encoded(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _half_and_half(width=20, height=12):
    """Red on the left, blue on the right."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (width // 2, 0, width, height))
    return image


def _header_only_png(width, height):
    """A PNG that announces any size in a hundred bytes."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 10)) + chunk(b"IEND", b"")
    )


def _tagged(tags, content):
    """A little-endian TIFF of one directory: short or long values by tag, and one strip or tile behind them."""
    tags = {**tags, 324 if 322 in tags else 273: 8}  # where that begins
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    start = 8 + len(content)
    return b"II*\0" + struct.pack("<I", start) + content + struct.pack("<H", len(tags)) + entries + bytes(4)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_pictures_are_read_from_paths_bytes_and_objects_alike(tmp_path, kind):
    content = _encoded(_half_and_half(), kind)
    path = tmp_path / "picture"
    path.write_bytes(content)
    sources = [path, str(path), content, Image.open(path)]
    pictures = ReadPictures(side=8).fit().transform(sources)
    assert pictures.shape == (4, 8, 8, 3)
    assert all(np.array_equal(picture, pictures[0]) for picture in pictures)
    assert np.abs(pictures[0, 4, 1].astype(int) - RED).max() < 30
    assert np.abs(pictures[0, 4, -2].astype(int) - BLUE).max() < 30


def test_an_exif_tag_turns_a_picture_upright():
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held so that the right side of the file is up
    turned = open_picture(_encoded(_half_and_half().rotate(90, expand=True), "JPEG", exif=exif.tobytes(), quality=95))
    assert turned.size == (20, 12)
    assert np.abs(np.array(turned.getpixel((3, 6))) - RED).max() < 20
    again = open_picture(turned)
    assert np.array_equal(np.asarray(again), np.asarray(turned))
    assert Image.open(io.BytesIO(preview_of(turned))).size == (20, 12)
    assert turned.size == (20, 12)


def test_the_orientation_of_a_tiff_counts_once():
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = open_picture(_encoded(_half_and_half().rotate(90, expand=True), "TIFF", exif=exif, compression="tiff_lzw"))
    assert turned.size == (20, 12)
    assert (turned.getpixel((3, 6)), turned.getpixel((16, 6))) == (RED, BLUE)


def test_of_an_animated_gif_the_first_picture_counts():
    frames = [Image.new("RGB", (9, 7), color) for color in (RED, BLUE, (0, 255, 0))]
    content = _encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=40)
    assert Image.open(io.BytesIO(content)).n_frames == 3
    assert (open_picture(content).size, open_picture(content).getpixel((4, 4))) == ((9, 7), RED)
    pages = _encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    assert open_picture(pages).getpixel((4, 4)) == RED


def test_making_a_preview_leaves_the_picture_as_it_is():
    picture = open_picture(_half_and_half(400, 200))
    preview_of(picture)
    assert picture.size == (400, 200)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("L", (8, 8), 77), (77, 77, 77)),
        (Image.new("1", (8, 8), 1), (255, 255, 255)),
        (Image.new("RGBA", (8, 8), (*RED, 255)), RED),
        (Image.new("RGBA", (8, 8), (*RED, 0)), (255, 255, 255)),
        (Image.new("LA", (8, 8), (10, 0)), (255, 255, 255)),
        (Image.new("RGB", (8, 8), RED).convert("P", palette=Image.Palette.ADAPTIVE), RED),
        (Image.fromarray(np.full((8, 8), 0x8080, dtype=np.uint16)), (128, 128, 128)),
    ],
    ids=["gray", "black and white", "opaque", "clear", "clear gray", "palette", "16 bits"],
)
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_every_color_mode_becomes_rgb_on_white(image, expected, kind):
    assert open_picture(_encoded(image, kind)).getpixel((4, 4)) == expected


def test_a_cmyk_jpeg_keeps_its_colors():
    image = Image.new("RGB", (16, 16), RED).convert("CMYK")
    assert np.abs(np.array(open_picture(_encoded(image, "JPEG", quality=95)).getpixel((8, 8))) - RED).max() < 20


def test_a_palette_with_a_clear_color_shows_white_there():
    image = Image.new("P", (8, 8), 0)
    image.putpalette([*RED, *BLUE])
    for kind in ("PNG", "GIF"):
        assert open_picture(_encoded(image, kind, transparency=0)).getpixel((4, 4)) == (255, 255, 255)
        assert open_picture(_encoded(image, kind)).getpixel((4, 4)) == RED


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
def test_bmp_files_of_every_mode_are_read(mode):
    image = Image.new("RGB", (8, 8), (255, 255, 255)).convert(mode)
    assert open_picture(_encoded(image, "BMP")).getpixel((4, 4)) == (255, 255, 255)


def test_floating_point_numbers_are_refused_with_the_name_of_the_file(tmp_path):
    Image.new("F", (8, 8), 0.5).save(tmp_path / "depth.tif")
    with pytest.raises(PictureError, match=r"depth\.tif' holds floating-point"):
        open_picture(tmp_path / "depth.tif")


def test_a_tile_that_is_larger_than_a_picture_may_be_is_refused():
    # A decoder would make room for 1.6 GB to show 16 pixels.
    tags = {256: 4, 257: 4, 258: 8, 259: 8, 262: 1, 277: 1, 322: 40_000, 323: 40_000}
    content = zlib.compress(bytes(100))
    with pytest.raises(PictureError, match="40,000 x 40,000 pixels"):
        open_picture(_tagged({**tags, 325: len(content)}, content))


def test_the_middle_of_a_wide_picture_can_be_kept_instead_of_all_of_it():
    image = Image.new("RGB", (30, 10), RED)
    image.paste(BLUE, (10, 0, 20, 10))
    whole, center = (ReadPictures(side=6, shape=shape).fit().transform([image])[0] for shape in ("whole", "center"))
    assert np.abs(whole[0, 0].astype(int) - RED).max() <= 2
    # At the border of what is kept, the filter sees a little of what was cut off.
    assert np.abs(center.astype(int) - BLUE).max() <= 10


def test_a_large_jpeg_gives_nearly_the_same_picture_as_when_it_is_decoded_completely():
    rng = np.random.default_rng(0)
    rough = Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).resize(
        (960, 960), Image.Resampling.BICUBIC
    )
    content = _encoded(rough, "JPEG", quality=95)
    fast = ReadPictures(side=32).fit().transform([content])[0]
    slow = np.asarray(open_picture(content).resize((32, 32), Image.Resampling.BICUBIC))
    assert np.abs(fast.astype(int) - slow).mean() < 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a picture"),
        (
            b"plain text, no picture",
            "it is of another kind",
        ),
        (_encoded(_half_and_half())[:60], "not a picture"),
        (_encoded(_half_and_half(), "JPEG")[:300], "not a picture"),
        (_encoded(_half_and_half(), "GIF")[:30], "not a picture"),
        (_encoded(_half_and_half(), "BMP")[:300], "not a picture"),
        (_encoded(_half_and_half(), "TIFF", compression="tiff_lzw")[:60], "not a picture"),
        (_encoded(_half_and_half(), "PPM"), "of another kind"),
        (_encoded(_half_and_half(), "ICO"), "of another kind"),
        (b"GIF89a" + struct.pack("<HHBBB", 40_000, 40_000, 0, 0, 0) + b";", "not a picture|too large"),
        (b"BM" + struct.pack("<IIIIiiHHIIiiII", 99, 0, 54, 40, 30_000, 30_000, 1, 24, 0, 0, 1, 1, 0, 0), "too large"),
        (_tagged({256: 30_000, 257: 30_000, 258: 8, 259: 1, 262: 1, 277: 1, 278: 30_000, 279: 9}, bytes(9)), "large"),
        (_encoded(Image.new("RGB", (1, 1))), "1 x 1 pixels"),
        (_encoded(Image.new("RGB", (500, 3))), "at least 4 x 4"),
        (_header_only_png(20_000, 10_000), r"too large.*100 megapixels"),
        (_header_only_png(10_001, 10_000), "10,001 x 10,000 pixels"),
        (_header_only_png(2**31 - 1, 2**31 - 1), "too large"),
    ],
    ids=[
        "empty",
        "text",
        "half a PNG",
        "half a JPEG",
        "half a GIF",
        "half a BMP",
        "half a TIFF",
        "PPM",
        "ICO",
        "GIF of 1,600 MP",
        "BMP of 900 MP",
        "TIFF of 900 MP",
        "one pixel",
        "a line",
        "200 MP",
        "over 100 MP",
        "huge",
    ],
)
def test_what_is_no_picture_is_refused_with_a_reason(content, message):
    with pytest.raises(PictureError, match=message):
        open_picture(content)


def test_a_limit_of_pixels_can_be_lower():
    with pytest.raises(PictureError, match=r"Up to 0\.0001 megapixels"):
        ReadPictures(side=8, max_pixels=100).fit().transform([_encoded(_half_and_half())])


@pytest.mark.parametrize("array", [np.zeros((8, 8), np.float64), np.zeros((8, 8, 4), np.uint8), np.zeros(64, np.uint8)])
def test_arrays_that_are_no_pictures_are_refused(array):
    with pytest.raises(PictureError, match="must be uint8"):
        open_picture(array)


def test_other_objects_and_missing_files_are_refused(tmp_path):
    with pytest.raises(TypeError, match="must be a path"):
        open_picture(12)
    with pytest.raises(FileNotFoundError):
        open_picture(tmp_path / "absent.png")


def test_a_damaged_exif_tag_does_not_matter():
    content = _encoded(_half_and_half(), "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\xff" * 30)
    assert open_picture(content).size == (20, 12)


def test_previews_are_small_and_keep_the_shape():
    preview = Image.open(io.BytesIO(preview_of(_half_and_half(1000, 500))))
    assert (preview.format, preview.size) == ("WEBP", (256, 128))


def test_previews_of_small_pictures_keep_every_pixel():
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(preview_of(pixels)))), pixels)


@pytest.mark.parametrize(
    ("settings", "message"), [({"side": 0}, "side"), ({"shape": "oval"}, "shape"), ({"max_pixels": 0}, "max_pixels")]
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ReadPictures(**settings).fit()
