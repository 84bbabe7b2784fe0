"""*SHL of the paper (``StarSHL``) and its form with squared loss (``StarRidge``)."""
