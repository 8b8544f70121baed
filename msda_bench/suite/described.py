"""Describes an estimator of a Python session by its classes, parameters and versions, for the keys of runs."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import math
import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from msda_bench.component.estimator import takes
from msda_bench.errors import SuiteError, printable
from msda_bench.functional import seeded_globals

_DEEPEST = 20
_PLAIN = (bool, int, float, str, type(None), np.generic)


class OwnMethods(NamedTuple):
    """Methods given in Python: their rows as in a suite, and their estimators, by name."""

    written: Mapping[str, Any]
    held: Mapping[str, Any]


def own_methods(methods: Mapping[str, Any]) -> OwnMethods:
    """Reads methods given in Python.

    Each is an estimator, or a mapping of `estimator`, `sees`, `dense` and other keys of a method.

    Raises:
        SuiteError: one is no estimator, or cannot be described.
    """
    if not methods:
        raise SuiteError("methods: must have at least one, such as {'Mine': LogisticRegression()}, not {}")
    written: dict[str, Any] = {}
    held: dict[str, Any] = {}
    for name, given in methods.items():
        if isinstance(given, Mapping) and not hasattr(given.get("estimator"), "fit"):
            written[name] = dict(given)
            continue
        rest = dict(given) if isinstance(given, Mapping) else {"estimator": given}
        model = rest.pop("estimator")
        if not (hasattr(model, "fit") and hasattr(model, "predict")) or isinstance(model, type):
            kind = model if isinstance(model, type) else type(model)
            raise SuiteError(f"methods: {name}: needs an object with fit and predict, not {printable(kind.__name__)}")
        params = {
            "described": describe(model, f"methods: {name}"),
            "sees": rest.pop("sees", "target" if _takes_domains(model) else "sources"),
            "dense": rest.pop("dense", False),
        }
        written[name] = {**rest, "scheme": {"estimator": params}}
        held[name] = model
    return OwnMethods(written, held)


def _takes_domains(model: Any) -> bool:
    with seeded_globals(0):
        return takes(model, "fit", "sample_domain")


def describe(value: Any, where: str, depth: int = 0) -> Any:
    """A value as plain JSON, equal for equal values in every process.

    Raises:
        SuiteError: it cannot be told from another one, such as a lambda.
    """
    if depth > _DEEPEST:
        raise SuiteError(f"{where}: is nested too deeply to be described")
    if isinstance(value, list):
        return [describe(item, where, depth + 1) for item in value]
    if isinstance(value, dict):
        return {str(key): describe(item, where, depth + 1) for key, item in value.items()}
    if isinstance(value, type | FunctionType | BuiltinFunctionType | np.ufunc):
        return {"named": _named(value, where)}
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"array": [str(value.dtype), list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]}
    if isinstance(value, tuple):
        return {"tuple": describe(list(value), where, depth)}
    return _plain(value) if isinstance(value, _PLAIN) else _object(value, where, depth)


def _plain(value: Any) -> Any:
    """A number or text as JSON, or a mapping in place of a number that JSON lacks."""
    plain = value.item() if isinstance(value, np.generic) else value
    return {"float": repr(plain)} if isinstance(plain, float) and not math.isfinite(plain) else plain


def _object(value: Any, where: str, depth: int) -> dict[str, Any]:
    """An object: its class, the parameters of an estimator, and its other attributes that are set before a fit."""
    params = value.get_params(deep=False) if hasattr(value, "get_params") else {}
    state = getattr(value, "__dict__", {})
    items = {name: item for name, item in state.items() if not name.endswith("_")}
    if params:
        items = {name: item for name, item in items.items() if isinstance(item, _PLAIN)} | params
    parts = {"class": _named(type(value), where)}
    for name in sorted(items):
        parts[name] = describe(items[name], where, depth + 1)
    requests = state.get("_metadata_request")
    if requests is not None:
        parts["requests"] = str(requests)
    return parts


def _named(value: Any, where: str) -> str:
    """The place of a class or function, with the version of its distribution or the sha256 of its source.

    Raises:
        SuiteError: it has no name by which it is found, or no source.
    """
    module, name = getattr(value, "__module__", None) or "numpy", getattr(value, "__qualname__", value.__name__)
    what = f"{module}.{name}"
    if "<" in name:
        remedy = "define it in a file, and name that in the suite, {estimator: FILE:FUNCTION}"
        raise SuiteError(f"{where}: {printable(what)} cannot be described, since it has no name of its own; {remedy}")
    top = module.partition(".")[0]
    owners = importlib.metadata.packages_distributions().get(top)
    if owners:
        return f"{what} of {owners[0]} {importlib.metadata.version(owners[0])}"
    if top in sys.stdlib_module_names and top != "__main__":
        return f"{what} of Python {sys.version_info[0]}.{sys.version_info[1]}"
    try:
        source = inspect.getsource(value if module == "__main__" else sys.modules[module])
    except (OSError, TypeError, KeyError):
        remedy = "put it into a file, and name that in the suite, {estimator: FILE:FUNCTION}"
        raise SuiteError(f"{where}: the source of {printable(what)} cannot be read; {remedy}") from None
    return f"{what} of sha256 {hashlib.sha256(source.encode()).hexdigest()}"
