"""Draw docs/first_picture.svg: what three handwritten digits find with no labels, with fifty, and with all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery_pictures import GRAY, Symbols, draw_svg, draw_text, result_row
from sklearn.datasets import load_digits

from starshl import HybridHasher, make_index
from starshl.hashers.baselines import ITQ

N_TRAIN, N_LABELED, N_BITS = 1200, 50, 32
# Narrow, so that it can be read on a phone, too.
STEP, LEFT, RIGHT = 30, 118, 78


def main() -> None:
    X, y = load_digits(return_X_y=True)
    train, new = np.arange(N_TRAIN), np.arange(N_TRAIN, len(X))
    few = np.where(train < N_LABELED, y[:N_TRAIN], -1)
    found = {
        "none": search(ITQ(N_BITS, random_state=0).fit(X[train]), X, train, new, None),
        "50": search(HybridHasher(N_BITS, random_state=0).fit(X[train], few), X, train, new, few),
        "1,200": search(HybridHasher(N_BITS, random_state=0).fit(X[train], y[train]), X, train, new, y[train]),
    }
    right = {name: y[rows] == y[new, None] for name, rows in found.items()}
    shown = half_right_of_three_digits(right["none"].mean(axis=1), y[new])
    picture = draw(X, y, new, found, right, shown)
    Path(__file__).parents[1].joinpath("docs", "first_picture.svg").write_text(picture, encoding="utf-8")
    for name, hits in right.items():
        print(f"Labels: {name}. Of the ten nearest, {hits.mean():.3f} show the digit of the query.")


def search(hasher, X, train, new, labels) -> np.ndarray:
    """Return the ten nearest training rows of each new row."""
    index = make_index(hasher.encode_database(X[train], labels), hasher=hasher)
    return index.search(hasher.encode(X[new]), k=10).ids


def half_right_of_three_digits(shares: np.ndarray, digits: np.ndarray) -> list[int]:
    """Return the first queries for which about half of what the code without labels finds is right, one per digit."""
    order = np.argsort(np.abs(shares - 0.5), kind="stable")
    first: dict[int, int] = {}
    for query in order.tolist():
        first.setdefault(int(digits[query]), query)
    return list(first.values())[:3]


def draw(X, y, new, found, right, shown) -> str:
    symbols = Symbols(X)
    title = f"Ten nearest digits by codes of {N_BITS // 8} bytes; wrong ones are red"
    shares = LEFT + 10 * STEP + 10
    parts = [draw_text(10, 24, title, 16, weight="bold")]
    parts += [draw_text(10, 50, "query", 13, color=GRAY), draw_text(66, 50, "labels", 13, color=GRAY)]
    parts.append(draw_text(shares, 50, "right*", 13, color=GRAY))
    top = 58
    for query in shown:
        parts.append(f'<g transform="translate(8 {top + 24}) scale(5.5)">{symbols.use(new[query])}</g>')
        for name, rows in found.items():
            parts.append(draw_text(66, top + 19, name, 14))
            results = {"rows": rows[query].tolist(), "right": right[name][query].tolist()}
            parts += result_row(results, symbols, LEFT, top, STEP)
            parts.append(draw_text(shares, top + 19, f"{right[name].mean():.1%}", 14))
            top += STEP
        top += 14
    note = f"* share of the ten nearest over all {len(new)} queries. Without labels: ITQ"
    parts.append(draw_text(10, top + 8, note, 13, color=GRAY))
    return draw_svg(LEFT + 10 * STEP + RIGHT, top + 20, [symbols.definitions(), *parts])


if __name__ == "__main__":
    main()
