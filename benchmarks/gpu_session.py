"""Ten minutes on a lent GPU: tests, steps and studies as lines of JSON, each part within a limit of its own.

python -m benchmarks.gpu_session DIR: prints the lines, keeps them in DIR/session.jsonl and the records in DIR/results.
The last part, amazon, is for a run of its own: --parts amazon. With --seconds 20 the commands can be tried on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from msda_bench.engine.machine import fuses_for
from msda_bench.processes import KEPT_MEMORY

ROOT = Path(__file__).parents[1]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WHOLE = {"machine": 0, "tests": 110, "steps": 170, "digits": 300, "amazon": 570}
"""Seconds of each part, in their order; without the last 580 in all."""
TESTS = ("tests/engine/test_recorded.py", "tests/testing/test_sins.py", "tests/engine/test_gpu.py")
STEPS = ("benchmarks/test_fine_tuning.py", "benchmarks/test_training.py")
READ = "name,clocks.sm,clocks.mem,clocks.max.sm,power.draw,temperature.gpu,utilization.gpu"
CLOCKS = ("nvidia-smi", f"--query-gpu={READ}", "--format=csv")


def say(out: Path, part: str, **found: Any) -> None:
    """Prints a line and keeps it in the folder of the session."""
    line = json.dumps({"part": part, **found})
    print(line, flush=True)
    with (out / "session.jsonl").open("a") as file:
        file.write(line + "\n")


def take(out: Path, part: str, seconds: float) -> None:
    """Runs the commands of a part, one after another, until one fails or the time is up."""
    if part == "machine":
        clocks = [] if DEVICE == "cpu" else subprocess.check_output(CLOCKS, text=True).splitlines()
        found = {"clocks": clocks, "triton": fuses_for(torch.device(DEVICE))}
        say(out, part, python=sys.version, torch=torch.__version__, cuda=torch.version.cuda, **found)
        return
    end = time.monotonic() + seconds
    for command in _commands(out, part):
        left, start = end - time.monotonic(), time.monotonic()
        if left < 1:
            return
        code = _code(command, left)
        ended, spent = "in time" if code is not None else "interrupted", round(time.monotonic() - start, 1)
        say(out, part, command=" ".join(command[1:]), code=code, ended=ended, s=spent)
        if code != 0:
            return


def _commands(out: Path, part: str) -> list[list[str]]:
    tests = [sys.executable, "-m", "pytest", "-q"]
    run = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()", "run"]
    into = ["--out", f"{out}/results", "--device", DEVICE, "--workers", "1", "--quiet"]
    measured = ["--bench-device", DEVICE, "--benchmark-json", f"{out}/steps.json"]
    digits, amazon = (f"{ROOT}/suites/paper-{name}.yaml" for name in ("digits-small", "amazon"))
    return {
        "tests": [[*tests, "-x", "-k", "gpu or recorded", *TESTS]],
        "steps": [[*tests, "-k", "a_step or amazon or digits or fonts", *STEPS, *measured]],
        # As many seeds as fit, each whole before the next.
        "digits": [[*run, digits, *into, "--only", f"seed={seed}"] for seed in range(20)],
        # Whole, for its stacks are of many seeds.
        "amazon": [[*run, amazon, *into]],
    }[part]


def _code(command: Sequence[str], seconds: float) -> int | None:
    """The exit code of a command; None if its time was up, and it was interrupted."""
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **KEPT_MEMORY})
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


def main() -> None:
    """All parts in order, or some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="DIR")
    parser.add_argument("--parts", nargs="+", choices=WHOLE, default=[*WHOLE], metavar="PART", help=", ".join(WHOLE))
    parser.add_argument("--seconds", type=float, help="the limit of each part, in place of its own")
    args = parser.parse_args()
    out = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    for name in args.parts:
        take(out, name, args.seconds or WHOLE[name])


if __name__ == "__main__":
    main()
