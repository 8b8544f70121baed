"""Ten minutes on a lent GPU: what no GPU has measured yet, as lines of JSON, each part within a limit of its own.

python -m benchmarks.gpu_session DIR: prints the lines, keeps them in DIR/session.jsonl and the records in DIR/results.
With --quick the same at small sizes, to try it without a GPU; what needs one is skipped, and says so.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import torch

from benchmarks.costs import cost_of
from benchmarks.test_fine_tuning import ours, photographs, theirs
from benchmarks.test_training import MIB, with_little_data
from benchmarks.workload import NoFiles, cells_of, engine_train, expansion, make_registry, reference_train
from msda_bench.engine import machine
from msda_bench.engine.graph import WARM
from msda_bench.engine.machine import OnGpu
from msda_bench.engine.train import Trainer

ROOT = Path(__file__).parents[1]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NO_GPU = "no CUDA device"
WHOLE = {"machine": 20, "tests": 90, "steps": 120, "digits": 300, "amazon": 70}
"""Seconds of each part, in their order; 600 in all."""
QUICK = dict.fromkeys(WHOLE, 150)
SMALLER = {
    "train: 2000, test: 3500, made_train: 6000, made_test: 4000": "train: 8, test: 8, made_train: 8, made_test: 8",
    "epochs: 50, batch: 128, precision: tf32": "epochs: 1, batch: 8",
    "channels: [64, 128, 256], hidden: [2048, 1024]": "channels: [4, 4, 4], hidden: [8]",
}
"""How --quick changes the suite of digits; a CPU has no tf32."""
TESTS = ("tests/engine/test_recorded.py", "tests/testing/test_sins.py", "tests/engine/test_gpu.py")
ONLY = "gpu or recorded"
CLOCKS = "name,clocks.sm,clocks.mem,clocks.max.sm,power.draw,temperature.gpu,utilization.gpu"


class Session:
    """Writes what is found.

    Args:
        out: the folder for lines and records.
        quick: at small sizes.
    """

    def __init__(self, out: Path, *, quick: bool) -> None:
        self.out, self.quick = out, quick
        out.mkdir(parents=True, exist_ok=True)

    def say(self, part: str, **found: Any) -> None:
        """Prints a line and keeps it."""
        line = json.dumps({"part": part, **found})
        print(line, flush=True)
        with (self.out / "session.jsonl").open("a") as file:
            file.write(line + "\n")

    def limited(self, part: str, command: Sequence[str | Path], seconds: float) -> bool:
        """Runs a command, which is interrupted when its time is up; whether it ended by itself, without a failure."""
        start = time.monotonic()
        process = subprocess.Popen([*map(str, command)], cwd=ROOT)
        try:
            code: int | None = process.wait(max(1.0, seconds))
        except subprocess.TimeoutExpired:
            code = None
            process.send_signal(signal.SIGINT)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        ended = "in time" if code is not None else "interrupted"
        self.say(
            part, command=" ".join(map(str, command[1:])), code=code, ended=ended, s=round(time.monotonic() - start, 1)
        )
        return code == 0


def of_machine(session: Session, _: float) -> None:
    """Versions, clocks, and the peaks of a copy and of products."""
    session.say("machine", python=sys.version.split()[0], torch=torch.__version__, cuda=torch.version.cuda)
    if DEVICE == "cpu":
        session.say("machine", skipped=NO_GPU)
        return
    said = subprocess.run(
        ["nvidia-smi", f"--query-gpu={CLOCKS}", "--format=csv"],  # noqa: S607 - where its driver puts it
        capture_output=True,
        text=True,
        check=False,
    )
    session.say("machine", clocks=said.stdout.splitlines(), triton=machine.fuses_for(torch.device(DEVICE)))
    x, y = (torch.empty(1 << 30, dtype=torch.uint8, device=DEVICE) for _ in range(2))
    session.say("machine", copy_TB_per_s=2 * len(x) / _seconds(lambda: x.copy_(y)) / 1e12)
    a = torch.randn(8192, 8192, device=DEVICE)
    for precision, highest in (("float32", "highest"), ("tf32", "high")):
        torch.set_float32_matmul_precision(highest)
        session.say("machine", product=precision, TFLOP_per_s=2 * 8192**3 / _seconds(lambda: a @ a) / 1e12)
    b = a.bfloat16()
    session.say("machine", product="bf16", TFLOP_per_s=2 * 8192**3 / _seconds(lambda: b @ b) / 1e12)


def _seconds(action: Callable[[], object], times: int = 10) -> float:
    action()
    return cost_of(lambda: [action() for _ in range(times)]).wall / times


def of_tests(session: Session, seconds: float) -> None:
    """The tests of what changed."""
    if DEVICE == "cpu":
        session.say("tests", skipped=NO_GPU)
        return
    session.limited("tests", [sys.executable, "-m", "pytest", "-x", "-q", "-k", ONLY, *TESTS], seconds)


def of_steps(session: Session, seconds: float) -> None:
    """A step's milliseconds of each work before and after, and without each of the ways that are not measured yet."""
    child = [sys.executable, "-m", "benchmarks.gpu_session", session.out, "--measure"]
    session.limited("steps", [*child, *(["--quick"] if session.quick else [])], seconds)


def ways() -> list[dict[str, OnGpu]]:
    """What a GPU does differently from before by default, and not at all; then with one of its ways turned off."""
    usual = OnGpu()
    off = {f"without {name}": usual._replace(**{name: False}) for name in OnGpu._fields}
    return [{"after": usual, "before": OnGpu(*(False for _ in OnGpu._fields))}, off]


def steps(session: Session) -> None:
    """The measurements of `of_steps`, most wanted first."""
    with photographs() as folder:
        listed = works(folder, quick=session.quick)
        for turn in ways() if DEVICE == "cuda" else [{"as ever on a CPU": OnGpu()}]:
            for name, length, train in listed:
                plain = name.startswith("plain loop")
                for way, on_gpu in {"as it is": OnGpu()}.items() if plain else turn.items():
                    with patch.object(machine, "ON_GPU", on_gpu):
                        session.say("steps", work=name, way=way, **_measured(train, length, 1 if session.quick else 2))
            listed = [work for work in listed if not work[0].startswith("plain loop")]


Work: TypeAlias = tuple[str, int, Callable[[int], object]]
"""Name, steps to measure, and what trains for a number of steps; a stack's figures are of all its runs."""


def works(folder: Path, *, quick: bool) -> list[Work]:
    """All of them; of photographs in a folder some."""
    registry = make_registry()

    def stack(work: str, runs: int, precision: str) -> Callable[[int], object]:
        cells = [with_little_data(cell) for cell in cells_of(expansion(work, registry), "DARN")[:runs]]
        change = {"precision": precision, **({"batch": 4} if quick else {})}
        cells = [replace(cell, training=cell.training.model_copy(update=change)) for cell in cells]
        return engine_train(Trainer(registry, NoFiles(), DEVICE, stack=runs), cells)

    found: list[Work] = [
        ("amazon, DARN", 2 if quick else 1000, stack("amazon", 1, "float32")),
        ("digits, DARN, float32", 1 if quick else 40, stack("digits", 1, "float32")),
    ]
    if DEVICE == "cpu":
        return found
    found += [
        ("digits, DARN, tf32", 200, stack("digits", 1, "tf32")),
        ("amazon, DARN, stack of 64", 400, stack("amazon", 64, "float32")),
        ("digits, DARN, stack of 8, tf32", 40, stack("digits", 8, "tf32")),
    ]
    for precision in ("tf32", "float32"):
        made = folder, DEVICE, precision
        found.append((f"ResNet-18, {precision}", 40, ours(*made)))
        found.append((f"plain loop, ResNet-18, resident batch, {precision}", 40, theirs(*made, resident=True)))
    return [*found, ("plain loop, amazon, DARN", 20, reference_train("amazon", DEVICE))]


def _measured(train: Callable[[int], object], length: int, rounds: int) -> dict[str, Any]:
    try:
        found = _a_step(train, length, rounds)
    except Exception as error:  # noqa: BLE001 - the other works are still to be measured
        return {"failed": f"{type(error).__name__}: {error}"[:300]}
    memory = torch.cuda.max_memory_allocated() // MIB if DEVICE == "cuda" else None
    return {"ms": statistics.median(found), "rounds": found, "peak_MiB": memory}


def _a_step(train: Callable[[int], object], length: int, rounds: int) -> list[float]:
    short = WARM + 2
    train(short + length)
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    pairs = [(cost_of(lambda: train(short + length)), cost_of(lambda: train(short))) for _ in range(rounds)]
    return [1e3 * (long.wall - brief.wall) / length for long, brief in pairs]


def of_digits(session: Session, seconds: float) -> None:
    """As many seeds of the paper's second table as fit, each whole before the next."""
    suite = ROOT / "suites" / "paper-digits-small.yaml"
    if session.quick:
        text = suite.read_text()
        for whole, tiny in SMALLER.items():
            text = text.replace(whole, tiny)
        suite = session.out / suite.name
        suite.write_text(text)
    elif DEVICE == "cpu":
        session.say("digits", skipped=NO_GPU)
        return
    end = time.monotonic() + seconds
    for seed in range(2 if session.quick else 20):
        left = end - time.monotonic()
        if left < 1 or not session.limited("digits", [*_run(session, suite), "--only", f"seed={seed}"], left):
            return


def of_amazon(session: Session, seconds: float) -> None:
    """The paper's first table, whole, for its stacks are of many seeds; it is interrupted when the time is up."""
    if DEVICE == "cpu":
        session.say("amazon", skipped=NO_GPU)
        return
    session.limited("amazon", _run(session, ROOT / "suites" / "paper-amazon.yaml"), seconds)


def _run(session: Session, suite: Path) -> list[str | Path]:
    command = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()"]
    return [*command, "run", suite, "--out", session.out / "results", "--device", DEVICE, "--workers", "1", "--quiet"]


PARTS = {"machine": of_machine, "tests": of_tests, "steps": of_steps, "digits": of_digits, "amazon": of_amazon}


def main() -> None:
    """All parts in order, or some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="at small sizes")
    parser.add_argument("--parts", nargs="+", choices=WHOLE, default=[*WHOLE], metavar="PART", help=", ".join(WHOLE))
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)  # a process that may be ended
    args = parser.parse_args()
    session = Session(args.out.absolute(), quick=args.quick)
    if args.measure:
        steps(session)
        return
    for name in args.parts:
        PARTS[name](session, (QUICK if args.quick else WHOLE)[name])


if __name__ == "__main__":
    main()
