"""`msda-bench data identify`: recognises a folder or file as known data, and writes a first suite for it."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msda_bench.api import Dataset, Identified
from msda_bench.atomic import write_new
from msda_bench.cli.counts import say_counts
from msda_bench.cli.lines import say, warn_of
from msda_bench.cli.seen_rows import seen_rows
from msda_bench.component.base import path_parameters
from msda_bench.data import folders
from msda_bench.data import unpack as parquet
from msda_bench.data.check import tree_sha256
from msda_bench.errors import BenchError, DataError, reported
from msda_bench.plugins import Registry, discover
from msda_bench.suite.choice import Configured, make
from msda_bench.suite.expand import expand
from msda_bench.suite.load import parse_suite
from msda_bench.suite.reader import UNWANTED

_SUITE = """\
schema: 1
name: {name}
dataset:
  {dataset}:
{params}
{rest}"""
_TABLES = ("*.csv*", "*.tsv*", "*.parquet", "*.npz", "*=*/*")
"""What a folder of tables or arrays holds."""
_ENDINGS = (".csv", ".tsv", ".parquet", ".npz", ".gz")
_IMAGES = {"group": "groups", "test": "test_images"}
"""Options that are regular expressions of paths where there are no columns, and the parameters that they are."""
_LONGEST_NAME = 64
"""The maximum length of a suite's name."""
_MOST = 1000
"""The maximum number of training examples per domain in a first suite."""


def identify(
    *, path: Path, suite: Path | None, unpack: Path | None, anyway: bool, unlabelled: str, **options: str | None
) -> int:
    """Recognises a folder or file, and writes a first suite for it; `options` say what columns and values mean."""
    registry = discover()
    problems = registry.problems
    path = Path(os.path.expanduser(path))  # noqa: PTH111 - `~name` of no user is a folder of that name
    columns = {name: value for name, value in options.items() if value is not None}
    patterns = _patterns(path, columns)
    columns = {} if patterns else columns
    if columns and not columns.keys() >= ({"label"} if path.is_dir() else {"domain", "label"}):
        raise BenchError("a table or arrays need both --domain and --label, a folder of tables --label")
    if columns:
        columns["unlabelled"] = unlabelled
    datasets = _datasets(registry, patterns, problems)
    path, columns = _unpacked(path, columns, unpack)
    before = len(problems)
    matches = _matches(path, _checksum(path), columns, datasets, problems)
    if suite is not None:
        readable = next((match for match in matches if match[1].suite), None)
        if len(problems) > before and not matches:
            raise DataError(*dict.fromkeys(problems))
        no = f"{path}: no suite was written"
        if readable is None:
            raise DataError(*dict.fromkeys(problems), f"{no}, since no dataset can read it unchanged")
        if (doubts := readable[1].doubts) and not anyway:
            raise DataError(*(f"{no}: {doubt}; --anyway writes it all the same" for doubt in doubts))
        _write_suite(suite, path, *readable, registry)
    return 2 * warn_of(dict.fromkeys(problems), "error")


def _patterns(path: Path, columns: Mapping[str, str]) -> dict[str, str]:
    """What options say of the paths of images, as parameters of datasets; nothing of a table or arrays."""
    is_table = path.is_dir() and any(any(path.glob(kind)) for kind in _TABLES)
    if not columns or not columns.keys() <= _IMAGES.keys() or is_table or path.suffix in _ENDINGS:
        return {}
    return {_IMAGES[name]: pattern for name, pattern in columns.items()}


def _datasets(registry: Registry, patterns: Mapping[str, str], problems: list[str]) -> list[Configured[Dataset]]:
    """All datasets, or with patterns those of the user's own images, which have them."""
    names = registry.names("dataset")
    if patterns:
        fields = {name: dataclasses.fields(cast("Any", registry.entry("dataset", name).cls)) for name in names}
        own = {*_IMAGES.values()}
        return [
            make(registry, "dataset", name, patterns) for name in names if own <= {field.name for field in fields[name]}
        ]
    datasets: list[Configured[Dataset]] = []
    for name in names:
        with reported(problems):
            datasets.append(make(registry, "dataset", name, {}))
    return datasets


def _unpacked(path: Path, columns: dict[str, str], folder: Path | None) -> tuple[Path, dict[str, str]]:
    """The folder to look at instead of Parquet files of images, without columns; other paths as they are."""
    if folder is None and parquet.images_in(path) is None:
        return path, columns
    if folder is None or not columns:
        how = "--domain COLUMN --label COLUMN --unpack FOLDER writes them as DOMAIN/CLASS/FILE"
        raise BenchError(f"{path}: Parquet files of images: {how}")
    left = parquet.unpack(path, folder, columns["domain"], columns["label"])
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


def _matches(
    path: Path, digest: str, columns: Mapping[str, str], datasets: list[Configured[Dataset]], problems: list[str]
) -> list[tuple[str, Identified]]:
    """The datasets that recognise the folder, the best match first; prints what that one reports."""
    say(f"{path}: sha256 {digest}")
    known = {
        (dataset.name, file.path) for dataset in datasets for file in dataset.component.files if file.sha256 == digest
    }
    for name, place in sorted(known):
        say(f"{name}: its file {place}; place it there below the folder that MSDA_BENCH_DATA names")
    before = len(problems)
    asked = () if known and not columns else _asked(_absolute(path), digest, columns, datasets, problems)
    matches = sorted(asked, key=lambda match: not match[1].certain)
    if not matches and columns and not problems:
        raise DataError(f"{path}: is no table (.csv, .tsv, .parquet), no arrays (.npz), and no folder of these")
    if not matches:
        if not known and not columns and len(problems) == before:
            more = "" if path.is_dir() else ", or a tar archive of these that is not compressed"
            say(f"not recognised: expected a folder for each domain, and in it one for each class, with images{more}")
            if not path.is_dir() or any(any(path.glob(kind)) for kind in _TABLES):
                say("of a table (.csv, .tsv, .parquet) or arrays (.npz) name the columns by --domain and --label")
        return []
    name, best = matches[0]
    say(f"{name}: {best.what}")
    for line in (*best.lines, *(f"odd: {doubt}" for doubt in best.doubts)):
        say(f"  {line}")
    say_counts(best.counts)
    if best.read:
        say(best.read)
    return matches


def _asked(
    path: Path, digest: str, columns: Mapping[str, str], datasets: list[Configured[Dataset]], problems: list[str]
) -> Iterator[tuple[str, Identified]]:
    for choice in datasets:
        match: Identified | None = None
        with reported(problems), choice.entry.plugin_errors("cannot look at it"):
            dataset = choice.component
            match = dataset.identify_columns(path, columns) if columns else dataset.identify(path, digest)
        if match is not None:
            yield choice.name, match


def _absolute(path: Path) -> Path:
    """The path without `..`, so that it ends in the folder's name."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - keeps the names of links


def _write_suite(suite: Path, path: Path, name: str, match: Identified, registry: Registry) -> None:
    folder = _absolute(path)
    least = min((sum(counts.values()) for counts in match.counts.values()), default=0)
    beside = {
        key: os.path.relpath(match.params[key], suite.absolute().parent)
        for key in path_parameters(registry.entry("dataset", name).cls) & match.params.keys()
    }
    params: dict[str, Any] = {**match.params, **beside}
    if not beside:
        params.setdefault("train", max(1, min(_MOST, least // 2)))
    title = "-".join("".join(char if char.isalnum() and char.isascii() else " " for char in folder.name).split())
    shown = "\n".join(f"    {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in params.items())
    title = json.dumps(title[:_LONGEST_NAME] or name)
    text = _SUITE.format(name=title, dataset=name, params=shown, rest=match.suite)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{path}: a name in it is not UTF-8, so no suite can hold it; rename it") from None
    unfit = [place for place in (folder.name, *match.counts) if UNWANTED.search(place)]
    unfit += [folder.name] if not folder.name or set(folder.name) & set("\\:") else []
    if unfit:
        raise DataError(f"{path}: no suite can hold the names {', '.join(map(ascii, unfit))}; rename these folders")
    try:
        expansion = expand(parse_suite(data, suite, registry), registry)  # as `validate` does
    except BenchError as error:
        lines = (re.sub(rf"^{re.escape(str(suite))}(:\d+)*: ", "", line) for line in error.lines)
        no = f"{path}: no suite was written, since it would not be valid"
        raise DataError(*(f"{no}: {line}" for line in lines)) from None
    try:
        made = write_new(suite, data)
    except OSError as error:
        raise DataError(f"{suite}: cannot be written: {error.strerror}") from error
    if not made:
        raise DataError(f"{suite}: already exists; name another file")
    for line in seen_rows(expansion, registry, suite) if beside else ():
        say(f"  {line}")
    _say_next(suite, None if beside else folder)


def _say_next(suite: Path, folder: Path | None) -> None:
    """What was written, and the command that trains it; the folder is one that lies below a data folder."""
    lacking = {"sklearn": "plain models", "skada": "CORAL behind a plain model"}
    for module, rows in lacking.items():
        if importlib.util.find_spec(module) is None:
            say(f"the suite has no {rows}; pip install '.[{module}]' in the clone, and write it again")
            break
    run = ["msda-bench", "run", str(suite)]
    if folder is None:
        say(f"wrote {suite}; next: {shlex.join(run)}")
        return
    say(f"wrote {suite}; next: MSDA_BENCH_DATA={shlex.quote(str(folder.parent))} {shlex.join([*run, '--fetch'])}")
