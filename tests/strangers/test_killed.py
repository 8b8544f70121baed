"""A rerun finishes a killed suite of third-party schemes with the results of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Record, Store
from msda_bench.store.record import same_result

HERE = Path(__file__).parent
DATA = """
from msda_bench.api import hookimpl
from msda_bench.testing.toy import Blobs

@hookimpl
def msda_datasets():
    return [Blobs]
"""
SUITE = """
schema: 1
name: strange
dataset: {toy_blobs: {train: 40}}
targets: [aim]
seeds: 3
backbone: {mlp: {hidden: [8], dropout: 0.3}}
training: {epochs: 40, batch: 10, optimizer: {adadelta: {lr: 1.0}}}
methods:
  HEADS: {scheme: heads}
  TEACHER: {scheme: teacher}
  FREE: {scheme: source_free}
"""
CELLS = 9


def records(folder: Path) -> dict[str, Record]:
    store = Store(folder).refresh()
    return {key: record for key in store.results if (record := store.read(key))}


def test_a_killed_suite_run_again_has_the_records_of_an_undisturbed_run(
    install: Callable[..., None], site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("heads", "teacher", "source_free"):
        install(f"strange-{name}", (HERE / f"{name}.py").read_text(), entry=name)
    install("strange-data", DATA, entry="data")
    monkeypatch.chdir(tmp_path)
    Path("strange.yaml").write_text(SUITE)
    words = ["run", "strange.yaml", "--device", "cpu", "--executor", "inline", "--out"]
    assert main([*words, "whole"]) == 0
    expected = records(Path("whole/strange"))
    assert len(expected) == CELLS

    code = "import sys; from msda_bench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    doomed = subprocess.Popen([sys.executable, "-c", code, *words, "killed"], env=environ, stderr=subprocess.DEVNULL)
    while doomed.poll() is None and sum(log.read_bytes().count(b"\n") for log in Path("killed").rglob("*.jsonl")) < 2:
        time.sleep(0.005)
    doomed.send_signal(signal.SIGKILL)
    assert doomed.wait() == -signal.SIGKILL
    assert 2 <= len(records(Path("killed/strange"))) < CELLS

    assert main([*words, "killed"]) == 0
    again = records(Path("killed/strange"))
    assert again.keys() == expected.keys()
    assert all(same_result(again[key], expected[key]) for key in expected)
