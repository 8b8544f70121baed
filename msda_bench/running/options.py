"""The options of a run, which the command line and `msda_bench.run` both make."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msda_bench.suite.described import OwnMethods


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run trains, with what, and where its results go.

    Attributes:
        suite: a suite by name, or a file.
        out: the parent of the result folder.
        device: auto, cpu or cuda.
        executor: the name of the executor.
        scheduler: the address of the executor's scheduler; None for this machine.
        stack: the maximum number of runs that a GPU trains as one; None for as many as fit.
        workers: the number of processes; None for one for each GPU or CPU core.
        timeout: the seconds that a run may take; None for no limit.
        methods: a file whose methods are trained instead of the suite's.
        estimators: estimators of this Python session, trained beside the suite's methods.
        against: a reference or result folder; the methods are ranked among its recorded ones.
        only: selections, which all must hold.
        limit: the maximum number of runs to train.
        shard: the part of the suite to train, `I/N`.
        trust_files: whether the code of Python files that the suite names may run.
        keep_going: whether the other runs are trained although a method's first one fails.
        dry_run: whether the runs are only counted.
        fetch: whether missing data may be downloaded.
        no_shift: whether no picture of the user's own data is kept.
        quiet: whether progress, verdicts and explanations are left out.
    """

    suite: Path
    out: Path = Path("results")
    device: str = "auto"
    executor: str = "local"
    scheduler: str | None = None
    stack: int | None = None
    workers: int | None = None
    timeout: float | None = None
    methods: Path | None = None
    estimators: OwnMethods | None = None
    against: str | None = None
    only: Sequence[str] = ()
    limit: int | None = None
    shard: str | None = None
    trust_files: bool = False
    keep_going: bool = False
    dry_run: bool = False
    fetch: bool = False
    no_shift: bool = False
    quiet: bool = False

    @property
    def is_part(self) -> bool:
        """Whether only some of the suite's runs are selected."""
        return bool(self.only) or self.limit is not None or self.shard is not None

    def command(self) -> str:
        """The shell command with these options; estimators of a Python session cannot be in it."""
        words = ["msda-bench", "run", str(self.suite)]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("suite", "estimators") or value == field.default:
                continue
            option = f"--{field.name.replace('_', '-')}"
            if value is True:
                words.append(option)
                continue
            values = value if field.name == "only" else (value,)
            for one in values:
                words += [option, f"{one:g}" if isinstance(one, float) else str(one)]
        return shlex.join(words)
