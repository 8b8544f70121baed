"""The connection to a dask cluster, whose workers must see the result folder."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import queue
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.errors import BenchError, StoreError, describe, message_of, printable
from msda_bench.store.files import named, temporary

if TYPE_CHECKING:
    from distributed import Client

    from msda_bench.running.executors.dask_worker import Crews

ANSWER = 10.0
"""Seconds that a scheduler has to answer."""
_TRIES = 10
_PAUSE = 0.5


class LostClusterError(BenchError):
    """The dask cluster went away in the middle of a run."""

    exit_code = 1


def need_dask() -> None:
    """Checks that dask is installed.

    Raises:
        BenchError: it is not.
    """
    if find_spec("distributed") is None:
        raise BenchError("--executor dask needs dask, which is not installed: pip install 'msda-bench[dask]'")


@contextlib.contextmanager
def connected(scheduler: str | None, threads: int) -> Iterator[Client]:
    """A client of a scheduler.

    Args:
        scheduler: its address; None for a cluster within this process.
        threads: how many tasks that one runs at a time.

    Raises:
        BenchError: nobody answers at the address.
    """
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        stack.enter_context(_unlogged())
        if scheduler is None:
            # Threads are enough, since every job has a process of its own.
            local = LocalCluster(
                n_workers=1, threads_per_worker=threads, processes=False, dashboard_address=None, memory_limit=None
            )
            yield stack.enter_context(Client(stack.enter_context(local), set_as_default=False))
            return
        _find(scheduler)
        try:
            client = Client(scheduler, timeout=ANSWER, set_as_default=False)
        except Exception as error:
            raise _unreachable(scheduler, describe(error, 200)) from error
        yield stack.enter_context(client)


def _find(scheduler: str) -> None:
    """Asks who is at the address, for `ANSWER` seconds at most.

    A `Client` waits for ever for something that accepts and is no scheduler. The question is asked in a thread, so that
    a signal ends the wait at once, and since a notebook's own loop may be running here.

    Raises:
        BenchError: no scheduler is.
    """
    answers: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(asyncio.run(asyncio.wait_for(_identity(scheduler), ANSWER)))
        except BaseException as error:  # noqa: BLE001 - what is no scheduler may lead dask anywhere
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=ANSWER + 1)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, TimeoutError):
        raise _unreachable(scheduler, f"no answer within {ANSWER:g} s") from answer
    if isinstance(answer, BaseException):
        raise _unreachable(scheduler, describe(answer, 200)) from answer
    if answer != "Scheduler":
        raise _unreachable(scheduler, f"it is a dask {printable(answer, 50)}")


async def _identity(address: str) -> str:
    from distributed import rpc
    from distributed.security import Security

    options = Security().get_connection_args("client")
    async with rpc(address, timeout=ANSWER, connection_args=options) as remote:
        return str((await remote.identity())["type"])


def _unreachable(scheduler: str, why: str) -> BenchError:
    return BenchError(f"--scheduler {scheduler}: no dask scheduler answers there ({why})")


@contextlib.contextmanager
def registered(plugin: Crews, client: Client, where: str) -> Iterator[None]:
    """While the plugin is with all dask workers.

    Raises:
        BenchError: the scheduler or a worker cannot load it.
    """
    try:
        client.run_on_scheduler(need_dask)  # any function of ours
        client.register_plugin(plugin)
    except Exception as error:
        reason = message_of(error, 200)
        hint = "its scheduler and its workers need the same msda-bench and dask as this command"
        raise BenchError(f"the dask cluster {where} cannot take the jobs ({reason}); {hint}") from error
    try:
        yield
    finally:
        if client.status == "running":
            with contextlib.suppress(Exception):  # the scheduler is lost, and its workers end by themselves
                client.unregister_worker_plugin(plugin.name)


@contextlib.contextmanager
def token_in(folder: Path) -> Iterator[Path]:
    """A file in the folder for the time of the block, with a name that no other folder holds.

    Raises:
        StoreError: it cannot be written.
    """
    token = temporary(folder / "token")
    with named(folder, "cannot be written"):
        token.touch(exist_ok=False)
    try:
        yield token
    finally:
        with contextlib.suppress(OSError):  # what cannot be removed now `store verify` removes later
            token.unlink()


def must_see(token: Path, who: str) -> None:
    """Checks that this process, called `who`, sees the folder that the token is in.

    A network file system may show a new file some seconds late.

    Raises:
        StoreError: it does not.
    """
    for _ in range(_TRIES):
        if os.path.isfile(token):  # noqa: PTH113 - answers no, too, where the path may not be looked at
            return
        time.sleep(_PAUSE)
    raise StoreError(f"{token.parent}: {who} does not see this folder; let --out be one that all workers share")


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Without dask's log, which reports with tracebacks what the run says in a line."""
    levels = {
        name: logging.getLogger(name).level for name in ("distributed", "distributed.client", "asyncio", "tornado")
    }
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        gc.collect()  # asyncio reports waits that a closed client gave up when they are cleared away
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
