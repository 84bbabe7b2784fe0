"""What embedders cost, and what their vectors find: AG News titles and BANKING77 questions, from raw texts.

    python benchmarks/embedders.py FOLDER                 # the folder of data sets; needs the weights of minilm
    python benchmarks/embedders.py FOLDER --sentences 1000    # also sentence-transformers, if it is installed

AG News: 6,000 titles to learn from, 1,600 queries, five splits, codes of 32 bits, precision at 10; for SVC and logistic
regression, the ten nearest vectors within the class that they give the query. BANKING77: the official split, accuracy
of codes of 32 bits, and the share of test rows that reject=0.05 rejects.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from starshl import Collection, HybridHasher
from starshl.collection import import_texts
from starshl.data.features import make_embedder

N_BITS, N_NEAREST = 32, 10
N_TITLES, N_QUERIES, N_SPLITS = 6000, 1600, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with agnews_use512_titles.txt, agnews_use512.npz and banking77.csv")
    parser.add_argument("--embedders", default="tfidf,minilm")
    parser.add_argument("--sentences", type=int, help="compare so many with sentence-transformers")
    options = parser.parse_args()
    titles = (options.folder / "agnews_use512_titles.txt").read_text(encoding="utf-8").splitlines()
    topics = np.load(options.folder / "agnews_use512.npz")["y"]
    with (options.folder / "banking77.csv").open(encoding="utf-8", newline="") as file:
        questions = list(csv.DictReader(file))
    texts = [question["text"] for question in questions]
    if options.sentences:
        compare_with_library(texts[: options.sentences])
    for name in options.embedders.split(","):
        print(f"\n## {name}")
        with tempfile.TemporaryDirectory() as folder, patch.dict("os.environ", {"XDG_CACHE_HOME": folder}):
            costs(name, texts[:2000])
            banking(name, questions)
            news(name, titles, topics)


def costs(name: str, texts: list[str]) -> None:
    """Print sentences per processor second, and what the same sentences cost again."""
    embedder = make_embedder(name)
    embedder.fit(texts[:16])  # too few to be kept in the cache
    seconds = [_seconds(lambda: embedder.embed(texts)) for _ in range(2)]
    print(f"{len(texts) / seconds[0]:.0f} sentences per processor second; again: {seconds[1] / seconds[0]:.2%} of that")


def banking(name: str, questions: list[dict[str, str]]) -> None:
    """Print accuracy on the official test rows of a collection made in one call, and how many rows it rejects."""
    train, test = ([each for each in questions if each["split"] == part] for part in ("train", "test"))
    truth = np.array([each["category"] for each in test])
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "bank")
        labels = [each["category"] for each in train]
        seconds = _seconds(lambda: import_texts([each["text"] for each in train], made, labels, embedder=name))
        with Collection(made, read_only=True) as bank:
            vectors = bank.embed([each["text"] for each in test], warn_unknown=False)
            right = bank.hasher.predict(vectors) == truth
            rejected = bank.hasher.novelty(vectors) >= 0.95
            n_bits, method = bank.n_bits, bank.hasher.method_name
    print(
        f"BANKING77: accuracy {right.mean():.4f} ({method}, {n_bits} bits, {seconds:.0f} processor seconds with the "
        f"embedding); reject=0.05 rejects {rejected.mean():.4f} of the test rows"
    )


def news(name: str, titles: list[str], topics: np.ndarray) -> None:
    """Print precision at 10 of codes and of vectors within the class that a classifier gives a query."""
    found: dict[str, list[float]] = {}
    for split in range(N_SPLITS):
        order = np.random.default_rng(split).permutation(len(titles))
        items, queries = order[:N_TITLES], order[N_TITLES : N_TITLES + N_QUERIES]
        embedder = make_embedder(name)
        X = embedder.fit_embed([titles[row] for row in items])
        Q = embedder.embed([titles[row] for row in queries])
        hasher = HybridHasher(N_BITS, random_state=0).fit(X, topics[items])
        with tempfile.TemporaryDirectory() as folder, Collection.create(Path(folder, "news"), hasher) as collection:
            collection.add(X, labels=topics[items])
            near = np.array([[hit.id for hit in hits] for hits in collection.search(Q, k=N_NEAREST)])
        found.setdefault(f"{N_BITS} bits", []).append(_precision(topics[items][near], topics[queries]))
        similar = Q @ X.T
        found.setdefault("nearest vectors", []).append(
            _precision(topics[items][np.argsort(-similar, axis=1)[:, :N_NEAREST]], topics[queries])
        )
        for classifier in (LogisticRegression(C=10, max_iter=1000), SVC(C=10)):
            given = classifier.fit(X, topics[items]).predict(Q)
            within = np.where(topics[items] == given[:, None], similar, -np.inf)
            near = np.argsort(-within, axis=1)[:, :N_NEAREST]
            found.setdefault(type(classifier).__name__, []).append(_precision(topics[items][near], topics[queries]))
    shown = ", ".join(f"{what} {np.mean(each):.4f} ± {np.std(each):.4f}" for what, each in found.items())
    print(f"AG News titles, precision at {N_NEAREST}: {shown}")


def compare_with_library(texts: list[str]) -> None:
    """Print how far vectors are from those of sentence-transformers, which reads the same folder."""
    from sentence_transformers import SentenceTransformer

    from starshl.data.features import minilm

    spec = minilm.find_spec(minilm.FOLDER_PACKAGE)
    model = SentenceTransformer(str(Path(spec.submodule_search_locations[0], "model")), device="cpu")
    difference = np.abs(make_embedder("minilm").embed(texts) - model.encode(texts)).max()
    print(f"largest difference from sentence-transformers on {len(texts):,} sentences: {difference:.1e}")


def _precision(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.mean(found == wanted[:, None]))


def _seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
