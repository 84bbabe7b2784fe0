"""Vectors in; a collection and an honest page out."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from typer.testing import CliRunner

from starshl import Collection, HybridHasher, StarRidge, StarSHL, binarize
from starshl.cli.main import app
from starshl.evaluation import compare
from starshl.evaluation.benchmark import ByEstimates
from starshl.evaluation.whole_lists import list_quality
from starshl.hashers.baselines import LSHash, RaBitQ


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float32) / 16, y[:600]


def test_float_search_is_scored_as_scikit_learn_would(digits):
    X, y = digits
    result = compare(X, y, hasher=LSHash(32), rivals=[], n_queries=50, random_state=3)
    order = np.random.RandomState(3).permutation(600)
    query, base = order[:50], order[50:]
    nearest = NearestNeighbors(n_neighbors=10).fit(X[base]).kneighbors(X[query], return_distance=False)
    exact = result.methods[0]
    assert exact.precision_at_10 == pytest.approx(np.mean(y[base][nearest] == y[query][:, None]))
    assert exact.bytes_per_item == 4 * 64


def test_rows_without_labels_do_not_count_against_float_search(digits):
    X, y = digits
    some = np.where(np.arange(600) % 2, y, -1)
    result = compare(X, some, hasher=LSHash(32), rivals=[], n_queries=50, random_state=3)
    order = np.random.RandomState(3).permutation(600)
    query, base = (rows[some[rows] >= 0] for rows in (order[:50], order[50:]))
    nearest = NearestNeighbors(n_neighbors=10).fit(X[base]).kneighbors(X[query], return_distance=False)
    assert result.methods[0].precision_at_10 == pytest.approx(np.mean(y[base][nearest] == y[query][:, None]))


def test_many_bits_recall_nearly_every_neighbor(digits):
    X, _ = digits
    few, many = (compare(X, hasher=LSHash(n_bits), rivals=[], n_queries=50).methods[1] for n_bits in (4, 512))
    # A hundred of 550 rows drawn at random would hold 0.18 of the neighbors.
    assert 0.18 < few.recall_10_at_100 < many.recall_10_at_100
    assert many.recall_10_at_100 > 0.99
    assert (few.precision_at_10, few.bytes_per_item, many.bytes_per_item) == (None, 1, 64)


def test_labels_make_short_codes_more_precise_than_hyperplanes(digits, tmp_path):
    X, y = digits
    y = np.where(np.arange(600) % 3 == 0, -1, y)
    hasher = StarSHL(16, random_state=0)
    result = binarize(X, tmp_path / "digits", y, hasher=hasher, metadata=[{"label": int(v)} for v in y])
    by_name = {one.name: one for one in result.methods}
    assert by_name["StarSHL"].precision_at_10 > by_name["LSHash"].precision_at_10 + 0.2
    with Collection(tmp_path / "digits", read_only=True) as collection:
        assert {item.model_digest for item in collection.get(collection.ids)} == {collection.model_digest}
        assert collection.verify() == 600
        assert collection.n_bits == 16
    page = (tmp_path / "digits" / "comparison.md").read_text()
    assert "| StarSHL | 0." in page
    assert len(json.loads((tmp_path / "digits" / "comparison.json").read_text())["methods"]) >= 3


def test_the_command_takes_a_file_and_a_label_column(digits, tmp_path):
    X, y = digits
    np.savez(tmp_path / "digits.npz", X=X, y=y)
    arguments = ["index", "binarize", str(tmp_path / "out"), str(tmp_path / "digits.npz"), "--method", "LSHash"]
    result = CliRunner().invoke(app, [*arguments, "--bits", "16", "--labels", "y", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_items"] == 540
    again = CliRunner().invoke(app, arguments)
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    wrong = CliRunner().invoke(app, [*arguments[:2], str(tmp_path / "new"), *arguments[3:], "--labels", "z"])
    assert (wrong.exit_code, "has no column 'z'" in wrong.stderr) == (2, True)
    assert not (tmp_path / "new").exists()


def test_a_collection_is_there_complete_or_not_at_all(digits, tmp_path, monkeypatch):
    X, _ = digits
    fitted = []
    monkeypatch.setattr(LSHash, "fit", lambda self, *data: fitted.append(self))
    for wrong in (
        {"ids": np.zeros(600, int)},
        {"metadata": [{"p": float("nan")}] * 600},
        {"metadata": [{"p": object()}] * 600},
        {"references": [1] * 600},
    ):
        with pytest.raises(ValueError, match=r"once|stored|references"):
            binarize(X, tmp_path / "new", hasher=LSHash(16), **wrong)
    assert fitted == []
    monkeypatch.undo()

    def fail(*arguments, **options):
        raise OSError("the disk is full")

    monkeypatch.setattr(Collection, "add", fail)
    with pytest.raises(OSError, match="disk is full"):
        binarize(X, tmp_path / "new", hasher=LSHash(16))
    assert list(tmp_path.iterdir()) == []


def test_the_page_tells_how_many_codes_are_different(digits):
    X, y = digits
    result = compare(X, y, hasher=LSHash(3), rivals=[], n_queries=50)
    assert result.methods[0].n_different_codes is None
    assert 1 < result.methods[1].n_different_codes <= 8
    assert "| items and model, kB | different codes |" in result.page()
    assert f" | {result.methods[1].n_different_codes} | " in result.page()


def test_the_page_says_why_a_rival_is_left_out(digits):
    pytest.importorskip("faiss")  # without it, PQ is left out, too
    X, y = digits
    result = compare(X[:, :20], y, hasher=LSHash(32), n_queries=50)
    assert sorted(result.left_out) == ["ITQ", "RaBitQ", "SignBinarizer"]
    assert "ITQ was left out: " in result.page()
    assert "LSHash was left out" not in result.page()


def test_small_data_gets_a_comparison_or_a_clear_error(digits):
    X, y = digits
    result = compare(X[:60], y[:60], hasher=LSHash(16), rivals=[])
    assert (result.n_queries, result.n_items) == (6, 54)
    assert [one.recall_10_at_100 for one in result.methods] == [None, None]
    assert compare(X[:11], y[:11], hasher=LSHash(16), rivals=[]).n_queries == 1
    with pytest.raises(ValueError, match="8 rows"):
        compare(X[:8], hasher=LSHash(16))


@pytest.fixture(scope="module")
def by_ridge(digits):
    """Digits by the default method; a third of the labels is hidden and a tenth is wrong, so codes disagree."""
    X, y = digits
    some = np.where(np.arange(600) % 3 == 0, -1, np.where(np.arange(600) % 10 == 1, (y + 1) % 10, y))
    return some, compare(X, some, hasher=StarRidge(16, random_state=0), rivals=[], n_queries=60, random_state=1)


def test_items_coded_with_and_without_labels_stand_side_by_side(digits, by_ridge):
    (X, _), (some, result) = digits, by_ridge
    order = np.random.RandomState(1).permutation(600)
    query, base = order[:60], order[60:]
    fitted = StarRidge(16, random_state=0).fit(X[base], some[base])
    labeled, alone, column = result.methods[1:]
    assert (labeled.name, alone.name) == ("StarRidge", "StarRidge, coded from vectors alone")
    asked, known = some[query] >= 0, some[base] >= 0
    same = some[query][asked][:, None] == some[base][known]
    posteriors = fitted.predict_proba(X[query])[asked]
    for figures, codes in ((labeled, fitted.training_codes_), (alone, fitted.encode_database(X[base]))):
        expected = list_quality(-np.round(posteriors @ fitted.words.posteriors_of(codes[known]).T, 9), same)
        assert figures.mean_average_precision == pytest.approx(expected.mean_average_precision, abs=1e-3)
        assert figures.pooled_area == pytest.approx(expected.pooled_area, abs=1e-3)
        assert figures.n_different_codes == len(np.unique(codes.packed, axis=0))
    assert "| StarRidge, coded from vectors alone | 0." in result.page()
    assert "without the labels of the items" in result.page()
    # Of items that all carry labels, bits find no more than the labels alone.
    assert (column.name, column.bytes_per_item) == ("label column ordered by probability, 0 bits", 0)
    assert column.mean_average_precision == pytest.approx(labeled.mean_average_precision)
    assert column.pooled_area == pytest.approx(labeled.pooled_area)
    tables = result.chosen.tables(result.exact)
    names = [[method.name for method in methods] for methods in tables.values()]
    assert names == [["float search", alone.name], [column.name, labeled.name]]
    found = result.chosen.reliability
    assert sum(found.n_pairs) == asked.sum() * (asked.sum() - 1)
    assert found.log_loss < 0.5
    assert "calibration error" in result.page()


def test_a_hasher_with_an_index_of_its_own_is_measured_by_it(digits):
    X, y = digits
    some = np.where(np.arange(600) % 3 == 0, -1, y)
    hasher = HybridHasher(16, class_hasher=StarRidge(kernels="scaled", random_state=0), random_state=0)
    result = compare(X, some, hasher=hasher, rivals=[], n_queries=60, random_state=1)
    order = np.random.RandomState(1).permutation(600)
    query, base = order[:60], order[60:]
    fitted = hasher.fit(X[base], some[base])
    asked, known = query[some[query] >= 0], base[some[base] >= 0]
    index = fitted.make_index(fitted.encode_database(X[known], some[known]))
    found = index.search(fitted.encode(X[asked]), 10).ids
    assert result.methods[1].precision_at_10 == pytest.approx(np.mean(y[known][found] == y[asked][:, None]))


def test_a_method_that_does_not_read_labels_of_items_has_one_line(digits):
    X, y = digits
    result = compare(X, y, hasher=LSHash(16), rivals=[], n_queries=50)
    assert [one.name for one in result.methods] == ["float search", "LSHash"]
    assert "vectors alone" not in result.page()


def test_the_page_says_on_how_many_labels_precision_rests_and_its_ceiling(digits):
    X, y = digits
    few = np.full(600, -1)
    few[:50] = y[:50]  # four to six labels per class
    result = compare(X, few, hasher=LSHash(16), rivals=[], n_queries=300, random_state=0)
    order = np.random.RandomState(0).permutation(600)
    query, base = (rows[few[rows] >= 0] for rows in (order[:300], order[300:]))
    ceiling = np.mean([min(10, np.sum(few[base] == label)) / 10 for label in few[query]])
    assert (result.n_labeled_queries, result.n_labeled_items) == (len(query), len(base))
    assert result.precision_ceiling == pytest.approx(ceiling)
    assert all(one.precision_at_10 <= ceiling for one in result.methods)
    assert (
        f"{len(query)} labeled queries and {len(base)} labeled items. No ranking can exceed {ceiling:.3f}"
        in result.page()
    )


def test_enough_labels_need_no_word_about_a_ceiling(digits, by_ridge):
    assert by_ridge[1].precision_ceiling == 1.0
    assert "No ranking can exceed" not in by_ridge[1].page()
    assert compare(digits[0], hasher=LSHash(16), rivals=[], n_queries=50).precision_ceiling is None


@pytest.fixture(scope="module")
def default_items(digits, tmp_path_factory):
    """Digits with half of the labels, by the default method at two lengths."""
    X, y = digits
    some = np.where(np.arange(600) % 2, y, -1)
    folder = tmp_path_factory.mktemp("items") / "digits"
    return folder, some, binarize(X, folder, some, n_bits=[8, 16], n_queries=60)


def test_by_default_a_search_finds_the_nearest_items_of_the_right_class(digits, default_items):
    (X, y), (folder, some, result) = digits, default_items
    own, itq = (one for one in result.methods if one.name in ("HybridHasher (float queries)", "ITQ"))
    assert own.precision_at_10 > itq.precision_at_10 + 0.05
    assert own.recall_10_at_100 > 0.9
    expected = HybridHasher(16, form="residual", random_state=0).fit(X, some)
    with Collection(folder, read_only=True) as collection:
        assert (collection.n_bits, len(collection)) == (16, 600)
        assert collection.codes(range(600)) == expected.training_codes_
        hits = collection.search(X[:50], 10)
    assert np.mean([[y[hit.id] == label for hit in found] for found, label in zip(hits, y, strict=False)]) > 0.95


def test_all_lengths_are_measured_as_if_alone_and_the_choice_is_told(digits, default_items):
    (X, _), (folder, some, result) = digits, default_items
    assert [length.n_bits for length in result.lengths] == [8, 16]
    alone = compare(X, some, n_bits=8, n_queries=60)
    for both, one in zip(result.lengths[0].methods, alone.lengths[0].methods, strict=True):
        assert (both.name, both.precision_at_10, both.recall_10_at_100, both.n_different_codes) == (
            one.name,
            one.precision_at_10,
            one.recall_10_at_100,
            one.n_different_codes,
        )
    page = (folder / "comparison.md").read_text()
    assert "## 8 bits" in page
    assert f"Of 8 and 16 bits, {result.n_bits} were chosen" in page
    stored = json.loads((folder / "comparison.json").read_text())
    assert stored == json.loads(json.dumps(result.as_dict()))
    assert (stored["n_bits"], stored["bytes_before"], stored["bytes_after"]) == (16, 256, 2)


def test_lengths_may_come_as_an_array_and_a_hasher_is_measured_with_its_own_seed(digits, tmp_path):
    X, y = digits
    hasher = LSHash(8, random_state=3)
    result = binarize(X, tmp_path / "items", y, hasher=hasher, n_bits=np.array([8, 24]), n_queries=60)
    by_seed = [compare(X, y, hasher=LSHash(8, random_state=seed), rivals=[], n_queries=60) for seed in (3, 0)]
    measured = [one.methods[1].precision_at_10 for one in by_seed]
    assert result.lengths[0].methods[0].precision_at_10 == measured[0] != measured[1]
    with Collection(tmp_path / "items", read_only=True) as collection:
        assert collection.n_bits == result.n_bits == 24


def test_the_verdict_is_on_the_page_and_in_the_file(default_items):
    folder, _, result = default_items
    assert "These codes are good for finding items of the same class" in result.verdict
    assert result.verdict in (folder / "comparison.md").read_text()
    assert json.loads((folder / "comparison.json").read_text())["verdict"] == result.verdict


def test_the_page_says_what_vectors_codes_and_the_model_take(default_items):
    folder, _, result = default_items
    # Pages are left out, and what readers of SQLite leave behind.
    files = [path for path in folder.iterdir() if path.suffix in (".star", ".sqlite", "")]
    sizes = {path.name: path.stat().st_size for path in files}
    (model,) = [size for name, size in sizes.items() if name.startswith("hasher-")]
    assert (result.stored.model, result.stored.folder) == (model, sum(sizes.values()))
    total = 600 * 2 + model
    times = f"{total / 600 / 256:.1f} times more"
    assert total > 600 * 256  # the model keeps the rows of the fit
    assert (
        "A vector takes 256 bytes as given, a code 2. 600 vectors take 153.6 kB; their codes 1.2 kB, and the model "
        f"that encodes queries {model / 1000:.1f} kB: {total / 1000:.1f} kB in all, {times}, "
        f"which is {total / 600:,.1f} bytes per item. The folder takes {sum(sizes.values()) / 1000:.1f} kB"
    ) in result.page()


def test_estimates_and_products_take_as_many_bytes_as_they_can(digits):
    pytest.importorskip("faiss")
    X, y = digits
    result = compare(X, y, hasher=LSHash(32), rivals=["RaBitQ", "PQ"], n_bits=[32, 64], n_queries=60)
    short, long = ([one.bytes_per_item for one in length.methods] for length in result.lengths)
    # Two numbers take four bytes more than a code of 32 bits; of 64 bits, they leave 32.
    assert short == [4, 8, 4]
    assert long == [8, 8, 8]
    assert result.lengths[0].methods[1].precision_at_10 == result.lengths[1].methods[1].precision_at_10
    assert [one.name for one in result.lengths[0].methods[1:]] == ["RaBitQ (float queries)", "PQ (float queries)"]
    assert "a query keeps its full precision" in result.page()


def test_estimates_are_those_of_rabitq(digits):
    X, _ = digits
    items, queries = X[:500], X[500:520]
    hasher = RaBitQ(24, random_state=0).fit(items)
    exact = hasher.asymmetric_distances(queries, hasher.sketch(items))
    found = ByEstimates(items, 24).nearest(queries, 10)
    expected = np.sort(exact, axis=1)[:, :10]
    # Numbers of 16 bits change the order of nearly equal estimates only.
    assert np.allclose(np.take_along_axis(exact, found, axis=1), expected, rtol=2e-2)
    some = np.arange(0, 500, 7)
    among = ByEstimates(items, 24).nearest(queries, 5, some)
    assert np.isin(among, some).all()
    assert np.allclose(np.take_along_axis(exact, among, axis=1), np.sort(exact[:, some], axis=1)[:, :5], rtol=2e-2)


def test_bad_input_is_refused_before_anything_is_fitted(digits, tmp_path):
    X, y = digits
    for wrong, message in (
        ((X, y[:-1]), "599"),
        ((csr_array(X), y), "X is a sparse matrix; codes are compared with dense vectors"),
        ((X[0], None), "X has 1 dimension"),
        ((np.where(X > 0.9, np.nan, X), y), "X has NaN or infinite values in .* rows, the first in row"),
        ((X.astype(str), y), "X holds values of type <U32; vectors must be numbers"),
        ((X[:9], y[:9]), "There are 9 rows; .* needs at least 11"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            binarize(wrong[0], tmp_path / "new", *wrong[1:])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif("STARSHL_DATA" not in os.environ, reason="needs the AG News embeddings")
def test_news_embeddings_keep_their_classes_in_four_bytes(tmp_path):
    data = np.load(Path(os.environ["STARSHL_DATA"]) / "agnews_use512.npz")
    rows = np.random.default_rng(0).permutation(len(data["y"]))[:2500]
    X, y = data["X"][rows].astype(np.float32), data["y"][rows]
    result = binarize(X, tmp_path / "news", y, hasher=StarSHL(32, random_state=0), n_queries=500)
    exact, star = result.methods[:2]
    # Measured: 0.89 with 4 bytes per item, 0.83 with 2,048.
    assert star.precision_at_10 > exact.precision_at_10


def test_without_faiss_a_note_takes_the_place_of_product_quantization(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.delitem(sys.modules, "starshl.evaluation.product_quantizer", raising=False)
    result = compare(*digits, hasher=LSHash(16), rivals=["PQ"], n_queries=30)
    assert [one.name for one in result.methods] == ["float search", "LSHash"]
    assert "PQ was left out: This needs the library 'faiss', which is not installed. Install it with" in result.page()
