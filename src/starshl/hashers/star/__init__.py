"""StarSHL, StarRidge."""

from __future__ import annotations
