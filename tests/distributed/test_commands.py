"""``starshl cluster local``, and ``starshl fit`` and ``starshl encode`` on the cluster that it starts."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("distributed", reason="the extra dask is not installed")

from starshl import load
from starshl.cli.main import app
from starshl.distributed import load_codes

pytestmark = pytest.mark.server


def starshl(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def answer(*words):
    result = starshl(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def address():
    """A cluster that a user started in another terminal, and stops there."""
    command = [sys.executable, "-m", "starshl.cli.main", "cluster", "local", "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=180)
    assert process.returncode == 0, told
    assert "1 worker; Ctrl+C stops the cluster" in told


def test_a_cluster_fits_and_encodes_what_a_single_machine_does(address, digits, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    assert address.startswith("tcp://127.0.0.1:")
    X, y = digits
    for number, rows in enumerate((slice(0, 900), slice(900, 1797))):
        columns = {f"x{j}": X[rows, j] for j in range(64)} | {"label": y[rows]}
        (tmp_path / "rows").mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), tmp_path / "rows" / f"{number}.parquet")
    settings = ("--method", "LDAHash", "--bits", "8,16")
    told = answer("fit", tmp_path / "rows", "-o", tmp_path / "m.star", "--cluster", address, *settings)
    assert (told["n_rows"], told["n_labeled"], told["labels"]) == (1797, 1797, "label")
    hasher = load(tmp_path / "m.16.star")
    assert hasher.feature_names_in_.tolist() == [f"x{j}" for j in range(64)]
    url = f"file://{tmp_path}/rows/*.parquet"
    told = answer("encode", tmp_path / "m.16.star", url, "-o", tmp_path / "codes", "--cluster", address, "--one-file")
    assert (told["n_codes"], told["n_partitions"], told["codes_of"]) == (1797, 2, "queries")
    assert load_codes(tmp_path / "codes") == hasher.encode(X)
    assert os.path.exists(tmp_path / "codes" / "codes.npy")


def test_options_that_contradict_each_other_are_refused(digits, tmp_path):
    np.save(tmp_path / "rows.npy", digits[0])
    rows, model = tmp_path / "rows.npy", tmp_path / "m.star"
    for words, message in [
        (("fit", rows, "-o", model, "--cluster", "tcp://127.0.0.1:9", "--scale"), "--scale and --cluster contradict"),
        (("encode", model, rows, "-o", tmp_path / "codes.npy", "--one-file"), "--one-file is for --cluster"),
        (("fit", tmp_path / "none-*.npy", "-o", model, "--cluster", "tcp://127.0.0.1:9"), "names no file"),
    ]:
        result = starshl(*words)
        assert result.exit_code == 2
        assert message in result.stderr


def test_ctrl_c_ends_the_cluster_with_a_sentence_and_nothing_of_its_workers():
    command = [sys.executable, "-m", "starshl.cli.main", "cluster", "local", "--workers", "2"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline().startswith("tcp://")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the command and all that it started
    _, told = process.communicate(timeout=180)
    assert process.returncode == 0
    assert told.splitlines() == ["2 workers; Ctrl+C stops the cluster", "The cluster has stopped."]
