"""Compiled dual coordinate ascent for the convex step of LAMP."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def _clip(value, low, high):
    return min(max(value, low), high)


# Only sums may be reordered here, which lets the compiler use vector instructions.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def _add(w, factor, row):
    for i in range(w.shape[0]):
        w[i] += factor * row[i]


@njit(cache=True, nogil=True)
def _ascend_row(w, row, norm, side, duals, n, cost):
    step = (1.0 - side * _dot(w, row)) / norm
    change = _clip(duals[n] + step, 0.0, cost) - duals[n]
    if change != 0.0:
        duals[n] += change
        _add(w, change * side, row)


@njit(cache=True, nogil=True)
def _ascend_pair(w, first, second, norms, curvature, sides, duals, cost):
    """Improve both multipliers of a pair alone, and by a shift from one to the other.

    Single steps stall where the two share a full budget, which is what the shift is for.
    """
    for e in range(2):
        row, factor = (first if e == 0 else second), 2.0 * sides[e]
        step = (1.0 - factor * _dot(w, row)) / (4.0 * norms[e])
        change = _clip(duals[e] + step, 0.0, cost - duals[1 - e]) - duals[e]
        if change != 0.0:
            duals[e] += change
            _add(w, change * factor, row)
    if curvature > 0.0 and (duals[0] > 0.0 or duals[1] > 0.0):
        slope = 2.0 * (sides[0] * _dot(w, first) - sides[1] * _dot(w, second))
        change = _clip(-slope / curvature, -duals[0], duals[1])
        if change != 0.0:
            duals[0] += change
            duals[1] -= change
            _add(w, 2.0 * change * sides[0], first)
            _add(w, -2.0 * change * sides[1], second)


@njit(cache=True, nogil=True)
def ascend_once(
    rows,
    norms,
    margin_rows,
    row_sides,
    row_cost,
    row_duals,
    ends,
    curvatures,
    end_sides,
    pair_costs,
    pair_duals,
    limit,
    limit_duals,
    w,
):
    """Improve every dual variable once, in place; w is kept equal to the sum it stands for.

    ``rows`` has the offset's 1 as last column, so no norm is zero. Constraints, each with a multiplier >= 0:

    - row_sides[n] f_margin_rows[n] >= 1 - ξ_n, multiplier at most row_cost;
    - 2 end_sides[p, e] f_ends[p, e] >= 1 - ζ_p for both ends e, multipliers of a pair together at most
      pair_costs[p];
    - |offset| <= limit, two multipliers without bound.
    """
    for n in range(margin_rows.shape[0]):
        row = margin_rows[n]
        _ascend_row(w, rows[row], norms[row], row_sides[n], row_duals, n, row_cost)
    for p in range(ends.shape[0]):
        i, j = ends[p]
        pair_norms = (norms[i], norms[j])
        _ascend_pair(w, rows[i], rows[j], pair_norms, curvatures[p], end_sides[p], pair_duals[p], pair_costs[p])
    for side in range(2):
        outward = 1.0 - 2.0 * side
        change = max(limit_duals[side] + outward * w[-1] - limit, 0.0) - limit_duals[side]
        limit_duals[side] += change
        w[-1] -= outward * change
