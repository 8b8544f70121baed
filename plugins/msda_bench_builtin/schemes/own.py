"""The user's own estimator, of a Python file beside the suite or of the Python session, as a scheme."""

from __future__ import annotations

import ast
import copy
import hashlib
import importlib.machinery
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import SourceLoader
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from msda_bench.api import Array, EstimatorScheme, FilePath, FitData, Inputs, PluginError, Task, component
from msda_bench.errors import BenchError, describe
from msda_bench.plugin_errors import OWN, place

_LONGEST = 2**20
"""Bytes of a file."""


@component
class Own(EstimatorScheme):
    """An estimator of the user's own: an object with `fit` and `predict`, made by a function of a Python file.

    A suite names it as `{estimator: my_models.py:make_svm}`, relative to its folder. The file is read as text, and its
    code runs only in training, with `--trust-files`. `msda_bench.run(..., methods={"MySvm": estimator})` has it from
    Python.

    Parameters:
        file: the Python file; its sha256, not its place, is part of each run's key.
        function: what makes the estimator; it gets `seed` and `task` if it has such arguments.
        arguments: its other arguments.
        sees: "target" fits it with the target's unlabelled examples and `sample_domain`, as skada's are.
        dense: whether it takes no sparse matrix.
        sha256: of the file that a run was planned with.
        described: of an estimator from Python, what it is: classes, parameters and versions.
    """

    name = "estimator"
    held: ClassVar[Any] = None
    """The estimator itself if it is of this Python session."""

    file: Annotated[str, FilePath()] = ""
    function: str = ""
    arguments: Annotated[dict[str, Any], Field(max_length=100)] = Field(default_factory=dict)
    sees: Literal["sources", "target"] = "sources"
    dense: bool = False  # type: ignore[misc]
    sha256: str = ""
    described: dict[str, Any] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses a file that is not there, is no Python, or has no such function."""
        if self.file:
            self._check(self._source())
        elif not self.described:
            raise ValueError("needs a Python file; write estimator: FILE:FUNCTION as a key of the method")

    def _check(self, source: bytes) -> None:
        name = Path(self.file).name
        if self.sha256 and hashlib.sha256(source).hexdigest() != self.sha256:
            raise ValueError(f"{name} has changed since its runs were planned; run the suite again")
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            raise ValueError(f"{name}:{error.lineno}: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"{name}: is no Python that can be read: {describe(error)}") from None
        known = dict.fromkeys(_defined(tree))
        if self.function not in known:
            has = f"; it has {', '.join(known)}" if known else ""
            raise ValueError(f"{name} defines no {self.function or 'function: name it, as FILE:FUNCTION'}{has}")

    @property
    def needs_target(self) -> bool:  # type: ignore[override]
        """Whether it is fitted with the target's unlabelled examples."""
        return self.sees == "target"

    def identity(self) -> dict[str, Any]:
        """The parameters in keys: the file's bytes stand for it."""
        given = super().identity()
        if not self.file:
            return given
        return given | {"sha256": hashlib.sha256(self._source()).hexdigest()}

    def make(self, task: Task, seed: int) -> Any:
        """The estimator; runs the user's code.

        Raises:
            PluginError: it is of another Python session.
        """
        if self.held is not None:
            return copy.deepcopy(self.held)
        if not self.file:
            raise PluginError("scheme 'estimator': this one is of another Python session; give it to msda_bench.run")
        function = getattr(self._module(), self.function)
        known = inspect.signature(function).parameters
        given = {name: value for name, value in {"task": task, "seed": seed}.items() if name in known}
        return function(**(given | self.arguments))

    def fit(self, rows: FitData, task: Task, seed: int) -> Callable[[Inputs], Array]:
        """Fits it; whatever it raises names the user's file and line."""
        with self._plugin_errors():
            predict = super().fit(rows, task, seed)

        def outputs(given: Inputs) -> Array:
            with self._plugin_errors():
                return predict(given)

        return outputs

    @contextmanager
    def _plugin_errors(self) -> Iterator[None]:
        try:
            yield
        except (BenchError, MemoryError):
            raise
        except Exception as error:
            who = f"{Path(self.file).name}:{self.function}" if self.file else str(self.described.get("class"))
            raise PluginError(f"{place(error, {OWN}) or who}: {describe(error)}") from error

    def _source(self) -> bytes:
        path = Path(self.file)
        try:
            if not path.is_file():
                raise ValueError(f"{path.name}: no such file beside the suite")
            with path.open("rb") as stream:
                source = stream.read(_LONGEST + 1)
        except OSError as error:
            raise ValueError(f"{path.name}: cannot be read: {error.strerror}") from None
        if len(source) > _LONGEST:
            raise ValueError(f"{path.name}: has more than {_LONGEST} bytes")
        return source

    def _module(self) -> Any:
        source = self._source()
        self._check(source)
        name = f"{OWN}.{Path(self.file).stem}"
        spec = importlib.machinery.ModuleSpec(name, _Source(self.file, source), origin=self.file)
        module = importlib.util.module_from_spec(spec)
        module.__file__ = self.file
        _Source(self.file, source).exec_module(module)
        return module


class _Source(SourceLoader):
    """Runs the very bytes that were hashed, and keeps no compiled ones."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path, self._data = path, data

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str) -> bytes:
        return self._data


def _defined(tree: ast.Module) -> Iterator[str]:
    """The names that a file defines at its top level."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
