"""What sections of the report page are made of and from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import pandas as pd

from msda_bench.results.words import name_of
from msda_bench.suite.plan import Experiment
from msda_bench_report.plots.parts import Chart


class Figure(NamedTuple):
    """A chart with its numbers.

    Attributes:
        name: tells it apart from the experiment's other figures: letters, digits and hyphens.
        title: stands above it.
        label: describes it for screen readers.
        chart: an Altair chart, such as those of `msda_bench.plots`; its parameter `shown` follows the reader's choice
            of methods.
        values: its numbers, for readers without scripts.
        wide: whether it takes the page's width.
    """

    name: str
    title: str
    label: str
    chart: Chart
    values: pd.DataFrame
    wide: bool = False


class Section(NamedTuple):
    """A folded section; one without figures and table is one sentence.

    Attributes:
        name: tells it apart from the experiment's other sections: letters, digits and hyphens.
        title: its heading.
        text: introduces it, or tells why it is empty.
        figures: its charts.
        table: numbers without a chart.
        undrawn: the number of targets without a figure.
    """

    name: str
    title: str
    text: str
    figures: tuple[Figure, ...] = ()
    table: pd.DataFrame | None = None
    undrawn: int = 0


@dataclass(frozen=True)
class Results:
    """What is known of one experiment: its rows of each frame.

    Attributes:
        targets: the targets with figures, and what they are called in names of figures.
        experiment: the planned experiment.
        runs: its runs with the selected settings, as from `load_results`.
        leaderboard: as from `leaderboard`.
        comparisons: as from `compare`, each decided in its `outcome`.
        curves: means over seeds, as from `msda_bench_report.plots.epochs.by_epoch`, of the targets with figures.
        classes: as from `per_class`, of the targets with figures.
        criteria: as from `criteria`.
        candidates: as from `sensitivity`.
    """

    targets: Mapping[str, str]
    experiment: Experiment
    runs: pd.DataFrame
    leaderboard: pd.DataFrame
    comparisons: pd.DataFrame
    curves: pd.DataFrame
    classes: pd.DataFrame
    criteria: pd.DataFrame
    candidates: pd.DataFrame

    @cached_property
    def ok(self) -> pd.DataFrame:
        """The runs that are ok."""
        return self.runs[(self.runs["status"] == "ok").to_numpy()].astype({"method": object})

    def by_target(
        self,
        name: str,
        label: str,
        rows: pd.DataFrame,
        draw: Callable[[pd.DataFrame], Chart],
        values: Callable[[pd.DataFrame], pd.DataFrame],
        title: str = "",
    ) -> tuple[Figure, ...]:
        """A figure for each target that has rows, with the numbers that `values` computes from them.

        Its title is the name of the target, after `title` if a section has several figures per target.
        """
        at = {target: rows[(rows["target"] == target).to_numpy()] for target in self.targets}
        return tuple(
            Figure(
                f"{name}-{slug}",
                f"{title}{target}",
                f"{label} at {name_of(target)}",
                draw(at[target]),
                values(at[target]),
            )
            for target, slug in self.targets.items()
            if len(at[target])
        )

    def section(self, name: str, title: str, text: str, figures: tuple[Figure, ...]) -> Section:
        """A section of figures of single targets, which tells how many targets have none."""
        undrawn = len(self.experiment.targets) - len(self.targets) if figures else 0
        return Section(name, title, text, figures, undrawn=undrawn)


Make: TypeAlias = Callable[[Results], Section | None]
"""Makes a section of an experiment; None where it has nothing to say."""
