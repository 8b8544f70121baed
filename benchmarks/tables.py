"""The measured tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.clocks import Measured
from benchmarks.goals import goals
from benchmarks.machine import machine
from benchmarks.markdown import markdown, ms, three
from benchmarks.results import AS_SCRIPT, REFERENCE, SHAPES, Results
from benchmarks.roofline_table import roofline
from benchmarks.scaling import exponent, fit, largest_error

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def tables(results: Results) -> str:
    """All tables of a session, below a line on the machine; what was not measured is left out."""
    sections = {
        "Beside the goals": goals(results),
        **{f"Training, {title}: one run-step": _training(results, work, work) for work, title in SHAPES.items()},
        **{
            f"Stacks of R runs, {title}: one run-step": _training(results, f"stack, {work}", work)
            for work, title in SHAPES.items()
        },
        **{f"Two cores, {title}: one run-step": _two_cores(results, work) for work, title in SHAPES.items()},
        "A step by the number of sources": _sources(results),
        "Peak memory of DARN": _peaks(results),
        "sharpmax, forward and backward": _sharpmax(results),
        "A cell without its training": _overhead(results),
        "20,000 and 200,000 records": _folder(results),
        "Operations of a training step, and of them those that give a device work": _operations(results),
        "Roofline of a DARN step": roofline(results),
    }
    parts = [f"### {title}\n\n{section}" for title, section in sections.items() if section]
    return "\n\n".join([machine(results.device), *parts]) + "\n"


def write_tables(path: Path, text: str) -> None:
    """Writes the tables to a file; in place of what is between the markers, if it has them."""
    found = path.read_text() if path.exists() else ""
    if BEGIN in found:
        pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
        text = pattern.sub(lambda _: f"{BEGIN}\n{text}{END}", found)
    path.write_text(text)


def _training(results: Results, table: str, work: str) -> str:
    """Rows of a table, beside the reference at the same work."""
    rows = results.tables.get(table)
    if not rows:
        return ""
    clock = results.clock
    reference = results.seconds(work, REFERENCE)
    head = ("", "CPU ms", "wall ms", f"least to most, {_name(clock)} ms", "rounds", "reference / this")
    return markdown(
        head,
        (
            (
                name,
                *map(ms, row.cost),
                f"{ms(getattr(row.least, clock))} to {ms(getattr(row.most, clock))}",
                str(row.rounds),
                f"{reference / getattr(row.cost, clock):.1f}" if reference else "",
            )
            for name, row in rows.items()
        ),
    )


def _two_cores(results: Results, work: str) -> str:
    rows = results.tables.get(f"two cores, {work}")
    if not rows:
        return ""
    script = results.get(f"two cores, {work}", AS_SCRIPT)

    def line(name: str, row: Measured) -> list[str]:
        spread = f"{ms(row.least.wall)} to {ms(row.most.wall)}"
        faster = f"{script.cost.wall / row.cost.wall:.1f}" if script else ""
        cores = f"{row.cost.cpu / row.cost.wall:.2f}"
        return [name, ms(row.cost.wall), spread, three(1 / row.cost.wall), ms(row.cost.cpu), cores, faster]

    head = ("", "wall ms", "least to most", "run-steps a second", "CPU ms", "cores used", "times the first row's speed")
    return markdown(head, (line(name, row) for name, row in rows.items()))


def _sources(results: Results) -> str:
    by_method = results.by_count("sources")
    if not by_method:
        return ""
    counts = sorted({k for measured in by_method.values() for k in measured})
    clock = _name(results.clock)
    table = markdown(
        ("sources k", *(f"{method}, {clock} {what}" for method in by_method for what in ("ms", "µs a source"))),
        (
            (str(k), *(text for found in by_method.values() for text in (ms(found[k]), three(found[k] * 1e6 / k))))
            for k in counts
            if all(k in found for found in by_method.values())
        ),
    )
    return "\n".join([table, "", *(f"* {_growth(name, found)}" for name, found in by_method.items() if len(found) > 3)])


def _growth(method: str, measured: Mapping[int, float]) -> str:
    found, largest = fit(list(measured), list(measured.values())), max(measured)
    share = found.square * largest**2 / found.at(largest)
    tenth, half = (found.square_is(part) for part in (0.1, 0.5))
    start = max(min(measured), largest // 4)
    return (
        f"{method}: {ms(found.fixed)} ms + {found.linear * 1e6:.3g} µs k + {found.square * 1e9:.3g} ns k², to within "
        f"{largest_error(found, measured):.0%}. At k = {largest} the part with k² is {share:.0%} of the step"
        + (f"; it is a tenth from k = {tenth:.0f} on and half from k = {half:.0f} on" if found.square else "")
        + f". From k = {start} to {largest} the cost goes with k to the power {exponent(measured, start):.2f}."
    )


def _peaks(results: Results) -> str:
    works = [work for work in SHAPES if any(work == of for of, _ in results.peaks)]
    if not works:
        return ""
    return markdown(
        ("", *(f"{SHAPES[work]}, MiB" for work in works)),
        (
            (f"{who}, DARN", *(f"{results.peaks[work, who] / 2**20:.0f}" for work in works))
            for who in ("reference", "engine")
            if all((work, who) in results.peaks for work in works)
        ),
    )


def _sharpmax(results: Results) -> str:
    rows = results.tables.get("sharpmax", {})
    sizes: dict[str, dict[str, float]] = {}
    for row, measured in rows.items():
        name, _, size = row.partition(": ")
        sizes.setdefault(size, {})[name] = measured.cost.cpu
    names = list(dict.fromkeys(row.partition(": ")[0] for row in rows))
    if not {"softmax", "sharpmax"} <= set(names):
        return ""
    others = [name for name in names if name not in {"softmax", "sharpmax"}]
    return markdown(
        ("", *(f"{name}, CPU ms" for name in names), "sharpmax / softmax", *(f"{name} / sharpmax" for name in others)),
        (
            (
                size,
                *(ms(cost[name]) for name in names),
                f"{cost['sharpmax'] / cost['softmax']:.1f}",
                *(f"{cost[name] / cost['sharpmax']:.2f}" for name in others),
            )
            for size, cost in sizes.items()
            if len(cost) == len(names)
        ),
    )


def _overhead(results: Results) -> str:
    rows = results.tables.get("overhead")
    if not rows:
        return ""
    lines = [(name, row.cost.cpu, row.cost.wall) for name, row in rows.items()]
    total = ("**in all**", sum(line[1] for line in lines), sum(line[2] for line in lines))
    return markdown(
        ("", "CPU ms a cell", "wall ms a cell"), ((name, ms(cpu), ms(wall)) for name, cpu, wall in (*lines, total))
    )


def _folder(results: Results) -> str:
    rows = results.tables.get("folder")
    if not rows:
        return ""
    return markdown(
        ("", "CPU s", "wall s", "most wall s", "peak memory, MB"),
        (
            (name, *map(three, row.cost), three(row.most.wall), f"{results.folders[name] / 1e6:.0f}")
            for name, row in rows.items()
        ),
    )


def _operations(results: Results) -> str:
    if not results.operations:
        return ""
    return markdown(
        ("", "vectors, alone", "stacked", "images, alone", "stacked"),
        (
            (name, *(f"{one.operations:.0f}, {one.launches:.0f}" for one in counted))
            for name, counted in results.operations.items()
        ),
    )


def _name(clock: str) -> str:
    return "CPU" if clock == "cpu" else clock
