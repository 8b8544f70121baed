"""What cannot be trained shows in the first runs, and ends the command with one line."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from msda_bench.cli.main import main
from msda_bench.store import Store
from tests.cli.conftest import SUITE

BROKEN = """
    import os
    import torch
    from msda_bench.api import Aggregate, Aggregator, component, hookimpl
    from msda_bench_builtin.datasets.sine import Sine

    @component
    class Wave(Sine):
        name = "wave"

        def load(self, domain, files):
            if os.environ.get("LOST") == domain:
                raise OSError("the tide is out")
            return super().load(domain, files)

    @component
    class Broken(Aggregator):
        name = "broken"
        how: str = "raise"

        def __call__(self, risks, gaps, mu, state):
            if self.how == os.environ.get("BROKEN", "raise"):
                return risks["first"]
            scale = float("inf") if self.how == "diverge" else 1.0
            weights = torch.full_like(risks, 1 / len(risks))
            return Aggregate((risks * weights).sum() * scale, weights, state)

    @hookimpl
    def msda_datasets():
        return [Wave]

    @hookimpl
    def msda_aggregators():
        return [Broken]
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, install):
    monkeypatch.chdir(tmp_path)
    install("broken-stranger", BROKEN)


def run(*options, wrong="how: raise", seeds=34):
    ours = f"  OURS: {{aggregator: {{broken: {{{wrong}}}}}}}\n  DARN:"
    text = SUITE.replace("sine:", "wave:").replace("seeds: 2", f"seeds: {seeds}").replace("  DARN:", ours)
    Path("tiny.yaml").write_text(text)
    return main(["run", "tiny.yaml", "--device", "cpu", "--executor", "inline", *options])


def stored():
    return len(Store(Path("results/tiny")).refresh().results)


def test_a_broken_method_among_204_runs_ends_the_command_at_its_first(capsys, monkeypatch):
    assert run() == 2
    errors = capsys.readouterr().err.splitlines()
    line = errors[-1]
    assert line.startswith(
        "msda-bench: error: tiny: the first run of OURS (adapt + broken), target target_0, seed 0, failed: "
        "broken_stranger.py:"
    )
    assert line.endswith("; fix it and run again, or train the others with --keep-going")
    assert "traceback in results/tiny/log/" in line
    assert len([line for line in errors if "OURS" in line]) == 1
    assert stored() == 1  # SRC's first
    capsys.readouterr()
    # Mended, the same command trains what is missing.
    assert run(wrong="how: mend", seeds=1) == 0
    assert "1 stored before, 5 trained" in capsys.readouterr().out
    # A method that has a result needs no trial.
    monkeypatch.setenv("BROKEN", "mend")
    assert run(wrong="how: mend", seeds=2) == 1
    assert "6 stored before, 4 trained, 2 failed" in capsys.readouterr().out


def test_workers_end_with_the_command(capsys, monkeypatch, site):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *sys.path]))
    before = {*psutil.Process().children(recursive=True)}
    assert run("--executor", "dask", "--workers", "1") == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("msda-bench: error: tiny: the first run of OURS (adapt + broken), target target_0, seed 0,")
    assert stored() <= 4  # the first ones; the worker may have begun the next
    left = [" ".join(process.cmdline()) for process in {*psutil.Process().children(recursive=True)} - before]
    assert [command for command in left if "resource_tracker" not in command] == []


def test_with_keep_going_or_where_a_method_diverges_the_others_train(capsys):
    assert run("--keep-going", seeds=1) == 1
    assert "4 trained, 2 failed; " in capsys.readouterr().out
    assert run(wrong="how: diverge", seeds=1) == 1
    assert "4 stored before, 2 trained, 2 diverged" in capsys.readouterr().out


def test_a_target_that_cannot_be_used_shows_among_the_first_runs(capsys, monkeypatch):
    monkeypatch.setenv("LOST", "target_1")
    assert run(wrong="how: mend") == 2
    shown = capsys.readouterr().err
    assert "the first run of SRC (pooled), target target_1, seed 0, failed: " in shown
    assert "OSError: the tide is out" in shown
    assert stored() == 3  # each method's at the other target
