"""Draw docs/first_picture.svg: what three handwritten digits find with no labels, with fifty, and with all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery_pictures import Symbols, draw_svg, draw_text, result_row
from sklearn.datasets import load_digits

from starshl import HybridHasher, make_index
from starshl.baselines import ITQ

N_TRAIN, N_LABELED, N_BITS = 1200, 50, 32
STEP, LEFT, TOP = 30, 250, 100


def main() -> None:
    X, y = load_digits(return_X_y=True)
    train, new = np.arange(N_TRAIN), np.arange(N_TRAIN, len(X))
    few = np.where(train < N_LABELED, y[:N_TRAIN], -1)
    found = {
        "no labels (ITQ)": search(ITQ(N_BITS, random_state=0).fit(X[train]), X, train, new, None),
        "50 labels": search(HybridHasher(n_bits=N_BITS, random_state=0).fit(X[train], few), X, train, new, few),
        "1,200 labels": search(
            HybridHasher(n_bits=N_BITS, random_state=0).fit(X[train], y[train]), X, train, new, y[train]
        ),
    }
    right = {name: y[rows] == y[new, None] for name, rows in found.items()}
    shown = half_right_of_three_digits(right["no labels (ITQ)"].mean(axis=1), y[new])
    picture = draw(X, y, new, found, right, shown)
    Path(__file__).parents[1].joinpath("docs", "first_picture.svg").write_text(picture, encoding="utf-8")
    for name, hits in right.items():
        print(f"{name}: {hits.mean():.3f} of the ten nearest are the digit of the query")


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
    parts = [draw_text(20, 30, f"Ten nearest by codes of {N_BITS // 8} bytes; wrong ones are red", 16, weight="bold")]
    parts.append(draw_text(LEFT + 10 * STEP + 16, 30, "of all 597 queries", 13, color="#777777"))
    top = TOP - 44
    for query in shown:
        parts.append(f'<g transform="translate(24 {top + 12}) scale(8)">{symbols.use(new[query])}</g>')
        for name, rows in found.items():
            parts.append(draw_text(110, top + 18, name, 13))
            results = {"rows": rows[query].tolist(), "right": right[name][query].tolist()}
            parts += result_row(results, symbols, LEFT, top, STEP)
            parts.append(draw_text(LEFT + 10 * STEP + 16, top + 18, f"{right[name].mean():.1%} right", 13))
            top += STEP
        top += 20
    return draw_svg(LEFT + 10 * STEP + 160, top, [symbols.definitions(), *parts])


if __name__ == "__main__":
    main()
