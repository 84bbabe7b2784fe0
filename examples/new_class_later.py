"""A class that was unknown at first: its items get a reserved codeword, and no stored code changes."""

import numpy as np
from sklearn.datasets import load_digits

from starshl import Codebook, StarRidge, make_index

X, y = load_digits(return_X_y=True)
train, unseen = np.arange(1200), np.arange(1200, len(y))
codebook = Codebook.make(range(9), n_bits=16, n_reserved=7, random_state=0)

before = train[y[train] != 9]
old = StarRidge(16, codewords=codebook, random_state=0).fit(X[before], y[before])
index = make_index(old.encode_database(X[before], y[before]), ids=before)

new = StarRidge(16, codewords=codebook.assign(9), random_state=0).fit(X[train], y[train])
nines = train[y[train] == 9]
index.add(new.encode_database(X[nines], y[nines]), ids=nines)

found = index.search(new.encode(X[unseen]), k=10).ids
right = y[found] == y[unseen, None]
print(f"P@10 {right.mean():.3f}; of the new class {right[y[unseen] == 9].mean():.3f}")
assert new.space_id_ == old.space_id_
assert right.mean() > 0.9
