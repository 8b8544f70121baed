"""Texts of values, and lists of names in messages."""

from __future__ import annotations

from collections.abc import Collection


def text_of(value: object) -> str:
    """A plain value as a text file has it, "" for NaN and None; a UnicodeDecodeError for bytes that are no text."""
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - of NaN


def names_in(names: str, columns: Collection[str]) -> list[str]:
    """The columns that a text names, with commas between them unless a column is called so."""
    return [names] if names in columns else [name.strip() for name in names.split(",")]


def listed(names: Collection[str], most: int = 12) -> str:
    """Names in one line; of many the first ones."""
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown}, ... ({len(every)} in all)"
