"""Codes in other systems, one module per system. Each needs its own extra, so none is imported here."""

from __future__ import annotations
