"""The command line: every command assembles library calls and holds no algorithm."""

from __future__ import annotations
