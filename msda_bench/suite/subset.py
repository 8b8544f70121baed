"""Spans of numbers such as `0-4`, and a part of a plan, written for `--only` as `method=DARN|MDAN,seed=0-4`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msda_bench.errors import BenchError
from msda_bench.suite.issues import hint, shown_value
from msda_bench.suite.plan import Plan, PlannedRun

_SPAN = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")
_COMMA, _BAR = "\ue000", "\ue001"
"""Stand for the characters in a name."""
_HIDDEN = str.maketrans({",": _COMMA, "|": _BAR})
_QUOTED = re.compile(r"""(?<=[=|])\s*(["'])(.*?)\1\s*(?=[,|]|$)""")
_TARGET = re.compile(r"(?<![^,])\s*target\s*=[^,]*(,[^,=]+(?=,|$))+")
_KEYS = ("experiment", "method", "target", "seed")


def span(text: str) -> range | None:
    """The whole numbers of `3-7`, both ends included; None for other text or if the end comes first."""
    match = _SPAN.fullmatch(text)
    if not match:
        return None
    first = int(match[1])
    last = int(match[2])
    return range(first, last + 1) if first <= last else None


def meant_span(text: str) -> str | None:
    """The number or span that text such as `0..4` or `4-0` probably means; None with no number or more than two."""
    numbers = sorted(map(int, re.findall(r"[0-9]{1,10}", text)))
    if len(numbers) not in {1, 2}:
        return None
    return "-".join(map(str, numbers))


def subset_of(plan: Plan, text: str) -> tuple[PlannedRun, ...]:
    """The runs of a plan that a selection names, and those at tuning seeds that choose their settings.

    Commas join conditions, and a run must meet all; `|` or a repeated key gives alternatives. A value in quotes may
    have both characters; a comma without a `=` behind it belongs to the name of a target.

    Raises:
        BenchError: it is no selection, a value is not in the plan, or no run meets all conditions.
    """
    wanted = _wanted(plan, text)
    runs = {run for run in plan.cells if _meets(run, wanted)}
    if not runs:
        raise BenchError(f"selection {shown_value(text)}: no run of suite {plan.suite} meets all conditions")
    tuning = {table.name: table.tuning.seeds for table in plan.experiments if table.tuning is not None}
    chosen = {_choice(run) for run in runs if run.experiment in tuning}
    for run in plan.cells:
        if run.seed in tuning.get(run.experiment, ()) and _choice(run) in chosen:
            runs.add(run)
    return tuple(run for run in plan.cells if run in runs)


def _wanted(plan: Plan, text: str) -> dict[str, set[str]]:
    """The values in a plan that a selection names, by key."""
    wanted: dict[str, set[str]] = {}
    absent: list[str] = []
    for key, values in _parse(text).items():
        known = list(dict.fromkeys(str(getattr(run, key)) for run in plan.cells))
        found = [_named(key, value, known) for value in values]
        wanted[key] = set[str]().union(*found)
        missing = [value for value, names in zip(values, found, strict=True) if not names]
        absent += _absent(key, missing, known)
    if absent:
        raise BenchError(*absent)
    return wanted


def _meets(run: PlannedRun, wanted: Mapping[str, Collection[str]]) -> bool:
    return all(str(getattr(run, key)) in values for key, values in wanted.items())


def _named(key: str, value: str, known: Sequence[str]) -> set[str]:
    """The known values that a value names; several if it is a span of seeds."""
    numbers = span(value) if key == "seed" else None
    if numbers is None:
        return {value}.intersection(known)
    return {seed for seed in known if int(seed) in numbers}


def _choice(run: PlannedRun) -> tuple[str, str, str]:
    """The experiment, method and target for which settings are chosen on tuning seeds."""
    return run.experiment, run.method, run.target


def _parse(text: str) -> dict[str, tuple[str, ...]]:
    """The alternatives that a selection gives for each key."""
    wanted: dict[str, tuple[str, ...]] = {}
    hidden = _QUOTED.sub(lambda match: match[2].translate(_HIDDEN), text)
    hidden = _TARGET.sub(lambda match: match[0].replace(",", _COMMA), hidden)
    for condition in hidden.split(","):
        key, equals, values = (part.strip() for part in condition.partition("="))
        if not equals:
            meant = f" (did you mean {shown_value(_meant(key))}?)" if key else ""
            what = f"{shown_value(condition)} is not key=value{meant}; join alternatives with |"
            raise BenchError(f"selection {shown_value(text)}: {what}")
        if key not in _KEYS:
            raise BenchError(f"selection {shown_value(text)}: unknown key {shown_value(key)}{hint(key, _KEYS)}")
        for value in values.split("|"):
            name = value.strip().replace(_COMMA, ",").replace(_BAR, "|")
            wanted[key] = (*wanted.get(key, ()), _value(text, key, name))
    return wanted


def _meant(condition: str) -> str:
    """The probable meaning of text without `=`, such as `method:DARN`, `0-4` or a method's bare name."""
    key, _, value = condition.replace(":", " ").partition(" ")
    close = difflib.get_close_matches(key, _KEYS, n=1)
    if value and close:
        return f"{close[0]}={value.strip()}"
    if span(condition) or condition.isdigit():
        return f"seed={condition}"
    return f"method={condition}"


def _value(text: str, key: str, value: str) -> str:
    """A value as plans have it; refuses an empty one, and a seed that is no number or span."""
    if not value:
        raise BenchError(f"selection {shown_value(text)}: {key} has an empty value")
    if key != "seed" or span(value) is not None:
        return value
    if not (value.isascii() and value.isdigit()):
        close = meant_span(value)
        meant = f" (did you mean {shown_value(f'seed={close}')}?)" if close else ""
        what = f"seed must be a number or a span such as 0-4, not {shown_value(value)}{meant}"
        raise BenchError(f"selection {shown_value(text)}: {what}")
    return value.lstrip("0") or "0"


def _absent(key: str, missing: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    """A line for each value that no run has."""
    has_special = any("," in name or "|" in name for name in (*missing, *known))
    how = "; join alternatives with |, and put a name with a comma or | in quotes" if has_special else ""
    for value in missing:
        close = hint("" if key == "seed" else value, known)  # seeds are listed, since numbers cannot be misspelt
        yield f"selection: no {key} {shown_value(value)} in this suite{close}{how}"
