"""Music under five kinds of noise, as tables of features."""

from __future__ import annotations

from typing import Literal

import numpy as np

from msda_bench.api import Array, DomainData, Extent, File, Files, InputSpec, Size, Task, Url, component
from msda_bench_builtin.datasets.features import Standardised, read_table

_FEATURES = 58
_DOMAINS = ("noiseless", "buccaneer2", "destroyerengine", "f16", "factory2")
_COMMIT = "https://raw.githubusercontent.com/eddardd/WBTransport/eaee19420d53c784e268cd081aa14f9d29b8af6e/data/"
_FILES = {
    "genres": File(
        "music/MGR.npy",
        "76e5295a22b4efe0a336d4858fa772aeee6f4a0034dc20726abcf69f687a8be9",
        2400128,
        Url((f"{_COMMIT}MGR.npy",)),
    ),
    "music_or_speech": File(
        "music/MSD.npy",
        "d4b2b5bee72bba86863feb1f0a5708f67fa03b235878fd2bc86555393b1f931c",
        307328,
        Url((f"{_COMMIT}MSD.npy",)),
    ),
}
_CLASSES = {"genres": 10, "music_or_speech": 2}
# Genres: numbers under which the same recording stands again, to the last bit or nearly so under every noise.
_REPEATED = (
    (200, 287), (245, 280), (266, 296), (274, 290), (325, 337), (345, 369), (380, 381, 397), (400, 410),
    (619, 659), (702, 730), (709, 791), (717, 799), (719, 772), (720, 757), (744, 781), (761, 778),
    (776, 979), (800, 813), (843, 870),
)  # fmt: skip


@component
class Music(Standardised):
    """Recordings without noise and with that of two aircraft, a ship's engine and a factory: 58 features of sound.

    The features are as published unless a suite standardises them: their scales are very different, and column 17 is
    constant.

    Row i is the same recording under every noise, so that recordings are the groups of a split.

    Parameters:
        labels: "genres" is one of ten genres, 1000 recordings of each noise; "music_or_speech" has 128 of each.

    Montesuma, Mboula. Wasserstein Barycenter Transport for Acoustic Adaptation. ICASSP 2021.
    """

    name = "music"
    version = 2  # 2: groups
    licence = "the repository's GPL-3; of the recordings none is stated"
    modality = "audio"
    source = "Montesuma and Mboula 2021 (eddardd/WBTransport on GitHub), from GTZAN's recordings"
    domains = _DOMAINS
    shared_groups = True
    input = InputSpec((_FEATURES,))

    train: Size = 64
    labels: Literal["genres", "music_or_speech"] = "genres"

    @property
    def task(self) -> Task:
        """The genre, or music (0) or speech (1)."""
        return Task("classification", _CLASSES[self.labels])

    @property
    def files(self) -> tuple[File, ...]:
        """The table of the task."""
        return (_FILES[self.labels],)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the features are standardised, and what the groups are."""
        what = "no recording that is tested is trained on under any noise"
        return (*super().notes, f"{self.name}: split by recording: {what}.")

    def sizes(self, files: Files | None = None) -> dict[str, Extent]:
        """Recordings under each noise."""
        return dict.fromkeys(_DOMAINS, 1000 if self.labels == "genres" else 128)

    def load(self, domain: str, files: Files) -> DomainData:
        """The features under one noise, (n, 58) float32, in the file's order."""
        table = read_table(files.path(self.files[0]), _FEATURES + 2)
        mine = table[table[:, -1] == _DOMAINS.index(domain)]
        x, y = mine[:, :_FEATURES].astype(np.float32), mine[:, _FEATURES].astype(np.int64)
        return DomainData(x, y, groups=self._recordings(len(mine)))

    def _recordings(self, rows: int) -> Array:
        """The recording of each row; row i is the same one under every noise."""
        recordings = np.arange(rows)
        if self.labels == "genres":
            for first, *again in _REPEATED:
                recordings[again] = first
        return recordings
