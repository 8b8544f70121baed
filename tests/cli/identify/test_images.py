"""`msda-bench data identify` of folders and archives of images, and the suites that it writes."""

import errno
import gzip
import io
import itertools
import json
import os
import re
import shlex
import tarfile
from pathlib import Path

import pytest
import yaml
from PIL import Image

from msda_bench.cli.main import main
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.checksums import tree_sha256
from msda_bench_builtin.datasets import ImageFolder
from tests.cli.identify.conftest import refused
from tests.store.faulty import faults

CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
DOMAINS = ("one", "two", "three")


def images(folder, domains=DOMAINS, classes="ab", count=1):
    """A folder of black images, DOMAIN/CLASS/NUMBER.png."""
    for domain, name in itertools.product(domains, classes):
        (folder / domain / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            Image.new("RGB", (20, 20)).save(folder / domain / name / f"{number}.png")
    return folder


def test_a_copy_of_a_known_dataset_reports_missing_and_bad_files(identify, tmp_path, golden):
    folder = images(tmp_path / "kfold", ("Art Painting", "cartoon", "photo"), CLASSES, 2)
    for path in (folder / "photo/guitar").iterdir():
        path.unlink()
    (folder / "cartoon/dog/0.png").write_bytes(b"")
    (folder / "cartoon/dog/1.png").write_text("<html>")
    (folder / "photo/dog").rename(folder / "photo/Dog")
    code, out, err = identify(folder)
    assert (code, err, out[0]) == (0, [], f"{folder}: sha256 {tree_sha256(folder)}")
    golden("pacs.txt", "\n".join(out[1:]))


def test_two_commands_lead_from_a_folder_to_a_leaderboard(identify, capsys, tmp_path):
    folder, suite = images(tmp_path / "My images!", ("photo", "Line Art", "clip"), count=30), tmp_path / "mine.yaml"
    code, out, err = identify(folder, "--suite", suite)
    assert (code, err, out[1]) == (0, [], "image_folder: 180 images of 3 domains, DOMAIN/CLASS/FILE")
    assert out[-1] == f"wrote {suite}; next: MSDA_BENCH_DATA={tmp_path} msda-bench run {suite} --fetch"
    words = ["run", str(suite), "--out", str(tmp_path / "out"), "--executor", "inline", "--only", "target=clip,seed=0"]
    assert main(words) == 2
    assert "resnet18-f37072fd.pth" not in (said := capsys.readouterr().err.replace("\n", " "))
    assert "data of torchvision are missing: 1 file, size unknown to fetch" in said
    assert "add --fetch to `run`" in said
    # The exact test of n seeds reaches 2 / 2^n at best, times the comparisons.
    suite_seeds, compared = map(int, re.search(r"seeds: (\d+) # .* for (\d+) comparisons", suite.read_text()).groups())
    assert 2 / 2**suite_seeds * compared <= 0.05 < 2 / 2 ** (suite_seeds - 1) * compared
    small, text = "backbone: {convnet: {channels: [2], hidden: [4]}}", suite.read_text()
    for old, new in (("backbone: .*", small), ("side: 224", "side: 8"), ("epochs: 8", "epochs: 1")):
        text, count = re.subn(old, new, text)
        assert count == 1
    # Plain models, and domains standardised, need a network with frozen features.
    suite.write_text(re.sub(r"(?m)^  (SRC-domain|logistic|boosting|forest|CORAL)[\w-]*: .*\n", "", text))
    assert main(words) == 0
    assert "DARN" in capsys.readouterr().out
    assert list(tmp_path.glob("out/**/leaderboard.csv"))
    assert refused(identify(folder, "--suite", suite)) == f"{suite}: already exists; name another file"


AB, XY, XYZ = ("a", "b"), ("x", "y"), ("x", "y", "z")


def each(*levels):
    return ["/".join(names) for names in itertools.product(*levels)]


LAYOUTS = {
    "parts below domains": each(XYZ, ("Train", "crossval", "test", "full"), AB),
    "parts above domains": each(("val", "train_set"), XYZ, AB),
    "a level of one name, and one above": each(["data"], XYZ, ["images"], AB),
    "own sequences": [f"{x}/{a}/{x}{a}{number}" for x in XYZ for a in AB for number in "12"],
    "people between domains and classes": ["x/p1/a", "x/p1/b", "x/p2/a", "y/p3/a", "y/p3/b"],
    "sequences of the same names": each(XYZ, AB, "12"),
    "some deeper": [*each(XYZ, AB), "x/a/more/1"],
    "some beside": [*each(XYZ, AB), "x"],
    "dates, signs and numbers": each(("2021-1-11", "2021-11-1", "2021-1-1"), ("-1", "1", "0")),
    "separators, case and equal numbers": ["Real World/a b", "real_art/A-B", "x/a_b", "x/c"],
    "equal numbers": ["x/01", "x/02", "y/1", "y/2"],
    "a dropped separator": ["x/a_b", "x/c", "y/ab", "y/c"],
    "letters in both cases": each(XYZ, "aAb"),
    "domains named alike": ["x/a", "X/b", "y/a", "y/b"],
    "parts of one domain": each(("Train", "test"), AB),
    "a class and a domain named as a part": each(("x", "test"), ("train", "bus")),
    "parts in one domain alone": [*each(XY, AB), *each("z", ("train", "test"), AB)],
    "a domain of only test images": ["x/train/a", "x/test/a", "x/train/b", "y/test/a", "y/test/b"],
    "classes of one domain each": ["x/a", "x/b", "y/c", "y/d"],
}


def test_what_folders_mean_is_said_or_doubted(identify, tmp_path, capsys, golden):
    said = []
    for place, (title, folders) in enumerate(LAYOUTS.items()):
        folder, suite = tmp_path / f"set{place}", tmp_path / f"set{place}.yaml"
        for name, number in itertools.product(folders, range(2)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (9, 9)).save(folder / name / f"{number}.png")
        code, (_, *out), err = identify(folder, "--suite", suite)
        assert (code, suite.exists()) == ((2, False) if err else (0, True)), title
        # A doubt can be overruled; without one the suite is valid.
        assert (identify(folder, "--suite", suite, "--anyway")[0] if err else main(["validate", str(suite)])) == 0
        capsys.readouterr()
        (params,) = yaml.safe_load(suite.read_text())["dataset"].values()
        data = ImageFolder(**{**params, "domains": tuple(params["domains"])})
        sizes = data.sizes(LocalFiles(Folders(tmp_path, tmp_path / "cache"), "image_folder", 1))
        given = f"layout {params['layout']}, {params['classes']} classes, sizes {json.dumps(sizes)}"
        shown = (line.replace(str(folder), "FOLDER") for line in (*out, *err) if not line.startswith("wrote "))
        said += [f"{title}:", *shown, given, ""]
    golden("layouts.txt", "\n".join(said))


def test_images_of_any_ending_are_read_and_turned_and_the_rest_is_counted(identify, tmp_path):
    folder, suite = images(tmp_path / "mine", ("camera", "scan")), tmp_path / "mine.yaml"
    photo, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (30, 20)).save(photo, "JPEG", exif=exif)
    names = ("1.jfif", "2.jpe", "3.heic", "4", "5.2024", "6.png.part")
    for name, part in itertools.product(names, "ab"):
        (folder / "camera" / part / name).write_bytes(photo.getvalue())
    for name in ("x.heic", "notes.txt", "b/LICENSE", ".DS_Store"):
        (folder / "scan" / name).write_bytes(b"BM and no image")
    code, out, err = identify(folder, "--suite", suite)
    assert (code, err, out[-3]) == (0, [], "all 14 2")
    assert "turned: 12 images, as their EXIF orientation says (`upright`)" in out
    left = "not read: 1 .heic, 1 .txt, 1 without an ending; convert those that are images to .png or .jpg"
    assert out[-2] == f"read 16 of 19 files; {left}"
    assert "    upright: true\n" in suite.read_text()


def test_unusable_paths_are_one_line_and_do_not_block(identify, tmp_path):
    flat, suite = tmp_path / "flat", tmp_path / "s.yaml"
    flat.mkdir()
    Image.new("RGB", (9, 9)).save(flat / "1.png")
    unknown = "not recognised: expected a folder for each domain, and in it one for each class, with images"
    code, out, _ = identify(flat)
    assert (code, out[1:]) == (0, [unknown])
    (tmp_path / "t.npz").write_bytes(b"PK\x03\x04" + bytes(600))  # as a zip archive, but no compressed one of images
    assert refused(identify(tmp_path / "t.npz")).endswith("t.npz: is no npz archive; write it with numpy.savez")
    assert refused(identify(flat, "--suite", suite)) == (
        f"{flat}: no suite was written, since no dataset can read it unchanged"
    )
    nothing = tmp_path / "nothing"
    assert refused(identify(nothing)) == f"{nothing}: cannot be read: No such file or directory"
    one_class = images(tmp_path / "single", classes="a")
    invalid = (
        "no suite was written, since it would not be valid: dataset.image_folder.classes: must be at least 2, not 1"
    )
    assert refused(identify(one_class, "--suite", suite)) == f"{one_class}: {invalid}"
    folder = images(tmp_path / "mine")
    (folder / "one/back").symlink_to("..")
    line = f"{folder}/one/back: cannot be read: it leads back to a folder above it"
    assert refused(identify(folder)) == line
    (folder / "one/back").unlink()
    os.mkfifo(folder / "one/pipe")
    for path in (folder, folder / "one/pipe"):
        line = f"{folder}/one/pipe: cannot be read: it is neither a file nor a folder"
        assert refused(identify(path)) == line
    assert not suite.exists()


def test_an_incomplete_copy_still_gets_a_suite_that_reads_it(identify, capsys, tmp_path):
    folder, suite = images(tmp_path / "OfficeHome", ("Art", "Clipart", "Real World"), count=9), tmp_path / "mine.yaml"
    code, out, _ = identify(folder, "--suite", suite)
    assert (code, out[1]) == (0, "office_home_images: 54 images; incomplete, or another copy")
    assert "image_folder:" in suite.read_text()
    assert main(["validate", str(suite)]) == 0
    assert "targets Art, Clipart, Real World" in capsys.readouterr().out


def test_the_next_command_can_be_pasted_and_suites_are_written_atomically(identify, tmp_path):
    folder, suite = images(tmp_path / "my photos; touch x/set"), tmp_path / "a suite.yaml"
    for at in itertools.count():
        with faults(errno.ENOSPC, at) as faulty:
            code, out, err = identify(folder, "--suite", suite)
        if faulty.refused is None:
            break
        assert code in (0, 2)
        assert err == [f"msda-bench: error: {suite}: cannot be written: No space left on device"] * (code == 2)
        assert [path.name for path in tmp_path.iterdir() if "suite" in path.name] == ["a suite.yaml"] * (not code)
        suite.unlink(missing_ok=True)
    assert "replace" in faulty.calls
    words = [f"MSDA_BENCH_DATA={folder.parent}", "msda-bench", "run", str(suite), "--fetch"]
    assert shlex.split(out[-1].partition("next: ")[2]) == words


BYTES = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize("name", ["null", "1e5", "x" * 70, "#b", "..", "a:b", "c\\d", "e\x85", BYTES])
def test_suites_are_valid_or_a_line_names_the_folder_to_rename(identify, tmp_path, monkeypatch, name):
    place = "set/one" if name == ".." else "set" if name == BYTES else name
    folder, suite = images(tmp_path / place, ("two", "three", name), count=3), tmp_path / "mine.yaml"
    if name == "..":
        monkeypatch.chdir(folder)
        folder = Path("../one/../one")
    result = identify(folder, "--suite", suite)
    if name == BYTES:
        assert refused(result) == f"{folder}: a name in it is not UTF-8, so no suite can hold it; rename it"
    elif set(name) & set(":\\\x85"):
        assert f"no suite can hold the names {name!a}" in refused(result)
        assert refused(result).endswith("rename these folders")
    else:
        assert (result[0], result[2], result[1][-1].startswith("wrote")) == (0, [], True)
        assert main(["validate", str(suite)]) == 0
        return
    assert not suite.exists()


def test_names_of_folders_reach_the_terminal_as_text(identify, tmp_path):
    code, out, err = identify(images(tmp_path / "set", ("[red]one", "two\x1b[2J", "three"), "a"))
    assert (code, err, out[-4:-1]) == (0, [], ["class [red]one three two [2J", "a 1 1 1", "all 1 1 1"])


def test_images_in_parquet_files_of_the_hub_are_unpacked(identify, tmp_path):
    """Two parts, classes as numbers whose names are in the file, and rows that cannot be used."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    black = io.BytesIO()
    Image.new("RGB", (9, 9)).save(black, "PNG")
    names = {"label": {"names": ["cat", "a/b"], "_type": "ClassLabel"}}
    image = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    schema = pa.schema({"domain": pa.string(), "image": image, "label": pa.int64()}).with_metadata(
        {"huggingface": json.dumps({"info": {"features": names}})}
    )
    rows = [
        {"image": {"bytes": black.getvalue(), "path": ("x.png", None)[number % 2]}, "domain": domain, "label": label}
        for domain in ("art", "photo") for label in (0, 1) for number in range(3)
    ]  # fmt: skip
    bad = [{**rows[0], "label": -1}, {**rows[0], "domain": None}, {**rows[0], "image": None}]
    hub, folder, suite = tmp_path / "hub", tmp_path / "mine", tmp_path / "mine.yaml"
    (hub / "data").mkdir(parents=True)
    for part, some in {"train": rows + bad, "test": rows}.items():
        pq.write_table(pa.Table.from_pylist(some, schema), hub / f"data/{part}-00000-of-00001.parquet")
    assert "--unpack FOLDER writes them" in refused(identify(hub))
    words = (hub, "--domain", "domain", "--suite", suite, "--unpack", folder, "--label")
    assert "no column labels; it has domain, image, label" in refused(identify(*words, "labels"))
    assert [path.name for path in tmp_path.iterdir()] == ["hub"]
    code, out, err = identify(*words, "label")
    assert (code, err) == (0, [])
    assert out[0] == f"unpacked to {folder}; 3 rows without a domain, class or image are left out"
    assert out[-6:-1] == ["class art photo", "a%2Fb 6 6", "cat 6 6", "all 12 12", "read 24 of 24 files"]
    assert 'layout: "DOMAIN/SPLIT/CLASS"' in suite.read_text()
    assert refused(identify(*words, "label")) == f"{folder}: already exists; name another folder"
    assert "no Parquet file with a column of images" in refused(
        identify(folder, "--domain", "d", "--label", "l", "--unpack", tmp_path / "more")
    )


def long_name(size):
    """The beginning of a tar archive whose first member has a name of this size."""
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, size
    return head.tobuf(tarfile.GNU_FORMAT)


BACKWARD = tarfile.TarInfo("a/b/1.png")
BACKWARD.pax_headers = {"size": "-512"}  # Python would go round in circles


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(long_name(3 << 30) + bytes(1 << 24)), "not a tar archive, or a compressed or damaged one"),
        (long_name(1 << 21) + bytes(1 << 22), f"a part claims {1 << 21} bytes"),
        (BACKWARD.tobuf(tarfile.PAX_FORMAT) + bytes(1 << 12), "not a tar archive"),
        (long_name(9) * 3000, "not a tar archive"),
    ],
    ids=["compressed", "long", "backward", "deep"],
)
def test_archives_that_claim_much_are_not_read(identify, monkeypatch, tmp_path, content, words):
    monkeypatch.setattr("zlib.decompressobj", None)  # nothing is unpacked
    (tmp_path / "set.tar.gz").write_bytes(content)
    assert words in refused(identify(tmp_path / "set.tar.gz"))
