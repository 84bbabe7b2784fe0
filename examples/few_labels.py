"""Few labels: how far do five labels per class go? Prints the accuracy on the rows without a label."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from starshl import StarRidge

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)

print("labels per class   StarRidge   SVC on the labeled rows")
for n_labels in (1, 5, 20):
    labeled = np.concatenate([rng.choice(np.flatnonzero(y == digit), n_labels, replace=False) for digit in range(10)])
    few = np.full(len(y), -1)
    few[labeled] = y[labeled]
    rest = few < 0

    hasher = StarRidge(32, random_state=0).fit(X, few)
    spread = np.mean(hasher.transduction_[rest] == y[rest])
    alone = SVC(C=10).fit(X[labeled], y[labeled]).score(X[rest], y[rest])
    print(f"{n_labels:16}   {spread:9.3f}   {alone:.3f}")
    assert spread > alone
