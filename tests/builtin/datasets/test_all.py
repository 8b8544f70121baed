"""Properties of several datasets: checked files, fingerprints and nested pools."""

from __future__ import annotations

import numpy as np
import pytest

from msda_bench.api import Dataset, Pip, Url
from msda_bench.plugins import discover
from msda_bench_builtin.datasets import Amazon, Digits, Fonts, OfficeHome, Sine, Stress
from tests.builtin.datasets.conftest import OneFolder


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
