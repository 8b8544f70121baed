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
_LETTERS_ALONE = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Tibetan, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
)
"""Characters of scripts that put no blanks between words."""
_UNSPACED = re.compile(f"[{_LETTERS_ALONE}]+")
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
    plain: list[str] = []
    for text in texts:
        words = _NO_WIDTH.sub(" ", text).split()
        composed = unicodedata.normalize("NFC", " ".join(words))
        plain.append("" if composed in missing else composed)
    different = set(plain) - {""}
    if not all(map(_NUMBER.fullmatch, different)):
        return plain
    if any(abs(float(text)) >= _EXACT for text in different):
        return plain
    numbers = {"": ""}
    for text in different:
        number = _plain_number(float(text))
        numbers[text] = "" if number in missing else number
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
    compatible = unicodedata.normalize("NFKC", text)
    visible = "".join(char for char in compatible if unicodedata.category(char) != "Cf")
    if _NUMBER.fullmatch(visible):
        return _plain_number(float(visible))
    return " ".join(visible.casefold().rstrip(" .").split())


def unspaced(texts: Iterable[str]) -> bool:
    """Whether most letters and digits of some texts are of scripts that put no blanks between words, such as Chinese.

    Args:
        texts: such as those of a column.
    """
    alone = others = 0
    for text in texts:
        letters = "".join(char for char in text if char.isalnum())
        mine = sum(map(len, _UNSPACED.findall(letters)))
        alone = alone + mine
        others = others + len(letters) - mine
    return alone > others


def unspaced_parts(text: str) -> list[tuple[str, bool]]:
    """Splits a text where its script begins or ceases to put blanks between words.

    Args:
        text: any text; it is taken in its compatibility form (NFKC), in which full-width letters and signs are the
            usual ones.

    Returns:
        The parts in order, and of each whether its script does without blanks.
    """
    plain = unicodedata.normalize("NFKC", text)
    parts = list[tuple[str, bool]]()
    end = 0
    for found in _UNSPACED.finditer(plain):
        parts += [(plain[end : found.start()], False), (found.group(), True)]
        end = found.end()
    return [*parts, (plain[end:], False)]


def characters(text: str) -> list[str]:
    """The letters of a part whose script does without blanks, each with its marks; digits too, but no signs.

    Args:
        text: such a part, of `unspaced_parts`.
    """
    found: list[str] = []
    for char in text:
        if char.isalnum():
            found.append(char)
        elif found and unicodedata.category(char).startswith("M"):  # such as a vowel above a Thai consonant
            found[-1] += char
    return found
