"""`msda-bench data identify`, and the suite that it writes."""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import json
import os
import re
import shlex
import shutil
import tarfile
import zlib
from pathlib import Path

import pytest
from PIL import Image

from msda_bench.cli.main import main
from msda_bench.data.check import tree_sha256
from msda_bench_builtin.datasets import DomainNet, Pacs
from tests.store.faulty import faults

CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))


def images(folder: Path, names: dict[str, tuple[int, int, int]]) -> Path:
    for name, colour in names.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 20), colour).save(folder / name)
    return folder


def identify(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[str], list[str]]:
    code = main(["data", "identify", *map(str, words)])
    out, err = capsys.readouterr()
    return code, [" ".join(line.split()) for line in out.splitlines()], err.splitlines()


def test_a_copy_of_a_known_dataset_reports_missing_and_bad_files(capsys, tmp_path) -> None:
    some = {
        f"{domain}/{name}/{number}.png": (0, 0, 0)
        for domain in ("Art Painting", "cartoon", "photo") for name in CLASSES for number in range(2)
        if (domain, name) != ("photo", "guitar")
    }  # fmt: skip
    folder = images(tmp_path / "kfold", some)
    (folder / "cartoon/dog/0.png").write_bytes(b"")
    (folder / "cartoon/dog/1.png").write_text("<html>")
    (folder / "photo/dog").rename(folder / "photo/Dog")
    code, out, err = identify(capsys, folder)
    assert (code, err) == (0, [])
    assert out == [
        f"{folder}: sha256 {tree_sha256(folder)}",
        "pacs: 40 images; incomplete, or another copy",
        *(f"differs: domain {name} has {14 - 2 * (name == 'photo')} images, published are {count}"
          for name, count in Pacs.published.items() if name != "sketch"),
        "missing: domain sketch, 3929 images",
        "missing: domain photo has no images of classes 1: guitar",
        "bad: empty (0 bytes), 1: cartoon/dog/0.png",
        "bad: not an image, 1: cartoon/dog/1.png",
        "odd: class folders that differ only in case are merged, 2: Art Painting/dog, photo/Dog",
        *Pacs.facts,
        "class art_painting cartoon photo",
        *(f"{name} 2 2 {0 if name == 'guitar' else 2}" for name in CLASSES),
        "all 14 14 12",
    ]  # fmt: skip


def test_domainnet_counts_what_its_lists_name(capsys, tmp_path) -> None:
    names = {f"{domain}/{name}/1.png": (0, 0, 0) for domain in DomainNet.domains for name in ("cat", "dog")}
    folder = images(tmp_path / "net", names)
    for domain in DomainNet.domains:
        (folder / f"{domain}_train.txt").write_text(f"{domain}/cat/1.png 0\n{domain}/cat/2.png 0\n")
        (folder / f"{domain}_test.txt").write_text(f"{domain}/dog/1.png 1\n")
    (folder / "real_test.txt").unlink()
    code, out, err = identify(capsys, folder)
    assert (code, err) == (0, [])
    assert out[1] == "domainnet: 10 listed images"
    assert "missing: domain clipart, listed files are not there, 1: clipart/cat/2.png" in out
    assert f"missing: {folder}: no list real_test.txt, there or in txt; put it there" in out
    assert out[-4:] == [
        "class clipart infograph painting quickdraw sketch",
        *("cat 1 1 1 1 1", "dog 1 1 1 1 1", "all 2 2 2 2 2"),
    ]


def test_the_real_archive_of_pacs_is_known(capsys, tmp_path) -> None:
    archive = Path(__file__).parents[3] / "shared/data/pacs/pacs_q72.tar"
    if not archive.exists():
        pytest.skip("the archive of PACS is not on this machine")
    code, out, err = identify(capsys, archive)
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


def test_two_commands_lead_from_a_folder_to_a_leaderboard(capsys, tmp_path, monkeypatch) -> None:
    colours = {"a": (250, 0, 0), "b": (0, 0, 250)}
    some = {
        f"{domain}/{name}/{number}.png": colour
        for domain in ("photo", "Line Art", "clip") for name, colour in colours.items() for number in range(30)
    }  # fmt: skip
    folder = images(tmp_path / "My images!", some)
    suite = tmp_path / "mine.yaml"
    code, out, err = identify(capsys, folder, "--suite", suite)
    assert (code, err) == (0, [])
    assert out[1] == "image_folder: 180 images of 3 domains, DOMAIN/CLASS/FILE"
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
    assert identify(capsys, folder, "--suite", suite)[0::2] == (
        2,
        [f"msda-bench: error: {suite}: already exists; name another file"],
    )


def test_an_unrecognised_folder_is_reported(capsys, tmp_path) -> None:
    code, out, _ = identify(capsys, images(tmp_path / "flat", {"1.png": (0, 0, 0)}))
    assert (code, out[1:]) == (
        0,
        ["not recognised: expected a folder for each domain, and in it one for each class, with images"],
    )
    code, _, err = identify(capsys, tmp_path / "flat", "--suite", tmp_path / "s.yaml")
    assert code == 2
    assert err == [
        f"msda-bench: error: {tmp_path / 'flat'}: no suite was written, since no dataset can read it unchanged"
    ]
    assert identify(capsys, tmp_path / "nothing")[2] == [
        f"msda-bench: error: {tmp_path / 'nothing'}: cannot be read: No such file or directory"
    ]


def test_an_incomplete_copy_still_gets_a_suite_that_reads_it(capsys, tmp_path) -> None:
    some = {f"{d}/{c}/{n}.png": (0, 0, 0) for d in ("Art", "Clipart", "Real World") for c in "ab" for n in range(9)}
    folder, suite = images(tmp_path / "OfficeHome", some), tmp_path / "mine.yaml"
    code, out, _ = identify(capsys, folder, "--suite", suite)
    assert (code, out[1]) == (0, "office_home_images: 54 images; incomplete, or another copy")
    assert "image_folder:" in suite.read_text()
    assert main(["validate", str(suite)]) == 0
    assert "targets Art, Clipart, Real World" in capsys.readouterr().out


def test_cyclic_links_and_pipes_are_one_line_and_do_not_block(capsys, tmp_path) -> None:
    folder = images(tmp_path / "mine", {"a/x/1.png": (0, 0, 0)})
    (folder / "a/back").symlink_to("..")
    start = "msda-bench: error: "
    assert identify(capsys, folder)[2] == [
        f"{start}{folder}/a/back: cannot be read: it leads back to a folder above it"
    ]
    (folder / "a/back").unlink()
    os.mkfifo(folder / "a/pipe")
    for path in (folder, folder / "a/pipe"):
        line = f"{start}{folder}/a/pipe: cannot be read: it is neither a file nor a folder"
        assert identify(capsys, path)[2] == [line]


def suite_of(text: str, **changed: object) -> str:
    """A suite with other dataset parameters; None removes one."""
    lines = text.splitlines()
    for key, value in changed.items():
        (place,) = (number for number, line in enumerate(lines) if line.startswith(f"    {key}:"))
        lines[place] = "" if value is None else f"    {key}: {json.dumps(value)}"
    return "\n".join(lines)


def test_validate_and_run_check_sizes_before_decoding_images(capsys, tmp_path) -> None:
    counts = {"one": 9, "two": 4, "three": 4}
    some = {
        f"{domain}/{name}/{number}.png": (0, 0, 0)
        for domain, count in counts.items() for name in "abc" for number in range(count)
    }  # fmt: skip
    folder, suite = images(tmp_path / "mine", some), tmp_path / "mine.yaml"
    assert identify(capsys, folder, "--suite", suite)[0] == 0
    text = suite.read_text()
    few = "has 12 examples to train on, fewer than train = 13; set a smaller `train`"
    held = "it holds domains 3: one, three, two"
    for changed, expected in (
        ({"train": 13}, [f"dataset image_folder: domain '{domain}' {few}" for domain in ("three", "two")]),
        ({"classes": None}, [f"{folder}: 2 classes expected, it has 3: a, b, c; set `classes` in the suite"]),
        (
            {"domains": None},
            [f"{folder}: no images of domains 3: source_1, source_2, target; {held}; set `domains` in the suite"],
        ),
    ):
        suite.write_text(suite_of(text, **changed))
        for words in (["validate", str(suite)], ["run", str(suite), "--out", str(tmp_path / "out")]):
            assert main(words) == 2
            assert [line for line in capsys.readouterr().err.splitlines() if "error: " in line] == [
                f"msda-bench: error: {line}" for line in expected
            ]
    assert not list((tmp_path / "cache/derived").glob("*.npy"))


def spoilt(folder: Path) -> None:
    """Puts everything found in users' folders into the domain `Art`, three times."""
    whole = io.BytesIO()
    Image.new("RGB", (200, 200), (1, 2, 3)).save(whole, "JPEG")
    for number in range(3):
        put = folder / f"Art/a/{number}"
        put.with_suffix(".half.jpg").write_bytes(whole.getvalue()[:400])
        put.with_suffix(".none.jpg").write_bytes(b"")
        put.with_suffix(".text.jpg").write_text("<html>404")
        Image.new("CMYK", (20, 20)).save(put.with_suffix(".cmyk.jpg"))
        Image.new("I;16", (20, 20)).save(put.with_suffix(".deep.png"))
        Image.new("RGB", (20, 20)).save(
            put.with_suffix(".moves.gif"), save_all=True, append_images=[Image.new("RGB", (20, 20), "red")]
        )
    Image.new("1", (10_000, 10_000)).save(folder / "Art/a/huge.png")


def test_each_fault_is_a_line_and_the_rerun_resumes(capsys, tmp_path, caplog) -> None:
    """The commands of docs/images.md on the worst of folders: nothing decoded is lost by what is mended."""
    classes = {"Art": "ab", "Photo": "aBc", "Clipart": "abc"}
    some = {
        f"{domain}/{name}/{number}.png": (0, 0, 0)
        for domain, names in classes.items() for name in names for number in range(5)
    }  # fmt: skip
    folder, suite = images(tmp_path / "mine", some), tmp_path / "mine.yaml"
    spoilt(folder)
    code, out, _ = identify(capsys, folder, "--suite", suite)
    assert code == 0
    assert [line for line in out if line.startswith(("bad", "missing", "odd"))] == [
        "missing: domain Art has no images of classes 1: c",
        "bad: empty (0 bytes), 3: Art/a/0.none.jpg, Art/a/1.none.jpg, Art/a/2.none.jpg",
        "bad: larger than 50 megapixels, 1: Art/a/huge.png",
        "bad: not an image, 3: Art/a/0.text.jpg, Art/a/1.text.jpg, Art/a/2.text.jpg",
        "bad: truncated or damaged, 3: Art/a/0.half.jpg, Art/a/1.half.jpg, Art/a/2.half.jpg",
        "odd: class folders that differ only in case are merged, 2: Art/b, Photo/B",
    ]
    shrink(suite)
    words = ["run", str(suite), "--out", str(tmp_path / "out"), "--executor", "inline", "--only", "seed=0,method=SRC"]
    assert main(words) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    assert [line.partition("; replace")[0] for line in lines] == [
        f"msda-bench: error: image_folder: Art: {what}"
        for what in (
            "empty (0 bytes): 3 files: Art/a/0.none.jpg, Art/a/1.none.jpg, Art/a/2.none.jpg",
            "larger than 50 megapixels: 1 file: Art/a/huge.png",
            "not an image: 3 files: Art/a/0.text.jpg, Art/a/1.text.jpg, Art/a/2.text.jpg",
            "truncated or damaged: 3 files: Art/a/0.half.jpg, Art/a/1.half.jpg, Art/a/2.half.jpg",
        )
    ]
    assert [message.partition(",")[0] for message in caplog.messages] == [
        "16 bits a pixel or colour (kept the upper 8): 3 files: Art/a/0.deep.png",
        "CMYK (converted to RGB): 3 files: Art/a/0.cmyk.jpg",
        "animated or of several pages (read the first): 3 files: Art/a/0.moves.gif",
    ]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache/derived").rglob("*.npy")}
    assert len(kept) == 2  # the other domains
    bad = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in {".jpg", ".png"}]
    without = sorted(name for name in bad if any(word in name for word in ("half", "none", "text", "huge")))
    suite.write_text(suite.read_text().replace("    side:", f"    without: {json.dumps(without)}\n    side:"))
    assert main(words) == 0
    assert "SRC" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_a_run_on_damaged_images_stops_before_training(capsys, tmp_path) -> None:
    some = {f"{d}/{c}/{n}.png": (0, 0, 0) for d in ("one", "two") for c in "ab" for n in range(9)}
    folder = images(tmp_path / "mine", some)
    suite = tmp_path / "mine.yaml"
    (folder / "one/a/0.png").write_text("<html>")
    (folder / "two/b/0.png").write_bytes((folder / "two/b/1.png").read_bytes()[:50])
    assert identify(capsys, folder, "--suite", suite)[0] == 0
    shrink(suite)
    words = ["run", str(suite), "--out", str(tmp_path / "out"), "--executor", "inline"]
    assert main(words) == 2
    remedy = "; replace or remove them, then run the same command again: only what is missing is made"
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"msda-bench: error: image_folder: one: not an image: 1 file: one/a/0.png{remedy}",
        f"msda-bench: error: image_folder: two: truncated or damaged: 1 file: two/b/0.png{remedy}",
    ]
    shutil.rmtree(folder)
    assert main(words) == 2
    assert f"mine: not in MSDA_BENCH_DATA ({tmp_path})" in capsys.readouterr().err


def test_the_next_command_can_be_pasted_and_suites_are_written_atomically(capsys, tmp_path) -> None:
    names = {f"{domain}/{label}/1.png": (0, 0, 0) for domain in ("one", "two", "three") for label in "ab"}
    folder, suite = images(tmp_path / "my photos; touch x/set", names), tmp_path / "a suite.yaml"
    for at in itertools.count():
        with faults(errno.ENOSPC, at) as faulty:
            code, _, err = identify(capsys, folder, "--suite", suite)
        if faulty.refused is None:
            break
        if code:
            assert err == [f"msda-bench: error: {suite}: cannot be written: No space left on device"]
            suite.unlink(missing_ok=True)
        assert [path.name for path in tmp_path.iterdir() if "suite" in path.name] == ["a suite.yaml"] * (not code)
        suite.unlink(missing_ok=True)
    assert "link" in faulty.calls
    suite.unlink()
    *_, line = identify(capsys, folder, "--suite", suite)[1]
    assert shlex.split(line.partition("next: ")[2]) == [
        f"MSDA_BENCH_DATA={folder.parent}", "msda-bench", "run", str(suite), "--fetch",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["null", "1e5", "x" * 70, "#b", "..", "a:b", "c\\d", "e\x85"])
def test_suites_are_valid_or_a_line_names_the_folder_to_rename(capsys, tmp_path, monkeypatch, name) -> None:
    folder = images(
        tmp_path / ("set/one" if name == ".." else name),
        {f"{domain}/{label}/{n}.png": (0, 0, 0) for domain in ("two", "three", name) for label in "ab" for n in "123"},
    )
    if name == "..":
        monkeypatch.chdir(folder)
        folder = Path("../one/../one")
    suite = tmp_path / "mine.yaml"
    code, out, err = identify(capsys, folder, "--suite", suite)
    if set(name) & set(":\\\x85"):
        assert (code, suite.exists()) == (2, False)
        assert f"no suite can hold the names {name!a}" in err[0]
        assert err[0].endswith("rename these folders")
    else:
        assert (code, err, out[-1].startswith("wrote")) == (0, [], True)
        assert main(["validate", str(suite)]) == 0


def test_a_suite_that_would_not_be_valid_is_not_written(capsys, tmp_path) -> None:
    folder = images(tmp_path / "mine", {f"{domain}/same/1.png": (0, 0, 0) for domain in ("one", "two")})
    code, _, err = identify(capsys, folder, "--suite", tmp_path / "mine.yaml")
    why = "no suite was written, since it would not be valid: dataset.image_folder.classes: must be at least 2, not 1"
    assert (code, err) == (2, [f"msda-bench: error: {folder}: {why}"])
    assert not (tmp_path / "mine.yaml").exists()


def long_name(size: int) -> bytes:
    """The beginning of a tar archive whose first member has a name of this size."""
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, size
    return head.tobuf(tarfile.GNU_FORMAT)


def test_archives_that_claim_much_are_not_read(capsys, tmp_path) -> None:
    packed = tmp_path / "set.tar.gz"
    packed.write_bytes(gzip.compress(long_name(3 << 30) + bytes(1 << 24)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zlib, "decompressobj", None)  # nothing is unpacked
        code, _, err = identify(capsys, packed)
    assert code == 2
    assert "set.tar.gz: not a tar archive, or a compressed or damaged one" in err[0]
    backward = tarfile.TarInfo("a/b/1.png")
    backward.pax_headers = {"size": "-512"}  # Python would go round in circles
    for name, content, words in (
        ("name", long_name(1 << 21) + bytes(1 << 22), f"a part claims {1 << 21} bytes"),
        ("back", backward.tobuf(tarfile.PAX_FORMAT) + bytes(1 << 12), "not a tar archive"),
        ("deep", long_name(9) * 3000, "not a tar archive"),
    ):
        (tmp_path / name).write_bytes(content)
        code, _, err = identify(capsys, tmp_path / name)
        assert (code, len(err)) == (2, 1)
        assert words in err[0]


def test_names_of_folders_reach_the_terminal_as_text(capsys, tmp_path) -> None:
    names = {f"{domain}/a/1.png": (0, 0, 0) for domain in ("[red]one", "two\x1b[2J", "three")}
    code, out, err = identify(capsys, images(tmp_path / "set", names))
    assert (code, err) == (0, [])
    assert out[-3:] == ["class [red]one three two [2J", "a 1 1 1", "all 1 1 1"]


def test_a_name_that_is_not_utf_8_is_reported_in_one_line(capsys, tmp_path) -> None:
    names = {f"{domain}/a/1.png": (0, 0, 0) for domain in ("one", "two", os.fsdecode(b"caf\xe9"))}
    folder, suite = images(tmp_path / "set", names), tmp_path / "suite.yaml"
    assert identify(capsys, folder, "--suite", suite)[0::2] == (
        2,
        [f"msda-bench: error: {folder}: a name in it is not UTF-8, so no suite can hold it; rename it"],
    )
    assert not suite.exists()
