"""The whole page: its content, its safety, and equal pages for equal records."""

import base64
import gzip
import re
from dataclasses import replace

import pandas as pd
import pytest
import vl_convert

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.store import Curves, Outcome, Store
from msda_bench.suite.published import PublishedNumber, PublishedNumbers
from msda_bench_report.assets import download, library
from msda_bench_report.page import Findings, render_page
from tests.results.conftest import HOSTILE, gaining, planned, write_folder
from tests.results.page.conftest import Page


def build(path, make, methods=("SRC", "DARN", "ref"), targets=("x", "y"), seeds=8, order=1, **options):
    """A result folder with curves; `make(method, target, seed)` is a run as `planned` takes them."""
    options = {"baseline": "SRC" if "SRC" in methods else None} | options
    runs = {
        name: {target: [make(name, target, seed) for seed in range(seeds)] for target in targets} for name in methods
    }
    table, cells, records = planned(runs, "suite", "data", **options)
    curves = Curves([[targets[0]], [f"{targets[-1]} 2"]], [[0.5, 0.4]] * 3, [[0.1, 0.2]] * 3, [[0.7, 0.3]] * 3)
    for key, record in records.items():
        made = {"torch": "2.12" if key[0] == "0" else "2.13"}
        if record.status == "ok":
            records[key] = replace(record, curves=curves, timing={"train": 2.5, "steps": 9}, provenance=made)
    return write_folder(path, (table, cells[::order], dict([*records.items()][::order])))


def usual(method, target, seed):
    return {"SRC": 160, "DARN": 175, "ref": 190}[method] + seed % 4 + (target == "y")


def report(folder, *options):
    """The page that the command writes."""
    assert main(["report", str(folder), *options]) < 2
    return Page((folder / "report.html").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build(tmp_path_factory.mktemp("page") / "usual", usual)


@pytest.fixture(scope="module")
def page(folder):
    """The page of a usual folder."""
    Store(folder).add_commands(["msda-bench run <b>.yaml"])
    return report(folder)


def test_the_libraries_of_charts_are_bundled_once_for_a_version(tmp_path, monkeypatch):
    bundled = []
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: bundled.append(1) or "draw('</Script>')")

    def unpacked():
        return gzip.decompress(base64.b64decode(library()[0])).decode()

    assert unpacked() == unpacked() == "(() => {draw('</Script>')})();"
    (path,) = (tmp_path / "cache").rglob("*.js.gz")
    path.write_bytes(path.read_bytes()[:-9] + b"123456789")  # damages the cache
    assert unpacked() == unpacked() == "(() => {draw('</Script>')})();"
    assert len(bundled) == 2
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(path))  # a file, so no folder can be created there
    assert unpacked() == "(() => {draw('</Script>')})();"


def test_the_page_is_complete_and_loads_nothing(page):
    page.check()
    assert len(page.scripts) == 2
    identifiers = page.values("id")
    assert len(identifiers) == len(set(identifiers))
    wanted = [link[1:] for link in page.values("href") if link.startswith("#")]
    named = [name for value in page.values("aria-controls") + page.values("aria-labelledby") for name in value.split()]
    assert {*wanted, *named} <= set(identifiers)
    parts = [f"suite-{part}" for part in ("runs", "pairs", "beyond", "weights", "course", "curves", "time", "origin")]
    assert [name for name in identifiers if name in parts] == parts
    assert "1 of 1 method gains over SRC: DARN +7.50 [+7.50, +7.50] points." in page.said.split("Filter")[0]
    assert "msda-bench run <b>.yaml" in page.said
    assert re.search(r"PyTorch 2\.13 \(\d\d\) 2\.12 \(\d\)", page.said), "the most frequent first"


def test_every_figure_has_its_numbers_and_a_name_and_the_first_one_a_picture(page):
    assert len(page.figures) == len(page.specs) - 2 == 17
    assert page.said.count("Values ") >= len(page.figures)
    pictures = [role for role in page.values("role") if role == "img"]
    assert len([tag for tag, _ in page.elements if tag == "svg"]) == len(pictures) == 1
    wide = [attributes["id"] for tag, attributes in page.elements if attributes.get("class") == "wide"]
    assert wide == ["suite-forest", "suite-differences", "suite-cost"]
    assert "method rank mean standard error mean low mean high n ok" in page.said
    assert "Worst at x: 84.5 % on average over 2 methods; best there is DARN, 88.25 ± 0.21." in page.said
    assert "target method mean standard error gain x DARN 88.25 0.2113 7.50 x SRC 80.75" in page.said


def test_downloads_are_the_files_of_the_folder(page, folder):
    assert main(["leaderboard", str(folder)]) == 0
    links = {a["download"]: a["href"] for tag, a in page.elements if tag == "a" and "download" in a}
    names = ("runs.csv", "leaderboard.csv", "tables.md", "tables.tex")
    assert set(links) == {*names}
    for name, link in links.items():
        assert base64.b64decode(link.partition("base64,")[2]) == (folder / name).read_bytes()
    text = "name,score\n" * 100_000
    name, link = download("runs.csv", text)
    assert (name, link.partition(";")[0]) == ("runs.csv.gz", "data:application/gzip")
    assert gzip.decompress(base64.b64decode(link.partition("base64,")[2])).decode() == text


def test_the_page_does_not_depend_on_the_order(page, tmp_path):
    turned = build(tmp_path / "turned", usual, order=-1)
    Store(turned).add_commands(["msda-bench run <b>.yaml"])
    assert report(turned).source == page.source


def test_what_cannot_be_concluded_is_one_sentence_and_long_lists_are_cut(tmp_path):
    def make(method, _, seed):
        counts = tuple((place, place, 3 + (seed + len(method)) % 2) for place in range(41))
        correct = sum(count for *_, count in counts)
        return Outcome(correct + 9, correct, confusion=(*counts, (0, 1, 9)))

    page = report(build(tmp_path / "few", make, ("a", "bb"), tuple(f"t{place}" for place in range(18)), 2))
    assert "Pairs of methods. With 2 paired seeds no test of a pair of methods can be significant" in page.said
    assert "1.0000" not in page.said
    assert not any("differences" in name for name in page.values("id"))
    assert "10 more targets without a figure" in page.said
    assert 30 < len(page.figures) <= 60
    assert "Single classes. 41 are too many for a chart; msda-bench leaderboard" in page.said


def test_missing_runs_and_single_classes_are_shown(tmp_path):
    def make(method, target, seed):
        if method == "DARN" and seed == 7:
            return None
        correct = 100 if (method, target, seed) == ("SRC", "y", 3) else usual(method, target, seed)
        return Outcome(200, correct, confusion=((0, 0, 50), (1, 1, correct - 50), (1, 2, 200 - correct)))

    page = report(build(tmp_path / "results", make))
    assert "2 of 48 runs have no score (2 missing)" in page.said
    assert "DARN missing 2/16 x , seed 7 no record" in page.said
    assert "suite-classes-x" in page.figures
    assert "method 0 1 SRC 100 74.33" in page.said


def test_comparable_published_numbers_are_beside_ours(tmp_path):
    def number(method, mean, paper, network="net"):
        origin = {"source": paper, "table": "Table 1", "certainty": "high", "backbone": network}
        return PublishedNumber(method=method, target="x", mean=mean, **origin)

    given = [("DARN", 64.07, "Old"), ("DARN", 99.6, "New"), ("DARN", 9.0, "Other", "net 2"), ("SRC", 80.0, "Old")]
    numbers = PublishedNumbers("mine", tuple(number(*row) for row in given), ("net",))

    def make(*run):
        correct = usual(*run)
        return Outcome(200, correct, confusion=((0, 0, correct), (1, 0, 200 - correct)))

    folder = build(tmp_path / "one", make, published=numbers)
    page = report(folder)
    assert re.search(r"\d of 3 published numbers within 2 standard errors; 1 are not comparable", page.said)
    assert "Sources: [1] Old; [2] New" in page.said
    assert re.search(r"DARN x 64\.07 \[1\] Table 1 88\.25 .* DARN x 99\.60 \[2\] Table 1 88\.25", page.said)
    assert "suite-published" not in report(folder, "--metric", "macro_f1").values("id")


def test_many_methods_are_compared_with_the_baseline_and_with_the_best(tmp_path, monkeypatch):
    """Charts show the best method at first, and the baseline always."""
    more = {"down": -9, "SRC": 0, "up": 9, **{f"m{place}": 0 for place in range(5)}}

    def make(method, _, seed):
        return 150 + more[method] + (-1) ** (len(method) * seed)

    monkeypatch.setattr("msda_bench_report.page.MOST_SHOWN", 1)
    page = report(build(tmp_path / "results", make, tuple(more), ("x",), 9))
    marks = re.findall(r"([\d.]+) ± [\d.]+ [△▽] \(significantly (\w+) than SRC\)", page.said)
    assert marks == [("80.00", "better"), ("71.00", "worse")]
    assert "Differences from up" in page.said
    assert "Pairs of methods. Each method is compared with SRC and with the best; `compare: {pairs: all}`" in page.said
    shown = [set(one["value"]) for spec in page.specs for one in spec.get("params", ()) if one["name"] == "shown"]
    assert shown[0] == {"SRC", "up"}
    assert all(some <= shown[0] for some in shown)


@pytest.mark.parametrize(("first", "coloured"), [(150, ["A"]), (171, [])])
def test_a_loss_is_coloured_only_where_the_corrected_test_finds_it(tmp_path, first, coloured):
    """Seven losses of eight have p 0.016, and 0.09 after the correction over all six pairs."""

    def make(method, _, seed):
        return 170 if method != "A" else first if seed == 0 else 150 + seed

    page = report(build(tmp_path / "results", make, ("SRC", "A", "B", "C"), ("x",)))
    rows = r'data-method="(\w+)"(?:(?!</tr>).)*class="number negative"'
    assert re.findall(rows, page.source, re.DOTALL) == coloured


def test_hostile_text_is_harmless(tmp_path):
    """In targets, notes, messages and commands, as a folder may hold it; names of methods cannot be such."""

    def make(method, target, seed):
        return f"failed: {HOSTILE[-1]}" if seed == 5 else 150 + seed + len(method) % 7

    folder = build(tmp_path / "results", make, targets=HOSTILE[:3], notes=HOSTILE, seeds=6)
    Store(folder).add_commands(HOSTILE)
    page = report(folder)
    page.check()
    assert [tag for tag, _ in page.elements].count("style") == 1
    assert len(page.scripts) == 2
    assert all(name[:8] in page.said for name in HOSTILE)


def test_a_folder_without_records_has_a_page_unless_it_cannot_be_written(tmp_path, capsys):
    folder = build(tmp_path / "results", lambda *_: None)
    page = report(folder)
    page.check()
    for line in ("No method has a result yet.", "0 of 48 runs ok", "There are no records yet."):
        assert line in page.said
    (folder / "report.html").unlink()
    (folder / "report.html").mkdir()
    assert main(["report", str(folder)]) == 2
    assert "report.html: cannot be written" in capsys.readouterr().err


def test_curves_of_many_runs_show_the_first_seeds_and_a_long_table_of_runs_is_left_out_with_a_note(
    page, folder, monkeypatch
):
    assert "of 8 seeds." not in page.said
    assert "too long" not in page.said
    monkeypatch.setattr("msda_bench_report.page.MOST_CURVES", 12)
    monkeypatch.setattr("msda_bench_report.page.MOST_EMBEDDED", 10)
    runs = mb.load_results(folder)
    text = render_page(Findings.of(runs))
    assert text.count("Curves of 2 of 8 seeds.") == 3
    assert 'download="runs.csv' not in text
    assert 'download="leaderboard.csv"' in text
    assert "runs.csv is too long for this page; <code>msda-bench leaderboard</code> writes it" in text
    few, every = mb.load_curves(runs, most=12), mb.load_curves(runs)
    pd.testing.assert_frame_equal(few, every[every["seed"] < 2].reset_index(drop=True))


@pytest.mark.slow
def test_with_six_datasets_the_page_first_names_what_beats_the_baseline(tmp_path):
    text = report(write_folder(tmp_path / "six", *gaining(20, 30, 10, 40, -50, 60))).source
    words = (
        "1 of 2 methods gains over SRC",
        'aria-label="Mean gain of each method over',
        'aria-label="Mean gains over SRC"',
    )
    order = [text.index(word) for word in (*words, "+2.00", 'id="ranks"', 'id="e0"')]
    assert order == sorted(order)
    few = report(write_folder(tmp_path / "two", *gaining(20, 30))).source
    assert few.index('aria-label="Mean gains over SRC"') < few.index('id="e0"')
    assert 'id="ranks"' not in few
