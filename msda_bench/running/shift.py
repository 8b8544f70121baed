"""Makes the picture of how the inputs of domains differ, where the data are at hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import scipy.linalg

from msda_bench.api import Array, DataError, Dataset, DomainData, Files, Inputs
from msda_bench.data import LocalFiles, folders
from msda_bench.data.features import Frozen
from msda_bench.engine.loaded import load_domain
from msda_bench.plugins import Registry
from msda_bench.running.data import deferred_plugin_errors, domains_of, used
from msda_bench.store.shift import MOST_DOMAINS, MOST_POINTS, Cloud, Shift
from msda_bench.suite.expand import Expansion
from msda_bench.suite.run_spec import RunSpec

_MOST_ROWS = 200
"""The maximum number of rows of a domain."""
_MOST_COLUMNS = 4096
"""The maximum number of numbers of a row; of more, such as pixels, evenly spaced ones count."""


def pictures(
    expansion: Expansion,
    registry: Registry,
    known: Mapping[str, Shift],
    device: str,
) -> Iterator[tuple[str, Shift]]:
    """The pictures of experiments on the user's own files, by name, as far as their data are here.

    Args:
        expansion: the suite's experiments and runs.
        registry: the installed components.
        known: the pictures that are there already, by experiment; those of the same data are not made again.
        device: where frozen features were computed, cpu or cuda.
    """
    keys: dict[str, dict[str, None]] = {}
    for planned in expansion.plan.cells:
        keys.setdefault(planned.experiment, {})[planned.key] = None
    for name, own in keys.items():
        cells = [expansion.cells[key] for key in own]
        picture = None
        try:
            with deferred_plugin_errors():
                picture = _picture(cells, registry, known.get(name), device)
        except DataError:  # the data are elsewhere; whatever training needed of them, it has said
            continue
        if picture is not None:
            yield name, picture


def _picture(cells: Collection[RunSpec], registry: Registry, known: Shift | None, device: str) -> Shift | None:
    dataset, own = next(used("dataset", cells, registry))
    if type(dataset).new_rows_reader is Dataset.new_rows_reader:  # not the user's own files
        return None
    backbone, _ = next(used("backbone", own, registry))
    domains = domains_of(dataset, own)
    frozen = Frozen.of(backbone, dataset)
    data = f"{dataset.fingerprint()} {backbone.name if frozen else ''}".strip()
    if (known is not None and known.data == data) or len(domains) < 2:  # noqa: PLR2004
        return None
    shown = domains[:MOST_DOMAINS]
    files = LocalFiles(folders(), dataset.name)
    most = min(_MOST_ROWS, MOST_POINTS // len(shown))
    rows: dict[str, Inputs] = {}
    for domain in shown:
        loaded = load_domain(dataset, domain, files)
        rows[domain] = _sample(loaded, most, frozen, files, device)
    if frozen is None:
        change = dataset.fit(rows)
        rows = {domain: change(domain, some) for domain, some in rows.items()}
    return _components(data, _name(dataset, frozen), rows, len(domains) - len(shown))


def _name(dataset: Dataset, frozen: Frozen | None) -> str:
    if frozen is not None:
        return f"features of {frozen.backbone.name}"
    if dataset.input.bytes:
        return "pixels"
    return "counts of words" if dataset.input.sparse else "inputs"


def _sample(data: DomainData, most: int, frozen: Frozen | None, files: Files, device: str) -> Inputs:
    """Some rows of a domain, drawn with a fixed seed."""
    source = data.x if frozen is None else frozen.features(data, files, device)
    count = source.shape[0]
    drawn = np.sort(np.random.default_rng(0).permutation(count)[:most])
    return source[drawn]


def _components(data: str, of: str, rows: Mapping[str, Inputs], left_out: int) -> Shift | None:
    """None where fewer than two columns vary."""
    parts = [_flat(some) for some in rows.values()]
    x = _centred(np.concatenate(parts))
    scale = float(np.abs(x).max(initial=0.0))
    if len(x) < 3 or x.shape[1] < 2 or scale == 0:  # noqa: PLR2004
        return None
    points, explained = _principal(x / scale)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    clouds = []
    for domain, some in zip(rows, np.split(points * scale, ends), strict=True):
        clouds.append(_cloud(domain, some))
    return Shift(
        data=data,
        of=of,
        explained=(_three_digits(explained[0]), _three_digits(explained[1])),
        clouds=tuple(clouds),
        left_out=left_out,
    )


def _centred(x: Array) -> Array:
    """The columns that have a number, less their means; a gap is at the mean."""
    x = x[:, np.isfinite(x).any(axis=0)]
    is_known = np.isfinite(x)
    middle = np.nanmean(np.where(is_known, x, np.nan), axis=0)
    return np.where(is_known, x - middle, 0.0)


def _principal(x: Array) -> tuple[Array, Array]:
    """The first two principal components of centred rows, (n, 2), and the share of the variance that each has."""
    is_wide = x.shape[1] > len(x)
    square = x @ x.T if is_wide else x.T @ x  # the smaller of both has the same eigenvalues
    last = len(square) - 1
    values, vectors = scipy.linalg.eigh(square, subset_by_index=(last - 1, last))
    values = np.maximum(values[::-1], 0)
    vectors = vectors[:, ::-1]
    points = vectors * np.sqrt(values) if is_wide else x @ vectors
    # Each component points to where it reaches farthest, so that equal data give equal pictures.
    farthest = np.abs(points).argmax(axis=0)
    signs = np.sign(points[farthest, range(2)])
    return points * np.where(signs == 0, 1, signs), values / np.trace(square)


def _cloud(domain: str, points: Array) -> Cloud:
    """Three digits are enough to draw, and tell no more than a point's place."""
    rounded = tuple((_three_digits(x), _three_digits(y)) for x, y in points.tolist())
    return Cloud(domain=domain, points=rounded)


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _flat(some: Inputs) -> Array:
    """Rows of numbers (n, columns) float64, of which there are not too many."""
    dense = np.asarray(some) if isinstance(some, np.ndarray) else some.toarray()
    flat = dense.reshape(len(dense), -1)
    step = max(1, -(-flat.shape[1] // _MOST_COLUMNS))
    return flat[:, ::step].astype(np.float64)
