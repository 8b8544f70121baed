from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal

import pytest

from msda_bench.api import Array, DataError, Dataset, File
from msda_bench.data import LocalFiles
from msda_bench.testing import checks, contract
from tests.data.conftest import site

__all__ = ["site"]


class OneFolder:
    """`Files` of one folder for crafted files: checks no bytes and caches nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, file: File) -> Path:
        return self._folder / Path(file.path).name

    def derived(self, name: str, make: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        return make()


def zipped(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def tarred(members: Mapping[str, bytes | str], mode: Literal["w:gz", "w"] = "w:gz") -> bytes:
    """A tar archive; a member of text is a link to it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


class ThisProcess:
    """A worker that starts no process; tests/data has those that do."""

    def submit(self, call: Callable[..., Any], *args: object) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(call(*args))
        except DataError as error:
            future.set_exception(error)
        return future

    def kill(self) -> None:
        pass


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msda_bench.data.rows.Worker", ThisProcess)


@pytest.fixture
def crafted(tmp_path: Path) -> OneFolder:
    return OneFolder(tmp_path)


@pytest.fixture
def keeps_contract() -> Callable[[Dataset, LocalFiles], None]:
    def check(dataset: Dataset, files: LocalFiles) -> None:
        kit: Any = contract(dataset)
        type(kit).files = files
        for name in checks("dataset"):
            getattr(kit, name)()

    return check


@pytest.fixture
def real() -> Callable[[Dataset], LocalFiles]:
    """The checked files of a dataset; skips the test where they are not on this machine."""

    def find(dataset: Dataset) -> LocalFiles:
        files = LocalFiles(dataset=dataset.name)
        for file in dataset.files:
            try:
                files.path(file)
            except DataError as error:
                pytest.skip(str(error))
        return files

    return find
