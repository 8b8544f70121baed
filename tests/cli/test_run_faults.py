"""`msda-bench run` on a failing or full disk, and on a folder with conflicting results."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Store
from tests.cli.conftest import INLINE
from tests.store.faulty import faults

pytestmark = pytest.mark.usefixtures("tiny")


CODES = (errno.ENOSPC, errno.EIO, errno.EROFS)


def run(*options):
    return main([*INLINE, "--quiet", "--only", "method=SRC,target=target_0", *options])


def table(parent):
    return Path(parent, "tiny", "leaderboard.csv").read_bytes()


def check_call(at, code, capsys):
    """Refuses one call; returns whether there was one."""
    out = f"out-{code}-{at}"
    with faults(code, at) as faulty:
        ended = run("--out", out)
    error = capsys.readouterr().err
    if faulty.refused is None:
        assert ended == 0
    else:
        assert "Traceback" not in error
        reported = [line for line in error.splitlines() if os.strerror(code) in line]
        assert (ended, len(reported)) == (2, 1)
        assert reported[0].startswith(f"msda-bench: error: {out}")
    assert run("--out", out) == 0
    assert table(out) == table("whole")
    assert main(["store", "verify", f"{out}/tiny"]) == 0
    capsys.readouterr()
    return faulty.refused is not None


@pytest.mark.parametrize(
    ("code", "step"),
    [(errno.ENOSPC, 5), *(pytest.param(code, 1, marks=pytest.mark.nightly) for code in CODES)],
)
def test_any_refused_call_is_reported_in_one_line_and_a_rerun_finishes(code, step, capsys):
    assert run("--out", "whole") == 0
    at = 0
    while check_call(at, code, capsys):
        at += step
    assert at > 20


def test_a_stored_conflict_is_shown_with_exit_code_1(capsys):
    assert run() == 0
    store = Store(Path("results/tiny")).refresh()
    record = store.read(min(store.results))
    assert record is not None
    store.publish(replace(record, outcome=Outcome(20, sum_squared_error=1.0)))
    capsys.readouterr()
    assert run() == 1
    assert "another result of the same cell is stored with the one that counts" in capsys.readouterr().out
