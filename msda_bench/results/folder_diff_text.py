"""Formats the comparison of two result folders: the verdict, the printed text and the JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.errors import LONGEST_LINE, printable
from msda_bench.results.decision import BETTER, NOT_SIGNIFICANT, OPPOSITE, SAME, UNKNOWN, WORSE
from msda_bench.results.folder_diff import ExperimentDiff, FolderDiff
from msda_bench.results.frame import AVERAGE
from msda_bench.results.serialize import rows_of
from msda_bench.results.tables import Table, Unit, show_p
from msda_bench.results.words import spans

SCHEMA = 2
"""Version of the layout of `compare A B --json`."""
LEGEND = (
    "A, B: means over the pairs; a pair is a seed that is ok in both; average: over the targets that both have. shift: "
    "Hodges-Lehmann estimate of the differences, positive where B is better; interval: its own, level 1 - alpha. p: "
    "exact two-sided signed-rank test, after Holm's correction over the methods of the table. *: p at most alpha, "
    "{alphas}; in brackets: too few pairs to be significant, however they differ. 80 %: the smallest true difference "
    "that the test would find with probability 0.8. W/T/L: pairs won, tied, lost by B. n: pairs that are ok / planned "
    "by both."
)

_MOST = 6


class Verdict(NamedTuple):
    """The conclusion on B against A, and the line that says it.

    same: every run that is ok in both is of the same cell and has an equal result. better, worse: at least one method
    is, by its mean over targets, and none the other way. unknown: the `reason` is `nothing in common` (no run is
    ok in both), `mixed` (better for some methods, worse for others), or `not significant`.
    """

    outcome: str
    reason: str | None
    verdict: str


def verdict(diff: FolderDiff) -> Verdict:
    """Judges two folders by the means over the targets that both have."""
    n_ok = diff.count("ok_in_both")
    if not n_ok:
        return Verdict(
            UNKNOWN, "nothing in common", "; ".join(["nothing in common: no run is ok in both", *_hints(diff)])
        )
    if diff.count("equal_result") == n_ok:
        same = f"the same: {n_ok} runs of the same cells have equal results"
        return Verdict(SAME, None, "; ".join([same, *_reservations(diff)]))
    judged = [(pair, row) for pair in diff.experiments for row in rows_of(pair.rows) if row["target"] == AVERAGE]
    better, worse = (
        [_named(diff, pair, row) for pair, row in judged if row["outcome"] == outcome] for outcome in (BETTER, WORSE)
    )
    others = [row for _, row in judged if row["outcome"] not in OPPOSITE]
    line = (
        f"of {len(judged)} methods B is better for {_listed(better)}, worse for {_listed(worse)}, not shown to differ "
        f"for {len(others)}{_why_not(others)}"
    )
    outcome, reason = BETTER if better else WORSE, None
    if bool(better) == bool(worse):
        outcome, reason = UNKNOWN, "mixed" if better else NOT_SIGNIFICANT
    return Verdict(outcome, reason, "; ".join([line, *_reservations(diff)]))


def _named(diff: FolderDiff, pair: ExperimentDiff, row: Mapping[str, Any]) -> str:
    name = row["method_a"] if len(diff.experiments) == 1 else f"{pair.a.name}: {row['method_a']}"
    return f"{name} {_unit(pair).show(row['hodges_lehmann'], signed=True)}"


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "0"


def _why_not(rows: Sequence[Mapping[str, Any]]) -> str:
    equal, few = sum(row["outcome"] == SAME for row in rows), sum(_are_few(row) for row in rows)
    parts = [f"{count} {what}" for count, what in ((equal, "equal"), (few, "with too few pairs for a test")) if count]
    return f" ({', '.join(parts)})" if parts else ""


def _are_few(row: Mapping[str, Any]) -> bool:
    """Whether there are too few pairs for any differences to be significant."""
    return bool(row["outcome"] == UNKNOWN and row["reason"] != NOT_SIGNIFICANT)


def _hints(diff: FolderDiff) -> Iterator[str]:
    """Suggests `--match` for methods with different names."""
    for pair in diff.experiments:
        if len(pair.only["a"]["methods"]) == len(pair.a.methods):
            example = f"{pair.only['a']['methods'][0]}={pair.only['b']['methods'][0]}"
            yield f"if methods have other names in B, pair them, as in --match {example}"
            return


def _reservations(diff: FolderDiff) -> Iterator[str]:
    """Facts that qualify the verdict."""
    runs = diff.count("planned_by_both")
    if lost := runs - diff.count("ok_in_both"):
        yield f"{lost} of {runs} runs are not ok in both"
    if unequal := diff.count("same_cell") - diff.count("equal_result"):
        yield f"{unequal} runs of the same cell have another result"
    only = [names for pair in diff.experiments for parts in pair.only.values() for names in parts.values()]
    if diff.only_a or diff.only_b or any(only):
        yield "one side has more than the other"
    names = list(dict.fromkeys(name for pair in diff.experiments for name in pair.changes["what"]))
    if "fingerprint" in names:
        yield "the data differ, so a seed does not draw the same split in both"
    if names:
        yield f"what differs: {', '.join(names[:_MOST])}{', ...' if len(names) > _MOST else ''}"


def _unit(pair: ExperimentDiff, digits: int = 2) -> Unit:
    """The unit of an experiment's numbers."""
    best = pair.rows.groupby("target", sort=False)[["mean_a", "mean_b"]].min().min(axis="columns")
    return Unit.of(pair.a.measure, best, digits)


def diff_tables(pair: ExperimentDiff, digits: int = 2) -> Iterator[Table]:
    """A table for each target, and for their average if there are several."""
    unit, targets = _unit(pair, digits), list(dict.fromkeys(pair.rows["target"]))
    for target in targets if len(targets) > 2 else targets[:1]:  # noqa: PLR2004 - one target and its average
        compared = rows_of(pair.rows[pair.rows["target"] == target])
        rows = [_cells(unit, row) for row in compared]
        about = [(printable(row["method_a"]), printable(row["method_b"])) for row in compared]
        title = f"{_name(pair)}: {printable(target)}, {unit.label}"
        yield Table(f"{pair.a.name}-{target}", title, pd.DataFrame(rows), about=about)


def _name(pair: ExperimentDiff) -> str:
    name = pair.a.name if pair.a.name == pair.b.name else f"{pair.a.name}, in B {pair.b.name}"
    return printable(f"{name} ({pair.a.dataset})")


def _cells(unit: Unit, row: Mapping[str, Any]) -> dict[str, str]:
    a, b, p = printable(row["method_a"]), printable(row["method_b"]), show_p(row["p_holm"])
    paired = row["n_paired"] > 0
    return {
        "method": a if a == b else f"{a} / {b}",
        "A": unit.show(row["mean_a"]),
        "B": unit.show(row["mean_b"]),
        "shift": unit.show(row["hodges_lehmann"], signed=True),
        "interval": unit.interval(row["hl_low"], row["hl_high"]),
        "p": f"({p})" if paired and _are_few(row) else f"{p}{'*' if row['outcome'] in OPPOSITE else ''}",
        "80 %": unit.show(row["detectable"]),
        "W/T/L": f"{row['wins']}/{row['ties']}/{row['losses']}" if paired else "-",
        "n": f"{row['n_paired']}/{row['n_planned']}",
    }


def folder_lines(diff: FolderDiff) -> Iterator[str]:
    """A line for each folder, with its suite."""
    for side, runs in (("A", diff.a), ("B", diff.b)):
        yield printable(f"{side}: {runs.attrs['folder']} (suite {runs.attrs['plan'].suite})", LONGEST_LINE)


def experiment_lines(pair: ExperimentDiff) -> Iterator[str]:
    """Lines on unpaired parts, differences, equal results, and the notes and problems of both folders."""
    yield from (printable(line, LONGEST_LINE) for line in _experiment_lines(pair))


def _experiment_lines(pair: ExperimentDiff) -> Iterator[str]:
    if pair.rows.empty:
        yield f"{_name(pair)}: no method and target in common"
    for side, only in pair.only.items():
        spanned = dict(only) | {"seeds": [spans(only["seeds"])] if only["seeds"] else []}
        nouns = {what: what if len(only[what]) > 1 else what.removesuffix("s") for what in only}
        if parts := [f"{nouns[what]} {', '.join(names)}" for what, names in spanned.items() if names]:
            yield f"only in {side.upper()}: {'; '.join(parts)}"
    if pair.a.alpha != pair.b.alpha:
        yield f"differs: alpha: A {pair.a.alpha:g}, B {pair.b.alpha:g}; that of A counts here"
    for what, a, b, runs in pair.changes.itertuples(index=False):
        yield f"differs: {what}: A {a}, B {b}: {runs}"
    runs = pair.runs
    same = f"same: {runs['ok_in_both']} of {runs['planned_by_both']} runs that both plan are ok in both"
    cells = f"{runs['same_cell']} of the same cell, {runs['equal_result']} with an equal result"
    yield f"{same}, {cells if runs['same_cell'] else 'none of the same cell'}"
    for kind, lines in (("note", pair.notes), ("problem", pair.problems)):
        yield from (f"{kind}: {line}" for line in lines["a"] if line in lines["b"])
        yield from (f"{kind}: A: {line}" for line in lines["a"] if line not in lines["b"])
        yield from (f"{kind}: B: {line}" for line in lines["b"] if line not in lines["a"])


def legend(diff: FolderDiff) -> list[str]:
    """Explains the tables, if there are any."""
    alphas = " or ".join(f"{alpha:g}" for alpha in sorted({pair.a.alpha for pair in diff.experiments}))
    return [LEGEND.format(alphas=alphas)] if alphas else []


def conclusion(diff: FolderDiff) -> Iterator[str]:
    """Lines on the experiments that only one folder has, then the verdict."""
    for side, experiments in (("A", diff.only_a), ("B", diff.only_b)):
        for table in experiments:
            yield printable(f"only in {side}: {table.name} ({table.dataset}), a whole experiment", LONGEST_LINE)
    yield printable(f"verdict: {verdict(diff).verdict}", LONGEST_LINE)


def diff_json(diff: FolderDiff) -> dict[str, Any]:
    """The comparison of two folders as plain JSON values; docs/results.md explains the keys."""
    a, b = diff.a.attrs, diff.b.attrs
    return {
        "schema": SCHEMA,
        "command": "compare",
        "a": {"folder": a["folder"], "suite": a["plan"].suite},
        "b": {"folder": b["folder"], "suite": b["plan"].suite},
        **verdict(diff)._asdict(),
        "experiments": [_experiment_json(pair) for pair in diff.experiments],
        "only_in_a": [table.name for table in diff.only_a],
        "only_in_b": [table.name for table in diff.only_b],
        "faults": [*a["fault_lines"], *b["fault_lines"]],
    }


def _experiment_json(pair: ExperimentDiff) -> dict[str, Any]:
    return {
        "experiment_a": pair.a.name,
        "experiment_b": pair.b.name,
        "dataset": pair.a.dataset,
        "metric": pair.a.measure.column,
        "alpha": pair.a.alpha,
        "alpha_b": pair.b.alpha,
        "only_in_a": pair.only["a"],
        "only_in_b": pair.only["b"],
        "differs": rows_of(pair.changes),
        "runs": pair.runs,
        "rows": rows_of(pair.rows),
        "notes": pair.notes,
        "problems": pair.problems,
    }
