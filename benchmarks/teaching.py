"""Measure what clicks teach: lessons whose answers come from known labels, against logistic regression.

    python benchmarks/teaching.py clicks --sets mnist usps caltech101 cifar10_color grocery --seeds 3
    python benchmarks/teaching.py time --items 10000 50000
    python benchmarks/teaching.py ready --sets mnist cifar10 --items 60000

``clicks`` labels 200 items that a lesson proposes, five at a time, and after 50, 100 and 200 of them compares the
labels of all others with those of a logistic regression. Its C and scaling are chosen by cross-validation on the same
labels, so that neither sees a true label that a person has not given. A line of JSON per run is appended to
results/teaching/clicks.jsonl, also how many of the other items are of a class without a label, as far as the labels
tell and truly; runs that are there are skipped. ``grocery`` are the photographs of grocery_photos_900.zip in
$STARSHL_DATA, by the features of efficientnet-lite0; its classes are the second level of folders. ``time`` prints
processor seconds per answer, ``ready`` those until the first question can be asked, and of the map.
"""

import argparse
import json
import os
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from starshl import Collection
from starshl.data.datasets import get
from starshl.data.features import PictureFeatures, make_embedder
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import LSHash
from starshl.labeling import Lesson

RESULTS = Path(__file__).parent.parent / "results" / "teaching" / "clicks.jsonl"
CLICKS, BATCH = 50, 5  # answers that are timed, and proposals at a time
MILESTONES = (50, 100, 200)
FOLDS = 3
# C of rows of length one on average, and of standardized columns.
OF_LENGTH_ONE, OF_STANDARDIZED = (1.0, 10.0, 100.0, 1000.0), (0.001, 0.01, 0.1, 1.0)
PICTURES = {"caltech101": (32, 32), "cifar10_color": (32, 32, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["clicks", "time", "ready"])
    parser.add_argument("--sets", nargs="+", default=["mnist", "usps", "caltech101", "cifar10_color", "grocery"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000])
    options = parser.parse_args()
    if options.study == "time":
        for n_items in options.items:
            print(json.dumps(measure_time(n_items)))
        return
    if options.study == "ready":
        for name in options.sets:
            print(json.dumps(measure_readiness(name, options.items[0])), flush=True)
        return
    for name in options.sets:
        for seed in range(options.seeds):
            measure_clicks(name, seed, options.items[0])


def is_known(key: dict[str, object]) -> bool:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    return any(key.items() <= run.items() for run in known)


def measure_clicks(name: str, seed: int, n_items: int) -> None:
    """Teach with proposed items, and compare with a logistic regression at each milestone."""
    key = {"set": name, "seed": seed}
    if is_known(key):
        return
    X, y = read_set(name, seed, n_items)
    unnamed: dict[int, list[float]] = {}
    run: dict[str, object] = key | {"n_items": len(y), "unnamed": unnamed}
    with (
        tempfile.TemporaryDirectory() as place,
        make_collection(Path(place), name, X) as collection,
        Lesson(collection) as lesson,
    ):
        picks: list[int] = []
        while len(picks) < MILESTONES[-1]:
            batch = [proposal.id for proposal in lesson.propose(BATCH)]
            collection.set_labels(batch, y[batch], warn_unknown=False)  # all of them at once, for the sake of time
            picks += batch
            unnamed[len(picks)] = share_unnamed(y, picks)
            if len(picks) in MILESTONES:
                found = lesson.predictions()
                rest = np.setdiff1d(np.arange(len(y)), picks)
                right = np.array(found.labels)[rest] == y[rest]
                sure = found.confidences[rest] >= 0.9
                run[str(len(picks))] = {
                    "lesson": accuracy(np.array(found.labels), y, picks),
                    "logistic": chosen_logistic(lesson._items.rows, y, picks),
                    "classes_met": len(set(y[picks].tolist())),
                    "share_sure": round(float(sure.mean()), 4),
                    "sure_right": round(float(right[sure].mean()), 4) if sure.any() else None,
                }
    with RESULTS.open("a") as file:
        file.write(json.dumps(run) + "\n")
    print(json.dumps(run), flush=True)


def share_unnamed(y: np.ndarray, picks: list[int]) -> list[float]:
    """Return how many of the other items are of a class without a label, by half of Good and Turing's rule and truly.

    The rule counts classes with a single label; it is halved because proposals look for new classes.
    """
    named, counts = np.unique(y[picks], return_counts=True)
    rest = np.setdiff1d(np.arange(len(y)), picks)
    return [
        round(float(np.sum(counts == 1)) / (2 * len(picks)), 4),
        round(float(np.isin(y[rest], named, invert=True).mean()), 4),
    ]


def chosen_logistic(rows: np.ndarray, y: np.ndarray, picks: list[int]) -> float:
    """Return the accuracy of a logistic regression whose C and scaling these labels chose."""
    best: tuple[float, float] = (-1.0, 0.0)
    size = float(np.sqrt((rows**2).sum(axis=1).mean()))
    deviations = rows.std(axis=0)
    standardized = (rows - rows.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    for scaled, strengths in ((rows / size, OF_LENGTH_ONE), (standardized, OF_STANDARDIZED)):
        for strength in strengths:
            right = 0
            for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(picks):
                learned, asked = np.array(picks)[train], np.array(picks)[test]
                right += int((logistic(scaled[learned], y[learned], strength).predict(scaled[asked]) == y[asked]).sum())
            if right > best[0]:
                best = (right, accuracy(logistic(scaled[picks], y[picks], strength).predict(scaled), y, picks))
    return best[1]


def logistic(X: np.ndarray, y: np.ndarray, strength: float) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(C=strength, max_iter=300).fit(X, y)


def read_set(name: str, seed: int, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of up to ``n_items``, nine tenths of a smaller set."""
    if name == "grocery":
        X, labels = read_grocery()
        order = np.random.default_rng(seed).permutation(len(labels))[: int(0.9 * len(labels))]
        return X[order], labels[order]
    if name == "banking77":
        with np.load(Path(os.environ["STARSHL_DATA"]) / "banking77_minilm384.npz") as arrays:
            X, labels = arrays["X"].astype(np.float32), arrays["y"]
        order = np.random.default_rng(seed).permutation(len(labels))[:n_items]
        return X[order], labels[order]
    data = get(name)
    rows = np.random.default_rng(seed).permutation(len(data.y))[: min(n_items, int(0.9 * len(data.y)))]
    return np.asarray(data.X[rows], np.float32), np.asarray(data.y[rows])


@cache
def read_grocery() -> tuple[np.ndarray, np.ndarray]:
    """Return features of photographs, and the number of the second folder that each is in."""
    with (
        tempfile.TemporaryDirectory() as place,
        ZipFile(Path(os.environ["STARSHL_DATA"]) / "grocery_photos_900.zip") as archive,
    ):
        archive.extractall(place)
        files = sorted(Path(place).rglob("*.jpg"))
        folders = [file.relative_to(place).parts[1] for file in files]
        X = make_embedder("efficientnet-lite0").fit_embed([str(file) for file in files])
    return np.asarray(X, np.float32), np.unique(folders, return_inverse=True)[1]


def make_collection(place: Path, name: str, X: np.ndarray) -> Collection:
    plain = LSHash(32, random_state=0)
    hasher = PreparedHasher([PictureFeatures(PICTURES[name])], plain) if name in PICTURES else plain
    collection = Collection.create(place / "items", hasher.fit(X), vectors="float16")
    collection.add(X)
    return collection


def accuracy(predicted: np.ndarray, y: np.ndarray, picks: list[int]) -> float:
    rest = np.ones(len(y), bool)
    rest[picks] = False
    return round(float(np.mean(predicted[rest] == y[rest])), 4)


def measure_readiness(name: str, n_items: int) -> dict[str, object]:
    """Return processor seconds until a lesson about new items proposes the first ones, and of the map after that."""
    X, _ = read_set(name, 0, n_items)
    with tempfile.TemporaryDirectory() as place, make_collection(Path(place), name, X) as collection:
        started = time.process_time()
        with Lesson(collection) as lesson:
            lesson.propose(9)
            ready = time.process_time()
            lesson.map()
            mapped = time.process_time()
    return {"set": name, "items": len(X), "ready": round(ready - started, 1), "map": round(mapped - ready, 1)}


def measure_time(n_items: int) -> dict[str, float]:
    """Return processor seconds of the preparation, and of fifty answers with proposals on MNIST."""
    X, y = read_set("mnist", 0, n_items)
    with tempfile.TemporaryDirectory() as place, make_collection(Path(place), "mnist", X) as collection:
        started = time.process_time()
        with Lesson(collection) as lesson:
            prepared, answers, proposals = time.process_time() - started, [], []
            for _ in range(CLICKS):
                before = time.process_time()
                item = lesson.propose(9)[0].id
                between = time.process_time()
                lesson.answer([item], int(y[item]))
                proposals.append(between - before)
                answers.append(time.process_time() - between)
            started = time.process_time()
            lesson.map()
            mapped = time.process_time() - started
            started = time.process_time()
            lesson.refit()
            lesson.wait_for_codes()
            refitted = time.process_time() - started
    return {
        "items": n_items,
        "prepare": round(prepared, 1),
        "answer_median": round(float(np.median(answers)), 3),
        "answer_longest": round(max(answers), 3),
        "propose_median": round(float(np.median(proposals)), 3),
        "map": round(mapped, 1),
        "codes": round(refitted, 1),
    }


if __name__ == "__main__":
    main()
