"""What `msda-bench plan` answers: what a suite takes, what it finds and what ten seeds would miss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.across import counted_of, margin_over
from msda_bench.results.decision import tested, tests_with_baseline
from msda_bench.results.power import SURE, TEN, Answer, Design, Pilot, Spread, design_of, design_of_mean, upper_limit
from msda_bench.results.report import Column, Line, Report, Section, Table, Unit
from msda_bench.results.words import counted, listed, name_of
from msda_bench.suite.cell import Cell
from msda_bench.suite.expand import Expansion
from msda_bench.suite.plan import Experiment, Plan

MEAN = "mean over data sets"
_HOUR = 3600
_WHOLE = ("to_train", "pilot_seeds", "family", "seeds", "needed", "at_most", "of_every_method", "equivalent")
_COLUMNS = (
    *("experiment", "to_train", "hours", "standard_deviation", "pilot_seeds", "family", "seeds"),
    *(*Answer._fields, "hours_needed"),
)


class _Cost(NamedTuple):
    """Cells to train and their seconds; the seconds of all cells of tuning seeds, and of those of any other seed."""

    to_train: int
    seconds: float
    seconds_of_tuning: float
    seconds_a_seed: float


@dataclass(frozen=True)
class _Planned:
    """The experiments of a suite with their standard deviations and costs, where the pilot tells them."""

    tables: Sequence[Experiment]
    spreads: Mapping[str, Spread]
    costs: Mapping[str, _Cost]
    detect: float
    power: float

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """A row for each experiment, and one for the mean over data sets if there are several."""
        for table in self.tables:
            spread = self.spreads.get(table.name)
            family = tests_with_baseline(table)
            yield self._row(table.name, [table], spread and design_of(spread, table.alpha / family), family)
        across = counted_of(self.tables)
        if len({table.dataset for table in across}) > 1 and all(table.name in self.spreads for table in across):
            spreads = [self.spreads[table.name] for table in across]
            family = len(set.intersection(*(set(tested(table)) for table in across)))
            if family and len({table.baseline for table in across}) == 1:
                level = min(table.alpha for table in across) / family
                yield self._row(MEAN, across, design_of_mean(spreads, level), family)

    def _row(self, name: str, tables: Sequence[Experiment], design: Design | None, family: int) -> Mapping[str, Any]:
        costs = [self.costs[table.name] for table in tables if table.name in self.costs]
        seeds = min(len(table.seeds) for table in tables)
        row: dict[str, Any] = {"experiment": name, "seeds": seeds}
        if len(costs) == len(tables):
            row |= {
                "to_train": sum(cost.to_train for cost in costs),
                "hours": sum(cost.seconds for cost in costs) / _HOUR,
            }
        if design is None:
            return row
        answer = design.answer(seeds, self.detect, self.power, margin_over(tables))
        row |= {"standard_deviation": design.deviation, "pilot_seeds": design.pilot_seeds, "family": family}
        if answer.needed and len(costs) == len(tables):
            seconds = sum(cost.seconds_of_tuning + answer.needed * cost.seconds_a_seed for cost in costs)
            row["hours_needed"] = seconds / _HOUR
        return row | answer._asdict()


def plan_report(
    expansion: Expansion,
    missing: Mapping[str, Cell],
    runs: pd.DataFrame,
    detect: float,
    power: float,
    lines: Sequence[Line] = (),
) -> Report:
    """The report on a suite.

    Args:
        expansion: the suite's.
        missing: the cells that it would train.
        runs: of the pilot.
        detect: the true gain over the baseline to find, in points.
        power: the probability with which it is to be found.
        lines: on the pilot.

    Raises:
        BenchError: the pilot has no run on a data set of the suite.
    """
    pilot, plan = Pilot(runs), expansion.plan
    spreads = {table.name: spread for table in plan.experiments if (spread := pilot.spread(table)) is not None}
    costs = {
        table.name: cost for table in plan.experiments if (cost := _cost(table, expansion, missing, pilot)) is not None
    }
    if not (costs or spreads):
        raise BenchError(
            f"no finished run of a ranked method is on a data set of suite {plan.suite}; name a folder of a similar "
            "suite by --pilot, or leave it out, so that a few runs of this one are trained"
        )
    planned = _Planned(plan.experiments, spreads, costs, detect, power)
    rows = pd.DataFrame(list(planned.rows()), columns=list(_COLUMNS)).astype(dict.fromkeys(_WHOLE, "Int64"))
    unit = "GPU-hours" if (runs.loc[runs["status"] == "ok", "device"] == "cuda").any() else "core-hours"
    title = f"{plan.suite}: what it takes to find a true gain of {_points(detect)} with probability {power:g}"
    has_margin = bool(rows["equivalent"].notna().any())
    verdict, notes = tuple(_verdict(rows, missing, detect, unit)), (_legend(power, unit, pilot, has_margin=has_margin),)
    columns = _columns(detect, unit, has_margin=has_margin)
    table = Table("plan", title, rows, columns, verdict=verdict, notes=notes, about=())
    problems = [Line("problem", line) for line in _gaps(plan, spreads, costs)]
    remarks = [Line("note", line) for line in _remarks(plan, spreads, pilot)]
    return Report((Section((table,), (*lines, *remarks, *problems)),), rows, not problems)


def _cost(table: Experiment, expansion: Expansion, missing: Mapping[str, Cell], pilot: Pilot) -> _Cost | None:
    expected = pilot.seconds(table)
    if expected is None:
        return None
    cells = {cell.key: cell for cell in expansion.plan.most if cell.experiment == table.name}
    seconds = {key: expected(cell.method, expansion.cells[key]) for key, cell in cells.items()}
    to_train = [value for key, value in seconds.items() if key in missing]
    at_seeds = sum(value for key, value in seconds.items() if cells[key].seed in table.seeds)
    return _Cost(len(to_train), sum(to_train), sum(seconds.values()) - at_seeds, at_seeds / len(table.seeds))


def _columns(detect: float, unit: str, *, has_margin: bool) -> tuple[Column, ...]:
    ten = f"{TEN} seeds"
    return (
        Column("experiment", "text", ["experiment"]),
        Column("to train", "count", ["to_train"]),
        Column(unit, "number", ["hours"]),
        Column("s", "number", ["standard_deviation"]),
        Column("seeds", "count", ["seeds"]),
        Column("find", "number", ["finds"]),
        Column(f"{ten} find", "number", ["ten_find"]),
        Column(f"miss {detect:g} (%)", "number", ["ten_miss"], Unit("", -2, 0)),
        Column(f"seeds for {detect:g}", "count", ["needed"]),
        Column("at most", "count", ["at_most"]),
        Column("every method", "count", ["of_every_method"]),
        Column(f"{unit} ", "number", ["hours_needed"]),
        *([Column("equivalent", "count", ["equivalent"])] if has_margin else []),
    )


def _verdict(rows: pd.DataFrame, missing: Mapping[str, Cell], detect: float, unit: str) -> Iterator[str]:
    single, across = rows[rows["experiment"] != MEAN], rows[rows["experiment"] == MEAN]
    timed, known = single.dropna(subset="hours"), single.dropna(subset="standard_deviation")
    of = "" if len(timed) == len(single) else f" for {len(timed)} of {len(single)} experiments"
    yield f"{counted(len(missing), 'cell')} will train, {_size(timed['hours'].sum())} {unit}{of}."
    if known.empty:
        return
    everywhere = "in every experiment" if len(single) > 1 else f"on {name_of(single['experiment'].iloc[0])}"
    if len(known) < len(single):
        everywhere = f"in {len(known)} of {len(single)} experiments"
    for part, where in ((known, everywhere), (across, "in the mean over data sets")):
        if part.empty:
            continue
        if part["needed"].isna().any():
            yield f"To find {_points(detect)} {where} takes more than 10,000 seeds."
        else:
            hours = f"{_size(part['hours_needed'].sum())} {unit}"
            most = "more than 10,000" if part["at_most"].isna().any() else f"up to {part['at_most'].max():,}"
            yield f"To find {_points(detect)} {where} takes {counted(part['needed'].max(), 'seed')} ({most}), {hours}."
    low, high = 100 * known["ten_miss"].min(), 100 * known["ten_miss"].max()
    often = f"{low:.0f} %" if round(low) == round(high) else f"{low:.0f} to {high:.0f} %"
    yield f"{TEN} seeds would miss it in {often} of cases {'in one experiment' if len(single) > 1 else 'there'}."


def _size(hours: float) -> str:
    """Two digits, never as a power of ten."""
    return f"{float(f'{hours:.2g}'):,g}"


def _points(gain: float) -> str:
    return f"{gain:g} point{'' if gain == 1 else 's'}"


def _legend(power: float, unit: str, pilot: Pilot, *, has_margin: bool) -> str:
    text = (
        "s: the standard deviation over seeds of a method's gain over the baseline, the median of the methods; find: "
        f"the smallest true gain that seeds find with probability {power:g}, after Holm's correction, if it alone is "
        "real; miss: how often ten seeds do not find the gain; seeds for: those that find it, at most if s is at the "
        f"upper limit of its estimate ({SURE:.0%} confidence), for every method if s is that of the method that varies "
        f"most; then the {unit} of these seeds, references included, on {listed(map(name_of, pilot.devices))}"
    )
    same = "; equivalent: the seeds that show a method without any gain to be within the margin"
    return f"{text}{same if has_margin else ''}."


def _gaps(plan: Plan, spreads: Mapping[str, Spread], costs: Mapping[str, _Cost]) -> Iterator[str]:
    """A line for each experiment of which the pilot tells too little."""
    for table in plan.experiments:
        if table.name not in costs:
            yield f"{table.name}: the pilot has no timed run on {name_of(table.dataset)}, so no hours are known"
        elif table.baseline is not None and table.measure.percent and table.name not in spreads:
            yield (
                f"{table.name}: the pilot has no method with two seeds in common with baseline "
                f"{name_of(table.baseline)}: no seeds are known"
            )


def _remarks(plan: Plan, spreads: Mapping[str, Spread], pilot: Pilot) -> Iterator[str]:
    """What the numbers are from; experiments of which the same is to say share a line."""
    said: dict[str, list[str]] = {}
    for table in plan.experiments:
        for line in _remarks_on(table, spreads.get(table.name), pilot):
            said.setdefault(line, []).append(table.name)
    for line, names in said.items():
        yield f"{'every experiment' if len(names) == len(plan.experiments) > 1 else listed(names)}: {line}"


def _remarks_on(table: Experiment, spread: Spread | None, pilot: Pilot) -> Iterator[str]:
    if table.baseline is None:
        yield "no baseline, so no gain to find"
    elif not table.measure.percent:
        yield f"the metric is {table.measure.name}, which has no points, so no gain to find"
    if spread is not None:
        limit, methods = upper_limit(spread.seeds - 1), counted(len(tested(table)), "method")
        few = len(spread.targets) < len(table.targets)
        yield (
            f"s is of {len(spread.deviations)} of {methods} and {counted(spread.seeds, 'seed')}"
            f"{f', {len(spread.targets)} of {len(table.targets)} targets' if few else ''}; the true one is at most "
            f"{limit:.2f} times as large ({SURE:.0%} confidence), which takes {limit**2:.1f} times the seeds"
        )
    timed = pilot.timed(table)
    if unknown := [method.name for method in table.methods if timed and method.name not in timed]:
        yield f"{counted(len(unknown), 'method')} without pilot runs, timed as the median of the others"
