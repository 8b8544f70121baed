"""Checks every record of a result folder, and copies records into another folder."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from msda_bench.atomic import blocked, leftovers, named, owner_lives, unfinished
from msda_bench.errors import printable, reported
from msda_bench.store.codec import BadRecordError, RecordSummary, decode
from msda_bench.store.compact import compact
from msda_bench.store.log import SEALED
from msda_bench.store.record import RESULTS, Record
from msda_bench.store.store import PLAN, Store
from msda_bench.suite.plan import Experiment, PlannedRun
from msda_bench.suite.run_spec import canonical_json

_Places = Mapping[str, Sequence[tuple[PlannedRun, Experiment]]]


@dataclass
class Verified:
    """The contents of a result folder.

    Attributes:
        records: intact results.
        failures: intact attempts without a result.
        removed: unfinished files of dead processes, which were removed.
        conflicts: a line for each run with a result that differs from the one that counts.
        unfinished: a line for each unfinished file of a process that may run elsewhere.
        blocking: a line for each such file that prevents sealing.
        bad: a line for each record that is damaged, or listed in plan.json as another run.
        unplanned: a line for each record that plan.json does not list, as after a change of the suite.
        made_on: the number of records by system and device.
        without: the number of records that lack their arrays, by kind.
    """

    records: int = 0
    failures: int = 0
    removed: int = 0
    conflicts: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    blocking: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    made_on: Counter[str | None] = field(default_factory=Counter)
    without: Counter[str] = field(default_factory=Counter)


def verify(store: Store) -> Verified:
    """Reads every record whole; changes nothing except removing unfinished files of dead processes."""
    verified = Verified()
    places: _Places | None = None
    with reported(verified.bad):
        places = _planned(store) if store.has_plan() else None
    with named(store.folder, "cannot be checked"):
        blocking = leftovers(store.folder / SEALED)
        for path in unfinished(store.folder):
            lives = owner_lives(path.name)
            if lives is False:
                path.unlink(missing_ok=True)
                verified.removed += 1
            elif lives is None and path in blocking:
                sealed = store.folder / SEALED
                verified.blocking.append(f"{sealed}: cannot be sealed, since it is being written{blocked(path)}")
            elif lives is None:
                verified.unfinished.append(f"{path}: is being written{blocked(path)}")
    verified.bad += store.refresh().drain_warnings()
    with reported(verified.bad):
        store.arrays.refuse_unread()
    for stored in chain(store.results.values(), *store.failures.values()):
        where = f"{store.lines[stored.digest].path}: record {stored.key}"
        verified.bad += (f"{where}: {why}" for why in _faults(store, stored, verified, places))
        if places is not None and stored.key not in places:
            verified.unplanned.append(f"{where}: plan.json does not name it; run the suite that does")
    with reported(verified.bad):
        verified.conflicts += store.conflicting(store.results).values()
    return verified


def _planned(store: Store) -> _Places:
    """The places that each cell fills, by key."""
    plan = store.read_plan()
    tables = {table.name: table for table in plan.experiments}
    places: dict[str, list[tuple[PlannedRun, Experiment]]] = {}
    for cell in plan.cells:
        places.setdefault(cell.key, []).append((cell, tables[cell.experiment]))
    return places


def _faults(store: Store, stored: RecordSummary, verified: Verified, places: _Places | None) -> list[str]:
    """What is wrong with a record; an intact one is counted."""
    try:
        record = decode(store.line(stored))
    except BadRecordError as bad:
        return [str(bad)]
    faults: list[str] = []
    absent: set[str] = set()
    for kind, name in stored.arrays.items():
        with reported(faults):
            if store.arrays.read(name) is None:
                absent.add(kind)
    if hashlib.sha256(canonical_json(record.cell).encode()).hexdigest() != record.key:
        faults = ["its `cell` does not have this key"]
    elif record.status == "ok" and not (record.outcome and record.outcome.is_possible):
        faults = ["is ok, but without a possible outcome"]
    else:
        faults += _misplaced(record, (places or {}).get(record.key, ()))
    if not faults and record.status in RESULTS:
        verified.records += 1
        verified.without.update(absent)
        verified.made_on[made_on(record.provenance)] += 1
    elif not faults:
        verified.failures += 1
    return faults


def _misplaced(record: Record, places: Sequence[tuple[PlannedRun, Experiment]]) -> Iterator[str]:
    """Lines on the places in plan.json that do not match the record's run."""
    cell = record.cell
    trained = cell.get("dataset", {}).get("name"), cell.get("target"), cell.get("seed")
    place_of = "{!r}, target {!r}, seed {!r}".format
    for place, table in places:
        planned = table.dataset, place.target, place.seed
        if planned != trained:
            yield f"plan.json has it at {place_of(*planned)}, but it is of {place_of(*trained)}"
        elif record.target_labels and not cell.get("labelled_target") and place.method not in table.references:
            yield f"was given all target labels, but plan.json ranks its method {place.method}"
        if record.status == "ok" and record.outcome is not None and not record.outcome.suits(table.task):
            yield f"is ok, but without a possible outcome of a {table.task} run, which plan.json says it is"


def merge(into: Store, source: Store) -> tuple[list[str], list[str]]:
    """Copies the lines of records that are missing, with their arrays, the plan and commands; `source` does not change.

    Returns:
        Lines on what is wrong, and on what is not: another plan, and how many records were copied.
    """
    lines = [*compact(into), *source.refresh().drain_warnings()]  # sealed, its own results come first
    notes: list[str] = []
    with reported(lines):
        source.arrays.refuse_unread()
    kept = into.refresh().arrays.names()
    copied = present = 0
    for stored in source.in_order():
        for name in set(stored.arrays.values()) - kept:
            with reported(lines):
                data = source.arrays.read(name)
                if data is not None:
                    into.arrays.add(name, data)
        if stored.digest in into.lines:
            present += 1
        else:
            into.append(source.line(stored))
            copied += 1
    with reported(lines):
        plan = source.read_plan() if source.has_plan() else None
        if plan is not None and not into.has_plan():
            into.write_plan(plan)
        elif plan is not None and into.read_plan() != plan:
            stays = f"{into.folder / PLAN} stays, and runs that it does not name stay unused"
            notes.append(f"{source.folder / PLAN}: is another plan; {stays}")
        into.add_commands(source.commands())
    return lines, [*notes, f"{source.folder}: {copied} copied, {present} already present"]


_MACHINE = re.compile(r"(?<![a-z0-9_])(x86_64|amd64|arm64|aarch64|armv7l|i[3-6]86|ppc64le|riscv64|s390x)(?![a-z0-9_])")
_LONG = 60


def made_on(provenance: Mapping[Any, Any]) -> str | None:
    """Such as `macOS arm64 with torch 2.11.0`, of a record or its row of a frame; None where it says nothing of it."""
    platform, torch, device, name = map(provenance.get, ("platform", "torch", "device", "device_name"))
    if not (platform or torch):
        return None
    system = "an unnamed system"
    if platform:  # without the releases of kernels and libraries
        # The last one named is the machine: before it a kernel's release may name another.
        machines = _MACHINE.findall(platform.lower())
        system = " ".join([printable(platform.partition("-")[0], _LONG), *machines[-1:]])
    system += f" with torch {printable(torch, _LONG)}" if torch else ""
    return system + (f" and {printable(name or device, _LONG)}" if device not in {None, "cpu"} else "")
