"""Makes rows for the tests of `Files.rows`: a file's number, four times."""

import os
import signal
import time

import numpy as np

from msda_bench.api import DataError


def row(content, sleep=0):
    time.sleep(sleep)
    if content == b"0":
        os.write(1, b"a library in C says something\n")
        print("so does Python")
    if content == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    if content == b"much":
        np.empty(1 << 60, np.uint8)
    if content == b"bug":
        open(b"no such file")  # noqa: PTH123, SIM115
    if not content.isdigit():
        raise DataError("no number" if content else "empty")
    return np.full((2, 2), int(content), np.uint8), "odd" if int(content) % 2 else None
