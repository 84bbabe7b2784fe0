"""Write docs/binarize_page.png, the top of the page that compares codes of digits with their vectors.

It needs playwright and Debian's chromium, as the tests in a browser do. Run it after the words of the page change.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

from starshl import binarize

PICTURE = Path(__file__).parents[1] / "docs" / "binarize_page.png"
WIDTH, HEIGHT = 760, 1340


def main() -> None:
    X, y = load_digits(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        items = Path(folder, "digits")
        binarize(X, items, y, n_bits=[16, 32])
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((items / "comparison.html").as_uri())
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
