"""Finds the sections of the page, those of other distributions too, and draws them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint
from typing import NamedTuple

from msda_bench.errors import BenchError
from msda_bench.loading import Brought, brought
from msda_bench_report.figures import Drawn, drawn, slugs
from msda_bench_report.section import Make, Results, Section

GROUP = "msda_bench.sections"
"""Name of the entry-point group of sections."""
_HOOK = "msda_sections"


class Part(NamedTuple):
    """A section as the templates write it."""

    id: str
    section: Section
    figures: list[Drawn]

    @classmethod
    def of(cls, section: Section, within: str, around: str, shown: Sequence[str]) -> Part:
        """Draws a section; its id begins with `within`, those of its figures with `around`."""
        return cls(f"{within}-{section.name}", section, [drawn(figure, around, shown) for figure in section.figures])


class Maker(NamedTuple):
    """What makes a section of every experiment, with the distribution that brings it."""

    make: Make
    by: Brought

    def part(self, results: Results, within: str, shown: Sequence[str]) -> Part | None:
        """The section of the experiment with this id; if its author's code raised, it tells of it in a line."""
        if not self.by.packages:
            section = self.make(results)
            return section and Part.of(section, within, within, shown)
        (within,) = slugs([f"{within} {self.by.origin.rpartition(' ')[0]}"]).values()
        try:
            with self.by.blamed(f"section {getattr(self.make, '__name__', 'without a name')}"):
                section = self.make(results)
                if section is not None and not isinstance(section, Section):
                    raise TypeError(f"made a {type(section).__name__}, not a Section")
                return section and Part.of(section, within, f"{within}-{section.name}", shown)
        except BenchError as error:
            section = Section("fault", "A section is missing", str(error))
            return Part.of(section, within, within, shown)


def sections(given: Iterable[EntryPoint] | None = None) -> tuple[list[Maker], list[str]]:
    """What makes sections, the built-in ones first, and a line for each plugin that cannot be used.

    Args:
        given: replace the installed entry points in tests.
    """
    makers, faults = [], []
    for part in brought(GROUP, _HOOK, given):
        if isinstance(part, str):
            faults.append(part)
        elif not callable(part.value):
            faults.append(f"{part.origin}: hook {_HOOK}: {part.value!r} is no function")
        else:
            makers.append(Maker(part.value, part))
    return sorted(makers, key=lambda maker: bool(maker.by.packages)), faults
