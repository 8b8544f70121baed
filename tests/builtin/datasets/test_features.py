"""Published features are checked, read and cached, from small archives with the real layout."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msda_bench.api import File
from msda_bench.data import Folders, LocalFiles
from msda_bench_builtin.datasets import OfficeHomeFeatures
from tests.data.refusal import only_line

DRAW = np.random.default_rng(7)
HOME = {"Art": 66, "Clipart": 22, "Product": 23, "RealWorld": 24}
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


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Places an archive where the dataset looks for it, and sets the dataset's checksum and sizes to it."""

    def write(kind: type[OfficeHomeFeatures], content: bytes) -> tuple[OfficeHomeFeatures, LocalFiles]:
        (known,) = kind.files
        mine = File(known.path, hashlib.sha256(content).hexdigest(), None, known.origin)
        monkeypatch.setattr(kind, "files", (mine,))
        monkeypatch.setattr(kind, "published", dict(zip(kind().domains, HOME.values(), strict=True)))
        (tmp_path / known.path).parent.mkdir(exist_ok=True)
        (tmp_path / known.path).write_bytes(content)
        return kind(train=20), LocalFiles(Folders(None, tmp_path), kind.name)

    return write


def test_published_features_keep_the_contract_and_equal_the_archive(put: Any, keeps_contract: Any) -> None:
    content, features = office_home()
    data, files = put(OfficeHomeFeatures, content)
    keeps_contract(data, files)
    for domain, expected in zip(data.domains, features.values(), strict=True):
        found = data.load(domain, files)
        assert (found.x.dtype, found.y.dtype) == (np.float32, np.int64)
        mine, theirs = (np.asarray(sorted(map(tuple, rows)), np.float32) for rows in (found.x, expected))
        assert np.array_equal(mine, theirs)
        places = {row.tobytes(): place % 65 for place, row in enumerate(expected)}
        assert found.y.tolist() == [places[row.tobytes()] for row in np.asarray(found.x)]


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
    ],
)
def test_another_archive_is_reported_in_one_line(put: Any, kind: Any, content: bytes, what: str) -> None:
    data, files = put(kind, content)
    line = only_line(data.load, data.domains[0], files)
    assert re.search(what, line)
    assert line.endswith("; replace the file")
