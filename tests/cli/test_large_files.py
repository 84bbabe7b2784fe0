"""``starshl fit`` and ``starshl encode`` on files with very many rows: these stay in the file."""

import numpy as np
import pytest

from starshl import StarRidge, load
from starshl.data.tables import ArrayRows, ParquetRows
from starshl.hashers.baselines import ITQ, SpectralHash

N_ROWS = 20_001


@pytest.fixture
def no_whole_files(monkeypatch):
    """Make reading all rows of a file at once an error."""
    for source in (ArrayRows, ParquetRows):
        read = source.take

        def take(self, rows, read=read):
            assert len(rows) < N_ROWS, "all rows were read at once"
            return read(self, rows)

        monkeypatch.setattr(source, "take", take)


def rows_and_labels():
    X = np.random.default_rng(0).uniform(-1, 1, (N_ROWS, 3)).astype(np.float32)
    return X, (X[:, 0] > 0).astype(np.int64)


def test_npy_and_parquet_give_the_same_model(answer, tmp_path, no_whole_files):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = rows_and_labels()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": y}), tmp_path / "table.parquet")
    settings = ("--set", "n_landmarks=40", "--method", "StarRidge", "--bits", "8")
    told = answer(
        "fit", tmp_path / "X.npy", "--labels", tmp_path / "y.npy", "-o", tmp_path / "first.safetensors", *settings
    )
    assert "40 landmarks" in told["choice"]
    answer("fit", tmp_path / "table.parquet", "-o", tmp_path / "second.safetensors", *settings)
    first, second = (load(tmp_path / f"{name}.safetensors") for name in ("first", "second"))
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert second.feature_names_in_.tolist() == ["a", "b", "c"]
    assert first.score(X, y) > 0.97


def test_other_methods_read_the_file(answer, tmp_path):
    X, _ = rows_and_labels()
    np.save(tmp_path / "X.npy", X)
    answer("fit", tmp_path / "X.npy", "-o", tmp_path / "model.safetensors", "--method", "LSHash", "--bits", "8")
    assert load(tmp_path / "model.safetensors").n_features_in_ == 3


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Fitted models of three kinds of arithmetic: a kernel expansion, a projection, and a nonlinear one."""
    folder = tmp_path_factory.mktemp("models")
    X, y = rows_and_labels()
    hashers = {"ridge": StarRidge(8, random_state=0), "itq": ITQ(3, random_state=0), "spectral": SpectralHash(6)}
    for name, hasher in hashers.items():
        hasher.fit(X[:60], y[:60])
        hasher.save(folder / name)
    return folder


@pytest.mark.parametrize("name", ["ridge", "itq", "spectral"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.uint8])
def test_codes_are_those_of_all_rows_at_once(name, kind, models, answer, tmp_path, no_whole_files):
    X = (100 * rows_and_labels()[0]).astype(kind)
    np.save(tmp_path / "X.npy", X)
    answer("encode", models / name, tmp_path / "X.npy", "-o", tmp_path / "codes.npy")
    whole = X if kind in (np.float32, np.float64) else X.astype(np.float64)
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), load(models / name).encode(whole).packed)


def test_codes_of_a_parquet_table_are_those_of_its_rows(models, answer, tmp_path, no_whole_files):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = rows_and_labels()
    hasher = load(models / "ridge")
    pq.write_table(pa.table({"vector": list(X), "label": y}), tmp_path / "table.parquet")
    words = ("encode", models / "ridge", tmp_path / "table.parquet", "--database")
    answer(*words, "--labels", "label", "-o", tmp_path / "labeled.npz")
    with np.load(tmp_path / "labeled.npz") as file:
        np.testing.assert_array_equal(file["packed"], hasher.encode_database(X, y).packed)
        np.testing.assert_array_equal(file["y"], y)
    answer(*words, "--no-labels", "-o", tmp_path / "own.csv")
    signs = np.loadtxt(tmp_path / "own.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(signs, hasher.encode_database(X).to_signs() > 0)


def test_a_bad_entry_in_a_late_block_leaves_no_file(models, starshl, tmp_path):
    X = rows_and_labels()[0]
    X[20_000, 1] = np.nan
    np.save(tmp_path / "X.npy", X)
    refused = starshl("encode", models / "ridge", tmp_path / "X.npy", "-o", tmp_path / "codes.npy")
    assert refused.exit_code == 2
    assert "first in row 20000" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


def test_a_bar_shows_how_many_rows_are_encoded(models, starshl, tmp_path):
    np.save(tmp_path / "X.npy", rows_and_labels()[0])
    words = ("encode", models / "itq", tmp_path / "X.npy", "-o", tmp_path / "codes.npy")
    assert "20001/20001" in starshl(*words, "--progress").stderr.replace(",", "")
    assert starshl(*words, "--no-progress").stderr == ""
