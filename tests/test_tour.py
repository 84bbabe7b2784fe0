"""The commands of docs/tour.md work one after the other, on small files of the kinds that it names."""

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

ROOT = Path(__file__).parent.parent
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
JOBS = dict(re.findall(r"^## (\d)\. .*?\n```sh\n(.*?)```", TOUR, flags=re.DOTALL | re.MULTILINE))
# Installing and opening a browser are not for tests; the page serves from Python what `serve` serves.
LEFT_OUT = ("pip install", "starshl explore", "starshl serve")
SLOW_OR_LARGE = {"starshl reproduce --quick": "starshl reproduce --quick --bits 8 --methods lsh"}


@pytest.fixture
def desk(tmp_path):
    """A folder with small files under the names of the tour."""
    X, y = load_digits(return_X_y=True)
    words = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    for name, rows in {"vectors": X[:400], "new": X[400:420], "big": X, "some": X[:500], "queries": X[:2]}.items():
        np.save(tmp_path / f"{name}.npy", rows)
    np.save(tmp_path / "labels.npy", words[y[:400]])
    np.save(tmp_path / "some_kinds.npy", y[:500])
    for place, rows in (("photos/even", y % 2 == 0), ("photos/odd", y % 2 == 1)):
        for number in np.flatnonzero(rows)[:40]:
            folder = tmp_path / place / words[y[number]]
            folder.mkdir(parents=True, exist_ok=True)
            pixels = (X[number].reshape(8, 8) * 15).astype(np.uint8)
            Image.fromarray(pixels).resize((32, 32)).save(folder / f"{number}.png")
    (tmp_path / "new").mkdir()
    shutil.copy(next((tmp_path / "photos" / "even" / "two").glob("*.png")), tmp_path / "new" / "one.png")
    for name, every in (("tickets.csv", 4), ("new.csv", 1)):
        with (tmp_path / name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["text", "intent"])
            for number in range(80):
                intent = ("card", "transfer")[number % 2]
                table.writerow([f"my {intent} has not arrived, case {number}", intent if number % every < 2 else ""])
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_the_commands_of_a_job_work(job, desk):
    commands = [line.partition("  #")[0] for line in JOBS[job].splitlines() if not line.startswith(LEFT_OUT)]
    assert commands
    for command in commands:
        given = SLOW_OR_LARGE.get(command, command)
        if given.startswith("python "):
            words = given.replace("python ", f"{sys.executable} ").split()
        else:
            words = [sys.executable, "-m", *re.findall(r'"[^"]*"|\S+', given)]
        done = subprocess.run([word.strip('"') for word in words], cwd=desk, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_the_tour_has_seven_jobs():
    assert sorted(JOBS) == list("1234567")
