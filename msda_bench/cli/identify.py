"""`msda-bench data identify`: recognises a folder or file as known data, and writes a first suite for it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msda_bench.api import Identified, Identifies
from msda_bench.cli.counts import say_counts
from msda_bench.cli.lines import say, warn_of
from msda_bench.data import folders
from msda_bench.data import unpack as parquet
from msda_bench.data.checksums import tree_sha256
from msda_bench.errors import BenchError, DataError, reported
from msda_bench.plugins import Registry, discover
from msda_bench.suite.choice import Configured, make

_TABLES = ("*.csv*", "*.tsv*", "*.parquet", "*.npz", "*=*/*")
"""The files and folders in a folder of tables or arrays."""


def identify(
    *,
    path: Path,
    suite: Path | None,
    unpack: Path | None,
    anyway: bool,
    unlabelled: str,
    **options: str | None,
) -> int:
    """Recognises a folder or file, and writes a first suite for it; `options` say what columns and values mean."""
    registry = discover(kinds=("dataset",))
    problems = registry.problems
    given = {name: value for name, value in options.items() if value is not None}
    path = Path(os.path.expanduser(path))  # noqa: PTH111 - `~name` of no user is a folder of that name
    if unpack is not None or parquet.images_in(path) is not None:
        path, given = _unpacked(path, given, unpack)
    if given:
        given["unlabelled"] = unlabelled
    digest = _checksum(path)
    say(f"{path}: sha256 {digest}")
    datasets = _datasets(registry, problems)
    is_file_of_one = _say_known(datasets, digest)
    faults: list[str] = []
    found: list[tuple[str, Identified]] = []
    if given or not is_file_of_one:
        found = [*_asked(path, digest, given, datasets, faults)]
    problems += faults
    if found:
        _show(*found[0])
    elif not faults and not is_file_of_one:
        _say_what_is_expected(path, given)
    if suite is not None:
        if faults and not found:
            raise DataError(*dict.fromkeys(problems))
        from msda_bench.cli.first_suite import write_suite

        name, match = _readable(path, found, problems, anyway=anyway)
        write_suite(suite, path, name, match, discover())
    return 2 * warn_of(problems, "error")


def _unpacked(path: Path, options: Mapping[str, str], folder: Path | None) -> tuple[Path, dict[str, str]]:
    """The folder that Parquet files of images become, which needs no options."""
    if folder is None or not options.keys() >= {"domain", "label"}:
        how = "--domain COLUMN --label COLUMN --unpack FOLDER writes them as DOMAIN/CLASS/FILE"
        raise BenchError(f"{path}: Parquet files of images: {how}")
    left = parquet.unpack(path, folder, options["domain"], options["label"])
    say(f"unpacked to {folder}; {left} rows without a domain, class or image are left out")
    return folder, {}


def _checksum(path: Path) -> str:
    if path.exists() and not (path.is_dir() or path.is_file()):  # such as a pipe, which could block forever
        raise DataError(f"{path}: cannot be read: it is neither a file nor a folder")
    try:
        if path.is_dir():
            return tree_sha256(path, folders().cache / "derived" / "checksums")
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{error.filename or path}: cannot be read: {error.strerror}") from error


def _datasets(registry: Registry, problems: list[str]) -> list[Configured[Any]]:
    """All datasets; those whose domains are a parameter, which read any folder of the kind, come last."""
    datasets: list[Configured[Any]] = []
    for name in registry.names("dataset"):
        with reported(problems):
            datasets.append(make(registry, "dataset", name, {}))
    return sorted(datasets, key=lambda choice: "domains" in _parameters(choice))


def _parameters(choice: Configured[Any]) -> set[str]:
    return {field.name for field in dataclasses.fields(cast("Any", choice.component))}


def _say_known(datasets: list[Configured[Any]], digest: str) -> bool:
    """Names the datasets that have a file with this checksum; returns whether there are any."""
    known = {
        (choice.name, file.path) for choice in datasets for file in choice.component.files if file.sha256 == digest
    }
    for name, place in sorted(known):
        say(f"{name}: its file {place}; place it there below the folder that MSDA_BENCH_DATA names")
    return bool(known)


def _asked(
    path: Path,
    digest: str,
    options: Mapping[str, str],
    datasets: list[Configured[Any]],
    faults: list[str],
) -> Iterator[tuple[str, Identified]]:
    """The datasets that recognise the folder or file, the best match first; adds their errors to `faults`."""
    place = absolute(path)
    for choice in datasets:
        match: Identified | None = None
        with reported(faults), choice.entry.plugin_errors("cannot look at it"):
            if isinstance(choice.component, Identifies):
                match = choice.component.identify(place, digest, options)
        if match is not None:
            yield choice.name, match


def absolute(path: Path) -> Path:
    """The path without `..`, so that it ends in the folder's name."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - keeps the names of links


def _show(name: str, match: Identified) -> None:
    say(f"{name}: {match.what}")
    for line in match.lines:
        say(f"  {line}")
    for doubt in match.doubts:
        say(f"  odd: {doubt}")
    say_counts(match.counts)
    if match.read:
        say(match.read)


def _say_what_is_expected(path: Path, options: Mapping[str, str]) -> None:
    """Says what was expected of a path that no dataset recognises; a DataError where columns were named."""
    if options:
        raise DataError(f"{path}: is no table (.csv, .tsv, .parquet), no arrays (.npz), and no folder of these")
    more = "" if path.is_dir() else ", or a tar archive of these that is not compressed"
    say(f"not recognised: expected a folder for each domain, and in it one for each class, with images{more}")
    if not path.is_dir() or any(any(path.glob(kind)) for kind in _TABLES):
        say("of a table (.csv, .tsv, .parquet) or arrays (.npz) name the columns by --domain and --label")


def _readable(
    path: Path,
    found: list[tuple[str, Identified]],
    problems: list[str],
    *,
    anyway: bool,
) -> tuple[str, Identified]:
    """The first dataset that reads the folder or file as it is; a DataError if it is doubtful, unless `anyway`."""
    no = f"{path}: no suite was written"
    for name, match in found:
        if not match.suite:
            continue
        if match.doubts and not anyway:
            raise DataError(*(f"{no}: {doubt}; --anyway writes it all the same" for doubt in match.doubts))
        return name, match
    raise DataError(*dict.fromkeys(problems), f"{no}, since no dataset can read it unchanged")
