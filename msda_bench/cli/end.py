"""How the process of a command ends: at the first SIGINT, and although a plugin's thread or process still runs."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from typing import NoReturn

from msda_bench.cli.lines import warn
from msda_bench.errors import Interrupted

_PATIENCE = 5.0
"""Seconds that threads and processes have to end by themselves."""


def listen() -> None:
    """Makes the first SIGINT raise Interrupted and ignores others, unless all are ignored, as in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def _stop(*_: object) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # further ones would disturb the cleaning up
    raise Interrupted


def end(code: int) -> NoReturn:
    """Exits with the code; SIGINT is ignored from here on.

    Python waits for every thread and process that is no daemon. Those that take too long are named and left.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave, args=(code,), daemon=True).start()
    sys.exit(code)


def _leave(code: int) -> None:
    time.sleep(_PATIENCE)
    waited_for = [*_threads(), *_processes()]
    if not waited_for:
        return
    with contextlib.suppress(OSError, ValueError):
        warn(f"warning: ends without waiting for {', '.join(waited_for)}")
        sys.stdout.flush()
    atexit._run_exitfuncs()  # noqa: SLF001 - which os._exit would skip
    os._exit(code)


def _threads() -> list[str]:
    """The threads that Python waits for, each with the line that it runs."""
    frames = sys._current_frames()  # noqa: SLF001 - the only way to another thread's frame
    named = []
    for thread in threading.enumerate():
        if thread.daemon or thread is threading.main_thread():
            continue
        frame, line = frames.get(thread.ident or 0), ""
        while frame is not None:
            if frame.f_globals.get("__name__") != "threading":
                line = f" at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"  # noqa: PTH119
            frame = frame.f_back
        named.append(f"thread {thread.name!r}{line}")
    return named


def _processes() -> list[str]:
    """Kills the processes of `multiprocessing` that Python waits for, and names them."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is None:  # then there are none
        return []
    named = []
    for child in multiprocessing.active_children():
        named.append(f"process {child.name!r}")
        child.kill()
    return named
