"""A command line in process, and small files for it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from starshl.cli.main import app


@pytest.fixture(scope="session")
def starshl():
    """A function that runs `starshl WORDS...` in this process."""
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [str(word) for word in words])


@pytest.fixture(scope="session")
def answer(starshl):
    """A function that runs `starshl WORDS... --json`, which must succeed, and returns what it prints."""

    def run(*words):
        result = starshl(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


@pytest.fixture(scope="session")
def blobs():
    """Three well separated clouds of 20 rows: X of shape (60, 3) and y."""
    y = np.repeat(np.arange(3), 20)
    return np.random.default_rng(0).normal(size=(60, 3)) + 8.0 * np.eye(3)[y], y


@pytest.fixture(scope="session")
def files(tmp_path_factory, blobs, starshl):
    """A folder with the clouds as blobs.npz, blobs.npy, blobs.csv (a, b, c, kind) and a model of each kind."""
    folder = tmp_path_factory.mktemp("files")
    X, y = blobs
    np.savez(folder / "blobs.npz", X=X, y=y)
    np.save(folder / "blobs.npy", X)
    lines = [",".join([*map(repr, row.tolist()), "xyz"[label]]) for row, label in zip(X, y, strict=True)]
    (folder / "blobs.csv").write_text("\n".join(["a,b,c,kind", *lines]) + "\n")
    for name, words in {"model": (folder / "blobs.npz",), "named": (folder / "blobs.csv", "--labels", "kind")}.items():
        fitted = starshl("fit", *words, "--bits", 10, "--output", folder / f"{name}.safetensors")
        assert fitted.exit_code == 0, fitted.output
    return folder
