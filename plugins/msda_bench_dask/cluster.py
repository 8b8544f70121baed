"""The connection to a dask cluster."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import queue
import threading
from collections.abc import Iterator
from typing import Any, cast

from distributed import Client, LocalCluster, WorkerPlugin, rpc
from distributed.security import Security
from tornado.platform.asyncio import BaseAsyncIOLoop

from msda_bench.executors import BenchError, describe

ANSWER = 10.0
"""Seconds within which a scheduler must answer."""


class LostClusterError(BenchError):
    """The dask cluster was lost in the middle of a run."""

    exit_code = 1


@contextlib.contextmanager
def connected(scheduler: str | None, threads: int) -> Iterator[Client]:
    """A client of the scheduler at an address; with None, of a cluster in this process with this number of threads.

    Raises:
        BenchError: no scheduler answers at the address.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_unlogged())
        if scheduler is None:
            # Threads suffice, since every job has a process of its own.
            options = {"n_workers": 1, "threads_per_worker": threads, "processes": False, "memory_limit": None}
            local = LocalCluster(**options, dashboard_address="127.0.0.1:0")  # any free port; the default may be taken
            yield _quiet(stack.enter_context(Client(stack.enter_context(local), set_as_default=False)))
            return
        _find(scheduler)
        try:
            client = Client(scheduler, timeout=ANSWER, set_as_default=False)
        except Exception as error:
            raise _unreachable(scheduler, describe(error, 200)) from error
        yield _quiet(stack.enter_context(client))


def _quiet(client: Client) -> Client:
    """The client, whose event loop drops what it would log of waits that nobody asked for, even after the run.

    dask leaves such waits behind when it closes, and asyncio reports them whenever they are collected.
    """
    cast("BaseAsyncIOLoop", client.loop).asyncio_loop.set_exception_handler(_drop)
    return client


def _drop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handles an event loop's exception by nothing."""


def _find(scheduler: str) -> None:
    """Checks that a scheduler is at the address, for `ANSWER` seconds at most.

    A `Client` waits for ever for a server that accepts connections and is not a scheduler. The request is made in a
    thread, so that a signal ends the wait at once, and since a notebook's event loop may be running here.
    """
    answers: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(asyncio.run(asyncio.wait_for(_identity(scheduler), ANSWER)))
        except BaseException as error:  # noqa: BLE001 - dask may raise anything on a server of another kind
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=ANSWER + 1)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, BaseException):
        late = isinstance(answer, TimeoutError)
        raise _unreachable(scheduler, f"no answer within {ANSWER:g} s" if late else describe(answer, 200)) from answer
    if answer != "Scheduler":
        raise _unreachable(scheduler, f"it is a dask {answer}")


async def _identity(address: str) -> str:
    options = Security().get_connection_args("client")
    async with rpc(address, timeout=ANSWER, connection_args=options) as remote:
        return str((await remote.identity())["type"])


def _unreachable(scheduler: str, why: str) -> BenchError:
    return BenchError(f"--scheduler {scheduler}: no dask scheduler answers there ({why})")


@contextlib.contextmanager
def registered(plugin: WorkerPlugin, name: str, client: Client, where: str) -> Iterator[None]:
    """Registers the plugin with all dask workers for the duration of the block.

    Raises:
        BenchError: the scheduler or a worker cannot load it.
    """
    try:
        client.run_on_scheduler(_nothing)
        client.register_plugin(plugin)
    except Exception as error:
        reason = describe(error, 200)
        hint = "its scheduler and its workers need the same msda-bench and dask as this command"
        raise BenchError(f"the dask cluster {where} cannot take the jobs ({reason}); {hint}") from error
    try:
        yield
    finally:
        if client.status == "running":
            with contextlib.suppress(Exception):  # the scheduler is lost, and its workers end on their own
                client.unregister_worker_plugin(name)


def _nothing() -> None:
    """Callable only where this module can be imported."""


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Silences dask's log, which prints tracebacks for faults that the run reports in a line."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "asyncio", "tornado")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        gc.collect()  # asyncio warns of a closed client's abandoned waits when they are collected
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
