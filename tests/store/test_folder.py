"""What stands in the place of a result folder's files, its plan, and which folders are taken."""

import os
from functools import partial
from pathlib import Path

import pytest

from msda_bench.errors import StoreError
from msda_bench.store import Store
from msda_bench.store.store import DamagedPlanError
from msda_bench.suite.plan import Plan
from msda_bench.suite.plan_file import plan_to_json
from msda_bench.suite.run_spec import canonical_json
from tests.store.conftest import make_record
from tests.store.test_store import damages, names

GOLDEN = Path(__file__).parent / "golden" / "schema-1"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, partial(os.symlink, "/dev/zero")])
def test_a_link_pipe_or_folder_instead_of_a_file_is_named_without_waiting(store, make):
    store.publish(make_record())
    for name in ("log/x.jsonl", "records.jsonl.gz", "plan.json", "commands.txt"):
        make(store.folder / name)
    fresh = Store(store.folder).refresh()
    assert fresh.read(make_record().key) == make_record()
    assert [line.rpartition(": ")[0] for line in fresh.faults] == [
        str(store.folder / name) for name in ("records.jsonl.gz", "log/x.jsonl")
    ]
    with pytest.raises(StoreError, match=r"plan\.json: (cannot be read: |is a symbolic link)"):
        fresh.read_plan()
    with pytest.raises(StoreError, match=r"commands\.txt: cannot be read: "):
        store.add_commands(["run a.yaml"])


def test_links_in_the_place_of_folders_are_refused(store, tmp_path):
    store.publish(make_record())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(store.folder)
    for make in (Store, Store.create, Store.find):
        with pytest.raises(StoreError, match="link: is a symbolic link, which is not followed"):
            make(tmp_path / "link")
    (store.folder / "log").rename(tmp_path / "log")
    (store.folder / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="log: is a symbolic link"):
        Store(store.folder)
    with pytest.raises(StoreError, match=r"cannot be written|symbolic link"):
        store.publish(make_record(1))
    assert names(tmp_path / "elsewhere") == []


def test_a_plan_round_trips_and_what_replaced_it_is_named_in_one_line(store):
    path = store.folder / "plan.json"
    assert not store.has_plan()
    with pytest.raises(StoreError, match=r"plan\.json: is missing; run the suite again, which writes it"):
        store.read_plan()
    plan = Store(GOLDEN).read_plan()
    store.write_plan(plan)
    assert store.read_plan() == plan
    for text in ("", "{", "[]", '{"schema": 1}', '{"schema": "1"}', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(DamagedPlanError, match=r"plan\.json: is damaged \(.*run the suite again") as caught:
            store.read_plan()
        assert len(caught.value.lines) == 1
    path.write_text('{"schema": 99}')
    with pytest.raises(StoreError, match="layout 99") as newer:
        store.read_plan()
    assert not isinstance(newer.value, DamagedPlanError)
    altered = damages(canonical_json(plan_to_json(plan)).encode(), 23)
    reported = 0
    for data in altered:  # read, or reported
        path.write_bytes(data)
        try:
            store.read_plan()
        except StoreError:
            reported += 1
    assert reported > len(altered) / 3
    store.write_plan(Plan("suite", (), ()))
    assert store.read_plan() == Plan("suite", (), ())


def test_only_an_absent_or_empty_folder_or_a_store_is_taken(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "absent/deep"):
        assert Store.find(tmp_path / name) is None
        Store.create(tmp_path / name).publish(make_record())
        assert Store.create(tmp_path / name).refresh().results.keys() == {make_record().key}
    (tmp_path / "odd/in").mkdir(parents=True)
    (tmp_path / "file").touch()
    Store.create(tmp_path / "results" / "one").write_plan(Plan("one", (), ()))
    for name, make, line in (
        ("none", Store, "is missing; name a result folder"),
        ("file", Store, "is not a folder; name a result folder"),
        ("odd", Store.create, "is not a result folder; it holds no plan.json"),
        ("results", Store, "is not a result folder; name one of those in it: one"),
    ):
        with pytest.raises(StoreError) as caught:
            make(tmp_path / name)
        assert caught.value.lines == (f"{tmp_path / name}: {line}",)
