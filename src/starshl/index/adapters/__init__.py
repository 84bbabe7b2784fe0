"""Codes in other systems, one module per system; each needs its own extra, so none is imported here."""

from __future__ import annotations
