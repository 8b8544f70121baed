"""Published features are checked, read and cached, from small archives with the real layout."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from msda_bench.api import File
from msda_bench.data import Folders, LocalFiles
from msda_bench_builtin.datasets import Office31Decaf, OfficeHomeFeatures
from msda_bench_builtin.datasets.features import Features
from tests.data.refusal import only_line

DRAW = np.random.default_rng(7)
HOME = {"Art": 66, "Clipart": 22, "Product": 23, "RealWorld": 24}
OFFICE = {"amazon": 33, "dslr": 31, "webcam": 32}
TABLE = "OfficeHomeResnet50.csv"


def zipped(name: str, text: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return packed.getvalue()


def office_home(rows: dict[str, int] = HOME, kinds: int = 65) -> tuple[bytes, Any]:
    """A zip with the table of shuffled rows, and the features by domain."""
    features = {name: DRAW.standard_normal((count, 2048)).astype(np.float32) for name, count in rows.items()}
    lines = []
    for name, of_domain in features.items():
        for place, row in enumerate(of_domain):
            kind = f"Kind_{place % kinds:02}" if name != "Clipart" else f"KIND {place % kinds:02}"
            lines.append(",".join([*(repr(float(value)) for value in row), f'"{kind}"', name]))
    shuffled = (lines[place] for place in DRAW.permutation(len(lines)))
    return zipped(TABLE, "\n".join([",".join(map(str, range(2050))), *shuffled]) + "\n"), features


def decaf(rows: dict[str, int] = OFFICE, width: int = 1000) -> tuple[bytes, Any]:
    """A tar.gz with one file per image, and the features by domain in the order of their names."""
    features = {name: DRAW.random((count, width)) for name, count in rows.items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, of_domain in features.items():
            for place in reversed(range(len(of_domain))):
                content = io.BytesIO()
                savemat(content, {"fc8": of_domain[place][None], "fc7": np.ones(3)})
                kind = place * 31 // len(of_domain)
                member = tarfile.TarInfo(f"{name}/decaf-fts/kind_{kind:02}/frame_{place:04}.mat")
                member.size = len(content.getvalue())
                archive.addfile(member, io.BytesIO(content.getvalue()))
    return packed.getvalue(), features


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Places an archive where the dataset looks for it, and sets the dataset's checksum and sizes to it."""

    def write(kind: type[Features], content: bytes) -> tuple[Features, LocalFiles]:
        known, counts = kind.archive, HOME if kind is OfficeHomeFeatures else OFFICE
        monkeypatch.setattr(kind, "archive", File(known.path, hashlib.sha256(content).hexdigest(), None, known.origin))
        monkeypatch.setattr(kind, "published", dict(zip(kind().domains, counts.values(), strict=True)))
        (tmp_path / known.path).parent.mkdir(exist_ok=True)
        (tmp_path / known.path).write_bytes(content)
        return kind(train=20), LocalFiles(Folders(None, tmp_path), kind.name)

    return write


@pytest.mark.parametrize(("kind", "make"), [(OfficeHomeFeatures, office_home), (Office31Decaf, decaf)])
def test_published_features_keep_the_contract_and_equal_the_archives(
    put: Any, kind: Any, make: Any, keeps_contract: Any
) -> None:
    content, features = make()
    data, files = put(kind, content)
    keeps_contract(data, files)
    for domain, expected in zip(data.domains, features.values(), strict=True):
        found = data.load(domain, files)
        assert (found.x.dtype, found.y.dtype) == (np.float32, np.int64)
        mine, theirs = (np.asarray(sorted(map(tuple, rows)), np.float32) for rows in (found.x, expected))
        assert np.array_equal(mine, theirs)
        if kind is OfficeHomeFeatures:
            places = {row.tobytes(): place % 65 for place, row in enumerate(expected)}
            assert found.y.tolist() == [places[row.tobytes()] for row in np.asarray(found.x)]
        else:
            assert found.y.tolist() == [place * 31 // len(expected) for place in range(len(expected))]


@pytest.mark.parametrize(
    ("kind", "content", "what"),
    [
        (OfficeHomeFeatures, b"no zip", "cannot be read: File is not a zip file"),
        (OfficeHomeFeatures, zipped("other.csv", "1"), f"it holds no {TABLE} of at most 1024 MiB"),
        (OfficeHomeFeatures, zipped(TABLE, "0,1,2\n1,x,Art\n"), "cannot be read: line 2 has 3 fields, expected 2050"),
        (OfficeHomeFeatures, zipped(TABLE, ""), "holds {'art': 0, "),
        (OfficeHomeFeatures, zipped(TABLE, "\n" + "x," * 2048 + "a,b\n"), "cannot be read: could not convert"),
        (OfficeHomeFeatures, office_home(kinds=64)[0], "of 64 classes, expected {'art': 66, .*} and 65"),
        (OfficeHomeFeatures, office_home(HOME | {"Art": 65})[0], "holds {'art': 65, 'clip.*expected {'art': 66, "),
        (Office31Decaf, b"no tar", "not a whole tar.gz archive: Not a gzipped file"),
        (Office31Decaf, decaf()[0][:5000], "not a whole tar.gz archive: "),
        (Office31Decaf, decaf(width=999)[0], "'amazon/decaf-fts/kind_30/frame_0032.mat': holds no fc8 of 1000 numbers"),
        (Office31Decaf, decaf(OFFICE | {"dslr": 30})[0], "'dslr': 30, 'webcam': 32} examples of 31 classes"),
    ],
)
def test_another_archive_is_reported_in_one_line(put: Any, kind: Any, content: bytes, what: str) -> None:
    data, files = put(kind, content)
    line = only_line(data.load, data.domains[0], files)
    assert re.search(what, line)
    assert line.endswith("; replace the file")


def test_checksums_are_those_of_the_published_archives() -> None:
    assert OfficeHomeFeatures.archive.sha256 == "be46195bd8737e997ade333341a6c943139f974211bbbf726d760c990124f749"
    assert Office31Decaf.archive.sha256 == "ea13d8ced0fb629937f25f4a4670e0e75fc1955fb439f4ac412e129dd78a19ee"
    assert OfficeHomeFeatures().sizes() == {"art": 2427, "clipart": 4365, "product": 4439, "real_world": 4357}
    assert Office31Decaf().sizes() == {"amazon": 2817, "dslr": 498, "webcam": 795}
