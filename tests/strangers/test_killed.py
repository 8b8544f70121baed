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

from msda_bench.store import Record, Store
from msda_bench.store.files import same_result

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
seeds: 6
backbone: {mlp: {hidden: [8], dropout: 0.3}}
training: {epochs: 40, batch: 10, optimizer: {adadelta: {lr: 1.0}}}
methods:
  HEADS: {scheme: heads}
  TEACHER: {scheme: teacher}
  FREE: {scheme: source_free}
"""


def records(folder: Path) -> dict[str, Record]:
    store = Store(folder)
    return store.results(sorted(store.keys()))


@pytest.mark.slow
def test_a_killed_suite_run_again_has_the_records_of_an_undisturbed_run(
    install: Callable[..., None], site: Path, tmp_path: Path
) -> None:
    for name in ("heads", "teacher", "source_free"):
        install(f"strange-{name}", (HERE / f"{name}.py").read_text(), entry=name)
    install("strange-data", DATA, entry="data")
    (tmp_path / "strange.yaml").write_text(SUITE)
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}

    def start(out: str) -> subprocess.Popen[bytes]:
        code = "import sys; from msda_bench.cli.main import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", code, "run", "strange.yaml", "--out", out, "--executor", "inline"]
        return subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    said, _ = (whole := start("whole")).communicate()
    assert whole.returncode == 0, said.decode()
    expected = records(tmp_path / "whole" / "strange")
    assert len(expected) == 18

    doomed = start("killed")
    cells = tmp_path / "killed" / "strange" / "cells"
    while doomed.poll() is None and len(list(cells.rglob("*.json"))) < 3:
        time.sleep(0.01)
    doomed.send_signal(signal.SIGKILL)
    doomed.communicate()
    assert doomed.returncode == -signal.SIGKILL
    assert 3 <= len(records(tmp_path / "killed" / "strange")) < 18

    said, _ = (again := start("killed")).communicate()
    assert again.returncode == 0, said.decode()
    found = records(tmp_path / "killed" / "strange")
    assert found.keys() == expected.keys()
    assert all(same_result(found[key], expected[key]) for key in expected)
