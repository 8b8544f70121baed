"""`msda-bench data identify` of images, tables and arrays, and the suites that it writes."""

from __future__ import annotations

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

import numpy as np
import pytest
from PIL import Image

import msda_bench as mb
from msda_bench.api import DataError
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench.data.check import tree_sha256
from msda_bench_builtin.datasets import Hospitals, Pacs
from tests.reader import Reader, blocks
from tests.store.faulty import faults

CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
DOMAINS = ("one", "two", "three")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))


def images(folder: Path, domains=DOMAINS, classes="ab", count: int = 1) -> Path:
    """A folder of black images, DOMAIN/CLASS/NUMBER.png."""
    for domain, name in itertools.product(domains, classes):
        (folder / domain / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            Image.new("RGB", (20, 20)).save(folder / domain / name / f"{number}.png")
    return folder


@pytest.fixture
def identify(capsys):
    """`identify(words)`: the exit code, the lines on stdout with single spaces, and those on stderr."""

    def run(*words: object) -> tuple[int, list[str], list[str]]:
        code = main(["data", "identify", *map(str, words)])
        out, err = capsys.readouterr()
        return code, [" ".join(line.split()) for line in out.splitlines()], err.splitlines()

    return run


def refused(result: tuple[int, list[str], list[str]]) -> str:
    code, _, (line,) = result
    assert code == 2
    return line.removeprefix("msda-bench: error: ")


def test_a_copy_of_a_known_dataset_reports_missing_and_bad_files(identify, tmp_path) -> None:
    folder = images(tmp_path / "kfold", ("Art Painting", "cartoon", "photo"), CLASSES, 2)
    for path in (folder / "photo/guitar").iterdir():
        path.unlink()
    (folder / "cartoon/dog/0.png").write_bytes(b"")
    (folder / "cartoon/dog/1.png").write_text("<html>")
    (folder / "photo/dog").rename(folder / "photo/Dog")
    code, out, err = identify(folder)
    counts = {"art_painting": 14, "cartoon": 14, "photo": 12}
    assert (code, err) == (0, [])
    assert out == [
        f"{folder}: sha256 {tree_sha256(folder)}",
        "pacs: 40 images; incomplete, or another copy",
        *(
            f"differs: domain {name} has {counts[name]} images, published are {count}"
            for name, count in Pacs.published.items()
            if name != "sketch"
        ),
        "missing: domain sketch, 3929 images",
        "missing: domain photo has no images of classes 1: guitar",
        "bad: empty (0 bytes), 1: cartoon/dog/0.png",
        "bad: not an image, 1: cartoon/dog/1.png",
        "odd: class folders that differ only in case are merged, 2: Art Painting/dog, photo/Dog",
        *Pacs.facts,
        "class art_painting cartoon photo",
        *(f"{name} 2 2 {0 if name == 'guitar' else 2}" for name in CLASSES),
        "all 14 14 12",
    ]


def test_the_real_archive_of_pacs_is_known(identify) -> None:
    archive = Path(__file__).parents[3] / "shared/data/pacs/pacs_q72.tar"
    if not archive.exists():
        pytest.skip("the archive of PACS is not on this machine")
    code, out, err = identify(archive)
    assert (code, err, out[1]) == (0, [], "pacs: all 9991 images, re-encoded as JPEG of quality 72")
    assert out[-1] == "all 2048 2344 1670 3929"


def shrink(suite: Path) -> None:
    """Replaces the suite's large network by a small one, on smaller images for one epoch."""
    small = "backbone: {convnet: {channels: [2], hidden: [4]}}"
    text = suite.read_text()
    for old, new in (("backbone: .*", small), ("side: 224", "side: 8"), ("epochs: 8", "epochs: 1")):
        text, count = re.subn(old, new, text)
        assert count == 1
    suite.write_text(text)


def test_two_commands_lead_from_a_folder_to_a_leaderboard(identify, capsys, tmp_path) -> None:
    folder, suite = images(tmp_path / "My images!", ("photo", "Line Art", "clip"), count=30), tmp_path / "mine.yaml"
    code, out, err = identify(folder, "--suite", suite)
    assert (code, err, out[1]) == (0, [], "image_folder: 180 images of 3 domains, DOMAIN/CLASS/FILE")
    assert out[-1] == f"wrote {suite}; next: MSDA_BENCH_DATA={tmp_path} msda-bench run {suite} --fetch"
    words = ["run", str(suite), "--out", str(tmp_path / "out"), "--executor", "inline", "--only", "target=clip,seed=0"]
    assert main(words) == 2
    assert "resnet18-f37072fd.pth" not in (said := capsys.readouterr().err.replace("\n", " "))
    assert "data of torchvision are missing: 1 file, size unknown to fetch" in said
    assert "add --fetch to `run`" in said
    shrink(suite)
    assert main(words) == 0
    assert "DARN" in capsys.readouterr().out
    assert list(tmp_path.glob("out/**/leaderboard.csv"))
    assert refused(identify(folder, "--suite", suite)) == f"{suite}: already exists; name another file"


def test_unusable_paths_are_one_line_and_do_not_block(identify, tmp_path) -> None:
    flat, suite = tmp_path / "flat", tmp_path / "s.yaml"
    flat.mkdir()
    Image.new("RGB", (9, 9)).save(flat / "1.png")
    unknown = "not recognised: expected a folder for each domain, and in it one for each class, with images"
    code, out, _ = identify(flat)
    assert (code, out[1:]) == (0, [unknown])
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


def test_an_incomplete_copy_still_gets_a_suite_that_reads_it(identify, capsys, tmp_path) -> None:
    folder, suite = images(tmp_path / "OfficeHome", ("Art", "Clipart", "Real World"), count=9), tmp_path / "mine.yaml"
    code, out, _ = identify(folder, "--suite", suite)
    assert (code, out[1]) == (0, "office_home_images: 54 images; incomplete, or another copy")
    assert "image_folder:" in suite.read_text()
    assert main(["validate", str(suite)]) == 0
    assert "targets Art, Clipart, Real World" in capsys.readouterr().out


ABSENT = "source_1, source_2, target"
HELD = "it holds domains 3: one, three, two; set `domains` in the suite"
FEW = "has 12 examples to train on, fewer than train = 13; set a smaller `train`"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("train", 13, [f"dataset image_folder: domain '{domain}' {FEW}" for domain in ("three", "two")]),
        ("classes", None, ["HERE: 2 classes expected, it has 3: a, b, c; set `classes` in the suite"]),
        (
            "domains",
            None,
            [f"HERE: no images of domains 3: {ABSENT}; {HELD}"],
        ),
    ],
)
def test_validate_and_run_check_sizes_before_decoding_images(identify, capsys, tmp_path, key, value, expected) -> None:
    folder, suite = images(tmp_path / "mine", classes="abc", count=4), tmp_path / "mine.yaml"
    images(folder, ("one",), "abc", 9)
    assert identify(folder, "--suite", suite)[0] == 0
    changed = "" if value is None else f"    {key}: {value}"
    suite.write_text(re.sub(rf"(?m)^    {key}: .*", changed, suite.read_text()))
    for words in (["validate", str(suite)], ["run", str(suite), "--out", str(tmp_path / "out")]):
        assert main(words) == 2
        assert [line for line in capsys.readouterr().err.splitlines() if "error: " in line] == [
            f"msda-bench: error: {line.replace('HERE', str(folder))}" for line in expected
        ]
    assert not list((tmp_path / "cache/derived").glob("*.npy"))


def test_each_fault_is_a_line_and_the_rerun_resumes(identify, capsys, tmp_path) -> None:
    """The commands of docs/images.md on the worst of folders: nothing decoded is lost by what is mended."""
    folder, suite = images(tmp_path / "mine", ("Art",), count=5), tmp_path / "mine.yaml"
    images(folder, ("Photo",), "aBc", 5)
    images(folder, ("Clipart",), "abc", 5)
    whole = io.BytesIO()
    Image.new("RGB", (200, 200)).save(whole, "JPEG")
    half = whole.getvalue()[:400]
    bad = {"empty (0 bytes)": b"", "not an image": b"<html>404", "truncated or damaged": half}
    names = {}
    for number, (why, content) in enumerate(bad.items()):
        paths = [folder / f"Art/a/{number}{copy}.jpg" for copy in "xyz"]
        for path in paths:
            path.write_bytes(content)
        names[why] = ", ".join(path.relative_to(folder).as_posix() for path in paths)
    code, out, _ = identify(folder, "--suite", suite)
    assert code == 0
    assert [line for line in out if line.startswith(("bad", "missing", "odd"))] == [
        "missing: domain Art has no images of classes 1: c",
        *(f"bad: {why}, 3: {files}" for why, files in names.items()),
        "odd: class folders that differ only in case are merged, 2: Art/b, Photo/B",
    ]
    shrink(suite)
    words = ["run", str(suite), "--out", str(tmp_path / "out"), "--executor", "inline", "--only", "seed=0,method=SRC"]
    assert main(words) == 2
    remedy = "replace or remove them, then run the same command again: only what is missing is made"
    assert [line for line in capsys.readouterr().err.splitlines() if "error: " in line] == [
        f"msda-bench: error: image_folder: Art: {why}: 3 files: {files}; {remedy}" for why, files in names.items()
    ]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache/derived").rglob("*.npy")}
    assert len(kept) == 2  # the other domains
    without = json.dumps(sorted(name for files in names.values() for name in files.split(", ")))
    suite.write_text(suite.read_text().replace("    side:", f"    without: {without}\n    side:"))
    assert main(words) == 0
    assert "SRC" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    folder.rename(tmp_path / "moved")
    assert main([*words, "--out", str(tmp_path / "other")]) == 2
    assert f"mine: not in MSDA_BENCH_DATA ({tmp_path})" in capsys.readouterr().err


def test_the_next_command_can_be_pasted_and_suites_are_written_atomically(identify, tmp_path) -> None:
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
    assert "link" in faulty.calls
    words = [f"MSDA_BENCH_DATA={folder.parent}", "msda-bench", "run", str(suite), "--fetch"]
    assert shlex.split(out[-1].partition("next: ")[2]) == words


BYTES = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize("name", ["null", "1e5", "x" * 70, "#b", "..", "a:b", "c\\d", "e\x85", BYTES])
def test_suites_are_valid_or_a_line_names_the_folder_to_rename(identify, tmp_path, monkeypatch, name) -> None:
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


def long_name(size: int) -> bytes:
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
def test_archives_that_claim_much_are_not_read(identify, monkeypatch, tmp_path, content, words) -> None:
    monkeypatch.setattr("zlib.decompressobj", None)  # nothing is unpacked
    (tmp_path / "set.tar.gz").write_bytes(content)
    assert words in refused(identify(tmp_path / "set.tar.gz"))


def test_names_of_folders_reach_the_terminal_as_text(identify, tmp_path) -> None:
    code, out, err = identify(images(tmp_path / "set", ("[red]one", "two\x1b[2J", "three"), "a"))
    assert (code, err, out[-3:]) == (0, [], ["class [red]one three two [2J", "a 1 1 1", "all 1 1 1"])


def table(folder: Path, rows: int = 60) -> Path:
    """Three sites, of which one has one class alone and one no labels; a leak, an identifier and a damaged number."""
    path = folder / "t.csv"
    lines = ["site,ill,age,name,code,dose,empty,note,visit"]
    for site in "abcd":
        for row in range(rows):
            ill = {"c": "1", "d": ""}.get(site, str(row * 7 % 5 % 2))
            dose = "much" if row == 3 else str(row % 4)
            note = f"{'good' if row % 2 else 'bad'} day"
            fields = (site, ill, row * 3.5, f"{site}{row}", "xy"[ill == "1"], dose, "", note, f"{site}{row // 3}")
            lines.append(",".join(map(str, fields)))
    path.write_text("\n".join(lines))
    return path


def test_a_table_is_looked_through_and_its_first_suite_is_valid(identify, tmp_path, capsys) -> None:
    suite = tmp_path / "suites" / "mine.yaml"
    suite.parent.mkdir()
    options = shlex.split("--domain site --label ill --text note --group visit --unlabelled drop --suite")
    code, out, _ = identify(table(tmp_path), *options, suite)
    said = "\n".join(out)
    assert code == 0
    for line in (
        "120 rows of 2 domains, classification, 2 classes",
        "leak: each value of column 'code' has one label alone, so it is in `drop`",
        "odd: column 'name' has 240 different texts, so it is in `drop`",
        "odd: column 'dose' holds numbers, but 'much' in row 4, so it is in `categories`",
        "no label: 60 rows have no label (column 'ill'): domain 'd' has no labels at all",
        "one class: domain 'c' has one class alone, '1'; this domain is left out",
        "left out: empty (empty)",
        "a: 0 60 %, 1 40 %",
    ):
        assert line in said, line
    assert 'file: "../t.csv"' in suite.read_text()
    assert main(["validate", str(suite)]) == 0
    schemes = r"pooled|ensemble|adapt|target_only|regularised|\w+_regression|\w+_boosting|\w+_forest"
    methods = re.findall(rf"^  (\w+) +(?:{schemes})", capsys.readouterr().out, re.MULTILINE)
    # One source alone: nothing to weigh.
    assert methods == ["SRC", "CORAL", "DANN", "logistic", "forest", "TAR"]


def test_a_survey_of_many_countries_says_how_to_keep_what_is_left_out(identify, tmp_path) -> None:
    rows = []
    for place, land in enumerate(("Österreich", "日本", "Réunion")):
        for row in range(70):
            age = "k. A." if row == 3 else row * 7 % 83
            vote, rule = ("ja" if (row + place) % step else "nein" for step in (2, 3))
            rows.append(f'{land},{age},"0,{row + 10}",{row * 5 % 17},{vote},{rule}')
    path, suite = tmp_path / "survey.csv", tmp_path / "mine.yaml"
    path.write_text("\n".join(["Land,Alter (Jahre),Gewicht,Kinder,Würden Sie?,Regel", *rows]), "utf-8-sig")
    options = ("--label", "Würden Sie?", "--predictions", "Regel", "--suite", suite)
    line = f"{path}: no column 'land' for `domain`; did you mean 'Land'?"
    assert refused(identify(path, "--domain", "land", *options)) == line
    code, out, _ = identify(path, "--domain", "Land", *options)
    assert code == 0
    age = "odd: column 'Alter (Jahre)' holds numbers, but 'k. A.' in row 4, so it is in `drop`"
    weight = "odd: column 'Gewicht' holds numbers with a decimal comma, such as '0,10', so it is in `drop`"
    missing = "(a missing value is empty or NA)"
    assert f"{age}; to learn from it correct it {missing}" in out
    assert f"{weight}; to learn from it write points {missing}" in out
    assert "given predictions: right in 49 % of the rows with a label" in out


@pytest.mark.parametrize("shared", [False, True])
def test_a_domain_without_labels_is_the_target_of_the_suite_that_validators_choose_for(
    identify, tmp_path, capsys, shared
) -> None:
    """If groups lie in several domains, the target is held out, and some of its rows alone are answered."""
    path, suite = table(tmp_path), tmp_path / "mine.yaml"
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join([lines[0], *(re.sub(r",[abcd](\d+)$", r",\1" if shared else r",v\1", x) for x in lines[1:])])
    )
    options = shlex.split(f"--domain site --label ill {'--group visit' if shared else ''} --suite")
    code, out, _ = identify(path, *options, suite)
    said = "\n".join(out)
    assert code == 0
    assert "180 rows of 3 domains" in said
    assert "targets without labels: d; how good a method is there cannot be known, and validators choose" in said
    assert "(no label) 0 0 60" in said
    text = suite.read_text()
    assert ("transductive" in text, "TAR" in text, "compare" in text) == (not shared, False, False)
    text = re.sub(r"  (ensemble|CORAL|DANN|BNM|boosting|forest): .*\n", "", text)  # which take their time
    suite.write_text(text.replace("epochs: 8, steps: 30", "epochs: 1, steps: 2").replace("seeds: 5", "seeds: 1"))
    folder = tmp_path / "out"
    assert main(["run", str(suite), "--executor", "inline", "--out", str(folder)]) == 0
    assert "How good a method is at d, and which is best, cannot be known" in " ".join(capsys.readouterr().out.split())
    answers = mb.load_predictions(folder / "t-csv")
    assert set(answers["method"]) == {"SRC", "DARN", "logistic"}
    for _, rows in answers.groupby("method", observed=True):
        assert len(rows) == (15 if shared else 60)


def test_given_predictions_are_a_reference_row_of_the_suite(identify, tmp_path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{site},{rng.random():.3f},{row % 2},{row % 3 % 2}" for site in "abc" for row in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["site,x,y,vendor", *lines]))
    site, y = np.repeat(["a", "b", "c"], 30), np.tile([0, 1], 45)
    np.savez(tmp_path / "t.npz", x=rng.normal(size=(90, 3)), y=y, site=site, vendor=y)
    for name in ("t.csv", "t.npz"):
        suite = tmp_path / f"{name}.yaml"
        options = shlex.split("--domain site --label y --predictions vendor --suite")
        code, out, _ = identify(tmp_path / name, *options, suite)
        assert (code, "vendor" in " ".join(out[2:-1])) == (0, False)  # no input, and so no leak
        only = ["--only", "method=given,seed=0", "--executor", "inline", "--out", str(tmp_path / "out")]
        assert main(["run", str(suite), *only]) == 0
        runs = mb.load_results(tmp_path / "out" / name.replace(".", "-"))
        given = runs[(runs["method"] == "given") & (runs["seed"] == 0)]
        assert given["reference"].all()
        assert (given["score"] == 100).all() == (name == "t.npz")


def test_arrays_and_a_regression_get_a_suite_too(identify, tmp_path, capsys) -> None:
    site, rng = np.repeat(["a", "b", "c"], 40), np.random.default_rng(1)
    np.savez(tmp_path / "t.npz", features=rng.normal(size=(120, 4)), y=rng.normal(size=120), site=site)
    suite = tmp_path / "mine.yaml"
    code, out, _ = identify(tmp_path / "t.npz", "--domain", "site", "--label", "y", "--suite", suite)
    assert (code, "120 rows of 3 domains, regression" in "\n".join(out)) == (0, True)
    assert main(["validate", str(suite)]) == 0
    assert "BNM" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--domain site", "a table or arrays need both --domain and --label"),
        ("--domain hospital --label ill", "no column 'hospital' for `domain`"),
        ("--domain site --label age --text words", "no column 'words' for `text`"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line(identify, tmp_path, options, says) -> None:
    assert says in refused(identify(table(tmp_path), *options.split()))


@pytest.mark.slow
def test_following_the_page_on_own_data_ends_in_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the real folders of data
    data = Hospitals()
    try:
        [LocalFiles(dataset=data.name).path(file) for file in data.files]
    except DataError as error:
        pytest.skip(str(error))
    reader = Reader(tmp_path)
    for block in blocks("own-data.md"):
        reader.follow(block)
        for suite in reader.place.glob("*.yaml"):  # smaller than the page's
            text = suite.read_text().replace("targets: all", "targets: [hungary]").replace("budget: 3", "budget: 1")
            text = re.sub(r"  boosting: .*\n", "", re.sub("seeds: [59]", "seeds: 1", text)).replace(
                "0.001, 0.003, 0.01", "0.003"
            )
            suite.write_text(text.replace("epochs: 8, steps: 30", "epochs: 2, steps: 10"))
    said = " ".join(reader.said.split())
    assert "table: 920 rows of 4 domains, classification, 2 classes" in said
    assert "is valid: 1 experiment, 9 cells" in said
    assert "balanced accuracy in percent" in said
    assert "9 of 9 cells selected: 9 trained" in said
    assert "no label: 200 rows have no label (column 'disease'): domain 'long_beach' has no labels at all" in said
    assert "targets without labels: long_beach" in said
    assert "How good a method is at long_beach, and which is best, cannot be known" in said
    assert said.count("is valid: 1 experiment") == 4
    assert re.search(r"method BNM CORAL .* row 0 0\.\d\d", said)
