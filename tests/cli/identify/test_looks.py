"""`msda-bench data identify` of images: frames of one sequence, groups by name, and 16 bits a pixel."""

import numpy as np
import pytest
import yaml
from PIL import Image

from msda_bench.api import DataError
from msda_bench.cli.main import main
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.checksums import tree_sha256
from msda_bench.data.splits import split
from msda_bench_builtin.datasets import ImageFolder, ImageList, OfficeCaltech10
from tests.cli.identify.conftest import refused

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
    kind = "key: 16 names such as " if "/" in name else "sequences: 48 images are called as frames of 16 sequences are,"
    assert any(line.startswith(kind) for line in out)
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


def test_names_alone_are_no_proof_and_images_without_a_group_are_refused(told, tmp_path, frames):
    folder, suite = frames("{}_{}.png", noise=300.0), tmp_path / "mine.yaml"
    said = told(folder, "--suite", suite)
    assert "groups" not in suite.read_text()
    assert "if those of one belong together (a patient, a slide, a recording), --group PATTERN" in said
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


@pytest.fixture
def slides(tmp_path):
    """`slides(name)`: three domains, two classes, six patients of two slides each, called as the name says."""

    def made(name):
        for site in "ABC":
            for kind in ("benign", "malign"):
                for patient in range(6):
                    for slide in range(2):
                        side = "train" if patient % 3 else "test"
                        path = name.format(site=site, kind=kind, patient=patient, slide=slide, side=side)
                        pixels = np.full((9, 9, 3), 20 * patient + 90 * (kind == "malign"), np.uint8)
                        saved(tmp_path / "slides" / path, pixels + slide)
        return tmp_path / "slides"

    return made


def sides(tmp_path, suite):
    """The groups that a suite of images trains on and tests on, by seed; and how many images are tested."""
    params = yaml.safe_load(suite.read_text())["dataset"]["image_folder"]
    data = ImageFolder(**params | {"domains": tuple(params["domains"]), "side": 8})
    files = LocalFiles(Folders(tmp_path, tmp_path / "cache"), data.name, 1)
    domains = {name: data.load(name, files) for name in data.domains}
    for seed in range(3):
        parts = split(data, "B", domains, seed=seed)
        of = domains["B"].groups
        yield {*of[parts["B"].train]}, {*of[parts["B"].test]}, len(parts["B"].test)


PATIENTS = {
    "{site}/{kind}/patient_{patient:03}_slide{slide}.png": r"(patient_\d+)",
    "{site}/Patient-{patient}/{kind}/{slide}.png": r"(Patient\-\d+)",
    "{site}/{kind}/p{patient:02}_{slide}.png": r"(p\d+)",
    "{site}/{kind}/sub-{patient}/ses-{slide}/0.png": r"(sub\-\d+)",
    "{site}/{kind}/TCGA-0{patient}-A1B2-{slide}.png": r"(TCGA-\w\w-\w{4})",
}


@pytest.mark.parametrize("name", PATIENTS)
def test_patients_in_the_path_are_groups_of_the_first_suite(identify, tmp_path, slides, name):
    folder, suite = slides(name), tmp_path / "mine.yaml"
    code, out, _ = identify(folder, "--suite", suite)
    assert code == 0
    (line,) = (line for line in out if line.startswith("key: "))
    assert line.startswith("key: 18 names such as ")
    assert f"so the suite has `groups: {PATIENTS[name]}`; --group PATTERN" in line
    if name != next(iter(PATIENTS)):  # decoding takes processes, and so seconds
        return
    for trained, tested, _ in sides(tmp_path, suite):
        assert len(trained | tested) == 6
        assert not trained & tested


def test_patterns_of_the_path_are_groups_and_the_official_test(identify, tmp_path, slides):
    folder, suite = slides("{site}/{kind}/{side}-x{patient}y{slide}.png"), tmp_path / "mine.yaml"
    options = ["--group", r"x(\d+)y", "--test", "test-"]
    code, out, _ = identify(folder, *options, "--suite", suite)
    assert (code, "official test: A 8, B 8, C 8" in out) == (0, True)
    cases = {
        ("--group", r"x(\d+y"): "--group is no regular expression: missing )",
        ("--group", "z"): "`groups` (z) matches nothing in the paths of images, 24: A/benign/",
        ("--group", "x"): "all images are of one group, 'x', so they cannot be split",
        ("--group", r"y(\d)", "--test", "test-"): "6 groups have official test images and others; correct --group (y",
        ("--test", "none"): "`test_images` (none) matches no path of an image; correct it",
    }
    for words, says in cases.items():
        assert says in refused(identify(folder, *words)), words
    assert main(["validate", str(suite)]) == 0
    for trained, tested, count in sides(tmp_path, suite):
        assert (trained, tested, count) == ({"B/1", "B/2", "B/4", "B/5"}, {"B/0", "B/3"}, 8)
    files = LocalFiles(Folders(tmp_path, tmp_path / "cache"), "image_folder", 1)
    params = {"domains": ("A", "B", "C"), "folder": "slides", "sha256": tree_sha256(folder), "side": 8}
    with pytest.raises(DataError, match="A: group 'A/0' has official test images and others"):
        ImageFolder(**params, groups=r"y(\d)", test_images="test-").load("A", files)
    plain = ImageFolder(**params)
    assert "test_images" not in plain.identity()
    assert plain.load("A", files).test is None


def test_numbered_folders_are_in_doubt_until_the_user_says_that_they_are_groups(identify, tmp_path, slides):
    folder, suite = slides("{site}/{kind}/{patient}/{slide}.png"), tmp_path / "mine.yaml"
    assert "nested folders, such as A/benign/0/0.png, are read as" in refused(identify(folder, "--suite", suite))
    assert identify(folder, "--group", r"/(\d+)/", "--suite", suite)[0] == 0
    assert yaml.safe_load(suite.read_text())["dataset"]["image_folder"]["groups"] == r"/(\d+)/"


def test_a_folder_that_is_an_official_part_keeps_its_patients_or_names_the_leak(identify, slides):
    code, out, _ = identify(slides("{site}/{side}/{kind}/p{patient}_{slide}.png"))
    said = "\n".join(out)
    assert (code, "official test: A 8, B 8, C 8" in said, r"`groups: (p\d+)`" in said) == (0, True, True)
    for side in ("train", "test"):  # now all patients are on both sides
        folder = slides(f"{{site}}/{side}/{{kind}}/p{{patient}}_{side}{{slide}}.png")
    said = "\n".join(identify(folder)[1])
    assert "leak: 18 names such as p0, each in several images: images that belong together; 18 of them have" in said
    assert "`groups:" not in said


@pytest.mark.parametrize("kind", ["patients in names", "a third column", "lists of two parts"])
def test_lists_of_images_are_found_with_their_groups_and_official_test(kind, identify, tmp_path):
    folder, suite = tmp_path / "listed", tmp_path / "mine.yaml"
    lines = {site: [] for site in "ABC"}
    for site, of in lines.items():
        for number in range(24):
            name = f"shots/case{site}{number // 4}-{number % 4}.png"
            name = name.replace("case" + site, "case") if kind == "patients in names" else name
            name = name.replace("shots", f"shots{site}")
            saved(folder / name, np.full((9, 9), 9 * number, np.uint8))
            of.append(f"{name} {1 + number % 2}" + (f" g{number // 4}" if kind == "a third column" else ""))
    for site, of in lines.items():
        parts = {f"{site}_train": of[8:], f"{site}_test": of[:8]} if kind == "lists of two parts" else {site: of}
        for name, some in parts.items():
            (folder / f"{name}.txt").write_text("\n".join(some))
    (folder / "readme.txt").write_text("These are images.\n")
    code, out, _ = identify(folder, "--suite", suite)
    assert (code, any(line.startswith("image_list: 72 listed images of 3 domains") for line in out)) == (0, True)
    assert "read 72 of 73 files; not read: 1 .txt; convert those that are images to .png or .jpg" in out
    params = yaml.safe_load(suite.read_text())["dataset"]["image_list"]
    assert (params["first_label"], params["classes"], params["domains"]) == (1, 2, [*"ABC"])
    wanted = {"patients in names": r"(case\d+)", "a third column": "column"}
    assert params["groups"] == wanted.get(kind, params["groups"])
    data = ImageList(**params | {"domains": (*"ABC",), "side": 8})
    sizes = data.sizes(LocalFiles(Folders(tmp_path, tmp_path / "cache"), data.name, 1))
    assert {*sizes.values()} == ({(16, 8)} if kind == "lists of two parts" else {24})
    assert main(["validate", str(suite)]) == 0
