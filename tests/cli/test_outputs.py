"""Commands write nothing outside the result folder and nothing through links in it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from msda_bench.cli.main import main

GOLDEN = Path(__file__).parents[1] / "store" / "golden" / "schema-1"
COMMANDS = (["leaderboard"], ["compare"], ["report"], ["store", "verify"])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN, "results/one")


def bystanders() -> dict[str, bytes | str]:
    """The files outside the result folder, including the targets of links."""
    paths = [path for path in Path().rglob("*") if not path.is_relative_to("results/one")]
    return {str(path): "" if path.is_dir() else path.read_bytes() for path in paths}


def outputs() -> list[Path]:
    return [
        path
        for path in Path("results/one").iterdir()
        if path.is_file() and path.name not in {"plan.json", "records.jsonl.gz"}
    ]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_nothing_is_written_outside_the_folder_or_through_a_link(command: Sequence[str]) -> None:
    Path("precious").write_bytes(b"precious")
    before = bystanders()
    assert main([*command, "results/one"]) == 1  # the golden folder holds a conflict and a run that diverged
    assert bystanders() == before
    written = {path.name: path.read_bytes() for path in outputs()}
    assert written or command[0] == "store"
    for path in outputs():
        path.unlink()
        path.symlink_to(Path("precious").absolute())
    assert main([*command, "results/one"]) == 1
    assert bystanders() == before
    assert {path.name: path.read_bytes() for path in outputs()} == written
    assert not any(path.is_symlink() for path in outputs())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("where", ["", "log"])
def test_a_folder_that_is_a_link_is_refused(
    command: Sequence[str], where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path("results/one", where)
    if where:
        folder.mkdir()
    shutil.move(folder, "elsewhere")
    folder.symlink_to(Path("elsewhere").absolute())
    before = bystanders()
    assert main([*command, "results/one"]) == 2
    error = capsys.readouterr().err
    assert error == (
        f"msda-bench: error: {folder}: is a symbolic link, which is not followed; put the folder itself in its place\n"
    )
    assert bystanders() == before
