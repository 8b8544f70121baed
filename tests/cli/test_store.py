"""`msda-bench store verify` and `store merge`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Store
from tests.store.conftest import make_record


def test_verify_distinguishes_intact_from_bad_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store.create(tmp_path / "s")
    record = make_record()
    store.publish(record)
    assert main(["store", "verify", str(tmp_path / "s")]) == 0
    assert "1 intact, 0 bad" in capsys.readouterr().out
    path = store.path(record.key)
    path.write_bytes(path.read_bytes()[:50])
    assert main(["store", "verify", str(tmp_path / "s")]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"{path}: is truncated or not a record"
    assert "0 intact, 1 bad" in shown[1]
    assert path.exists()


def test_verify_accepts_several_folders_and_the_worst_decides_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = Store.create(tmp_path / "good"), Store.create(tmp_path / "bad")
    for store in (good, bad):
        store.publish(make_record())
    path = bad.path(make_record().key)
    path.write_bytes(path.read_bytes()[:50])
    assert main(["store", "verify", str(bad.folder), str(good.folder)]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(f"{path}: ")
    assert shown[1].startswith(f"{bad.folder}: 0 intact, 1 bad")
    assert shown[2].startswith(f"{good.folder}: 1 intact, 0 bad")
    assert main(["store", "verify", str(good.folder), str(tmp_path / "none")]) == 2
    assert capsys.readouterr().out == "", "a wrong name is reported before anything is read"


def test_merge_names_conflicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    one.publish(make_record())
    other.publish(replace(make_record(), outcome=Outcome(100, 1)))
    other.publish(make_record(seed=1))
    assert main(["store", "merge", str(tmp_path / "new"), str(tmp_path / "a")]) == 0
    assert main(["store", "merge", str(tmp_path / "new"), str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    shown = capsys.readouterr().out
    assert "1 copied, 1 already present, 1 in conflict, 0 bad" in shown
    assert "another result for the same cell is kept beside it" in shown
    assert main(["store", "verify", str(tmp_path / "new")]) == 1
    assert "2 intact, 0 bad, 1 in conflict" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["verify"], ["merge", "new"]])
def test_a_folder_without_results_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("stray").mkdir()
    Path("stray/file").touch()
    assert main(["store", *command, "stray"]) == 2
    assert capsys.readouterr().err.startswith("msda-bench: error: stray: is not a result folder")
    assert not Path("new").exists()
