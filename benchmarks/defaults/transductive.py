"""All training rows have a label, and the queries are unlabeled rows of the same fit; 15 bits, as in the paper."""

import numpy as np
import peers
from data import TRANSDUCTIVE, draw
from measures import accuracy
from store import Store

from starshl import StarRidge, StarSHL
from starshl.codes import separated_codewords

SEED = 0
N_BITS = 15


def run(options) -> None:
    store = Store("transductive", options.again, options.sets)
    works = {
        "StarRidge": hasher(StarRidge),
        "StarSHL": hasher(StarSHL),
        "label spreading": peers.label_spreading,
        "Poisson learning": peers.poisson_learning,
        "SVC": peers.svc,
        "plain ridge, labeled rows only": plain_ridge,
    }
    for split in range(options.splits):
        for name in options.sets or TRANSDUCTIVE:
            data = draw(TRANSDUCTIVE[name], split)
            X = np.concatenate([data.X_train, data.X_query])
            y = np.concatenate([data.y_train, np.full(len(data.y_query), -1)])
            for work in options.work or works:
                store.measure(
                    {"set": name, "split": split},
                    work,
                    lambda work=work, X=X, y=y, data=data: [
                        {"unlabeled": accuracy(works[work](X, y)[y < 0], data.y_query)}
                    ],
                )


def hasher(hasher_class: type[StarRidge | StarSHL]):
    return lambda X, y: hasher_class(N_BITS, random_state=SEED).fit(X, y).transduction_


def plain_ridge(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    words = separated_codewords(1 + y.max(), N_BITS, np.random.RandomState(SEED))
    return (peers.plain_ridge_scores(X, y, X, words) @ words.T).argmax(axis=1)
