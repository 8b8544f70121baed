"""Where tables are shown: a terminal with styles, or plain ASCII text for files, pipes and dumb terminals."""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass

from rich.box import Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = 2
_PLAIN_WIDTH = 100
_RULED = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


@dataclass(frozen=True)
class Screen:
    """A console and what it can show.

    Attributes:
        console: where the text goes.
        styled: whether it shows styles and more than ASCII; if not, it gets neither.
        width: columns that a table may take.
    """

    console: Console
    styled: bool
    width: int

    @classmethod
    def of(cls, console: Console) -> Screen:
        """Finds out what a console can show."""
        unicode = console.encoding.lower().startswith("utf")
        styled = console.is_terminal and not console.is_dumb_terminal and unicode
        return cls(console, styled, console.width if styled else _PLAIN_WIDTH)

    @property
    def plus_minus(self) -> str:
        """What stands between a mean and its standard error."""
        return "±" if self.styled else "+-"

    def new_table(self) -> Table:
        """An empty table in the house style: one rule under the head, columns two spaces apart."""
        return Table(box=_RULED, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold")

    def table(self, table: Table) -> None:
        """Shows a table."""
        if self.styled:
            self.console.print(table)
            return
        plain = Console(file=io.StringIO(), width=_PLAIN_WIDTH, color_system=None, force_terminal=False)
        with plain.capture() as capture:
            plain.print(table)
        for line in capture.get().splitlines():
            self.line(line.rstrip())

    def line(self, text: str, style: str = "") -> None:
        """Shows one line, however long."""
        shown = text if self.styled else text.encode("ascii", "backslashreplace").decode()
        self.console.print(Text(shown, style=style if self.styled else ""), soft_wrap=True)

    def paragraph(self, text: str, style: str = "") -> None:
        """Shows prose, wrapped, with later lines indented."""
        for line in textwrap.wrap(text, self.width, subsequent_indent="  ", break_on_hyphens=False):
            self.line(line, style)
