import numpy as np
import pytest

from starshl import BinaryCodes, Collection
from starshl.hashers.baselines import LSHash

from .servers import milvus_file, postgres  # noqa: F401

# Eleven bits: not a multiple of 8, so padding shows; every distance below was counted by hand.
HAND_BITS = [
    "11111111111",
    "01111111111",  # first bit: distance 1 to the first code
    "11111111110",  # last bit: 1
    "11111110111",  # on the border of the first byte: 1
    "00000000000",  # all: 11
    "10101010101",  # every other: 5
]
HAND_DISTANCES = [0, 1, 1, 1, 11, 5]
HAND_ORDER = [0, 1, 2, 3, 5, 4]


@pytest.fixture
def hand_codes():
    return BinaryCodes.from_signs(np.array([[int(bit) for bit in text] for text in HAND_BITS]))


@pytest.fixture
def collection(tmp_path):
    """Eighty items with labels and references under ids of their own."""
    X = np.random.default_rng(0).standard_normal((80, 6))
    with Collection.create(tmp_path / "items", LSHash(13, random_state=0).fit(X)) as items:
        metadata = [{"label": i % 4} for i in range(80)]
        items.add(X, ids=np.arange(80) * 7, metadata=metadata, references=[f"{i}.png" for i in range(80)])
        yield items


@pytest.fixture
def random_codes():
    signs = np.random.default_rng(0).choice([-1, 1], size=(300, 11))
    return BinaryCodes.from_signs(signs)
