"""Compiled loop: a symmetric matrix times a vector, summed in float64."""

from numba import njit


@njit(cache=True, nogil=True)
def accumulate_rows(matrix, rows, values, out):
    """Add sum_k values[k] * matrix[rows[k]] to ``out``; BLAS would sum a float32 matrix in float32."""
    for k in range(rows.shape[0]):
        row = matrix[rows[k]]
        value = values[k]
        for j in range(out.shape[0]):
            out[j] += value * row[j]
