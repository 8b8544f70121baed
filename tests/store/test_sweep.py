"""`msda-bench store verify` and `store merge`: every file of a folder is looked at, and none is lost."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Store
from msda_bench.store.files import pack
from msda_bench.suite.plan import Plan
from tests.store.conftest import make_record, newer_record

Run = Callable[..., tuple[int, list[str]]]
NEWER = "has schema 2, but this msda-bench reads 1; install a newer one"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run(action, *folders)`: exit code and lines of `msda-bench store`."""

    def call(action: str, *folders: Path) -> tuple[int, list[str]]:
        code = main(["store", action, *map(str, folders)])
        out, err = capsys.readouterr()
        return code, [*out.splitlines(), *err.splitlines()]

    return call


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Store, Store]:
    """Two empty stores."""
    return Store.create(tmp_path / "a"), Store.create(tmp_path / "b")


def counts(intact: int, bad: int = 0, conflicts: int = 0, failures: int = 0, quarantined: int = 0) -> str:
    rest = f"{failures} failures, {quarantined} in quarantine, 0 leftovers removed"
    return f"{intact} intact, {bad} bad, {conflicts} in conflict; {rest}"


def test_verify_names_every_bad_file_and_changes_none(store: Store, run: Run) -> None:
    record = make_record()
    store.publish(record)
    path = store.path(record.key)
    path.write_bytes(path.read_bytes().replace(b'"n_correct":80', b'"n_correct":90'))
    store.publish(make_record(key="e" * 64))  # its cell has another key
    (newer := store.path("f" * 64)).parent.mkdir()
    newer.write_bytes(newer_record())
    store.publish(make_record(seed=1))
    (path.parent / "notes.txt").touch()
    (store.folder / "cells" / "stray").touch()
    (store.folder / "plan.json").write_text("{")
    impossible = {3: None, 4: Outcome(100, n_correct=101), 5: Outcome(0, sum_squared_error=0.0)}
    for seed, outcome in impossible.items():
        store.publish(make_record(seed=seed, outcome=outcome))
    before = sorted(store.folder.rglob("*"))
    code, lines = run("verify", store.folder)
    assert sorted(store.folder.rglob("*")) == before
    expected = [
        f"{path}: does not match its own sha256",
        f"{store.path('e' * 64)}: its cell does not have this key",
        f"{newer}: {NEWER}",
        f"{path.parent / 'notes.txt'}: does not belong here",
        f"{store.folder / 'cells/stray'}: does not belong here",
        *(f"{store.path(make_record(seed=seed).key)}: is ok, but without a possible outcome" for seed in impossible),
    ]
    *bad, plan, total = lines
    assert (code, sorted(bad), plan.partition(" (")[0]) == (
        1,
        sorted(expected),
        f"{store.folder}/plan.json: is damaged",
    )
    assert total.startswith(f"{store.folder}: {counts(1, 9)}")


def test_a_folder_without_its_arrays_counts_says_so_and_gets_them_back(stores: tuple[Store, Store], run: Run) -> None:
    whole, copy = stores
    data = pack({"predicted": np.arange(3)})
    sha256 = hashlib.sha256(data).hexdigest()
    saved = {"predictions": sha256, "weights": sha256, "target_predictions": sha256}
    for seed in range(3):
        whole.publish(make_record(seed=seed, saved=saved, arrays=dict.fromkeys(["predictions", "weights"], data)))
    for path in whole.folder.rglob("*.npz"):
        if path.name.startswith(make_record(seed=0).key) or "weights" in path.name:
            path.unlink()
    without = "; 1 without their predictions; 3 without their weights"
    code, (line,) = run("verify", whole.folder)
    assert (code, line) == (0, f"{whole.folder}: {counts(3)}{without}")
    run("merge", copy.folder, whole.folder)
    assert run("verify", copy.folder) == (0, [f"{copy.folder}: {counts(3)}{without}"])

    again = Store.create(copy.folder.parent / "again")  # trained again: of two runs to the last count, of one not
    for seed, n_correct in enumerate((80, 80, 81)):
        outcome = Outcome(100, n_correct)
        again.publish(make_record(seed=seed, outcome=outcome, saved=saved, arrays=dict.fromkeys(saved, data)))
    other = make_record(seed=1, saved={"weights": "0" * 64}, arrays={"weights": data})
    assert not copy.publish(other)  # other arrays are not those that the record names
    assert copy.kept("weights") == set()
    code, lines = run("merge", copy.folder, again.folder)
    assert (code, lines[-1].partition(": ")[2]) == (1, "0 copied, 3 already present, 1 in conflict, 0 bad")
    assert copy.kept("weights") == copy.kept("predictions") == {make_record(seed=seed).key for seed in range(3)}
    assert run("verify", copy.folder)[1][-1].startswith(f"{copy.folder}: {counts(3, 0, 1)}")


def test_verify_accepts_several_folders_and_the_worst_decides_the_exit_code(
    stores: tuple[Store, Store], run: Run, tmp_path: Path
) -> None:
    good, bad = stores
    for store in stores:
        store.publish(make_record())
    path = bad.path(make_record().key)
    path.write_bytes(path.read_bytes()[:50])
    code, lines = run("verify", bad.folder, good.folder)
    assert code == 1
    assert lines == [
        f"{path}: is truncated or not a record",
        f"{bad.folder}: {counts(0, 1)}",
        f"{good.folder}: {counts(1)}",
    ]
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray/file").touch()
    for words, why in (
        (("verify", good.folder, tmp_path / "none"), "none: is missing; name a result folder"),
        (("verify", tmp_path / "stray"), "stray: is not a result folder; it holds no plan.json"),
        (("merge", tmp_path / "new", tmp_path / "stray"), "stray: is not a result folder; it holds no plan.json"),
    ):
        assert run(*words) == (2, [f"msda-bench: error: {tmp_path}/{why}"])  # before anything is read or made
    assert not (tmp_path / "new").exists()


def test_merge_copies_new_records_and_names_conflicts_and_bad_ones(stores: tuple[Store, Store], run: Run) -> None:
    into, source = stores
    shared, new, damaged, torn = (make_record(seed=seed) for seed in range(4))
    into.publish(shared)
    source.publish(replace(shared, outcome=Outcome(100, 1)))
    for record in (new, damaged, torn):
        source.publish(record)
    source.path(damaged.key).write_bytes(b"x")
    into.publish(torn)
    into.path(torn.key).write_bytes(b"x")  # is replaced
    (newer := source.path("0" * 64)).parent.mkdir(exist_ok=True)
    newer.write_bytes(newer_record())
    source.write_plan(Plan("p", (), ()))
    before = sorted(source.folder.rglob("*"))
    code, lines = run("merge", into.folder, source.folder)
    assert code == 1
    assert sorted(lines[:-1]) == sorted([
        f"{newer}: {NEWER}",
        f"{source.path(damaged.key)}: is truncated or not a record",
        f"{into.path(torn.key)}: is truncated or not a record; now {torn.key}.bad-1",
        f"{into.path(shared.key)}: another result for the same cell is kept beside it",
    ])  # fmt: skip
    assert lines[-1] == f"{source.folder}: 2 copied, 1 already present, 1 in conflict, 3 bad"
    assert into.results([shared.key, new.key, torn.key]) == {record.key: record for record in (shared, new, torn)}
    assert into.read_plan() == Plan("p", (), ())
    assert sorted(source.folder.rglob("*")) == before
    code, lines = run("verify", into.folder)
    assert (code, lines[-1].startswith(f"{into.folder}: {counts(3, 0, 1, 0, 1)}")) == (1, True)


def test_failures_and_conflicting_results_are_copied_once(stores: tuple[Store, Store], run: Run) -> None:
    into, source = stores
    record, other = make_record(), make_record(outcome=Outcome(100, 1))
    failed = make_record(seed=1, status="failed", outcome=None, message="no memory")
    for made in (record, other, failed, replace(failed, message="no disk")):
        source.publish(made)
    conflict = f"{into.path(record.key)}: another result for the same cell is kept beside it"
    files = sorted(path.name for path in source.folder.rglob("*.json"))
    for copied, present, failures in ((1, 0, "; 2 failures copied"), (0, 1, "")):
        total = f"{source.folder}: {copied} copied, {present} already present, 1 in conflict, 0 bad{failures}"
        assert run("merge", into.folder, source.folder) == (1, [conflict, total])
        assert into.read(record.key) == record
        assert [record.message for record in into.failures(failed.key)] == ["no memory", "no disk"]
        assert sorted(path.name for path in into.folder.rglob("*.json")) == files


def test_another_plan_is_named_and_does_not_replace_the_first(stores: tuple[Store, Store], run: Run) -> None:
    into, source = stores
    into.write_plan(Plan("one", (), ()))
    source.write_plan(Plan("two", (), ()))
    code, (note, _) = run("merge", into.folder, source.folder)
    kept = f"{into.folder / 'plan.json'} stays, and cells that it does not name stay unused"
    assert (code, note) == (0, f"{source.folder / 'plan.json'}: is another plan; {kept}")
    assert into.read_plan() == Plan("one", (), ())
    source.write_plan(Plan("one", (), ()))
    assert len(run("merge", into.folder, source.folder)[1]) == 1
