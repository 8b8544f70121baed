"""`msda-bench data identify` of images: frames of one sequence, groups by name, and 16 bits a pixel."""

import numpy as np
import pytest
import yaml
from PIL import Image

from msda_bench.api import DataError
from msda_bench.cli.main import main
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.check import tree_sha256
from msda_bench.data.splits import split
from msda_bench_builtin.datasets import ImageFolder, ImageList, OfficeCaltech10

SEQUENCES = ("seq00", "seq01", "seq02", "seq03")


def saved(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def frames(tmp_path):
    """`frames(name)`: two domains, two classes, four sequences of three frames, called as the name says."""
    rng = np.random.default_rng(0)

    def made(name, noise=3.0):
        for site in "AB":
            for kind in ("deer", "fox"):
                for sequence in SEQUENCES:
                    base = rng.integers(0, 255, (20, 20, 3)).astype(float)
                    for frame in range(3):
                        path = tmp_path / "cam" / site / kind / name.format(sequence, frame, site + kind + sequence)
                        saved(path, np.clip(base + rng.normal(0, noise, base.shape), 0, 255).astype(np.uint8))
        return tmp_path / "cam"

    return made


@pytest.mark.parametrize("name", ["{}_frame{}.png", "{}-{:04}.png", "{2}/{1}.png"])
def test_frames_of_a_sequence_are_groups_of_the_first_suite(identify, tmp_path, frames, name):
    folder, suite = frames(name), tmp_path / "mine.yaml"
    code, out, _ = identify(folder, "--suite", suite)
    assert code == 0
    assert any(line.startswith("sequences: 48 images are called as frames of 16 sequences are,") for line in out)
    assert main(["validate", str(suite)]) == 0
    params = yaml.safe_load(suite.read_text())["dataset"]["image_folder"]
    data = ImageFolder(**params | {"domains": ("A", "B"), "side": 8, "train": 6})
    files = LocalFiles(Folders(tmp_path, tmp_path / "cache"), data.name, 1)
    domains = {name: data.load(name, files) for name in data.domains}
    groups = {name: domain.groups for name, domain in domains.items()}
    assert {name: len(np.unique(of)) for name, of in groups.items()} == {"A": 8, "B": 8}
    for seed in range(3):
        for domain, rows in split(data, "B", domains, seed=seed).items():
            assert not {*groups[domain][rows.train]} & {*groups[domain][rows.test]}


def test_names_alone_are_no_proof_and_images_without_a_group_are_refused(identify, tmp_path, frames):
    folder, suite = frames("{}_{}.png", noise=300.0), tmp_path / "mine.yaml"
    code, out, _ = identify(folder, "--suite", suite)
    assert (code, "groups" in suite.read_text()) == (0, False)
    assert any(
        "if those of one belong together (a patient, a slide, a recording), set `groups`" in line for line in out
    )
    params = {"domains": ("A", "B"), "folder": "cam", "sha256": tree_sha256(folder), "side": 8}
    files = LocalFiles(Folders(tmp_path, tmp_path / "cache"), "image_folder", 1)
    plain = ImageFolder(**params)
    assert "groups" not in plain.identity()
    assert plain.load("A", files).groups is None
    patients = ImageFolder(**params, groups=r"/(seq\d+)").load("A", files)
    assert {*patients.groups} == {f"A/{name}" for name in SEQUENCES}
    for pattern, says in (
        ("seq0[1-3]", "matches nothing in the paths of images, 6: A/deer/seq00"),
        ("seq", "of one group"),
    ):
        with pytest.raises(DataError, match=says):
            ImageFolder(**params, groups=pattern).load("A", files)
    with pytest.raises(ValueError, match="is no regular expression: missing"):
        ImageFolder(**params, groups="(seq")


def test_a_column_of_a_list_names_groups(tmp_path):
    folder = tmp_path / "listed"
    for number in range(6):
        saved(folder / f"{number} of six.png", np.zeros((9, 9), np.uint8))
    lines = [f"{number} of six.png {number % 2} p{number // 2}" for number in range(6)]
    (folder / "a.txt").write_text("\n".join(lines))
    files = LocalFiles(Folders(tmp_path, tmp_path / "cache"), "image_list", 1)
    params = {"domains": ("a", "b"), "folder": "listed", "sha256": tree_sha256(folder), "side": 8}
    data = ImageList(**params, groups="column").load("a", files)
    assert (data.groups.tolist(), data.y.tolist()) == (["a/p0", "a/p0", "a/p1", "a/p1", "a/p2", "a/p2"], [0, 1] * 3)
    by_name = ImageList(**params, groups=r"^[01]|^[2-5]", list="b.txt")
    (folder / "b.txt").write_text("\n".join(line.rpartition(" ")[0] for line in lines))
    assert len(np.unique(by_name._load("b", files)[0].groups)) == 6


def test_a_small_part_of_16_bits_is_said_with_its_range(identify, tmp_path):
    rng = np.random.default_rng(0)
    for level, place in ((1000, "dark"), (50_000, "whole")):
        for site in "ab":
            for kind in "cd":
                saved(tmp_path / place / site / kind / "0.tif", rng.integers(7, level, (9, 9)).astype(np.uint16))
        line = next((line for line in identify(tmp_path / place)[1] if line.startswith("16 bits")), "")
        low, high = ("values of ", "to 9") if place == "dark" else ("", "")
        assert (low in line, high in line, bool(line)) == (True, True, place == "dark")
    assert "of which the upper 8 bits, 0 to 3, are kept and look dark; scale the images" in " ".join(
        identify(tmp_path / "dark")[1]
    )


def test_a_public_copy_of_office_caltech_calls_a_domain_caltech10(identify, tmp_path):
    for domain in ("amazon", "caltech10", "dslr", "webcam"):
        for kind in range(10):
            saved(tmp_path / "office" / domain / f"k{kind}" / "0.png", np.zeros((9, 9), np.uint8))
    out = identify(tmp_path / "office")[1]
    assert any("caltech has 10 images, published are 1123" in line for line in out)
    files = LocalFiles(Folders(tmp_path, tmp_path / "cache"), "office_caltech10", 1)
    data = OfficeCaltech10(folder="office", sha256=tree_sha256(tmp_path / "office"), side=8)
    assert data.load("caltech", files).y.tolist() == [*range(10)]
