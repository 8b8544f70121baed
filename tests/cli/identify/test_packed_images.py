"""`msda-bench data identify` of images in Parquet files, which it unpacks, and in archives that claim much."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import pytest
from PIL import Image

from tests.cli.identify.conftest import refused


def test_images_in_parquet_files_of_the_hub_are_unpacked(identify, tmp_path) -> None:
    """Two parts, classes as numbers whose names are in the file, and rows that cannot be used."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    black = io.BytesIO()
    Image.new("RGB", (9, 9)).save(black, "PNG")
    names = {"label": {"names": ["cat", "a/b"], "_type": "ClassLabel"}}
    image = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    schema = pa.schema({"image": image, "domain": pa.string(), "label": pa.int64()}).with_metadata(
        {"huggingface": json.dumps({"info": {"features": names}})}
    )
    rows = [
        {"image": {"bytes": black.getvalue(), "path": ("x.png", None)[number % 2]}, "domain": domain, "label": label}
        for domain in ("art", "photo") for label in (0, 1) for number in range(3)
    ]  # fmt: skip
    bad = [{**rows[0], "label": -1}, {**rows[0], "domain": None}, {**rows[0], "image": None}]
    hub, folder, suite = tmp_path / "hub", tmp_path / "mine", tmp_path / "mine.yaml"
    (hub / "data").mkdir(parents=True)
    for part, some in {"train": rows + bad, "test": rows}.items():
        pq.write_table(pa.Table.from_pylist(some, schema), hub / f"data/{part}-00000-of-00001.parquet")
    assert "--unpack FOLDER writes them" in refused(identify(hub))
    words = (hub, "--domain", "domain", "--suite", suite, "--unpack", folder, "--label")
    assert "no column labels; it has image, domain, label" in refused(identify(*words, "labels"))
    assert [path.name for path in tmp_path.iterdir()] == ["hub"]
    code, out, err = identify(*words, "label")
    assert (code, err) == (0, [])
    assert out[0] == f"unpacked to {folder}; 3 rows without a domain, class or image are left out"
    assert out[-6:-1] == ["class art photo", "a%2Fb 6 6", "cat 6 6", "all 12 12", "read 24 of 24 files"]
    assert 'layout: "DOMAIN/SPLIT/CLASS"' in suite.read_text()
    assert refused(identify(*words, "label")) == f"{folder}: already exists; name another folder"
    assert "no Parquet file with a column of images" in refused(
        identify(folder, "--domain", "d", "--label", "l", "--unpack", tmp_path / "more")
    )


def long_name(size: int) -> bytes:
    """The beginning of a tar archive whose first member has a name of this size."""
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, size
    return head.tobuf(tarfile.GNU_FORMAT)


BACKWARD = tarfile.TarInfo("a/b/1.png")
BACKWARD.pax_headers = {"size": "-512"}  # Python would go round in circles


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(long_name(3 << 30) + bytes(1 << 24)), "not a tar archive, or a compressed or damaged one"),
        (long_name(1 << 21) + bytes(1 << 22), f"a part claims {1 << 21} bytes"),
        (BACKWARD.tobuf(tarfile.PAX_FORMAT) + bytes(1 << 12), "not a tar archive"),
        (long_name(9) * 3000, "not a tar archive"),
    ],
    ids=["compressed", "long", "backward", "deep"],
)
def test_archives_that_claim_much_are_not_read(identify, monkeypatch, tmp_path, content, words) -> None:
    monkeypatch.setattr("zlib.decompressobj", None)  # nothing is unpacked
    (tmp_path / "set.tar.gz").write_bytes(content)
    assert words in refused(identify(tmp_path / "set.tar.gz"))
