"""``starshl data`` in process."""

import json

import numpy as np
import pytest

from starshl.data import datasets
from starshl.exceptions import DownloadError


@pytest.fixture
def run(starshl, tmp_path, monkeypatch):
    """A machine whose data folder holds one file, and that has no network."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("STARSHL_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("starshl.data.datasets.download.urllib.request.urlopen", no_network)
    monkeypatch.setattr("starshl.data.datasets.download.sleep", lambda seconds: None)
    rng = np.random.default_rng(0)
    np.savez_compressed(
        folder / "fashion_mnist.npz",
        X=np.zeros((70_000, 784), np.uint8),
        y=rng.integers(0, 10, 70_000),
        split=np.zeros(70_000, np.uint8),
    )
    return lambda *words: starshl("data", *words)


def no_network(*arguments, **settings):
    raise OSError("Network is unreachable")


def test_list_names_every_set_and_marks_untried_sources(run):
    result = run("list")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in datasets.names())
    assert "openml.org, data set 554 (unverified)" in result.stdout
    as_json = {about["name"]: about for about in json.loads(run("list", "--json").stdout)}
    assert as_json["fashion_mnist"]["where"] == "folder"
    assert as_json["digits"]["where"] == "package"
    assert as_json["agnews"]["where"] == "unavailable"


def test_path_prints_the_file_or_fails(run):
    assert run("path", "fashion_mnist").stdout.strip().endswith("fashion_mnist.npz")
    assert json.loads(run("path", "fashion_mnist", "--json").stdout)["where"] == "folder"
    absent = run("path", "mnist")
    assert (absent.exit_code, absent.stdout) == (1, "")
    assert "starshl data get mnist" in absent.stderr


def test_get_leaves_a_set_that_is_here_alone(run):
    result = run("get", "fashion_mnist", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["n_rows"] == 70_000
    assert run("get", "digits").exit_code == 0


def test_get_without_a_network_says_what_to_do(run):
    result = run("get", "mnist")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "put mnist.npz into the folder" in result.stderr
    assert "Network is unreachable" in result.stderr


def test_a_failure_can_be_traced_to_where_it_happened(run, monkeypatch):
    monkeypatch.setenv("STARSHL_TRACEBACK", "1")
    assert isinstance(run("get", "mnist").exception, DownloadError)


def test_bad_usage_exits_with_two(run):
    unknown = run("get", "mnst")
    assert unknown.exit_code == 2
    assert "Nearest are 'mnist'" in unknown.stderr
    assert run("path").exit_code == 2
