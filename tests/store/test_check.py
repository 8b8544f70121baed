"""`msda-bench store verify`, `merge` and `seal`: every record of a folder is looked at, and none is lost."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench import atomic
from msda_bench.cli.main import main
from msda_bench.errors import StoreError
from msda_bench.store import Outcome, Store
from msda_bench.store.check import merge
from msda_bench.store.compact import compact
from msda_bench.suite.plan import Plan
from tests.store.conftest import kept_with, make_record


@pytest.fixture
def run(capsys):
    """`run(action, *folders)`: exit code and lines of `msda-bench store`."""

    def call(action, *folders):
        code = main(["store", action, *map(str, folders)])
        out, err = capsys.readouterr()
        return code, [*out.splitlines(), *err.splitlines()]

    return call


@pytest.fixture
def stores(tmp_path):
    """Two empty stores."""
    return Store.create(tmp_path / "a"), Store.create(tmp_path / "b")


def counts(intact, bad=0, conflicts=0, failures=0):
    return f"{intact} intact, {bad} bad, {conflicts} in conflict; {failures} failures, 0 leftovers removed"


def test_verify_names_every_bad_record_and_changes_none(store, run):
    path = store.publish(make_record())
    path.write_bytes(path.read_bytes().replace(b'"n_correct":80', b'"n_correct":90'))
    odd = {}
    store.publish(make_record(key="e" * 64))
    store.publish(make_record(1))
    (store.folder / "plan.json").write_text("{")
    for seed, outcome in {3: None, 4: Outcome(100, n_correct=101), 5: Outcome(0, sum_squared_error=0.0)}.items():
        store.publish(record := make_record(seed, outcome=outcome))
        odd[record.key] = "is ok, but without a possible outcome"
    before = path.read_bytes()
    code, (plan, damaged, other, *lines, total) = run("verify", store.folder)
    assert path.read_bytes() == before
    assert plan.startswith(f"{store.folder}/plan.json: is damaged")
    assert damaged == f"{path}: a record does not match its own sha256; it is of run {make_record().key}"
    assert other == f"{path}: a record has a `cell` that does not have its key; it is of run {'e' * 64}"
    assert sorted(lines) == sorted(f"{path}: record {key}: {why}" for key, why in odd.items())
    assert (code, total) == (1, f"{store.folder}: {counts(1, 6)}")


def test_verify_accepts_several_folders_and_the_worst_decides_the_exit_code(stores, run, tmp_path):
    good, bad = stores
    path = [store.publish(make_record()) for store in stores][1]
    path.write_bytes(path.read_bytes()[:50] + b"\n")
    code, lines = run("verify", bad.folder, good.folder)
    damage = f"{path}: a record is truncated or not a record"
    assert (code, lines) == (1, [damage, f"{bad.folder}: {counts(0, 1)}", f"{good.folder}: {counts(1)}"])
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray/file").touch()
    for words, why in (
        (("verify", good.folder, tmp_path / "none"), "none: is missing; name a result folder"),
        (("verify", tmp_path / "stray"), "stray: is not a result folder; it holds no plan.json"),
        (("merge", tmp_path / "new", tmp_path / "stray"), "stray: is not a result folder; it holds no plan.json"),
    ):
        assert run(*words) == (2, [f"msda-bench: error: {tmp_path}/{why}"])  # before anything is read or made
    assert not (tmp_path / "new").exists()


def test_merge_copies_what_is_missing_once_and_names_the_rest(stores, run):
    into, source = stores
    shared, new, failed = make_record(), make_record(1), make_record(2, status="failed", outcome=None)
    into.publish(shared)
    for record in (replace(shared, outcome=Outcome(100, 1)), new, failed, replace(failed, message="no disk")):
        path = source.publish(record)
    with path.open("ab") as log:
        log.write(b"x\n")
    source.write_plan(Plan("one", (), ()))
    source.add_commands(["run one.yaml"])
    before = path.read_bytes()
    for copied in (4, 0):
        code, (damaged, merged, conflict, total) = run("merge", into.folder, source.folder)
        assert damaged == f"{path}: a record is truncated or not a record"
        assert merged == f"{source.folder}: {copied} copied, {4 - copied} already present"
        assert conflict.endswith(f"records.jsonl.gz: another result for the same run, {shared.key}")
        assert (code, total) == (1, f"{into.folder}: 2 results, 2 failures, sealed")
        fresh = Store(into.folder).refresh()
        assert (fresh.read(shared.key), fresh.read(new.key)) == (shared, new)
        assert [stored.message for stored in fresh.failures[failed.key]] == [None, "no disk"]
    assert (path.read_bytes(), into.read_plan(), into.commands()) == (before, Plan("one", (), ()), ("run one.yaml",))
    source.write_plan(Plan("two", (), ()))
    kept = f"{into.folder / 'plan.json'} stays, and runs that it does not name stay unused"
    assert f"{source.folder / 'plan.json'}: is another plan; {kept}" in run("merge", into.folder, source.folder)[1]


def test_seal_names_what_it_leaves_out_and_changes_nothing_twice(store, run):
    path = store.publish(make_record())
    with path.open("ab") as log:
        log.write(b"x\n")
    held = path.read_bytes()
    sealed = f"{store.folder}: 1 results, 0 failures, sealed"
    code, (damaged, kept, total) = run("seal", store.folder)
    assert (code, damaged, total) == (1, f"{path}: a record is truncated or not a record", sealed)
    (aside,) = store.folder.glob(f"{path.name}.damaged-*")
    assert (kept, aside.read_bytes()) == (f"{path}: is kept as {aside.name}, since not all of it could be read", held)
    file = store.folder / "records.jsonl.gz"
    before = file.read_bytes(), file.stat().st_mtime_ns
    assert run("seal", store.folder) == (0, [sealed])
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_a_name_shows_whether_its_process_still_runs(store, run):
    mine = atomic.temporary(store.folder / "plan.json")
    gone = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{(1 << 22) + 1}-"))  # more than a process may have
    other = gone.with_name(gone.name.replace(atomic.host(), "00000000"))  # another machine's, of which we cannot know
    again = mine.with_name(re.sub(r"-[0-9a-f]+-([0-9a-f]{32})", r"-1-\1", mine.name))  # an earlier one of this number
    for path in (mine, gone, other, again):
        path.touch()
    code, (line, total) = run("verify", store.folder)
    assert (code, total[-19:]) == (0, "2 leftovers removed")
    assert line.startswith(f"{other}: is being written by a process on another machine, ")
    assert [path.exists() for path in (mine, gone, other, again)] == [True, False, True, False]


def test_a_sealer_elsewhere_that_may_live_is_named_and_never_outrun(store, run, monkeypatch):
    """Two containers may have one hostname, and the same numbers for their processes."""
    path, log = store.folder / "records.jsonl.gz", store.publish(make_record())
    mine = atomic.host()
    monkeypatch.setattr(Path, "readlink", lambda link: Path(f"{link}:[1]"))  # of another container
    assert atomic.host() != mine
    monkeypatch.undo()
    monkeypatch.setattr(Path, "read_text", lambda *_: "another machine of this name, or this one started again")
    assert atomic.host() != mine
    theirs = atomic.temporary(path)
    monkeypatch.undo()
    theirs.touch()
    remedy = f"once none is at work there, remove its file: rm {theirs}"
    for command, code in (("verify", 1), ("seal", 2)):
        got, lines = run(command, store.folder)
        assert (got, str(lines).count(remedy)) == (code, 1)
    assert log.exists()
    theirs.unlink()
    assert [run(command, store.folder)[0] for command in ("verify", "seal")] == [0, 0]


@pytest.mark.parametrize("name", ["records.jsonl.gz", "arrays.zip"])
def test_a_sealed_file_that_is_not_the_one_that_was_read_is_never_replaced(store, run, monkeypatch, name):
    """As by a process of another machine whose unfinished file this one does not see."""
    store.publish(kept_with(1.0))
    compact(store)
    store.publish(kept_with(2.0, seed=1))
    path = store.folder / name
    theirs = path.read_bytes()

    def replaced(handle):
        if Path(f"/proc/self/fd/{handle}").readlink().name.startswith(f".{name}."):
            path.unlink()
            path.write_bytes(theirs)

    monkeypatch.setattr(os, "fsync", replaced)
    line = f"{path}: another process has replaced it since it was read; run the command again"
    assert run("seal", store.folder) == (2, [f"msda-bench: error: {line}"])
    monkeypatch.setattr(os, "fsync", lambda _: None)
    assert run("seal", store.folder)[0] == 0
    fresh = Store(store.folder).refresh()
    for value, seed in ((1.0, 0), (2.0, 1)):
        assert fresh.kept(fresh.read(make_record(seed).key), "predictions")["label"] == [value]


def test_commands_are_one_line_each_kept_once_in_order_before_those_of_merged_folders(
    stores,
):
    into, other = stores
    assert into.commands() == ()
    for line in ("run b.yaml", "run 'a\nb\x1b[31m\udcff.yaml'", "run b.yaml"):
        into.add_commands([line])
    other.add_commands(["run c.yaml", "run b.yaml"])
    assert merge(into, other)[0] == []
    assert into.commands() == ("run b.yaml", "run 'a b [31m .yaml'", "run c.yaml")
    os.truncate(other.folder / "commands.txt", (1 << 20) + 1)
    too_large = f"{other.folder}/commands.txt: cannot be read: Larger than 1048576 bytes"
    assert merge(into, other)[0] == [too_large]
    with pytest.raises(StoreError) as caught:
        other.add_commands(["run a.yaml"])
    assert caught.value.lines == (too_large,)
