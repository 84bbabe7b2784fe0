"""GIST of pictures made by hand: the features behind the anchors on CIFAR-10 (benchmarks/anchors)."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "anchors" / "gist.py"


@pytest.fixture(scope="module")
def gist():
    spec = importlib.util.spec_from_file_location("gist", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def grating(direction, cycles, size=32):
    x, y = np.meshgrid(np.arange(size), np.arange(size))
    wave = np.sin(2 * np.pi * cycles * (x * np.cos(direction) + y * np.sin(direction)) / size)
    return np.round(127.5 + 100 * wave).astype(np.uint8)


def test_a_picture_of_one_brightness_has_no_energy(gist):
    assert gist.gist(np.full((2, 32, 32), 90, dtype=np.uint8)) == pytest.approx(0.0, abs=1e-4)


def test_a_grating_has_most_energy_in_the_filter_of_its_direction(gist):
    across, along = gist.gist(np.stack([grating(0.0, 8), grating(np.pi / 2, 8)])).reshape(2, 4, 8, 16).sum(axis=(1, 3))
    assert across.argmax() == 0
    assert along.argmax() == 4


def test_finer_gratings_have_their_energy_in_finer_scales(gist):
    energies = (
        gist.gist(np.stack([grating(0.0, cycles) for cycles in (12, 5, 2)])).reshape(3, 4, 8, 16).sum(axis=(2, 3))
    )
    scales = energies.argmax(axis=1)
    assert scales[0] < scales[1] <= scales[2]


def test_pieces_do_not_change_the_descriptors(gist, monkeypatch):
    pictures = np.random.default_rng(0).integers(0, 256, (5, 32, 32), dtype=np.uint8)
    whole = gist.gist(pictures)
    monkeypatch.setattr(gist, "AT_ONCE", 2)
    assert whole.shape == (5, 512)
    np.testing.assert_allclose(gist.gist(pictures), whole, rtol=1e-5, atol=1e-6)
