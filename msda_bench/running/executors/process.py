"""A worker process, as seen by its parent.

Existing pools lose runs: a worker that exits with code 0 leaves pebble's pool waiting for ever, and one that dies while
it holds the queue's lock stops the others; one death breaks the whole pool of concurrent.futures. Here each worker has
its own pipe, and nothing is shared. `multiprocessing` is not used: it would run the caller's main script again, and a
dask worker may not start its processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TypeAlias

from msda_bench.errors import BenchError, printable
from msda_bench.running.executors.worker import Message, Setup
from msda_bench.running.jobs import Job

MOST = 1 << 18
"""The maximum number of bytes of a worker's output that are passed on."""
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from msda_bench.running.executors.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
_LAST_WORDS = 1.0

Slot: TypeAlias = Mapping[str, str]
"""Environment variables of the worker, set before it starts and so before torch reads them."""

ONE_THREAD: Slot = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""One process a core with one thread each is fastest on small batches, and gives the same numbers on every machine."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def slots(device: str, workers: int) -> tuple[Slot, ...]:
    """A slot for each worker: one core; with "cuda" also a GPU, which workers share if there are fewer GPUs.

    The GPUs are named as by the driver: the user may have given this process only some of the machine's.
    """
    gpus: list[str] = []
    if device == "cuda":
        import torch

        count, given = torch.cuda.device_count(), os.environ.get(_VISIBLE)
        gpus = [str(number) for number in range(count)] if given is None else given.split(",")[:count]
    return tuple({**ONE_THREAD, **({_VISIBLE: gpus[number % len(gpus)]} if gpus else {})} for number in range(workers))


class WorkerProcess:
    """A worker: starting until its first `Ready`, then idle or busy with a job.

    It has its own process group: its parent handles Ctrl-C, and can end the worker with its children.

    Attributes:
        slot: reserved for it.
        ready: whether it sent its first `Ready`.
        job: its current job; `reported` holds the keys of the cells whose records it has reported.

    Raises:
        BenchError: the system cannot start a process.
    """

    def __init__(self, setup: Setup, slot: Slot) -> None:
        self.slot = slot
        self.ready = False
        self.job: Job | None = None
        self.reported: set[str] = set()
        self._began = 0.0
        self._heard = True
        self.pipe: Connection[Setup | Job, Message]
        self.pipe, theirs = Pipe()
        life, self._life = os.pipe()  # closes when this process ends, for any reason
        output, printed = os.pipe()
        # A thread reads the worker's output, so that a worker never blocks on a slow terminal.
        self._reader = threading.Thread(target=_pass_on, args=(output,), daemon=True)
        self._reader.start()
        try:
            self._process = _start(theirs.fileno(), life, printed, slot)
        except OSError as error:
            self._close()
            line = f"a worker process cannot be started: {error.strerror}; free memory or use fewer --workers"
            raise BenchError(line) from error
        finally:
            theirs.close()
            os.close(life)
            os.close(printed)
        self._send(setup)

    @property
    def seconds(self) -> float:
        """Time since it began its job."""
        return time.monotonic() - self._began

    @property
    def alive(self) -> bool:
        """Whether the process runs and its pipe is open."""
        return self._heard and self._process.poll() is None

    @property
    def idle(self) -> bool:
        """Whether it waits for a job."""
        return self.ready and self._heard and self.job is None

    def rest(self) -> None:
        """Marks it as waiting for a job."""
        self.ready, self.job = True, None

    def give(self, job: Job) -> bool:
        """Hands it a job; False if it can no longer be reached and so does not have the job."""
        if not self._send(job):
            self._heard = False
            return False
        self.job, self.reported, self._began = job, set(), time.monotonic()
        return True

    def messages(self) -> Iterator[Message]:
        """Its messages since the last call, up to one that was truncated by its death."""
        try:
            while self.pipe.poll():
                yield self.pipe.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            self._heard = False

    def kill(self) -> None:
        """Ends it, with every process that it started; its last output is passed on."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(_LAST_WORDS)  # does not wait for a child that outlives it and holds its output
        self._close()

    def end(self) -> str:
        """How it ended, in words that follow a subject; to be called after `kill`."""
        code = self._process.returncode
        if code >= 0:
            return f"exited with code {code}"
        hint = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        return f"was killed by {_signal_name(-code)}{hint}"

    def _send(self, thing: Setup | Job) -> bool:
        try:
            self.pipe.send(thing)
        except OSError:
            return False
        return True

    def _close(self) -> None:
        self.pipe.close()
        os.close(self._life)


def _start(pipe: int, life: int, output: int, slot: Slot) -> subprocess.Popen[bytes]:
    path = json.dumps([folder for folder in sys.path if isinstance(folder, str)])
    return subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
        [sys.executable, "-P", "-c", _START, path, str(pipe), str(life)],
        env={**os.environ, **slot},
        pass_fds=(pipe, life),
        process_group=0,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _pass_on(output: int) -> None:
    """Passes a worker's output on to stderr, since stdout is for tables: whole printable lines, up to a limit."""
    with os.fdopen(output, "rb") as stream:
        left = MOST
        while left > 0 and (line := stream.readline(left)):
            left -= len(line)
            if left > 0:
                _write(printable(line.decode(errors="backslashreplace").rstrip(), MOST))
        if left == 0:
            _write(f"msda-bench: a worker process printed more than {MOST >> 10} KiB; the rest is not shown")
        while stream.read(1 << 16):
            pass


def _write(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # a closed terminal is not the worker's fault
        sys.stderr.write(f"{line}\n")
