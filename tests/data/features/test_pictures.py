"""Features of pictures, against scikit-image and against loops that anyone can read."""

import numpy as np
import pytest

from starshl import StarRidge, load
from starshl.data.features import PictureFeatures
from starshl.data.features.pictures import color_features, gray_features, hog_features, n_hog_features, to_hsv
from starshl.exceptions import BundleFormatError
from starshl.hashers import picture_hasher
from starshl.hashers.baselines import ITQ


def pictures(n_pictures, *shape, seed=0):
    """Return noise with black areas, where gradients are zero."""
    rng = np.random.default_rng(seed)
    noise = rng.random((n_pictures, *shape))
    noise[:, : shape[0] // 3] = 0.0
    return noise


@pytest.mark.parametrize(("shape", "cell"), [((28, 28, 1), 4), ((28, 28, 1), 7), ((33, 30, 3), 8), ((16, 41, 1), 5)])
def test_whole_votes_are_those_of_scikit_image(shape, cell):
    feature = pytest.importorskip("skimage.feature")
    given = pictures(4, *shape)
    expected = [
        feature.hog(
            picture if shape[2] == 3 else picture[:, :, 0],
            orientations=9,
            pixels_per_cell=(cell, cell),
            cells_per_block=(2, 2),
            block_norm="L2-Hys",
            channel_axis=-1 if shape[2] == 3 else None,
        )
        for picture in given
    ]
    assert np.allclose(hog_features(given, cell, votes="whole"), expected, atol=1e-6)


def shared_votes(picture, cell, circle):
    """Return the histograms of the cells of a gray picture, each vote shared among the nearest bins of each axis."""
    height, width = picture.shape
    cells = np.zeros((height // cell, width // cell, circle // 20))
    for i in range(height):
        for j in range(width):
            down = picture[i + 1, j] - picture[i - 1, j] if 0 < i < height - 1 else 0.0
            across = picture[i, j + 1] - picture[i, j - 1] if 0 < j < width - 1 else 0.0
            angle = np.degrees(np.arctan2(down, across)) % circle
            for a, b, c in np.ndindex(cells.shape):
                from_row = 1 - abs(i + 0.5 - (a + 0.5) * cell) / cell
                from_column = 1 - abs(j + 0.5 - (b + 0.5) * cell) / cell
                turn = abs(angle - (c + 0.5) * 20)
                from_angle = 1 - min(turn, circle - turn) / 20
                shares = [max(0.0, share) for share in (from_row, from_column, from_angle)]
                cells[a, b, c] += np.hypot(down, across) * np.prod(shares)
    return cells / cell**2


def normalized_blocks(cells):
    blocks = []
    for a in range(len(cells) - 1):
        for b in range(cells.shape[1] - 1):
            block = cells[a : a + 2, b : b + 2].ravel()
            block = np.minimum(block / np.sqrt(block @ block + 1e-10), 0.2)
            blocks.append(block / np.sqrt(block @ block + 1e-10))
    return np.concatenate(blocks)


@pytest.mark.parametrize(("shape", "cell", "signed"), [((13, 9), 3, False), ((8, 12), 4, False), ((8, 8), 4, True)])
def test_shared_votes_go_to_the_nearest_cells_and_orientations(shape, cell, signed):
    given = pictures(2, *shape)
    expected = [normalized_blocks(shared_votes(picture, cell, 360 if signed else 180)) for picture in given]
    assert np.allclose(hog_features(given[..., None], cell, signed=signed), expected, atol=1e-6)


def test_only_signed_features_tell_a_picture_from_its_negative():
    given = pictures(3, 16, 16, 1)
    assert np.allclose(hog_features(1 - given, 4), hog_features(given, 4), atol=1e-6)
    assert not np.allclose(hog_features(1 - given, 4, signed=True), hog_features(given, 4, signed=True), atol=0.1)


def test_hog_does_not_depend_on_brightness_and_contrast():
    given = pictures(3, 16, 16, 1)
    assert np.allclose(hog_features(0.2 + 0.5 * given, 4), hog_features(given, 4), atol=1e-3)


def test_hog_counts_blocks_of_two_by_two_cells():
    assert n_hog_features(32, 20, 8) == 3 * 1 * 36
    assert n_hog_features(32, 15, 8) == 0
    with pytest.raises(ValueError, match="votes"):
        hog_features(np.zeros((1, 8, 8, 1)), 4, votes="half")


def test_hue_saturation_and_value_are_those_of_scikit_image():
    color = pytest.importorskip("skimage.color")
    given = np.concatenate([pictures(1, 20, 20, 3)[0], np.eye(3)[:, None].repeat(20, axis=1), np.ones((1, 20, 3))])
    assert np.allclose(to_hsv(given), color.rgb2hsv(given), atol=1e-12)


def test_color_features_are_roots_of_shares():
    half = np.zeros((1, 2, 2, 3))
    half[0, 0, :, 0] = 1.0  # one row red, one black
    features = color_features(half)[0]
    assert features.shape == (128,)
    assert np.allclose(np.flatnonzero(features), [0, 15])  # hue 0: not saturated and dark, fully saturated and bright
    assert np.allclose(features[[0, 15]], np.sqrt(0.5))
    gray = gray_features(np.array([[[[0.0], [1.0]], [[1.0], [1.0]]]]))[0]
    assert np.allclose(gray[[0, -1]] ** 2, [0.25, 0.75])


def test_views_are_the_columns_of_the_parts():
    given = pictures(5, 12, 10, 3)
    step = PictureFeatures((12, 10, 3), cells=(3, 5)).fit(given)
    features, views = step.transform(given), step.views
    assert list(views) == ["pixels", "hog_3", "hog_5", "color"]
    assert features.shape == (5, step.n_features_out_)
    assert features.dtype == np.float32
    assert np.allclose(features[:, views["pixels"]], given.reshape(5, -1))
    assert np.allclose(features[:, views["hog_5"]], hog_features(given, 5, signed=True), atol=1e-6)
    assert np.allclose(features[:, views["color"]], color_features(given), atol=1e-6)


def test_flat_rows_arrays_and_bytes_give_the_same_features():
    given = np.random.default_rng(0).integers(0, 256, (6, 16, 16), dtype=np.uint8)
    expected = PictureFeatures().fit_transform(given)
    for other in (given.reshape(6, -1), given.astype(np.float64), given[..., None]):
        assert np.array_equal(PictureFeatures((16, 16)).fit_transform(other), expected)
    assert np.allclose(PictureFeatures((16, 16)).fit_transform(given / 255), expected, atol=1e-6)
    assert expected[:, :256].max() <= 1.0


def test_white_is_that_of_the_fit():
    given = np.random.default_rng(0).integers(0, 256, (6, 16, 16), dtype=np.uint8)
    step = PictureFeatures().fit(given)
    assert step.white_ == 255
    assert step.transform(np.ones((1, 16, 16)))[0, 0] == np.float32(1 / 255)  # nearly black, not white


def test_gray_pictures_have_colors_if_asked_for():
    given = pictures(3, 16, 16)
    step = PictureFeatures(parts=("color", "pixels")).fit(given)
    assert step.views == {"color": slice(0, 16), "pixels": slice(16, 272)}
    assert np.allclose(step.transform(given)[:, :16], gray_features(given[..., None]))


def test_features_are_the_same_for_any_number_of_threads():
    given = pictures(600, 8, 8, 3)
    one, two = (PictureFeatures(n_jobs=n_jobs).fit_transform(given) for n_jobs in (1, 2))
    assert np.array_equal(one, two)


def test_cells_follow_the_size_of_a_picture():
    assert list(PictureFeatures((32, 48)).views) == ["pixels", "hog_4", "hog_8"]
    assert list(PictureFeatures((8, 8)).views) == ["pixels", "hog_2"]
    assert list(PictureFeatures((224, 224), parts=["hog"]).views) == ["hog_32", "hog_56"]


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({}, np.zeros((2, 64)), "rows of 64 values"),
        ({"shape": (8, 9)}, np.zeros((2, 64)), "has 64 columns"),
        ({"shape": (8, 9)}, np.zeros((2, 8, 8)), "Resize them"),
        ({"shape": (8, 8, 2)}, np.zeros((2, 128)), "red, green and blue"),
        ({"shape": (8,)}, np.zeros((2, 8)), "give \\(height, width\\)"),
        ({"shape": (3, 3)}, np.zeros((2, 9)), "2 x 2 cells"),
        ({"shape": (8, 8), "cells": (5,)}, np.zeros((2, 64)), "2 x 2 cells"),
        ({"shape": (8, 8), "parts": ("edges",)}, np.zeros((2, 64)), "'pixels', 'hog', 'color'"),
        ({"shape": (8, 8), "parts": ()}, np.zeros((2, 64)), "choose one or more"),
        ({}, np.zeros((2, 8, 8, 3, 1)), "give flat rows"),
        ({"shape": (8, 8)}, -np.ones((2, 64)), "from 0 for black"),
        ({"shape": (8, 8)}, np.full((2, 64), 1e6), "from 0 for black"),
        ({"shape": (8, 8)}, np.full((2, 64), np.nan), "NaN"),
    ],
)
def test_wrong_pictures_and_settings_are_refused(settings, given, message):
    with pytest.raises(ValueError, match=message):
        PictureFeatures(**settings).fit(given)


def test_pictures_of_another_size_or_brighter_than_white_are_refused():
    step = PictureFeatures().fit(pictures(3, 8, 8))
    with pytest.raises(ValueError, match="Resize them"):
        step.transform(pictures(3, 9, 8))
    with pytest.raises(ValueError, match="1 for white"):
        step.transform(np.full((1, 8, 8), 200.0))


def test_views_before_fit_need_a_shape():
    with pytest.raises(ValueError, match="depend on their shape"):
        PictureFeatures().views  # noqa: B018


@pytest.fixture(scope="module")
def hasher():
    given, y = stripes(80, seed=0)
    return picture_hasher((8, 8), StarRidge(8, random_state=0)).fit(given, y)


def stripes(n_pictures, seed):
    """Return pictures with horizontal or vertical stripes of any brightness, and which of the two they have."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_pictures)
    phase, size = rng.integers(0, 4, n_pictures), rng.uniform(0.2, 0.9, n_pictures)
    lines = (np.arange(8) + phase[:, None]) // 2 % 2 * size[:, None]
    flat = np.repeat(lines[:, :, None], 8, axis=2)
    return np.where(y[:, None, None] == 0, flat, flat.transpose(0, 2, 1)).reshape(n_pictures, -1), y


def test_picture_hasher_is_one_line(hasher, tmp_path):
    given, y = stripes(60, seed=1)
    assert list(hasher.view_weights_) == ["pixels", "hog_2"]
    assert hasher.score(given, y) == 1.0
    hasher.save(tmp_path / "model.shl")
    loaded = load(tmp_path / "model.shl")
    assert np.array_equal(loaded.decision_function(given), hasher.decision_function(given))
    assert np.array_equal(loaded.encode(given.reshape(60, 8, 8)).packed, hasher.encode(given).packed)


def test_hashers_without_views_get_the_same_features():
    given = pictures(40, 8, 8)
    hasher = picture_hasher((8, 8), ITQ(8, random_state=0), parts=("hog",)).fit(given)
    assert hasher.hasher_.n_features_in_ == n_hog_features(8, 8, 2)


@pytest.mark.parametrize(
    ("name", "value"), [("shape_", np.array([8, 9, 1])), ("white_", 7), ("n_features_out_", 3), ("shape_", None)]
)
def test_damaged_state_is_refused(hasher, name, value):
    step = PictureFeatures((8, 8)).fit(stripes(4, seed=0)[0])
    setattr(step, name, value)
    with pytest.raises(BundleFormatError, match="does not fit the rest"):
        step._check_restored()
