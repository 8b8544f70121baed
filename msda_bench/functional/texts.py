"""What texts name: one reading of labels, domains, groups and categories, whatever file or array they come from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

MISSING_TEXTS = (
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "?", "N/A", "NA",
    "NULL", "NaN", "NaT", "None", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that stand for a missing value besides the empty one: those of pandas, NaT and the question mark."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NO_WIDTH = re.compile("[\u200b\ufeff]")
_ZEROS = re.compile(r"[+-]?0\d")
_EXACT = 1 << 53
"""From here on float64 does not tell neighbours apart: such whole numbers are identifiers."""


def plain_texts(texts: Sequence[str], missing: Collection[str] = MISSING_TEXTS) -> list[str]:
    """Each text as it is compared with the others, "" for a missing one.

    Blanks at the ends go, and several become one, also those without width; characters are composed (NFC). If all texts
    are numbers below 2**53, equal ones become one plain text: 101 for 101.0 and 00101. Leading zeros stay where no two
    numbers are equal.

    Args:
        texts: the different texts of a whole column, or all names of a kind.
        missing: texts that stand for a missing value besides the empty one.
    """
    plain = [unicodedata.normalize("NFC", " ".join(_NO_WIDTH.sub(" ", text).split())) for text in texts]
    plain = ["" if text in missing else text for text in plain]
    different = set(plain) - {""}
    if not all(map(_NUMBER.fullmatch, different)) or any(abs(float(text)) >= _EXACT for text in different):
        return plain
    numbers = {text: _plain_number(float(text)) for text in different}
    numbers = {text: "" if number in missing else number for text, number in numbers.items()} | {"": ""}
    if any(map(_ZEROS.match, different)) and len(set(numbers.values())) == len(numbers):
        return plain
    return [numbers[text] for text in plain]


def _plain_number(value: float) -> str:
    """A number without needless digits: 1 for 1.0, 0 for -0.0."""
    return str(int(value)) if value.is_integer() else str(value)


def alike(texts: Iterable[str]) -> list[tuple[str, ...]]:
    """Those of different texts that may mean the same.

    Only case, a final dot, the way a character or a number is written, or invisible characters tell them apart.
    """
    same: dict[str, list[str]] = {}
    for text in texts:
        same.setdefault(_folded(text), []).append(text)
    return [tuple(of) for of in same.values() if len(of) > 1]


def _folded(text: str) -> str:
    seen = "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")
    return _plain_number(float(seen)) if _NUMBER.fullmatch(seen) else " ".join(seen.casefold().rstrip(" .").split())
