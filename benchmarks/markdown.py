"""Tables and numbers as Markdown has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table whose first columns are text and whose others are numbers."""
    lines = [head, [*["---"] * texts, *["---:"] * (len(head) - texts)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def ms(seconds: float) -> str:
    """Milliseconds with three figures."""
    return three(seconds * 1e3)


def three(number: float) -> str:
    """Three figures, and no power of ten for large numbers."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
