"""The tasks that are tables, on their real bytes where these are on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from msda_bench.api import Dataset, Fits
from msda_bench.data import Folders, LocalFiles
from msda_bench_builtin.datasets import Hospitals, Solubility

Real = Callable[[Dataset], LocalFiles]


def as_published(text: str) -> str:
    """The file as UCI has it: no header, a question mark for what is missing."""
    lines = (",".join(field or "?" for field in line.split(",")) for line in text.splitlines()[1:])
    return "".join(f"{line}\n" for line in lines)


def test_both_forms_of_the_hospitals_are_the_same_patients(real: Real, tmp_path: Path) -> None:
    data, here = Hospitals(), real(Hospitals())
    for file in data.files:
        text = here.path(file).read_text()
        (tmp_path / file.path).parent.mkdir(exist_ok=True)
        (tmp_path / file.path).write_bytes((as_published(text) if text.startswith("age") else text).encode())
    published = LocalFiles(Folders(None, tmp_path), data.name)  # checks the published sizes and sha256
    for domain in data.domains:
        one, other = data.load(domain, here), data.load(domain, published)
        np.testing.assert_array_equal(one.x, other.x)
        assert one.y.tolist() == other.y.tolist()
    ill = {domain: float(data.load(domain, here).y.mean()) for domain in data.domains}
    assert {name: round(share, 2) for name, share in ill.items()} == {
        "cleveland": 0.46, "hungary": 0.36, "switzerland": 0.93, "long_beach": 0.74
    }  # fmt: skip


def test_a_cholesterol_of_zero_is_missing(real: Real) -> None:
    data = Hospitals()
    raw = {name: data.load(name, real(data)).x for name in data.domains}
    assert isinstance(data, Fits)
    made = data.fit(raw)("switzerland", raw["switzerland"])
    # After age, two columns of sex, five of pain, pressure and its gaps: cholesterol, and that it is missing.
    start = 1 + 3 + 5 + 2
    assert np.unique(np.asarray(made)[:, start]).size == 1
    assert np.asarray(made)[:, start + 1].tolist() == [1.0] * 123


def test_the_solubility_is_a_number_or_one_of_three_classes(real: Real) -> None:
    classes, values = Solubility(), Solubility(mode="regression")
    for domain in classes.domains:
        kind, value = (data.load(domain, real(data)) for data in (classes, values))
        assert kind.y.tolist() == ((value.y >= -4).astype(int) + (value.y >= -2)).tolist()
    # Molecule A-3, the first of the table, has a logarithm of -3.6161271205 and 392.51 g/mol, the 17 others fewer.
    first = values.load("A", real(values))
    assert abs(first.y[0] + 3.6161271205) < 1e-6
    assert first.x.shape == (3656, 17)
