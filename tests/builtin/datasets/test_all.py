"""Properties of several datasets, and of the real bytes where they are on this machine."""

import numpy as np
import pytest

from msda_bench.api import Pip, Url
from msda_bench.data import Folders, LocalFiles
from msda_bench.plugins import discover
from msda_bench_builtin.datasets import (
    Amazon,
    Crises,
    Digits,
    Fonts,
    GasDrift,
    Hospitals,
    Intents,
    Music,
    OfficeHome,
    Opinions,
    Pacs,
    Reactor,
    Sine,
    Solubility,
    SpokenDigits,
    Stress,
    Watch,
)
from tests.reader import text_of


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
def test_the_fingerprint_depends_on_the_parameters(datasets):
    assert len({one.fingerprint() for one in datasets}) == len(datasets)


@pytest.mark.parametrize("usual", [Fonts(), Digits(domains=("synth_fonts", "mnist_m_made"))])
def test_the_fingerprint_depends_on_the_renderer_of_rendered_domains(usual, monkeypatch):
    before, read = usual.fingerprint(), Digits().fingerprint()
    monkeypatch.setattr("matplotlib.ft2font.__freetype_version__", "0.0")
    assert usual.fingerprint() != before
    assert Digits().fingerprint() == read


def test_every_file_that_can_be_fetched_has_its_own_checksum():
    entries = [entry for entry in discover().entries if (entry.kind, entry.distribution) == ("dataset", "msda-bench")]
    files = {file for entry in entries for file in entry.create({}).files}
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
)
def test_a_larger_pool_extends_a_smaller_one(crafted, few, many, domain):
    small, large = (one.load(domain, crafted) for one in (few, many))
    assert len(small.y) < len(large.y)
    assert np.array_equal(small.x, large.x[: len(small.y)])
    assert np.array_equal(small.y, large.y[: len(small.y)])


DIGITS = Digits(domains=("mnist", "svhn"), copies="reduced")
MNIST = [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]
SVHN = [750, 2195, 1731, 1238, 1074, 1021, 851, 837, 699, 687]


@pytest.mark.parametrize(
    ("data", "classes", "groups"),
    [
        (Amazon(), {"books": [3201, 3264], "dvd": [2779, 2807], "kitchen": [3991, 3954]}, None),
        (Opinions(), {"product": [1235, 1750], "film": [5076, 4996], "tweets": [1087, 2345]}, None),
        (Crises(), {"hurricane_sandy": [3870, 6138], "alberta_floods": [4842, 5189]}, 9162),
        (GasDrift(), {"batch_1": [90, 98, 83, 30, 70, 74], "batch_4": [64, 43, 12, 30, 12]}, None),
        (Hospitals(), {"cleveland": [164, 139], "switzerland": [8, 115], "long_beach": [51, 149]}, None),
        (Solubility(), {"A": [1261, 904, 1491], "F": [141, 379, 278]}, 798),
        (Music(), {domain: [100] * 10 for domain in Music().domains}, 980),
        (Music(labels="music_or_speech"), {domain: [64] * 2 for domain in Music().domains}, 128),
        (Reactor(), {"mode_0": [100] * 13, "mode_6": [20] * 13}, None),
        (SpokenDigits(), {SpokenDigits().domains[0]: [50] * 10, SpokenDigits().domains[-1]: [50] * 10}, None),
        (Watch(), {"person_1": [54, 91, 96, 87, 87, 74, 72], "person_10": [50, 91, 93, 79, 85, 54, 67]}, 14),
        (Intents(), {Intents.domains[0]: [30] * 15, Intents.domains[-1]: [30] * 15}, 288),
        (DIGITS, {"mnist": MNIST, "svhn": SVHN}, None),
        (Pacs(copies="q72", side=16), {"photo": [189, 202, 182, 186, 199, 280, 432]}, None),
    ],
)
def test_the_real_files_have_the_documented_examples(real, tmp_path, data, classes, groups):
    files = real(data)
    if isinstance(data, Pacs):
        (path,) = [files.path(file) for file in data.files]
        files = LocalFiles(Folders(path.parent.parent, tmp_path))
        assert data.notes == ("pacs: a copy whose images were re-encoded as JPEG of quality 72.",)
        assert Pacs().notes == ()
    for domain, counts in classes.items():
        part = data.load(domain, files)
        assert np.bincount(part.y).tolist() == counts, domain
    assert groups == (None if part.groups is None else len(np.unique(part.groups)))


def test_the_half_of_a_file_tells_the_documented_share_of_what_tweets_are_about(real):
    files, right, rows = real(Crises()), 0, 0
    for domain in Crises().domains:
        y = Crises().load(domain, files).y
        for half in (y[: len(y) // 2], y[len(y) // 2 :]):
            right, rows = right + np.bincount(half).max(), rows + len(half)
    for page in ("docs/datasets.md", "studies/datasets/README.md"):
        assert f"{100 * right / rows:.1f} % of the" in text_of(page), page


def as_published(text):
    """The file as UCI has it: no header, a question mark for what is missing."""
    lines = (",".join(field or "?" for field in line.split(",")) for line in text.splitlines()[1:])
    return "".join(f"{line}\n" for line in lines)


def test_both_forms_of_the_hospitals_are_the_same_patients(real, tmp_path):
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
