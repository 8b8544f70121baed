"""Damage to any byte of a stored file is detected, and the cell runs again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from msda_bench.errors import StoreError
from msda_bench.running.runner import survey
from msda_bench.store import Record, Store
from msda_bench.store.files import encode
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.expand import Expansion
from msda_bench.suite.plan import Plan, plan_to_json
from tests.store.conftest import make_record

GOLDEN = Path(__file__).parent / "golden" / "schema-1"
RECORD = make_record()
WHOLE = encode(RECORD)
Damage = Callable[[bytes, int], bytes]


def flipped(data: bytes, place: int, mask: int = 0x10) -> bytes:
    return data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


def cut(data: bytes, place: int) -> bytes:
    return data[:place]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # it shows after a power failure alone, and is slow


def check_mended(store: Store, record: Record, damaged: bytes) -> None:
    """The damaged file is named and quarantined; the cell is missing and its record can be stored again."""
    path = store.path(record.key)
    path.write_bytes(damaged)
    plan = Plan("s", (), ())
    assert survey(Expansion(plan, {record.key: None}), store).ended == {}  # type: ignore[dict-item]
    (line,) = store.drain_warnings()
    aside = path.with_suffix(".bad-1")
    assert line.startswith(f"{path}: ")
    assert line.endswith(f"; now {aside.name}")
    assert aside.read_bytes() == damaged
    assert store.publish(record)
    assert store.read(record.key) == record
    aside.unlink()


@pytest.mark.parametrize("damage", [flipped, cut])
def test_damage_anywhere_in_a_record_is_mended(store: Store, damage: Damage) -> None:
    """Detected at any byte, see test_codec.py; some of them are enough to see that the store mends it."""
    store.publish(RECORD)
    for place in range(0, len(WHOLE), 13):
        check_mended(store, RECORD, damage(WHOLE, place))


@pytest.mark.nightly
def test_damage_to_any_bit_of_real_records_is_detected(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s")
    for file in Store(GOLDEN, repair=False).scan():
        if file.kind == "result":
            record = Store(GOLDEN, repair=False).read(file.key)
            assert record is not None
            store.publish(record)
            for damaged in every_damage(file.path.read_bytes()):
                check_mended(store, record, damaged)


def every_damage(data: bytes) -> Iterator[bytes]:
    for place in range(len(data)):
        yield cut(data, place)
        for bit in range(8):
            yield flipped(data, place, 1 << bit)


@pytest.mark.parametrize("damage", [flipped, cut])
def test_damage_to_any_byte_of_a_failure_or_conflict_is_harmless(store: Store, damage: Damage) -> None:
    store.publish(RECORD)
    for kind in ("failure", "conflict"):
        path = store.path(RECORD.key).with_suffix(f".{kind}-1.json")
        for place in range(0, len(WHOLE), 7):
            path.write_bytes(damage(WHOLE, place))
            assert store.failures(RECORD.key) == []
            assert store.read(RECORD.key) == RECORD
        path.unlink()


@pytest.mark.parametrize("damage", [flipped, cut])
def test_an_altered_plan_is_read_or_reported_in_one_line(store: Store, damage: Damage) -> None:
    plan = Store(GOLDEN, repair=False).read_plan()
    whole = canonical_json(plan_to_json(plan)).encode()
    path = store.folder / "plan.json"
    places = range(0, len(whole), 11)
    reported = [line for place in places if (line := refusal(store, damage(whole, place))) is not None]
    assert len(reported) > len(places) / 3
    for line in reported:
        assert line.startswith(f"{path}: is damaged (") or "install a newer one" in line
    store.write_plan(plan)
    assert store.read_plan() == plan


def refusal(store: Store, plan: bytes) -> str | None:
    (store.folder / "plan.json").write_bytes(plan)
    try:
        store.read_plan()
    except StoreError as error:
        (line,) = error.lines
        return line
    return None
