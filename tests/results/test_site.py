"""The site of many result folders: a table, linked pages, CSV files, and faults of folders."""

import csv
import random
import re
import shutil
from dataclasses import replace
from html import unescape

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.store import Outcome
from tests.logs import contents, key_of, lines_of, relog
from tests.results.conftest import HOSTILE, planned, with_cells, write_folder
from tests.results.page.conftest import Page


def scores(dataset, without=None, seeds=6, **correct):
    """An experiment with two targets and some seeds; each method has this many correct of 1000, one more per seed."""
    runs = {
        method: {target: [Outcome(1000, n_correct=n + seed) for seed in range(seeds)] for target in "xy"}
        for method, n in correct.items()
    }
    baseline = "SRC" if "SRC" in correct else None
    name, pairs = f"{'less' if without else 'on'}-{dataset}", "baseline" if baseline else None
    return planned(runs, name, dataset, baseline=baseline, pairs=pairs, without=without)


def index(out):
    return (out / "index.html").read_text()


def said(text):
    return " ".join(unescape(re.sub(r"<(style|script)>.*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL)).split())


def rows(page, table):
    """The cells of each row of the first table with some words, as text."""
    body = re.search(rf"{table}.*?<tbody>(.*?)</tbody>", page, re.DOTALL)[1]
    cells = [re.findall(r"<(?:td|th)\b.*?</(?:td|th)>", row, re.DOTALL) for row in body.split("<tr")[1:]]
    return {said(first): [said(cell) for cell in others] for first, *others in cells}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Folders of three experiments; one of them is there twice under one name, and once more by another path."""
    where = tmp_path_factory.mktemp("mixed")
    write_folder(where / "one", scores("amazon", a=800, b=700, ref=900))
    write_folder(where / "Two words", scores("sine", b=600), scores("nowhere", a=500, b=650))
    shutil.copytree(where / "one", where / "elsewhere" / "one")
    return where


@pytest.fixture(scope="module")
def site(mixed):
    before = contents(mixed)
    folders = ["one", "Two words", "elsewhere/one", "elsewhere/../one"]
    out = mixed.parent / f"{mixed.name}-site"
    assert main(["site", *(str(mixed / name) for name in folders), "--out", str(out)]) == 0
    assert contents(mixed) == before
    return out


def test_a_row_for_each_method_and_a_column_for_each_experiment_linked_to_its_page(site):
    cells = rows(index(site), 'id="board"')
    assert [*cells] == ["b", "a", "ref reference"]
    once = ["rank 2 70.25", "rank 1 60.25", "rank 1 65.25"]
    assert [cell.split(" ±")[0] for cell in cells["b"]] == ["rank 2 70.25", *once]
    assert cells["ref reference"] == ["90.25 ± 0.08", "90.25 ± 0.08", "", ""]
    heads = re.findall(r'data-modality="(\w+)" data-protocol="([^"]+)"', index(site))
    kinds = ("text", "text", "synthetic", "other")
    assert heads == [(kind, "held out|equal steps|settings fixed") for kind in kinds]
    assert "Leaderboard on-amazon: a has the best mean on average over 2 targets: 80.25 ± 0.08 %" in said(index(site))
    assert "Worst at x: 75.2 % on average over 2 methods; best there is a, 80.25 ± 0.08." in said(index(site))
    assert 'id="across"' not in index(site)
    links = set(re.findall(r'<a href="([^"#]+)#([^"]+)"', index(site)))
    pages = {("one", "on-amazon"), ("one-2", "on-amazon"), ("two-words", "on-sine"), ("two-words", "on-nowhere")}
    assert links == {(f"{folder}/report.html", anchor) for folder, anchor in pages}
    for page, anchor in links:
        assert f'id="{anchor}"' in (site / page).read_text()
        assert 'href="../index.html"' in (site / page).read_text()


def test_the_csv_has_every_row_of_every_leaderboard(site, mixed):
    table = pd.read_csv(site / "leaderboard.csv")
    assert list(table.columns[:4]) == ["page", "modality", "protocol", "compares"]
    by_kind = table.groupby("compares")["experiment"].unique().map(set).to_dict()
    assert by_kind == {"methods": {"on-amazon"}, "variants": {"on-sine", "on-nowhere"}}
    expected = pd.concat([mb.leaderboard(mixed / name) for name in ("one", "Two words", "one")])
    assert table["mean"].tolist() == pytest.approx(expected["mean"].tolist(), rel=1e-5)
    assert [*table["page"].unique()[:2]] == ["one/report.html#on-amazon", "two-words/report.html#on-sine"]
    assert all((site / path).is_file() for path in re.findall(r'<a href="([^"#]+\.csv)"', index(site)))
    assert len(pd.read_csv(site / "one" / "runs.csv")) == 36


def test_the_mean_gains_come_first_and_the_scores_are_folded(tmp_path):
    """Six methods and a reference on two datasets, of which one has a method of its own."""
    gains = {"up": 30, "down": -40, "SRC": 0, "x": 1, "y": 2, "z": 3, "w": 1, "ref": 200}
    both = [
        scores(f"d{n}", seeds=10, **{name: 700 + gain for name, gain in gains.items()}, **own)
        for n, own in enumerate(({}, {"own": 900}))
    ]
    assert main(["site", str(write_folder(tmp_path / "made", *both)), "--out", str(tmp_path / "site")]) == 0
    page = index(tmp_path / "site")
    table, scored = page.index('aria-label="Mean gains over SRC"'), page.index('id="board"')
    assert page.index("<main") < table < scored
    assert re.search(r'<details class="part leaderboard" id="scores"', page)
    shown = rows(page, 'aria-label="Mean gains over SRC"')
    assert [*shown] == ["up", "z", "y", "x", "w", "SRC", "down", "own", "ref"], "by the mean gain"
    assert shown["up"] == ["+3.00", "3.00 .. 3.00", "2/2", "0/2", "1.00", "+3.00 +", "+3.00 +"]
    assert shown["down"][-1] == "-4.00 -"
    assert said(page).count("There is headroom: with labels of the target, ref +20.00 [+20.00, +20.00]") == 3
    assert next(iter(rows(page, 'id="board"'))) == "up"


def test_a_faulty_folder_is_one_line_and_the_others_are_shown(tmp_path, capsys, monkeypatch):
    where, out = tmp_path / "results", tmp_path / "site"
    write_folder(where / "good", scores("amazon", a=800))
    damaged = write_folder(where / "damaged", scores("sine", a=700))
    key = key_of({"at": "on-sine a x 0"})
    relog(damaged, {key: lines_of(damaged)[key][:-9] + b"\n"})
    (where / "notes.txt").write_text("no folder")
    (where / "empty").mkdir()
    monkeypatch.chdir(where / "empty")
    folders = [str(where / "damaged"), ".", str(where / "good"), str(where / "notes.txt")]
    assert main(["site", *folders, "--out", str(out)]) == 1
    lines = [line.removeprefix("msda-bench: warning: ") for line in capsys.readouterr().err.splitlines()]
    text = said(index(out))
    for line, what in zip(lines, ("is truncated", "is not a result folder", "is not a folder"), strict=True):
        assert what in line
        assert what in text
    for name in ("damaged/log/", "empty: ", "notes.txt: ", "3 faults in the result folders."):
        assert name in text
    assert "report.html" in index(out), "no other dot became the name of the folder `.`"
    assert [*rows(index(out), 'id="board"')] == ["a"]
    assert str(tmp_path) not in index(out) + (out / "damaged" / "report.html").read_text()
    assert main(["site", ".", "--out", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.endswith("no result folder is left to show\n")
    assert not (tmp_path / "none").exists()


def hostile_folder(where, draw):
    """A folder with any content of plan and records, some of whose files are damaged."""

    def text():
        return "".join(draw.choices([*HOSTILE, *"<>&'\"|\\`$%{}#=\x00\x07\x1b\u202e\u2028\n\t", "é", "x"], k=3))

    def run(task):
        if draw.random() < 0.2:
            return f"failed: {text()}"
        if task == "regression":
            return Outcome(10, sum_squared_error=draw.choice([0.0, 1e-100, 1e100, 5.0]))
        return Outcome(10, n_correct=draw.randint(0, 10))

    task, places, seeds = draw.choice(["classification", "regression"]), {text(), text()}, range(draw.randint(1, 6))
    names = [f"{draw.choice(['m', 'ref'])}{n}" for n in range(draw.randint(1, 4))]
    runs = {name: {place: [run(task) for _ in seeds] for place in sorted(places)} for name in names}
    part = planned(runs, "e", text(), task, notes=(text(),), baseline=draw.choice([None, names[0]]))
    settings = {"dataset": {"params": {"protocol": text()}}, "fingerprint": text(), "training": {text(): text()}}
    table, cells, changed = with_cells(part, lambda _: settings)
    methods = tuple(replace(method, recipe=text(), distributions=(text(),)) for method in table.methods)
    write_folder(where, (replace(table, methods=methods), cells, changed))
    lines = lines_of(where)
    for key in draw.sample(sorted(lines), k=len(lines) // 4):
        data, at = lines[key][:-1], draw.randrange(len(lines[key]) - 1)
        nan = data.replace(b"5", b"NaN", 1)
        lines[key] = draw.choice([data[:at], data + b"\xff", nan, b"null", data[:at] + b"\x00<script>" + data[at:]])
        lines[key] += b"\n"
    relog(where, lines)
    return where


@pytest.mark.parametrize("seed", range(2))
def test_any_content_of_a_folder_is_shown_as_text_or_is_one_line(tmp_path, seed, capsys):
    draw, out = random.Random(seed), tmp_path / "site"
    folders = [hostile_folder(tmp_path / name, draw) for name in ("<i>own<", "x\x1b[31m")]
    plan = folders[0] / "plan.json"
    if seed == 1:
        plan.write_bytes(plan.read_bytes().replace(b'"seed":0', b'"seed":NaN', 1))
    assert main(["site", *map(str, folders), "--out", str(out)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("msda-bench: warning: ") and line.isprintable() for line in lines)
    pages = [*out.rglob("*.html")]
    assert len(pages) == (2 if seed == 1 else 3)
    for path in pages:
        page = Page(path.read_text())
        page.check()
        assert str(tmp_path) not in page.source
    for file in out.rglob("*.csv"):
        cells = [cell for row in csv.reader(file.read_text().splitlines()) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "@", "\t")) or not cell.isprintable()]
