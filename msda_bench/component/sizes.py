"""How many examples of a domain a run trains on and is tested on, and whether the domain has as many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from msda_bench.errors import DataError

if TYPE_CHECKING:
    from msda_bench.component.dataset import Dataset

Part: TypeAlias = int | float | Literal["all"]
"""A count, a fraction in (0, 1) of the domain's examples, or all of them."""
Extent: TypeAlias = int | tuple[int, int]
"""The examples of a domain, or those of its official training and test parts."""
DEFAULT = "default"
"""The key of a mapping for the domains that it does not name."""

HOLD_OUT = "set a smaller `train` (and `test`, where domains share groups), or use validators that need no sources"
"""What to do if a validator lacks held-out examples."""
_ONE = "a count, a fraction between 0 and 1, or 'all'"


def _part(raw: Any, wanted: str = _ONE) -> Part:
    number = isinstance(raw, int | float) and not isinstance(raw, bool)
    if raw == "all" or (number and 0 < raw < 1) or (type(raw) is int and raw >= 1):
        return raw  # type: ignore[no-any-return]
    if type(raw) is int:
        raise ValueError(f"must be at least 1, not {raw}")
    what = repr(raw)[:60]
    if isinstance(raw, Mapping):
        what = "a mapping"
    elif isinstance(raw, list):
        what = "a list"
    raise ValueError(f"must be {wanted}, not {what}")


def _size(raw: Any) -> Part | dict[str, Part]:
    if not isinstance(raw, Mapping) or not raw:
        return _part(raw, f"{_ONE}, or a mapping of these by domain")
    sizes = {}
    for domain, part in raw.items():
        try:
            sizes[str(domain)] = _part(part)
        except ValueError as error:
            raise ValueError(f"of domain {str(domain)[:60]!r} {error}") from None
    return sizes


def _test_size(raw: Any) -> int | float | None:
    # `all` is the same as none, so that it has the same key.
    part = None if raw is None else _part(raw)
    return None if part == "all" else part


_PARTS: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1},
    {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
    },
    {"const": "all"},
]
_SIZES = [
    *_PARTS,
    {
        "type": "object",
        "additionalProperties": {"anyOf": _PARTS},
        "minProperties": 1,
    },
]
Size = Annotated[Part | dict[str, Part], PlainValidator(_size), WithJsonSchema({"anyOf": _SIZES})]
"""Training examples of each domain: a count, a fraction in (0, 1), "all", or a mapping of these by domain.

In a mapping, `default` applies to the domains that it does not name. A fraction is of the domain's examples, or of its
official training part, rounded to the nearest whole number, at least 1.
"""
OptionalSize = Annotated[
    Part | dict[str, Part] | None,
    PlainValidator(lambda raw: None if raw is None else _size(raw)),
    WithJsonSchema({"anyOf": [*_SIZES, {"type": "null"}]}),
]
"""A `Size`, or None."""
TestSize = Annotated[
    int | float | None, PlainValidator(_test_size), WithJsonSchema({"anyOf": [*_PARTS, {"type": "null"}]})
]
"""The maximum number of test examples: a count, a fraction in (0, 1), or None, which "all" becomes.

A fraction is of the domain's examples, or of its official test part.
"""


def counts(data: Dataset, domain: str, target: str, extent: Extent) -> tuple[int, int]:
    """The numbers of training and test examples of a domain for this target; transductively they are the same ones.

    Raises:
        DataError: the domain has fewer examples than are asked for, or its size is not named.
    """
    pool, official = _parts(extent)
    if is_transductive(data) and domain == target:
        for _, what in beside_all(data):
            raise DataError(f"dataset {data.name}: {what}")
        whole = pool + (official or 0)
        if not whole:
            raise DataError(f"dataset {data.name}: target {domain!r} has no examples")
        return whole, whole
    key, part = asked(data, domain, target)
    remedy = f"; set a smaller `{key.partition('.')[0]}`"
    count = _count(part, pool)
    if not 0 < count <= pool:
        what = f"domain {domain!r} has {pool} examples to train on, fewer than {key} = {part}"
        raise DataError(f"dataset {data.name}: {what}{remedy}")
    if data.shared_groups and domain != target and count == pool and official is None:
        what = f"{key} = {part} trains on all of a source, and so on groups of the target's test"
        raise DataError(f"dataset {data.name}: {what}{remedy}, such as 0.6")
    left = pool - count if official is None else official
    tested = left if data.test is None else min(left, _count(data.test, pool if official is None else official))
    if domain == target and not tested:
        if official is not None:
            remedy = ", since none is marked for the test; choose another target"
        raise DataError(f"dataset {data.name}: target {domain!r} has no test examples left{remedy}")
    return count, tested


def asked(data: Dataset, domain: str, target: str) -> tuple[str, Part]:
    """The requested training examples of a domain, and the parameter that sets them.

    Raises:
        DataError: a mapping names neither the domain nor a default.
    """
    key = "train"
    size = data.train
    if domain == target and data.target_train is not None:
        key = "target_train"
        size = data.target_train
    if not isinstance(size, Mapping):
        return key, size
    if domain not in size and DEFAULT not in size:
        what = f"`{key}` names no size for domain {domain!r}; add it, or a default"
        raise DataError(f"dataset {data.name}: {what}")
    name = domain if domain in size else DEFAULT
    return f"{key}.{name}", size[name]


def holds_out(data: Dataset, domain: str, target: str, extent: Extent | None) -> bool | None:
    """Whether examples of a source are held out from training, for validators; None if it is not known.

    Where domains share groups, `test` must leave some: as many groups of a source are taken to be tested.

    Raises:
        DataError: as `counts`.
    """
    if data.shared_groups and data.test is None:
        return False
    if extent is None:
        return None if asked(data, domain, target)[1] == "all" else True
    pool, official = _parts(extent)
    left = pool - counts(data, domain, target, extent)[0] if official is None else official
    if not data.shared_groups or not data.test:
        return left > 0
    return left > _count(data.test, pool if official is None else official)


def roles_of(sources: Iterable[tuple[str, Iterable[str]]]) -> list[tuple[str, str]]:
    """Domains with the target beside which their sizes count: each once as a source, and each target as the target.

    Args:
        sources: targets, each with its sources; a source counts beside the first target that has it.
    """
    targets_of: dict[str, str] = {}
    targets: dict[str, str] = {}
    for target, group in sources:
        targets[target] = target
        for source in group:
            targets_of.setdefault(source, target)
    return [*targets_of.items(), *targets.items()]


def trained_of(labelled: int, hold_out: float) -> int:
    """How many of the target's labelled examples train a scheme with this share held out; the others score it."""
    return labelled - _count(hold_out, labelled) if hold_out else labelled


def is_transductive(data: Dataset) -> bool:
    """Whether all of the target's examples are both unlabelled training examples and the test."""
    return data.protocol == "transductive"


def beside_all(data: Dataset) -> Iterator[tuple[str, str]]:
    """Parameters and properties that contradict the transductive protocol, and a message for each."""
    if not is_transductive(data):
        return
    if data.shared_groups:
        what = "`protocol: transductive` would show the test's labels, since its groups are in the sources, too"
        yield "protocol", f"{what}; use `protocol: held_out`"
    remedies = {"target_train": "remove it", "test": "set `test: all`"}
    for key, remedy in remedies.items():
        value = getattr(data, key)
        if value is not None:
            what = f"`{key}` is {value}, but `protocol: transductive` trains on and tests all of the target's examples"
            yield key, f"{what}; {remedy}"


def _parts(extent: Extent) -> tuple[int, int | None]:
    """The examples that may be trained on, and those of the official test part, if there is one."""
    return (extent, None) if isinstance(extent, int) else extent


def _count(part: Part, available: int) -> int:
    if part == "all":
        return available
    return max(1, round(part * available)) if isinstance(part, float) else part
