"""What `msda-bench compare A B` answers: the verdict on two result folders, tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msda_bench.results.decision import BETTER, NOT_SIGNIFICANT, OPPOSITE, SAME, UNKNOWN, WORSE
from msda_bench.results.folder_diff import ExperimentDiff, FolderDiff
from msda_bench.results.frame import AVERAGE
from msda_bench.results.report import Column, Kind, Line, Report, Section, Table, Unit
from msda_bench.results.serialize import rows_of
from msda_bench.results.words import spans

_METHODS = ("method_a", "method_b")
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


def _unit(pair: ExperimentDiff) -> Unit:
    """The unit of an experiment's numbers."""
    best = pair.rows.groupby("target", sort=False)[["mean_a", "mean_b"]].min().min(axis="columns")
    return Unit.of(pair.a.measure, best)


def diff_tables(pair: ExperimentDiff) -> Iterator[Table]:
    """A table for each target, and for their average if there are several."""
    unit, targets = _unit(pair), list(dict.fromkeys(pair.rows["target"]))
    columns = (
        Column("method", "text", _METHODS),
        Column("A", "number", ["mean_a"], unit),
        Column("B", "number", ["mean_b"], unit),
        Column("shift", "difference", ["hodges_lehmann"], unit),
        Column("interval", "interval", ["hl_low", "hl_high"], unit),
        Column("p", "p in brackets", ["p_holm", "outcome", "reason", "n_paired"]),
        Column("80 %", "number", ["detectable"], unit),
        Column("W/T/L", "won/tied/lost", ["wins", "ties", "losses", "n_paired"]),
        Column("n", "n/planned", ["n_paired", "n_planned"]),
    )
    for target in targets if len(targets) > 2 else targets[:1]:  # noqa: PLR2004 - one target and its average
        title = f"{_name(pair)}: {target}, {unit.label}"
        yield Table(f"{pair.a.name}-{target}", title, pair.rows[pair.rows["target"] == target], columns, about=_METHODS)


def _name(pair: ExperimentDiff) -> str:
    name = pair.a.name if pair.a.name == pair.b.name else f"{pair.a.name}, in B {pair.b.name}"
    return f"{name} ({pair.a.dataset})"


def _experiment_lines(pair: ExperimentDiff) -> Iterator[str]:
    """Sentences on unpaired parts, differences and equal results."""
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


def _remarks(pair: ExperimentDiff) -> Iterator[Line]:
    """The notes and problems of both folders, those that both have first."""
    kinds: tuple[tuple[Kind, Mapping[str, Sequence[str]]], ...] = (("note", pair.notes), ("problem", pair.problems))
    for kind, lines in kinds:
        yield from (Line(kind, line) for line in lines["a"] if line in lines["b"])
        yield from (Line(kind, f"A: {line}") for line in lines["a"] if line not in lines["b"])
        yield from (Line(kind, f"B: {line}") for line in lines["b"] if line not in lines["a"])


def diff_report(diff: FolderDiff, *, complete: bool) -> Report:
    """What `msda-bench compare A B` answers; `complete` tells whether both folders are."""
    a, b = diff.a.attrs, diff.b.attrs
    sides = {"A": (a, diff.only_a), "B": (b, diff.only_b)}
    heads = (f"{side}: {attrs['folder']} (suite {attrs['plan'].suite})" for side, (attrs, _) in sides.items())
    sections = [Section(lines=tuple(Line("line", head) for head in heads))]
    for pair in diff.experiments:
        lines = (*(Line("line", line) for line in _experiment_lines(pair)), *_remarks(pair), Line("line", ""))
        sections.append(Section(tuple(diff_tables(pair)), lines))
    alphas = " or ".join(f"{alpha:g}" for alpha in sorted({pair.a.alpha for pair in diff.experiments}))
    last = [Line("caption", LEGEND.format(alphas=alphas))] if alphas else []
    for side, (_, experiments) in sides.items():
        last += [
            Line("line", f"only in {side}: {pair.name} ({pair.dataset}), a whole experiment") for pair in experiments
        ]
    judged = verdict(diff)
    sections.append(Section(lines=(*last, Line("verdict", judged.verdict))))
    return Report(tuple(sections), diff.rows, complete and bool(diff.count("ok_in_both")))
