"""The measured tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.clocks import Measured
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.roofline import Work, dense_work, sparse_work

REFERENCE = "reference, DARN"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def tables(results: Results) -> str:
    """All tables of a session, below a line on the machine; what was not measured is left out."""
    parts = [machine()]
    for table, title in (("amazon", "Amazon-shaped"), ("digits", "digits-shaped")):
        if rows := results.tables.get(table):
            parts += [f"### Training, {title}: one run-step", _training(rows)]
    if rows := results.tables.get("sharpmax"):
        parts += ["### sharpmax, forward and backward", _sharpmax(rows)]
    if rows := results.tables.get("overhead"):
        parts += ["### A cell without its training", _overhead(rows)]
    if roofline := list(_roofline(results)):
        parts += ["### Roofline of an Amazon-shaped DARN step", *roofline]
    return "\n\n".join(parts) + "\n"


def write_tables(path: Path, text: str) -> None:
    """Writes the tables to a file; in place of what is between the markers, if it has them."""
    found = path.read_text() if path.exists() else ""
    if BEGIN in found:
        pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
        text = pattern.sub(lambda _: f"{BEGIN}\n{text}{END}", found)
    path.write_text(text)


def _training(rows: Mapping[str, Measured]) -> str:
    reference = rows.get(REFERENCE)
    return _markdown(
        ("", "CPU ms", "least to most", "wall ms", "rounds", "reference / this"),
        (
            (
                name,
                _ms(row.cost.cpu),
                f"{_ms(row.least)} to {_ms(row.most)}",
                _ms(row.cost.wall),
                str(row.rounds),
                f"{reference.cost.cpu / row.cost.cpu:.1f}" if reference else "",
            )
            for name, row in rows.items()
        ),
    )


def _sharpmax(rows: Mapping[str, Measured]) -> str:
    names = ("softmax", "sharpmax", "sort", "bisection")
    sizes = dict.fromkeys(row.partition(": ")[2] for row in rows)
    found = {size: [rows[f"{name}: {size}"].cost.cpu for name in names if f"{name}: {size}" in rows] for size in sizes}
    return _markdown(
        ("", *(f"{name}, CPU ms" for name in names), "sharpmax / softmax", "sort / sharpmax", "bisection / sharpmax"),
        (
            (size, *map(_ms, cost), f"{cost[1] / cost[0]:.1f}", f"{cost[2] / cost[1]:.2f}", f"{cost[3] / cost[1]:.1f}")
            for size, cost in found.items()
            if len(cost) == len(names)
        ),
    )


def _overhead(rows: Mapping[str, Measured]) -> str:
    lines = [(name, row.cost.cpu, row.cost.wall) for name, row in rows.items()]
    total = ("**in all**", sum(line[1] for line in lines), sum(line[2] for line in lines))
    return _markdown(
        ("", "CPU ms a cell", "wall ms a cell"), ((name, _ms(cpu), _ms(wall)) for name, cpu, wall in (*lines, total))
    )


def _roofline(results: Results) -> Iterator[str]:
    arithmetic, memory = results.get("peak", "arithmetic"), results.get("peak", "memory")
    if results.occurrence is None or arithmetic is None or memory is None:
        return
    rate, bandwidth = 1 / arithmetic.cost.cpu, 1 / memory.cost.cpu
    yield (
        f"One core reached {rate / 1e9:.0f} GFLOP/s in a large float32 product and {bandwidth / 1e9:.1f} GB/s in a "
        f"copy beyond the caches. A step keeps {results.occurrence.stored:.0f} values after dropout, of "
        f"{results.occurrence.words:.0f} different words."
    )
    steps = (("engine, DARN", sparse_work(results.occurrence)), (REFERENCE, dense_work()))
    yield _markdown(
        ("", "MFLOP", "MB", "arithmetic ms", "memory ms", "measured CPU ms", "larger / measured", "sum / measured"),
        (_bound(name, work, rate, bandwidth, row) for name, work in steps if (row := results.get("amazon", name))),
    )


def _bound(name: str, work: Work, rate: float, bandwidth: float, row: Measured) -> Sequence[str]:
    floors = (work.operations / rate, work.traffic / bandwidth)
    fractions = (bound / row.cost.cpu for bound in (max(floors), sum(floors)))
    counts = (f"{work.operations / 1e6:.0f}", f"{work.traffic / 1e6:.0f}")
    return (name, *counts, *map(_ms, floors), _ms(row.cost.cpu), *(f"{fraction:.0%}" for fraction in fractions))


def _ms(seconds: float) -> str:
    """Milliseconds with three figures."""
    ms = seconds * 1e3
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.3g}"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
