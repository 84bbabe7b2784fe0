"""The slider for the least probability of hits, in a real browser."""

import numpy as np
import pytest

from starshl import Collection, StarRidge
from starshl.service import BackgroundServer, Service, create_app

from .acting import until

LEAST = 'document.querySelector("output[for=min_probability]").textContent'


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a service of items of three kinds that overlap; item 0 has a label."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(3, 6))[y] * 1.2 + rng.normal(size=(150, 6))
    folder = tmp_path_factory.mktemp("likely") / "things"
    with Collection.create(folder, StarRidge(12, random_state=0).fit(X, y)) as things:
        things.add(X, labels=[label if number % 2 == 0 else None for number, label in enumerate(y.tolist())])
    with BackgroundServer(create_app(lambda observer: Service([folder], observer=observer))) as server:
        yield server.address


def listed(page):
    """Return the addresses of the hits that a page shows."""
    return page.eval_on_selector_all("#neighbors .ranking .tile", "all => all.map((each) => each.href)")


def test_a_slider_leaves_out_what_is_less_likely_and_goes_back_with_the_search(visit):
    page = visit("/explore/things?item=0&k=100")
    everything = listed(page)
    assert len(everything) == 100
    page.focus("#min_probability")
    page.keyboard.press("End")
    until(page, f'{LEAST} === "100%" && location.search.includes("min_probability=1")')
    certain = listed(page)
    assert 0 < len(certain) < 100
    page.keyboard.press("Home")
    until(page, f'{LEAST} === "0%" && !location.search.includes("min_probability")')
    assert len(listed(page)) == 100
    page.go_back()
    until(page, f'{LEAST} === "100%" && location.search.includes("min_probability=1")')
    assert page.input_value("#min_probability") == "1"
    assert len(listed(page)) == len(certain)
    page.hover("#neighbors .ranking .tile >> nth=0")
    page.locator("#neighbors a[data-search]").first.click()
    until(page, '!location.search.includes("item=0&") && location.search.includes("min_probability=1")')
