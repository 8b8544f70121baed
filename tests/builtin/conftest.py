import io
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch
from scipy.io import savemat

from msda_bench.testing import checks, contract
from tests.data.conftest import in_this_process, where

__all__ = ["in_this_process", "where"]


def pytest_make_parametrize_id(val):
    """Names a component in the id of a test, and does not spell out bytes."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else getattr(val, "name", None)


class OneFolder:
    """`Files` of one folder for crafted files: checks no bytes and caches nothing."""

    def __init__(self, folder):
        self._folder = folder

    def path(self, file):
        return self._folder / Path(file.path).name

    def derived(self, name, make):
        return make()


def zipped(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def tarred(members, mode="w:gz"):
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


def mat(**arrays):
    """A MATLAB file."""
    packed = io.BytesIO()
    savemat(packed, arrays, do_compression=True)
    return packed.getvalue()


@pytest.fixture(scope="module")
def double():
    """Double precision, in which formulas are compared."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def crafted(tmp_path):
    return OneFolder(tmp_path)


@pytest.fixture
def keeps_contract():
    def check(dataset, files):
        kit = contract(dataset)
        type(kit).files = files
        for name in checks("dataset"):
            getattr(kit, name)()

    return check


@pytest.fixture
def real():
    """The checked files of a dataset; skips the test where they are not on this machine."""
    return lambda dataset: contract(dataset).reach()
