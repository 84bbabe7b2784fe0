"""No labels: how well clusters agree with the classes (adjusted Rand index), given the number of classes."""

import numpy as np
from data import NO_LABELS, draw
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from store import Store

from starshl import StarRidge, StarSHL
from starshl.hashers.baselines import AnchorGraphHash


def run(options) -> None:
    store = Store("no-labels", options.again, options.sets)
    works = {
        "StarRidge": lambda X, k, seed: hasher_clusters(StarRidge, X, k, seed),
        "StarSHL": lambda X, k, seed: hasher_clusters(StarSHL, X, k, seed),
        "k-means": lambda X, k, seed: KMeans(k, n_init=10, random_state=seed).fit_predict(X),
        "SpectralClustering": spectral,
        "k-means on 2-AGH codes": of_codes,
    }
    chosen = [name for name in works if not options.work or name in options.work]
    for split in range(options.splits):
        for name, task in NO_LABELS.items():
            if options.sets and name not in options.sets:
                continue
            data = draw(task, split)
            X, y, n_classes = data.X_train, data.y_train, len(np.unique(data.y_train))
            for work in chosen:

                def measure(work=work, X=X, y=y, k=n_classes, seed=split) -> list[dict]:
                    return [{"ari": round(float(adjusted_rand_score(y, works[work](X, k, seed))), 5)}]

                store.measure({"set": name, "split": split}, work, measure)


def hasher_clusters(hasher_class: type[StarRidge | StarSHL], X, n_clusters: int, seed: int):
    return hasher_class(32, n_codewords=n_clusters, random_state=seed).fit(X).transduction_


def spectral(X, n_clusters: int, seed: int):
    model = SpectralClustering(n_clusters, affinity="nearest_neighbors", n_neighbors=7, random_state=seed)
    return model.fit_predict(X)


def of_codes(X, n_clusters: int, seed: int):
    codes = AnchorGraphHash(32, variant="two_layers", random_state=seed).fit(X).transform(X)
    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(codes.astype(np.float64))
