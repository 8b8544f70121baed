"""Published features are fetched, checked, read and cached, from small archives with the real layout."""

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

from msda_bench.api import File, Url
from msda_bench.cli.main import main
from msda_bench.data import Folders, LocalFiles
from msda_bench.testing import checks, contract
from msda_bench_builtin.datasets import Office31Decaf, OfficeHomeFeatures
from msda_bench_builtin.datasets.features import Features
from tests.data.conftest import Site
from tests.data.refusal import only_line

DRAW = np.random.default_rng(7)
HOME = {"Art": 66, "Clipart": 22, "Product": 23, "RealWorld": 24}
OFFICE = {"amazon": 33, "dslr": 31, "webcam": 32}


def office_home(rows: dict[str, int] = HOME, kinds: int = 65, width: int = 2048) -> tuple[bytes, Any]:
    """A zip with the table of shuffled rows, and the features by domain."""
    features = {name: DRAW.standard_normal((count, width)).astype(np.float32) for name, count in rows.items()}
    lines = []
    for name, found in features.items():
        for place, row in enumerate(found):
            kind = f"Kind_{place % kinds:02}" if name != "Clipart" else f"KIND {place % kinds:02}"
            lines.append(",".join([*(repr(float(value)) for value in row), f'"{kind}"', name]))
    order = DRAW.permutation(len(lines))
    head = ",".join(map(str, range(width + 2)))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("OfficeHomeResnet50.csv", "\n".join([head, *(lines[place] for place in order)]) + "\n")
    return packed.getvalue(), features


def decaf(rows: dict[str, int] = OFFICE, kinds: int = 31, width: int = 1000) -> tuple[bytes, Any]:
    """A tar.gz with one file per image, and the features by domain in the order of their names."""
    features = {name: DRAW.random((count, width)) for name, count in rows.items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, found in features.items():
            for place in reversed(range(len(found))):
                content = io.BytesIO()
                savemat(content, {"fc8": found[place][None], "fc7": np.ones(3)})
                member = tarfile.TarInfo(f"{name}/decaf-fts/kind_{place * kinds // len(found):02}/frame_{place:04}.mat")
                member.size = len(content.getvalue())
                archive.addfile(member, io.BytesIO(content.getvalue()))
    return packed.getvalue(), features


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Places an archive where the dataset looks for it, and sets the dataset's checksum to it."""

    def write(kind: type[Features], content: bytes, addresses: tuple[str, ...] = ()) -> tuple[Features, LocalFiles]:
        known = kind.archive
        digest = hashlib.sha256(content).hexdigest()
        monkeypatch.setattr(kind, "archive", File(known.path, digest, None, Url(addresses)))
        counts = HOME if kind is OfficeHomeFeatures else OFFICE
        monkeypatch.setattr(kind, "published", dict(zip(kind().domains, counts.values(), strict=True)))
        if not addresses:
            (tmp_path / known.path).parent.mkdir(exist_ok=True)
            (tmp_path / known.path).write_bytes(content)
        return kind(train=20), LocalFiles(Folders(None, tmp_path), kind.name)

    return write


@pytest.mark.parametrize(("kind", "make"), [(OfficeHomeFeatures, office_home), (Office31Decaf, decaf)])
def test_published_features_keep_the_contract_and_equal_the_archives(put: Any, kind: Any, make: Any) -> None:
    content, features = make()
    data, files = put(kind, content)
    kit: Any = contract(data)
    type(kit).files = files
    for check in checks("dataset"):
        getattr(kit, check)()
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


def test_a_server_that_has_the_archive_is_found_among_several_and_checked(
    put: Any,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MSDA_BENCH_DATA", raising=False)
    for kind, make in ((OfficeHomeFeatures, office_home), (Office31Decaf, decaf)):
        content, _ = make()
        site.pages |= {"/spoilt": content[:-1] + b"?", "/right": content}
        data, _ = put(kind, content, tuple(f"{site.address}/{page}" for page in ("gone", "spoilt", "right")))
        assert main(["data", "fetch", kind.name]) == 0
        assert [path for path, _ in site.asked[-3:]] == ["/gone", "/spoilt", "/right"]
        assert main(["data", "verify", kind.name]) == 0
        files = LocalFiles()
        assert [len(data.load(domain, files).y) for domain in data.domains] == list(kind.published.values())


def refused(put: Any, kind: type[Features], content: bytes) -> str:
    data, files = put(kind, content)
    line = only_line(data.load, data.domains[0], files)
    assert line.endswith("; replace the file")
    return line


def renamed(name: str, text: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"no zip", "cannot be read: File is not a zip file"),
        (renamed("other.csv", b"1"), "it holds no OfficeHomeResnet50.csv of at most 1024 MiB"),
        (renamed("OfficeHomeResnet50.csv", b"0,1,2\n1,x,Art\n"), "cannot be read: line 2 has 3 fields, expected 2050"),
        (renamed("OfficeHomeResnet50.csv", b""), "holds {'art': 0, "),
        (office_home(kinds=64)[0], "of 64 classes, expected {'art': 66, .*} and 65"),
        (office_home({**HOME, "Art": 65})[0], "holds {'art': 65, 'clipart': 22, .*expected {'art': 66, "),
        (renamed("OfficeHomeResnet50.csv", b"\n" + b"x," * 2048 + b"a,b\n"), "cannot be read: could not convert"),
    ],
)
def test_another_office_home_archive_is_reported_in_one_line(put: Any, content: bytes, what: str) -> None:
    assert re.search(what, refused(put, OfficeHomeFeatures, content))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"no tar", "not a whole tar.gz archive: Not a gzipped file"),
        (decaf()[0][:5000], "not a whole tar.gz archive: "),
        (decaf(width=999)[0], r"'amazon/decaf-fts/kind_30/frame_0032.mat': holds no fc8 of 1000 numbers"),
        (decaf({**OFFICE, "dslr": 30})[0], "'dslr': 30, 'webcam': 32} examples of 31 classes"),
    ],
)
def test_another_office_31_archive_is_reported_in_one_line(put: Any, content: bytes, what: str) -> None:
    assert re.search(what, refused(put, Office31Decaf, content))


def test_checksums_are_those_of_the_published_archives() -> None:
    assert OfficeHomeFeatures.archive.sha256 == "be46195bd8737e997ade333341a6c943139f974211bbbf726d760c990124f749"
    assert Office31Decaf.archive.sha256 == "ea13d8ced0fb629937f25f4a4670e0e75fc1955fb439f4ac412e129dd78a19ee"
    assert OfficeHomeFeatures().sizes() == {"art": 2427, "clipart": 4365, "product": 4439, "real_world": 4357}
    assert Office31Decaf().sizes() == {"amazon": 2817, "dslr": 498, "webcam": 795}
    assert "standardised" in OfficeHomeFeatures(standardise="domain").notes[-1]
