"""Compute every number of a table or chart from the stored arrays of a record."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from .._common.labels import check_labels
from ..codes.binary import BinaryCodes
from ..evaluation.histograms import HammingHistograms, hamming_histograms
from ..evaluation.metrics import (
    PrecisionRecall,
    average_precision,
    expected_precision,
    knn_accuracy,
    list_size,
    lookup,
    mean_of_known,
    occupancy,
    pr_area,
    precision_recall,
)
from ..evaluation.whole_lists import ListQuality, list_quality
from .records import Record

LIST_LENGTHS = tuple(range(10, 55, 5))
_LENGTHS_BY_CLASS = (10, 15)
_PREDICTIONS = {
    "accuracy": ("predicted_query", "y_query"),
    "accuracy_hinge": ("hinge_query", "y_query"),
    "accuracy_transductive": ("transduced_query", "y_query"),
}


def score(record: Record, *, n_jobs: int | None = None) -> dict[str, Any]:
    """Return all retrieval and accuracy figures that a record allows, as numbers, lists and dicts.

    With codes: ``precision_at`` (by list length), ``list_size_10``, ``mean_average_precision``, ``curve``
    (radius, precision, recall; micro) and ``curve_macro``, ``pr_area`` (steps), ``lookup`` (radius 2), ``occupancy``
    of the database, and ``accuracy_knn`` (by number of neighbors, among the database rows that carried a
    label in training). ``precision_by_class`` has P@10 and P@15 for the queries of each class, None for a class without
    any.
    Where the items are not the training rows, ``lists`` has the same of items that carry labels ("labeled": the
    training rows, each with the code of its label), and of both kinds of items for queries that are not rounded to bits
    ("real", "labeled, real"): by the probability of the same class, or by the product of scores and code.
    With predictions: ``accuracy`` (where there are codewords, the nearest by Hamming distance, ties by hinge distance),
    ``accuracy_balanced`` (its mean over classes), ``accuracy_expected`` (the same with ties at random),
    ``accuracy_hinge`` and ``accuracy_transductive``. A float search has ``precision_at`` and ``precision_by_class``
    alone. A failed run has nothing to score.
    """
    if not record.ok:
        raise ValueError(f"The run of {record.key.method!r} failed ({record.message}); there is nothing to score.")
    scores: dict[str, Any] = {}
    if "database" in record.arrays:
        scores |= _retrieval(histograms_of(record, n_jobs=n_jobs), record.arrays["y_query"])
        scores |= _neighbor_votes(record, n_jobs)
        scores["occupancy"] = asdict(occupancy(record.codes("database")))
    if "labels_coded" in record.arrays:
        scores |= _other_lists(record, n_jobs)
    if "neighbor_class" in record.arrays:
        scores |= _precision_of_lists(record)
    for name, (predicted, true) in _PREDICTIONS.items():
        if predicted in record.arrays:
            scores[name] = float(np.mean(record.arrays[predicted] == record.arrays[true]))
    if "predicted_query" in record.arrays:
        hits = record.arrays["predicted_query"] == record.arrays["y_query"]
        scores["accuracy_balanced"] = float(np.nanmean(_by_class(hits, record.arrays["y_query"])))
    if "codeword_hits" in record.arrays:
        scores["accuracy_expected"] = float(np.mean(record.arrays["codeword_hits"]))
    return scores


def histograms_of(record: Record, *, n_jobs: int | None = None) -> HammingHistograms:
    """Return the Hamming histograms of a record's codes."""
    database, query = record.codes("database"), record.codes("query")
    return hamming_histograms(query, database, record.arrays["y_query"], record.arrays["y_database"], n_jobs)


def cluster_agreement(record: Record) -> dict[str, float]:
    """Return adjusted Rand indices between clusters and classes, for what a record allows.

    ``codes`` clusters the database codes by k-means (ten starts, fixed seed, as many clusters as classes),
    in the same way for every method; ``assigned`` takes the clusters that a method assigned to its training rows, and
    ``predicted`` those that it predicts for the queries.
    """
    arrays = record.arrays
    scores = {}
    if "database" in arrays:
        signs = record.codes("database").to_signs().astype(np.float64)
        n_clusters = len(np.unique(arrays["y_database"]))
        clusters = KMeans(n_clusters, n_init=10, random_state=0).fit_predict(signs)
        scores["codes"] = float(adjusted_rand_score(arrays["y_database"], clusters))
    if "transduced_train" in arrays:
        scores["assigned"] = float(adjusted_rand_score(arrays["y_train"], arrays["transduced_train"]))
    if "predicted_query" in arrays:
        scores["predicted"] = float(adjusted_rand_score(arrays["y_query"], arrays["predicted_query"]))
    return scores


def _retrieval(histograms: HammingHistograms, y_query: np.ndarray) -> dict[str, Any]:
    lengths = [s for s in LIST_LENGTHS if s <= histograms.n_items]
    precisions = expected_precision(histograms, lengths) if lengths else np.empty((len(y_query), 0))
    micro, macro = (precision_recall(histograms, average) for average in ("micro", "macro"))
    return {
        **_precisions(lengths, precisions, y_query),
        "list_size_10": float(list_size(histograms, 10).mean()),
        "mean_average_precision": mean_of_known(average_precision(histograms)),
        "n_without_relevant": micro.n_without_relevant,
        "curve": _as_lists(micro),
        "curve_macro": _as_lists(macro),
        "pr_area": pr_area(micro, rule="step"),
        "lookup": asdict(lookup(histograms, 2)),
    }


def _other_lists(record: Record, n_jobs: int | None) -> dict[str, Any]:
    arrays, y_query, y_train = record.arrays, record.arrays["y_query"], record.arrays["y_train"]
    labels = BinaryCodes(arrays["labels_coded"], record.codes("query").n_bits)
    by_labels = hamming_histograms(record.codes("query"), labels, y_query, y_train, n_jobs)
    curve = precision_recall(by_labels)
    of_codes = ListQuality(
        float(expected_precision(by_labels, 10).mean()),
        mean_of_known(average_precision(by_labels)),
        pr_area(curve, rule="step"),
    )
    if "posterior_query" in arrays:
        queries, items = arrays["posterior_query"], arrays["posterior_database"]
        labeled = np.eye(queries.shape[1], dtype=queries.dtype)[y_train]
    else:
        queries = arrays["scores_query"]
        items, labeled = record.codes("database").to_signs(), labels.to_signs()
    same, same_labeled = (y_query[:, None] == y for y in (record.arrays["y_database"], y_train))
    found = {
        "labeled": of_codes,
        "real": list_quality(_distances(queries, items), same),
        "labeled, real": list_quality(_distances(queries, labeled), same_labeled),
    }
    names = ("P@10", "mAP", "PR area")
    return {"lists": {kind: dict(zip(names, quality, strict=True)) for kind, quality in found.items()}}


def _distances(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return minus the products of queries and items; equal items are at exactly equal distances."""
    different, place = np.unique(items, axis=0, return_inverse=True)
    return -(queries.astype(np.float64) @ different.T.astype(np.float64))[:, place.ravel()]


def _neighbor_votes(record: Record, n_jobs: int | None) -> dict[str, Any]:
    labeled = record.arrays.get("labeled")
    if labeled is None or not labeled.any():
        return {}
    items, query = record.codes("database")[labeled], record.codes("query")
    y_items = check_labels(record.arrays["y_database"][labeled], len(items))
    y_query = check_labels(record.arrays["y_query"], len(query))
    return {"accuracy_knn": {k: knn_accuracy(query, items, y_query, y_items, k, n_jobs=n_jobs) for k in (1, 5)}}


def _as_lists(curve: PrecisionRecall) -> dict[str, list[float]]:
    return {name: getattr(curve, name).tolist() for name in ("radius", "precision", "recall", "empty_share")}


def _precision_of_lists(record: Record) -> dict[str, Any]:
    y_query = record.arrays["y_query"]
    hits = record.arrays["neighbor_class"] == y_query[:, None]
    lengths = [s for s in LIST_LENGTHS if s <= hits.shape[1]]
    ranked = {}
    if hits.shape[1] > LIST_LENGTHS[-1]:  # whole lists
        every_rank = HammingHistograms(np.ones_like(hits, np.int64), hits.astype(np.int64))
        ranked = {"mean_average_precision": mean_of_known(average_precision(every_rank))}
    precisions = np.array([hits[:, :s].mean(axis=1) for s in lengths]).reshape(len(lengths), len(y_query)).T
    return _precisions(lengths, precisions, y_query) | ranked


def _precisions(lengths: list[int], precisions: np.ndarray, y_query: np.ndarray) -> dict[str, Any]:
    """Return the mean of the precisions of all queries, (n_queries, n_lengths), and for two lengths also by class."""
    means = dict(zip(lengths, map(float, precisions.mean(axis=0)), strict=True))
    by_class = {s: _by_class(precisions[:, lengths.index(s)], y_query) for s in _LENGTHS_BY_CLASS if s in lengths}
    return {"precision_at": means, "precision_by_class": {s: own.tolist() for s, own in by_class.items()}}


def _by_class(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the mean over the rows of each class, NaN for a class without rows."""
    counts = np.bincount(classes)
    sums = np.bincount(classes, values)
    return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
