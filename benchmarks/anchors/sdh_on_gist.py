"""Why SDH on gist is .10 below its published row: mAP among unseen rows, and among the 5,000 training rows.

    STARSHL_DATA=DIR python benchmarks/anchors/sdh_on_gist.py

Settings, scaling and random queries are those of the program that published the row. All codes are made from vectors.
"""

from __future__ import annotations

import numpy as np
from gist import gist

from starshl.data import datasets
from starshl.evaluation import mean_average_precision
from starshl.hashers.baselines import SDH

N_QUERIES, N_TRAIN, N_UNSEEN = 1000, 5000, 12_000
GAMMA = 2e-3  # the kernel is exp(-gamma d^2)


def main() -> None:
    cifar = datasets.get("cifar10")
    print("seed bits  unseen  training rows")
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(cifar.X))[: N_QUERIES + N_TRAIN + N_UNSEEN]
        X, y = gist(cifar.X[order].reshape(-1, 32, 32)), cifar.y[order]
        X = (X - X.mean()) / X.std()
        queries, train, unseen = np.split(np.arange(len(X)), [N_QUERIES, N_QUERIES + N_TRAIN])
        for n_bits in (12, 24, 32, 48):
            hasher = SDH(n_bits, sigma=(2 * GAMMA) ** -0.5, regularization=1e-7, random_state=seed)
            hasher.fit(X[train], y[train])
            asked = hasher.encode(X[queries])
            found = [mean_average_precision(asked, hasher.encode(X[i]), y[queries], y[i]) for i in (unseen, train)]
            print(f"{seed:4} {n_bits:4}  {found[0]:.3f}   {found[1]:.3f}", flush=True)


if __name__ == "__main__":
    main()
