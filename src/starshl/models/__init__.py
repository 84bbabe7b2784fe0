"""The method of the paper."""
