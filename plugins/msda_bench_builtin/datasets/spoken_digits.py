"""Spoken digits of six speakers."""

from __future__ import annotations

import tarfile
import wave
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from msda_bench.api import AddedLater, Array, DomainData, File, Files, InputSpec, Size, Task, Url, component
from msda_bench_builtin.datasets.features import Standardised
from msda_bench_builtin.datasets.unpacked import reading

_SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
_DIGITS, _TAKES, _RATE = 10, 50, 8000
_BANDS, _FRAMES = 40, 32
_LENGTH, _HOP = 256, 80
"""Samples of a window of the spectrogram and between the starts of two."""
_COMMIT = "26eb9aaf76e81b692f806f9140c2d2777410d7a1"
_FILE = File(
    "spoken_digits/recordings.tar",
    "9a68686ad29274bd0affde81b244953e677c9d7048dfb8acaf1168d7758bafab",
    15603781,
    Url((f"https://github.com/Jakobovski/free-spoken-digit-dataset/archive/{_COMMIT}.tar.gz",)),
    # Its folder of recordings alone, not compressed.
    same=(("fd786690c964edc9b7957f71c1c1ff344d62b4fb4338acfe52358c9033c4cdc4", 23429120),),
)
_LONGEST = 0.05
"""Seconds that may be left out at each end; the shortest recording has 0.14."""
_QUIET = 1e-6
"""Added to energies, so that silence has a logarithm; full scale is 1."""


@component
class SpokenDigits(Standardised):
    """The digits 0 to 9, spoken fifty times each by six speakers: logarithms of energy in 40 bands at 32 times.

    A spectrogram has Hann windows of 256 samples every 80, bands of equal width in mel, and is stretched to 32 frames.

    Parameters:
        trim: seconds that are left out at both ends of each recording, where the cut and the room tell the speaker.

    Jackson and others. Free Spoken Digit Dataset.
    """

    name = "spoken_digits"
    version = 1
    licence = "CC BY-SA 4.0"
    modality = "audio"
    source = "Jackson et al., Free Spoken Digit Dataset (Jakobovski/free-spoken-digit-dataset on GitHub)"
    published: ClassVar = dict.fromkeys(_SPEAKERS, _DIGITS * _TAKES)
    task = Task("classification", _DIGITS)
    input = InputSpec((_FRAMES * _BANDS,))
    files = (_FILE,)

    train: Size = 250
    trim: Annotated[float, Field(ge=0, le=_LONGEST, allow_inf_nan=False), AddedLater()] = 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """How the features are standardised, and what is left out."""
        if not self.trim:
            return super().notes
        return (*super().notes, f"spoken_digits: {self.trim:g} s are left out at both ends of each recording.")

    def load(self, domain: str, files: Files) -> DomainData:
        """The recordings of one speaker, (500, 1280) float32, by digit and take; frame by frame."""
        left_out = round(self.trim * _RATE)
        trimmed = f" trim {left_out}" if left_out else ""
        name = f"spoken_digits v{self.version}{trimmed} {_FILE.sha256}"
        arrays = files.derived(name, lambda: _features(files.path(_FILE), left_out))
        return DomainData(arrays[domain], np.repeat(np.arange(_DIGITS), _TAKES))


def _features(path: Path, left_out: int) -> Mapping[str, Array]:
    """Rows of each speaker, by digit and take, without so many samples at both ends of each recording."""
    features: dict[str, Array] = {}
    with reading(path, "cannot be read", "run `msda-bench data fetch spoken_digits`"):
        sounds = dict(_recordings(path))
        for speaker in _SPEAKERS:
            names = [f"{digit}_{speaker}_{take}.wav" for digit in range(_DIGITS) for take in range(_TAKES)]
            kept = [sounds[name][left_out : len(sounds[name]) - left_out] for name in names]
            features[speaker] = np.stack([log_mel(samples) for samples in kept])
    return features


def _recordings(path: Path) -> Iterator[tuple[str, Array]]:
    """Name and samples, in [-1, 1), of each recording in an archive, compressed or not."""
    with tarfile.open(path) as archive:
        for member in archive:
            place = PurePosixPath(member.name)
            stream = archive.extractfile(member)
            if stream is None or place.suffix != ".wav" or place.parent.name != "recordings":
                continue
            with wave.open(stream) as sound:
                samples = sound.readframes(sound.getnframes())
            yield place.name, np.frombuffer(samples, "<i2") / 2**15


def log_mel(samples: Array) -> Array:
    """The natural logarithm of the energy in 40 mel bands at each of 32 times, time by time, of samples at 8 kHz.

    Returns:
        (1280,) float32, stretched to this length from any number of samples.
    """
    samples = np.pad(samples, (0, max(0, _LENGTH - len(samples))))
    parts = np.lib.stride_tricks.sliding_window_view(samples, _LENGTH)[::_HOP]
    windows = parts * np.hanning(_LENGTH + 1)[:-1]
    energy = np.abs(np.fft.rfft(windows)) ** 2 @ _mel().T
    frames = np.log(energy / _LENGTH + _QUIET)
    times = np.linspace(0, len(frames) - 1, _FRAMES)
    stretched = [np.interp(times, np.arange(len(frames)), band) for band in frames.T]
    return np.stack(stretched, axis=1).astype(np.float32).reshape(-1)


def _mel() -> Array:
    """(bands, frequencies): triangles, each from the middle of the band below to that of the band above."""
    top = 2595 * np.log10(1 + _RATE / 2 / 700)
    middles = 700 * (10 ** (np.linspace(0, top, _BANDS + 2) / 2595) - 1)
    frequencies = np.fft.rfftfreq(_LENGTH, 1 / _RATE)
    rising = (frequencies - middles[:-2, None]) / np.diff(middles)[:-1, None]
    falling = (middles[2:, None] - frequencies) / np.diff(middles)[1:, None]
    weights: Array = np.clip(np.minimum(rising, falling), 0, None)
    return weights
