"""Gram matrices in, numbers out: the blocks of the alternating minimization, without labels and estimators."""
