"""Compiled loops: the nearest of many rows, from blocks of inner products."""

from numba import njit


@njit(cache=True, nogil=True)
def keep_nearest(products, norms, first_column, rows, values, columns):
    """Keep the columns of smallest norms[j] - 2 products[i, j] seen so far, smallest first.

    Equal values keep the column that came first. ``rows[i]`` is the column of row i itself, which is left out.
    """
    n_kept = values.shape[1]
    for i in range(products.shape[0]):
        worst = values[i, n_kept - 1]
        for j in range(products.shape[1]):
            value = norms[j] - 2 * products[i, j]
            if value < worst and first_column + j != rows[i]:
                place = n_kept - 1
                while place > 0 and values[i, place - 1] > value:
                    values[i, place] = values[i, place - 1]
                    columns[i, place] = columns[i, place - 1]
                    place -= 1
                values[i, place] = value
                columns[i, place] = first_column + j
                worst = values[i, n_kept - 1]


@njit(cache=True, nogil=True)
def exact_distances(coordinates, rows, columns, out):
    """out[i, j] = the squared distance between row rows[i] and row columns[i, j], summed in float64."""
    for i in range(rows.shape[0]):
        for j in range(columns.shape[1]):
            total = 0.0
            for axis in range(coordinates.shape[1]):
                difference = coordinates[rows[i], axis] - coordinates[columns[i, j], axis]
                total += difference * difference
            out[i, j] = total
