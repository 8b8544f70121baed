"""Installed components by kind and name, loaded one plugin at a time, and the unusable plugins."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.metadata
import inspect
import json
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import pluggy
from pydantic import TypeAdapter

from msda_bench import api, hookspecs
from msda_bench.api import Component
from msda_bench.component.base import PLAIN_NAME, before_added
from msda_bench.errors import BenchError, PluginError
from msda_bench.marker import PROJECT
from msda_bench.plugin_errors import package, package_of, plugin_errors
from msda_bench.plugins.process_state import restored
from msda_bench.streams import NamedLines

_BASES = {
    "dataset": ("msda_datasets", "Dataset"),
    "backbone": ("msda_backbones", "Backbone"),
    "discrepancy": ("msda_discrepancies", "Discrepancy"),
    "aggregator": ("msda_aggregators", "Aggregator"),
    "scheme": ("msda_schemes", "SchemeBase"),
    "validator": ("msda_validators", "Validator"),
    "metric": ("msda_metrics", "Metric"),
}
"""By kind: its hook, and the base in `msda_bench.api`, which is imported when components of the kind are asked for."""
KINDS = tuple(_BASES)
"""The kinds of component that a suite can name."""
_ORDER = (*KINDS, "executor")


@dataclass(frozen=True)
class Entry:
    """A component class and the distribution that provides it."""

    kind: str
    cls: type[Component]
    distribution: str
    distribution_version: str

    @property
    def name(self) -> str:
        """The component's name."""
        return self.cls.name

    @property
    def origin(self) -> str:
        """The distribution with its version."""
        return f"{self.distribution} {self.distribution_version}"

    def create(self, params: Mapping[str, Any]) -> Component:
        """The component with these parameters.

        Raises:
            pydantic.ValidationError: a parameter is unknown or invalid.
        """
        adapter: TypeAdapter[Component] = TypeAdapter(self.cls)
        # Validates JSON because pydantic's strict mode for Python objects refuses a list for a tuple.
        made = adapter.validate_json(json.dumps(dict(params), allow_nan=False), strict=True)
        read_attributes(made)
        return made

    def recreate(self, identity: Mapping[str, Any]) -> Component:
        """The component that has these parameters in its key; raises as `create`."""
        return self.create(before_added(self.cls) | dict(identity))

    def plugin_errors(self, fails: str, *passing: type[BaseException]) -> AbstractContextManager[None]:
        """Turns what its code raises in the block into `<kind> <name> of <distribution> <fails>: <line>`."""
        return plugin_errors({package_of(self.cls)}, f"{self.kind} {self.name!r} of {self.origin} {fails}", passing)


def read_attributes(component: Component | type[Component]) -> None:
    """Reads every attribute that a component may define besides its parameters, so that errors surface here.

    Later reads happen where no plugin code is expected to run.
    """
    bases = component.__mro__ if isinstance(component, type) else type(component).__mro__
    own_package = Component.__module__.rpartition(".")[0]
    for base in bases:
        if base.__module__.startswith(own_package):
            for name in inspect.get_annotations(base):
                getattr(component, name, None)


class BrokenPlugin(NamedTuple):
    """An unusable plugin, or one of its hooks or classes, and the reason in one line."""

    distribution: str
    line: str


class Registry:
    """All installed components, each tied to its distribution.

    Attributes:
        broken: plugins that could not be used.
        changed: one line for each plugin that changed the shared state of the process while it was loaded.
    """

    def __init__(
        self, entries: Iterable[Entry], broken: Iterable[BrokenPlugin] = (), changed: Iterable[str] = ()
    ) -> None:
        self.broken = tuple(broken)
        self.changed = tuple(changed)
        self._by_name: dict[tuple[str, str], list[Entry]] = {}
        # Two entry points of a distribution may bring one class, which is no conflict.
        different = {(id(entry.cls), entry.origin): entry for entry in entries}
        for entry in different.values():
            self._by_name.setdefault((entry.kind, entry.name), []).append(entry)

    @property
    def entries(self) -> list[Entry]:
        """All components, including those with equal names, sorted by kind and name."""
        entries = chain.from_iterable(self._by_name.values())
        return sorted(entries, key=lambda entry: (_ORDER.index(entry.kind), entry.name, entry.distribution))

    @property
    def problems(self) -> list[str]:
        """A line for each broken plugin, and for each name that several components claim."""
        lines = [plugin.line for plugin in self.broken]
        lines += [_conflict(group) for group in self._by_name.values() if len(group) > 1]
        return lines

    def names(self, kind: str) -> list[str]:
        """The sorted names of the components of a kind."""
        return sorted(name for known, name in self._by_name if known == kind)

    def entry(self, kind: str, name: str) -> Entry:
        """The component with this kind and name.

        Raises:
            PluginError: no component matches, or more than one does.
        """
        group = self._by_name.get((kind, name), [])
        if len(group) > 1:
            raise PluginError(_conflict(group))
        if not group:
            raise PluginError(self._unknown(kind, name, self.names(kind)))
        return group[0]

    def brings(self, distribution: str) -> bool:
        """Whether a distribution is installed, including distributions in `broken`."""
        names = {entry.distribution for entry in self.entries}
        names |= {plugin.distribution for plugin in self.broken}
        return any(same_project(name, distribution) for name in names)

    def find_all(self, name: str, kind: str | None = None) -> list[Entry]:
        """The component with this name, or else all components of the distribution with this name.

        Raises:
            PluginError: nothing matches, several components match, or the kind is unknown.
        """
        kinds = [known for known in KINDS if (known, name) in self._by_name]
        if not kinds:
            of_distribution = [entry for entry in self.entries if same_project(entry.distribution, name)]
            found = [entry for entry in of_distribution if kind in {None, entry.kind}]
            if found:
                return found
        if kind is not None:
            if kind not in KINDS:
                raise PluginError(f"unknown kind {kind!r} (known: {', '.join(KINDS)})")
            return [self.entry(kind, name)]
        if len(kinds) > 1:
            named = " and of ".join(f"{'an' if one[0] in 'aeiou' else 'a'} {one}" for one in kinds)
            raise PluginError(f"{name!r} is the name of {named}; say which with its kind")
        if not kinds:
            raise PluginError(self._unknown("component", name, sorted({known for _, known in self._by_name})))
        return [self.entry(kinds[0], name)]

    def _unknown(self, kind: str, name: str, known: Sequence[str]) -> str:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
        unusable = "".join(f"; a plugin could not be used: {plugin.line}" for plugin in self.broken)
        return f"unknown {kind} {name!r} ({hint}){unusable}"


def same_project(first: str, second: str) -> bool:
    """Whether two names denote one distribution; `-`, `_` and `.` are interchangeable, and case is ignored."""
    return re.sub(r"[-_.]+", "-", first).lower() == re.sub(r"[-_.]+", "-", second).lower()


def _conflict(group: list[Entry]) -> str:
    first = group[0]
    origins = dict.fromkeys(entry.origin for entry in group)
    if len(origins) > 1:
        return f"{first.kind} {first.name!r} is claimed by {' and '.join(origins)}; uninstall one of them"
    classes = " and ".join(f"{entry.cls.__module__}.{entry.cls.__qualname__}" for entry in group)
    return f"{first.kind} {first.name!r} is the name of several classes of {first.origin}: {classes}; rename one"


def discover(
    entry_points: Iterable[importlib.metadata.EntryPoint] | None = None,
    group: str = PROJECT,
    hooks: Mapping[str, type[api.Component]] | None = None,
    kinds: Collection[str] | None = None,
) -> Registry:
    """All installed components, and every plugin that could not be used with the reason.

    Args:
        entry_points: replace the installed entry points in tests.
        group: of entry points.
        hooks: the names of another group's hooks, and the base of the classes that each returns.
        kinds: load only components of these kinds, so that what others need, such as torch, is not imported; None for
            all kinds. Torch's state is then guarded only if torch is imported: load all kinds in what trains.
    """
    if kinds is None:
        importlib.import_module("torch")  # so that a plugin which changes its state is noticed
    if hooks is None:
        hooks = {}
        for kind, (hook, base) in _BASES.items():
            if kinds is None or kind in kinds:
                hooks[hook] = getattr(api, base)
    entries: list[Entry] = []
    broken: list[BrokenPlugin] = []
    changed: list[str] = []
    points = importlib.metadata.entry_points(group=group) if entry_points is None else entry_points
    for point in sorted(points, key=lambda point: (*_distribution(point), point.name, point.value)):
        name, version = _distribution(point)
        origin = f"{name} {version}"
        what = f"entry point {point.name!r} ({point.value})"
        printed = NamedLines(origin)
        threads = set(threading.enumerate())
        with restored(printed.write) as settings:
            for part in _classes(point, what, hooks):
                if isinstance(part, str):
                    broken.append(BrokenPlugin(name, f"{origin}: {part}"))
                else:
                    entries.append(Entry(part.kind, part, name, version))
        printed.end()
        for thread in set(threading.enumerate()) - threads:
            thread.name += f" of {origin}"  # the end of the command names a thread that still runs
        if settings:
            deed = f"{what} changed {' and '.join(settings)}"
            changed.append(f"{origin}: {deed}: it was put back, since every run of the process shares it")
    return Registry(entries, broken, changed)


def _distribution(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    with contextlib.suppress(Exception):  # each Python version raises another for unreadable metadata
        if point.dist:
            return str(point.dist.name), str(point.dist.version)
    return "unknown", "?"


def _classes(
    point: importlib.metadata.EntryPoint, what: str, hooks: Mapping[str, type[api.Component]]
) -> Iterator[type[api.Component] | str]:
    """The plugin's components, and a line for each part of it that cannot be used."""
    # One manager per plugin: pluggy's own loader drops a second distribution with an equal entry-point name.
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    packages = {package(point.value)}
    try:
        with plugin_errors(packages, what):
            plugin = point.load()
            manager.register(plugin)
            manager.check_pending()
            names = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
    except BenchError as fault:
        yield str(fault)
        return
    known = {hook for hook, _ in _BASES.values()} if point.group == PROJECT else {*hooks}
    if others := sorted(names - known):
        yield f"{what}: {' and '.join(others)} cannot be in the entry-point group {point.group}"
    elif not names:
        yield f"{what}: implements no hook; mark a function such as {min(known)} with @hookimpl"
    for hook, base in hooks.items():
        try:
            with plugin_errors(packages, f"hook {hook}"):
                classes = _returned(manager, hook)
        except BenchError as fault:
            yield str(fault)
            continue
        for cls in classes:
            try:
                with plugin_errors(packages, "cannot be inspected"):
                    why = fault_of(cls, base)
            except BenchError as fault:
                why = str(fault)
            yield f"hook {hook}: {_name(cls)} {why}" if why else cls


def _returned(manager: pluggy.PluginManager, hook: str) -> list[Any]:
    """What the plugin's implementation of a hook lists; raises a PluginError for anything but a list or the like."""
    caller = getattr(manager.hook, hook)
    results = caller()
    if caller.get_hookimpls() and not results:
        raise PluginError(f"hook {hook} returned None; return a list of classes")
    for result in results:
        if isinstance(result, type):
            raise PluginError(f"hook {hook} returned the class {_name(result)}; return a list: [{_name(result)}]")
        if isinstance(result, str | Mapping) or not isinstance(result, Iterable):
            raise PluginError(f"hook {hook} returned {_name(result)}; return a list of classes")
    return [cls for listed in results for cls in listed]


def _name(cls: object) -> str:
    if isinstance(cls, str):
        return cls
    return cls.__name__ if isinstance(cls, type) else f"a {type(cls).__name__}"


def fault_of(cls: Any, base: type[api.Component]) -> str | None:
    """Why a class cannot be a component of this base, in a few words; None if it can."""
    if not (isinstance(cls, type) and issubclass(cls, base)):
        door = "api" if base.__name__ in api.__all__ else "executors"
        return f"is not a subclass of msda_bench.{door}.{base.__name__}"
    name = getattr(cls, "name", None)
    if not (isinstance(name, str) and re.fullmatch(PLAIN_NAME, name)):
        return f"needs a `name` of letters, digits, '_', '.' and '-', at most 64, not {name!r}"
    if "__pydantic_validator__" not in vars(cls):
        return "is not decorated with @component"
    if type(cls.version) is not int or cls.version < 1:
        return f"needs a whole `version` of at least 1, not {cls.version!r}"
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        return f"does not define {', '.join(missing)}"
    read_attributes(cls)
    return _uncallable(cls) if isinstance(cls.description(), str) else "needs a `description` that returns text"


def _uncallable(cls: type) -> str | None:
    """The reason why an override of an abstract method cannot be called as declared; None if all can."""
    for owner in cls.__mro__:
        for name in getattr(owner, "__abstractmethods__", ()):
            fault = _unlike(inspect.getattr_static(cls, name), vars(owner).get(name), name)
            if fault is not None:
                return fault
    return None


def _unlike(own: object, declared: object, name: str) -> str | None:
    """Why a method cannot be called as it is declared; None if it can, or is no method."""
    if not (inspect.isfunction(own) and inspect.isfunction(declared)):
        return None
    positional: list[str] = []
    keywords: dict[str, None] = {}
    for param in inspect.signature(declared).parameters.values():
        if param.kind is param.KEYWORD_ONLY:
            keywords[param.name] = None
        elif param.kind is not param.VAR_KEYWORD:
            positional.append(param.name)
    try:
        inspect.signature(own).bind(*positional, **keywords)
    except TypeError:
        return f"has a `{name}` that cannot be called with ({', '.join((*positional[1:], *keywords))})"
    return None
