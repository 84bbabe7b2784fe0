"""Take the pictures of the explorer that the documentation shows, on any nested folder of photographs.

    python scripts/explorer_pictures.py photos --labels-from 2

The names of folders are the truth. Most labels are taken away again, so that the pages show what a person sees who has
given a few of them. Those in docs/ show the Grocery Store Dataset of Marcus Klasson, Cheng Zhang and Hedvig Kjellström
(MIT license, github.com/marcusklasson/GroceryStoreDataset). It needs playwright and Debian's chromium, as the tests in
a browser do, and .[network,serve]. Run it after the pages have changed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from starshl import Collection
from starshl.collection.importing.pictures import import_pictures
from starshl.labeling import Lesson, guess_labels
from starshl.service import BackgroundServer, Service, create_app

DOCS = Path(__file__).parents[1] / "docs"
N_LABELED = 150  # of about a thousand photographs: enough to say how sure guesses are
PATIENCE = 600_000  # milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--labels-from", default="inner")
    parser.add_argument("--embedder", default="efficientnet-lite0")
    parser.add_argument("--shown", help="the class to show; by default, the one with the most photographs")
    parser.add_argument("--output", type=Path, default=DOCS)
    options = parser.parse_args()
    level = int(options.labels_from) if options.labels_from.isdigit() else options.labels_from
    with tempfile.TemporaryDirectory() as folder:
        album = Path(folder, "album")
        import_pictures(options.photographs, album, labels_from=level, embedder=options.embedder, progress=True)
        shown = teach(album, options.shown)
        app = create_app(lambda observer: Service([album], observer=observer))
        with BackgroundServer(app) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            take_all(browser, f"{server.address}/explore/album", shown, options.output)
            browser.close()


def teach(album: Path, shown: str | None) -> str:
    """Take all labels away, give those again that are proposed, and guess the rest; return the class to show."""
    with Collection(album) as collection:
        truth = {item.id: item.label for item in collection.get(collection.ids)}
        collection.set_labels(collection.ids, [None] * len(truth))
        with Lesson(collection) as lesson:
            for _ in range(N_LABELED):
                (proposal,) = lesson.propose(1)
                lesson.answer([proposal.id], truth[proposal.id])
            lesson.refit()
            lesson.wait_for_codes(600)
        guess_labels(collection)
        names, counts = np.unique([str(label) for label in truth.values()], return_counts=True)
    return shown or str(names[counts.argmax()])


@contextmanager
def opened(browser: Browser, address: str, width: int, height: int) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    yield page
    page.close()


def take(page: Page, path: Path) -> None:
    """Take a picture once all pictures on the page are there."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    page.screenshot(path=path, type="jpeg", quality=72)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def take_all(browser: Browser, address: str, shown: str, output: Path) -> None:
    with opened(browser, f"{address}?label={shown}", 1180, 760) as page:
        take(page, output / "explorer.jpg")
    with opened(browser, f"{address}/teach", 1180, 820) as page:
        page.wait_for_selector("#proposals")
        take(page, output / "explore_teach.jpg")
    with opened(browser, f"{address}/map", 1180, 820) as page:
        page.wait_for_selector("#legend button")
        box = page.locator("#map").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        take(page, output / "explore_map.jpg")
    with opened(browser, f"{address}?label={shown}&which=guessed", 390, 700) as page:
        page.locator("#all").scroll_into_view_if_needed()
        page.evaluate("window.scrollTo(0, document.querySelector('#all').getBoundingClientRect().top - 90)")
        take(page, output / "explore_phone.jpg")


if __name__ == "__main__":
    main()
