"""All rows labeled: P@10 of StarRidge, StarSHL and every hasher of the catalog on the same splits."""

import multiprocessing
import resource
import sys
import warnings
from pathlib import Path

import numpy as np
from data import MAIN, SMALL_MNIST, SUPERVISED, UNEQUAL, draw, unseen_rows
from measures import (
    accuracy,
    balanced_accuracy,
    calibration_error,
    precision,
    precision_by_scores,
    precision_of_equal_classes,
    without_learning,
)
from store import Store

from starshl import BinaryCodes, StarRidge, StarSHL
from starshl.codes import separated_codewords
from starshl.hashers import configurations
from starshl.hashers.baselines import SDH, CodewordSVM

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from plain_star_ridge import PlainStarRidge

N_BITS = (32, 8, 5)
SEED = 0
N_CALIBRATION_ROWS = 4_000
CATALOG_CPU_SECONDS = 120
MEASURED_BY_THEMSELVES = ("StarRidge", "StarSHL", "CodewordSVM")


def run(options) -> None:
    store = Store("supervised", options.again, options.sets)
    main_work = {
        "StarRidge": star_ridge,
        "PlainStarRidge": plain_star_ridge,
        "StarSHL": lambda data: star_shl(data, (32,)),
        "HC-SDH, all rows": lambda data: hc_sdh(data, (32,)),
        "CodewordSVM": lambda data: codeword_svm(data, (32,)),
        "StarSHL, short": lambda data: star_shl(data, (8, 5)),
        "HC-SDH, all rows, short": lambda data: hc_sdh(data, (8, 5)),
        "CodewordSVM, short": lambda data: codeword_svm(data, (8, 5)),
    }
    chosen = [name for name in main_work if not options.work or name in options.work]
    for split in range(options.splits):
        for name, task in SUPERVISED.items():
            if name not in (options.sets or MAIN):
                continue
            data = draw(task, split)
            for work in chosen:
                store.measure({"set": name, "split": split}, work, lambda data=data, work=work: main_work[work](data))
    if options.catalog:
        run_catalog(store, options)
    if "StarRidge" in chosen:
        for seed in range(options.splits):
            store.measure({"set": "small_mnist", "split": seed}, "StarRidge", lambda seed=seed: small_mnist(seed))


def run_catalog(store: Store, options) -> None:
    for split in range(options.splits):
        for name, task in SUPERVISED.items():
            if name not in (options.sets or MAIN):
                continue
            data = draw(task, split)
            for method in configurations():
                if method.method in MEASURED_BY_THEMSELVES:
                    continue
                work = lambda data=data, method=method: limited(catalog_method, data, method)  # noqa: E731
                store.measure({"set": name, "split": split}, method.name, work)


def row(method: str, n_bits: int, database: str, decoding: str, p10: float, **others) -> dict:
    return {"method": method, "bits": n_bits, "database": database, "decoding": decoding, "p10": p10, **others}


def by_codes(method: str, data, queries: BinaryCodes, databases: dict[str, BinaryCodes], **others) -> list[dict]:
    """Return P@10 by Hamming distance for databases that were coded in different ways."""
    rows = []
    for how, items in databases.items():
        given = (queries, items, data.y_query, data.y_train)
        rows.append(row(method, queries.n_bits, how, "hamming", precision(*given), **others))
        if data.split.dataset in UNEQUAL:
            rows[-1]["p10_of_classes"] = precision_of_equal_classes(*given)
    return rows


def star_ridge(data) -> list[dict]:
    hasher = StarRidge(32, random_state=SEED).fit(data.X_train, data.y_train)
    X, y = unseen_rows(data, N_CALIBRATION_ROWS)
    probabilities, predicted = hasher.predict_proba(X), hasher.predict(data.X_query)
    ece, ece_of_chance = calibration_error(probabilities, hasher.classes_, y)
    others = {
        "accuracy": accuracy(predicted, data.y_query),
        "accuracy_balanced": balanced_accuracy(predicted, data.y_query),
        **without_learning(data.y_query, data.y_train),
        "ece": ece,
        "ece_of_chance": ece_of_chance,
        "choice": hasher.choice_,
    }
    rows = []
    for n_bits in N_BITS:
        short = hasher.with_bits(n_bits)
        databases = {
            "labels": short.encode_database(data.X_train, data.y_train),
            "self": short.encode_database(data.X_train),
        }
        rows += by_codes("StarRidge", data, short.encode(data.X_query), databases, **others)
    return rows


def plain_star_ridge(data) -> list[dict]:
    model = PlainStarRidge(seed=SEED).fit(data.X_train, data.y_train)
    of_queries = model.posterior(model.class_scores(data.X_query))
    of_items = model.posterior(model.class_scores(data.X_train), 1 / 3)
    others = {"accuracy": accuracy(of_queries.argmax(axis=1), data.y_query)}
    rows = []
    for n_bits in N_BITS:
        words = separated_codewords(of_queries.shape[1], n_bits, np.random.RandomState(SEED))
        databases = {
            "labels": BinaryCodes.from_signs(words[data.y_train]),
            "self": BinaryCodes.from_scores(of_items @ words),
        }
        queries = BinaryCodes.from_scores(of_queries @ words)
        rows += by_codes("PlainStarRidge", data, queries, databases, **others)
    return rows


def star_shl(data, lengths) -> list[dict]:
    rows = []
    for n_bits in lengths:
        hasher = StarSHL(n_bits, random_state=SEED).fit(data.X_train, data.y_train)
        databases = {
            "self": hasher.encode_database(data.X_train),
            "labels": BinaryCodes.from_signs(hasher.codewords_[data.y_train]),
        }
        others = {"accuracy": accuracy(hasher.predict(data.X_query), data.y_query)}
        rows += by_codes("StarSHL", data, hasher.encode(data.X_query), databases, **others)
    return rows


def hc_sdh(data, lengths) -> list[dict]:
    return codeword_peer("HC-SDH, all rows", data, lengths, lambda n: SDH(n, variant="hadamard", n_anchors=None))


def codeword_svm(data, lengths) -> list[dict]:
    return codeword_peer("CodewordSVM", data, lengths, CodewordSVM)


def codeword_peer(name: str, data, lengths, make) -> list[dict]:
    """Measure a peer as it is, with label codewords in the database, and with real-score decoding of both."""
    rows = []
    for n_bits in lengths:
        hasher = make(n_bits).set_params(random_state=SEED).fit(data.X_train, data.y_train)
        databases = {
            "self": hasher.encode_database(data.X_train),
            "labels": BinaryCodes.from_signs(hasher.codewords_[data.y_train]),
        }
        scores = hasher.decision_function(data.X_query)
        rows += by_codes(name, data, BinaryCodes.from_scores(scores), databases)
        for how, items in databases.items():
            p10 = precision_by_scores(scores, items, data.y_query, data.y_train)
            rows.append(row(name, n_bits, how, "real", p10))
    return rows


def catalog_method(data, method) -> list[dict]:
    n_bits = data.X_train.shape[1] if method.facts.full_length else 32
    hasher = method.make(n_bits, seed=SEED).fit(data.X_train, data.y_train)
    items = hasher.encode_database(data.X_train, data.y_train)
    return by_codes(method.name, data, hasher.encode(data.X_query), {"default": items})


def limited(action, *args) -> list[dict]:
    """Run an action in a process of its own that may use ``CATALOG_CPU_SECONDS``; say so if it needs more."""
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CATALOG_CPU_SECONDS, CATALOG_CPU_SECONDS))
        warnings.simplefilter("ignore")
        try:
            sender.send(action(*args))
        except (ValueError, np.linalg.LinAlgError) as error:
            sender.send([{"left_out": str(error)}])

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    sender.close()
    try:
        rows = receiver.recv()
    except EOFError:
        rows = [{"left_out": f"no result after {CATALOG_CPU_SECONDS} s of processor time"}]
    process.join()
    return rows


def small_mnist(seed: int) -> list[dict]:
    data = draw(SMALL_MNIST, 0)
    hasher = StarRidge(25, random_state=seed).fit(data.X_train, data.y_train)
    databases = {
        "labels": hasher.encode_database(data.X_train, data.y_train),
        "self": hasher.encode_database(data.X_train),
    }
    return by_codes("StarRidge", data, hasher.encode(data.X_query), databases)
