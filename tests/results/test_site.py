"""The site of many result folders: a table, linked pages, CSV files, and faults of folders."""

from __future__ import annotations

import csv
import hashlib
import random
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.plugins import discover
from msda_bench.store import Outcome, Record, Store
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from tests.results.conftest import planned, write_folder
from tests.results.page.conftest import Page

HOSTILE = ("<script>alert(1)</script>", "</style><!--\u2028\x1b]0;own\x07", '=HYPERLINK("http://x.invalid")', "n" * 200)
RECORDED = Path(__file__).parents[2] / "results"


def scores(dataset, **correct):
    """An experiment with two targets and six seeds; each method has this many correct of 1000, one more per seed."""
    runs = {
        method: {target: [Outcome(1000, n_correct=n + seed) for seed in range(6)] for target in "xy"}
        for method, n in correct.items()
    }
    return planned(runs, f"on-{dataset}", dataset)


def with_baseline(part, **options):
    table, *others = part
    return (replace(table, baseline="SRC", **options), *others)


def index(out) -> str:
    return (out / "index.html").read_text(encoding="utf-8")


def said(text: str) -> str:
    return " ".join(unescape(re.sub(r"<(style|script)>.*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL)).split())


def rows(out) -> dict[str, list[str]]:
    """The cells of each method's row, as text."""
    (body,) = re.findall(r'id="board".*?<tbody>(.*?)</tbody>', index(out), re.DOTALL)
    cells = [re.findall(r"<(?:td|th)\b.*?</(?:td|th)>", row, re.DOTALL) for row in body.split("<tr")[1:]]
    return {said(first): [said(cell) for cell in others] for first, *others in cells}


def ranks(out) -> str:
    """The table of mean ranks."""
    return said(re.search(r'aria-label="Mean ranks">.*?<tbody>(.*?)</tbody>', index(out), re.DOTALL)[1])


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> Path:
    """Folders of three experiments; one of them is there twice under one name, and once more by another path."""
    where = tmp_path_factory.mktemp("mixed")
    write_folder(where / "one", scores("amazon", a=800, b=700, ref=900))
    write_folder(where / "Two words", scores("sine", b=600), scores("nowhere", a=500, b=650))
    shutil.copytree(where / "one", where / "elsewhere" / "one")
    return where


@pytest.fixture(scope="module")
def site(mixed) -> Path:
    before = {path: path.read_bytes() for path in mixed.rglob("*") if path.is_file()}
    folders = ["one", "Two words", "elsewhere/one", "elsewhere/../one"]
    out = mixed.parent / f"{mixed.name}-site"
    assert main(["site", *(str(mixed / name) for name in folders), "--out", str(out)]) == 0
    files = {path: path.read_bytes() for path in mixed.rglob("*") if path.is_file()}
    assert {path: files.get(path) for path in before} == before
    assert {path.relative_to(mixed).name for path in files.keys() - before.keys()} <= {".index"}
    return out


def test_a_row_for_each_method_and_a_column_for_each_experiment(site):
    cells = rows(site)
    assert [*cells] == ["b", "a", "ref reference"]
    once = ["rank 2 70.25", "rank 1 65.25", "rank 1 60.25"]
    assert [cell.split(" ±")[0] for cell in cells["b"]] == ["1 of 3", "rank 2 70.25", *once]
    assert cells["ref reference"][1:] == ["90.25 ± 0.08", "90.25 ± 0.08", "", ""]
    heads = re.findall(r'data-modality="(\w+)" data-protocol="([^"]+)"', index(site))
    kinds = ("text", "text", "other", "synthetic")
    assert heads == [(kind, "held out|equal steps|settings fixed") for kind in kinds]
    assert "1 dataset cannot show which method is best across datasets: 6 that rank" in said(index(site))
    assert 'id="across"' not in index(site)


def test_each_number_links_to_its_experiment_on_the_page_of_its_folder(site):
    links = set(re.findall(r'<a href="([^"#]+)#([^"]+)"', index(site)))
    pages = {("one", "on-amazon"), ("one-2", "on-amazon"), ("two-words", "on-sine"), ("two-words", "on-nowhere")}
    assert links == {(f"{folder}/report.html", anchor) for folder, anchor in pages}
    for page, anchor in links:
        assert f'id="{anchor}"' in (site / page).read_text()
        assert 'href="../index.html"' in (site / page).read_text()
    for path in re.findall(r'<a href="([^"#]+\.csv)"', index(site)):
        assert (site / path).is_file()


def test_the_csv_has_every_row_of_every_leaderboard(site, mixed):
    table = pd.read_csv(site / "leaderboard.csv")
    assert list(table.columns[:4]) == ["page", "modality", "protocol", "compares"]
    by_kind = table.groupby("compares")["experiment"].unique().map(set).to_dict()
    assert by_kind == {"methods": {"on-amazon"}, "variants": {"on-sine", "on-nowhere"}}
    expected = pd.concat([mb.leaderboard(mixed / name) for name in ("one", "Two words", "one")])
    assert table["mean"].tolist() == pytest.approx(expected["mean"].tolist(), rel=1e-5)
    names = ("one/report.html#on-amazon", "two-words/report.html#on-sine")
    assert [*table["page"].unique()[:2]] == [*names]
    assert len(pd.read_csv(site / "one" / "runs.csv")) == 36


@pytest.mark.slow
def test_eight_datasets_give_ranks_tests_and_groups(tmp_path):
    """Methods of a single experiment take no part."""
    eight = [scores(f"d{i}", a=500 + i, b=500 + (i + 1) * (-1) ** i, c=400) for i in range(8)]
    write_folder(tmp_path / "eight", *eight)
    write_folder(tmp_path / "more", scores("d0", a=700), scores("z", own=3))
    out = tmp_path / "site"
    assert main(["site", str(tmp_path / "eight"), str(tmp_path / "more"), "--out", str(out)]) == 0
    text = said(index(out))
    assert re.search(r"[ab] has the best mean rank over 8 datasets: 1\.50 of 3 methods\.", text)
    assert "Significantly worse: c." in text
    assert '<section class="experiment" id="across"' in index(out)
    assert "<svg" in index(out)
    assert ranks(out).endswith("c 3.00 -")
    assert re.search(r"a 1\.\d\d b", ranks(out))


def test_the_first_sentence_names_what_beats_which_baseline_and_skips_variants(tmp_path):
    assert main(["site", *(str(RECORDED / n) for n in ("ablation-mu", "pacs-features")), "--out", str(tmp_path)]) == 0
    text = said(index(tmp_path))
    assert "Leaderboard Significantly better than the baseline: MCC and MMD in pacs-features. No experiment" in text
    assert "77.38 ± 0.31 * (significantly better than SRC)" in rows(tmp_path)["MCC"][1]
    assert re.search(r'data-compares="variants"[^>]*><button[^>]*>ablation-mu<', index(tmp_path))
    assert "DARN-0" not in text.partition("Method")[0]
    assert [*rows(tmp_path)][:2] == ["MCC", "MMD"], "what beats a baseline comes first"


def test_few_experiments_are_named_and_many_are_counted_and_sources_left_out_are_variants(tmp_path):
    parts = [with_baseline(scores(f"d{place}", a=800, SRC=700)) for place in range(5)]
    write_folder(tmp_path / "two", *parts[:2])
    left_out = with_baseline(scores("less", a=800, SRC=700), dataset="d0", without="s")
    write_folder(tmp_path / "five", *parts, left_out)
    for name in ("two", "five"):
        assert main(["site", str(tmp_path / name), "--out", str(tmp_path / f"site-{name}")]) == 0
    named = "Significantly better than the baseline: a in on-d0; a in on-d1."
    assert named in said(index(tmp_path / "site-two"))
    assert "better than the baseline: a in 4 of 4 experiments." not in said(index(tmp_path / "site-two"))
    assert "Significantly better than the baseline: a in on-d1; a in on-d2;" in said(index(tmp_path / "site-five"))
    table = pd.read_csv(tmp_path / "site-five" / "leaderboard.csv")
    assert set(table[table["compares"] == "variants"]["experiment"]) == {"on-d0", "on-less"}
    assert set(table[table["compares"] == "methods"]["experiment"]) == {f"on-d{place}" for place in range(1, 5)}


def test_a_faulty_folder_is_one_line_and_the_others_are_shown(tmp_path, capsys, monkeypatch):
    where = tmp_path / "results"
    write_folder(where / "good", scores("amazon", a=800))
    damaged = write_folder(where / "damaged", scores("sine", a=700))
    record = Store(damaged).path(hashlib.sha256(b"on-sine a x 0").hexdigest())
    record.write_bytes(record.read_bytes()[:-9])
    (where / "notes.txt").write_text("no folder")
    (where / "empty").mkdir()
    monkeypatch.chdir(where / "empty")
    out = tmp_path / "site"
    folders = [str(where / "damaged"), ".", str(where / "good"), str(where / "notes.txt")]
    assert main(["site", *folders, "--out", str(out)]) == 1
    lines = [line.removeprefix("msda-bench: warning: ") for line in capsys.readouterr().err.splitlines()]
    assert len(lines) == 3
    text = said(index(out))
    for line, what in zip(lines, ("is truncated", "is not a result folder", "is not a folder"), strict=True):
        assert what in line
        assert what in text
    for name in ("damaged/cells/", "empty: ", "notes.txt: "):
        assert name in text
    assert "3 faults in the result folders." in text
    assert "report.html" in index(out), "no other dot became the name of the folder `.`"
    assert [*rows(out)] == ["a"]
    assert str(tmp_path) not in index(out) + (out / "damaged" / "report.html").read_text()


def test_folders_without_results_are_refused_and_nothing_is_written(tmp_path, capsys):
    assert main(["site", str(tmp_path / "none"), "--out", str(tmp_path / "site")]) == 2
    assert capsys.readouterr().err.endswith("no result folder is left to show\n")
    assert not (tmp_path / "site").exists()


def test_a_site_is_not_written_into_a_result_folder(mixed, capsys):
    one = mixed / "one"
    for out in (one, one.parent, one / "cells" / "more"):
        assert main(["site", str(one), "--out", str(out)]) == 2
        why = f"would write into the result folder {one}, whose files stay as they are; name a folder outside of it"
        assert capsys.readouterr().err == f"msda-bench: error: --out {out}: {why}\n"
    assert not (one.parent / "index.html").exists()


def hostile_folder(where: Path, draw: random.Random) -> Path:
    """A folder with any content of plan and records, some of whose files are damaged."""

    def text() -> str:
        return "".join(draw.choices([*HOSTILE, *"<>&'\"|\\`$%{}#=\x00\x07\x1b\u202e\u2028\n\t", "é", "x"], k=3))

    methods = tuple(Method(f"m{n}", draw.random() < 0.3, text(), (text(),)) for n in range(draw.randint(1, 4)))
    task = draw.choice(["classification", "regression"])
    places, seeds = tuple(dict.fromkeys(text() for _ in range(2))), tuple(range(draw.randint(1, 6)))
    baseline = draw.choice([None, methods[0].name])
    table = Experiment("e", text(), task, places, methods, seeds, notes=(text(),), baseline=baseline)
    runs = [(method.name, place, seed) for method in methods for place in places for seed in seeds]
    cells = tuple(PlannedCell("e", *run, hashlib.sha256(repr((run, where.name)).encode()).hexdigest()) for run in runs)
    store = Store.create(where)
    store.write_plan(Plan("suite", (table,), cells))
    for cell in cells:
        settings = {"dataset": {"params": {"protocol": text()}}, "fingerprint": text(), "training": {text(): text()}}
        if task == "regression":
            outcome = Outcome(10, sum_squared_error=draw.choice([0.0, 1e-100, 1e100, 5.0]))
        else:
            outcome = Outcome(10, n_correct=draw.randint(0, 10))
        failed = draw.random() < 0.2
        record = Record(cell.key, settings, "failed" if failed else "ok", None if failed else outcome)
        store.publish(replace(record, message=text()) if failed else record)
    for path in draw.sample(sorted((where / "cells").rglob("*.json")), k=len(cells) // 4):
        data = path.read_bytes()
        at = draw.randrange(len(data))
        nan = data.replace(b"5", b"NaN", 1)
        damage = [data[:at], b"", data + b"\xff", nan, b"null", data[:at] + b"\x00<script>" + data[at:]]
        path.write_bytes(draw.choice(damage))
    return where


@pytest.mark.parametrize("seed", range(2))
def test_any_content_of_a_folder_is_shown_as_text_or_is_one_line(tmp_path, seed, capsys):
    draw = random.Random(seed)
    folders = [hostile_folder(tmp_path / name, draw) for name in ("<i>own<", "x\x1b[31m")]
    plan = folders[0] / "plan.json"
    if seed == 1:
        plan.write_bytes(plan.read_bytes().replace(b'"seed":0', b'"seed":NaN', 1))
    out = tmp_path / "site"
    assert main(["site", *map(str, folders), "--out", str(out)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("msda-bench: warning: ") and line.isprintable() for line in lines)
    pages = [*out.rglob("*.html")]
    assert len(pages) == (2 if seed == 1 else 3)
    for path in pages:
        page = Page(path.read_text(encoding="utf-8"))
        page.check()
        assert str(tmp_path) not in page.source
    for file in out.rglob("*.csv"):
        cells = [cell for row in csv.reader(file.read_text(encoding="utf-8").splitlines()) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "@", "\t")) or not cell.isprintable()]


def test_every_built_in_dataset_states_its_modality():
    registry = discover()
    own = {name: registry.entry("dataset", name).cls for name in registry.names("dataset")}
    kinds = {name: cls.modality for name, cls in own.items() if cls.__module__.startswith("msda_bench_builtin")}
    assert len(kinds) > 10
    assert set(kinds.values()) == {"text", "images", "audio", "signals", "tabular", "synthetic", "other"}
