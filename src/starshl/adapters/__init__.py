"""Codes on other people's systems, one module each. Every one needs its own extra: none is imported here."""
