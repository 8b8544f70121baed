"""An extension of Markdown for our pages, used when they are built: generated parts, and formulae as MathML."""

from __future__ import annotations

from typing import Any

from docs_formulae import set_formulae
from docs_pages import fill
from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor


class _Parts(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return fill("\n".join(lines)).split("\n")


class _Formulae(Postprocessor):
    def run(self, text: str) -> str:
        return set_formulae(text)


class DocsExtension(Extension):
    """Fills generated parts before anything else reads the page, and sets formulae in the finished HTML."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - as markdown calls it
        """Registers both."""
        md.preprocessors.register(_Parts(md), "docs_parts", 100)
        md.postprocessors.register(_Formulae(md), "docs_formulae", -100)


def makeExtension(**options: Any) -> DocsExtension:  # noqa: N802 - as markdown calls it
    """The extension, by the name that markdown looks for."""
    return DocsExtension(**options)
