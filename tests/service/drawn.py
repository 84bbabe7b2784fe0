"""Pictures in two colors and short texts, for collections that take them as they are."""

import io

import numpy as np
from PIL import Image

from starshl.collection import import_pictures, import_texts

COLORS = {"red": (200, 40, 40), "blue": (40, 40, 200)}
TEXTS = [f"{words} {number}" for number in range(12) for words in ("bread and soup", "engine of a car")]


def encoded(image, kind="PNG"):
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


BLUE = encoded(Image.new("RGB", (40, 30), COLORS["blue"]))


def import_raw(root):
    """Make a collection of 24 pictures and one of 24 texts."""
    rng = np.random.default_rng(0)
    for number in range(24):
        label = ("red", "blue")[number % 2]
        (root / "files" / label).mkdir(parents=True, exist_ok=True)
        pixels = rng.normal(COLORS[label], 30, (24, 32, 3)).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(root / "files" / label / f"{number:02}.png")
    import_pictures(root / "files", root / "pictures")
    import_texts(TEXTS, root / "texts", ["food", "cars"] * 12)
