"""Exercises of the shoulder, recorded by a smartwatch."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, Literal, cast

import numpy as np

from msda_bench.api import AddedLater, Array, DomainData, File, Files, InputSpec, Pip, Size, Stratify, Task, component
from msda_bench_builtin.datasets.features import Standardised
from msda_bench_builtin.datasets.unpacked import reading, zip_member

_SIZES = 561, 540, 305, 295, 490, 478, 524, 482, 483, 519
"""Windows of each person."""
_CLASSES, _AXES = 7, 6
_WINDOW, _STEP = 100, 50
"""Samples of a window and between the starts of two; the watch takes 50 a second."""
_FILE = File(
    "watch/seglearn-1.2.5-py3-none-any.whl",
    "ec6b952c85c9627050102854b372d85951563d3b990df677d7c55547e87413dd",
    11320941,
    Pip("seglearn", "1.2.5"),
)
_MEMBER = "seglearn/data/watch_dataset.npy"


def statistics(windows: Array) -> Array:
    """Ten numbers of each axis of windows (n, samples, axes): (n, 10 * axes) float32, statistic by statistic.

    These are mean, standard deviation, least, greatest, quartiles and median, mean size of a change, root mean square,
    and how often the signal crosses its mean.
    """
    mean = windows.mean(1)
    quartiles = np.quantile(windows, (0.25, 0.5, 0.75), axis=1)
    changes = abs(np.diff(windows, axis=1)).mean(1)
    crossings = np.diff(windows > mean[:, None], axis=1).mean(1)
    ends = windows.std(1), windows.min(1), windows.max(1)
    numbers = mean, *ends, *quartiles, changes, np.sqrt((windows**2).mean(1)), crossings
    return np.concatenate(numbers, axis=1).astype(np.float32)


@component
class Watch(Standardised):
    """Seven exercises of the shoulder by ten persons with a smartwatch on the wrist, in windows of two seconds.

    Windows overlap by half. Each person did each exercise once with each arm; these 140 recordings are the groups of a
    split.

    Parameters:
        form: "statistics", ten of each axis of a window, or "signals", its samples (axes, time).

    Burns, Leung, Hardisty, Whyne, Henry, McLachlin. Shoulder physiotherapy exercise recognition: machine learning the
    inertial signals from a smartwatch. Physiological Measurement 2018.
    """

    name = "watch"
    version = 1
    licence = "BSD-3-Clause"
    modality = "signals"
    source = "Burns et al. 2018, from the wheel seglearn 1.2.5"
    published: ClassVar = {f"person_{person}": size for person, size in enumerate(_SIZES, 1)}
    task = Task("classification", _CLASSES)
    files = (_FILE,)

    train: Size = 0.5
    stratify: Stratify = True
    form: Annotated[Literal["statistics", "signals"], AddedLater()] = "statistics"

    @property
    def input(self) -> InputSpec:
        """Statistics, or axes and samples."""
        return InputSpec((10 * _AXES,) if self.form == "statistics" else (_AXES, _WINDOW))

    @property
    def notes(self) -> tuple[str, ...]:
        """How the features are standardised, and what the groups are."""
        return (*super().notes, "watch: split by recording: no recording that is tested is trained on.")

    def load(self, domain: str, files: Files) -> DomainData:
        """The windows of one person, (n, 60) or (n, 6, 100) float32, recording by recording."""
        raw = self.form == "signals"
        what = "watch signals" if raw else "watch"
        name = f"{what} v{self.version} {_FILE.sha256}"
        arrays = files.derived(name, lambda: _windows(files.path(_FILE), raw=raw))
        rows = arrays["person"] == self.domains.index(domain) + 1
        return DomainData(arrays["x"][rows], arrays["y"][rows], groups=arrays["recording"][rows])


def _windows(path: Path, *, raw: bool) -> Mapping[str, Array]:
    with reading(path, "not the expected recordings", "run `msda-bench data fetch watch`"):
        with zip_member(path, _MEMBER) as stream:
            held = read_pickled(io.BytesIO(stream.read()))
        labels = np.asarray(held["y"], np.int64)
        persons = np.asarray(held["subject"], np.int64)
        x: list[Array] = []
        for signal in held["X"]:
            samples = np.asarray(signal, np.float64)
            windows = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW, 0)[::_STEP]
            x.append(windows.astype(np.float32) if raw else statistics(windows.transpose(0, 2, 1)))
        recording = np.repeat(np.arange(len(x)), [len(part) for part in x])
        return {"x": np.concatenate(x), "y": labels[recording], "person": persons[recording], "recording": recording}


def read_pickled(stream: IO[bytes]) -> Any:
    """The object that numpy has pickled into a .npy file: arrays, texts, numbers, and lists and mappings of these.

    Raises:
        pickle.UnpicklingError: the pickle names anything else, of which nothing is imported.
        ValueError: the stream is not a .npy file.
    """
    np.lib.format.read_magic(stream)
    np.lib.format.read_array_header_1_0(stream)
    return _ArraysOnly(stream).load().item()


def _latin1(text: str, encoding: str) -> bytes:
    """The way in which Python 3 pickles bytes for Python 2."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it encodes a text as {encoding!r}")
    return text.encode(encoding)


_reconstruct = cast("Callable[..., Any]", np.empty(0).__reduce__()[0])
"""The function that numpy's pickles name; its module depends on the release of numpy."""
_ALLOWED: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("_codecs", "encode"): _latin1,
}


class _ArraysOnly(pickle.Unpickler):
    """Looks names up in a fixed table instead of importing them."""

    def find_class(self, module: str, name: str, /) -> Callable[..., Any]:
        """One of five functions.

        Raises:
            pickle.UnpicklingError: the name is another one.
        """
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return _ALLOWED[module, name]
