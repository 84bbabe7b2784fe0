"""(empty)."""

from __future__ import annotations
