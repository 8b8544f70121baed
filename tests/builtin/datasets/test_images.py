"""Users' folders and lists of images, with every kind of fault."""

import io
import re
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from pydantic import ValidationError

from msda_bench.api import DataError
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.checksums import tree_sha256
from msda_bench_builtin.backbones.headless import torchvision
from msda_bench_builtin.datasets import DomainNet, ImageFolder, ImageList, Office31, OfficeHomeImages
from msda_bench_builtin.datasets.images.decode import decode

REMEDY = "; replace or remove them, then run the same command again: only what is missing is made"
CROPPED = {"crop": 6, "scale": (0.7, 1.0), "flip": True, "jitter": 0.3, "grey": 0.1}
COLOURS = {"cat": (250, 0, 0), "dog": (0, 250, 0), "owl": (0, 0, 250)}
LABELS = [0, 0, 0, 1, 1, 1, 2, 2, 2]


def encoded(image, form="PNG", **options):
    """The file of an image."""
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def picture(colour=(9, 9, 9), size=(40, 30), mode="RGB", form="PNG"):
    return encoded(Image.new(mode, size, colour), form)


def pages(form, *colours):
    first, *rest = [Image.new("RGB", (20, 20), colour) for colour in colours]
    return encoded(first, form, save_all=True, append_images=rest)


def deep_colours():
    """A PNG with 16 bits per colour, which Pillow cannot write."""
    rows = (b"\0" + bytes.fromhex("804010ff20ee") * 20) * 20
    head = struct.pack(">IIBBBBB", 20, 20, 16, 2, 0, 0, 0)
    chunks = [b"IHDR" + head, b"IDAT" + zlib.compress(rows), b"IEND"]
    sizes = (struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(sizes)


JPEG = picture(form="JPEG", size=(200, 200))


@pytest.fixture
def put(tmp_path, in_this_process):
    """Writes files below the folder `given/mine` and returns the folder."""

    def write(files):
        for name, content in files.items():
            path = tmp_path / "given/mine" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / "given/mine"

    return write


@pytest.fixture
def whole(put):
    """Three classes of three images in two domains."""
    domains, numbers = ("Real World", "art"), range(3)
    return put({
        f"{domain}/{name}/{number}.png": picture(colour, size=(30 + number, 40))
        for domain in domains for name, colour in COLOURS.items() for number in numbers
    })  # fmt: skip


def read(folder, kind=ImageFolder, **options):
    given = {"domains": ("real_world", "art"), "classes": 3} if kind in {ImageFolder, ImageList} else {}
    params = {**given, "folder": folder.name, "sha256": tree_sha256(folder), "side": 8, **options}
    return kind(**params), LocalFiles(Folders(folder.parent, folder.parent.parent / "cache"), kind.name, 1)


def loaded(folder, domain="art", **options):
    data, files = read(folder, **options)
    return data.load(domain, files)


def lines(folder, **options):
    with pytest.raises(DataError) as caught:
        loaded(folder, **options)
    return caught.value.lines


def test_a_folder_keeps_the_contract_and_its_pixels_which_stay_memory_mapped(whole, keeps_contract):
    data, files = read(whole, train=4)
    keeps_contract(data, files)
    found = data.load("real_world", files)
    assert isinstance(found.x, np.memmap)
    assert found.y.tolist() == LABELS
    assert found.x[::3, :, 4, 4].tolist() == [list(colour) for colour in COLOURS.values()]
    assert not set(CROPPED) & data.identity().keys()
    x, key = torch.from_numpy(found.x / np.float32(255)), torch.tensor([3, -4], dtype=torch.int32)
    assert data.augment(x, key).equal(x)
    data, files = read(whole, train=4, **CROPPED)
    keeps_contract(data, files)
    shown = [data.augment(x, None), *(data.view(x, strength, key) for strength in ("weak", "strong"))]
    assert [one.shape for one in shown] == [(9, 3, 6, 6)] * 3
    assert not shown[1].equal(shown[2])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"short": 7}, "short is 7, less than side, 8"),
        ({"crop": 21}, "crop is 21, more than side, 8"),
        ({"scale": (0.9, 0.5)}, r"scale is \[0.9, 0.5\]; it must hold two shares above 0"),
    ],
)
def test_impossible_sizes_are_refused(options, says):
    with pytest.raises(ValidationError, match=says):
        ImageFolder(side=8, **options)


@pytest.mark.parametrize("size", [(300, 200), (201, 333), (60, 50)])
@pytest.mark.parametrize(("side", "short"), [(64, None), (64, 64), (56, 73)])
def test_resizing_equals_torchvisions(size, side, short):
    pixels = np.random.default_rng(5).integers(0, 256, (*size[::-1], 3), np.uint8)
    file = encoded(Image.fromarray(pixels), "JPEG")
    v2 = torchvision("transforms.v2")
    steps = [v2.Resize((side, side) if short is None else short), v2.CenterCrop(side)]
    expected = np.asarray(v2.Compose(steps)(Image.open(io.BytesIO(file)))).transpose(2, 0, 1)
    assert np.array_equal(decode(file, side, short)[0], expected)


BAD = {
    "cut.jpg": JPEG[: len(JPEG) // 2],
    "cut.png": picture(size=(99, 99))[:-40],
    "empty.jpg": b"",
    "text.jpg": "<!DOCTYPE html>\n<p>404 not found",
    "list.jpg": "art/cat/0.png 0",
    "script.png": b"\x00" * 99,
    "huge.png": picture(1, size=(10_000, 10_000), mode="1"),
    "cut.tif": pages("TIFF", "black", "black", "black")[:2000],  # Pillow raises a TypeError
    "flat.png": picture(1, size=(10_000_000, 1), mode="1"),  # 640 MB while it is squeezed into a square of 8
}


def test_unreadable_images_are_counted_by_kind_and_a_rerun_resumes(put, whole):
    put({f"art/dog/{name}": content for name, content in BAD.items()})
    expected = (
        f"image_folder: art: empty (0 bytes): 1 file: art/dog/empty.jpg{REMEDY}",
        f"image_folder: art: larger than 50 megapixels: 1 file: art/dog/huge.png{REMEDY}",
        f"image_folder: art: larger than 50 megapixels while it is resized: 1 file: art/dog/flat.png{REMEDY}",
        f"image_folder: art: not an image: 3 files: art/dog/list.jpg, art/dog/script.png, art/dog/text.jpg{REMEDY}",
        f"image_folder: art: truncated or damaged: 3 files: art/dog/cut.jpg, art/dog/cut.png, art/dog/cut.tif{REMEDY}",
    )
    assert lines(whole) == expected
    kept = set(whole.parent.parent.glob("cache/derived/parts/*"))
    assert len(kept) == 2
    assert lines(whole) == expected
    assert loaded(whole, without=tuple(f"art/dog/{name}" for name in BAD)).y.tolist() == LABELS


def test_an_image_too_large_for_short_is_refused_before_it_takes_memory(put, whole):
    thin = picture(1, size=(1, 30_000), mode="1")
    assert len(thin) < 200
    put({"art/dog/thin.png": thin})
    assert lines(whole, side=224, short=256) == (
        f"image_folder: art: larger than 50 megapixels while it is resized: 1 file: art/dog/thin.png{REMEDY}",
    )
    assert loaded(whole, side=8, short=8).x.shape == (10, 3, 8, 8)


def test_unusual_images_are_converted_correctly_and_named(put, whole, caplog):
    put({
        "art/owl/3.jpg": picture((0, 0, 0, 255), mode="CMYK", form="JPEG"),
        "art/owl/4.png": encoded(Image.fromarray(np.full((20, 20), 0x8040, np.uint16))),
        "art/owl/5.gif": pages("GIF", "blue", "red"),
        "art/owl/6.jpg": picture(77, mode="L", form="JPEG"),
        "art/owl/7.png": deep_colours(),
    })  # fmt: skip
    found = loaded(whole).x[-5:, :, 4, 4].tolist()
    assert found[1:] == [[0x80] * 3, [0, 0, 255], [77] * 3, [0x80, 0x10, 0x20]]
    assert max(found[0]) <= 1
    assert [message.removeprefix("image_folder: art: ") for message in caplog.messages] == [
        "16 bits a pixel or colour (kept the upper 8): 2 files: art/owl/4.png, art/owl/7.png",
        "CMYK (converted to RGB): 1 file: art/owl/3.jpg",
        "animated or of several pages (read the first): 1 file: art/owl/5.gif",
    ]


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("short", [None, 12])
def test_images_are_upright_if_asked_and_otherwise_named(form, turn, short):
    pixels = np.zeros((24, 16, 3), np.uint8)
    pixels[:12, :, 0], pixels[:, :8, 1] = 250, 250
    exif = Image.Exif()
    exif[0x0112] = turn
    stored = encoded(Image.fromarray(pixels), form, exif=exif, **({"lossless": True} if form == "WEBP" else {}))
    expected, _ = decode(encoded(ImageOps.exif_transpose(Image.open(io.BytesIO(stored)))), 8, short)
    found, _ = decode(stored, 8, short, upright=True)
    assert np.abs(found.astype(int) - expected).mean() < 12
    as_stored, note = decode(stored, 8, short)
    assert (note is not None and "EXIF" in note) == (turn > 1 and form != "TIFF")
    assert np.array_equal(as_stored, found) == (note is None)


def test_file_names_cannot_control_the_terminal(put, whole, caplog):
    odd = "art/owl/\x1b[31m\udc80\n{}"
    put({odd.format("1.jpg"): picture((0, 0, 0, 255), mode="CMYK", form="JPEG"), "art/\x1b[2J/1.png": picture()})
    data, files = read(whole, classes=4)
    assert len(data.load("art", files).y) == 11
    data.prepare(files, data.domains)
    assert len(caplog.messages) == 2
    assert all(message.isprintable() for message in caplog.messages)
    put({odd.format("2.jpg"): "no image"})
    assert all(line.isprintable() for line in lines(whole, classes=4))


def test_missing_classes_and_folders_in_another_case_are_named(put, whole, caplog):
    put({"Real World/OWL/9.png": picture(), "Real World/Owl/8.png": picture(), "art/t-shirt/1.png": picture()})
    data, files = read(whole, classes=4)
    assert data.load("real_world", files).y.tolist() == [*LABELS, 2, 2]
    assert data.load("art", files).y.tolist()[-1] == 3
    assert not caplog.messages  # else every process that trains would repeat them
    data.prepare(files, data.domains)
    assert caplog.messages == [
        "image_folder: real_world: no images of classes 1: t-shirt",
        (
            "image_folder: real_world: class folders whose names mean the same are merged, "
            "3: Real World/OWL, Real World/Owl, Real World/owl"
        ),
    ]


def test_a_domain_may_be_a_link(whole, tmp_path):
    (whole / "art").rename(tmp_path / "elsewhere")
    (whole / "art").symlink_to(tmp_path / "elsewhere")
    assert loaded(whole).y.tolist() == LABELS


def test_lists_give_order_labels_and_official_test_and_name_missing_files(put, whole, caplog):
    names = ["Real World/cat/0.png 1\n", "Real World/owl/2.png 3\n", "Real World/dog/0.png 2\n"]
    put({"real_world_train.txt": "".join(names[:2]), "real_world_test.txt": names[2] + "\n"})
    options = {"kind": ImageList, "list": "{domain}_train.txt", "test_list": "{domain}_test.txt", "first_label": 1}
    found = loaded(whole, "real_world", **options)
    assert (found.y.tolist(), found.test.tolist()) == ([0, 2, 1], [False, False, True])
    assert found.x[:, :, 4, 4].tolist() == [list(COLOURS[name]) for name in ("cat", "owl", "dog")]
    absent = "".join(f"art/cat/{number}.png 1\n" for number in range(2, 9))
    put({"art_train.txt": absent, "art_test.txt": "art/cat/0.png 1.0\n"})
    assert lines(whole, **options) == (
        (
            f"{whole}: art: listed files are not there, 6: art/cat/3.png, art/cat/4.png, art/cat/5.png and 3 more; "
            "complete the folder"
        ),
    )
    put({f"art/cat/{number}.png": picture() for number in range(3, 9)})
    data, files = read(whole, **options)
    assert len(data.load("art", files).y) == 8
    data.prepare(files, data.domains)
    assert caplog.messages == ["image_list: art: no images of classes 2: 1, 2"]
    assert lines(whole, kind=ImageList) == (
        f"{whole}: no list art.txt, there or in txt; put it there, or correct `domains` and `list`",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path label\nart/cat/0.png 0", r"1 lines do not end in a blank and a whole .*, first line 1 \(path lab"),
        ("art/cat/0.png,0\nart/cat/1.png,0", r"2 .*\(write PATH LABEL, .*, first line 1 \(art/cat/0.png,0\)"),
        ("/art/cat/0.png 0", r"outside the folder \(write its path below .*, first line 1 \(/art/cat/0.png 0\)"),
        ("../cat/0.png 0", "outside the folder"),
        ("art/cat/0.png 1\nart/owl/0.png 3", "labels from 1 to 3, .*; set `first_label: 1` and `classes: 3` if"),
        ("art/cat/0.png 0\nart/owl/0.png 4", "labels from 0 to 4, .*; set `first_label: 0` and `classes: 5` if"),
        ("art\\cat\\0.png 0", "; write / for .* in the list"),
        ("mine/art/cat/0.png 0", "; remove mine/ in the list"),
        ('"art/cat/0.png" 0', "; remove the quotes in the list"),
        ("cat/0.png 0", "; write art/ before each path in the list"),
        ("art/cat/99.png 0", "; complete the folder"),
        (b"art/cat/\xe9.png 0", "cannot be read as text .*; save it as UTF-8"),
    ],
)  # fmt: skip
def test_each_fault_of_a_list_has_its_own_remedy(put, whole, text, expected):
    put({"art.txt": text})
    (line,) = lines(whole, kind=ImageList)
    assert re.search(expected, line)


def test_a_list_may_have_tabs_a_byte_order_mark_and_empty_lines(put, whole):
    put({"art.txt": "\ufeffart/cat/0.png\t0\r\n\r\nart/owl/0.png  2.0\r\n"})
    assert loaded(whole, kind=ImageList).y.tolist() == [0, 2]


def test_images_are_counted_without_decoding(put, whole):
    put({"art/dog/bad.png": "no image", "real_world.txt": "art/cat/0.png 0\n" * 3, "art.txt": "art/owl/0.png 1\n" * 2})
    data, files = read(whole, without=("art/dog/0.png",))
    assert data.sizes(files) == {"real_world": 9, "art": 9}
    data, files = read(whole, kind=ImageList, classes=2, test_list="art.txt")
    assert data.sizes(files) == {"real_world": (3, 2), "art": (2, 2)}
    assert not list(whole.parent.parent.glob("cache/derived/*.npy"))
    assert read(whole, sha256="ab" * 32)[0].sizes(files) == {}


def test_named_sets_have_their_layouts(put):
    folder = put({f"{domain}/images/c{place:02}/f.jpg": JPEG for domain in Office31().domains for place in range(31)})
    assert loaded(folder, "webcam", kind=Office31).y.tolist() == list(range(31))
    lists = {f"txt/real_{part}.txt": "real/a b/1.jpg 327\n" for part in ("train", "test")}
    data, files = read(put({"real/a b/1.jpg": JPEG, **lists}), DomainNet)
    assert data.load("real", files).y.tolist() == [327, 327]
    assert data.listed("real", files).odd == [
        "no images of classes 344: 0, 1, 10 and 341 more",
        "images that are listed more than once, 1: real/a b/1.jpg",
    ]
    assert OfficeHomeImages().task.classes == 65


def test_a_suite_is_offered_for_a_copy_whose_listed_images_are_all_there(put):
    domains = DomainNet().domains
    folder = put({f"{domain}/owl/{number}.jpg": JPEG for domain in domains for number in range(2)})
    put({f"txt/{domain}_train.txt": f"{domain}/owl/0.jpg 0\n" for domain in domains})
    put({f"txt/{domain}_test.txt": f"{domain}/owl/1.jpg 0\n" for domain in domains})
    found = DomainNet().identify(folder, "ab" * 32, {})
    assert found.counts == {domain: {"owl": 2} for domain in domains}
    assert found.suite
    (folder / domains[0] / "owl/1.jpg").unlink()
    found = DomainNet().identify(folder, "ab" * 32, {})
    assert f"missing: domain {domains[0]}, listed files are not there, 1: {domains[0]}/owl/1.jpg" in found.lines
    assert found.counts[domains[0]] == {"owl": 1}
    assert not found.suite
