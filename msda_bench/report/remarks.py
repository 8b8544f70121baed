"""What a reader must know of how an experiment's records came about: faults, slower paths, other versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from msda_bench.report.made import Made, counts, grouped, runs_made, told
from msda_bench.report.problems import one_line
from msda_bench.stats.selection import resolve
from msda_bench.store.faults import Faults
from msda_bench.store.record import Record
from msda_bench.suite.plan import Experiment, Plan


def annotated(plan: Plan, records: Mapping[str, Record], faults: Faults | None = None) -> Plan:
    """The plan with notes on what its records tell, so that whatever shows an experiment's notes shows them.

    Args:
        plan: what was asked for.
        records: by key.
        faults: what the store's files tell beside them.

    Returns:
        The same plan, but for its notes, and with the selected candidates alone; the same whatever the order of cells
        and records.
    """
    plan = resolve(plan, records)
    made = runs_made(plan, records)
    tables = (
        replace(table, notes=(*table.notes, *_remarks(table, made[table.name], faults or Faults())))
        for table in plan.experiments
    )
    return replace(plan, experiments=tuple(tables))


def _remarks(table: Experiment, runs: Sequence[Made], faults: Faults) -> Iterator[str]:
    for keys, what in (
        (faults.conflicting, "another result of the same cell is stored beside the one that counts"),
        (faults.damaged, "a damaged record counts as missing; run the suite again, which makes it anew"),
    ):
        if found := [run for run in runs if run.key in keys]:
            yield f"{what}: {told(found, counts(runs))}"
    yield from _validators(runs)
    yield from _slower(runs)
    for what, found in grouped(runs, _put_back).items():
        yield f"a component changed {what}, which was put back after its run: {told(found, counts(runs))}"
    yield from _versions(table, runs)


def _validators(runs: Sequence[Made]) -> Iterator[str]:
    """A run that is ok and has a message lacks the score of a validator."""
    for of_method in grouped((run for run in runs if _validator_fault(run)), lambda run: run.method).values():
        yield f"without a validator's score: {told(of_method, counts(runs))}: {_validator_fault(of_method[0])}"


def _validator_fault(run: Made) -> str | None:
    record = run.record
    return one_line(record.message) if record and record.status == "ok" and record.message else None


def _slower(runs: Sequence[Made]) -> Iterator[str]:
    for (how, why), found in grouped(runs, _unstacked).items():
        yield f"trained {how}, which is slower: {told(found, counts(runs))}: {why}"
    if found := [run for run in runs if _took_plain_loops(run)]:
        where = told(found, counts(runs))
        yield f"trained without numba, by plain loops, which are slower and round otherwise: {where}"


def _unstacked(run: Made) -> tuple[str, str] | None:
    if run.record is None or "stack_note" not in run.record.provenance:
        return None
    size = run.record.provenance.get("stack", 1)
    return "alone" if size == 1 else f"in stacks of {size}", one_line(str(run.record.provenance["stack_note"]))


def _took_plain_loops(run: Made) -> bool:
    """A record of the CPU names the version of numba, or says that there was none."""
    where = run.record.provenance if run.record else {}
    return where.get("device") == "cpu" and "numba" in where and where["numba"] is None


def _put_back(run: Made) -> str | None:
    changed = run.record.provenance.get("put_back") if run.record else None
    return one_line(" and ".join(map(str, changed))) if isinstance(changed, list) and changed else None


def _versions(table: Experiment, runs: Sequence[Made]) -> Iterator[str]:
    """Versions that are not the plan's, and what is mixed."""
    planned: dict[str, set[str]] = {}
    for distribution in (text for row in table.methods for text in row.distributions):
        name, _, version = distribution.rpartition(" ")
        planned.setdefault(name, set()).add(version)
    for name in sorted({name for run in runs for name in _made_with(run)}):
        found = _by_version(runs, name)
        told_of = {version: f"{version} ({told(found[version], counts(runs))})" for version in sorted(found)}
        strange = [text for version, text in told_of.items() if version not in planned.get(name, found)]
        if strange:
            known = " and ".join(sorted(planned[name]))
            yield f"made with another {name} than the plan's {known}: {'; '.join(strange)}"
        elif len(found) > 1:
            yield f"made with more than one {name}: {'; '.join(told_of.values())}"


def _by_version(runs: Sequence[Made], name: str) -> dict[str, list[Made]]:
    return grouped(runs, lambda run: _made_with(run).get(name))


def _made_with(run: Made) -> dict[str, str]:
    """Versions by distribution, and the kind of device."""
    where = run.record.provenance if run.record else {}
    own = {"torch": where.get("torch"), "device": where.get("device")}
    return {**where.get("distributions", {}), **{name: version for name, version in own.items() if version}}
