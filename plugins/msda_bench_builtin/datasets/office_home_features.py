"""Office-Home: features of a ResNet-50, as published with skada."""

from __future__ import annotations

import csv
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from msda_bench.api import Array, DataError, File, Size, Url, component
from msda_bench_builtin.datasets.features import Features
from msda_bench_builtin.datasets.images.listing import plain

_TABLE = "OfficeHomeResnet50.csv"
_MOST = 1 << 30
"""The maximum number of unpacked bytes; 15588 rows of 2048 numbers have about 350 million."""
_DAMAGE = (OSError, ValueError, EOFError, RuntimeError, csv.Error, zipfile.BadZipFile, zlib.error)


@component
class OfficeHomeFeatures(Features):
    """Everyday objects of 65 kinds as art, clip art, product pictures and photographs: 2048 features of a ResNet-50.

    From the archive that the library skada reads. It is not published how the features were made, so compare methods
    with each other, not with published results of fine-tuned networks. We have not seen its bytes: its checksum, layout
    and counts come from skada.

    Venkateswara, Eusebio, Chakraborty, Panchanathan. Deep Hashing Network for Unsupervised Domain Adaptation. CVPR
    2017.
    """

    name = "office_home_features"
    version = 1
    licence = "the images': academic research, fair use notice; of the features none is stated"
    modality = "images"
    source = "Venkateswara et al. 2017; features from figshare file 46093947, as in skada"
    archive = File(
        "office_home_features/OfficeHomeResnet50.zip",
        "be46195bd8737e997ade333341a6c943139f974211bbbf726d760c990124f749",
        None,
        Url((
            "https://ndownloader.figshare.com/files/46093947",
            "https://api.figshare.com/v2/file/download/46093947",
        )),
    )  # fmt: skip
    published: ClassVar = {"art": 2427, "clipart": 4365, "product": 4439, "real_world": 4357}
    width = 2048
    classes = 65

    train: Size = 2000

    @property
    def notes(self) -> tuple[str, ...]:
        """Reports that it is unknown how the features were made."""
        unknown = "office_home_features: how the features were made is not published; compare methods only."
        return (unknown, *super().notes)

    def read(self, path: Path) -> dict[str, tuple[Array, Array]]:
        """Rows by domain in the table's order; kinds of object are numbered in alphabetical order.

        Raises:
            DataError: it is not such an archive, or its table is another one.
        """
        try:
            with zipfile.ZipFile(path) as archive, archive.open(_table_of(archive)) as stream:
                rows = list(_rows(io.TextIOWrapper(stream, "utf-8", newline=""), self.width))
        except _DAMAGE as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise DataError(f"{path}: cannot be read: {why[:200]}; replace the file") from None
        kinds = {kind: place for place, kind in enumerate(sorted({row.kind for row in rows}))}
        mine = {domain: [row for row in rows if row.domain == plain(domain)] for domain in self.published}
        return {
            domain: (
                np.array([row.features for row in found], np.float32).reshape(-1, self.width),
                np.array([kinds[row.kind] for row in found], np.int64),
            )
            for domain, found in mine.items()
        }


class _Row(NamedTuple):
    domain: str
    kind: str
    features: Array


def _rows(lines: Iterable[str], width: int) -> Iterator[_Row]:
    table = csv.reader(lines)
    next(table, None)  # the columns' names
    for row in table:
        if len(row) != width + 2:
            raise ValueError(f"line {table.line_num} has {len(row)} fields, expected {width + 2}")
        yield _Row(plain(row[-1]), plain(row[-2]), np.array(row[:width], np.float32))


def _table_of(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    tables = [member for member in archive.infolist() if member.filename.rpartition("/")[2] == _TABLE]
    if len(tables) != 1 or tables[0].file_size > _MOST:
        raise ValueError(f"it holds no {_TABLE} of at most {_MOST >> 20} MiB")
    return tables[0]
