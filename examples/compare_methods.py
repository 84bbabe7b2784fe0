"""Compare methods on your own rows: precision at 10 of unseen queries, and what a fit costs."""

from time import process_time

from sklearn.datasets import load_digits

from starshl import StarRidge, StarSHL
from starshl.evaluation import precision_at
from starshl.hashers.baselines import ITQ, KSH, SDH, LSHash

X, y = load_digits(return_X_y=True)
items, queries = slice(0, 1000), slice(1000, None)
methods = [
    LSHash(32, random_state=0),
    ITQ(32, random_state=0),
    KSH(32, random_state=0),
    SDH(32, variant="hadamard", random_state=0),
    StarSHL(32, random_state=0),
    StarRidge(32, random_state=0),
]
for method in methods:
    method.fit(X[:50], y[:50])  # compiles loops, which is not part of the time to fit

precisions = {}
for method in methods:
    start = process_time()
    method.fit(X[items], y[items])
    seconds = process_time() - start
    precision = precision_at(
        method.encode(X[queries]), method.encode_database(X[items], y[items]), y[queries], y[items]
    )
    precisions[type(method).__name__] = precision
    print(f"{type(method).__name__:10} P@10 {precision:.3f}   {seconds:5.2f} s")
assert precisions["StarRidge"] > precisions["ITQ"] > precisions["LSHash"]
