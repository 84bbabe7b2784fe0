"""Train every method of the catalog on digits and, if it is on this machine, MNIST; write docs/gallery.md.

    python scripts/gallery.py           measure, then write figures, page and pictures (minutes)
    python scripts/gallery.py --draw    write page and pictures again from the stored figures
    python scripts/gallery.py --methods StarRidge    measure these alone and keep the stored figures of the others

MNIST is read from the folder that STARSHL_DATA names or from the user's cache; it is never downloaded.
Times are processor seconds, summed over all threads: other work on the machine barely changes them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gallery_page import page
from gallery_pictures import draw_map, draw_retrieved

from starshl._common.platform import machine
from starshl.data import datasets
from starshl.evaluation import mean_average_precision, precision_at
from starshl.hashers import BaseHasher, Configuration, configurations
from starshl.reproduction import Sampling, SplitData, draw_rows, split_data
from starshl.reproduction.runner import labels_used, versions

DOCS = Path(__file__).parents[1] / "docs"
SIZES = {"digits": Sampling(n_train=1000, n_query=797), "mnist": Sampling(n_train=3000, n_query=1000)}
N_BITS = 32
N_SHOWN = 10
N_ENCODED = 10_000
N_WARM_UP = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="use the stored figures")
    parser.add_argument("--methods", nargs="+", default=(), help="classes to measure; the others keep their figures")
    parser.add_argument("--output", type=Path, default=DOCS, help="folder of the page; docs by default")
    options = parser.parse_args()
    figures_file = options.output / "gallery.json"
    if options.draw:
        figures = json.loads(figures_file.read_text(encoding="utf-8"))
    elif options.methods:
        figures = json.loads(figures_file.read_text(encoding="utf-8"))
        measure_some(figures, options.methods)
        figures_file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    else:
        figures = measure_all()
        figures_file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for name, text in written_files(figures).items():
        (options.output / name).write_text(text, encoding="utf-8")


def written_files(figures: dict[str, Any]) -> dict[str, str]:
    """Return the page and its pictures by file name; they follow from the figures alone."""
    largest = max(figures["datasets"], key=lambda measured: measured["n_train"])
    return {
        "gallery.md": page(figures),
        "gallery_map.svg": draw_map(largest),
        "gallery_retrieved.svg": draw_retrieved(figures["datasets"][0], datasets.get("digits").X),
    }


def measure_all() -> dict[str, Any]:
    measured = []
    for name in SIZES:
        if name != "digits" and datasets.locate(name) is None:
            print(f"{name} is not on this machine and is left out", file=sys.stderr)
            continue
        measured.append(measure_dataset(name, rows_of(name), list(configurations())))
    kind = machine()
    return {"versions": versions(), "processor": kind["processor"], "cores": kind["cores"], "datasets": measured}


def measure_some(figures: dict[str, Any], names: list[str]) -> None:
    """Measure some methods and put their figures among the stored ones, in the order of the catalog."""
    order = [method.name for method in configurations()]
    chosen = [method for method in configurations() if method.method in names]
    for stored in figures["datasets"]:
        data = rows_of(stored["name"])
        query = data.split.query.tolist().index(stored["retrieved"]["query"])
        measured = measure_dataset(stored["name"], data, chosen, query)
        kept = [line for line in stored["methods"] if line["method"] not in names]
        stored["methods"] = sorted(kept + measured["methods"], key=lambda line: order.index(line["variant"]))
        found = stored["retrieved"]["found"] | measured["retrieved"]["found"]
        stored["retrieved"]["found"] = {name: found[name] for name in order}


def rows_of(name: str) -> SplitData:
    """Return the rows of a data set, scaled to unit length; the same ones every time."""
    dataset = datasets.get(name)
    return split_data(dataset, draw_rows(SIZES[name], dataset, 0, "gallery"), scaling="unit", dtype=np.float64)


def measure_dataset(
    name: str, data: SplitData, methods: list[Configuration], query: int | None = None
) -> dict[str, Any]:
    """Return the figures of all methods, of Euclidean distances, and what one query finds; None is a typical one."""
    nearest, lines = {}, []
    for method in methods:
        print(f"{name}: {method.name}", file=sys.stderr, flush=True)
        figures, nearest[method.name] = measure(make_hasher(method, data.X_train.shape[1]), data)
        names = {"method": method.method, "variant": method.name, "title": method.title}
        lines.append({**names, "labels": method.facts.labels, **figures})
    return {
        "name": name,
        "n_train": len(data.X_train),
        "n_features": data.X_train.shape[1],
        "n_queries": len(data.X_query),
        "n_bits": N_BITS,
        "methods": lines,
        "euclidean": euclidean_figures(data),
        "retrieved": retrieved(data, nearest, typical_query(data, lines, nearest) if query is None else query),
    }


def make_hasher(method: Configuration, n_features: int) -> BaseHasher:
    return method.make(n_features if method.facts.full_length else N_BITS)


def measure(hasher: BaseHasher, data: SplitData) -> tuple[dict[str, float], np.ndarray]:
    """Fit and search; return the figures, and the database rows nearest to each query, (n_queries, N_SHOWN)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the few rows of the warm-up cause warnings
        hasher.fit(data.X_train[:N_WARM_UP], data.y_train[:N_WARM_UP])
    start = time.process_time()
    hasher.fit(data.X_train, data.y_train)
    fit_seconds = time.process_time() - start
    database = hasher.encode_training(data.X_database, data.y_database)
    queries = hasher.encode(data.X_query)
    many = np.resize(np.arange(len(data.X_train)), N_ENCODED)
    rows = data.X_train[many]
    start = time.process_time()
    hasher.encode(rows)
    encode_seconds = time.process_time() - start
    labels = data.y_query, data.y_database
    agreements = queries.to_signs().astype(np.int64) @ database.to_signs().astype(np.int64).T
    figures = {
        "n_bits": hasher.n_bits_,
        "labels_used": labels_used(hasher, data.y_train),
        "precision": round(precision_at(queries, database, *labels), 4),
        "average_precision": round(mean_average_precision(queries, database, *labels), 4),
        "fit_seconds": round(fit_seconds, 3),
        "encode_seconds_per_row": round(encode_seconds / N_ENCODED, 9),
        "model_bytes": model_bytes(hasher),
    }
    return figures, np.argsort(-agreements, axis=1, kind="stable")[:, :N_SHOWN]


def model_bytes(hasher: BaseHasher) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.star"
        hasher.save(path)
        return path.stat().st_size


def euclidean_figures(data: SplitData) -> dict[str, float]:
    """Return the figures of the rows themselves, ranked by their distances; rows have length one."""
    ranking = np.argsort(-(data.X_query @ data.X_database.T), axis=1, kind="stable")
    hits = data.y_database[ranking] == data.y_query[:, None]
    precisions = hits.cumsum(axis=1) / np.arange(1, hits.shape[1] + 1)
    average = (precisions * hits).sum(axis=1) / hits.sum(axis=1)
    return {
        "precision": round(float(hits[:, :10].mean()), 4),
        "average_precision": round(float(average.mean()), 4),
        "row_bytes": data.X_train.shape[1] * 4,
    }


def typical_query(data: SplitData, lines: list[dict], nearest: dict[str, np.ndarray]) -> int:
    """Return the query whose hits come nearest to every method's mean precision."""
    hits = np.array([(data.y_database[rows] == data.y_query[:, None]).mean(axis=1) for rows in nearest.values()])
    expected = np.array([line["precision"] for line in lines])
    return int(((hits - expected[:, None]) ** 2).sum(axis=0).argmin())


def retrieved(data: SplitData, nearest: dict[str, np.ndarray], query: int) -> dict[str, Any]:
    """Return what each method finds for a query."""
    results = {
        name: {
            "rows": data.split.database[rows[query]].tolist(),
            "right": (data.y_database[rows[query]] == data.y_query[query]).tolist(),
        }
        for name, rows in nearest.items()
    }
    return {"query": int(data.split.query[query]), "label": int(data.y_query[query]), "found": results}


if __name__ == "__main__":
    main()
