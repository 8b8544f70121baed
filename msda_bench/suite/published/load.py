"""Finds a published table: one of the package's by its name, or a file of anyone's."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from msda_bench.errors import SuiteError
from msda_bench.suite.document import Document
from msda_bench.suite.faults import faults
from msda_bench.suite.files import UnreadableError, included, read_bytes
from msda_bench.suite.mistakes import Loc, hint, shown
from msda_bench.suite.published.file import CitationFile, TableFile
from msda_bench.suite.published.table import PublishedTable
from msda_bench.suite.reader import parse_document

_ENDING = ".yaml"


def known_tables() -> tuple[str, ...]:
    """Names of the tables that come with the package."""
    names = (entry.name for entry in resources.files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING)))


def table_of_suite(name: str, folder: Path, top: Path) -> PublishedTable:
    """The table that `published: NAME` means in a suite.

    Args:
        name: a name of the package's, or a .yaml file relative to the suite's.
        folder: of the suite's file.
        top: of the suite that was named by the user; no file lies outside it.

    Raises:
        SuiteError: there is no such table, or it is wrong; a line for each mistake.
    """
    if not name.endswith(_ENDING):
        return packaged_table(name)
    try:
        return _read(included(name, folder, top))
    except UnreadableError as error:
        raise SuiteError(f"{shown(name)} {error}") from None


def find_table(name: str) -> PublishedTable:
    """The table that a user names on the command line: the package's, or any .yaml file.

    Raises:
        SuiteError: there is no such table, or it is wrong; a line for each mistake.
    """
    if not name.endswith(_ENDING):
        return packaged_table(name)
    try:
        return _read(Path(name))
    except UnreadableError as error:
        raise SuiteError(f"{name}: {error}") from None


def packaged_table(name: str) -> PublishedTable:
    """A table that comes with the package.

    Raises:
        SuiteError: there is none of that name.
    """
    known = known_tables()
    if name not in known:
        raise SuiteError(f"unknown table {shown(name)}{hint(name, known)}; one of your own is a {_ENDING} file")
    file = f"{name}{_ENDING}"
    return _parse(resources.files(__package__).joinpath(file).read_bytes(), file)


def _read(path: Path) -> PublishedTable:
    return _parse(read_bytes(path), str(path))


def _parse(data: bytes, name: str) -> PublishedTable:
    document = parse_document(data, name)
    table = None if document.mistakes else _validate(document)
    if table is None:
        raise SuiteError(*document.lines())
    return table


def _validate(document: Document) -> PublishedTable | None:
    try:
        return TableFile.model_validate(document.value).table()
    except ValidationError as error:
        for fault in faults(error, _keys):
            loc = document.known(fault.loc) if fault.where == "value" else fault.loc
            document.add(loc, fault.what, at_key=fault.where == "key")
    return None


def _keys(loc: Loc) -> tuple[str, list[str]]:
    model = TableFile if not loc else CitationFile
    return "key", [field.alias or name for name, field in model.model_fields.items()]
