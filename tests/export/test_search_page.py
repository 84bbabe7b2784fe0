"""A page of a collection holds what a browser needs, and its search gives the answers of the indexes."""

import base64
import gzip
import json
import re
import shutil
import subprocess
import unicodedata
from importlib.resources import files

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer

from starshl import BinaryCodes, Collection, HybridHasher, StarRidge
from starshl.data.datasets import cache_folder
from starshl.data.features import Embedder, PictureFeatures, ReadPictures, TableFeatures, Text
from starshl.exceptions import MissingExtraError
from starshl.export import browser_runtime, write_search_page
from starshl.hashers import PreparedHasher, picture_hasher
from starshl.hashers.baselines import LSHash
from starshl.index import FlatIndex

PAGE_SCRIPT = files("starshl.export").joinpath("page", "page.js").read_text(encoding="utf-8")
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:120], y[:120]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """A folder with files of the right names, so that no test needs the network."""
    folder = tmp_path_factory.mktemp("dist")
    for name in ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"):
        (folder / name).write_bytes(b"a runtime")
    return folder


def embedded(page, name):
    text = re.search(rf'<script id="{name}" type="text/plain">([^<]*)</script>', page).group(1)
    return gzip.decompress(base64.b64decode(text))


def manifest_of(page):
    return json.loads(re.search(r'<script id="manifest"[^>]*>(.*?)</script>', page).group(1))


def test_a_page_holds_codes_labels_titles_previews_and_the_model(digits, runtime, tmp_path):
    X, y = digits
    hasher = StarRidge(40, random_state=0).fit(X, y)
    with Collection.create(tmp_path / "items", hasher, title="name") as items:
        ids = items.add(
            X[:50],
            labels=[int(label) if place % 2 else None for place, label in enumerate(y[:50])],
            metadata=[{"name": f"</script> {place}"} for place in range(50)],
            previews=[PNG if place % 3 else None for place in range(50)],
        )
        facts = write_search_page(items, tmp_path / "page.html", title="<b>", picture=(8, 8), runtime=runtime)
        expected = items.codes(ids).packed
    page = (tmp_path / "page.html").read_text()
    assert "<h1>&lt;b&gt;</h1>" in page
    words = np.frombuffer(embedded(page, "codes"), np.uint8).reshape(50, 8)
    np.testing.assert_array_equal(words[:, :5], expected)
    assert not words[:, 5:].any()
    listed = json.loads(embedded(page, "items"))
    assert listed["titles"][7] == "</script> 7"
    assert listed["labels"][:2] == [-1, listed["label_names"].index(str(y[1]))]
    assert np.diff([0, *listed["preview_ends"]]).tolist()[:3] == [0, len(PNG), len(PNG)]
    assert embedded(page, "model")[:2] == b"\x08\x08"  # the version of the format
    manifest = manifest_of(page)
    assert manifest["picture"] == {"height": 8, "width": 8, "channels": 1, "white": 16.0, "crop": "whole"}
    assert (facts["n_items"], facts["n_previews"], facts["file_bytes"]) == (50, 33, len(page.encode()))


def test_the_same_collection_makes_the_same_page(digits, runtime, tmp_path):
    X, _ = digits
    with Collection.create(tmp_path / "items", LSHash(8, random_state=0).fit(X)) as items:
        items.add(X)
        for name in ("one.html", "two.html"):
            write_search_page(items, tmp_path / name, runtime=runtime)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_pictures_go_through_the_embedder_or_the_preprocessing_of_the_hasher(digits, runtime, tmp_path):
    X, y = digits
    hasher = picture_hasher((8, 8), StarRidge(16, random_state=0)).fit(X, y)
    with Collection.create(tmp_path / "prepared", hasher) as items:
        items.add(X)
        facts = write_search_page(items, tmp_path / "prepared.html", runtime=runtime)
    assert facts["picture"] == {"height": 8, "width": 8, "channels": 1, "white": 255, "crop": "whole"}
    pictures = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    features = PictureFeatures((8, 8, 3)).fit(pictures)
    rows = features.transform(pictures)
    embedder = Embedder("pictures", [ReadPictures(side=8, shape="center").fit(), features])
    with Collection.create(tmp_path / "album", LSHash(16, random_state=0).fit(rows), embedder=embedder) as items:
        items.add(rows)
        facts = write_search_page(items, tmp_path / "album.html", runtime=runtime)
    assert facts["picture"] == {"height": 8, "width": 8, "channels": 3, "white": 255, "crop": "center"}
    assert facts["n_features"] == 192


def test_a_page_of_texts_takes_texts(runtime, tmp_path):
    texts = ["a red car", "a blue car", "fresh bread", "old bread"]
    text = Text(n_components=2).fit(texts)
    hasher = LSHash(8, random_state=0).fit(text.transform(texts))
    with Collection.create(tmp_path / "items", hasher, embedder=Embedder("texts", [text])) as items:
        items.add(text.transform(texts))
        facts = write_search_page(items, tmp_path / "page.html", runtime=runtime)
    assert (facts["encodes"], facts["takes"]) == (True, "texts")
    assert facts["known_words"] == ["blue", "bread", "car", "fresh", "old", "red"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the script of the page")
def test_the_page_splits_texts_as_python_does(tmp_path):
    pattern = re.search(r"toLowerCase\(\)\.match\((/.*?/gu)\)", PAGE_SCRIPT).group(1)
    letters = "".join(chr(code) for code in range(0x30000) if unicodedata.category(chr(code)) not in ("Cn", "Cs"))
    texts = ["A red car's x-ray", "ΟΔΥΣΣΕΥΣ, İZMİR; Straße"]
    texts += [letters[place : place + 7] for place in range(0, len(letters), 7)]
    script = f"""
    const texts = JSON.parse(require("fs").readFileSync(0, "utf-8"));
    console.log(JSON.stringify(texts.map((text) => text.toLowerCase().match({pattern}) ?? [])));
    """
    (tmp_path / "split.cjs").write_text(script)
    told = subprocess.run(
        ["node", tmp_path / "split.cjs"], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    split = TfidfVectorizer().build_analyzer()
    assert json.loads(told.stdout) == [split(text) for text in texts]


def test_a_model_that_no_graph_expresses_leaves_a_page_that_searches_for_items(tmp_path):
    table = np.array([["a", 1.0], ["b", 2.0], ["c", 3.0]], dtype=object)
    hasher = PreparedHasher([TableFeatures()], LSHash(2, random_state=0)).fit(table)
    with Collection.create(tmp_path / "items", hasher) as items:
        items.add(codes=hasher.encode(table))
        facts = write_search_page(items, tmp_path / "page.html")
    assert not facts["encodes"]
    assert "categories" in facts["why_not"]
    assert 'id="wasm"' not in (tmp_path / "page.html").read_text()


def test_a_page_compares_residual_codes_bit_by_bit(digits, runtime, tmp_path):
    X, y = digits
    hasher = HybridHasher(16, form="residual", class_weight=2.0, random_state=0).fit(X, y)
    with Collection.create(tmp_path / "items", hasher) as items:
        items.add(X, labels=y)
        rule = write_search_page(items, tmp_path / "page.html", runtime=runtime)["rule"]
        bits = items.codes(items.ids).to_signs()[:, rule["class_bits"] :]
    distances = np.where(y[:, None] == y, (bits[:, None] != bits[None]).sum(axis=2), np.inf)
    np.fill_diagonal(distances, np.inf)
    usual, far = np.quantile(np.sort(distances, axis=1)[:, :10], [0.5, 0.9])
    assert rule["class_bits"] == hasher.class_bits_
    assert (rule["weight"], rule["saturation"]) == (2.0 * max(far - usual, 1), far)


def test_what_a_page_cannot_show_is_refused_and_nothing_is_written(digits, runtime, tmp_path):
    X, _ = digits
    with Collection.create(tmp_path / "items", LSHash(8, random_state=0).fit(X)) as items:
        with pytest.raises(ValueError, match="is empty"):
            write_search_page(items, tmp_path / "page.html", runtime=runtime)
        items.add(X)
        with pytest.raises(ValueError, match=r"81 values.*have 64"):
            write_search_page(items, tmp_path / "page.html", picture=(9, 9), runtime=runtime)
        with pytest.raises(FileNotFoundError, match="has no file"):
            write_search_page(items, tmp_path / "page.html", runtime=tmp_path)
    assert not (tmp_path / "page.html").exists()


def test_a_full_disk_is_named_and_leaves_no_half_of_a_page(digits, runtime, tmp_path, full_disk):
    X, _ = digits
    with Collection.create(tmp_path / "items", LSHash(8, random_state=0).fit(X)) as items:
        items.add(X)
        with full_disk(after=5000), pytest.raises(OSError, match=r"page\.html"):
            write_search_page(items, tmp_path / "page.html", runtime=runtime)
    assert [path.name for path in tmp_path.iterdir()] == ["items"]


def test_a_machine_without_npm_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match=r"no npm.*Node\.js"):
        browser_runtime.browser_runtime()


def test_an_installation_that_fails_leaves_no_runtime(tmp_path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(OSError, match="no network"):
        browser_runtime.browser_runtime()
    assert list(cache_folder().iterdir()) == []


def test_a_runtime_that_lacks_a_file_is_completed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = cache_folder() / f"{browser_runtime.PACKAGE}-{browser_runtime.VERSION}"
    kept.mkdir(parents=True)
    (kept / "ort.wasm.bundle.min.mjs").write_bytes(b"old")
    npm = tmp_path / "npm"
    npm.write_text(
        f'#!/bin/sh\ndist="$3/node_modules/{browser_runtime.PACKAGE}/dist"\nmkdir -p "$dist"\n'
        'printf new > "$dist/ort.wasm.bundle.min.mjs"\nprintf wasm > "$dist/ort-wasm-simd-threaded.wasm"\n'
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = browser_runtime.browser_runtime()
    assert (found.script, found.wasm) == (b"new", b"wasm")
    assert [path.name for path in cache_folder().iterdir()] == [kept.name]


@pytest.mark.parametrize(("largest", "expected"), [(2**53, 2**53), (2**53 + 1, str(2**53 + 1))])
def test_ids_keep_all_their_digits_in_a_page(digits, runtime, tmp_path, largest, expected):
    X, _ = digits
    with Collection.create(tmp_path / "items", LSHash(16, random_state=0).fit(X)) as items:
        items.add(X[:2], ids=[3, largest])
        write_search_page(items, tmp_path / "page.html", runtime=runtime)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert json.loads(embedded(page, "items"))["ids"][1] == expected


def answers_of_the_page(tmp_path, given):
    """What the search of a page finds: each query asked with each least probability."""
    script = files("starshl.export").joinpath("page", "search.js").read_text()
    script += """
    const given = JSON.parse(require("fs").readFileSync(0, "utf-8"));
    const words = Uint32Array.from(given.codes.flatMap((code) => [...wordsOf(code)]));
    const width = wordsOf(given.codes[0]).length;
    const classWords = given.rule && new ClassWords(words, width, given.rule);
    const ask = (query, least) => nearest(words, query, given.k, classWords, least);
    const queries = given.queries.map(({ code, posterior }) => ({ code: code && wordsOf(code), posterior }));
    const items = given.items.map((item) => ({
      code: words.subarray(item * width, (item + 1) * width), posterior: classWords?.posteriorOf(item) }));
    console.log(JSON.stringify([...queries, ...items].map((query) => given.least.map((least) => ask(query, least)))));
    """
    (tmp_path / "search.cjs").write_text(script)
    told = subprocess.run(
        ["node", tmp_path / "search.cjs"], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    return json.loads(told.stdout)


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the script of the page")
@pytest.mark.parametrize("n_bits", [20, 32, 75])
def test_the_search_of_the_page_is_that_of_the_indexes(n_bits, tmp_path):
    rng = np.random.default_rng(n_bits)
    signs = rng.choice([-1, 1], (300, n_bits))
    codes, queries = BinaryCodes.from_signs(signs), BinaryCodes.from_signs(signs[:12] * rng.choice([1, 1, -1], n_bits))
    asked = [{"code": code} for code in queries.packed.tolist()]
    given = {"codes": codes.packed.tolist(), "queries": asked, "items": [], "rule": None, "k": 40, "least": [0]}
    distances, ids = FlatIndex.from_codes(codes).search(queries, k=40)
    for (answer,), near, found in zip(answers_of_the_page(tmp_path, given), distances, ids, strict=True):
        assert answer == {"positions": found.tolist(), "distances": near.tolist(), "probabilities": None}


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the script of the page")
@pytest.mark.parametrize("method", ["ridge", "hybrid"])
def test_probabilities_of_the_page_are_those_of_the_collection(method, runtime, tmp_path):
    X, y = load_digits(return_X_y=True)
    made = {"ridge": StarRidge(24, random_state=0), "hybrid": HybridHasher(40, random_state=0)}[method]
    hasher = made.fit(X[:300], y[:300])
    with Collection.create(tmp_path / "items", hasher) as items:
        items.add(
            X[300:900], labels=[label if number % 3 else None for number, label in enumerate(y[300:900].tolist())]
        )
        items.merge_classes(7, 1)
        items.remove_class(3)
        facts = write_search_page(items, tmp_path / "page.html", runtime=runtime)
        least = [0, 0.5, 0.99]
        asked = [items.search(X[900:910], k=24, min_probability=each) for each in least]
        asked = [
            [*rows, *items.search(items=[0, 1, 2], k=24, min_probability=each)]
            for rows, each in zip(asked, least, strict=True)
        ]
        codes = items.codes(items.ids).packed.tolist()
    page = (tmp_path / "page.html").read_text()
    rule = facts["rule"] | {"labels": json.loads(embedded(page, "items")).get("label_classes")}
    rule["entries"] = None if "codewords" in rule else np.frombuffer(embedded(page, "entries"), "<f4").tolist()
    queries = hasher.encode_queries(X[900:910])
    asking = [
        {"code": code, "posterior": shares}
        for code, shares in zip(queries.codes.packed.tolist(), queries.posteriors.tolist(), strict=True)
    ]
    given = {"codes": codes, "queries": asking, "items": [0, 1, 2], "rule": rule, "k": 24, "least": least}
    for number, answers in enumerate(answers_of_the_page(tmp_path, given)):
        for hits, answer in zip([found[number] for found in asked], answers, strict=True):
            assert answer["positions"] == [hit.id for hit in hits]
            # Scripts have no exponential in single precision, in which Python decodes a stored item that is asked for.
            assert answer["distances"] == pytest.approx([hit.distance for hit in hits], abs=1e-6)
            assert answer["probabilities"] == pytest.approx([hit.probability for hit in hits], abs=1e-6)


def test_the_slider_of_a_page_leaves_out_what_is_less_likely(chromium, runtime, tmp_path):
    X, y = load_digits(return_X_y=True)
    hasher = StarRidge(24, random_state=0).fit(X[:100], y[:100])
    with Collection.create(tmp_path / "items", hasher) as items:
        items.add(X[300:340])
        write_search_page(items, tmp_path / "page.html", runtime=runtime)
        hits = items.search(items=[3], k=24)[0]
    page = chromium.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    page.fill("#find", "Item 3")
    page.click("#found button")
    for keys, least in (("Home", 0), ("ArrowRight", 0.05), ("End", 1)):
        page.focus("#least")
        page.keyboard.press(keys)
        likely = [str(hit.id) for hit in hits if hit.probability >= least]
        assert page.eval_on_selector_all("#results li", "all => all.map((each) => each.dataset.id)") == likely
        assert page.text_content("#least-shown") == f"{100 * least:.0f}%"
    assert likely == []
    assert "ask for less" in page.text_content("#status")
    page.close()
