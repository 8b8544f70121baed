"""What a command writes has a place of its own: nothing through links, nothing replaced, nothing left half."""

import shutil
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from tests.logs import contents
from tests.store.faulty import faults

GOLDEN = Path(__file__).parents[1] / "store" / "golden" / "schema-1"
COMMANDS = (["leaderboard"], ["compare"], ["report"], ["store", "verify"])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN, "results/one")


def bystanders():
    """The files outside the result folder, including the targets of links."""
    paths = [path for path in Path().rglob("*") if not path.is_relative_to("results/one")]
    return {str(path): "" if path.is_dir() else path.read_bytes() for path in paths}


def outputs():
    return [
        path
        for path in Path("results/one").iterdir()
        if path.is_file() and path.name not in {"plan.json", "records.jsonl.gz"}
    ]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_nothing_is_written_outside_the_folder_or_through_a_link(command):
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


SMOKE = Path(__file__).parents[2] / "suites" / "smoke.yaml"


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    assert main(["run", str(SMOKE), "--out", str(out), "--executor", "inline", "--quiet"]) == 0
    return out / "smoke"


def test_nothing_is_written_into_a_result_folder_but_its_own(smoke, shown):
    before = contents(smoke)
    assert not (smoke / "shift.json").exists(), "which is for the user's own data"
    for line in (
        f"run {SMOKE} --out {smoke}",
        f"run {SMOKE} --out {smoke}/deeper",
        f"store merge {smoke}/tables {smoke}",
        f"site {smoke} --out {smoke.parent}",
        f"site {smoke} --out {smoke}/log/more",
        f"store merge {smoke}/new {smoke}",
        f"store reference {smoke} --out {smoke}/plan.json",
        f"store reference {smoke} --out {smoke}/new.json.gz",
    ):
        assert f"would write into the result folder {smoke}" in shown(*line.split(), code=2)
    assert contents(smoke) == before
    Path("mine.txt").write_text("mine")
    shown("store", "reference", smoke, "--out", "mine.txt", code=2)
    assert Path("mine.txt").read_text() == "mine"
    for _ in range(2):  # a reference may be replaced
        shown("store", "reference", smoke, "--out", "r.json.gz")


@pytest.mark.parametrize(
    "words", [["new", "aggregator", "my_mean"], ["suites", "copy", "paper"]], ids=["new", "suites copy"]
)
def test_a_full_disk_leaves_nothing_half_and_the_same_command_works_later(tmp_path, capsys, words):
    for at in range(100):
        out = tmp_path / str(at)
        with faults(28, at) as faulty:
            code = main([*words, "--out", str(out)])
        if faulty.refused is None:
            break
        if code:
            assert contents(out) == {}
            assert "No space left on device" in capsys.readouterr().err
            assert main([*words, "--out", str(out)]) == 0
        shutil.rmtree(out)
    assert at > 3
    assert contents(out)
