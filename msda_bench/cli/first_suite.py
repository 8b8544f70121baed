"""Writes the first suite of a user's data, from what a dataset found in them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msda_bench.api import Identified
from msda_bench.atomic import write_new
from msda_bench.cli.lines import say
from msda_bench.cli.seen_rows import seen_rows
from msda_bench.component.base import path_parameters
from msda_bench.errors import BenchError, DataError
from msda_bench.plugins import Registry
from msda_bench.suite.expand import Expansion, expand
from msda_bench.suite.load import parse_suite
from msda_bench.suite.reader import UNWANTED

_LONGEST_NAME = 64
"""The maximum length of a suite's name."""
_MOST = 1000
"""The maximum number of training examples per domain in a first suite."""
_WORD = re.compile(r'"(?!(?:y|n|yes|no|on|off|true|false|null)")([a-z_][\w.]*)"', re.IGNORECASE)
"""A text in JSON that any YAML reads as the same text without quotes."""
_LONGEST_LINE = 160


def write_suite(suite: Path, path: Path, dataset: str, match: Identified, registry: Registry) -> None:
    """Writes the suite and says how to run it; of a table also whether rows that are tested are trained on.

    Raises:
        DataError: the file exists or cannot be written, or the suite would not be valid.
    """
    folder = Path(os.path.abspath(path))  # noqa: PTH100 - keeps the names of links
    beside = path_parameters(registry.entry("dataset", dataset).cls) & match.params.keys()
    params = dict(match.params)
    for key in beside:
        params[key] = os.path.relpath(params[key], suite.absolute().parent)
    if not beside:
        least = min((sum(of.values()) for of in match.counts.values()), default=0)
        params.setdefault("train", max(1, min(_MOST, least // 2)))
    text = suite_text(_title(folder.name) or dataset, dataset, params, match.suite)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{path}: a name in it is not UTF-8, so no suite can hold it; rename it") from None
    _refuse_names(path, folder.name, match.counts)
    expansion = _checked(data, suite, path, registry)
    try:
        made = write_new(suite, data)
    except OSError as error:
        raise DataError(f"{suite}: cannot be written: {error.strerror}") from error
    if not made:
        raise DataError(f"{suite}: already exists; name another file")
    if beside:
        for line in seen_rows(expansion, registry, suite):
            say(f"  {line}")
    _say_next(suite, None if beside else folder)


def suite_text(name: str, dataset: str, params: Mapping[str, Any], settings: Mapping[str, tuple[Any, str]]) -> str:
    """A suite as YAML: a line for each parameter, method and other setting, with its comment."""
    lines = ["schema: 1", f"name: {json.dumps(name)}", "dataset:", f"  {dataset}:"]
    lines += [f"    {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in params.items()]
    for key, (value, comment) in settings.items():
        lines += _setting(key, value, comment)
    return "\n".join(lines) + "\n"


def _setting(key: str, value: Any, comment: str) -> Iterator[str]:
    is_block = key == "methods"
    line = f"{key}:" if is_block else f"{key}: {_flow(value)}"
    remark = f"# {comment}" if comment else ""
    if len(line) + len(remark) > _LONGEST_LINE and not is_block:
        yield remark
        yield line
    else:
        yield f"{line} {remark}".rstrip()
    if is_block:
        width = max(map(len, value)) + 1
        for name, recipe in value.items():
            yield f"  {name + ':':{width}} {_flow(recipe)}"


def _flow(value: Any) -> str:
    return _WORD.sub(r"\1", json.dumps(value, ensure_ascii=False))


def _title(name: str) -> str:
    """The letters and digits of a folder's or file's name, as a suite's name."""
    words = "".join(char if char.isalnum() and char.isascii() else " " for char in name).split()
    return "-".join(words)[:_LONGEST_NAME]


def _refuse_names(path: Path, folder: str, domains: Iterable[str]) -> None:
    """Refuses names that no suite can hold."""
    unfit = [name for name in (folder, *domains) if UNWANTED.search(name)]
    if not folder or set(folder) & set("\\:"):
        unfit.append(folder)
    if unfit:
        raise DataError(f"{path}: no suite can hold the names {', '.join(map(ascii, unfit))}; rename these folders")


def _checked(data: bytes, suite: Path, path: Path, registry: Registry) -> Expansion:
    """The runs of the suite; a DataError if `validate` would not accept it."""
    try:
        return expand(parse_suite(data, suite, registry), registry)
    except BenchError as error:
        no = f"{path}: no suite was written, since it would not be valid"
        place = re.compile(rf"^{re.escape(str(suite))}(:\d+)*: ")
        raise DataError(*(f"{no}: {place.sub('', line)}" for line in error.lines)) from None


def _say_next(suite: Path, folder: Path | None) -> None:
    """Names the file that was written and the command that trains it; with `folder`, which lies below a data folder."""
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
