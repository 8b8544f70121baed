"""What each source does, as it is printed: one table for each method and target."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from msda_bench.report.experiments import print_all_remarks
from msda_bench.report.figures_text import Unit, show_p
from msda_bench.report.grid import NONE
from msda_bench.report.screen import Screen
from msda_bench.report.sources import Source, SourceTable, Without
from msda_bench.stats.scores import Scores

_KNOWN = ("weight", "worth")
_CHANGE = ("without", "change", "p", "Holm", "W/T/L", "n")
_EXPLANATION = (
    "weight: alpha, a moving average over steps at the end of the last epoch, mean over seeds. worth: what the dataset "
    "knows the source to be worth, for classification the accuracy on the target of the best classifier for the "
    "source, in percent. without: mean score without the source, over the pairs, a pair being a seed that is ok with "
    "and without it. change: mean difference, positive where the target is better off without the source; p: exact "
    "two-sided Wilcoxon signed-rank test; Holm: corrected over the sources of the table; W/T/L: pairs better, equal, "
    "worse without it; n: pairs at hand / planned. transfer is negative or positive where Holm's p is at most alpha."
)


def print_sources(
    console: Console, tables: Sequence[SourceTable], scores: Sequence[Scores], notes: Sequence[str], *, explain: bool
) -> None:
    """Prints the tables.

    Args:
        console: where to.
        tables: the tables.
        scores: of all experiments, for what is wrong with their runs.
        notes: lines that stand after the tables.
        explain: whether to say how the tables are to be read.
    """
    screen = Screen.of(console)
    for table in tables:
        _print_table(screen, table)
    if not tables:
        screen.line("no method here weighs single sources, no run leaves one out, or none has been run yet")
    elif explain:
        screen.paragraph(_EXPLANATION, "dim")
    for note in notes:
        screen.line(f"note: {note}", "yellow")
    print_all_remarks(screen, tuple(scores))


def _print_table(screen: Screen, table: SourceTable) -> None:
    experiment, unit = table.scores.experiment, _unit(table)
    score = unit.show_summary(table.score, screen.plus_minus)
    screen.line(f"{experiment.name} ({experiment.dataset}), {table.method}, target {table.target}", "bold")
    screen.line(f"{unit.label}: {score} with all sources; alpha {experiment.alpha:g}")
    screen.line("")
    shown = screen.new_table()
    shown.add_column("source", overflow="fold")
    told = any(one.without is not None for one in table.sources)
    for head in (*_KNOWN, *_CHANGE) if told else _KNOWN:
        shown.add_column(head, justify="right")
    if told:
        shown.add_column("transfer", overflow="fold")
    for one in table.sources:
        shown.add_row(one.name, *_known(one), *(_change(one.without, unit) if told else ()))
    screen.table(shown)
    screen.line("")
    if table.rank_correlation is not None:
        screen.line(f"rank correlation of weight and worth (Spearman): {table.rank_correlation:+.2f}")
        screen.line("")


def _unit(table: SourceTable) -> Unit:
    means = [one.without.change.b.mean for one in table.sources if one.without is not None]
    found = [mean for mean in (table.score.mean, *means) if mean is not None]
    return Unit.for_means(table.scores.metric, [min(found, default=0.0)])


def _known(one: Source) -> list[str]:
    weight = NONE if one.weight is None else f"{one.weight:.3f}"
    return [weight, NONE if one.worth is None else f"{one.worth:.1f}"]


def _change(without: Without | None, unit: Unit) -> list[str]:
    if without is None:
        return [NONE] * (len(_CHANGE) + 1)
    change = without.change
    n = f"{change.n_paired}/{change.n_planned}"
    effect, mean = change.effect, change.b.mean
    if effect is None or mean is None:
        return [NONE] * (len(_CHANGE) - 1) + [n, without.transfer]
    return [
        unit.show(mean),
        unit.show_signed(effect.mean),
        show_p(change.test.p),
        show_p(change.p_holm),
        f"{effect.wins}/{effect.ties}/{effect.losses}",
        n,
        without.transfer,
    ]
