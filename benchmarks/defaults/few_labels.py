"""Few labels: accuracy on unlabeled and unseen rows, and P@10 of unseen queries among all training rows."""

import numpy as np
import peers
from data import FEW_LABELS, TRANSDUCTIVE, draw
from measures import accuracy, precision, precision_of_classes
from store import Store

from starshl import BinaryCodes, StarRidge, StarSHL
from starshl.codes import separated_codewords

LABELS_PER_CLASS = (1, 5, 20, 100)
SEED = 0


def run(options) -> None:
    store = Store("few-labels", options.again, options.sets)
    works = {
        "StarRidge": hasher(StarRidge),
        "StarRidge, labeled rows only": star_ridge_labeled,
        "plain ridge, labeled rows only": plain_ridge,
        "Poisson learning": classifier(peers.poisson_learning),
        "label spreading": classifier(peers.label_spreading),
        "SVC": classifier(peers.svc),
        "logistic regression": classifier(peers.logistic),
        "label spreading, best in hindsight": best_spreading,
        "StarSHL": hasher(StarSHL),
    }
    chosen = [name for name in works if not options.work or name in options.work]
    for split in range(options.splits):
        for n_labels in LABELS_PER_CLASS:
            for name, task in FEW_LABELS.items():
                if (options.sets and name not in options.sets) or (name == "letter" and n_labels > 20):
                    continue
                data = draw(task, split, n_labels)
                for work in chosen:
                    where = {"set": name, "labels": n_labels, "split": split}
                    store.measure(where, work, lambda data=data, work=work: [works[work](data)])
    if not options.sets or "transductive" in options.sets:
        run_transductive(store, chosen, works, options.splits)


def run_transductive(store: Store, chosen: list[str], works: dict, n_splits: int) -> None:
    """All training rows have a label, and the queries are the unlabeled rows of the fit; 15 bits, as in the paper."""
    for split in range(n_splits):
        for name, task in TRANSDUCTIVE.items():
            data = as_transductive(draw(task, split))
            for work in chosen:
                where = {"set": f"{name}, transductive", "labels": "all", "split": split}
                store.measure(where, work, lambda data=data, work=work: [works[work](data)])


class FitRows:
    """The rows of one fit; ``n_bits`` is the length of the codes."""

    def __init__(self, X, y, y_true, unseen, y_unseen, n_bits):
        self.X_train, self.y_train, self.y_train_true = X, y, y_true
        self.X_query, self.y_query, self.n_bits = unseen, y_unseen, n_bits


def as_transductive(data) -> FitRows:
    X = np.concatenate([data.X_train, data.X_query])
    y_true = np.concatenate([data.y_train, data.y_query])
    y = np.concatenate([data.y_train, np.full(len(data.y_query), -1)])
    return FitRows(X, y, y_true, data.X_query, data.y_query, 15)


def length_of(data) -> int:
    return getattr(data, "n_bits", 32)


def figures(data, transduction, predicted, p10: float, **others) -> dict:
    unlabeled = data.y_train < 0
    return {
        "unlabeled": accuracy(transduction[unlabeled], data.y_train_true[unlabeled]),
        "unseen": accuracy(predicted, data.y_query),
        "p10": p10,
        **others,
    }


def precision_of(data, fitted, items: BinaryCodes) -> float:
    return precision(fitted.encode(data.X_query), items, data.y_query, data.y_train_true)


def hasher(hasher_class: type[StarRidge | StarSHL]):
    def measured(data) -> dict:
        fitted = hasher_class(length_of(data), random_state=SEED).fit(data.X_train, data.y_train)
        items = fitted.encode_training(data.X_train, data.y_train)
        again = fitted.encode_database(data.X_train, data.y_train)
        return figures(
            data,
            fitted.transduction_,
            fitted.predict(data.X_query),
            precision_of(data, fitted, items),
            p10_encoded_again=precision_of(data, fitted, again),
            choice=fitted.choice_,
        )

    return measured


def star_ridge_labeled(data) -> dict:
    labeled = data.y_train >= 0
    fitted = StarRidge(length_of(data), random_state=SEED).fit(data.X_train[labeled], data.y_train[labeled])
    items = fitted.encode_database(data.X_train, data.y_train)
    return figures(data, fitted.predict(data.X_train), fitted.predict(data.X_query), precision_of(data, fitted, items))


def plain_ridge(data) -> dict:
    words = separated_codewords(1 + data.y_train_true.max(), length_of(data), np.random.RandomState(SEED))
    of_items, of_queries = (
        peers.plain_ridge_scores(data.X_train, data.y_train, rows, words) for rows in (data.X_train, data.X_query)
    )
    labeled = data.y_train >= 0
    of_items[labeled] = words[data.y_train[labeled]]
    nearest = [(scores @ words.T).argmax(axis=1) for scores in (of_items, of_queries)]
    codes = BinaryCodes.from_scores(of_queries), BinaryCodes.from_scores(of_items)
    return figures(data, *nearest, precision(*codes, data.y_query, data.y_train_true))


def classifier(peer):
    def measured(data) -> dict:
        transduction, predicted = peer(data.X_train, data.y_train, data.X_query)
        p10 = precision_of_classes(predicted, transduction, data.y_query, data.y_train_true)
        return figures(data, transduction, predicted, p10)

    return measured


def best_spreading(data) -> dict:
    """The setting of label spreading with the best accuracy on the unlabeled rows, chosen by their true labels."""
    unlabeled = data.y_train < 0
    reached = {}
    for setting in peers.SPREADING_SETTINGS:
        found, _ = peers.label_spreading(data.X_train, data.y_train, data.X_query[:1], *setting)
        reached[setting] = accuracy(found[unlabeled], data.y_train_true[unlabeled])
    best = max(reached, key=reached.get)
    return classifier(lambda *rows: peers.label_spreading(*rows, *best))(data) | {"setting": best}
