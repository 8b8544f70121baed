"""Formulae when the documentation is built: LaTeX becomes MathML, so that a page needs no script and loads nothing."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

_FOUND = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
"""What `pymdownx.arithmatex` makes of `$...$` and `$$...$$`."""
_FUNCTION = re.compile(r"<mi>(log|exp)</mi>(?=(<mo|<mrow><mo)?)")
_THIN = '<mspace width="0.17em"/>'


def set_formulae(page: str) -> str:
    """The HTML with every formula as MathML.

    Raises:
        ValueError: the LaTeX has a command that is not known.
    """
    return _FOUND.sub(lambda found: _formula(html.unescape(found[3]), "block" if found[2] == "[" else "inline"), page)


def _formula(latex: str, display: str) -> str:
    mathml = convert(latex, display=display)
    if "\\" in html.unescape(mathml):
        raise ValueError(f"unknown command in the formula {latex}")
    # A browser sets no space around these names: one before, and one after unless a bracket follows.
    return _FUNCTION.sub(lambda name: f"{_THIN}<mi>{name[1]}</mi>{'' if name[2] else _THIN}", mathml)
