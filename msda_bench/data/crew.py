"""Processes that make parts of an array; threads of their parent wait for them.

They are not processes of `multiprocessing`, which would run the caller's main script again.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import TracebackType
from typing import Any, NamedTuple, Self

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from msda_bench.data.make_rows import main; main()"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# Memory that a network frees is kept for its next batch: mapping it again each time took a third of the time.
_KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}


class Answer(NamedTuple):
    """A process's report on a part: words and a row's name for each note and each fault."""

    notes: tuple[tuple[str, str], ...]
    faults: tuple[tuple[str, str], ...]
    error: str | None


class Crew:
    """Processes that make one part at a time each; leaving the block ends them at once.

    When their parent dies, for any reason, they end after the current part.
    """

    def __init__(self, size: int) -> None:
        self._size = max(1, size)
        self._all: list[subprocess.Popen[str]] = []
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        """Starts no process yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends the processes; the current parts are lost."""
        for process in self._all:
            process.kill()
            process.communicate()

    def work(self, parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Answer]]:
        """Each part with its answer, in order of completion, up to the first error, which stops the others, too."""
        for _ in range(min(self._size, len(parts))):
            self._start()
        pool = ThreadPoolExecutor(self._size)
        try:
            futures = {pool.submit(self._ask, part): part for part in parts}
            for future in as_completed(futures):
                answer = future.result()
                yield futures[future], answer
                if answer.error is not None:
                    return
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        path = json.dumps([folder for folder in sys.path if isinstance(folder, str)])
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-P", "-c", _START, path],
            env={**_KEPT_MEMORY, **os.environ, **_ONE_THREAD},
            process_group=0,  # Ctrl-C is the parent's to handle
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._all.append(process)
        self._idle.put(process)

    def _ask(self, part: Mapping[str, Any]) -> Answer:
        process = self._idle.get()
        try:
            return _answer(process, part)
        finally:
            self._idle.put(process)


def _answer(process: subprocess.Popen[str], part: Mapping[str, Any]) -> Answer:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    try:
        print(json.dumps(part), file=process.stdin, flush=True)
        reply = json.loads(process.stdout.readline())
    except (OSError, ValueError):  # it died
        names = [row[0] for row in part["rows"]]
        where = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
        how = f"a process ended with code {process.wait()} while {part['doing']} ({where})"
        return Answer((), (), f"{how}; run the same command again to resume")
    notes, faults = (tuple((what, name) for what, name in reply[kind]) for kind in ("notes", "faults"))
    return Answer(notes, faults, reply["error"])
