"""Properties of several datasets: checked files, fingerprints and nested pools."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msda_bench.api import Dataset, Pip, Url
from msda_bench.data import Folders, LocalFiles
from msda_bench.plugins import discover
from msda_bench_builtin.datasets import Amazon, Digits, Fonts, OfficeHome, Sine, Stress
from tests.builtin.datasets.conftest import OneFolder
from tests.data.refusal import only_line

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated: ": lambda content: content[: len(content) // 2],
    "wrong checksum: sha256 ": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
}


@pytest.mark.parametrize(
    ("dataset", "domain"),
    [
        (Amazon(), "books"),
        *((Digits(domains=(one, "synth_fonts"), copies="reduced"), one) for one in ("mnist", "mnist_m", "svhn")),
    ],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
@pytest.mark.parametrize("what", [*DAMAGE, "not in the cache"])
def test_a_bad_file_is_reported_in_one_line_and_not_cached(
    real: Callable[[Dataset], LocalFiles], tmp_path: Path, dataset: Dataset, domain: str, what: str
) -> None:
    local, where = real(dataset), Folders(None, tmp_path)
    needed = [file for file in dataset.files if domain in file.path.split("/")[-1] or dataset.name == "digits"]
    for file in needed:
        where.cached(file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(local.path(file), where.cached(file))
    bad = where.cached(needed[-1])
    content = bad.read_bytes()
    bad.unlink()
    if what in DAMAGE:
        bad.write_bytes(DAMAGE[what](content))
    before = sorted(tmp_path.rglob("*"))
    line = only_line(dataset.load, domain, LocalFiles(where, dataset.name))
    assert what in line
    assert line.startswith(f"{bad}: " if what in DAMAGE else needed[-1].path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "datasets",
    [
        (Amazon(), Amazon(train=1000)),
        (Digits(), Digits(copies="reduced"), Digits(train=7500)),
        (Fonts(), Fonts(noise=0.1)),
        (OfficeHome(), *(OfficeHome(sha256={"art": digit * 64}) for digit in "12")),  # type: ignore[arg-type]
    ],
    ids=lambda datasets: datasets[0].name,
)
def test_the_fingerprint_depends_on_the_parameters(datasets: tuple[Dataset, ...]) -> None:
    assert len({one.fingerprint() for one in datasets}) == len(datasets)


@pytest.mark.parametrize("usual", [Fonts(), Digits(domains=("synth_fonts", "mnist_m_made"))], ids=lambda one: one.name)
def test_the_fingerprint_depends_on_the_renderer_of_rendered_domains(
    usual: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, read = usual.fingerprint(), Digits().fingerprint()
    monkeypatch.setattr("matplotlib.ft2font.__freetype_version__", "0.0")
    assert usual.fingerprint() != before
    assert Digits().fingerprint() == read


def test_every_file_that_can_be_fetched_has_its_own_checksum() -> None:
    entries = [entry for entry in discover().entries if (entry.kind, entry.distribution) == ("dataset", "msda-bench")]
    datasets = [entry.create({}) for entry in entries]
    files = {file for data in datasets if isinstance(data, Dataset) for file in data.files}
    published = [file for file in files if isinstance(file.origin, Url | Pip)]
    assert len({file.checksum for file in published}) == len(published) > 20
    assert [file.path for file in published if file.sha256 is None] == ["mnist_m/mnist_m.tar.gz"]
    assert all(file.origin.addresses for file in published if isinstance(file.origin, Url))


@pytest.mark.parametrize(
    ("few", "many", "domain"),
    [
        (Fonts(per_class=2), Fonts(per_class=4), "mono"),
        (Sine(size=10), Sine(size=20), "target_1"),
        (Stress(size=10), Stress(size=20), "far"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_larger_pool_extends_a_smaller_one(crafted: OneFolder, few: Dataset, many: Dataset, domain: str) -> None:
    small, large = (one.load(domain, crafted) for one in (few, many))
    assert len(small.y) < len(large.y)
    assert np.array_equal(small.x, large.x[: len(small.y)])
    assert np.array_equal(small.y, large.y[: len(small.y)])
