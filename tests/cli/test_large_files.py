"""``starshl fit`` on files with more rows than are solved exactly: rows stay in the file."""

import numpy as np
import pytest

from starshl import load
from starshl.tables import ArrayRows, ParquetRows

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
