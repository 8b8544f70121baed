"""Texts of values, and lists of names in messages."""

from __future__ import annotations

from collections.abc import Collection


def text_of(value: object) -> str:
    """A plain value as a text file has it, "" for NaN and None; a UnicodeDecodeError for bytes that are no text."""
    if isinstance(value, bytes):
        return value.decode()
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return ""
    return str(value)


def names_in(names: str, columns: Collection[str]) -> list[str]:
    """The columns that a text names, with commas between them unless a column is called so."""
    if names in columns:
        return [names]
    return [name.strip() for name in names.split(",")]


def names_text(names: Collection[str], most: int = 12) -> str:
    """Names in one line; if there are more than `most`, the first ones and how many there are."""
    first = ", ".join(list(names)[:most])
    if len(names) <= most:
        return first
    return f"{first}, ... ({len(names)} in all)"
