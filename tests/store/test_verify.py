from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from msda_bench.store import Outcome, Store
from msda_bench.store.sweep import verify
from tests.store.conftest import make_record, newer_record


def test_verify_names_every_bad_file_and_changes_none(store: Store) -> None:
    record = make_record()
    store.publish(record)
    path = store.path(record.key)
    path.write_bytes(path.read_bytes().replace(b'"n_correct":80', b'"n_correct":90'))
    store.publish(make_record(key="e" * 64))  # its cell has another key
    (path.parent / "notes.txt").touch()
    (store.folder / "cells" / "stray").touch()
    (store.folder / "plan.json").write_text("{")
    before = sorted(store.folder.rglob("*"))
    bad = verify(store).bad
    assert sorted(store.folder.rglob("*")) == before
    for words in (
        f"{record.key}.json: does not match its own sha256",
        f"{'e' * 64}.json: its cell does not have this key",
        "notes.txt: does not belong here",
        "stray: does not belong here",
        "plan.json: is damaged",
    ):
        assert len([line for line in bad if words in line]) == 1
    assert len(bad) == 5


@pytest.mark.parametrize("outcome", [None, Outcome(100, n_correct=101), Outcome(0, sum_squared_error=0.0)])
def test_an_ok_record_without_a_possible_outcome_is_named(store: Store, outcome: Outcome | None) -> None:
    record = make_record(outcome=outcome)
    store.publish(record)
    assert verify(store).bad == [f"{store.path(record.key)}: is ok, but without a possible outcome"]


def test_a_record_of_a_newer_schema_is_named_and_the_rest_is_checked(store: Store) -> None:
    store.publish(make_record())
    newer = store.path("f" * 64)
    newer.parent.mkdir()
    newer.write_bytes(newer_record())
    found = verify(store)
    assert found.bad == [f"{newer}: has schema 2, but this msda-bench reads 1; install a newer one"]
    assert found.records == 1


PUBLISH = """
import errno, os, signal, sys
from pathlib import Path
from msda_bench.store import Outcome, Record, Store

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def die_after(call):
    def wrapped(*args, **options):
        made = call(*args, **options)
        die()
        return made
    return wrapped

def no_links(*_):
    raise OSError(errno.EPERM, "no links here")

store, where, when = Store(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
owner = Path if where in {"open", "unlink", "rename"} else os
if where == "rename":  # into place, without hard links
    os.link = no_links
setattr(owner, where, die if when == "before" else die_after(getattr(owner, where)))
store.publish(Record("a" * 64, {}, "ok", Outcome(10, 5)))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("where", ["open", "fsync", "link", "rename", "unlink"])
def test_killed_at_any_step_of_a_publish_the_store_is_clean(store: Store, where: str, when: str) -> None:
    stored = make_record()
    store.publish(stored)
    killed = subprocess.run([sys.executable, "-c", PUBLISH, str(store.folder), where, when], check=False)
    assert killed.returncode == -9
    found = verify(store)
    assert [line for line in found.bad if "does not have this key" not in line] == []
    assert found.records + len(found.bad) in {1, 2}
    assert not list(Path(store.folder).rglob("*.tmp"))
    assert store.read(stored.key) == stored
    store.read("a" * 64)
    assert store.damaged == []
