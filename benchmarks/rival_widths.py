"""What rivals gain from the best width of their kernel: mAP of whole lists with the default and with the chosen width.

    STARSHL_DATA=DIR python benchmarks/rival_widths.py usps letter agnews gist

The rows are those of the first run of `lists-NAME`; "gist" has those of CIFAR-10, with GIST for features. The width is
chosen on training rows alone: three fifths of them fit, a fifth asks and a fifth is found. Each rival stands with the
better of two kinds of queries, codes and scores, as in docs/results.md. Widths are shares of the root mean squared
distance between rows. KSH and the kernel variant of COSDISH have no width to choose: theirs is that distance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from starshl import StarRidge
from starshl.data import datasets
from starshl.evaluation.whole_lists import list_quality
from starshl.hashers.baselines import SDH, CodewordSVM
from starshl.reproduction import SplitData, protocol, split_data

N_BITS, DEFAULT = 32, 0.5
WIDTHS = (0.125, 0.25, DEFAULT, 1.0, 2.0)
RIVALS: dict[str, Callable[..., Any]] = {
    "SDH": SDH,
    "HC-SDH": partial(SDH, variant="hadamard", n_anchors=None),
    "codeword SVM": CodewordSVM,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help='data sets of the protocols "lists-NAME", or "gist"')
    print(f"{'data':16}{'method':16}{'default':>9}{'chosen':>9}  width")
    for name in parser.parse_args().names:
        data = rows_of(name)
        for rival, make in RIVALS.items():
            width = chosen_width(make, data)
            default, chosen = (mean_average_precision(made(make, data, w), data) for w in (DEFAULT, width))
            print(f"{name:16}{rival:16}{default:9.3f}{chosen:9.3f}  {width}", flush=True)
        own = StarRidge(N_BITS, random_state=data.split.seed("*SHL")).fit(data.X_train, data.y_train)
        print(f"{name:16}{'StarRidge':16}{mean_average_precision(own, data):9.3f}", flush=True)


def rows_of(name: str) -> SplitData:
    """Return training rows, queries and unseen items."""
    if name != "gist":
        dataset, rows = datasets.get(name), protocol(f"lists-{name}")
        return split_data(dataset, rows.split(dataset, 0), scaling=rows.scaling)
    sys.path.insert(0, str(Path(__file__).parent / "anchors"))
    from gist import gist

    dataset = datasets.get("cifar10")
    split = protocol("lists-cifar10").split(dataset, 0)
    used = np.concatenate([split.train, split.query, split.database])
    X = np.zeros((len(dataset), 512), np.float32)
    X[used] = gist(dataset.X[used].reshape(-1, 32, 32))
    return split_data(replace(dataset, X=X), split, scaling="standard")


def made(make: Callable[..., Any], data: SplitData, width: float) -> Any:
    """Return the fitted rival with a width as a share of the root mean squared distance between training rows."""
    X = data.X_train - data.X_train.mean(axis=0, dtype=np.float64)
    distance = np.sqrt(2 * np.square(X).sum(axis=1).mean())
    hasher = make(N_BITS, sigma=width * float(distance), random_state=data.split.seed("rivals"))
    return hasher.fit(data.X_train, data.y_train)


def chosen_width(make: Callable[..., Any], data: SplitData) -> float:
    """Return the width with the largest mAP among training rows that were left out."""
    n = len(data.X_train) // 5
    inner = replace(
        data,
        X_query=data.X_train[:n],
        y_query=data.y_train[:n],
        X_database=data.X_train[n : 2 * n],
        y_database=data.y_train[n : 2 * n],
        X_train=data.X_train[2 * n :],
        y_train=data.y_train[2 * n :],
    )
    return max(WIDTHS, key=lambda width: mean_average_precision(made(make, inner, width), inner))


def mean_average_precision(hasher: Any, data: SplitData) -> float:
    """Return mAP of queries among the items: by probability, or the better of queries as codes and as scores."""
    same = data.y_query[:, None] == data.y_database
    queries, items = hasher.encode_queries(data.X_query), hasher.encode_database(data.X_database)
    if queries.posteriors is not None:
        asked, found = [queries.posteriors], hasher.words.posteriors_of(items)
    else:
        asked = [hasher.encode(data.X_query).to_signs(), hasher.decision_function(data.X_query)]
        found = items.to_signs()
    return max(list_quality(-(rows.astype(np.float64) @ found.T), same).mean_average_precision for rows in asked)


if __name__ == "__main__":
    main()
