"""Gram matrices in, numbers out: the blocks of the alternating minimization. No labels, no estimators."""
