"""Rows before they reach a hasher: tables from files, data sets by name, and features of pictures, texts and cells."""
