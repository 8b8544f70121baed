"""Office-31: DeCAF features, as published with skada."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import ClassVar

import numpy as np

from msda_bench.api import Array, DataError, File, Size, Url, component
from msda_bench_builtin.datasets.features import Features
from msda_bench_builtin.datasets.images.listing import plain
from msda_bench_builtin.datasets.unpacked import tar_gz

_FOLDER, _KEY = "decaf-fts", "fc8"
_MOST = 1 << 29
"""The maximum number of unpacked bytes; 4110 rows of 1000 numbers have about 33 million."""
_LARGEST = 1_000_000
"""The maximum size of a file in the archive, in bytes."""
_DAMAGE = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error)


@component
class Office31Decaf(Features):
    """Office things of 31 kinds from a shop's pages, a good camera and a webcam: 1000 features of DeCAF.

    The features are the outputs of DeCAF's last layer (fc8), one for each class of ImageNet, from the archive that the
    library skada reads. We have not seen its bytes: its checksum, layout and counts come from skada.

    Saenko, Kulis, Fritz, Darrell. Adapting Visual Category Models to New Domains. ECCV 2010.
    Donahue, Jia, Vinyals, Hoffman, Zhang, Tzeng, Darrell. DeCAF. ICML 2014.
    """

    name = "office31_decaf"
    version = 1
    licence = "none is stated"
    modality = "images"
    source = "Saenko et al. 2010, Donahue et al. 2014; features from figshare file 41786427, as in skada"
    archive = File(
        "office31_decaf/domain_adaptation_decaf_features_20140430.tar.gz",
        "ea13d8ced0fb629937f25f4a4670e0e75fc1955fb439f4ac412e129dd78a19ee",
        None,
        Url((
            "https://ndownloader.figshare.com/files/41786427?private_link=e145dd18e3d010c1f6d9",
            "https://api.figshare.com/v2/file/download/41786427?private_link=e145dd18e3d010c1f6d9",
        )),
    )  # fmt: skip
    published: ClassVar = {"amazon": 2817, "dslr": 498, "webcam": 795}
    width = 1000
    classes = 31

    train: Size = 400

    def read(self, path: Path) -> dict[str, tuple[Array, Array]]:
        """Rows by domain in the order of the files' names; kinds of thing are numbered in alphabetical order.

        Raises:
            DataError: it is not such an archive, or a file in it does not hold such features.
        """
        try:
            with tar_gz(path, _MOST) as archive:
                ordered = sorted(self._rows(archive, path), key=lambda row: row[0])
        except _DAMAGE as error:
            raise DataError(f"{path}: not a whole tar.gz archive: {error}; replace the file") from None
        places = {kind: place for place, kind in enumerate(sorted({name[1] for name, _ in ordered}))}
        mine = {domain: [row for row in ordered if row[0][0] == domain] for domain in self.published}
        return {
            domain: (
                np.array([values for _, values in rows], np.float32).reshape(-1, self.width),
                np.array([places[name[1]] for name, _ in rows], np.int64),
            )
            for domain, rows in mine.items()
        }

    def _rows(self, archive: tarfile.TarFile, path: Path) -> Iterator[tuple[tuple[str, str, str], Array]]:
        """(domain, kind, file) and features of each file DOMAIN/decaf-fts/KIND/FILE.mat, in the archive's order."""
        for member in archive:
            *_, domain, folder, kind, name = ("", "", "", *PurePosixPath(member.name).parts)
            if folder == _FOLDER and member.isreg() and name.endswith(".mat"):
                stream = archive.extractfile(member) if member.size <= _LARGEST else None
                yield (plain(domain), plain(kind), name), self._features(b"" if stream is None else stream.read(),
                                                                         f"{path}: {member.name!r}")  # fmt: skip

    def _features(self, content: bytes, where: str) -> Array:
        from scipy.io import loadmat

        try:
            # The reader only builds arrays: MATLAB's format holds no code, and needs no pickle.
            features = np.asarray(loadmat(io.BytesIO(content), variable_names=(_KEY,))[_KEY], np.float32)
        except Exception:  # noqa: BLE001 - scipy may raise anything on a damaged file
            features = np.empty(0, np.float32)
        if features.size != self.width:
            raise DataError(f"{where}: holds no {_KEY} of {self.width} numbers; replace the file")
        return features.reshape(-1)
